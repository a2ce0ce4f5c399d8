//! `jsonb` to the scalar types.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, StringArray};
use datafusion::common::Result;

use super::convert::convert;
use crate::functions::row::{raise, raise_error};
use crate::text::json::{self, Detail, Json};
use crate::text::{Excess, TextFormat};
use crate::{SqlState, Type};

/// Casts every value: numbers to numbers, and booleans to booleans.
pub(super) fn scalar(array: &ArrayRef, to: &Type, format: &TextFormat) -> Result<ArrayRef> {
    let texts = array.as_string::<i32>();
    let mut numbers = vec![];
    let mut booleans = vec![];
    for text in texts {
        let (mut number, mut boolean) = (None, None);
        if let Some(text) = text {
            match (json::parse(text, Detail::Values).map_err(raise_error)?, to) {
                (Json::Boolean(value), Type::Boolean) => boolean = Some(value),
                (Json::Number(digits), to) if *to != Type::Boolean => number = Some(digits),
                (other, _) => {
                    let what = match other {
                        Json::Array(_)
                        | Json::Object(_)
                        | Json::Boolean(_)
                        | Json::Null
                        | Json::Number(_) => other.type_name().replace("number", "numeric"),
                        Json::String(_) => "string".to_owned(),
                    };
                    let bare = match to {
                        Type::Numeric(_) => "numeric".to_owned(),
                        other => other.to_string(),
                    };
                    let message = format!("cannot cast jsonb {what} to type {bare}");
                    return Err(raise(SqlState::INVALID_PARAMETER_VALUE, message).into());
                }
            }
        }
        numbers.push(number);
        booleans.push(boolean);
    }
    if *to == Type::Boolean {
        return Ok(Arc::new(BooleanArray::from(booleans)));
    }
    let numbers: ArrayRef = Arc::new(StringArray::from(numbers));
    let exact = Type::Numeric(None);
    if matches!(to, Type::Numeric(_) | Type::Real | Type::Double) {
        return convert(&numbers, &Type::Text, to, format, Excess::Cut);
    }
    let exact_numbers = convert(&numbers, &Type::Text, &exact, format, Excess::Cut)?;
    convert(&exact_numbers, &exact, to, format, Excess::Cut)
}
