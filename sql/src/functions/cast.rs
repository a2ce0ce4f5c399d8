//! Casts, as PostgreSQL makes them.
//!
//! `cast(value, 'type')` has the type as an argument, and a third one with the session's time zone
//! where the cast depends on it. So a cast, too, is nothing but a name and arguments.

mod convert;
mod json;
mod moment;
mod number;
mod parse;

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use std::sync::LazyLock;

use crate::functions::resolve::{Rank, rank};
use crate::functions::row::{one_array, shaped};
use crate::functions::scalar::type_name;
use crate::text::{Excess, TextFormat, TimeZone};
use crate::{Error, SqlState, Type};

pub(super) use parse::{literal, settled};

const NAME: &str = "cast";

#[derive(Debug, PartialEq, Eq, Hash)]
struct CastFunction {
    signature: Signature,
}

static CAST: LazyLock<Arc<ScalarUDF>> = LazyLock::new(CastFunction::udf);

/// The function.
pub(super) fn function() -> Arc<ScalarUDF> {
    Arc::clone(&CAST)
}

/// A cast of an expression from one type to another: the expression itself if there is nothing to
/// do, Arrow's cast if that is exact, and our function otherwise.
pub(super) fn cast(expr: Expr, from: &Type, to: &Type, zone: TimeZone) -> Result<Expr, Error> {
    convert::check(from, to)?;
    if from == to {
        return Ok(expr);
    }
    if is_exact(from, to) {
        let field = Arc::new(to.field("", true));
        return Ok(Expr::Cast(Cast::new_from_field(Box::new(expr), field)));
    }
    let text = |text: String| Expr::Literal(ScalarValue::Utf8(Some(text)), None);
    let mut arguments = vec![expr, text(to.to_string())];
    if convert::depends_on_zone(from, to) {
        arguments.push(text(zone.to_string()));
    }
    Ok(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&CAST), arguments)))
}

/// Whether Arrow's cast gives what PostgreSQL's does, whatever the value.
fn is_exact(from: &Type, to: &Type) -> bool {
    matches!(
        (from, to),
        (Type::SmallInt, Type::Integer | Type::BigInt)
            | (Type::Integer, Type::BigInt)
            | (Type::SmallInt | Type::Integer | Type::BigInt | Type::Real, Type::Double)
    )
}

impl CastFunction {
    fn udf() -> Arc<ScalarUDF> {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(Self { signature }))
    }
}

impl ScalarUDFImpl for CastFunction {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        // Unlike its operand's: both can be columns of what a join reads.
        let names: Vec<_> = arguments.iter().map(|part| part.schema_name().to_string()).collect();
        Ok(format!("{NAME}({})", names.join(",")))
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal("a cast's type is told by its arguments".to_owned()))
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let target = arguments.scalar_arguments.get(1).copied().flatten();
        Ok(Arc::new(target_type(target)?.field(NAME, true)))
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        Ok(arguments.to_vec())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let to = target_type(arguments.args.get(1).and_then(scalar))?;
        let mut format = TextFormat::default();
        if let Some(zone) = arguments.args.get(2) {
            format.time_zone = match scalar(zone) {
                Some(ScalarValue::Utf8(Some(name))) => TimeZone::parse(name)
                    .map_err(|error| DataFusionError::External(Box::new(error)))?,
                _ => return Err(DataFusionError::Internal("a zone without a name".to_owned())),
            };
        }
        let Some(operand) = arguments.args.first() else {
            return Err(DataFusionError::Internal("a cast of nothing".to_owned()));
        };
        let from = arguments.arg_fields.first().and_then(|field| Type::of(field));
        let from = match from {
            Some(from) => from,
            None => return Err(Error::unsupported(type_name(&operand.data_type())).into()),
        };
        let (array, is_scalar) = one_array(operand)?;
        let array = convert::convert(&array, &from, &to, &format, Excess::Cut)?;
        shaped(array, is_scalar)
    }
}

fn scalar(value: &ColumnarValue) -> Option<&ScalarValue> {
    match value {
        ColumnarValue::Scalar(scalar) => Some(scalar),
        ColumnarValue::Array(_) => None,
    }
}

fn target_type(name: Option<&ScalarValue>) -> Result<Type> {
    match name {
        Some(ScalarValue::Utf8(Some(name))) => Ok(name.parse::<Type>()?),
        _ => Err(DataFusionError::Internal("a cast without a type".to_owned())),
    }
}

impl From<Error> for DataFusionError {
    fn from(error: Error) -> Self {
        Self::External(Box::new(error))
    }
}

/// The type that `numeric` without a modifier stands for, given what is cast to it.
pub(super) fn numeric_for(from: &DataType) -> Type {
    match (from, rank(from)) {
        (DataType::Decimal128(precision, scale), _) => Type::Numeric(Some((*precision, *scale))),
        (_, Some(Rank::SmallInt)) => Type::Numeric(Some((5, 0))),
        (_, Some(Rank::Integer)) => Type::Numeric(Some((10, 0))),
        (_, Some(Rank::BigInt)) => Type::Numeric(Some((19, 0))),
        _ => Type::Numeric(None),
    }
}

/// 42846.
fn no_cast(from: &Type, to: &Type) -> Error {
    let bare = |kind: &Type| match kind {
        Type::Numeric(_) => "numeric".to_owned(),
        Type::Varchar(_) => "character varying".to_owned(),
        Type::Char(_) => "character".to_owned(),
        other => other.to_string(),
    };
    let message = format!("cannot cast type {} to {}", bare(from), bare(to));
    Error::new(SqlState::CANNOT_COERCE, message)
}
