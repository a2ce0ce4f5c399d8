//! What is kept of a view.

use std::sync::Arc;

use stillframe_protocol::RelationId;

use super::builder::Builder;
use super::output::{RelationOutput, Snapshot};
use super::publish::publish;
use super::relation::Relation;
use super::source::{Placement, Source, SourceStream, sharded};
use super::streams::codec_of;
use crate::EngineError;

impl Builder<'_> {
    /// Keeps a view's rows, so that frames and later views can read them.
    pub(super) fn keep(
        &mut self,
        view: RelationId,
        relation: Relation,
    ) -> Result<(Relation, RelationOutput), EngineError> {
        let frame_id = self.identity.of(relation.fingerprint, &format!("frame{view}"))?;
        let columns: Vec<usize> = (0..relation.columns.len()).collect();
        if relation.is_stored() && relation.source.is_spread {
            // The stream is the view. Often its integral exists.
            self.notes.note("its rows are those of its topmost operator, stored there");
            let source = &relation.source;
            let (rows, key_columns) = match &source.stream {
                SourceStream::Set(stream) => {
                    let trace = stream.accumulate_integrate_trace();
                    (publish(&trace, &frame_id, |trace| Snapshot::Set(trace.ro_snapshot())), 0)
                }
                SourceStream::Keyed { stream, key_columns, .. } => {
                    let trace = stream.accumulate_integrate_trace();
                    let publish =
                        publish(&trace, &frame_id, |trace| Snapshot::Keyed(trace.ro_snapshot()));
                    (publish, *key_columns)
                }
            };
            let books = source.books.values().cloned().collect();
            let output = RelationOutput::new(Arc::clone(&source.codec), key_columns, rows, books);
            return Ok((relation, output));
        }
        self.notes.note("stores its rows, a change costs a row");
        let (mut stream, books) = self.private_rows(&relation, "view")?;
        let placement = if relation.source.is_spread {
            relation.placement_of(&relation.columns)
        } else {
            self.notes.note("rows travel to the worker of their hash");
            stream = sharded(&stream);
            Placement::By(columns.clone())
        };
        let rows = publish(&stream.accumulate_integrate_trace(), &frame_id, |trace| {
            Snapshot::Set(trace.ro_snapshot())
        });
        let codec = Arc::new(codec_of(&relation)?);
        let published = books.values().cloned().collect();
        let output = RelationOutput::new(Arc::clone(&codec), 0, rows, published);
        let source = Source {
            stream: SourceStream::Set(stream),
            codec,
            placement,
            is_spread: true,
            carries_errors: false,
            books,
        };
        Ok((Relation::stored(relation.fingerprint, source, columns), output))
    }
}
