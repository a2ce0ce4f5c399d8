//! Each distinct row once.

use std::sync::Arc;

use stillframe_protocol::Fingerprint;

use super::builder::Builder;
use super::relation::Relation;
use super::source::{Placement, Source, SourceStream, placed, sharded};
use super::streams::codec_of;
use crate::EngineError;

impl Builder<'_> {
    pub(super) fn distinct(
        &mut self,
        fingerprint: Fingerprint,
        input: &Relation,
    ) -> Result<Relation, EngineError> {
        let (rows, books) = self.private_rows(input, "distinct-input")?;
        let columns: Vec<usize> = (0..input.columns.len()).collect();
        self.notes
            .note("stores each distinct row and how often it is there, a change costs a seek");
        let (rows, placement, is_spread) = match input.placement_of(&input.columns) {
            Placement::Derived => {
                self.notes.note("rows travel to the worker of their hash");
                (sharded(&rows), Placement::By(columns.clone()), true)
            }
            // Equal rows have equal fields, so they are on one worker already.
            placement => (placed(&rows), placement, input.source.is_spread),
        };
        let id = self.identity.of(fingerprint, "distinct")?;
        let stream = rows.distinct().set_persistent_id(Some(&id));
        let source = Source {
            stream: SourceStream::Set(stream),
            codec: Arc::new(codec_of(input)?),
            placement,
            is_spread,
            carries_errors: false,
            books,
        };
        Ok(Relation::stored(fingerprint, source, columns))
    }
}
