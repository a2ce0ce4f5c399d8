//! Time zones by name or offset.

use std::fmt;

use chrono::{DateTime, LocalResult, NaiveDateTime, Offset, TimeZone as _};
use chrono_tz::Tz;

use crate::{Error, SqlState};

/// A time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeZone {
    /// One of the IANA database.
    Named(Tz),
    /// Seconds east of Greenwich.
    Fixed(i32),
}

impl Default for TimeZone {
    fn default() -> Self {
        Self::Named(Tz::UTC)
    }
}

/// Chrono's calendar ends before PostgreSQL's; no zone changes its offset out there.
const CHRONO_US_MAX: i64 = 8_000_000_000_000_000_000;

impl TimeZone {
    /// The zone of a name (`Europe/Berlin`, in any case), an abbreviation of UTC, an ISO offset
    /// (`+02`, `+05:30`: east is positive) or, as `SET TIME ZONE` takes it, a number of hours. 22023
    /// if there is none.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let name = text.trim();
        if let Ok(hours) = name.parse::<f64>()
            && !name.starts_with('+')
            && hours.abs() <= 168.0
        {
            return Ok(Self::Fixed((hours * 3600.0).round() as i32));
        }
        Self::find(name).ok_or_else(|| {
            let message = format!("invalid value for parameter \"TimeZone\": \"{text}\"");
            Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
        })
    }

    /// The zone of a name or an ISO offset.
    pub(crate) fn find(name: &str) -> Option<Self> {
        if let Some(seconds) = offset(name) {
            return Some(Self::Fixed(seconds));
        }
        if ["utc", "gmt", "z", "zulu", "ut"].iter().any(|utc| name.eq_ignore_ascii_case(utc)) {
            return Some(Self::default());
        }
        chrono_tz::TZ_VARIANTS
            .iter()
            .find(|zone| zone.name().eq_ignore_ascii_case(name))
            .map(|zone| Self::Named(*zone))
    }

    /// Seconds east of Greenwich at a moment (microseconds since 1970 UTC).
    pub(crate) fn offset_at(&self, us: i64) -> i32 {
        match self {
            Self::Fixed(seconds) => *seconds,
            Self::Named(Tz::UTC) => 0,
            Self::Named(zone) => match DateTime::from_timestamp_micros(clamp(us)) {
                Some(moment) => {
                    zone.offset_from_utc_datetime(&moment.naive_utc()).fix().local_minus_utc()
                }
                None => 0,
            },
        }
    }

    /// The moment (microseconds since 1970 UTC) at which clocks in the zone show `local`; none if it
    /// doesn't fit.
    ///
    /// What clocks skip is read with the offset before, what they repeat with the one after: as in
    /// PostgreSQL, standard time wins.
    pub(crate) fn moment(&self, local: i64) -> Option<i64> {
        let seconds = match self {
            Self::Fixed(seconds) => *seconds,
            Self::Named(Tz::UTC) => 0,
            Self::Named(zone) => {
                let naive = DateTime::from_timestamp_micros(clamp(local))?.naive_utc();
                local_offset(*zone, naive)
            }
        };
        local.checked_sub(i64::from(seconds) * 1_000_000)
    }
}

fn clamp(us: i64) -> i64 {
    us.clamp(-CHRONO_US_MAX, CHRONO_US_MAX)
}

fn local_offset(zone: Tz, local: NaiveDateTime) -> i32 {
    match zone.offset_from_local_datetime(&local) {
        LocalResult::Single(offset) => offset.fix().local_minus_utc(),
        LocalResult::Ambiguous(_, later) => later.fix().local_minus_utc(),
        LocalResult::None => {
            // No zone skips more than a day; the offset a day before is the one before the gap.
            let before = local - chrono::TimeDelta::days(1);
            match zone.offset_from_local_datetime(&before) {
                LocalResult::Single(offset) | LocalResult::Ambiguous(_, offset) => {
                    offset.fix().local_minus_utc()
                }
                LocalResult::None => 0,
            }
        }
    }
}

