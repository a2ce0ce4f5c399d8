//! All rows of several inputs.

use std::sync::Arc;

use dbsp::Circuit;
use dbsp::operator::Sum;
use stillframe_protocol::Fingerprint;

use super::builder::Builder;
use super::relation::Relation;
use super::source::{Books, Placement, Source, SourceStream};
use crate::EngineError;
use crate::row::Codec;

impl Builder<'_> {
    pub(super) fn union(
        &mut self,
        fingerprint: Fingerprint,
        codec: Arc<Codec>,
        inputs: &[Relation],
    ) -> Result<Relation, EngineError> {
        let columns: Vec<usize> = (0..codec.schema().fields().len()).collect();
        let mut streams = vec![];
        let mut books = Books::new();
        let mut placement = None;
        for input in inputs {
            let types = input.column_types();
            let wanted = codec.schema().fields().iter().map(|field| field.data_type());
            if wanted.ne(types.iter()) {
                let message = format!("a union's input has columns of {types:?}");
                return Err(EngineError::InvalidPlan(message));
            }
            let (stream, of_input) = self.rows(input)?;
            streams.push(stream);
            books.extend(of_input);
            let of_input = input.placement_of(&input.columns);
            placement = match placement {
                None => Some(of_input),
                Some(placement) if placement == of_input => Some(placement),
                Some(_) => Some(Placement::Derived),
            };
        }
        let Some(placement) = placement else {
            return self.values(fingerprint, codec, &[]);
        };
        self.notes.note("stores nothing");
        let is_spread = inputs.iter().all(|input| input.source.is_spread);
        let id = self.identity.of(fingerprint, "union")?;
        // Not dbsp's `sum`, which takes sharded streams where there are any.
        let stream =
            self.circuit.add_nary_operator(Sum::new(), &streams).set_persistent_id(Some(&id));
        let source = Source {
            stream: SourceStream::Set(stream),
            codec,
            placement,
            is_spread,
            carries_errors: false,
            books,
        };
        Ok(Relation::stored(fingerprint, source, columns))
    }
}
