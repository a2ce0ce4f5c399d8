//! `extract`, `date_part`, `date_trunc` and `timezone`.
//!
//! Where the value is a `timestamptz` a last argument names the session's time zone.

mod field;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Builder, Float64Builder};
use arrow::datatypes::{
    DataType, Date32Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
    Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use crate::functions::row::{arrays, raise, raise_error, shaped};
use crate::functions::scalar::{Definition, Resolved, no_function, type_name};
use crate::text::{NEGATIVE_INFINITY_US, POSITIVE_INFINITY_US, TimeZone, check_timestamp};
use crate::{Error, SqlState, Type};
use field::{Field, Source};

pub(super) static DEFINITIONS: &[Definition] = &[
    Definition { name: "extract", resolve: |types| part("extract", types), invoke: extract },
    Definition { name: "date_part", resolve: |types| part("date_part", types), invoke: extract },
    Definition { name: "date_trunc", resolve: truncated, invoke: truncate },
    Definition { name: "timezone", resolve: zoned, invoke: in_zone },
];

/// The digits after the point that `extract` gives of a field.
pub(super) fn extract_scale(field: &str) -> Option<i8> {
    Field::find(field).map(Field::scale)
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::Null)
}

fn part(name: &'static str, types: &[DataType]) -> Result<Resolved, Error> {
    let none = || no_function(name, types);
    let (field, value, zone) = match types {
        [field, value] => (field, value, None),
        [field, value, zone] => (field, value, Some(zone)),
        _ => return Err(none()),
    };
    if !is_text(field) {
        return Err(none());
    }
    let value = match value {
        // As PostgreSQL defines it.
        DataType::Date32 if name == "date_part" => Type::Timestamp.arrow(),
        DataType::Date32 | DataType::Time64(_) | DataType::Interval(IntervalUnit::MonthDayNano) => {
            value.clone()
        }
        DataType::Timestamp(_, None) => Type::Timestamp.arrow(),
        DataType::Timestamp(_, Some(_)) => Type::Timestamptz.arrow(),
        _ => return Err(none()),
    };
    let mut arguments = vec![DataType::Utf8, value];
    arguments.extend(zone.map(|_| DataType::Utf8));
    let returns = if name == "extract" { Type::Numeric(Some((38, 6))) } else { Type::Double };
    Ok(Resolved::new(arguments, returns))
}

fn truncated(types: &[DataType]) -> Result<Resolved, Error> {
    let none = || no_function("date_trunc", types);
    let [unit, value, rest @ ..] = types else { return Err(none()) };
    if !is_text(unit) || rest.len() > 1 {
        return Err(none());
    }
    let returns = match value {
        DataType::Timestamp(_, None) => Type::Timestamp,
        DataType::Timestamp(_, Some(_)) | DataType::Date32 => Type::Timestamptz,
        DataType::Interval(_) => Type::Interval,
        _ => return Err(none()),
    };
    let mut arguments = vec![DataType::Utf8, returns.arrow()];
    arguments.extend(rest.iter().map(|_| DataType::Utf8));
    Ok(Resolved::new(arguments, returns))
}

fn zoned(types: &[DataType]) -> Result<Resolved, Error> {
    let none = || no_function("timezone", types);
    let [zone, value] = types else { return Err(none()) };
    let zone = match zone {
        DataType::Interval(_) => zone.clone(),
        zone if is_text(zone) => DataType::Utf8,
        _ => return Err(none()),
    };
    let (argument, returns) = match value {
        DataType::Timestamp(_, None) => (Type::Timestamp, Type::Timestamptz),
        DataType::Timestamp(_, Some(_)) | DataType::Date32 => (Type::Timestamptz, Type::Timestamp),
        _ => return Err(none()),
    };
    Ok(Resolved::new(vec![zone, argument.arrow()], returns))
}

/// Remembers what the last text meant: a column of them is nearly always one constant.
struct Last<T> {
    text: String,
    value: Option<T>,
}

impl<T: Copy> Last<T> {
    fn new() -> Self {
        Self { text: String::new(), value: None }
    }

    fn get(
        &mut self,
        text: &str,
        find: impl Fn(&str) -> std::result::Result<T, ArrowError>,
    ) -> std::result::Result<T, ArrowError> {
        match self.value {
            Some(value) if self.text == text => Ok(value),
            _ => {
                let value = find(text)?;
                text.clone_into(&mut self.text);
                self.value = Some(value);
                Ok(value)
            }
        }
    }
}

