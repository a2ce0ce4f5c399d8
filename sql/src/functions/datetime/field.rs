//! The fields of dates, times and intervals.

use arrow::datatypes::IntervalMonthDayNano;
use arrow::error::ArrowError;

use crate::SqlState;
use crate::functions::row::raise;
use crate::text::{
    DAY_US, NEGATIVE_INFINITY_DAYS, POSITIVE_INFINITY_DAYS, TimeZone, civil, days_from_civil,
};

const SECOND_US: i64 = 1_000_000;
const MINUTE_US: i64 = 60 * SECOND_US;
const HOUR_US: i64 = 60 * MINUTE_US;

/// A field or unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Microseconds,
    Milliseconds,
    Second,
    Minute,
    Hour,
    Day,
    DayOfWeek,
    IsoDayOfWeek,
    DayOfYear,
    Week,
    Month,
    Quarter,
    Year,
    IsoYear,
    Decade,
    Century,
    Millennium,
    Epoch,
    Julian,
    Zone,
    ZoneHour,
    ZoneMinute,
}

impl Field {
    pub(super) fn find(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "microsecond" | "microseconds" | "us" | "usec" => Self::Microseconds,
            "millisecond" | "milliseconds" | "ms" | "msec" => Self::Milliseconds,
            "second" | "seconds" | "sec" | "s" => Self::Second,
            "minute" | "minutes" | "min" | "m" => Self::Minute,
            "hour" | "hours" | "h" | "hr" => Self::Hour,
            "day" | "days" | "d" => Self::Day,
            "dow" => Self::DayOfWeek,
            "isodow" => Self::IsoDayOfWeek,
            "doy" => Self::DayOfYear,
            "week" | "weeks" | "w" => Self::Week,
            "month" | "months" | "mon" => Self::Month,
            "quarter" | "qtr" => Self::Quarter,
            "year" | "years" | "y" | "yr" => Self::Year,
            "isoyear" => Self::IsoYear,
            "decade" | "decades" | "dec" => Self::Decade,
            "century" | "centuries" | "cent" | "c" => Self::Century,
            "millennium" | "millennia" | "mil" => Self::Millennium,
            "epoch" => Self::Epoch,
            "julian" => Self::Julian,
            "timezone" => Self::Zone,
            "timezone_hour" => Self::ZoneHour,
            "timezone_minute" => Self::ZoneMinute,
            _ => return None,
        })
    }

    /// Digits after the point.
    pub(super) fn scale(self) -> i8 {
        match self {
            Self::Second | Self::Epoch => 6,
            Self::Milliseconds => 3,
            _ => 0,
        }
    }

    /// Whether it is a unit of time, and no number of one thing in another.
    pub(super) fn is_unit(self) -> bool {
        !matches!(
            self,
            Self::DayOfWeek
                | Self::IsoDayOfWeek
                | Self::DayOfYear
                | Self::IsoYear
                | Self::Epoch
                | Self::Julian
        )
    }

    pub(super) fn is_within_hour(self) -> bool {
        matches!(
            self,
            Self::Microseconds | Self::Milliseconds | Self::Second | Self::Minute | Self::Hour
        )
    }
}

/// What a field is taken of.
#[derive(Clone, Copy)]
pub(super) enum Source {
    Date(i32),
    Time(i64),
    /// On its own clock, or on that of a zone.
    Clock {
        us: i64,
        zone: Option<TimeZone>,
    },
    Infinite,
    Interval(IntervalMonthDayNano),
}

type Row<T> = std::result::Result<T, ArrowError>;

impl Source {
    /// The fields that `date_part` computes in floats from the start.
    pub(super) fn double(self, field: Field) -> Option<f64> {
        const DAY_SECONDS: f64 = 86_400.0;
        match (self, field) {
            (Self::Interval(span), Field::Epoch) => {
                let seconds = (span.nanoseconds / 1000) as f64 / 1_000_000.0;
                let years = 365.25 * DAY_SECONDS * f64::from(span.months / 12);
                let months = 30.0 * DAY_SECONDS * f64::from(span.months % 12);
                Some(seconds + years + months + DAY_SECONDS * f64::from(span.days))
            }
            (Self::Clock { us, zone }, Field::Julian) => {
                let offset = zone.map_or(0, |zone| i64::from(zone.offset_at(us)));
                let local = us.saturating_add(offset * SECOND_US);
                let time = local.rem_euclid(DAY_US);
                let whole = (time / SECOND_US) as f64;
                let seconds = whole + (time % SECOND_US) as f64 / 1_000_000.0;
                let day = local.div_euclid(DAY_US) + 2_440_588;
                Some(day as f64 + seconds / DAY_SECONDS)
            }
            _ => None,
        }
    }

