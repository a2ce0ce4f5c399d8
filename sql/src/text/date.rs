//! The fields of dates and times in text: what PostgreSQL's `ParseDateTime` and `DecodeDateTime`
//! accept, but for Julian days, ISO weeks and abbreviations of zones other than UTC's.

use crate::text::calendar::{days_from_civil, days_in_month};
use crate::text::trim;
use crate::text::zone::{TimeZone, offset};
use crate::{Error, SqlState};

/// What a text says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    /// A point in time, as far as it is given.
    Fields(Fields),
    /// `infinity`.
    Infinity,
    /// `-infinity`.
    NegativeInfinity,
}

/// The given fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields {
    /// Days since 1970-01-01.
    pub days: Option<i64>,
    /// Microseconds since midnight, up to those of a whole day.
    pub time_us: Option<i64>,
    /// The zone the clock is in.
    pub zone: Option<TimeZone>,
}

/// Why a text says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bad {
    Syntax,
    Range,
    /// As above, and another order of fields would help.
    Order,
    Unsupported,
}

/// Reads a text; `kind` is the type's name in errors.
pub(super) fn parse(text: &str, kind: &str) -> Result<Parsed, Error> {
    Reader::default().read(trim(text)).map_err(|bad| error(bad, text, kind))
}

/// 22007: not a text of this type.
pub(super) fn invalid(text: &str, kind: &str) -> Error {
    error(Bad::Syntax, text, kind)
}

fn error(bad: Bad, text: &str, kind: &str) -> Error {
    let out_of_range = || {
        let message = format!("date/time field value out of range: \"{text}\"");
        Error::new(SqlState::DATETIME_FIELD_OVERFLOW, message)
    };
    match bad {
        Bad::Syntax => {
            let message = format!("invalid input syntax for type {kind}: \"{text}\"");
            Error::new(SqlState::INVALID_DATETIME_FORMAT, message)
        }
        Bad::Range => out_of_range(),
        Bad::Order => {
            out_of_range().with_hint("Perhaps you need a different \"datestyle\" setting.")
        }
        Bad::Unsupported => Error::unsupported(format!("{kind} \"{text}\"")),
    }
}

/// A part of a date before its meaning is known.
#[derive(Clone, Copy)]
enum DatePart {
    Number { value: i64, digits: usize },
    Month(u32),
}

#[derive(Default)]
struct Reader {
    fields: Fields,
    date: Vec<DatePart>,
    before_christ: bool,
    half: Option<Half>,
    special: Option<Parsed>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Morning,
    Afternoon,
}

impl Reader {
    fn read(mut self, text: &str) -> Result<Parsed, Bad> {
        for token in text.split(|c: char| c.is_ascii_whitespace() || c == ',') {
            if !token.is_empty() {
                self.token(token)?;
            }
        }
        if let Some(special) = self.special {
            let alone = self.date.is_empty() && self.fields == Fields::default();
            return if alone { Ok(special) } else { Err(Bad::Syntax) };
        }
        if !self.date.is_empty() {
            if self.fields.days.is_some() {
                return Err(Bad::Syntax);
            }
            self.fields.days = Some(day(&self.date, self.before_christ)?);
        } else if self.before_christ {
            return Err(Bad::Syntax);
        }
        self.apply_half()?;
        if self.fields.days.is_none() && self.fields.time_us.is_none() {
            return Err(Bad::Syntax);
        }
        Ok(Parsed::Fields(self.fields))
    }

    fn token(&mut self, token: &str) -> Result<(), Bad> {
        let first = token.as_bytes()[0];
        if first.is_ascii_digit() {
            if let Some(split) = date_time_split(token) {
                self.date_token(&token[..split])?;
                return self.time_token(&token[split + 1..]);
            }
            if token.contains(':') { self.time_token(token) } else { self.date_token(token) }
        } else if first == b'+' || first == b'-' {
            if token.eq_ignore_ascii_case("-infinity") {
                return self.set_special(Parsed::NegativeInfinity);
            }
            if token.eq_ignore_ascii_case("+infinity") {
                return self.set_special(Parsed::Infinity);
            }
            let seconds = offset(token).ok_or(Bad::Syntax)?;
            self.set_zone(TimeZone::Fixed(seconds))
        } else {
            self.word(token)
        }
    }

