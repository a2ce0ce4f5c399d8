//! Values as PostgreSQL writes and reads them in text.
//!
//! [`TextColumn`] writes: the values of one Arrow array, one at a time, into a buffer that the
//! caller reuses. [`TextDecoder`] reads: text, one value at a time, into a new Arrow array.
//! Everything here is about one value; nothing knows rows, the wire, or COPY's escapes.

mod calendar;
mod date;
mod decode;
mod encode;
mod float;
mod integer;
mod interval;
pub(crate) mod json;
mod list;
mod moment;
mod numeric;
mod uuid;
mod zone;

pub use decode::{Excess, TextDecoder};
pub use encode::TextColumn;
pub use zone::TimeZone;

pub(crate) use calendar::{
    DAY_US, NEGATIVE_INFINITY_DAYS, NEGATIVE_INFINITY_US, POSITIVE_INFINITY_DAYS,
    POSITIVE_INFINITY_US, check_date, check_timestamp, civil, days_from_civil, days_in_month,
};
pub(crate) use decode::{bytea, text_as};
pub(crate) use interval::{Limit, write_interval};
pub(crate) use numeric::{
    MAX_PRECISION, decimal_digits, numeric, out_of_digits, out_of_precision, rescale,
};

use crate::{Error, SqlState};

/// How the session wants its values written and read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextFormat {
    /// `TimeZone`: where `timestamptz` is shown, and how a moment without an offset is read.
    pub time_zone: TimeZone,
    /// `extra_float_digits`: above 0 floats are written so that they read back the same.
    pub extra_float_digits: i32,
}

impl Default for TextFormat {
    fn default() -> Self {
        Self { time_zone: TimeZone::default(), extra_float_digits: 1 }
    }
}

/// 22P02: the text isn't one of the type's.
pub(crate) fn invalid_syntax(kind: &str, text: &str) -> Error {
    let message = format!("invalid input syntax for type {kind}: \"{text}\"");
    Error::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
}

/// What `isspace` means in PostgreSQL's input functions.
fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r'])
}
