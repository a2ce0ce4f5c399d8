//! `||`: text with anything that can be text.

use std::sync::Arc;

use arrow::array::{Array, AsArray, StringBuilder};
use arrow::datatypes::DataType;
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
        (left, right) if is_text(left) || is_text(right) => {
            if left.is_nested() || right.is_nested() {
                return Err(none());
            }
            Ok(Resolved::new(vec![DataType::Utf8, DataType::Utf8], Type::Text))
        }
        _ => Err(none()),
    }
}

fn invoke(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let [left, right] = arrays.as_slice() else {
        return Err(DataFusionError::Internal("|| without two operands".to_owned()));
    };
    let (left, right) = (left.as_string::<i32>(), right.as_string::<i32>());
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
    shaped(Arc::new(builder.finish()), is_scalar)
}
