//! `greatest` and `least` until the types are settled: DataFusion's refuse at once what
//! they can't bring together themselves.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::Error;
use crate::functions::coalesce::provisional;
use crate::functions::resolve::{Rank, rank};

/// One of them; `Coercion` puts DataFusion's in its place.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Choice {
    pub(super) standard: Arc<ScalarUDF>,
    signature: Signature,
}

/// Both of them.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    use datafusion::functions::core::{greatest, least};
    let choice = |standard| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(Choice { standard, signature }))
    };
    vec![choice(greatest()), choice(least())]
}

impl ScalarUDFImpl for Choice {
    fn name(&self) -> &str {
        self.standard.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.standard.return_type(arguments)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let first = arguments.arg_fields.first().map(|field| field.data_type());
        match arguments.arg_fields.iter().all(|field| Some(field.data_type()) == first) {
            true => self.standard.return_field_from_args(arguments),
            false => Ok(provisional(self.name(), &arguments)),
        }
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        if arguments.iter().any(|data_type| rank(data_type) == Some(Rank::Numeric)) {
            return Ok(arguments.to_vec());
        }
        Ok(self.standard.coerce_types(arguments).unwrap_or_else(|_| arguments.to_vec()))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(Error::internal(format!("a {} that nothing has settled is left", self.name())).into())
    }
}
