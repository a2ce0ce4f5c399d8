//! Arrays from elements and from other arrays.

use arrow::array::{Array, ArrayRef, AsArray, ListArray, make_comparator};
use arrow::datatypes::{DataType, Int32Type};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::{Gatherer, array_and_element, array_of, lists, places, with_element};
use crate::functions::resolve::Purpose;
use crate::functions::row::{arrays, raise, shaped};
use crate::functions::typed::{Settled, Typed, common_kind, is_integer};
use crate::{SqlState, Type};

/// `ARRAY[a, b]`
pub(in crate::functions) static ARRAY: Typed = Typed {
    name: "array of",
    settle: |kinds| {
        let element = common_kind(kinds, Purpose::Column)?;
        if kinds.is_empty() || matches!(element, Type::Array(_)) {
            return None;
        }
        let returns = array_of(element.clone());
        Some(Settled::new(kinds.iter().map(|_| element.clone()), returns))
    },
    invoke: of_elements,
};

/// `a || b`, of which at least one is an array.
pub(in crate::functions) static CONCATENATED: Typed = Typed {
    name: "array ||",
    settle: |kinds| {
        let [left, right] = kinds else { return None };
        match (left, right) {
            (Type::Array(left), Type::Array(right)) => {
                let element = common_kind([left.as_ref(), right], Purpose::Column)?;
                let array = array_of(element);
                Some(Settled::new([array.clone(), array.clone()], array))
            }
            (Type::Array(_), Type::Unknown) => {
                Some(Settled::new([left.clone(), left.clone()], left.clone()))
            }
            (Type::Unknown, Type::Array(_)) => {
                Some(Settled::new([right.clone(), right.clone()], right.clone()))
            }
            (Type::Array(_), other) => {
                let element = with_element(left, other)?;
                let array = array_of(element.clone());
                Some(Settled::new([array.clone(), element], array))
            }
            (other, Type::Array(_)) => {
                let element = with_element(right, other)?;
                let array = array_of(element.clone());
                Some(Settled::new([element, array.clone()], array))
            }
            _ => None,
        }
    },
    invoke: concatenate,
};

pub(super) static DEFINITIONS: &[Typed] = &[
    Typed {
        name: "array_append",
        settle: |kinds| array_and_element(kinds, |element| array_of(element.clone())),
        invoke: concatenate,
    },
    Typed {
        name: "array_prepend",
        settle: |kinds| {
            let [element, array] = kinds else { return None };
            let element = with_element(array, element)?;
            let array = array_of(element.clone());
            Some(Settled::new([element, array.clone()], array))
        },
        invoke: concatenate,
    },
    Typed {
        name: "array_cat",
        settle: |kinds| match kinds {
            [Type::Array(_) | Type::Unknown, Type::Array(_)] | [Type::Array(_), Type::Unknown] => {
                (CONCATENATED.settle)(kinds)
            }
            _ => None,
        },
        invoke: concatenate,
    },
    Typed {
        name: "array_remove",
        settle: |kinds| array_and_element(kinds, |element| array_of(element.clone())),
        invoke: |arguments| replace(arguments, false),
    },
    Typed {
        name: "array_replace",
        settle: |kinds| {
            let [array, from, to] = kinds else { return None };
            let element = with_element(array, &common_kind([from, to], Purpose::Column)?)?;
            let array = array_of(element.clone());
            Some(Settled::new([array.clone(), element.clone(), element], array))
        },
        invoke: |arguments| replace(arguments, true),
    },
    Typed {
        name: "array_fill",
        settle: |kinds| {
            let (element, counts) = match kinds {
                [element, counts] => (element, counts),
                // The places that arrays begin at.
                [element, counts, Type::Array(_) | Type::Unknown] => (element, counts),
                _ => return None,
            };
            let is_counts = match counts {
                Type::Array(count) => is_integer(count),
                other => *other == Type::Unknown,
            };
            let element = match element {
                Type::Array(_) | Type::Unknown => return None,
                other => other.clone(),
            };
            let returns = array_of(element.clone());
            let bounds = (1..kinds.len()).map(|_| array_of(Type::Integer));
            is_counts.then(|| Settled::new(std::iter::once(element).chain(bounds), returns))
        },
        invoke: fill,
    },
];

fn of_elements(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let Some(first) = arrays.first() else {
        return Err(crate::Error::internal("no elements").into());
    };
    let sources: Vec<&dyn Array> = arrays.iter().map(|array| array.as_ref()).collect();
    let mut gatherer = Gatherer::new(first.data_type(), sources);
    for row in 0..first.len() {
        for source in 0..arrays.len() {
            gatherer.pick(source, row);
        }
        gatherer.end();
    }
    shaped(gatherer.finish()?, is_scalar)
}

