//! Functions of arrays, whose counts are integers and whose elements are written as PostgreSQL does.
//! Arrays have one dimension here and begin at 1.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Int32Array, Int32Builder, ListArray, ListBuilder, StringBuilder,
    new_empty_array,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::concat;
use arrow::datatypes::{DataType, Field, FieldRef, Int32Type};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::functions::resolve::{Rank, rank};
use crate::functions::row::{arrays, shaped};
use crate::functions::scalar::{Definition, Resolved, no_function};
use crate::text::TextFormat;
use crate::{Error, TextColumn, Type};

pub(super) static DEFINITIONS: &[Definition] = &[
    Definition {
        name: "array_length",
        resolve: |types| of_dimension("array_length", types),
        invoke: |arguments| bound(arguments, |length| length),
    },
    Definition {
        name: "array_upper",
        resolve: |types| of_dimension("array_upper", types),
        invoke: |arguments| bound(arguments, |length| length),
    },
    Definition {
        name: "array_lower",
        resolve: |types| of_dimension("array_lower", types),
        invoke: |arguments| bound(arguments, |_| 1),
    },
    Definition { name: "cardinality", resolve: count, invoke: cardinality },
    Definition { name: "array_to_string", resolve: to_text, invoke: to_string },
    Definition { name: "generate_subscripts", resolve: subscripts, invoke: all_subscripts },
];

fn of_dimension(name: &'static str, types: &[DataType]) -> Result<Resolved, Error> {
    match types {
        [list @ (DataType::List(_) | DataType::Null), dimension]
            if dimension.is_null()
                || matches!(rank(dimension), Some(Rank::SmallInt | Rank::Integer)) =>
        {
            Ok(Resolved::new(vec![as_list(list), DataType::Int32], Type::Integer))
        }
        _ => Err(no_function(name, types)),
    }
}

fn count(types: &[DataType]) -> Result<Resolved, Error> {
    match types {
        [list @ (DataType::List(_) | DataType::Null)] => {
            Ok(Resolved::new(vec![as_list(list)], Type::Integer))
        }
        _ => Err(no_function("cardinality", types)),
    }
}

fn to_text(types: &[DataType]) -> Result<Resolved, Error> {
    let [list @ (DataType::List(_) | DataType::Null), separators @ ..] = types else {
        return Err(no_function("array_to_string", types));
    };
    let is_text = |data_type: &DataType| matches!(data_type, DataType::Utf8 | DataType::Null);
    if !(1..=2).contains(&separators.len()) || !separators.iter().all(is_text) {
        return Err(no_function("array_to_string", types));
    }
    let mut arguments = vec![as_list(list)];
    arguments.extend(separators.iter().map(|_| DataType::Utf8));
    Ok(Resolved::new(arguments, Type::Text))
}

fn subscripts(types: &[DataType]) -> Result<Resolved, Error> {
    match types {
        [list @ DataType::List(_), dimension]
            if matches!(rank(dimension), Some(Rank::SmallInt | Rank::Integer)) =>
        {
            let returns = Type::Array(Box::new(Type::Integer));
            Ok(Resolved::new(vec![list.clone(), DataType::Int32], returns))
        }
        _ => Err(no_function("generate_subscripts", types)),
    }
}

fn as_list(data_type: &DataType) -> DataType {
    if data_type.is_null() { DataType::new_list(DataType::Utf8, true) } else { data_type.clone() }
}

fn bound(arguments: &ScalarFunctionArgs, of: fn(i32) -> i32) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let (lists, dimensions) = (arrays[0].as_list::<i32>(), arrays[1].as_primitive::<Int32Type>());
    let bounds = lists.iter().zip(dimensions).map(|(list, dimension)| {
        let length = list?.len() as i32;
        (dimension? == 1 && length > 0).then(|| of(length))
    });
    shaped(Arc::new(bounds.collect::<Int32Array>()), is_scalar)
}

fn cardinality(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let counts = arrays[0].as_list::<i32>().iter().map(|list| Some(list?.len() as i32));
    shaped(Arc::new(counts.collect::<Int32Array>()), is_scalar)
}

fn to_string(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let (lists, separators) = (arrays[0].as_list::<i32>(), arrays[1].as_string::<i32>());
    let nulls = arrays.get(2).map(|nulls| nulls.as_string::<i32>());
    let DataType::List(field) = lists.data_type() else {
        return Err(Error::internal("an array that is none").into());
    };
    let kind = Type::of(field).unwrap_or(Type::Text);
    let elements = TextColumn::new(&kind, lists.values(), &TextFormat::default())?;
    let offsets = lists.value_offsets();
    let mut builder = StringBuilder::new();
    let mut buffer = vec![];
    for place in 0..lists.len() {
        if lists.is_null(place) || separators.is_null(place) {
            builder.append_null();
            continue;
        }
        let null = nulls.filter(|nulls| nulls.is_valid(place)).map(|nulls| nulls.value(place));
        buffer.clear();
        let mut is_first = true;
        for element in offsets[place]..offsets[place + 1] {
            let start = buffer.len();
            if !is_first {
                buffer.extend_from_slice(separators.value(place).as_bytes());
            }
            if elements.write(element as usize, &mut buffer) {
                is_first = false;
            } else if let Some(null) = null {
                buffer.extend_from_slice(null.as_bytes());
                is_first = false;
            } else {
                buffer.truncate(start);
            }
        }
        let text =
            std::str::from_utf8(&buffer).map_err(|error| Error::internal(error.to_string()))?;
        builder.append_value(text);
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

/// The subscripts of the elements, as an array; those of vectors in catalogs begin at 1 too.
fn all_subscripts(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let (lists, dimensions) = (arrays[0].as_list::<i32>(), arrays[1].as_primitive::<Int32Type>());
    let mut builder = ListBuilder::new(Int32Builder::new());
    for (list, dimension) in lists.iter().zip(dimensions) {
        let length = list.filter(|_| dimension == Some(1)).map_or(0, |list| list.len() as i32);
        builder.append_value((1..=length).map(Some));
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

/// `array_or_empty`: an array instead of NULL, of the same type.
pub(super) fn array_or_empty() -> Arc<ScalarUDF> {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(OrEmpty { signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OrEmpty {
    signature: Signature,
}

impl ScalarUDFImpl for OrEmpty {
    fn name(&self) -> &str {
        "array_or_empty"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [list @ DataType::List(_)] => Ok(list.clone()),
            other => Err(no_function(self.name(), other).into()),
        }
    }

    // The SQL type travels in the field's metadata.
    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        match arguments.arg_fields {
            [field] => Ok(Arc::clone(field)),
            _ => Err(no_function(self.name(), &[]).into()),
        }
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        or_empty(&arguments)
    }
}

fn or_empty(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let lists = arrays[0].as_list::<i32>();
    let DataType::List(field) = lists.data_type() else {
        return Err(Error::internal("an array that is none").into());
    };
    let mut pieces: Vec<ArrayRef> = vec![new_empty_array(field.data_type())];
    pieces.extend(lists.iter().flatten());
    let lengths = lists.iter().map(|list| list.map_or(0, |list| list.len()));
    let offsets = OffsetBuffer::from_lengths(lengths);
    let references: Vec<&dyn Array> = pieces.iter().map(AsRef::as_ref).collect();
    let values = concat(&references)?;
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    shaped(Arc::new(ListArray::new(field, offsets, values, None)), is_scalar)
}
