//! `x = ANY (array)` and `x = ALL (array)`, with every operator that compares.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringArray, make_comparator};
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::{array_of, lists, places};
use crate::functions::resolve::Purpose;
use crate::functions::row::{arrays, raise, shaped};
use crate::functions::typed::{Settled, Typed, common_kind, is_text};
use crate::functions::{pattern, regex};
use crate::{SqlState, Type};

macro_rules! quantified {
    ($($name:literal: $quantifier:ident $settle:ident $compute:expr;)*) => {
        &[$(Typed {
            name: $name,
            settle: $settle,
            invoke: |arguments| compute(arguments, Quantifier::$quantifier, $compute),
        }),*]
    };
}

/// Named by their words and their operators.
pub(super) static DEFINITIONS: &[Typed] = quantified! {
    "any =": Any settle ordered(Ordering::is_eq);
    "any <>": Any settle ordered(Ordering::is_ne);
    "any <": Any settle ordered(Ordering::is_lt);
    "any <=": Any settle ordered(Ordering::is_le);
    "any >": Any settle ordered(Ordering::is_gt);
    "any >=": Any settle ordered(Ordering::is_ge);
    "all =": All settle ordered(Ordering::is_eq);
    "all <>": All settle ordered(Ordering::is_ne);
    "all <": All settle ordered(Ordering::is_lt);
    "all <=": All settle ordered(Ordering::is_le);
    "all >": All settle ordered(Ordering::is_gt);
    "all >=": All settle ordered(Ordering::is_ge);
    "any ~~": Any patterns matched(false, false);
    "any !~~": Any patterns matched(true, false);
    "any ~~*": Any patterns matched(false, true);
    "any !~~*": Any patterns matched(true, true);
    "all ~~": All patterns matched(false, false);
    "all !~~": All patterns matched(true, false);
    "all ~~*": All patterns matched(false, true);
    "all !~~*": All patterns matched(true, true);
    "any ~": Any patterns searched("", true);
    "any ~*": Any patterns searched("i", true);
    "any !~": Any patterns searched("", false);
    "any !~*": Any patterns searched("i", false);
    "all ~": All patterns searched("", true);
    "all ~*": All patterns searched("i", true);
    "all !~": All patterns searched("", false);
    "all !~*": All patterns searched("i", false);
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quantifier {
    Any,
    All,
}

fn settle(kinds: &[Type]) -> Option<Settled> {
    let [left, right] = kinds else { return None };
    let element = match (left, right) {
        (Type::Array(_), _) => return None,
        (left, Type::Int2Vector) => common_kind([left, &Type::SmallInt], Purpose::Comparison)?,
        (left, Type::OidVector) => common_kind([left, &Type::Oid], Purpose::Comparison)?,
        (left, Type::Array(element)) => common_kind([left, element], Purpose::Comparison)?,
        (left, Type::Unknown) => left.clone(),
        _ => return None,
    };
    let element = open(&element);
    Some(Settled::new([element.clone(), array_of(element)], Type::Boolean))
}

fn patterns(kinds: &[Type]) -> Option<Settled> {
    let [left, right] = kinds else { return None };
    let is_texts = match right {
        Type::Array(element) => is_text(element),
        other => *other == Type::Unknown,
    };
    let arguments = [Type::Text, array_of(Type::Text)];
    (is_text(left) && is_texts).then(|| Settled::new(arguments, Type::Boolean))
}

/// The type without a limit: what is looked for may have more digits than a column.
fn open(kind: &Type) -> Type {
    match kind {
        Type::Varchar(_) => Type::Text,
        Type::Char(_) => Type::Char(None),
        other => other.clone(),
    }
}

/// Compares values at places of two arrays; NULLs are not asked for.
type Compare = Box<dyn Fn(usize, usize) -> Result<bool>>;
type Comparison = Box<dyn Fn(&ArrayRef, &ArrayRef) -> Result<Compare>>;

fn ordered(is: fn(Ordering) -> bool) -> Comparison {
    Box::new(move |left, right| {
        let (left, right) = (comparable(left)?, comparable(right)?);
        let compare = make_comparator(left.as_ref(), right.as_ref(), Default::default())?;
        Ok(Box::new(move |a, b| Ok(is(compare(a, b)))))
    })
}

/// Intervals by their lengths.
fn comparable(values: &ArrayRef) -> Result<ArrayRef> {
    match values.data_type() {
        DataType::Interval(_) => crate::functions::interval::keys(values),
        _ => Ok(Arc::clone(values)),
    }
}

fn matched(negated: bool, case_insensitive: bool) -> Comparison {
    Box::new(move |left, right| {
        let (left, right) = (left.as_string::<i32>().clone(), right.as_string::<i32>().clone());
        Ok(Box::new(move |a, b| {
            let (text, pattern) = (left.value(a), right.value(b));
            if pattern::dangles(pattern) {
                let message = "LIKE pattern must not end with escape character";
                return Err(raise(SqlState::INVALID_ESCAPE_SEQUENCE, message).into());
            }
            let (text, pattern) = (StringArray::from(vec![text]), StringArray::from(vec![pattern]));
            let matched = match case_insensitive {
                true => arrow::compute::ilike(&text, &pattern)?,
                false => arrow::compute::like(&text, &pattern)?,
            };
            Ok(matched.value(0) != negated)
        }))
    })
}

fn searched(flags: &'static str, expected: bool) -> Comparison {
    Box::new(move |left, right| {
        let (left, right) = (left.as_string::<i32>().clone(), right.as_string::<i32>().clone());
        Ok(Box::new(move |a, b| {
            Ok(regex::is_match(left.value(a), right.value(b), flags)? == expected)
        }))
    })
}

fn compute(
    arguments: &ScalarFunctionArgs,
    quantifier: Quantifier,
    comparison: Comparison,
) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let (left, lists) = (&arrays[0], lists(&arrays[1])?);
    let values = lists.values();
    let compare = comparison(left, values)?;
    // The answer that one element settles.
    let decisive = quantifier == Quantifier::Any;
    let mut answers = Vec::with_capacity(lists.len());
    for row in 0..lists.len() {
        if lists.is_null(row) {
            answers.push(None);
            continue;
        }
        let mut answer = Some(!decisive);
        for place in places(lists, row) {
            if left.is_null(row) || values.is_null(place) {
                answer = None;
            } else if compare(row, place)? == decisive {
                answer = Some(decisive);
                break;
            }
        }
        answers.push(answer);
    }
    shaped(Arc::new(BooleanArray::from(answers)), is_scalar)
}
