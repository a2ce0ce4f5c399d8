//! `to_char` of dates, times and intervals.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{Array, AsArray, StringBuilder};
use arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalMonthDayNanoType};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::pattern::{Case, DAYS, Item, MONTHS, ROMAN, Word, items};
use super::{Row, has_zone, is_infinite, local, moments, zone_at};
use crate::functions::picture;
use crate::functions::row::{arrays, raise, shaped};
use crate::functions::typed::{Settled, Typed, Wanted, is_text};
use crate::text::{DAY_US, civil, days_from_civil};
use crate::{SqlState, TimeZone, Type};

pub(super) static DEFINITIONS: &[Typed] = &[Typed {
    name: "to_char",
    settle: |kinds| {
        let [value, pattern, zone @ ..] = kinds else { return None };
        if !is_text(pattern) || !matches!(zone, [] | [Type::Text]) {
            return None;
        }
        let kind = match value {
            Type::Timestamp | Type::Interval => value.clone(),
            Type::Date | Type::Timestamptz => Type::Timestamptz,
            Type::Time => Type::Interval,
            number => picture::number_kind(number)?,
        };
        let mut settled = Settled::new([kind.clone(), Type::Text], Type::Text);
        if kind == Type::Timestamptz {
            settled.arguments.push(Wanted::Zone);
        }
        Some(settled)
    },
    invoke: |arguments| match arguments.args[0].data_type() {
        DataType::Interval(_) | DataType::Timestamp(..) => to_char(arguments),
        _ => picture::to_char(arguments),
    },
}];

/// What is shown.
struct Shown {
    year: i64,
    month: i64,
    day: i64,
    /// Days since 1970-01-01; of no meaning in an interval.
    days: i64,
    hour: i64,
    minute: i64,
    second: i64,
    us: i64,
    is_interval: bool,
    /// The zone and its offset in seconds.
    zone: Option<(TimeZone, i64)>,
}

impl Shown {
    fn of_clock(us: i64, zone: Option<(TimeZone, i64)>) -> Self {
        let days = us.div_euclid(DAY_US);
        let (year, month, day) = civil(days);
        let time = us.rem_euclid(DAY_US);
        let seconds = time / 1_000_000;
        Self {
            year,
            month: month.into(),
            day: day.into(),
            days,
            hour: seconds / 3600,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            us: time % 1_000_000,
            is_interval: false,
            zone,
        }
    }

    fn of_interval(span: IntervalMonthDayNano) -> Self {
        let us = span.nanoseconds / 1000;
        let seconds = us / 1_000_000;
        Self {
            year: i64::from(span.months) / 12,
            month: i64::from(span.months) % 12,
            day: span.days.into(),
            days: 0,
            hour: seconds / 3600,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            us: us % 1_000_000,
            is_interval: true,
            zone: None,
        }
    }

    /// There is no year 0: it is 1 BC.
    fn shown_year(&self, year: i64) -> i64 {
        if self.is_interval || year > 0 { year } else { 1 - year }
    }

    fn day_of_year(&self) -> i64 {
        if self.is_interval {
            return (self.year * 12 + self.month) * 30 + self.day;
        }
        self.days - days_from_civil(self.year, 1, 1) + 1
    }

    /// 0 is Sunday.
    fn day_of_week(&self) -> i64 {
        (self.days + 4).rem_euclid(7)
    }

    /// The ISO year and the Monday of its first week.
    fn iso_year(&self) -> (i64, i64) {
        let monday = self.days - (self.day_of_week() + 6) % 7;
        let (year, ..) = civil(monday + 3);
        let first = days_from_civil(year, 1, 4);
        (year, first - ((first + 4).rem_euclid(7) + 6) % 7)
    }
}

