//! JSON of other values.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, StringBuilder};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::{Row, read, text_at, texts, texts_at};
use crate::functions::row::{arrays, raise, shaped};
use crate::functions::typed::{Settled, Typed, Wanted};
use crate::text::json::{Json, quote};
use crate::text::{TextFormat, TimeZone};
use crate::{Error, SqlState, TextColumn, Type};

/// A value with the names of its type and of the session's zone.
pub(in crate::functions) static MADE_JSON: Typed =
    Typed { name: "made json", settle: |kinds| named(kinds, Type::Json), invoke: |a| made(a, ",") };

pub(in crate::functions) static MADE_JSONB: Typed = Typed {
    name: "made jsonb",
    settle: |kinds| named(kinds, Type::Jsonb),
    invoke: |a| made(a, ", "),
};

fn named(kinds: &[Type], returns: Type) -> Option<Settled> {
    match kinds {
        [value, Type::Text, Type::Text] => {
            Some(Settled::new([value.clone(), Type::Text, Type::Text], returns))
        }
        _ => None,
    }
}

macro_rules! wants {
    ($kinds:expr, $wanted:ident, $returns:expr) => {
        match $kinds {
            [_] => Some(Settled { arguments: vec![Wanted::$wanted], returns: $returns }),
            _ => None,
        }
    };
}

pub(super) static DEFINITIONS: &[Typed] = &[
    Typed { name: "to_json", settle: |kinds| wants!(kinds, Json, Type::Json), invoke: itself },
    Typed { name: "to_jsonb", settle: |kinds| wants!(kinds, Jsonb, Type::Jsonb), invoke: itself },
    Typed {
        name: "array_to_json",
        settle: |kinds| match kinds {
            [Type::Array(_) | Type::Json] => wants!(kinds, Json, Type::Json),
            [Type::Array(_) | Type::Json, Type::Boolean | Type::Unknown] => Some(Settled {
                arguments: vec![Wanted::Json, Wanted::As(Type::Boolean)],
                returns: Type::Json,
            }),
            _ => None,
        },
        invoke: of_array,
    },
    Typed {
        name: "json_build_array",
        settle: |kinds| Some(all(kinds, &Wanted::Json, Type::Json)),
        invoke: |arguments| joined(arguments, |parts| Ok(format!("[{}]", parts.join(", ")))),
    },
    Typed {
        name: "jsonb_build_array",
        settle: |kinds| Some(all(kinds, &Wanted::Jsonb, Type::Jsonb)),
        invoke: |arguments| joined(arguments, |parts| Ok(format!("[{}]", parts.join(", ")))),
    },
    Typed {
        name: "json_build_object",
        settle: |kinds| pairs(kinds, &Wanted::Json, Type::Json),
        invoke: |arguments| {
            object(arguments, |members| {
                let members: Vec<_> = members
                    .into_iter()
                    .map(|(key, value)| {
                        let mut text = String::new();
                        quote(&key, &mut text);
                        format!("{text} : {value}")
                    })
                    .collect();
                Ok(format!("{{{}}}", members.join(", ")))
            })
        },
    },
    Typed {
        name: "jsonb_build_object",
        settle: |kinds| pairs(kinds, &Wanted::Jsonb, Type::Jsonb),
        invoke: |arguments| {
            object(arguments, |members| {
                let members = members.into_iter().map(|(key, value)| Ok((key, read(&value)?)));
                Ok(Json::object(members.collect::<Row<_>>()?).text())
            })
        },
    },
    Typed {
        name: "json_object",
        settle: |kinds| match kinds {
            [Type::Array(_) | Type::Unknown] => Some(Settled::new([texts()], Type::Json)),
            [Type::Array(_) | Type::Unknown, Type::Array(_) | Type::Unknown] => {
                Some(Settled::new([texts(), texts()], Type::Json))
            }
            _ => None,
        },
        invoke: |arguments| {
            of_texts(arguments, |members| {
                let members = members.into_iter().map(|(key, value)| {
                    let mut text = String::new();
                    quote(&key, &mut text);
                    text.push_str(" : ");
                    value.write(&mut text);
                    text
                });
                format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
            })
        },
    },
    Typed {
        name: "jsonb_object",
        settle: |kinds| match kinds {
            [Type::Array(_) | Type::Unknown] => Some(Settled::new([texts()], Type::Jsonb)),
            [Type::Array(_) | Type::Unknown, Type::Array(_) | Type::Unknown] => {
                Some(Settled::new([texts(), texts()], Type::Jsonb))
            }
            _ => None,
        },
        invoke: |arguments| of_texts(arguments, |members| Json::object(members).text()),
    },
];

