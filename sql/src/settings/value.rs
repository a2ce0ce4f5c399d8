//! What a setting may be set to, and how the value is kept.

use std::time::Duration;

use chrono_tz::{TZ_VARIANTS, Tz};

use crate::parser::IsolationLevel;
use crate::{Error, SqlState, names};

/// What a setting may be set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing: it is only shown.
    Fixed,
    /// Any text.
    Text,
    /// `on` or `off`.
    Boolean,
    /// A whole number.
    Integer {
        /// The least.
        min: i64,
        /// The greatest.
        max: i64,
    },
    /// A duration; a bare number is in milliseconds.
    Milliseconds,
    /// One of these.
    Choice(&'static [&'static str]),
    /// A list of names.
    Names,
    /// The one encoding.
    Encoding,
    /// How dates are read; they are always written the ISO way.
    DateStyle,
    /// A time zone.
    TimeZone,
    /// An isolation level.
    Isolation,
}

impl Kind {
    /// The value as it is kept and shown.
    pub(super) fn read(self, name: &str, value: &str) -> Result<String, Error> {
        let invalid = || {
            let message = format!("invalid value for parameter \"{name}\": \"{value}\"");
            Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
        };
        match self {
            Self::Fixed | Self::Text => Ok(value.to_owned()),
            Self::Boolean => boolean(value).map(str::to_owned).ok_or_else(|| {
                let message = format!("parameter \"{name}\" requires a Boolean value");
                Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
            }),
            Self::Integer { min, max } => {
                let number: i64 = value.trim().parse().map_err(|_| invalid())?;
                if (min..=max).contains(&number) {
                    return Ok(number.to_string());
                }
                let message = format!(
                    "{number} is outside the valid range for parameter \"{name}\" ({min} .. {max})"
                );
                Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message))
            }
            Self::Milliseconds => {
                let duration = milliseconds(value).ok_or_else(|| {
                    invalid().with_hint(
                        "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", \
                         and \"d\".",
                    )
                })?;
                Ok(show_milliseconds(duration))
            }
            Self::Choice(choices) => {
                let found = choices.iter().find(|choice| choice.eq_ignore_ascii_case(value));
                let found = found.map(|choice| (*choice).to_owned());
                found.ok_or_else(|| {
                    invalid().with_hint(format!("Available values: {}.", choices.join(", ")))
                })
            }
            Self::Names => match names::list(value) {
                Some(_) => Ok(value.to_owned()),
                None => Err(invalid().with_detail("List syntax is invalid.")),
            },
            // Only letters and digits count: asyncpg sends `'utf-8'` with the quotes.
            Self::Encoding => match letters_and_digits(value).as_str() {
                "utf8" | "unicode" => Ok("UTF8".to_owned()),
                _ => Err(Error::unsupported(format!("client encoding \"{value}\""))),
            },
            Self::DateStyle => date_style(value).ok_or_else(invalid),
            Self::TimeZone => time_zone(value).ok_or_else(invalid),
            Self::Isolation => Ok(IsolationLevel::from_name(value)?.name().to_owned()),
        }
    }
}

fn letters_and_digits(value: &str) -> String {
    let kept = value.chars().filter(char::is_ascii_alphanumeric);
    kept.map(|letter| letter.to_ascii_lowercase()).collect()
}

fn boolean(value: &str) -> Option<&'static str> {
    let value = value.to_ascii_lowercase();
    let starts = |whole: &str, least: usize| value.len() >= least && whole.starts_with(&value);
    if value == "1" || starts("true", 1) || starts("yes", 1) || starts("on", 2) {
        Some("on")
    } else if value == "0" || starts("false", 1) || starts("no", 1) || starts("off", 2) {
        Some("off")
    } else {
        None
    }
}

/// Reads a duration.
pub(super) fn milliseconds(value: &str) -> Option<Duration> {
    let value = value.trim();
    let unit_at = value.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(value.len());
    let (number, unit) = value.split_at(unit_at);
    let number: f64 = number.parse().ok()?;
    let scale = match unit.trim() {
        "us" => 0.001,
        "" | "ms" => 1.0,
        "s" => 1_000.0,
        "min" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        _ => return None,
    };
    let milliseconds = (number * scale).round();
    // PostgreSQL keeps it in 32 bits.
    let fits = milliseconds <= f64::from(i32::MAX);
    fits.then(|| Duration::from_millis(milliseconds as u64))
}

/// In the greatest unit that needs no fraction.
fn show_milliseconds(duration: Duration) -> String {
    let milliseconds = duration.as_millis();
    if milliseconds == 0 {
        return "0".to_owned();
    }
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")];
    let unit = units.into_iter().find(|(size, _)| milliseconds.is_multiple_of(*size));
    let (size, unit) = unit.unwrap_or((1, "ms"));
    format!("{}{unit}", milliseconds / size)
}

fn date_style(value: &str) -> Option<String> {
    let mut order = "MDY";
    for word in value.split(',').map(|word| word.trim().to_ascii_uppercase()) {
        order = match word.as_str() {
            "ISO" => order,
            "MDY" | "US" | "NONEURO" | "NONEUROPEAN" => "MDY",
            _ => return None,
        };
    }
    Some(format!("ISO, {order}"))
}

fn time_zone(value: &str) -> Option<String> {
    if ["utc", "gmt", "z", "zulu"].iter().any(|utc| utc.eq_ignore_ascii_case(value)) {
        return Some("UTC".to_owned());
    }
    if let Some(zone) = TZ_VARIANTS.iter().find(|zone| zone.name().eq_ignore_ascii_case(value)) {
        return Some(Tz::name(*zone).to_owned());
    }
    // Hours east of Greenwich, in the form that Arrow takes as well.
    let hours: f64 = value.parse().ok()?;
    let minutes = (hours * 60.0).round() as i32;
    let sign = if minutes < 0 { '-' } else { '+' };
    let in_range = minutes.abs() <= 15 * 60 + 59;
    in_range.then(|| format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60))
}