    /// Whether its Julian day is a whole number.
    pub(super) fn is_whole_day(self) -> bool {
        !matches!(self, Self::Clock { .. })
    }

    /// The field in millionths; none if it has no value.
    pub(super) fn field(self, field: Field, kind: &str) -> Row<Option<i128>> {
        let millionths = |value: i64| i128::from(value) * 1_000_000;
        let found = match self {
            Self::Date(POSITIVE_INFINITY_DAYS | NEGATIVE_INFINITY_DAYS) | Self::Infinite => {
                return infinite(field, kind);
            }
            Self::Date(days) => match field {
                Field::Epoch => Some(millionths(i64::from(days) * 86_400)),
                // A date has no time of day.
                field if field.is_within_hour() => None,
                Field::Zone | Field::ZoneHour | Field::ZoneMinute => None,
                field => day_field(i64::from(days), field).map(millionths),
            },
            Self::Time(us) => match field {
                Field::Epoch => Some(i128::from(us)),
                field => clock_field(us, field),
            },
            Self::Clock { us, zone } => {
                let offset = zone.map(|zone| i64::from(zone.offset_at(us)));
                let local = us.saturating_add(offset.unwrap_or(0) * SECOND_US);
                match (field, offset) {
                    (Field::Epoch, _) => Some(i128::from(us)),
                    (Field::Zone, Some(offset)) => Some(millionths(offset)),
                    (Field::ZoneHour, Some(offset)) => Some(millionths(offset / 3600)),
                    (Field::ZoneMinute, Some(offset)) => Some(millionths(offset / 60 % 60)),
                    (Field::Zone | Field::ZoneHour | Field::ZoneMinute, None) => None,
                    (Field::Julian, _) => {
                        let day = local.div_euclid(DAY_US) + 2_440_588;
                        // The time of day is the fraction of the day.
                        Some(millionths(day) + i128::from(local.rem_euclid(DAY_US) / 86_400))
                    }
                    (field, _) => clock_field(local.rem_euclid(DAY_US), field)
                        .or_else(|| day_field(local.div_euclid(DAY_US), field).map(millionths)),
                }
            }
            Self::Interval(span) => interval_field(span, field),
        };
        found.map(Some).ok_or_else(|| {
            let name = format!("{field:?}").to_lowercase();
            let message = format!("unit \"{name}\" not supported for type {kind}");
            raise(SqlState::FEATURE_NOT_SUPPORTED, message)
        })
    }
}

/// Fields that go round and round have no value at infinity; the others would have an infinite one.
fn infinite(field: Field, kind: &str) -> Row<Option<i128>> {
    match field {
        Field::Year
        | Field::IsoYear
        | Field::Decade
        | Field::Century
        | Field::Millennium
        | Field::Epoch
        | Field::Julian => {
            let message = format!("an infinite field of a {kind} is not supported");
            Err(raise(SqlState::FEATURE_NOT_SUPPORTED, message))
        }
        _ => Ok(None),
    }
}

fn clock_field(us: i64, field: Field) -> Option<i128> {
    let millionths = |value: i64| i128::from(value) * 1_000_000;
    Some(match field {
        Field::Microseconds => millionths(us % MINUTE_US),
        Field::Milliseconds => i128::from(us % MINUTE_US) * 1000,
        Field::Second => i128::from(us % MINUTE_US),
        Field::Minute => millionths(us / MINUTE_US % 60),
        Field::Hour => millionths(us / HOUR_US),
        _ => return None,
    })
}

/// 0 is Sunday.
fn day_of_week(days: i64) -> i64 {
    (days + 4).rem_euclid(7)
}

/// The ISO year and week of a day: the year is that of the week's Thursday.
fn iso_week(days: i64) -> (i64, i64) {
    let monday = days - (day_of_week(days) + 6) % 7;
    let (year, ..) = civil(monday + 3);
    let first = days_from_civil(year, 1, 4);
    let first_monday = first - (day_of_week(first) + 6) % 7;
    (year, (monday - first_monday) / 7 + 1)
}

