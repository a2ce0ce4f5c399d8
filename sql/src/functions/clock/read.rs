//! `to_date` and `to_timestamp`: texts in a pattern.

use std::sync::Arc;

use arrow::array::{Array, AsArray, Date32Array};
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::made::{day, of_seconds};
use super::pattern::{DAYS, Item, MONTHS, ROMAN, Word, items};
use super::{Row, out_of_range, stamps, zone_at};
use crate::functions::row::{arrays, raise, raise_error, shaped};
use crate::functions::typed::{Settled, Typed, Wanted, is_text};
use crate::text::{DAY_US, check_date, check_timestamp, days_from_civil};
use crate::{SqlState, Type};

pub(super) static DEFINITIONS: &[Typed] = &[
    Typed {
        name: "to_date",
        settle: |kinds| match kinds {
            [text, pattern] if is_text(text) && is_text(pattern) => {
                Some(Settled::new([Type::Text, Type::Text], Type::Date))
            }
            _ => None,
        },
        invoke: to_date,
    },
    Typed {
        name: "to_timestamp",
        settle: |kinds| match kinds {
            [text, pattern] | [text, pattern, Type::Text] if is_text(text) && is_text(pattern) => {
                let mut settled = Settled::new([Type::Text, Type::Text], Type::Timestamptz);
                settled.arguments.push(Wanted::Zone);
                Some(settled)
            }
            [
                Type::Unknown
                | Type::SmallInt
                | Type::Integer
                | Type::BigInt
                | Type::Real
                | Type::Double
                | Type::Numeric(_),
            ] => Some(Settled::new([Type::Double], Type::Timestamptz)),
            _ => None,
        },
        invoke: to_timestamp,
    },
];

fn to_date(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let (texts, patterns) = (arrays[0].as_string::<i32>(), arrays[1].as_string::<i32>());
    let mut found = vec![];
    for pair in texts.iter().zip(patterns) {
        found.push(match pair {
            (Some(text), Some(pattern)) => {
                let days = Read::new(text, pattern)?.days()?;
                Some(check_date(days, Some(text)).map_err(raise_error)?)
            }
            _ => None,
        });
    }
    shaped(Arc::new(Date32Array::from(found)), is_scalar)
}

fn to_timestamp(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    if *arrays[0].data_type() == DataType::Float64 {
        let seconds = arrays[0].as_primitive::<Float64Type>().iter();
        let found = seconds.map(|seconds| seconds.map(of_seconds).transpose());
        return stamps(found.collect::<Row<_>>()?, arguments, is_scalar);
    }
    let (texts, patterns) = (arrays[0].as_string::<i32>(), arrays[1].as_string::<i32>());
    let zone = zone_at(&arrays, 2)?;
    let mut found = vec![];
    for pair in texts.iter().zip(patterns) {
        found.push(match pair {
            (Some(text), Some(pattern)) => {
                let read = Read::new(text, pattern)?;
                let us = read.days()?.checked_mul(DAY_US);
                let us = us.and_then(|us| us.checked_add(read.time_us));
                let us = match read.offset {
                    Some(seconds) => us.and_then(|us| us.checked_sub(seconds * 1_000_000)),
                    None => us.and_then(|us| zone.moment(us)),
                };
                Some(check_timestamp(us, Some(text)).map_err(raise_error)?)
            }
            _ => None,
        });
    }
    stamps(found, arguments, is_scalar)
}

/// What a text says.
#[derive(Default)]
struct Read {
    year: Option<i64>,
    century: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    julian: Option<i64>,
    is_bc: bool,
    hour: i64,
    is_hour12: bool,
    is_afternoon: Option<bool>,
    minute: i64,
    second: i64,
    us: i64,
    second_of_day: Option<i64>,
    /// Seconds east of Greenwich.
    offset: Option<i64>,
    time_us: i64,
}

fn invalid(message: String) -> arrow::error::ArrowError {
    raise(SqlState::INVALID_DATETIME_FORMAT, message)
}

/// The text that is still to be read.
struct Input<'a>(&'a str);

impl<'a> Input<'a> {
    fn skip_blanks(&mut self) {
        self.0 = self.0.trim_start();
    }

    /// At most so many digits, or any number of them.
    fn number(&mut self, digits_max: Option<usize>, what: &str) -> Row<(i64, usize)> {
        self.skip_blanks();
        let signed = self.0.strip_prefix(['-', '+']).unwrap_or(self.0);
        let sign = self.0.len() - signed.len();
        let digits = signed.bytes().take_while(u8::is_ascii_digit).count();
        let digits = digits.min(digits_max.unwrap_or(usize::MAX));
        let (text, rest) = self.0.split_at(sign + digits);
        if digits == 0 {
            let found: String = self.0.chars().take(digits_max.unwrap_or(4)).collect();
            return Err(invalid(format!("invalid value \"{found}\" for \"{what}\"")));
        }
        self.0 = rest;
        let number = text.parse().map_err(|_| {
            out_of_range(format!("value for \"{what}\" in source string is out of range"))
        })?;
        Ok((number, digits))
    }

