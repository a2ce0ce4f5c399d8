//! The settings of a session: each declared once, with its default and what it may be set to.

mod value;
mod without_effect;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::facts::Facts;
use crate::sequences::Given;
use crate::{Error, SqlState, TextFormat, TimeZone, names};
use value::Kind;

/// A setting.
#[derive(Clone, Copy)]
struct Setting {
    name: &'static str,
    default: &'static str,
    kind: Kind,
    /// Whether clients are told of every change.
    is_reported: bool,
    description: &'static str,
}

const fn setting(
    name: &'static str,
    default: &'static str,
    kind: Kind,
    description: &'static str,
) -> Setting {
    Setting { name, default, kind, is_reported: false, description }
}

const fn reported(
    name: &'static str,
    default: &'static str,
    kind: Kind,
    description: &'static str,
) -> Setting {
    Setting { name, default, kind, is_reported: true, description }
}

/// The version of PostgreSQL that we speak like.
pub const SERVER_VERSION: &str = concat!("15.0 (Stillframe ", env!("CARGO_PKG_VERSION"), ")");

/// All settings by name, without regard to case.
static SETTINGS: LazyLock<Vec<Setting>> = LazyLock::new(|| {
    let others = without_effect::ALL.iter();
    let others =
        others.map(|(name, default, kind, description)| setting(name, default, *kind, description));
    let mut all: Vec<_> = EFFECTIVE.iter().copied().chain(others).collect();
    all.sort_by_key(|setting| setting.name.to_ascii_lowercase());
    all
});

/// The settings that are heeded.
const EFFECTIVE: &[Setting] = &[
    reported(
        "application_name",
        "",
        Kind::Text,
        "Sets the application name to be reported in statistics and logs.",
    ),
    setting("bytea_output", "hex", Kind::Choice(&["hex"]), "Sets the output format for bytea."),
    setting(
        "check_function_bodies",
        "on",
        Kind::Boolean,
        "Check routine bodies during CREATE FUNCTION and CREATE PROCEDURE.",
    ),
    reported(
        "client_encoding",
        "UTF8",
        Kind::Encoding,
        "Sets the client's character set encoding.",
    ),
    setting(
        "client_min_messages",
        "notice",
        Kind::Choice(&[
            "debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error",
        ]),
        "Sets the message levels that are sent to the client.",
    ),
    reported(
        "DateStyle",
        "ISO, MDY",
        Kind::DateStyle,
        "Sets the display format for date and time values.",
    ),
    setting(
        "default_transaction_isolation",
        "read committed",
        Kind::Isolation,
        "Sets the transaction isolation level of each new transaction.",
    ),
    reported(
        "default_transaction_read_only",
        "off",
        Kind::Boolean,
        "Sets the default read-only status of new transactions.",
    ),
    setting(
        "extra_float_digits",
        "1",
        Kind::Integer { min: -15, max: 3 },
        "Sets the number of digits displayed for floating-point values.",
    ),
    setting(
        "idle_in_transaction_session_timeout",
        "0",
        Kind::Milliseconds,
        "Sets the maximum allowed idle time between queries, when in a transaction.",
    ),
    setting(
        "idle_session_timeout",
        "0",
        Kind::Milliseconds,
        "Sets the maximum allowed idle time between queries, when not in a transaction.",
    ),
    reported(
        "in_hot_standby",
        "off",
        Kind::Fixed,
        "Shows whether hot standby is currently active.",
    ),
    reported("integer_datetimes", "on", Kind::Fixed, "Shows whether datetimes are integer based."),
    reported(
        "IntervalStyle",
        "postgres",
        Kind::Choice(&["postgres"]),
        "Sets the display format for interval values.",
    ),
    reported("is_superuser", "on", Kind::Fixed, "Shows whether the current user is a superuser."),
    setting("lc_collate", "C", Kind::Fixed, "Shows the collation order locale."),
    setting(
        "lc_ctype",
        "C",
        Kind::Fixed,
        "Shows the character classification and case conversion locale.",
    ),
    setting(
        "lock_timeout",
        "0",
        Kind::Milliseconds,
        "Sets the maximum allowed duration of any wait for a lock.",
    ),
    setting("max_identifier_length", "63", Kind::Fixed, "Shows the maximum identifier length."),
    setting("max_index_keys", "32", Kind::Fixed, "Shows the maximum number of index keys."),
    setting("row_security", "on", Kind::Boolean, "Enable row security."),
    setting(
        "search_path",
        "\"$user\", public",
        Kind::Names,
        "Sets the schema search order for names that are not schema-qualified.",
    ),
    reported(
        "server_encoding",
        "UTF8",
        Kind::Fixed,
        "Shows the server (database) character set encoding.",
    ),
    reported("server_version", SERVER_VERSION, Kind::Fixed, "Shows the server version."),
    setting("server_version_num", "150000", Kind::Fixed, "Shows the server version as an integer."),
    reported("session_authorization", "", Kind::Fixed, "Sets the current session's user name."),
    reported(
        "standard_conforming_strings",
        "on",
        Kind::Choice(&["on"]),
        "Causes '...' strings to treat backslashes literally.",
    ),
    setting(
        "statement_timeout",
        "0",
        Kind::Milliseconds,
        "Sets the maximum allowed duration of any statement.",
    ),
    setting(
        "stillframe.execution",
        "auto",
        Kind::Choice(&["auto", "local", "gather", "distributed"]),
        "Sets where queries run.",
    ),
    reported("stillframe.step", "", Kind::Fixed, "Shows the step that the last query has read."),
    setting("synchronize_seqscans", "on", Kind::Boolean, "Enable synchronized sequential scans."),
    reported(
        "TimeZone",
        "UTC",
        Kind::TimeZone,
        "Sets the time zone for displaying and interpreting time stamps.",
    ),
    setting(
        "transaction_deferrable",
        "off",
        Kind::Fixed,
        "Whether to defer a read-only serializable transaction until it can be executed with no possible serialization failures.",
    ),
    setting(
        "transaction_isolation",
        "read committed",
        Kind::Fixed,
        "Sets the current transaction's isolation level.",
    ),
    setting(
        "transaction_read_only",
        "off",
        Kind::Fixed,
        "Sets the current transaction's read-only status.",
    ),
    setting(
        "xmloption",
        "content",
        Kind::Choice(&["content", "document"]),
        "Sets whether XML data in implicit parsing and serialization operations is to be considered as documents or content fragments.",
    ),
];

fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name.eq_ignore_ascii_case(name))
}

/// The values of a session's settings. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// What differs from the defaults, by the declared name.
    values: Arc<BTreeMap<String, String>>,
    /// The numbers that the session was given by sequences.
    sequences: Given,
    facts: Facts,
    /// When the transaction began.
    began: DateTime<Utc>,
}

impl Settings {
    /// When the transaction began: what `now()` is.
    pub(crate) fn began(&self) -> DateTime<Utc> {
        self.began
    }

    /// A transaction begins.
    pub(crate) fn begin(&mut self) {
        self.began = Utc::now();
    }

    /// The numbers that the session was given by sequences.
    pub(crate) fn sequences(&self) -> &Given {
        &self.sequences
    }

    /// What queries can learn of the session.
    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The settings of a new session.
    pub(crate) fn new(user: &str) -> Self {
        let mut settings = Self::default();
        settings.begin();
        settings.put("session_authorization", user);
        settings
    }

    /// Whether what is planned with these settings is planned so with others: they differ at most in
    /// what tells where the session stands.
    pub(crate) fn plans_like(&self, other: &Self) -> bool {
        const STANDING: [&str; 3] =
            ["stillframe.step", "transaction_isolation", "transaction_read_only"];
        let plans = |(name, _): &(&String, &String)| !STANDING.contains(&name.as_str());
        self.values.iter().filter(plans).eq(other.values.iter().filter(plans))
    }

    /// The value, as SHOW gives it.
    pub(crate) fn get(&self, name: &str) -> Result<&str, Error> {
        match find(name) {
            Some(setting) => Ok(self.known(setting)),
            None => match self.values.get(name) {
                Some(value) => Ok(value),
                None => Err(unrecognized(name)),
            },
        }
    }

    /// A name as it was declared.
    pub(crate) fn canonical(name: &str) -> &str {
        find(name).map_or(name, |setting| setting.name)
    }

    fn known(&self, setting: &'static Setting) -> &str {
        self.values.get(setting.name).map_or(setting.default, String::as_str)
    }

    fn declared(&self, name: &str) -> &str {
        find(name).map_or("", |setting| self.known(setting))
    }

