//! Intervals with fields, and moments with a precision.

use datafusion::sql::sqlparser::ast::{
    self, CastKind, DataType, DateTimeField, Expr, IntervalFields, TimezoneInfo, Value,
    ValueWithSpan,
};

use super::{call, take};
use crate::{Error, SqlState};

/// The function that keeps the fields of an interval down to one, and so many digits of seconds.
pub(super) const LIMITED: &str = "interval limited";
/// The function that keeps so many digits of a moment's seconds.
const ROUNDED: &str = "moment rounded";
/// Digits of a second at most.
const DIGITS_MAX: u64 = 6;

fn text(text: String) -> Expr {
    Expr::value(Value::SingleQuotedString(text))
}

/// `double precision`
pub(super) fn double() -> DataType {
    DataType::Float8
}

/// A cast without more.
pub(super) fn cast(operand: Expr, data_type: DataType) -> Expr {
    Expr::Cast {
        kind: CastKind::DoubleColon,
        expr: Box::new(operand),
        data_type,
        array: false,
        format: None,
    }
}

fn number(digits: u64) -> Expr {
    let digits = text(digits.min(DIGITS_MAX).to_string());
    cast(digits, DataType::Int4(None))
}

/// `INTERVAL '...' fields` as a cast, or a call if there are fields.
pub(super) fn literal(interval: &ast::Interval) -> Result<Expr, Error> {
    let wrong = || Error::new(SqlState::SYNTAX_ERROR, "syntax error at INTERVAL");
    let Expr::Value(ValueWithSpan { value, .. }) = interval.value.as_ref() else {
        return Err(wrong());
    };
    let (Value::SingleQuotedString(written) | Value::EscapedStringLiteral(written)) = value else {
        return Err(wrong());
    };
    let field = |field: &DateTimeField| field.to_string().to_lowercase();
    let fields = match (&interval.leading_field, &interval.last_field) {
        (None, _) => String::new(),
        (Some(first), None) => field(first),
        (Some(first), Some(last)) => format!("{} to {}", field(first), field(last)),
    };
    let digits = interval.fractional_seconds_precision.or(interval.leading_precision);
    limited(text(written.clone()), &fields, digits)
}

/// A cast to an interval of fields, if it is one.
pub(super) fn interval_cast(
    operand: &mut Expr,
    data_type: &DataType,
) -> Result<Option<Expr>, Error> {
    let DataType::Interval { fields, precision } = data_type else { return Ok(None) };
    if fields.is_none() && precision.is_none() {
        return Ok(None);
    }
    let fields = fields.as_ref().map_or(String::new(), |fields| written(fields).to_lowercase());
    limited(take(operand), &fields, *precision).map(Some)
}

fn written(fields: &IntervalFields) -> String {
    fields.to_string()
}

fn limited(operand: Expr, fields: &str, digits: Option<u64>) -> Result<Expr, Error> {
    let interval = || DataType::Interval { fields: None, precision: None };
    if fields.is_empty() && digits.is_none() {
        return Ok(cast(operand, interval()));
    }
    let known = [
        "",
        "year",
        "month",
        "day",
        "hour",
        "minute",
        "second",
        "year to month",
        "day to hour",
        "day to minute",
        "day to second",
        "hour to minute",
        "hour to second",
        "minute to second",
    ];
    let has_seconds = fields.is_empty() || fields.ends_with("second");
    if !known.contains(&fields) || digits.is_some() && !has_seconds {
        let message = format!("syntax error at or near \"{fields}\"");
        return Err(Error::new(SqlState::SYNTAX_ERROR, message));
    }
    let digits = number(digits.unwrap_or(DIGITS_MAX));
    Ok(call(LIMITED, vec![operand, text(fields.to_owned()), digits]))
}

/// A cast to a moment with a precision, if it is one.
pub(super) fn moment_cast(operand: &mut Expr, data_type: &DataType) -> Option<Expr> {
    let (digits, bare) = precise(data_type)?;
    Some(rounded(cast(take(operand), bare), digits))
}

/// The precision of a moment's type, and the type without it.
fn precise(data_type: &DataType) -> Option<(u64, DataType)> {
    match data_type {
        DataType::Timestamp(Some(digits), zone) => {
            Some((*digits, DataType::Timestamp(None, *zone)))
        }
        DataType::Time(Some(digits), zone) => Some((*digits, DataType::Time(None, *zone))),
        DataType::Custom(name, modifiers) => {
            let bare = match name.to_string().to_lowercase().as_str() {
                "timestamptz" => DataType::Timestamp(None, TimezoneInfo::Tz),
                "timetz" => DataType::Time(None, TimezoneInfo::Tz),
                _ => return None,
            };
            Some((modifiers.first()?.parse().ok()?, bare))
        }
        _ => None,
    }
}

/// A moment with so many digits of seconds.
pub(super) fn rounded(moment: Expr, digits: u64) -> Expr {
    if digits >= DIGITS_MAX {
        return moment;
    }
    call(ROUNDED, vec![moment, number(digits)])
}

/// `CURRENT_TIME`, `LOCALTIMESTAMP` and their like, with and without a precision, as casts of `now()`.
pub(super) fn clock(name: &str, digits: Option<u64>) -> Option<Expr> {
    let kind = match name {
        "current_timestamp" => DataType::Timestamp(None, TimezoneInfo::Tz),
        "localtimestamp" => DataType::Timestamp(None, TimezoneInfo::None),
        "localtime" => DataType::Time(None, TimezoneInfo::None),
        "current_time" => DataType::Time(None, TimezoneInfo::Tz),
        _ => return None,
    };
    let now = call("now", vec![]);
    let moment = if name == "current_timestamp" { now } else { cast(now, kind) };
    Some(rounded(moment, digits.unwrap_or(DIGITS_MAX)))
}
