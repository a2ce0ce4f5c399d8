//! A function that only says of which SQL type a value is, where DataFusion forgets it.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::{Error, Type};

const NAME: &str = "of type";

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfType {
    signature: Signature,
}

/// The function.
pub(super) fn of_type() -> Arc<ScalarUDF> {
    let signature = Signature::any(2, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(OfType { signature }))
}

/// The expression as one of a type that has its carrier; itself if the carrier tells the type.
pub(super) fn known_as(expr: Expr, kind: &Type) -> Expr {
    if Type::from_arrow(&kind.arrow()).as_ref() == Some(kind) {
        return expr;
    }
    of(expr, kind)
}

/// The expression as one of a type, that may be NULL.
pub(super) fn of(expr: Expr, kind: &Type) -> Expr {
    let name = Expr::Literal(ScalarValue::Utf8(Some(kind.to_string())), None);
    Expr::ScalarFunction(ScalarFunction::new_udf(of_type(), vec![expr, name]))
}

/// What such an expression says the type of.
pub(super) fn operand(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::ScalarFunction(function) if function.func.name() == NAME => function.args.first(),
        _ => None,
    }
}

impl ScalarUDFImpl for OfType {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        let operand = arguments.first().map(|operand| operand.schema_name().to_string());
        Ok(operand.unwrap_or_else(|| NAME.to_owned()))
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments.first().cloned().unwrap_or(DataType::Null))
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let Some(Some(ScalarValue::Utf8(Some(name)))) = arguments.scalar_arguments.get(1) else {
            return Err(Error::internal("a type without a name").into());
        };
        let kind: Type = name.parse()?;
        let carrier = arguments.arg_fields.first().map(|field| field.data_type().clone());
        let field = kind.field(NAME, true);
        Ok(Arc::new(field.with_data_type(carrier.unwrap_or(DataType::Null))))
    }

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if arguments.args.is_empty() {
            return Err(Error::internal("a type of nothing").into());
        }
        Ok(arguments.args.swap_remove(0))
    }
}
