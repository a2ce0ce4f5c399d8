//! `greatest` and `least` until the types are settled: DataFusion's refuse at once what
//! they can't bring together themselves.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::functions::resolve::{Purpose, Rank, common, rank};
use crate::{Error, Type};

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
        let fields = arguments.arg_fields;
        let types: Vec<_> = fields.iter().map(|field| field.data_type().clone()).collect();
        let are_numbers = types.iter().any(|data_type| rank(data_type) == Some(Rank::Numeric));
        let common = if are_numbers { common(&types, Purpose::Column) } else { None };
        match common.and_then(|common| Type::from_arrow(&common)) {
            Some(kind) if types.iter().any(|data_type| *data_type != kind.arrow()) => {
                Ok(Arc::new(kind.field(self.name(), true)))
            }
            _ => self.standard.return_field_from_args(arguments),
        }
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        if arguments.iter().any(|data_type| rank(data_type) == Some(Rank::Numeric)) {
            return Ok(arguments.to_vec());
        }
        self.standard.coerce_types(arguments)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(Error::internal(format!("a {} that nothing has settled is left", self.name())).into())
    }
}
