//! The parameters a client is told of (ParameterStatus): at the start, and when one has changed.

use std::collections::HashMap;

use pgwire::messages::startup::ParameterStatus;
use stillframe_protocol::Step;

/// The name under which the step is told that a result was read from.
const STEP: &str = "stillframe.step";

/// What a client was told last.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    told: HashMap<&'static str, String>,
}

impl Parameters {
    /// What to tell of settings that are like this now: all of them the first time, later those
    /// that have changed.
    pub(super) fn changes(
        &mut self,
        settings: Vec<(&'static str, String)>,
    ) -> Vec<ParameterStatus> {
        settings.into_iter().filter_map(|(name, value)| self.tell(name, value)).collect()
    }

    /// What to tell of the step that a result was read from.
    pub(super) fn step(&mut self, step: Step) -> Option<ParameterStatus> {
        self.tell(STEP, step.to_string())
    }

    fn tell(&mut self, name: &'static str, value: String) -> Option<ParameterStatus> {
        if self.told.get(name) == Some(&value) {
            return None;
        }
        self.told.insert(name, value.clone());
        Some(ParameterStatus::new(name.to_owned(), value))
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
        assert_eq!(names(parameters.changes(utc())), ["TimeZone", "DateStyle"]);
        assert!(parameters.changes(utc()).is_empty());
        let paris = vec![("TimeZone", "Europe/Paris".to_owned())];
        assert_eq!(names(parameters.changes(paris)), ["TimeZone"]);
    }

    #[test]
    fn tells_a_step_once() {
        let mut parameters = Parameters::default();
        assert_eq!(parameters.step(Step(7)).unwrap().value, "7");
        assert!(parameters.step(Step(7)).is_none());
        assert!(parameters.changes(vec![(STEP, "7".to_owned())]).is_empty());
        assert_eq!(parameters.step(Step(8)).unwrap().value, "8");
    }
}