    /// One of some names, by its whole or its first three letters.
    fn name(&mut self, names: &[&str], letters: Option<usize>, what: &str) -> Row<i64> {
        self.skip_blanks();
        let found = names.iter().position(|name| {
            let name = letters.map_or(*name, |letters| &name[..letters.min(name.len())]);
            self.0.get(..name.len()).is_some_and(|text| text.eq_ignore_ascii_case(name))
        });
        let Some(place) = found else {
            let found: String = self.0.chars().take(letters.unwrap_or(9)).collect();
            return Err(invalid(format!("invalid value \"{found}\" for \"{what}\"")));
        };
        let name = names[place];
        let length = letters.map_or(name.len(), |letters| letters.min(name.len()));
        self.0 = &self.0[length..];
        Ok(place as i64)
    }
}

impl Read {
    fn new(text: &str, pattern: &str) -> Row<Self> {
        let mut read = Self::default();
        let mut input = Input(text);
        let items = items(pattern);
        for (place, item) in items.iter().enumerate() {
            match item {
                Item::Literal(character, is_quoted) => {
                    let is_separator = !is_quoted && !character.is_alphanumeric();
                    let next = input.0.chars().next();
                    let fits = next.is_some_and(|next| !is_separator || !next.is_alphanumeric());
                    // A sign belongs to the number behind it.
                    let is_sign = is_separator && character.is_whitespace() && next == Some('-');
                    if let Some(next) = next.filter(|_| fits && !is_sign) {
                        input.0 = &input.0[next.len_utf8()..];
                    }
                    if is_separator {
                        input.skip_blanks();
                    }
                }
                Item::Field { word, .. } => {
                    let is_followed_by_digits =
                        matches!(items.get(place + 1), Some(Item::Field { .. }));
                    if input.0.trim().is_empty() {
                        break;
                    }
                    read.field(*word, &mut input, is_followed_by_digits)?;
                }
            }
        }
        read.time_us = read.time(text)?;
        Ok(read)
    }

