//! `date`, `time`, `timestamp` and `timestamptz` in text.

use crate::Error;
use crate::text::calendar::{
    DAY_US, NEGATIVE_INFINITY_DAYS, NEGATIVE_INFINITY_US, POSITIVE_INFINITY_DAYS,
    POSITIVE_INFINITY_US, check_date, check_timestamp, civil, days_from_civil, days_in_month,
};
use crate::text::date::{Fields, Parsed, invalid, parse};
use crate::text::integer::write_integer;
use crate::text::zone::{two_digits, write_offset};
use crate::text::{TextFormat, TimeZone};

/// Reads a `date`: days since 1970-01-01.
pub(super) fn date(text: &str) -> Result<i32, Error> {
    if let Some(days) = iso_date(text.as_bytes()) {
        return Ok(days);
    }
    match parse(text, "date")? {
        Parsed::Infinity => Ok(POSITIVE_INFINITY_DAYS),
        Parsed::NegativeInfinity => Ok(NEGATIVE_INFINITY_DAYS),
        Parsed::Fields(Fields { days: Some(days), .. }) => check_date(days, Some(text)),
        Parsed::Fields(_) => Err(invalid(text, "date")),
    }
}

/// The one form that nearly all dates have, at a glance: `2024-01-31`.
fn iso_date(text: &[u8]) -> Option<i32> {
    let [a, b, c, d, b'-', e, f, b'-', g, h] = text else { return None };
    let digits = [a, b, c, d, e, f, g, h];
    if !digits.iter().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let pair = |high: &u8, low: &u8| u32::from(high - b'0') * 10 + u32::from(low - b'0');
    let (year, month, day) = (pair(a, b) * 100 + pair(c, d), pair(e, f), pair(g, h));
    let year = i64::from(year);
    let exists =
        year > 0 && (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
    exists.then(|| days_from_civil(year, month, day) as i32)
}

/// Reads a `time`: microseconds since midnight.
pub(super) fn time(text: &str) -> Result<i64, Error> {
    match parse(text, "time")? {
        Parsed::Fields(Fields { time_us: Some(time), .. }) => Ok(time),
        Parsed::Fields(_) | Parsed::Infinity | Parsed::NegativeInfinity => {
            Err(invalid(text, "time"))
        }
    }
}

/// Reads a `timestamp`: microseconds since 1970-01-01 on its own clock.
pub(super) fn timestamp(text: &str) -> Result<i64, Error> {
    match local(text, "timestamp")? {
        Local::Clock(us, _) => check_timestamp(us, Some(text)),
        Local::Infinite(us) => Ok(us),
    }
}

/// Reads a `timestamptz`: microseconds since 1970-01-01 UTC.
pub(super) fn timestamptz(text: &str, format: &TextFormat) -> Result<i64, Error> {
    match local(text, "timestamp with time zone")? {
        Local::Clock(us, zone) => {
            let zone = zone.unwrap_or(format.time_zone);
            check_timestamp(us.and_then(|us| zone.moment(us)), Some(text))
        }
        Local::Infinite(us) => Ok(us),
    }
}

enum Local {
    /// What clocks show, if it fits, and where they hang.
    Clock(Option<i64>, Option<TimeZone>),
    Infinite(i64),
}

fn local(text: &str, kind: &str) -> Result<Local, Error> {
    match parse(text, kind)? {
        Parsed::Infinity => Ok(Local::Infinite(POSITIVE_INFINITY_US)),
        Parsed::NegativeInfinity => Ok(Local::Infinite(NEGATIVE_INFINITY_US)),
        Parsed::Fields(Fields { days: Some(days), time_us, zone }) => {
            let us = days.checked_mul(DAY_US).and_then(|us| us.checked_add(time_us.unwrap_or(0)));
            Ok(Local::Clock(us, zone))
        }
        Parsed::Fields(_) => Err(invalid(text, kind)),
    }
}

/// Appends a `date`.
pub(super) fn write_date(days: i32, out: &mut Vec<u8>) {
    match days {
        POSITIVE_INFINITY_DAYS => out.extend_from_slice(b"infinity"),
        NEGATIVE_INFINITY_DAYS => out.extend_from_slice(b"-infinity"),
        days => {
            let era = write_day(i64::from(days), out);
            out.extend_from_slice(era);
        }
    }
}

/// Appends a `time`.
pub(super) fn write_time(us: i64, out: &mut Vec<u8>) {
    let seconds = us.div_euclid(1_000_000) as u32;
    two_digits(seconds / 3600, out);
    out.push(b':');
    two_digits(seconds / 60 % 60, out);
    out.push(b':');
    two_digits(seconds % 60, out);
    write_fraction(us.rem_euclid(1_000_000) as u32, out);
}

/// Appends a `timestamp`.
pub(super) fn write_timestamp(us: i64, out: &mut Vec<u8>) {
    if !write_infinity(us, out) {
        let era = write_clock(us, out);
        out.extend_from_slice(era);
    }
}

/// Appends a `timestamptz` as clocks in the zone show it.
pub(super) fn write_timestamptz(us: i64, zone: TimeZone, out: &mut Vec<u8>) {
    if !write_infinity(us, out) {
        let offset = zone.offset_at(us);
        let era = write_clock(us.saturating_add(i64::from(offset) * 1_000_000), out);
        write_offset(offset, out);
        out.extend_from_slice(era);
    }
}

fn write_infinity(us: i64, out: &mut Vec<u8>) -> bool {
    let text: &[u8] = match us {
        POSITIVE_INFINITY_US => b"infinity",
        NEGATIVE_INFINITY_US => b"-infinity",
        _ => return false,
    };
    out.extend_from_slice(text);
    true
}

/// Appends day and time; returns what must follow.
fn write_clock(us: i64, out: &mut Vec<u8>) -> &'static [u8] {
    let era = write_day(us.div_euclid(DAY_US), out);
    out.push(b' ');
    write_time(us.rem_euclid(DAY_US), out);
    era
}

