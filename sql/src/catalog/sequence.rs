//! Sequences: numbers that nobody gets twice.

use serde::{Deserialize, Serialize};
use stillframe_protocol::RelationId;

use super::Catalog;
use crate::Type;

/// What a sequence counts like. Where it stands is no part of the catalog.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequence {
    /// The name of its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// The type of its numbers.
    pub kind: Type,
    /// The first number.
    pub start: i64,
    /// From one number to the next; not 0.
    pub increment: i64,
    /// The smallest number.
    pub min: i64,
    /// The greatest number.
    pub max: i64,
    /// What CACHE says; numbers are never given away ahead.
    pub cache: i64,
    /// Whether it begins again at its end.
    pub cycle: bool,
    /// The column with which it goes, by its table and place.
    pub owner: Option<(RelationId, usize)>,
}

impl Catalog {
    /// The sequence with this schema and name, and its OID.
    pub fn find_sequence(&self, schema: &str, name: &str) -> Option<(u32, &Sequence)> {
        let mut sequences = self.sequences.iter();
        let found = sequences.find(|(_, found)| found.schema == schema && found.name == name);
        found.map(|(oid, sequence)| (*oid, sequence))
    }
}