    /// Sets a value, or the default without one, as SET does.
    pub(crate) fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), Error> {
        let Some(setting) = find(name) else { return self.set_custom(name, value) };
        if setting.kind == Kind::Fixed {
            let message = format!("parameter \"{}\" cannot be changed", setting.name);
            return Err(Error::new(SqlState::CANT_CHANGE_RUNTIME_PARAM, message));
        }
        match value {
            Some(value) => {
                let value = setting.kind.read(setting.name, value)?;
                self.put(setting.name, value);
            }
            None => {
                Arc::make_mut(&mut self.values).remove(setting.name);
            }
        }
        Ok(())
    }

    /// A name with a dot may be set to anything, unless the part before it is ours.
    fn set_custom(&mut self, name: &str, value: Option<&str>) -> Result<(), Error> {
        if !name.contains('.') || name.starts_with("stillframe.") {
            return Err(unrecognized(name));
        }
        match value {
            Some(value) => self.put(name, value),
            None => {
                Arc::make_mut(&mut self.values).remove(name);
            }
        }
        Ok(())
    }

    /// Sets a value that users may not set.
    pub(crate) fn put(&mut self, name: &str, value: impl Into<String>) {
        Arc::make_mut(&mut self.values).insert(name.to_owned(), value.into());
    }

    /// Sets everything that users may set to its default.
    pub(crate) fn reset(&mut self) {
        Arc::make_mut(&mut self.values)
            .retain(|name, _| find(name).is_some_and(|setting| setting.kind == Kind::Fixed));
    }

    /// Name, value and description of all declared settings, by name.
    pub(crate) fn all(&self) -> Vec<(&'static str, &str, &'static str)> {
        let all = SETTINGS.iter();
        all.map(|setting| (setting.name, self.known(setting), setting.description)).collect()
    }

    /// Name and value of the settings that clients are told.
    pub(crate) fn reported(&self) -> Vec<(&'static str, &str)> {
        let reported = SETTINGS.iter().filter(|setting| setting.is_reported);
        reported.map(|setting| (setting.name, self.known(setting))).collect()
    }

    /// The user's name.
    pub(crate) fn user(&self) -> &str {
        self.declared("session_authorization")
    }

    /// What the client calls itself.
    pub(crate) fn application_name(&self) -> &str {
        self.declared("application_name")
    }

    /// The schemas where names without one are looked for, in this order; not all need exist.
    pub(crate) fn search_path(&self) -> Vec<String> {
        let path = names::list(self.declared("search_path")).unwrap_or_default();
        let user = self.user();
        let mut path: Vec<_> = path
            .into_iter()
            .map(|name| if name == "$user" { user.to_owned() } else { name })
            .collect();
        if !path.iter().any(|name| name == "pg_catalog") {
            path.insert(0, "pg_catalog".to_owned());
        }
        path
    }

    /// The name of the time zone.
    pub(crate) fn time_zone(&self) -> &str {
        self.declared("TimeZone")
    }

    /// How values are written and read as text.
    pub(crate) fn text_format(&self) -> TextFormat {
        // What SET has taken can be read.
        TextFormat {
            time_zone: TimeZone::parse(self.time_zone()).unwrap_or_default(),
            extra_float_digits: self.declared("extra_float_digits").parse().unwrap_or(1),
        }
    }

    /// How long a statement may take; `None` for as long as it wants.
    pub(crate) fn statement_timeout(&self) -> Option<Duration> {
        value::milliseconds(self.declared("statement_timeout")).filter(|timeout| !timeout.is_zero())
    }

    /// How long a client may be silent, in a transaction or outside of one.
    pub(crate) fn idle_timeout(&self, in_transaction: bool) -> Option<Duration> {
        let name = match in_transaction {
            true => "idle_in_transaction_session_timeout",
            false => "idle_session_timeout",
        };
        value::milliseconds(self.declared(name)).filter(|timeout| !timeout.is_zero())
    }

    /// How long to wait for a reservation; `None` for as long as it takes.
    pub(crate) fn lock_timeout(&self) -> Option<Duration> {
        value::milliseconds(self.declared("lock_timeout")).filter(|timeout| !timeout.is_zero())
    }

    /// Whether a setting that is on or off is on.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.declared(name) == "on"
    }
}

fn unrecognized(name: &str) -> Error {
    let message = format!("unrecognized configuration parameter \"{name}\"");
    Error::new(SqlState::UNDEFINED_OBJECT, message)
}
