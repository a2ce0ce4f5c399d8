//! Elements that arrays have.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{
    Array, AsArray, BooleanArray, Int32Array, Int32Builder, ListBuilder, make_comparator,
};
use arrow::compute::SortOptions;
use arrow::datatypes::Int32Type;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::{array_and_element, array_of, lists, places, with_element};
use crate::functions::resolve::Purpose;
use crate::functions::row::{arrays, raise, shaped};
use crate::functions::typed::{Settled, Typed, common_kind, is_integer};
use crate::{SqlState, Type};

pub(in crate::functions) static CONTAINS: Typed = Typed {
    name: "operator @>",
    settle: both,
    invoke: |arguments| {
        related(arguments, |left, right, same| right.all(|b| left.any(|a| same(a, b))))
    },
};

pub(in crate::functions) static CONTAINED: Typed = Typed {
    name: "operator <@",
    settle: both,
    invoke: |arguments| {
        related(arguments, |left, right, same| left.all(|a| right.any(|b| same(a, b))))
    },
};

pub(in crate::functions) static OVERLAPS: Typed = Typed {
    name: "operator &&",
    settle: both,
    invoke: |arguments| {
        related(arguments, |left, right, same| right.any(|b| left.any(|a| same(a, b))))
    },
};

pub(super) static DEFINITIONS: &[Typed] = &[
    Typed {
        name: "array_position",
        settle: |kinds| match kinds {
            [_, _] => array_and_element(kinds, |_| Type::Integer),
            [array, element, start] if is_integer(start) => {
                let element = with_element(array, element)?;
                let array = array_of(element.clone());
                Some(Settled::new([array, element, Type::Integer], Type::Integer))
            }
            _ => None,
        },
        invoke: position,
    },
    Typed {
        name: "array_positions",
        settle: |kinds| array_and_element(kinds, |_| array_of(Type::Integer)),
        invoke: positions,
    },
];

/// Comparisons of whole arrays: by their elements, of which NULL is the greatest, and then by their
/// lengths.
pub(in crate::functions) static ORDERED: [Typed; 4] = [
    compared("array <", |arguments| ordered(arguments, Ordering::is_lt)),
    compared("array <=", |arguments| ordered(arguments, Ordering::is_le)),
    compared("array >", |arguments| ordered(arguments, Ordering::is_gt)),
    compared("array >=", |arguments| ordered(arguments, Ordering::is_ge)),
];

const fn compared(
    name: &'static str,
    invoke: fn(&ScalarFunctionArgs) -> Result<ColumnarValue>,
) -> Typed {
    Typed { name, settle: both, invoke }
}

fn ordered(arguments: &ScalarFunctionArgs, is: fn(Ordering) -> bool) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let (left, right) = (lists(&arrays[0])?, lists(&arrays[1])?);
    let order = SortOptions { descending: false, nulls_first: false };
    let compare = make_comparator(left.values().as_ref(), right.values().as_ref(), order)?;
    let found = (0..left.len()).map(|row| {
        if left.is_null(row) || right.is_null(row) {
            return None;
        }
        let (left, right) = (places(left, row), places(right, row));
        let lengths = left.len().cmp(&right.len());
        let mut pairs = left.zip(right).map(|(a, b)| compare(a, b));
        Some(is(pairs.find(|order| order.is_ne()).unwrap_or(lengths)))
    });
    shaped(Arc::new(found.collect::<BooleanArray>()), is_scalar)
}

fn both(kinds: &[Type]) -> Option<Settled> {
    let [left, right] = kinds else { return None };
    let element = match (left, right) {
        (Type::Array(left), Type::Array(right)) => {
            common_kind([left.as_ref(), right], Purpose::Comparison)?
        }
        (Type::Array(element), Type::Unknown) | (Type::Unknown, Type::Array(element)) => {
            element.as_ref().clone()
        }
        _ => return None,
    };
    let array = array_of(element);
    Some(Settled::new([array.clone(), array], Type::Boolean))
}

/// The elements of one array in one row.
struct Elements(std::ops::Range<usize>);

impl Elements {
    fn any(&self, mut is: impl FnMut(usize) -> bool) -> bool {
        self.0.clone().any(&mut is)
    }

    fn all(&self, mut is: impl FnMut(usize) -> bool) -> bool {
        self.0.clone().all(&mut is)
    }
}

type Same<'a> = dyn Fn(usize, usize) -> bool + 'a;

fn related(
    arguments: &ScalarFunctionArgs,
    is_related: fn(&Elements, &Elements, &Same<'_>) -> bool,
) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let (left, right) = (lists(&arrays[0])?, lists(&arrays[1])?);
    let (left_values, right_values) = (left.values(), right.values());
    let compare = make_comparator(left_values.as_ref(), right_values.as_ref(), Default::default())?;
    // NULL is the same as nothing.
    let same = |a: usize, b: usize| {
        left_values.is_valid(a) && right_values.is_valid(b) && compare(a, b).is_eq()
    };
    let found = (0..left.len()).map(|row| {
        if left.is_null(row) || right.is_null(row) {
            return None;
        }
        let (left, right) = (Elements(places(left, row)), Elements(places(right, row)));
        Some(is_related(&left, &right, &same))
    });
    shaped(Arc::new(found.collect::<BooleanArray>()), is_scalar)
}

/// The subscript of the first element that is the second argument, where NULL is NULL.
fn position(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let (lists, wanted) = (lists(&arrays[0])?, &arrays[1]);
    let starts = arrays.get(2).map(|starts| starts.as_primitive::<Int32Type>());
    let compare = make_comparator(lists.values().as_ref(), wanted.as_ref(), Default::default())?;
    if let Some(starts) = starts
        && (0..lists.len()).any(|row| lists.is_valid(row) && starts.is_null(row))
    {
        let message = "initial position must not be null";
        return Err(raise(SqlState::NULL_VALUE_NOT_ALLOWED, message).into());
    }
    let found = (0..lists.len()).map(|row| {
        let start = match starts {
            Some(starts) => usize::try_from(starts.value(row) - 1).unwrap_or(0),
            None => 0,
        };
        let mut places = places(lists, row).skip(start);
        let place = places.position(|place| compare(place, row).is_eq())?;
        Some((start + place + 1) as i32)
    });
    shaped(Arc::new(found.collect::<Int32Array>()), is_scalar)
}

fn positions(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let (lists, wanted) = (lists(&arrays[0])?, &arrays[1]);
    let compare = make_comparator(lists.values().as_ref(), wanted.as_ref(), Default::default())?;
    let mut builder = ListBuilder::new(Int32Builder::new());
    for row in 0..lists.len() {
        if lists.is_null(row) {
            builder.append_null();
            continue;
        }
        for (place, subscript) in places(lists, row).zip(1..) {
            if compare(place, row).is_eq() {
                builder.values().append_value(subscript);
            }
        }
        builder.append(true);
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}
