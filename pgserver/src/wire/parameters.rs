//! The parameters a client is told of (ParameterStatus): at the start, and when one has changed.

use std::collections::HashMap;

use pgwire::messages::startup::ParameterStatus;
use stillframe_protocol::Step;

/// What PostgreSQL's version we are like, for clients that choose their queries by it.
const SERVER_VERSION: &str = concat!("15.0 (Stillframe ", env!("CARGO_PKG_VERSION"), ")");

/// What never changes.
const FIXED: [(&str, &str); 4] = [
    ("server_version", SERVER_VERSION),
    ("server_encoding", "UTF8"),
    ("integer_datetimes", "on"),
    ("in_hot_standby", "off"),
];

/// The name under which the step is told that a result was read from.
const STEP: &str = "stillframe.step";

/// What a client was told last.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    told: HashMap<&'static str, String>,
    step: Option<Step>,
}

impl Parameters {
    /// What to tell of settings that are like this now: all of them the first time, later those
    /// that have changed.
    pub(super) fn changes(
        &mut self,
        settings: Vec<(&'static str, String)>,
    ) -> Vec<ParameterStatus> {
        let mut changes = vec![];
        if self.told.is_empty() {
            for (name, value) in FIXED {
                self.tell(name, value.to_owned(), &mut changes);
            }
        }
        for (name, value) in settings {
            self.tell(name, value, &mut changes);
        }
        changes
    }

    /// What to tell of the step that a result was read from.
    pub(super) fn step(&mut self, step: Step) -> Option<ParameterStatus> {
        if self.step.replace(step) == Some(step) {
            return None;
        }
        Some(ParameterStatus::new(STEP.to_owned(), step.to_string()))
    }

    fn tell(&mut self, name: &'static str, value: String, changes: &mut Vec<ParameterStatus>) {
        if self.told.get(name) == Some(&value) {
            return;
        }
        changes.push(ParameterStatus::new(name.to_owned(), value.clone()));
        self.told.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_everything_first_and_then_what_has_changed() {
        let mut parameters = Parameters::default();
        let names = |changes: Vec<ParameterStatus>| {
            changes.into_iter().map(|change| change.name).collect::<Vec<_>>()
        };
        let utc = || vec![("TimeZone", "UTC".to_owned()), ("DateStyle", "ISO, MDY".to_owned())];
        let first = names(parameters.changes(utc()));
        assert_eq!(
            first,
            [
                "server_version",
                "server_encoding",
                "integer_datetimes",
                "in_hot_standby",
                "TimeZone",
                "DateStyle"
            ]
        );
        assert!(parameters.changes(utc()).is_empty());
        let paris = vec![("TimeZone", "Europe/Paris".to_owned())];
        assert_eq!(names(parameters.changes(paris)), ["TimeZone"]);
    }

    #[test]
    fn tells_a_step_once() {
        let mut parameters = Parameters::default();
        assert_eq!(parameters.step(Step(7)).unwrap().value, "7");
        assert!(parameters.step(Step(7)).is_none());
        assert_eq!(parameters.step(Step(8)).unwrap().value, "8");
    }
}