    fn word(&mut self, word: &str) -> Result<(), Bad> {
        let lower = word.to_ascii_lowercase();
        match lower.as_str() {
            "infinity" => return self.set_special(Parsed::Infinity),
            "epoch" => {
                let fields =
                    Fields { days: Some(0), time_us: Some(0), zone: Some(TimeZone::default()) };
                return self.set_special(Parsed::Fields(fields));
            }
            // What they mean changes while a stored text doesn't.
            "now" | "today" | "tomorrow" | "yesterday" => return Err(Bad::Unsupported),
            "bc" => {
                self.before_christ = true;
                return Ok(());
            }
            "ad" => return Ok(()),
            "am" => return self.set_half(Half::Morning),
            "pm" => return self.set_half(Half::Afternoon),
            _ => {}
        }
        if let Some(month) = month(&lower) {
            self.date.push(DatePart::Month(month));
            return Ok(());
        }
        if is_weekday(&lower) {
            return Ok(());
        }
        match TimeZone::find(word) {
            Some(zone) => self.set_zone(zone),
            None => Err(Bad::Syntax),
        }
    }

    fn set_special(&mut self, special: Parsed) -> Result<(), Bad> {
        match self.special.replace(special) {
            None => Ok(()),
            Some(_) => Err(Bad::Syntax),
        }
    }

    fn set_zone(&mut self, zone: TimeZone) -> Result<(), Bad> {
        match self.fields.zone.replace(zone) {
            None => Ok(()),
            Some(_) => Err(Bad::Syntax),
        }
    }

    fn set_half(&mut self, half: Half) -> Result<(), Bad> {
        match self.half.replace(half) {
            None => Ok(()),
            Some(_) => Err(Bad::Syntax),
        }
    }

    /// `2024-01-31`, `1/31/2024`, `31-Jan-2024`, `20240131`, or one number of a date in words.
    fn date_token(&mut self, token: &str) -> Result<(), Bad> {
        if token.bytes().all(|byte| byte.is_ascii_digit()) {
            if (token.len() == 8 || token.len() == 6) && self.date.is_empty() {
                let (year, rest) = token.split_at(token.len() - 4);
                let (month, day) = rest.split_at(2);
                self.date.push(full_year(number(year)?));
                self.date.push(number(month)?);
                self.date.push(number(day)?);
                return Ok(());
            }
            self.date.push(number(token)?);
            return Ok(());
        }
        let separator = token.bytes().find(|byte| matches!(byte, b'-' | b'/' | b'.'));
        let separator = separator.ok_or(Bad::Syntax)?;
        if !self.date.is_empty() {
            return Err(Bad::Syntax);
        }
        // A zone may follow: 2024-01-31+02.
        let (date, zone) = match token.split_once('+') {
            Some((date, _)) => (date, Some(&token[date.len()..])),
            None => (token, None),
        };
        for part in date.split(char::from(separator)) {
            let part = match month(&part.to_ascii_lowercase()) {
                Some(month) => DatePart::Month(month),
                None => number(part)?,
            };
            self.date.push(part);
        }
        match zone {
            Some(zone) => self.set_zone(TimeZone::Fixed(offset(zone).ok_or(Bad::Syntax)?)),
            None => Ok(()),
        }
    }

    /// `12:34`, `12:34:56.789`, with AM, PM or a zone right behind.
    fn time_token(&mut self, token: &str) -> Result<(), Bad> {
        let end = token
            .bytes()
            .position(|byte| !(byte.is_ascii_digit() || byte == b':' || byte == b'.'))
            .unwrap_or(token.len());
        let (clock, rest) = token.split_at(end);
        if self.fields.time_us.is_some() {
            return Err(Bad::Syntax);
        }
        self.fields.time_us = Some(clock_us(clock)?);
        if rest.is_empty() { Ok(()) } else { self.token(rest) }
    }

    fn apply_half(&mut self) -> Result<(), Bad> {
        const HOUR_US: i64 = 3_600_000_000;
        let Some(half) = self.half else { return Ok(()) };
        let time = self.fields.time_us.as_mut().ok_or(Bad::Syntax)?;
        let hour = *time / HOUR_US;
        if hour > 12 {
            return Err(Bad::Range);
        }
        match half {
            Half::Morning if hour == 12 => *time -= 12 * HOUR_US,
            Half::Afternoon if hour != 12 => *time += 12 * HOUR_US,
            Half::Morning | Half::Afternoon => {}
        }
        Ok(())
    }
}

/// Where the `T` of ISO 8601 stands.
fn date_time_split(token: &str) -> Option<usize> {
    let bytes = token.as_bytes();
    (1..bytes.len().saturating_sub(1)).find(|&place| {
        bytes[place].eq_ignore_ascii_case(&b't')
            && bytes[place - 1].is_ascii_digit()
            && bytes[place + 1].is_ascii_digit()
    })
}

fn number(text: &str) -> Result<DatePart, Bad> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Bad::Syntax);
    }
    let value = text.parse().map_err(|_| Bad::Range)?;
    Ok(DatePart::Number { value, digits: text.len() })
}

