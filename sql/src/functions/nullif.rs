//! `nullif`: DataFusion's, with the SQL type of its first argument.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

/// The function.
pub(super) fn nullif() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(NullIf { standard: datafusion::functions::core::nullif() }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct NullIf {
    standard: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for NullIf {
    fn name(&self) -> &str {
        self.standard.name()
    }

    fn signature(&self) -> &Signature {
        self.standard.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.standard.return_type(arguments)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let first = arguments.arg_fields.first().cloned();
        let field = self.standard.return_field_from_args(arguments)?;
        Ok(match first {
            Some(first) if first.data_type() == field.data_type() => {
                Arc::new(first.as_ref().clone().with_name(self.name()).with_nullable(true))
            }
            _ => field,
        })
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.standard.invoke_with_args(arguments)
    }
}
