//! Elements and slices.

use arrow::array::{Array, AsArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::Int32Type;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::{Gatherer, array_of, lists, places};
use crate::functions::row::{arrays, raise, shaped};
use crate::functions::typed::{Settled, Typed, is_integer};
use crate::{SqlState, Type};

/// `a[i]`
pub(in crate::functions) static SUBSCRIPT: Typed = Typed {
    name: "subscript",
    settle: |kinds| match kinds {
        [Type::Array(element), index] if is_index(index) => {
            let returns = element.as_ref().clone();
            Some(Settled::new([kinds[0].clone(), Type::Integer], returns))
        }
        _ => None,
    },
    invoke: |arguments| element(arguments, 1),
};

/// The same of the vectors in catalogs, which begin at 0.
pub(in crate::functions) static VECTOR_SUBSCRIPT: Typed = Typed {
    name: "vector subscript",
    settle: |kinds| match kinds {
        [vector @ (Type::Int2Vector | Type::OidVector), index] if is_index(index) => {
            let returns = if *vector == Type::OidVector { Type::Oid } else { Type::SmallInt };
            Some(Settled::new([vector.clone(), Type::Integer], returns))
        }
        _ => None,
    },
    invoke: |arguments| element(arguments, 0),
};

pub(super) static DEFINITIONS: &[Typed] = &[
    Typed {
        name: "array slice",
        settle: |kinds| match kinds {
            [Type::Array(element), low, high] if is_index(low) && is_index(high) => {
                let array = array_of(element.as_ref().clone());
                Some(Settled::new([array.clone(), Type::Integer, Type::Integer], array))
            }
            _ => None,
        },
        invoke: slice,
    },
    Typed {
        name: "trim_array",
        settle: |kinds| match kinds {
            [array @ Type::Array(_), count] if is_integer(count) => {
                Some(Settled::new([array.clone(), Type::Integer], array.clone()))
            }
            _ => None,
        },
        invoke: trim,
    },
];

/// Subscripts may be any number that an assignment takes for an integer.
fn is_index(kind: &Type) -> bool {
    is_integer(kind) || matches!(kind, Type::BigInt | Type::Numeric(_) | Type::Real | Type::Double)
}

fn element(arguments: &ScalarFunctionArgs, first: i64) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let (lists, indexes) = (lists(&arrays[0])?, arrays[1].as_primitive::<Int32Type>());
    let found = (0..lists.len()).map(|row| {
        let places = places(lists, row);
        if indexes.is_null(row) {
            return None;
        }
        let offset = usize::try_from(i64::from(indexes.value(row)) - first).ok()?;
        (offset < places.len()).then(|| (places.start + offset) as u32)
    });
    let found: UInt32Array = found.collect();
    shaped(take(lists.values(), &found, None)?, is_scalar)
}

fn slice(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let lists = lists(&arrays[0])?;
    let (lows, highs) =
        (arrays[1].as_primitive::<Int32Type>(), arrays[2].as_primitive::<Int32Type>());
    let mut gatherer = Gatherer::new(&lists.value_type(), vec![lists.values().as_ref()]);
    for row in 0..lists.len() {
        if lists.is_null(row) || lows.is_null(row) || highs.is_null(row) {
            gatherer.end_null();
            continue;
        }
        let places = places(lists, row);
        let low = usize::try_from(i64::from(lows.value(row)) - 1).unwrap_or(0);
        let high = usize::try_from(highs.value(row)).unwrap_or(0).min(places.len());
        for offset in low..high {
            gatherer.pick(0, places.start + offset);
        }
        gatherer.end();
    }
    shaped(gatherer.finish()?, is_scalar)
}

fn trim(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let (lists, counts) = (lists(&arrays[0])?, arrays[1].as_primitive::<Int32Type>());
    let mut gatherer = Gatherer::new(&lists.value_type(), vec![lists.values().as_ref()]);
    for row in 0..lists.len() {
        if lists.is_null(row) || counts.is_null(row) {
            gatherer.end_null();
            continue;
        }
        let places = places(lists, row);
        let count = usize::try_from(counts.value(row)).ok();
        let Some(count) = count.filter(|count| *count <= places.len()) else {
            let message =
                format!("number of elements to trim must be between 0 and {}", places.len());
            return Err(raise(SqlState::ARRAY_SUBSCRIPT_ERROR, message).into());
        };
        for place in places.start..places.end - count {
            gatherer.pick(0, place);
        }
        gatherer.end();
    }
    shaped(gatherer.finish()?, is_scalar)
}
