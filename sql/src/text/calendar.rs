//! Days and microseconds, in the proleptic Gregorian calendar, within PostgreSQL's bounds.
//!
//! Both count from 1970-01-01. The lowest and highest number stand for `-infinity` and `infinity`.

use crate::{Error, SqlState};

/// Microseconds of a day.
pub(crate) const DAY_US: i64 = 86_400_000_000;
/// `date 'infinity'`.
pub(crate) const POSITIVE_INFINITY_DAYS: i32 = i32::MAX;
/// `date '-infinity'`.
pub(crate) const NEGATIVE_INFINITY_DAYS: i32 = i32::MIN;
/// `timestamp 'infinity'`.
pub(crate) const POSITIVE_INFINITY_US: i64 = i64::MAX;
/// `timestamp '-infinity'`.
pub(crate) const NEGATIVE_INFINITY_US: i64 = i64::MIN;

/// 4714-11-24 BC, Julian day 0.
const FIRST_DAY: i64 = -2_440_588;
/// The day after 5874897-12-31.
const DATE_END: i64 = 2_145_042_906;
/// The day after 294246-12-31. PostgreSQL counts from 2000 and so reaches 30 years further.
const TIMESTAMP_END: i64 = 106_751_982;

/// Days since 1970-01-01 of a year (0 is 1 BC), month and day; the day may be too large.
pub(crate) fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = i64::from((month + 9) % 12);
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The year (0 is 1 BC), month and day of a day.
pub(crate) fn civil(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u32;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month as u32, day)
}

/// How many days a month has.
pub(crate) fn days_in_month(year: i64, month: u32) -> u32 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The day, if PostgreSQL has it: 22008 otherwise, with `shown` as the value.
pub(crate) fn check_date(days: i64, shown: Option<&str>) -> Result<i32, Error> {
    match i32::try_from(days) {
        Ok(days) if (FIRST_DAY..DATE_END).contains(&i64::from(days)) => Ok(days),
        _ => Err(out_of_range("date", shown)),
    }
}

/// The moment, if PostgreSQL has it: 22008 otherwise, with `shown` as the value.
pub(crate) fn check_timestamp(us: Option<i64>, shown: Option<&str>) -> Result<i64, Error> {
    match us {
        Some(us) if (FIRST_DAY..TIMESTAMP_END).contains(&us.div_euclid(DAY_US)) => Ok(us),
        _ => Err(out_of_range("timestamp", shown)),
    }
}

fn out_of_range(kind: &str, shown: Option<&str>) -> Error {
    let message = match shown {
        Some(shown) => format!("{kind} out of range: \"{shown}\""),
        None => format!("{kind} out of range"),
    };
    Error::new(SqlState::DATETIME_FIELD_OVERFLOW, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn civil_and_days_are_inverse() {
        for days in (-2_440_588..2_145_042_906).step_by(999_983) {
            let (year, month, day) = civil(days);
            assert_eq!(days_from_civil(year, month, day), days);
        }
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(FIRST_DAY), (-4713, 11, 24));
        assert_eq!(civil(DATE_END), (5_874_898, 1, 1));
        assert_eq!(civil(TIMESTAMP_END), (294_247, 1, 1));
    }
}