/// Elements are added as they are; an array that is NULL counts as no elements, unless both are.
fn concatenate(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let is_list = |array: &ArrayRef| matches!(array.data_type(), DataType::List(_));
    let element = arrays.iter().find_map(|array| match array.data_type() {
        DataType::List(field) => Some(field.data_type().clone()),
        _ => None,
    });
    let Some(element) = element else {
        return Err(crate::Error::internal("|| of no array").into());
    };
    let sources = arrays.iter().map(|array| match is_list(array) {
        true => lists(array).map(|lists| lists.values().as_ref()),
        false => Ok(array.as_ref()),
    });
    let sources = sources.collect::<Result<Vec<&dyn Array>>>()?;
    let mut gatherer = Gatherer::new(&element, sources);
    for row in 0..arrays[0].len() {
        let mut is_null = true;
        for (source, array) in arrays.iter().enumerate() {
            if is_list(array) {
                let lists = lists(array)?;
                is_null &= lists.is_null(row);
                places(lists, row).for_each(|place| gatherer.pick(source, place));
            } else {
                is_null = false;
                gatherer.pick(source, row);
            }
        }
        if is_null { gatherer.end_null() } else { gatherer.end() }
    }
    shaped(gatherer.finish()?, is_scalar)
}

/// Replaces the elements that are the second argument by the third, or takes them away.
fn replace(arguments: &ScalarFunctionArgs, replaces: bool) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let (lists, wanted) = (lists(&arrays[0])?, &arrays[1]);
    let compare = make_comparator(lists.values().as_ref(), wanted.as_ref(), Default::default())?;
    let mut sources: Vec<&dyn Array> = vec![lists.values().as_ref()];
    sources.extend(arrays.get(2).map(|array| array.as_ref()));
    let mut gatherer = Gatherer::new(&lists.value_type(), sources);
    for row in 0..lists.len() {
        if lists.is_null(row) {
            gatherer.end_null();
            continue;
        }
        for place in places(lists, row) {
            match (compare(place, row).is_eq(), replaces) {
                (false, _) => gatherer.pick(0, place),
                (true, true) => gatherer.pick(1, row),
                (true, false) => {}
            }
        }
        gatherer.end();
    }
    shaped(gatherer.finish()?, is_scalar)
}

fn fill(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    /// Elements at most.
    const ELEMENTS_MAX: i32 = 1_000_000;
    let (arrays, is_scalar) = arrays(arguments)?;
    let (values, counts) = (&arrays[0], lists(&arrays[1])?);
    let numbers = counts.values().as_primitive::<Int32Type>();
    let mut gatherer = Gatherer::new(values.data_type(), vec![values.as_ref()]);
    for row in 0..counts.len() {
        if let Some(starts) = arrays.get(2) {
            check_starts(lists(starts)?, counts, row)?;
        }
        let places = places(counts, row);
        if counts.is_null(row) {
            let message = "dimension array or low bound array cannot be null";
            return Err(raise(SqlState::NULL_VALUE_NOT_ALLOWED, message).into());
        }
        match places.len() {
            0 => {}
            1 if numbers.is_null(places.start) => {
                let message = "dimension values cannot be null";
                return Err(raise(SqlState::NULL_VALUE_NOT_ALLOWED, message).into());
            }
            1 => {
                let count = numbers.value(places.start);
                if !(0..=ELEMENTS_MAX).contains(&count) {
                    let message =
                        format!("array size exceeds the maximum allowed ({ELEMENTS_MAX})");
                    return Err(raise(SqlState::PROGRAM_LIMIT_EXCEEDED, message).into());
                }
                (0..count).for_each(|_| gatherer.pick(0, row));
            }
            _ => {
                let message = "an array of more than one dimension is not supported";
                return Err(raise(SqlState::FEATURE_NOT_SUPPORTED, message).into());
            }
        }
        gatherer.end();
    }
    shaped(gatherer.finish()?, is_scalar)
}

/// Refuses arrays that begin elsewhere than at 1.
fn check_starts(starts: &ListArray, counts: &ListArray, row: usize) -> Result<()> {
    if starts.is_null(row) || counts.is_null(row) {
        let message = "dimension array or low bound array cannot be null";
        return Err(raise(SqlState::NULL_VALUE_NOT_ALLOWED, message).into());
    }
    let of_row = places(starts, row);
    if of_row.len() != places(counts, row).len() {
        return Err(
            raise(SqlState::ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts").into()
        );
    }
    let numbers = starts.values().as_primitive::<Int32Type>();
    for place in of_row {
        if numbers.is_null(place) {
            let message = "dimension values cannot be null";
            return Err(raise(SqlState::NULL_VALUE_NOT_ALLOWED, message).into());
        }
        if numbers.value(place) != 1 {
            let message = "an array that doesn't begin at 1 is not supported";
            return Err(raise(SqlState::FEATURE_NOT_SUPPORTED, message).into());
        }
    }
    Ok(())
}