/// Seconds of `+HH`, `+HHMM`, `+HH:MM` or `+HH:MM:SS`.
pub(super) fn offset(text: &str) -> Option<i32> {
    let negative = match text.as_bytes().first()? {
        b'+' => false,
        b'-' => true,
        _ => return None,
    };
    let rest = &text[1..];
    let mut fields = [0; 3];
    if rest.contains(':') {
        for (place, part) in rest.split(':').enumerate() {
            *fields.get_mut(place)? = number(part)?;
        }
    } else if rest.len() > 2 {
        let (hours, minutes) = rest.split_at_checked(rest.len() - 2)?;
        fields = [number(hours)?, number(minutes)?, 0];
    } else {
        fields[0] = number(rest)?;
    }
    let [hours, minutes, seconds] = fields;
    // PostgreSQL takes less than 16 hours.
    if hours > 15 || minutes > 59 || seconds > 59 {
        return None;
    }
    let total = hours * 3600 + minutes * 60 + seconds;
    Some(if negative { -total } else { total })
}

fn number(text: &str) -> Option<i32> {
    if text.is_empty() || text.len() > 2 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Appends an offset as PostgreSQL shows it: `+00`, `-03:30`, `+00:19:32`.
pub(super) fn write_offset(seconds: i32, out: &mut Vec<u8>) {
    let sign = if seconds < 0 { b'-' } else { b'+' };
    let total = seconds.unsigned_abs();
    out.push(sign);
    two_digits(total / 3600, out);
    let (minutes, seconds) = (total / 60 % 60, total % 60);
    if minutes != 0 || seconds != 0 {
        out.push(b':');
        two_digits(minutes, out);
    }
    if seconds != 0 {
        out.push(b':');
        two_digits(seconds, out);
    }
}

/// Appends two digits; more if there are.
pub(super) fn two_digits(value: u32, out: &mut Vec<u8>) {
    if value >= 100 {
        two_digits(value / 100, out);
    }
    out.push(b'0' + (value / 10 % 10) as u8);
    out.push(b'0' + (value % 10) as u8);
}

impl fmt::Display for TimeZone {
    /// As `SHOW TimeZone` has it, and as `SET` reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(zone) => f.write_str(zone.name()),
            Self::Fixed(seconds) => {
                let mut text = vec![];
                write_offset(*seconds, &mut text);
                f.write_str(std::str::from_utf8(&text).expect("digits and signs only"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_US: i64 = 3_600_000_000;

    #[test]
    fn zones_are_found_by_name_and_offset() {
        assert_eq!(TimeZone::parse("europe/berlin").unwrap().to_string(), "Europe/Berlin");
        assert_eq!(TimeZone::parse("utc").unwrap(), TimeZone::default());
        assert_eq!(TimeZone::parse("+05:30").unwrap(), TimeZone::Fixed(19_800));
        assert_eq!(TimeZone::parse("-7").unwrap(), TimeZone::Fixed(-25_200));
        assert_eq!(
            TimeZone::find(&TimeZone::Fixed(-12_600).to_string()),
            Some(TimeZone::Fixed(-12_600))
        );
        let error = TimeZone::parse("Nowhere/There").unwrap_err();
        assert_eq!(error.state, SqlState::INVALID_PARAMETER_VALUE);
    }

    #[test]
    fn skipped_and_repeated_hours_are_standard_time() {
        let berlin = TimeZone::parse("Europe/Berlin").unwrap();
        // 2024-03-31 02:30 doesn't exist, 2024-10-27 02:30 exists twice.
        let skipped = 19_813 * DAY + HOUR_US * 5 / 2;
        assert_eq!(berlin.moment(skipped), Some(skipped - HOUR_US));
        let repeated = 20_023 * DAY + HOUR_US * 5 / 2;
        assert_eq!(berlin.moment(repeated), Some(repeated - HOUR_US));
    }

    const DAY: i64 = 24 * HOUR_US;
}
