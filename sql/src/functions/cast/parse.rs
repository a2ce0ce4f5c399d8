//! Literals whose type is settled by where they stand.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::FieldMetadata;

use crate::text::{Excess, TextDecoder, TextFormat};
use crate::{Error, Type};

/// The value that a literal's text is in a type.
pub(in crate::functions) fn literal(
    text: Option<&str>,
    kind: &Type,
    format: &TextFormat,
    excess: Excess,
) -> Result<Expr, Error> {
    let mut decoder = TextDecoder::new(kind, format, excess)?;
    match text {
        Some(text) => decoder.append(text)?,
        None => decoder.append_null(),
    }
    let array = decoder.finish();
    let value = ScalarValue::try_from_array(&array, 0)
        .map_err(|error| Error::internal(error.to_string()))?;
    Ok(settled(value, kind))
}

/// A constant that says of which type it is, where its form doesn't: texts without a word are of
/// no type yet.
pub(in crate::functions) fn settled(value: ScalarValue, kind: &Type) -> Expr {
    let metadata = kind.told().map(|told| FieldMetadata::new(told.into_iter().collect()));
    Expr::Literal(value, metadata)
}