fn to_char(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let (values, patterns) = (&arrays[0], arrays[1].as_string::<i32>());
    let zone = has_zone(values).then(|| zone_at(&arrays, 2)).transpose()?;
    let mut known: Option<(String, Vec<Item>)> = None;
    let mut builder = StringBuilder::new();
    for row in 0..values.len() {
        if values.is_null(row) || patterns.is_null(row) {
            builder.append_null();
            continue;
        }
        let shown = match values.data_type() {
            DataType::Interval(_) => {
                Shown::of_interval(values.as_primitive::<IntervalMonthDayNanoType>().value(row))
            }
            _ => match moments(values)?.value(row) {
                us if is_infinite(us) => {
                    builder.append_null();
                    continue;
                }
                us => match zone {
                    Some(zone) => {
                        let offset = i64::from(zone.offset_at(us));
                        Shown::of_clock(local(us, zone), Some((zone, offset)))
                    }
                    None => Shown::of_clock(us, None),
                },
            },
        };
        let pattern = patterns.value(row);
        // PostgreSQL has none of nothing.
        if pattern.is_empty() {
            builder.append_null();
            continue;
        }
        let items = match &mut known {
            Some((text, items)) if text == pattern => items,
            known => &mut known.insert((pattern.to_owned(), items(pattern))).1,
        };
        builder.append_value(formatted(&shown, items)?);
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

fn formatted(shown: &Shown, items: &[Item]) -> Row<String> {
    let mut out = String::new();
    for item in items {
        match item {
            Item::Literal(character, _) => out.push(*character),
            Item::Field { word, case, is_bare, ordinal } => {
                let start = out.len();
                field(shown, *word, *case, *is_bare, &mut out)?;
                if let Some(ordinal) = ordinal {
                    let suffix = suffix(&out[start..]);
                    match ordinal {
                        Case::Upper => out.push_str(&suffix.to_uppercase()),
                        _ => out.push_str(suffix),
                    }
                }
            }
        }
    }
    Ok(out)
}

fn suffix(number: &str) -> &'static str {
    let digits: Vec<u8> = number.bytes().filter(u8::is_ascii_digit).collect();
    match digits.as_slice() {
        [.., b'1', _] => "th",
        [.., b'1'] => "st",
        [.., b'2'] => "nd",
        [.., b'3'] => "rd",
        _ => "th",
    }
}

fn cased(text: &str, case: Case) -> String {
    match case {
        Case::Upper => text.to_uppercase(),
        Case::Capital => text.to_owned(),
        Case::Lower => text.to_lowercase(),
    }
}

fn field(shown: &Shown, word: Word, case: Case, is_bare: bool, out: &mut String) -> Row<()> {
    let mut number = |value: i64, width: usize| {
        let width = if is_bare { 0 } else { width };
        let sign = if value < 0 { "-" } else { "" };
        let written = write!(out, "{sign}{:0width$}", value.unsigned_abs());
        written.expect("a string takes everything");
    };
    let shown_hour = |hour: i64| if hour % 12 == 0 { 12 } else { hour % 12 };
    let last_digits = |year: i64, digits: u8| match digits {
        4 => year,
        digits => year % 10_i64.pow(digits.into()),
    };
    match word {
        Word::Hour12 => number(shown_hour(shown.hour), 2),
        Word::Hour24 => number(shown.hour, 2),
        Word::Minute => number(shown.minute, 2),
        Word::Second => number(shown.second, 2),
        Word::Fraction(digits) => {
            let value = shown.us / 10_i64.pow(6 - u32::from(digits));
            let sign = if value < 0 { "-" } else { "" };
            let width = usize::from(digits);
            write!(out, "{sign}{:0width$}", value.unsigned_abs())
                .expect("a string takes everything");
        }
        Word::SecondOfDay => number((shown.hour * 60 + shown.minute) * 60 + shown.second, 0),
        Word::Month => number(shown.month, 2),
        // The sign of these takes one of the places.
        Word::Day => number(shown.day, if shown.day < 0 { 1 } else { 2 }),
        Word::DayOfYear => {
            let day = shown.day_of_year();
            number(day, if day < 0 { 2 } else { 3 });
        }
        Word::Year(digits) => {
            let year = shown.shown_year(shown.year);
            number(last_digits(year, digits), digits.into());
        }
        Word::YearWithComma => {
            let year = shown.shown_year(shown.year);
            write!(out, "{},{:03}", year / 1000, year % 1000).expect("a string takes everything");
        }
        Word::Century => {
            let year = shown.year;
            let century = match () {
                () if shown.is_interval => year / 100,
                () if year > 0 => (year - 1) / 100 + 1,
                () => year / 100 - 1,
            };
            number(century, 2);
        }
        Word::Quarter if shown.month == 0 => {}
        Word::Quarter => number((shown.month - 1) / 3 + 1, 0),
        Word::Meridian(has_points) => {
            let text = match (shown.hour % 24 >= 12, has_points) {
                (true, true) => "P.M.",
                (true, false) => "PM",
                (false, true) => "A.M.",
                (false, false) => "AM",
            };
            out.push_str(&cased(text, case));
        }
        Word::Roman => {
            let month = shown.month.rem_euclid(12);
            let text = match (shown.month, shown.is_interval) {
                (0, true) => return Ok(()),
                (months, _) if months < 0 => ROMAN[(month - 1).rem_euclid(12) as usize],
                (months, _) => ROMAN[(months - 1) as usize],
            };
            let width = if is_bare { 0 } else { 4 };
            write!(out, "{:width$}", cased(text, case)).expect("a string takes everything");
        }
        _ if shown.is_interval => {
            let message = "invalid format specification for an interval value";
            return Err(raise(SqlState::INVALID_DATETIME_FORMAT, message));
        }
        Word::Era(has_points) => {
            let text = match (shown.year > 0, has_points) {
                (true, true) => "A.D.",
                (true, false) => "AD",
                (false, true) => "B.C.",
                (false, false) => "BC",
            };
            out.push_str(&cased(text, case));
        }
        Word::MonthName | Word::DayName | Word::MonthAbbreviated | Word::DayAbbreviated => {
            let name = match word {
                Word::MonthName | Word::MonthAbbreviated => MONTHS[(shown.month - 1) as usize],
                _ => DAYS[shown.day_of_week() as usize],
            };
            let is_whole = matches!(word, Word::MonthName | Word::DayName);
            let name = cased(if is_whole { name } else { &name[..3] }, case);
            let width = if is_whole && !is_bare { 9 } else { 0 };
            write!(out, "{name:width$}").expect("a string takes everything");
        }
        Word::DayOfWeek => number(shown.day_of_week() + 1, 0),
        Word::IsoDayOfWeek => number((shown.day_of_week() + 6) % 7 + 1, 0),
        Word::IsoWeek => number((shown.days - shown.iso_year().1) / 7 + 1, 2),
        Word::IsoDayOfYear => number(shown.days - shown.iso_year().1 + 1, 3),
        Word::IsoYear(digits) => {
            let year = shown.shown_year(shown.iso_year().0);
            number(last_digits(year, digits), digits.into());
        }
        Word::Week => number((shown.day_of_year() - 1) / 7 + 1, 2),
        Word::WeekOfMonth => number((shown.day - 1) / 7 + 1, 0),
        Word::Julian => number(shown.days + 2_440_588, 0),
        Word::Zone => match shown.zone {
            None => {}
            Some((zone, 0)) if zone == TimeZone::default() => out.push_str(&cased("UTC", case)),
            Some(_) => {
                let message = "the pattern TZ is not supported but in the time zone UTC";
                return Err(raise(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
        },
        Word::ZoneHour | Word::ZoneMinute | Word::ZoneOffset => {
            let offset = shown.zone.map_or(0, |(_, offset)| offset);
            let sign = if offset < 0 { '-' } else { '+' };
            let (hours, minutes) = (offset.abs() / 3600, offset.abs() / 60 % 60);
            let text = match word {
                Word::ZoneHour => format!("{sign}{hours:02}"),
                Word::ZoneMinute => format!("{minutes:02}"),
                _ if minutes != 0 => format!("{sign}{hours:02}:{minutes:02}"),
                _ => format!("{sign}{hours:02}"),
            };
            out.push_str(&text);
        }
    }
    Ok(())
}