/// A year of two digits as one of four.
fn full_year(year: DatePart) -> DatePart {
    match year {
        DatePart::Number { value, digits: 2 } => {
            DatePart::Number { value: near_year(value), digits: 4 }
        }
        other => other,
    }
}

/// A year without its century is one from 1970 to 2069.
fn near_year(year: i64) -> i64 {
    if year < 70 { 2000 + year } else { 1900 + year }
}

/// Days since 1970-01-01 of the parts: in the order of `DateStyle`'s MDY where they don't tell.
fn day(parts: &[DatePart], before_christ: bool) -> Result<i64, Bad> {
    use DatePart::{Month, Number};
    let [first, second, third] = parts else { return Err(Bad::Syntax) };
    let is_year = |part: &DatePart| matches!(part, Number { digits, .. } if *digits > 2);
    let (year, month, day) = match (first, second, third) {
        (Month(_), Number { .. }, Number { .. }) if is_year(second) => (third, first, second),
        (Month(_), Number { .. }, Number { .. }) => (third, first, second),
        (Number { .. }, Month(_), Number { .. }) if is_year(first) => (first, second, third),
        (Number { .. }, Month(_), Number { .. }) => (third, second, first),
        (Number { .. }, Number { .. }, Number { .. }) if is_year(first) => (first, second, third),
        (Number { .. }, Number { .. }, Number { .. }) => (third, first, second),
        _ => return Err(Bad::Syntax),
    };
    let (Number { value: year, digits }, Number { value: day, digits: day_digits }) = (*year, *day)
    else {
        return Err(Bad::Syntax);
    };
    if day_digits > 2 {
        return Err(Bad::Syntax);
    }
    let month = match *month {
        Month(month) => i64::from(month),
        Number { value, .. } => value,
    };
    let year = match (before_christ, digits) {
        (true, _) if year > 0 => 1 - year,
        (false, ..=2) => near_year(year),
        (false, _) if year > 0 => year,
        _ => return Err(Bad::Range),
    };
    if !(1..=12).contains(&month) {
        return Err(if is_year(first) { Bad::Range } else { Bad::Order });
    }
    let month = month as u32;
    // A year this far off overflows nothing, and is refused by the type's bounds.
    let year = year.min(10_000_000);
    if day < 1 || day > i64::from(days_in_month(year, month)) {
        return Err(Bad::Range);
    }
    Ok(days_from_civil(year, month, day as u32))
}

/// Microseconds since midnight.
fn clock_us(clock: &str) -> Result<i64, Bad> {
    let mut parts = clock.split(':');
    let mut whole = |digits_max: usize| -> Result<Option<i64>, Bad> {
        let Some(part) = parts.next() else { return Ok(None) };
        if part.is_empty() || part.len() > digits_max {
            return Err(Bad::Syntax);
        }
        part.parse().map(Some).map_err(|_| Bad::Syntax)
    };
    let hours = whole(2)?.ok_or(Bad::Syntax)?;
    let minutes = whole(2)?.ok_or(Bad::Syntax)?;
    let seconds_us = match parts.next() {
        Some(seconds) => seconds_us(seconds)?,
        None => 0,
    };
    if parts.next().is_some() {
        return Err(Bad::Syntax);
    }
    if hours > 24 || minutes > 59 || seconds_us > 60_000_000 {
        return Err(Bad::Range);
    }
    let total = (hours * 60 + minutes) * 60_000_000 + seconds_us;
    if total > 86_400_000_000 { Err(Bad::Range) } else { Ok(total) }
}

/// Microseconds of `SS` or `SS.ffffff`, rounded.
fn seconds_us(text: &str) -> Result<i64, Bad> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 2 || !digits(whole) || !digits(fraction) {
        return Err(Bad::Syntax);
    }
    let whole: i64 = whole.parse().map_err(|_| Bad::Syntax)?;
    Ok(whole * 1_000_000 + fraction_us(fraction))
}

/// Microseconds of the digits after a point, rounded.
pub(super) fn fraction_us(digits: &str) -> i64 {
    let mut bytes = digits.bytes();
    let six = (0..6).fold(0, |sum, _| sum * 10 + i64::from(bytes.next().unwrap_or(b'0') - b'0'));
    six + i64::from(bytes.next().is_some_and(|seventh| seventh >= b'5'))
}

/// The month of a full name or its first three letters, in lower case.
fn month(word: &str) -> Option<u32> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let place = MONTHS.iter().position(|name| *name == word || &name[..3] == word);
    place.or((word == "sept").then_some(8)).map(|place| place as u32 + 1)
}

fn is_weekday(word: &str) -> bool {
    const DAYS: [&str; 7] =
        ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
    DAYS.iter().any(|name| *name == word || &name[..3] == word)
        || ["tue", "tues", "wednes", "thur", "thurs"].contains(&word)
}
