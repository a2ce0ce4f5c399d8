//! The persistent ids of stateful operators.

use std::collections::BTreeSet;

use stillframe_protocol::Fingerprint;

use crate::EngineError;

/// Raised whenever an operator computes or stores something else for the same plan than before, so
/// that state of the old kind is never taken for the new one.
const FORMAT: u32 = 1;

/// Hands out persistent ids and sees to it that no two operators of a circuit have the same: dbsp
/// would restore one's state into the other without a word.
#[derive(Debug, Default)]
pub(crate) struct Identity {
    used: BTreeSet<String>,
}

impl Identity {
    /// The id of an operator: a hash of everything it computes, and its role in that.
    pub(crate) fn of(&mut self, what: Fingerprint, role: &str) -> Result<String, EngineError> {
        let id = format!("{what}-{role}-{FORMAT}");
        if self.used.insert(id.clone()) {
            Ok(id)
        } else {
            Err(EngineError::InvalidPlan(format!("operator {id} is built twice")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_given_once() {
        let mut identity = Identity::default();
        let first = identity.of(Fingerprint(1), "index").unwrap();
        assert_ne!(first, identity.of(Fingerprint(1), "join").unwrap());
        assert_ne!(first, identity.of(Fingerprint(2), "index").unwrap());
        assert!(identity.of(Fingerprint(1), "index").is_err());
    }
}