fn find_zone(name: &str) -> std::result::Result<TimeZone, ArrowError> {
    TimeZone::find(name).ok_or_else(|| {
        let message = format!("time zone \"{name}\" not recognized");
        raise(SqlState::INVALID_PARAMETER_VALUE, message)
    })
}

/// The zone of a name; as POSIX has it, a bare offset counts westwards.
fn find_posix_zone(name: &str) -> std::result::Result<TimeZone, ArrowError> {
    let turned = match name.trim().split_at_checked(1) {
        Some(("+", rest)) if rest.starts_with(|c: char| c.is_ascii_digit()) => format!("-{rest}"),
        Some(("-", rest)) if rest.starts_with(|c: char| c.is_ascii_digit()) => format!("+{rest}"),
        _ => name.to_owned(),
    };
    find_zone(&turned)
}

/// The zone that is so far east of Greenwich.
fn zone_of(span: IntervalMonthDayNano) -> std::result::Result<TimeZone, ArrowError> {
    if span.months != 0 || span.days != 0 {
        let mut shown = vec![];
        crate::text::write_interval(span, &mut shown);
        let shown = String::from_utf8_lossy(&shown);
        let message = format!("interval time zone \"{shown}\" must not include months or days");
        return Err(raise(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    Ok(TimeZone::Fixed((span.nanoseconds / 1_000_000_000) as i32))
}

/// The zone that the last argument names; it is a constant.
fn session_zone(arrays: &[ArrayRef]) -> Result<TimeZone> {
    match arrays.get(2) {
        Some(zones) if !zones.is_empty() => Ok(find_zone(zones.as_string::<i32>().value(0))?),
        _ => Ok(TimeZone::default()),
    }
}

fn extract(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let (fields, values) = (arrays[0].as_string::<i32>(), &arrays[1]);
    let zone = session_zone(&arrays)?;
    let shown = type_name(values.data_type());
    let source: Box<dyn Fn(usize) -> Source> = match values.data_type() {
        DataType::Date32 => {
            let values = values.as_primitive::<Date32Type>().clone();
            Box::new(move |place| Source::Date(values.value(place)))
        }
        DataType::Time64(_) => {
            let values = values.as_primitive::<Time64MicrosecondType>().clone();
            Box::new(move |place| Source::Time(values.value(place)))
        }
        DataType::Timestamp(_, has_zone) => {
            let values = values.as_primitive::<TimestampMicrosecondType>().clone();
            let zone = has_zone.as_ref().map(|_| zone);
            Box::new(move |place| match values.value(place) {
                POSITIVE_INFINITY_US | NEGATIVE_INFINITY_US => Source::Infinite,
                us => Source::Clock { us, zone },
            })
        }
        DataType::Interval(_) => {
            let values = values.as_primitive::<IntervalMonthDayNanoType>().clone();
            Box::new(move |place| Source::Interval(values.value(place)))
        }
        other => return Err(DataFusionError::Internal(format!("a field of {other}"))),
    };
    let mut last = Last::new();
    let is_double = arguments.return_type() == &DataType::Float64;
    let mut micros = Vec::with_capacity(values.len());
    let mut doubles = Float64Builder::new();
    for place in 0..values.len() {
        if fields.is_null(place) || values.is_null(place) {
            micros.push(None);
            doubles.append_null();
            continue;
        }
        let field = last.get(fields.value(place), |name| {
            Field::find(name).ok_or_else(|| {
                let message = format!("unit \"{name}\" not recognized for type {shown}");
                raise(SqlState::INVALID_PARAMETER_VALUE, message)
            })
        })?;
        let source = source(place);
        if is_double {
            doubles.append_option(match source.double(field) {
                Some(double) => Some(double),
                None => source.field(field, &shown)?.map(|value| value as f64 / 1_000_000.0),
            });
            continue;
        }
        if field == Field::Julian && !source.is_whole_day() {
            let message = "the Julian day of a time of day is not supported by extract";
            return Err(raise(SqlState::FEATURE_NOT_SUPPORTED, message).into());
        }
        micros.push(source.field(field, &shown)?);
    }
    let result: ArrayRef = if is_double {
        Arc::new(doubles.finish())
    } else {
        let mut builder = Decimal128Builder::with_capacity(micros.len())
            .with_data_type(arguments.return_type().clone());
        for value in micros {
            builder.append_option(value);
        }
        Arc::new(builder.finish())
    };
    shaped(result, is_scalar)
}

fn truncate(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let units = arrays[0].as_string::<i32>();
    if matches!(arrays[1].data_type(), DataType::Interval(_)) {
        let spans = arrays[1].as_primitive::<IntervalMonthDayNanoType>();
        let mut result = Vec::with_capacity(spans.len());
        for pair in units.iter().zip(spans) {
            let (Some(name), Some(span)) = pair else {
                result.push(None);
                continue;
            };
            let unit = Field::find(name).filter(|field| field.is_unit()).ok_or_else(|| {
                let message = format!("unit \"{name}\" not recognized for type interval");
                raise(SqlState::INVALID_PARAMETER_VALUE, message)
            })?;
            result.push(Some(field::truncate_interval(span, unit).ok_or_else(|| {
                let message = format!("unit \"{name}\" not supported for type interval");
                raise(SqlState::FEATURE_NOT_SUPPORTED, message)
            })?));
        }
        let result = arrow::array::IntervalMonthDayNanoArray::from(result);
        return shaped(Arc::new(result), is_scalar);
    }
    let values = arrays[1].as_primitive::<TimestampMicrosecondType>();
    let has_zone = matches!(arrays[1].data_type(), DataType::Timestamp(_, Some(_)));
    let zone = if has_zone { Some(session_zone(&arrays)?) } else { None };
    let shown = type_name(arrays[1].data_type());
    let mut last = Last::new();
    let mut result = Vec::with_capacity(values.len());
    for place in 0..values.len() {
        if units.is_null(place) || values.is_null(place) {
            result.push(None);
            continue;
        }
        let unit = last.get(units.value(place), |name| {
            Field::find(name).filter(|field| field.is_unit()).ok_or_else(|| {
                let message = format!("unit \"{name}\" not recognized for type {shown}");
                raise(SqlState::INVALID_PARAMETER_VALUE, message)
            })
        })?;
        let us = values.value(place);
        if us == POSITIVE_INFINITY_US || us == NEGATIVE_INFINITY_US {
            result.push(Some(us));
            continue;
        }
        let offset = zone.map_or(0, |zone| i64::from(zone.offset_at(us)) * 1_000_000);
        let truncated = field::truncate(us + offset, unit).ok_or_else(|| {
            let message = format!("unit \"{}\" not supported for type {shown}", units.value(place));
            raise(SqlState::FEATURE_NOT_SUPPORTED, message)
        })?;
        let moment = match zone {
            // Below a day an hour that clocks repeat must not be mistaken for the other.
            Some(_) if unit.is_within_hour() => truncated.checked_sub(offset),
            Some(zone) => zone.moment(truncated),
            None => Some(truncated),
        };
        result.push(Some(check_timestamp(moment, None).map_err(raise_error)?));
    }
    let result = arrow::array::TimestampMicrosecondArray::from(result)
        .with_data_type(arguments.return_type().clone());
    shaped(Arc::new(result), is_scalar)
}

fn in_zone(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let zones = &arrays[0];
    let names = zones.as_string_opt::<i32>();
    let values = arrays[1].as_primitive::<TimestampMicrosecondType>();
    let is_moment = matches!(arrays[1].data_type(), DataType::Timestamp(_, Some(_)));
    let mut last = Last::new();
    let mut result = Vec::with_capacity(values.len());
    for place in 0..values.len() {
        if zones.is_null(place) || values.is_null(place) {
            result.push(None);
            continue;
        }
        let us = values.value(place);
        if us == POSITIVE_INFINITY_US || us == NEGATIVE_INFINITY_US {
            result.push(Some(us));
            continue;
        }
        let zone = match names {
            Some(names) => last.get(names.value(place), find_posix_zone)?,
            None => zone_of(zones.as_primitive::<IntervalMonthDayNanoType>().value(place))?,
        };
        let moved = if is_moment {
            us.checked_add(i64::from(zone.offset_at(us)) * 1_000_000)
        } else {
            zone.moment(us)
        };
        result.push(Some(check_timestamp(moved, None).map_err(raise_error)?));
    }
    let result = arrow::array::TimestampMicrosecondArray::from(result)
        .with_data_type(arguments.return_type().clone());
    shaped(Arc::new(result), is_scalar)
}
