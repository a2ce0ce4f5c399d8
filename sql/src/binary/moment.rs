//! Dates and moments: PostgreSQL's binary format counts from 2000, Arrow from 1970.
//!
//! The ends of a type's range stand for infinity in both.

use crate::{Error, SqlState};

const EPOCH_DAYS: i32 = 10_957;
const DAY_US: i64 = 86_400_000_000;
const EPOCH_US: i64 = EPOCH_DAYS as i64 * DAY_US;

/// Days since 2000, of days since 1970.
pub(super) fn date_since_2000(days: i32) -> Result<i32, Error> {
    match days {
        i32::MIN | i32::MAX => Ok(days),
        days => days.checked_sub(EPOCH_DAYS).ok_or_else(out_of_range),
    }
}

/// Microseconds since 2000, of microseconds since 1970.
pub(super) fn since_2000(moment_us: i64) -> Result<i64, Error> {
    match moment_us {
        i64::MIN | i64::MAX => Ok(moment_us),
        moment_us => moment_us.checked_sub(EPOCH_US).ok_or_else(out_of_range),
    }
}

/// The text of days since 2000.
pub(super) fn date(days: i32) -> Result<String, Error> {
    match days {
        i32::MIN => Ok("-infinity".to_owned()),
        i32::MAX => Ok("infinity".to_owned()),
        days => {
            let (date, era) = civil(days.into())?;
            Ok(format!("{date}{era}"))
        }
    }
}

/// The text of microseconds since 2000, with an offset after the time.
pub(super) fn timestamp(moment_us: i64, offset: &str) -> Result<String, Error> {
    match moment_us {
        i64::MIN => Ok("-infinity".to_owned()),
        i64::MAX => Ok("infinity".to_owned()),
        moment_us => {
            let (date, era) = civil(moment_us.div_euclid(DAY_US))?;
            let time = time(moment_us.rem_euclid(DAY_US)).ok_or_else(out_of_range)?;
            Ok(format!("{date} {time}{offset}{era}"))
        }
    }
}

/// The text of microseconds since midnight; none if there are too many for a day.
pub(super) fn time(us: i64) -> Option<String> {
    if !(0..=DAY_US).contains(&us) {
        return None;
    }
    let (hours, minutes) = (us / 3_600_000_000, us / 60_000_000 % 60);
    let (seconds, us) = (us / 1_000_000 % 60, us % 1_000_000);
    Some(format!("{hours:02}:{minutes:02}:{seconds:02}.{us:06}"))
}

/// The date and the era's suffix of days since 2000, in the proleptic Gregorian calendar.
fn civil(days: i64) -> Result<(String, &'static str), Error> {
    /// Days of 400 years, after which the calendar begins anew.
    const ERA_DAYS: i64 = 146_097;
    // Counted from 0000-03-01, so that a leap day is the last of its year.
    let days = days.checked_add(EPOCH_DAYS as i64 + 719_468).ok_or_else(out_of_range)?;
    let (era, day) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) =
        (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = era * 400 + year + i64::from(month <= 2);
    // There is no year 0: it is 1 BC.
    let (year, era) = if year > 0 { (year, "") } else { (1 - year, " BC") };
    Ok((format!("{year:04}-{month:02}-{day:02}"), era))
}

fn out_of_range() -> Error {
    Error::new(SqlState::DATETIME_FIELD_OVERFLOW, "date is out of range")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_era_is_told() {
        assert_eq!(date(-730_120).unwrap(), "0001-12-31 BC");
        assert_eq!(date(-730_119).unwrap(), "0001-01-01");
        assert_eq!(date(2_145_031_948).unwrap(), "5874897-12-31");
        assert_eq!(date(-2_451_545).unwrap(), "4714-11-24 BC");
    }

    #[test]
    fn the_fraction_of_an_early_moment_counts_forward() {
        assert_eq!(timestamp(-1, "").unwrap(), "1999-12-31 23:59:59.999999");
        assert_eq!(timestamp(i64::MIN, "+00").unwrap(), "-infinity");
    }
}