/// Appends a day; returns what must follow.
fn write_day(days: i64, out: &mut Vec<u8>) -> &'static [u8] {
    let (year, month, day) = civil(days);
    let (year, era): (_, &[u8]) = if year > 0 { (year, b"") } else { (1 - year, b" BC") };
    for width in [1000, 100, 10] {
        if year < width {
            out.push(b'0');
        }
    }
    write_integer(year, out);
    out.push(b'-');
    two_digits(month, out);
    out.push(b'-');
    two_digits(day, out);
    era
}

/// Appends what isn't zero of a fraction of a second.
pub(super) fn write_fraction(us: u32, out: &mut Vec<u8>) {
    if us == 0 {
        return;
    }
    out.push(b'.');
    let start = out.len();
    two_digits(us / 10_000, out);
    two_digits(us / 100 % 100, out);
    two_digits(us % 100, out);
    let digits = out[start..].iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
    out.truncate(start + digits);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SqlState;

    fn date_text(text: &str) -> String {
        let mut out = vec![];
        write_date(date(text).unwrap(), &mut out);
        String::from_utf8(out).unwrap()
    }

    fn timestamp_text(text: &str) -> String {
        let mut out = vec![];
        write_timestamp(timestamp(text).unwrap(), &mut out);
        String::from_utf8(out).unwrap()
    }

    fn timestamptz_text(text: &str, zone: &str) -> String {
        let format =
            TextFormat { time_zone: TimeZone::parse(zone).unwrap(), ..TextFormat::default() };
        let mut out = vec![];
        let us = timestamptz(text, &format).unwrap();
        write_timestamptz(us, format.time_zone, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn dates_are_read_in_many_forms() {
        let cases = [
            ("2024-01-31", "2024-01-31"),
            (" 2024-1-3 ", "2024-01-03"),
            ("1/31/2024", "2024-01-31"),
            ("20240131", "2024-01-31"),
            ("990131", "1999-01-31"),
            ("31-Jan-24", "2024-01-31"),
            ("January 8, 1999", "1999-01-08"),
            ("8 January 1999", "1999-01-08"),
            ("Mon 8 jan 1999", "1999-01-08"),
            ("0044-03-15 BC", "0044-03-15 BC"),
            ("10000-01-01", "10000-01-01"),
            ("5874897-12-31", "5874897-12-31"),
            ("0999-01-01", "0999-01-01"),
            ("2024-01-31 23:59", "2024-01-31"),
            ("epoch", "1970-01-01"),
            ("infinity", "infinity"),
            ("-infinity", "-infinity"),
        ];
        for (text, expected) in cases {
            assert_eq!(date_text(text), expected, "{text}");
        }
    }

    #[test]
    fn bad_dates_are_told_apart() {
        let cases = [
            ("abc", SqlState::INVALID_DATETIME_FORMAT),
            ("", SqlState::INVALID_DATETIME_FORMAT),
            ("2024-01", SqlState::INVALID_DATETIME_FORMAT),
            ("12:00", SqlState::INVALID_DATETIME_FORMAT),
            ("2024-02-30", SqlState::DATETIME_FIELD_OVERFLOW),
            ("2024-13-01", SqlState::DATETIME_FIELD_OVERFLOW),
            ("13/13/2024", SqlState::DATETIME_FIELD_OVERFLOW),
            ("0000-01-01", SqlState::DATETIME_FIELD_OVERFLOW),
            ("5874898-01-01", SqlState::DATETIME_FIELD_OVERFLOW),
            ("99999999999-01-01", SqlState::DATETIME_FIELD_OVERFLOW),
            ("today", SqlState::FEATURE_NOT_SUPPORTED),
        ];
        for (text, state) in cases {
            assert_eq!(date(text).unwrap_err().state, state, "{text}");
        }
    }

    #[test]
    fn timestamps_are_read_and_written() {
        let cases = [
            ("2024-01-31 23:59:59.999999", "2024-01-31 23:59:59.999999"),
            ("2024-01-31T10:00:00Z", "2024-01-31 10:00:00"),
            ("2024-01-31 10:00:00.5+02", "2024-01-31 10:00:00.5"),
            ("2024-01-31 01:02 PM", "2024-01-31 13:02:00"),
            ("2024-01-31 12:00am", "2024-01-31 00:00:00"),
            ("2024-01-31", "2024-01-31 00:00:00"),
            ("2024-01-31 24:00", "2024-02-01 00:00:00"),
            ("0044-03-15 BC", "0044-03-15 00:00:00 BC"),
            ("294246-12-31 23:59:59", "294246-12-31 23:59:59"),
            ("1969-12-31 23:59:59.9999996", "1970-01-01 00:00:00"),
            ("infinity", "infinity"),
        ];
        for (text, expected) in cases {
            assert_eq!(timestamp_text(text), expected, "{text}");
        }
        let state = |text| timestamp(text).unwrap_err().state;
        assert_eq!(state("2024-01-31 25:00"), SqlState::DATETIME_FIELD_OVERFLOW);
        assert_eq!(state("294247-01-01"), SqlState::DATETIME_FIELD_OVERFLOW);
        assert_eq!(state("2024-01-31 10:00 10:00"), SqlState::INVALID_DATETIME_FORMAT);
    }

    #[test]
    fn moments_are_shown_in_the_session_zone() {
        assert_eq!(timestamptz_text("2013-12-05T22:00:00Z", "UTC"), "2013-12-05 22:00:00+00");
        assert_eq!(
            timestamptz_text("2024-07-01 12:00+00", "Europe/Berlin"),
            "2024-07-01 14:00:00+02"
        );
        assert_eq!(timestamptz_text("2024-07-01 12:00", "Europe/Berlin"), "2024-07-01 12:00:00+02");
        assert_eq!(
            timestamptz_text("2024-07-01 12:00 America/New_York", "+05:30"),
            "2024-07-01 21:30:00+05:30"
        );
        assert_eq!(timestamptz_text("0044-03-15 BC", "UTC"), "0044-03-15 00:00:00+00 BC");
    }
}
