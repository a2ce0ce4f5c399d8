//! `gen_random_uuid`: another one for each row.

use std::sync::Arc;

use arrow::array::StringArray;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use uuid::Uuid;

use crate::Type;

#[derive(Debug, PartialEq, Eq, Hash)]
struct Random {
    signature: Signature,
}

/// The function.
pub(super) fn random() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(Random {
        signature: Signature::nullary(Volatility::Volatile),
    }))
}

impl ScalarUDFImpl for Random {
    fn name(&self) -> &str {
        "gen_random_uuid"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(Type::Uuid.arrow())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(Type::Uuid.field(self.name(), false)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let uuids = (0..arguments.number_rows).map(|_| Some(Uuid::new_v4().to_string()));
        Ok(ColumnarValue::Array(Arc::new(uuids.collect::<StringArray>())))
    }
}
