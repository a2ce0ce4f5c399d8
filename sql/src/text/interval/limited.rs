//! Intervals limited to fields, as in `INTERVAL '1' YEAR` and `INTERVAL DAY TO SECOND (2)`.

use arrow::datatypes::IntervalMonthDayNano;

use super::{Unit, parse};
use crate::{Error, SqlState};

/// The last field that an interval has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Last {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    #[default]
    Second,
}

/// What an interval's type says of its fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limit {
    last: Last,
    begins_with_minutes: bool,
}

impl Limit {
    /// Reads `day to second` and its like; nothing limits nothing.
    pub(crate) fn find(fields: &str) -> Option<Self> {
        let (first, last) = fields.split_once(" to ").unwrap_or((fields, fields));
        let last = match last {
            "year" => Last::Year,
            "month" => Last::Month,
            "day" => Last::Day,
            "hour" => Last::Hour,
            "minute" => Last::Minute,
            "second" | "" => Last::Second,
            _ => return None,
        };
        Some(Self { last, begins_with_minutes: first == "minute" && last == Last::Second })
    }

    /// Reads an interval and limits it.
    pub(crate) fn read(self, text: &str, digits: u32) -> Result<IntervalMonthDayNano, Error> {
        self.apply(parse(text, self)?, digits)
    }

    /// Takes away what is below the last field, and rounds seconds to so many digits.
    pub(crate) fn apply(
        self,
        value: IntervalMonthDayNano,
        digits: u32,
    ) -> Result<IntervalMonthDayNano, Error> {
        let IntervalMonthDayNano { months, days, nanoseconds } = value;
        let whole = |unit_ns: i64| nanoseconds / unit_ns * unit_ns;
        Ok(match self.last {
            Last::Year => IntervalMonthDayNano::new(months / 12 * 12, 0, 0),
            Last::Month => IntervalMonthDayNano::new(months, 0, 0),
            Last::Day => IntervalMonthDayNano::new(months, days, 0),
            Last::Hour => IntervalMonthDayNano::new(months, days, whole(3_600_000_000_000)),
            Last::Minute => IntervalMonthDayNano::new(months, days, whole(60_000_000_000)),
            Last::Second => {
                let unit = 10_i64.pow(9 - digits.min(6));
                let half = if unit > 1000 { nanoseconds.signum() * unit / 2 } else { 0 };
                let rounded = nanoseconds.checked_add(half).ok_or_else(|| {
                    Error::new(SqlState::DATETIME_FIELD_OVERFLOW, "interval out of range")
                })?;
                IntervalMonthDayNano::new(months, days, rounded / unit * unit)
            }
        })
    }

    /// What a number without a unit counts.
    pub(super) fn unit(self) -> Unit {
        match self.last {
            Last::Year => Unit::Months(12),
            Last::Month => Unit::Months(1),
            Last::Day => Unit::Days(1),
            Last::Hour => Unit::Microseconds(3_600_000_000),
            Last::Minute => Unit::Microseconds(60_000_000),
            Last::Second => Unit::Microseconds(1_000_000),
        }
    }

    /// Whether `1:02` are minutes and seconds.
    pub(super) fn begins_with_minutes(self) -> bool {
        self.begins_with_minutes
    }
}
