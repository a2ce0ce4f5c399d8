//! `interval` in text, in the styles `postgres` (written) and `postgres`, `sql_standard` and ISO
//! 8601 (read).

mod limited;

use arrow::datatypes::IntervalMonthDayNano;

use crate::text::date::fraction_us;
use crate::text::integer::write_integer;
use crate::text::moment::write_fraction;
use crate::text::trim;
use crate::text::zone::two_digits;
use crate::{Error, SqlState};
pub(crate) use limited::Limit;

/// Appends an `interval`: `1 year 2 mons -3 days +04:05:06.7`.
pub(crate) fn write_interval(value: IntervalMonthDayNano, out: &mut Vec<u8>) {
    let start = out.len();
    let mut before_negative = false;
    let parts = [(value.months / 12, "year"), (value.months % 12, "mon"), (value.days, "day")];
    for (count, unit) in parts {
        if count == 0 {
            continue;
        }
        if out.len() > start {
            out.push(b' ');
        }
        if before_negative && count > 0 {
            out.push(b'+');
        }
        write_integer(i64::from(count), out);
        out.push(b' ');
        out.extend_from_slice(unit.as_bytes());
        if count != 1 {
            out.push(b's');
        }
        before_negative = count < 0;
    }
    let us = value.nanoseconds / 1000;
    if us == 0 && out.len() > start {
        return;
    }
    if out.len() > start {
        out.push(b' ');
    }
    if us < 0 {
        out.push(b'-');
    } else if before_negative {
        out.push(b'+');
    }
    let us = us.unsigned_abs();
    let seconds = us / 1_000_000;
    let hours = seconds / 3600;
    if hours < 100 {
        two_digits(hours as u32, out);
    } else {
        write_integer(hours as i64, out);
    }
    out.push(b':');
    two_digits((seconds / 60 % 60) as u32, out);
    out.push(b':');
    two_digits((seconds % 60) as u32, out);
    write_fraction((us % 1_000_000) as u32, out);
}

/// Reads an `interval`.
pub(crate) fn parse_interval(text: &str) -> Result<IntervalMonthDayNano, Error> {
    parse(text, Limit::default())
}

/// Reads one whose fields say what a number without a unit is.
fn parse(text: &str, limit: Limit) -> Result<IntervalMonthDayNano, Error> {
    let trimmed = trim(text);
    let sum = match trimmed.strip_prefix(['P', 'p']) {
        Some(iso) => iso_8601(iso),
        None => words(trimmed, limit),
    };
    let sum = sum.ok_or_else(|| {
        let message = format!("invalid input syntax for type interval: \"{text}\"");
        Error::new(SqlState::INVALID_DATETIME_FORMAT, message)
    })?;
    sum.interval().ok_or_else(|| {
        let message = format!("interval field value out of range: \"{text}\"");
        Error::new(SqlState::DATETIME_FIELD_OVERFLOW, message)
    })
}

/// What has been read so far. Wide enough for anything that digits of a field can add.
#[derive(Clone, Copy, Default)]
struct Sum {
    months: i128,
    days: i128,
    us: i128,
}

impl Sum {
    fn interval(self) -> Option<IntervalMonthDayNano> {
        let nanoseconds = i64::try_from(self.us.checked_mul(1000)?).ok()?;
        Some(IntervalMonthDayNano::new(
            i32::try_from(self.months).ok()?,
            i32::try_from(self.days).ok()?,
            nanoseconds,
        ))
    }

    /// Adds a number of units; a fraction of one spills into the smaller ones.
    fn add(&mut self, number: Number, unit: Unit) {
        const MONTH_DAYS: i128 = 30;
        const DAY_US: i128 = 86_400_000_000;
        let Number { whole, millionths } = number;
        match unit {
            Unit::Months(months) => {
                let total = whole * MILLION * months + millionths * months;
                // A fraction of a year is rounded to months; one of a month is days and time.
                if months > 1 {
                    self.months += rounded(total);
                } else {
                    self.months += total / MILLION;
                    let days = total % MILLION * MONTH_DAYS;
                    self.days += days / MILLION;
                    self.us += days % MILLION * DAY_US / MILLION;
                }
            }
            Unit::Days(days) => {
                let total = whole * MILLION * days + millionths * days;
                self.days += total / MILLION;
                self.us += total % MILLION * DAY_US / MILLION;
            }
            Unit::Microseconds(us) => {
                let total = whole * MILLION * us + millionths * us;
                self.us += rounded(total);
            }
        }
    }
}

