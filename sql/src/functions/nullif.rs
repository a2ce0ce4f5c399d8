//! `nullif`: DataFusion's, with the SQL type of its first argument.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::Type;
use crate::functions::resolve::{Rank, decimal, rank};

/// The function.
pub(super) fn nullif() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(NullIf {
        standard: datafusion::functions::core::nullif(),
        signature: Signature::user_defined(Volatility::Immutable),
    }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct NullIf {
    standard: Arc<ScalarUDF>,
    signature: Signature,
}

impl ScalarUDFImpl for NullIf {
    fn name(&self) -> &str {
        self.standard.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Two types that DataFusion brings together; others are left to `Coercion`.
    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let [left, right] = arguments else { return self.standard.coerce_types(arguments) };
        let common = comparison_coercion(left, right);
        Ok(common.map_or_else(|| arguments.to_vec(), |common| vec![common; 2]))
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.standard.return_type(arguments)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let first = arguments.arg_fields.first().cloned();
        let types = arguments.arg_fields.iter().map(|field| field.data_type().clone());
        let types: Vec<_> = types.collect();
        // As `Coercion` settles it.
        let ranks = types.iter().map(rank).collect::<Option<Vec<_>>>();
        if let (Some(ranks), Some(first)) = (ranks, &first) {
            let kind = match ranks.iter().max() {
                Some(Rank::Real | Rank::Double) => Type::Double,
                Some(Rank::Numeric) => match decimal(&types[0]) {
                    Some(digits) => Type::Numeric(Some(digits)),
                    None => Type::Numeric(None),
                },
                _ => Type::of(first).unwrap_or(Type::BigInt),
            };
            if ranks.iter().any(|rank| *rank != ranks[0]) || ranks[0] == Rank::Numeric {
                return Ok(Arc::new(kind.field(self.name(), true)));
            }
        }
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
