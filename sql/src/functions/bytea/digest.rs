//! Lengths and digests.

use std::sync::Arc;

use arrow::array::{Array, AsArray, Int32Array};
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::functions::crypto;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::{bytes_at, standard};
use crate::Type;
use crate::functions::row::{arrays, shaped};
use crate::functions::typed::{Settled, Typed, Wanted, is_text};

pub(super) static DEFINITIONS: &[Typed] = &[
    Typed { name: "length", settle: measured, invoke: length },
    Typed {
        name: "octet_length",
        settle: |kinds| match kinds {
            [text] if is_text(text) => {
                Some(Settled { arguments: vec![Wanted::Shown], returns: Type::Integer })
            }
            _ => measured(kinds),
        },
        invoke: |arguments| sized(arguments, 1),
    },
    Typed { name: "bit_length", settle: measured, invoke: |arguments| sized(arguments, 8) },
    Typed {
        name: "md5",
        settle: |kinds| either(kinds, Type::Text),
        invoke: |arguments| {
            let digest = standard(&crypto::md5(), arguments)?;
            match digest.data_type() {
                DataType::Utf8 => Ok(digest),
                _ => digest.cast_to(&DataType::Utf8, None),
            }
        },
    },
    Typed { name: "sha224", settle: of_bytes, invoke: |a| standard(&crypto::sha224(), a) },
    Typed { name: "sha256", settle: of_bytes, invoke: |a| standard(&crypto::sha256(), a) },
    Typed { name: "sha384", settle: of_bytes, invoke: |a| standard(&crypto::sha384(), a) },
    Typed { name: "sha512", settle: of_bytes, invoke: |a| standard(&crypto::sha512(), a) },
];

fn either(kinds: &[Type], returns: Type) -> Option<Settled> {
    match kinds {
        [Type::Bytea] => Some(Settled::new([Type::Bytea], returns)),
        [text] if is_text(text) => Some(Settled::new([Type::Text], returns)),
        _ => None,
    }
}

fn measured(kinds: &[Type]) -> Option<Settled> {
    either(kinds, Type::Integer)
}

fn of_bytes(kinds: &[Type]) -> Option<Settled> {
    match kinds {
        [Type::Bytea | Type::Unknown] => Some(Settled::new([Type::Bytea], Type::Bytea)),
        _ => None,
    }
}

/// Characters of text, bytes of bytes.
fn length(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let Some(texts) = arrays[0].as_string_opt::<i32>() else { return sized(arguments, 1) };
    let lengths = texts.iter().map(|text| Some(text?.chars().count() as i32));
    shaped(Arc::new(lengths.collect::<Int32Array>()), is_scalar)
}

fn sized(arguments: &ScalarFunctionArgs, bits: i32) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let values = &arrays[0];
    let sizes = (0..values.len()).map(|row| Some(bytes_at(values, row)?.len() as i32 * bits));
    shaped(Arc::new(sizes.collect::<Int32Array>()), is_scalar)
}
