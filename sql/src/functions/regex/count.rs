//! `regexp_like`, `regexp_count`, `regexp_instr` and `regexp_substr`.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanBuilder, Int32Builder, StringBuilder};
use arrow::datatypes::Int32Type;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::{Last, Row, bad, not_global, offset, positive};
use crate::Type;
use crate::functions::row::{arrays, shaped};
use crate::functions::typed::{Settled, Typed, is_integer, is_text};

pub(super) static DEFINITIONS: &[Typed] = &[
    Typed {
        name: "regexp_like",
        settle: |kinds| settled(kinds, &[Text, Text, Text], Type::Boolean),
        invoke: like,
    },
    Typed {
        name: "regexp_count",
        settle: |kinds| settled(kinds, &[Text, Text, Number, Text], Type::Integer),
        invoke: count,
    },
    Typed {
        name: "regexp_instr",
        settle: |kinds| {
            let parameters = &[Text, Text, Number, Number, Number, Text, Number];
            settled(kinds, parameters, Type::Integer)
        },
        invoke: place,
    },
    Typed {
        name: "regexp_substr",
        settle: |kinds| settled(kinds, &[Text, Text, Number, Number, Text, Number], Type::Text),
        invoke: part,
    },
];

/// What an argument must be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Parameter {
    Text,
    Number,
}

use Parameter::{Number, Text};

/// At least two of these arguments.
pub(super) fn settled(kinds: &[Type], parameters: &[Parameter], returns: Type) -> Option<Settled> {
    if !(2..=parameters.len()).contains(&kinds.len()) {
        return None;
    }
    let fits = kinds.iter().zip(parameters).all(|(kind, parameter)| match parameter {
        Text => is_text(kind),
        Number => is_integer(kind),
    });
    let wanted = parameters.iter().take(kinds.len()).map(|parameter| match parameter {
        Text => Type::Text,
        Number => Type::Integer,
    });
    fits.then(|| Settled::new(wanted, returns))
}

/// The arguments of a row.
pub(super) struct Arguments<'a> {
    arrays: &'a [ArrayRef],
    row: usize,
}

impl<'a> Arguments<'a> {
    /// Of a row without NULLs.
    pub(super) fn of(arrays: &'a [ArrayRef], row: usize) -> Option<Self> {
        arrays.iter().all(|array| array.is_valid(row)).then_some(Self { arrays, row })
    }

    /// A text; empty without one.
    pub(super) fn text(&self, place: usize) -> &'a str {
        self.arrays.get(place).map_or("", |array| array.as_string::<i32>().value(self.row))
    }

    pub(super) fn number(&self, place: usize, default: i32) -> i32 {
        self.arrays
            .get(place)
            .map_or(default, |array| array.as_primitive::<Int32Type>().value(self.row))
    }
}

fn like(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let mut last = Last::default();
    let mut builder = BooleanBuilder::new();
    for row in 0..arrays[0].len() {
        let Some(arguments) = Arguments::of(&arrays, row) else {
            builder.append_null();
            continue;
        };
        let (regex, options) = last.get(arguments.text(1), arguments.text(2))?;
        not_global("regexp_like", options)?;
        builder.append_value(regex.is_match(arguments.text(0)));
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

fn count(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let mut last = Last::default();
    let mut builder = Int32Builder::new();
    for row in 0..arrays[0].len() {
        let Some(arguments) = Arguments::of(&arrays, row) else {
            builder.append_null();
            continue;
        };
        let start = positive("start", arguments.number(2, 1))?;
        let (regex, options) = last.get(arguments.text(1), arguments.text(3))?;
        not_global("regexp_count", options)?;
        let text = arguments.text(0);
        let found = offset(text, start).map_or(0, |start| regex.all(text, start).count());
        builder.append_value(found as i32);
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

/// Where the match with a number is, or one of its parts; the arguments are the text, the expression,
/// the first character, the number, the flags and the part.
fn nth(
    function: &str,
    last: &mut Last,
    arguments: &Arguments<'_>,
    [start, number, flags, part]: [usize; 4],
) -> Row<Option<Range<usize>>> {
    let start = positive("start", arguments.number(start, 1))?;
    let number = positive("n", arguments.number(number, 1))?;
    let part = arguments.number(part, 0);
    let group = usize::try_from(part).map_err(|_| bad("subexpr", part))?;
    let (regex, options) = last.get(arguments.text(1), arguments.text(flags))?;
    not_global(function, options)?;
    let text = arguments.text(0);
    // Without parts all of it is the first.
    let parts = regex.groups().max(1);
    let Some(start) = offset(text, start).filter(|_| group <= parts) else { return Ok(None) };
    let found = regex.all(text, start).nth(number - 1);
    Ok(found.and_then(|found| match group {
        0 => Some(found.whole),
        _ if found.groups.is_empty() => Some(found.whole),
        group => found.groups[group - 1].clone(),
    }))
}

fn place(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let mut last = Last::default();
    let mut builder = Int32Builder::new();
    for row in 0..arrays[0].len() {
        let Some(arguments) = Arguments::of(&arrays, row) else {
            builder.append_null();
            continue;
        };
        let end = arguments.number(4, 0);
        positive("start", arguments.number(2, 1))?;
        positive("n", arguments.number(3, 1))?;
        if !(0..=1).contains(&end) {
            return Err(bad("endoption", end).into());
        }
        let found = nth("regexp_instr", &mut last, &arguments, [2, 3, 5, 6])?;
        let number = |at: usize| arguments.text(0)[..at].chars().count() as i32 + 1;
        builder.append_value(found.map_or(0, |found| match end {
            0 => number(found.start),
            _ => number(found.end),
        }));
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

fn part(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let mut last = Last::default();
    let mut builder = StringBuilder::new();
    for row in 0..arrays[0].len() {
        let Some(arguments) = Arguments::of(&arrays, row) else {
            builder.append_null();
            continue;
        };
        let found = nth("regexp_substr", &mut last, &arguments, [2, 3, 4, 5])?;
        builder.append_option(found.map(|found| &arguments.text(0)[found]));
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}