fn all(kinds: &[Type], wanted: &Wanted, returns: Type) -> Settled {
    Settled { arguments: kinds.iter().map(|_| wanted.clone()).collect(), returns }
}

fn pairs(kinds: &[Type], wanted: &Wanted, returns: Type) -> Option<Settled> {
    let arguments = (0..kinds.len()).map(|place| match place % 2 {
        0 => Wanted::Shown,
        _ => wanted.clone(),
    });
    Some(Settled { arguments: arguments.collect(), returns })
}

/// The argument is what comes out: it has been converted on its way here.
fn itself(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    Ok(arguments.args[0].clone())
}

/// An array as it is, or with its elements in lines of their own.
fn of_array(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let Some(flags) = arrays.get(1) else { return itself(arguments) };
    let flags = flags.as_boolean();
    let mut builder = StringBuilder::new();
    for (row, text) in arrays[0].as_string::<i32>().iter().enumerate() {
        match text.filter(|_| flags.is_valid(row)) {
            Some(text) if flags.value(row) => {
                let elements = crate::text::json::elements(text);
                builder.append_value(format!("[{}]", elements.join(",\n ")));
            }
            text => builder.append_option(text),
        }
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

/// Joins the arguments of each row; NULL is null.
fn joined(
    arguments: &ScalarFunctionArgs,
    join: impl Fn(Vec<&str>) -> Row<String>,
) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let rows = arrays.first().map_or(arguments.number_rows.max(1), |array| array.len());
    let mut builder = StringBuilder::new();
    for row in 0..rows {
        let parts = arrays.iter().map(|array| text_at(array, row).unwrap_or("null"));
        builder.append_value(join(parts.collect())?);
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

fn object(
    arguments: &ScalarFunctionArgs,
    write: impl Fn(Vec<(String, String)>) -> Row<String>,
) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    if !arrays.len().is_multiple_of(2) {
        let message = "argument list must have even number of elements";
        return Err(raise(SqlState::INVALID_PARAMETER_VALUE, message).into());
    }
    let rows = arrays.first().map_or(arguments.number_rows.max(1), |array| array.len());
    let mut builder = StringBuilder::new();
    for row in 0..rows {
        let mut members = vec![];
        for (place, pair) in arrays.chunks(2).enumerate() {
            let Some(key) = text_at(&pair[0], row) else {
                let message = format!("argument {}: key must not be null", place * 2 + 1);
                return Err(raise(SqlState::INVALID_PARAMETER_VALUE, message).into());
            };
            let value = pair.get(1).and_then(|value| text_at(value, row)).unwrap_or("null");
            members.push((key.to_owned(), value.to_owned()));
        }
        builder.append_value(write(members)?);
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

fn of_texts(
    arguments: &ScalarFunctionArgs,
    write: impl Fn(Vec<(String, Json)>) -> String,
) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let invalid = |message: &str| raise(SqlState::ARRAY_SUBSCRIPT_ERROR, message);
    let value = |text: Option<String>| text.map_or(Json::Null, Json::String);
    let key = |text: Option<String>| {
        let message = "null value not allowed for object key";
        text.ok_or_else(|| raise(SqlState::NULL_VALUE_NOT_ALLOWED, message))
    };
    let mut builder = StringBuilder::new();
    for row in 0..arrays[0].len() {
        let Some(first) = texts_at(&arrays[0], row) else {
            builder.append_null();
            continue;
        };
        let members: Row<Vec<_>> = match arrays.get(1) {
            None if !first.len().is_multiple_of(2) => {
                return Err(invalid("array must have even number of elements").into());
            }
            None => {
                let pairs = first.chunks(2);
                pairs.map(|pair| Ok((key(pair[0].clone())?, value(pair[1].clone())))).collect()
            }
            Some(second) => {
                let Some(second) = texts_at(second, row) else {
                    builder.append_null();
                    continue;
                };
                if first.len() != second.len() {
                    return Err(invalid("mismatched array dimensions").into());
                }
                let pairs = first.into_iter().zip(second);
                pairs.map(|(first, second)| Ok((key(first)?, value(second)))).collect()
            }
        };
        builder.append_value(write(members?));
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

fn made(arguments: &ScalarFunctionArgs, separator: &str) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let values = &arrays[0];
    if values.is_empty() {
        return shaped(Arc::new(StringBuilder::new().finish()), is_scalar);
    }
    let kind: Type = text_at(&arrays[1], 0).unwrap_or_default().parse()?;
    let zone = TimeZone::parse(text_at(&arrays[2], 0).unwrap_or_default())?;
    let format = TextFormat { time_zone: zone, ..TextFormat::default() };
    let writer = Writer::new(&kind, values, &format, separator)?;
    let mut builder = StringBuilder::new();
    for row in 0..values.len() {
        if values.is_null(row) {
            builder.append_null();
            continue;
        }
        let mut out = String::new();
        writer.write(row, &mut out)?;
        builder.append_value(out);
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

/// Writes the values of an array as JSON.
struct Writer {
    kind: Type,
    column: TextColumn,
    lists: Option<(ListArray, Box<Writer>, String)>,
}

impl Writer {
    fn new(
        kind: &Type,
        values: &ArrayRef,
        format: &TextFormat,
        separator: &str,
    ) -> Result<Self, Error> {
        let lists = match kind {
            Type::Array(element) => {
                let lists = values.as_list::<i32>();
                let elements = Self::new(element, lists.values(), format, separator)?;
                Some((lists.clone(), Box::new(elements), separator.to_owned()))
            }
            _ => None,
        };
        Ok(Self { kind: kind.clone(), column: TextColumn::new(kind, values, format)?, lists })
    }

    fn write(&self, row: usize, out: &mut String) -> Result<(), Error> {
        if let Some((lists, elements, separator)) = &self.lists {
            let offsets = lists.value_offsets();
            out.push('[');
            for place in offsets[row]..offsets[row + 1] {
                if place > offsets[row] {
                    out.push_str(separator);
                }
                elements.write(place as usize, out)?;
            }
            out.push(']');
            return Ok(());
        }
        let mut text = vec![];
        if !self.column.write(row, &mut text) {
            out.push_str("null");
            return Ok(());
        }
        let text = String::from_utf8(text).map_err(|error| Error::internal(error.to_string()))?;
        let is_number = |text: &str| !text.ends_with(|c: char| c.is_ascii_alphabetic());
        match &self.kind {
            Type::Boolean => out.push_str(if text == "t" { "true" } else { "false" }),
            Type::SmallInt | Type::Integer | Type::BigInt => out.push_str(&text),
            Type::Real | Type::Double | Type::Numeric(_) if is_number(&text) => {
                match Json::number(&text)? {
                    Json::Number(digits) => out.push_str(&digits),
                    other => other.write(out),
                }
            }
            Type::Json | Type::Jsonb => out.push_str(&text),
            Type::Timestamp => quote(&text.replacen(' ', "T", 1), out),
            Type::Timestamptz => {
                let mut text = text.replacen(' ', "T", 1);
                // The offset has minutes here.
                let offset = text.rfind(['+', '-']).unwrap_or(0);
                if text.len() - offset == 3 {
                    text.push_str(":00");
                }
                quote(&text, out);
            }
            _ => quote(&text, out),
        }
        Ok(())
    }
}
