//! `||`: text with anything that can be text, and arrays.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, StringBuilder};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::concat;
use arrow::datatypes::{DataType, Field};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use crate::functions::row::{arrays, shaped};
use crate::functions::scalar::{Definition, Resolved, no_operator};
use crate::{Error, Type};

pub(super) static CONCAT: Definition = Definition { name: "operator ||", resolve, invoke };

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null)
}

fn resolve(types: &[DataType]) -> Result<Resolved, Error> {
    let none = || no_operator("||", types);
    let [left, right] = types else { return Err(none()) };
    match (left, right) {
        (DataType::List(_), DataType::Null) => list(left).ok_or_else(none),
        (DataType::Null, DataType::List(_)) => list(right).ok_or_else(none),
        (DataType::List(left_field), DataType::List(right_field)) => {
            if left_field.data_type() != right_field.data_type() {
                return Err(none());
            }
            list(left).ok_or_else(none)
        }
        (DataType::Binary, DataType::Binary) => {
            Err(Error::unsupported("the operator || for bytea"))
        }
        (left, right) if is_text(left) || is_text(right) => {
            if left.is_nested() || right.is_nested() {
                return Err(Error::unsupported("the operator || for an array and an element"));
            }
            Ok(Resolved::new(vec![DataType::Utf8, DataType::Utf8], Type::Text))
        }
        _ => Err(none()),
    }
}

fn list(data_type: &DataType) -> Option<Resolved> {
    let returns = Type::from_arrow(data_type)?;
    Some(Resolved::new(vec![data_type.clone(), data_type.clone()], returns))
}

fn invoke(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let [left, right] = arrays.as_slice() else {
        return Err(DataFusionError::Internal("|| without two operands".to_owned()));
    };
    let result = match (left.as_string_opt::<i32>(), right.as_string_opt::<i32>()) {
        (Some(left), Some(right)) => {
            let bytes = left.value_data().len() + right.value_data().len();
            let mut builder = StringBuilder::with_capacity(left.len(), bytes);
            for (left, right) in left.iter().zip(right) {
                match (left, right) {
                    (Some(left), Some(right)) => {
                        use std::fmt::Write;
                        builder
                            .write_str(left)
                            .and_then(|()| builder.write_str(right))
                            .map_err(|error| DataFusionError::Internal(error.to_string()))?;
                        builder.append_value("");
                    }
                    _ => builder.append_null(),
                }
            }
            Arc::new(builder.finish()) as ArrayRef
        }
        _ => lists(left, right)?,
    };
    shaped(result, is_scalar)
}

/// The elements of both; NULL counts as no elements, unless both are.
fn lists(left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef> {
    let (left, right) = (left.as_list::<i32>(), right.as_list::<i32>());
    let mut pieces: Vec<ArrayRef> = vec![];
    let mut lengths = vec![];
    let mut valid = vec![];
    for place in 0..left.len() {
        let mut length = 0;
        for list in [left, right] {
            if list.is_valid(place) {
                let piece = list.value(place);
                length += piece.len();
                pieces.push(piece);
            }
        }
        lengths.push(length);
        valid.push(left.is_valid(place) || right.is_valid(place));
    }
    let pieces: Vec<&dyn Array> = pieces.iter().map(AsRef::as_ref).collect();
    let values = match pieces.as_slice() {
        [] => left.values().slice(0, 0),
        pieces => concat(pieces)?,
    };
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::new(field, offsets, values, Some(NullBuffer::from(valid)))))
}