const MILLION: i128 = 1_000_000;

/// Millionths to whole ones.
fn rounded(millionths: i128) -> i128 {
    (millionths + millionths.signum() * MILLION / 2) / MILLION
}

/// A decimal number; both parts have its sign.
#[derive(Clone, Copy)]
struct Number {
    whole: i128,
    millionths: i128,
}

impl Number {
    fn parse(text: &str) -> Option<Self> {
        let (sign, digits) = match text.as_bytes().first()? {
            b'-' => (-1, &text[1..]),
            b'+' => (1, &text[1..]),
            _ => (1, text),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if digits.len() > 20 || whole.len() + fraction.len() == 0 {
            return None;
        }
        if !all_digits(whole) || !all_digits(fraction) {
            return None;
        }
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let millionths = i128::from(fraction_us(fraction));
        Some(Self { whole: sign * whole, millionths: sign * millionths })
    }
}

#[derive(Clone, Copy)]
enum Unit {
    Months(i128),
    Days(i128),
    Microseconds(i128),
}

impl Unit {
    fn find(word: &str) -> Option<Self> {
        Some(match word.to_ascii_lowercase().as_str() {
            "millennium" | "millennia" | "mil" | "mils" => Self::Months(12_000),
            "century" | "centuries" | "c" | "cent" => Self::Months(1200),
            "decade" | "decades" | "dec" | "decs" => Self::Months(120),
            "year" | "years" | "y" | "yr" | "yrs" => Self::Months(12),
            "month" | "months" | "mon" | "mons" => Self::Months(1),
            "week" | "weeks" | "w" => Self::Days(7),
            "day" | "days" | "d" => Self::Days(1),
            "hour" | "hours" | "h" | "hr" | "hrs" => Self::Microseconds(3_600_000_000),
            "minute" | "minutes" | "m" | "min" | "mins" => Self::Microseconds(60_000_000),
            "second" | "seconds" | "s" | "sec" | "secs" => Self::Microseconds(1_000_000),
            "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" => Self::Microseconds(1000),
            "microsecond" | "microseconds" | "us" | "usec" | "usecs" => Self::Microseconds(1),
            _ => return None,
        })
    }
}

/// `1 day 02:00`, `@ 1 month ago`, `1-2 3 4:05:06`.
fn words(text: &str, limit: Limit) -> Option<Sum> {
    let mut sum = Sum::default();
    let mut pending: Option<Number> = None;
    let mut empty = true;
    let mut ago = false;
    for token in tokens(text) {
        if ago {
            return None;
        }
        if token == "@" {
            continue;
        }
        if token.eq_ignore_ascii_case("ago") {
            ago = !empty;
            if empty {
                return None;
            }
            continue;
        }
        empty = false;
        if token.contains(':') {
            // A bare number before a time of day is days.
            if let Some(days) = pending.take() {
                sum.add(days, Unit::Days(1));
            }
            sum.us += clock_us(token, limit.begins_with_minutes())?;
        } else if token.starts_with(|first: char| first.is_ascii_alphabetic()) {
            sum.add(pending.take()?, Unit::find(token)?);
        } else if let Some(number) = Number::parse(token) {
            if pending.replace(number).is_some() {
                return None;
            }
        } else {
            sum.months += years_months(token)?;
        }
    }
    if let Some(number) = pending {
        sum.add(number, limit.unit());
    }
    if empty {
        return None;
    }
    if ago {
        sum = Sum { months: -sum.months, days: -sum.days, us: -sum.us };
    }
    Some(sum)
}

/// Words and numbers; `1day` is two of them.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split_ascii_whitespace().flat_map(|token| {
        let is_numeric = token.starts_with(|first: char| !first.is_ascii_alphabetic());
        let split = token.find(|c: char| c.is_ascii_alphabetic()).filter(|_| is_numeric);
        let (number, word) = token.split_at(split.unwrap_or(token.len()));
        [number, word].into_iter().filter(|part| !part.is_empty())
    })
}

/// `1-2`: years and months.
fn years_months(token: &str) -> Option<i128> {
    let (sign, rest) = match token.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, token.strip_prefix('+').unwrap_or(token)),
    };
    let (years, months) = rest.split_once('-')?;
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<i32>().ok()).flatten().map(i128::from)
    };
    let months = number(months).filter(|months| *months < 12)?;
    Some(sign * (number(years)? * 12 + months))
}

