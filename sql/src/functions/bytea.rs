//! Functions of bytes, and those of the same names of text.

mod code;
mod digest;
mod part;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryBuilder};
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use crate::Type;
use crate::functions::row::{arrays, shaped};
use crate::functions::typed::{Settled, Typed};

pub(super) use code::hexadecimal;
pub(super) use part::{OVERLAY, POSITION, SUBSTRING};

/// All of them.
pub(super) fn definitions() -> impl Iterator<Item = &'static Typed> {
    [&CONCATENATED, &OVERLAY, &POSITION, &SUBSTRING]
        .into_iter()
        .chain(code::DEFINITIONS)
        .chain(digest::DEFINITIONS)
        .chain(part::DEFINITIONS)
}

pub(super) static CONCATENATED: Typed = Typed {
    name: "bytea ||",
    settle: |kinds| match kinds {
        [Type::Bytea | Type::Unknown, Type::Bytea | Type::Unknown] => {
            Some(Settled::new([Type::Bytea, Type::Bytea], Type::Bytea))
        }
        _ => None,
    },
    invoke: |arguments| {
        let (arrays, is_scalar) = arrays(arguments)?;
        let (left, right) = (arrays[0].as_binary::<i32>(), arrays[1].as_binary::<i32>());
        let mut builder = BinaryBuilder::new();
        for pair in left.iter().zip(right) {
            match pair {
                (Some(left), Some(right)) => builder.append_value([left, right].concat()),
                _ => builder.append_null(),
            }
        }
        shaped(Arc::new(builder.finish()), is_scalar)
    },
};

/// The bytes of a text or of bytes in a row.
fn bytes_at(array: &ArrayRef, row: usize) -> Option<&[u8]> {
    if array.is_null(row) {
        return None;
    }
    Some(match array.data_type() {
        DataType::Binary => array.as_binary::<i32>().value(row),
        _ => array.as_string::<i32>().value(row).as_bytes(),
    })
}

/// The first argument's carrier is that of text.
fn is_of_text(arguments: &ScalarFunctionArgs) -> bool {
    arguments.args.first().is_some_and(|first| first.data_type() == DataType::Utf8)
}

/// One of DataFusion's functions.
fn standard(
    function: &datafusion::logical_expr::ScalarUDF,
    arguments: &ScalarFunctionArgs,
) -> Result<ColumnarValue> {
    function.invoke_with_args(ScalarFunctionArgs {
        args: arguments.args.clone(),
        arg_fields: arguments.arg_fields.clone(),
        number_rows: arguments.number_rows,
        return_field: Arc::clone(&arguments.return_field),
        config_options: Arc::clone(&arguments.config_options),
    })
}