    fn field(&mut self, word: Word, input: &mut Input<'_>, is_packed: bool) -> Row<()> {
        // Digits go on until something else comes, unless another number follows at once.
        let limit = |digits: usize| is_packed.then_some(digits);
        match word {
            Word::Year(digits) => {
                let (mut year, found) = input.number(limit(digits.into()), "YYYY")?;
                if digits < 4 && found < 4 && year >= 0 {
                    year += match (found, year) {
                        (1 | 2, 0..70) => 2000,
                        (1 | 2, _) => 1900,
                        (_, 0..70) | (_, 100..520) => 2000,
                        (_, 70..100) => 1900,
                        _ => 1000,
                    };
                }
                self.year = Some(year);
            }
            Word::YearWithComma => {
                let (thousands, _) = input.number(None, "Y,YYY")?;
                input.0 = input.0.strip_prefix(',').unwrap_or(input.0);
                let (rest, _) = input.number(Some(3), "Y,YYY")?;
                self.year = Some(thousands * 1000 + rest);
            }
            Word::Century => self.century = Some(input.number(limit(2), "CC")?.0),
            Word::Month => self.month = Some(input.number(limit(2), "MM")?.0),
            Word::MonthName => self.month = Some(month_name(input)? + 1),
            Word::MonthAbbreviated => self.month = Some(input.name(&MONTHS, Some(3), "MON")? + 1),
            Word::Roman => {
                // The longer before what begins it.
                let order = [7, 2, 6, 1, 3, 8, 5, 11, 10, 0, 4, 9];
                let names: Vec<&str> = order.iter().map(|place| ROMAN[*place]).collect();
                let place = input.name(&names, None, "RM")?;
                self.month = Some(order[place as usize] as i64 + 1);
            }
            Word::Day => self.day = Some(input.number(limit(2), "DD")?.0),
            Word::DayOfYear => self.day_of_year = Some(input.number(limit(3), "DDD")?.0),
            Word::Julian => self.julian = Some(input.number(None, "J")?.0),
            Word::DayName => {
                input.name(&DAYS, None, "DAY")?;
            }
            Word::DayAbbreviated => {
                input.name(&DAYS, Some(3), "DY")?;
            }
            Word::DayOfWeek | Word::Quarter => {
                input.number(limit(1), "D")?;
            }
            Word::Hour12 => {
                self.hour = input.number(limit(2), "HH12")?.0;
                self.is_hour12 = true;
                if !(1..=12).contains(&self.hour) {
                    let message =
                        format!("hour \"{}\" is invalid for the 12-hour clock", self.hour);
                    return Err(invalid(message));
                }
            }
            Word::Hour24 => self.hour = input.number(limit(2), "HH24")?.0,
            Word::Minute => self.minute = input.number(limit(2), "MI")?.0,
            Word::Second => self.second = input.number(limit(2), "SS")?.0,
            Word::SecondOfDay => self.second_of_day = Some(input.number(limit(5), "SSSSS")?.0),
            Word::Fraction(digits) => {
                let (value, found) = input.number(Some(digits.into()), "US")?;
                self.us += value * 10_i64.pow(6 - found as u32);
            }
            Word::Meridian(_) => {
                let names = ["A.M.", "P.M.", "AM", "PM"];
                self.is_afternoon = Some(input.name(&names, None, "AM")? % 2 == 1);
            }
            Word::Era(_) => {
                let names = ["A.D.", "B.C.", "AD", "BC"];
                self.is_bc = input.name(&names, None, "AD")? % 2 == 1;
            }
            Word::ZoneHour | Word::ZoneOffset => {
                let is_west = input.0.trim_start().starts_with('-');
                let hours = input.number(Some(2), "TZH")?.0.abs();
                let mut seconds = hours * 3600;
                if word == Word::ZoneOffset
                    && let Some(rest) = input.0.strip_prefix(':')
                {
                    input.0 = rest;
                    seconds += input.number(Some(2), "OF")?.0 * 60;
                }
                self.offset = Some(if is_west { -seconds } else { seconds });
            }
            Word::ZoneMinute => {
                let minutes = input.number(Some(2), "TZM")?.0 * 60;
                let hours = self.offset.unwrap_or(0);
                self.offset = Some(if hours < 0 { hours - minutes } else { hours + minutes });
            }
            Word::IsoDayOfYear
            | Word::IsoDayOfWeek
            | Word::IsoWeek
            | Word::IsoYear(_)
            | Word::Week
            | Word::WeekOfMonth
            | Word::Zone => {
                let message = "this field in the pattern of a text to read is not supported";
                return Err(raise(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
        }
        Ok(())
    }

    fn days(&self) -> Row<i64> {
        if let Some(julian) = self.julian {
            return Ok(julian - 2_440_588);
        }
        let year = match (self.year, self.century) {
            (Some(year), _) => Some(year),
            (None, Some(century)) => Some((century - 1) * 100 + 1),
            (None, None) => None,
        };
        // Without a year it is 1 BC.
        let year = match year {
            None | Some(0) => -1,
            Some(year) if self.is_bc => -year.abs(),
            Some(year) => year,
        };
        if let Some(number) =
            self.day_of_year.filter(|_| self.month.is_none() && self.day.is_none())
        {
            let astronomical = if year < 0 { year + 1 } else { year };
            let first = days_from_civil(astronomical, 1, 1);
            let next = days_from_civil(astronomical + 1, 1, 1);
            if !(1..=next - first).contains(&number) {
                let message = format!("date/time field value out of range: \"{number}\"");
                return Err(out_of_range(message));
            }
            return Ok(first + number - 1);
        }
        day(year, self.month.unwrap_or(1), self.day.unwrap_or(1))
    }

    fn time(&self, text: &str) -> Row<i64> {
        let wrong = || out_of_range(format!("date/time field value out of range: \"{text}\""));
        if let Some(seconds) = self.second_of_day {
            let fits = (0..=86_400).contains(&seconds);
            return if fits { Ok(seconds * 1_000_000 + self.us) } else { Err(wrong()) };
        }
        let hour = match (self.is_afternoon, self.hour) {
            (Some(true), hour @ ..12) => hour + 12,
            (Some(false), 12) => 0,
            (None, 12) if self.is_hour12 => 0,
            (_, hour) => hour,
        };
        let fits = (0..=23).contains(&hour) || (hour == 24 && self.minute == 0 && self.second == 0);
        if !fits || !(0..60).contains(&self.minute) || !(0..60).contains(&self.second) {
            return Err(wrong());
        }
        Ok(((hour * 60 + self.minute) * 60 + self.second) * 1_000_000 + self.us)
    }
}

/// A month by its whole name.
fn month_name(input: &mut Input<'_>) -> Row<i64> {
    let whole = Input(input.0).name(&MONTHS, None, "MONTH");
    match whole {
        Ok(place) => {
            input.name(&MONTHS, None, "MONTH")?;
            Ok(place)
        }
        Err(_) => input.name(&MONTHS, Some(3), "MONTH"),
    }
}