/// `[-]H:MM[:SS[.ffffff]]`, `M:SS.ffffff`, and `M:SS` if it begins with minutes.
fn clock_us(token: &str, begins_with_minutes: bool) -> Option<i128> {
    let (sign, clock) = match token.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, token.strip_prefix('+').unwrap_or(token)),
    };
    let is_short = clock.matches(':').count() == 1;
    let clock = match is_short && (begins_with_minutes || clock.contains('.')) {
        true => &format!("0:{clock}"),
        false => clock,
    };
    let mut parts = clock.split(':');
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let hours = parts.next().filter(|text| !text.is_empty() && digits(text) && text.len() < 10)?;
    let hours: i128 = hours.parse().ok()?;
    let minutes = parts.next().filter(|text| digits(text) && (1..=2).contains(&text.len()))?;
    let minutes: i128 = minutes.parse().ok().filter(|minutes| *minutes < 60)?;
    let seconds = match parts.next() {
        Some(seconds) => Number::parse(seconds).filter(|_| !seconds.starts_with(['+', '-']))?,
        None => Number { whole: 0, millionths: 0 },
    };
    if parts.next().is_some() || seconds.whole > 60 {
        return None;
    }
    let us = (hours * 60 + minutes) * 60 * MILLION + seconds.whole * MILLION + seconds.millionths;
    Some(sign * us)
}

/// `1Y2M3DT4H5M6S`, without the `P`.
fn iso_8601(text: &str) -> Option<Sum> {
    let (date, time) = match text.split_once(['T', 't']) {
        Some((_, "")) => return None,
        Some((date, time)) => (date, time),
        None => (text, ""),
    };
    if date.is_empty() && time.is_empty() {
        return None;
    }
    let mut sum = Sum::default();
    let date_unit = |letter| match letter {
        b'Y' => Some(Unit::Months(12)),
        b'M' => Some(Unit::Months(1)),
        b'W' => Some(Unit::Days(7)),
        b'D' => Some(Unit::Days(1)),
        _ => None,
    };
    let time_unit = |letter| match letter {
        b'H' => Some(Unit::Microseconds(3_600_000_000)),
        b'M' => Some(Unit::Microseconds(60_000_000)),
        b'S' => Some(Unit::Microseconds(1_000_000)),
        _ => None,
    };
    iso_fields(date, date_unit, &mut sum)?;
    iso_fields(time, time_unit, &mut sum)?;
    Some(sum)
}

fn iso_fields(mut text: &str, unit: impl Fn(u8) -> Option<Unit>, sum: &mut Sum) -> Option<()> {
    while !text.is_empty() {
        let end = text.find(|c: char| c.is_ascii_alphabetic())?;
        let unit = unit(text.as_bytes()[end].to_ascii_uppercase())?;
        sum.add(Number::parse(&text[..end])?, unit);
        text = &text[end + 1..];
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_read_and_written() {
        let cases = [
            ("1 day 02:00", "1 day 02:00:00"),
            ("1 mon -30 days", "1 mon -30 days"),
            ("-1 mon +3 days", "-1 mons +3 days"),
            ("1 year 2 months", "1 year 2 mons"),
            ("14 months", "1 year 2 mons"),
            ("@ 1 day 2 hours ago", "-1 days -02:00:00"),
            ("1.5 days", "1 day 12:00:00"),
            ("1.5 months", "1 mon 15 days"),
            ("1.5 years", "1 year 6 mons"),
            ("1week", "7 days"),
            ("-1 day 04:05:06.7", "-1 days +04:05:06.7"),
            ("100:00:00", "100:00:00"),
            ("1 2:03:04", "1 day 02:03:04"),
            ("1-2", "1 year 2 mons"),
            ("30", "00:00:30"),
            ("0", "00:00:00"),
            ("-0.5 seconds", "-00:00:00.5"),
            ("P1Y2M3DT4H5M6.5S", "1 year 2 mons 3 days 04:05:06.5"),
        ];
        for (text, expected) in cases {
            let mut out = vec![];
            write_interval(parse_interval(text).unwrap(), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{text}");
        }
        for text in ["", "abc", "1 2", "day", "ago", "1 day ago 1 day", "P", "PT", "1:2:3:4"] {
            let state = parse_interval(text).unwrap_err().state;
            assert_eq!(state, SqlState::INVALID_DATETIME_FORMAT, "{text}");
        }
        let state = parse_interval("3000000000 months").unwrap_err().state;
        assert_eq!(state, SqlState::DATETIME_FIELD_OVERFLOW);
    }
}
