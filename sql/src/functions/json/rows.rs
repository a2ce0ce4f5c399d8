//! JSON to arrays of what it has, and arrays of it to JSON: `unnest` and `array_agg` make rows of the
//! one and collect rows for the other.

use std::sync::Arc;

use arrow::array::{Array, AsArray, ListBuilder, StringArray, StringBuilder};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::access::as_text;
use super::{Row, read, text_at};
use crate::functions::row::{arrays, raise, raise_error, shaped};
use crate::functions::typed::{Settled, Typed, Wanted};
use crate::text::json::{self, quote};
use crate::{SqlState, Type};

macro_rules! list {
    ($name:literal, $kind:ident, $element:ident, $parts:expr) => {
        Typed {
            name: $name,
            settle: |kinds| match kinds {
                [Type::$kind | Type::Unknown] => {
                    let returns = Type::Array(Box::new(Type::$element));
                    Some(Settled::new([Type::$kind], returns))
                }
                _ => None,
            },
            invoke: |arguments| listed(arguments, $parts),
        }
    };
}

pub(super) static DEFINITIONS: &[Typed] = &[
    list!("json_array_elements list", Json, Json, elements),
    list!("jsonb_array_elements list", Jsonb, Jsonb, elements),
    list!("json_array_elements_text list", Json, Text, element_texts),
    list!("jsonb_array_elements_text list", Jsonb, Text, element_texts),
    list!("json_object_keys list", Json, Text, keys),
    list!("jsonb_object_keys list", Jsonb, Text, keys),
    list!("json_each list", Json, Text, keys),
    list!("jsonb_each list", Jsonb, Text, keys),
    list!("json_each values", Json, Json, values),
    list!("jsonb_each values", Jsonb, Jsonb, values),
    list!("json_each_text values", Json, Text, value_texts),
    list!("jsonb_each_text values", Jsonb, Text, value_texts),
    Typed {
        name: "json pair",
        settle: |kinds| pair(kinds, &Wanted::Json),
        invoke: |arguments| paired(arguments, " : "),
    },
    Typed {
        name: "jsonb pair",
        settle: |kinds| pair(kinds, &Wanted::Jsonb),
        invoke: |arguments| paired(arguments, ": "),
    },
    Typed {
        name: "json of array",
        settle: |kinds| collected(kinds, Type::Json, Type::Json),
        invoke: |arguments| joined(arguments, |parts| Ok(format!("[{}]", parts.join(", ")))),
    },
    Typed {
        name: "jsonb of array",
        settle: |kinds| collected(kinds, Type::Jsonb, Type::Jsonb),
        invoke: |arguments| joined(arguments, |parts| Ok(format!("[{}]", parts.join(", ")))),
    },
    Typed {
        name: "json of pairs",
        settle: |kinds| collected(kinds, Type::Text, Type::Json),
        invoke: |arguments| joined(arguments, |parts| Ok(format!("{{ {} }}", parts.join(", ")))),
    },
    Typed {
        name: "jsonb of pairs",
        settle: |kinds| collected(kinds, Type::Text, Type::Jsonb),
        invoke: |arguments| {
            joined(arguments, |parts| Ok(read(&format!("{{{}}}", parts.join(", ")))?.text()))
        },
    },
];

fn pair(kinds: &[Type], wanted: &Wanted) -> Option<Settled> {
    let arguments = vec![Wanted::Shown, wanted.clone()];
    (kinds.len() == 2).then_some(Settled { arguments, returns: Type::Text })
}

fn collected(kinds: &[Type], element: Type, returns: Type) -> Option<Settled> {
    match kinds {
        [Type::Array(known)] if **known == element => Some(Settled::new(kinds.to_vec(), returns)),
        _ => None,
    }
}

fn listed(
    arguments: &ScalarFunctionArgs,
    parts: fn(&str) -> Row<Vec<Option<String>>>,
) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let values = arrays[0].as_string::<i32>();
    let mut builder = ListBuilder::new(StringBuilder::new());
    for row in 0..values.len() {
        if values.is_valid(row) {
            builder.append_value(parts(values.value(row))?);
        } else {
            builder.append_null();
        }
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

fn array(text: &str) -> Row<Vec<&str>> {
    let what = match json::kind(text) {
        b'[' => return Ok(json::elements(text)),
        b'{' => "an object",
        _ => "a scalar",
    };
    Err(raise(SqlState::INVALID_PARAMETER_VALUE, format!("cannot extract elements from {what}")))
}

fn elements(text: &str) -> Row<Vec<Option<String>>> {
    Ok(array(text)?.into_iter().map(|element| Some(element.to_owned())).collect())
}

fn element_texts(text: &str) -> Row<Vec<Option<String>>> {
    array(text)?.into_iter().map(as_text).collect()
}

fn object<'a>(text: &'a str, what: &str) -> Row<Vec<(String, &'a str)>> {
    let found = match json::kind(text) {
        b'{' => return json::members(text).map_err(raise_error),
        b'[' => "an array",
        _ => "a scalar",
    };
    Err(raise(SqlState::INVALID_PARAMETER_VALUE, format!("cannot call {what} on {found}")))
}

fn keys(text: &str) -> Row<Vec<Option<String>>> {
    Ok(object(text, "jsonb_object_keys")?.into_iter().map(|(key, _)| Some(key)).collect())
}

fn values(text: &str) -> Row<Vec<Option<String>>> {
    let members = object(text, "jsonb_each")?;
    Ok(members.into_iter().map(|(_, value)| Some(value.to_owned())).collect())
}

fn value_texts(text: &str) -> Row<Vec<Option<String>>> {
    object(text, "jsonb_each")?.into_iter().map(|(_, value)| as_text(value)).collect()
}

/// A member of an object.
fn paired(arguments: &ScalarFunctionArgs, colon: &str) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let mut builder = StringBuilder::new();
    for row in 0..arrays[0].len() {
        let Some(key) = text_at(&arrays[0], row) else {
            let message = "field name must not be null";
            return Err(raise(SqlState::INVALID_PARAMETER_VALUE, message).into());
        };
        let mut pair = String::new();
        quote(key, &mut pair);
        pair.push_str(colon);
        pair.push_str(text_at(&arrays[1], row).unwrap_or("null"));
        builder.append_value(pair);
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

fn joined(
    arguments: &ScalarFunctionArgs,
    join: impl Fn(Vec<&str>) -> Row<String>,
) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let lists = arrays[0].as_list::<i32>();
    let mut builder = StringBuilder::new();
    for list in lists.iter() {
        let Some(list) = list else {
            builder.append_null();
            continue;
        };
        let list: &StringArray = list.as_string();
        builder.append_value(join(list.iter().map(|part| part.unwrap_or("null")).collect())?);
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}