fn day_field(days: i64, field: Field) -> Option<i64> {
    let (year, month, day) = civil(days);
    // There is no year 0.
    let shown = |year: i64| if year > 0 { year } else { year - 1 };
    let periods = |years: i64| {
        if year > 0 { (year + years - 1) / years } else { -((years - 1 - (year - 1)) / years) }
    };
    Some(match field {
        Field::Day => day.into(),
        Field::Month => month.into(),
        Field::Quarter => i64::from((month - 1) / 3 + 1),
        Field::Year => shown(year),
        Field::IsoYear => shown(iso_week(days).0),
        Field::Week => iso_week(days).1,
        Field::DayOfWeek => day_of_week(days),
        Field::IsoDayOfWeek => (day_of_week(days) + 6) % 7 + 1,
        Field::DayOfYear => days - days_from_civil(year, 1, 1) + 1,
        Field::Decade => year.div_euclid(10),
        Field::Century => periods(100),
        Field::Millennium => periods(1000),
        Field::Julian => days + 2_440_588,
        _ => return None,
    })
}

fn interval_field(span: IntervalMonthDayNano, field: Field) -> Option<i128> {
    let us = span.nanoseconds / 1000;
    let months = i64::from(span.months);
    let millionths = |value: i64| i128::from(value) * 1_000_000;
    Some(match field {
        Field::Microseconds => millionths(us % MINUTE_US),
        Field::Milliseconds => i128::from(us % MINUTE_US) * 1000,
        Field::Second => i128::from(us % MINUTE_US),
        Field::Minute => millionths(us / MINUTE_US % 60),
        Field::Hour => millionths(us / HOUR_US),
        Field::Day => millionths(span.days.into()),
        Field::Month => millionths(months % 12),
        Field::Quarter => millionths(months % 12 / 3 + 1),
        Field::Year => millionths(months / 12),
        Field::Decade => millionths(months / 120),
        Field::Century => millionths(months / 1200),
        Field::Millennium => millionths(months / 12_000),
        Field::Epoch => {
            // A year has 365.25 days here, a month 30.
            let days = i128::from(months % 12) * 30 + i128::from(span.days);
            i128::from(months / 12) * 31_557_600_000_000
                + days * i128::from(DAY_US)
                + i128::from(us)
        }
        _ => return None,
    })
}

/// The beginning of the unit in which a clock stands.
pub(super) fn truncate(us: i64, unit: Field) -> Option<i64> {
    let (days, time) = (us.div_euclid(DAY_US), us.rem_euclid(DAY_US));
    let (year, month, _) = civil(days);
    let start = |year, month| days_from_civil(year, month, 1) * DAY_US;
    Some(match unit {
        Field::Microseconds => us,
        Field::Milliseconds => us - time % 1000,
        Field::Second => us - time % SECOND_US,
        Field::Minute => us - time % MINUTE_US,
        Field::Hour => us - time % HOUR_US,
        Field::Day => days * DAY_US,
        Field::Week => (days - (day_of_week(days) + 6) % 7) * DAY_US,
        Field::Month => start(year, month),
        Field::Quarter => start(year, (month - 1) / 3 * 3 + 1),
        Field::Year => start(year, 1),
        Field::Decade => start(year.div_euclid(10) * 10, 1),
        Field::Century => start((year - 1).div_euclid(100) * 100 + 1, 1),
        Field::Millennium => start((year - 1).div_euclid(1000) * 1000 + 1, 1),
        _ => return None,
    })
}

/// The whole units of an interval, counted towards zero.
pub(super) fn truncate_interval(
    span: IntervalMonthDayNano,
    unit: Field,
) -> Option<IntervalMonthDayNano> {
    let months = |unit: i32| IntervalMonthDayNano::new(span.months / unit * unit, 0, 0);
    let time = |us: i64| {
        let unit = us * 1000;
        IntervalMonthDayNano::new(span.months, span.days, span.nanoseconds / unit * unit)
    };
    Some(match unit {
        Field::Millennium => months(12_000),
        Field::Century => months(1200),
        Field::Decade => months(120),
        Field::Year => months(12),
        Field::Quarter => months(3),
        Field::Month => months(1),
        Field::Day => IntervalMonthDayNano::new(span.months, span.days, 0),
        Field::Hour => time(HOUR_US),
        Field::Minute => time(MINUTE_US),
        Field::Second => time(SECOND_US),
        Field::Milliseconds => time(1000),
        Field::Microseconds => time(1),
        _ => return None,
    })
}
