//! Constant rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, new_empty_array};
use datafusion::common::ScalarValue;
use dbsp::OrdZSet;
use dbsp::utils::Tup2;
use stillframe_protocol::{Fingerprint, Literal};

use super::builder::Builder;
use super::constant::constant;
use super::relation::Relation;
use super::source::{Books, Placement, Source, SourceStream};
use crate::EngineError;
use crate::expression::scalar;
use crate::row::Codec;

impl Builder<'_> {
    pub(super) fn values(
        &mut self,
        fingerprint: Fingerprint,
        codec: Arc<Codec>,
        rows: &[Vec<Literal>],
    ) -> Result<Relation, EngineError> {
        let fields = codec.schema().fields();
        if rows.iter().any(|row| row.len() != fields.len()) {
            let message = "a constant row has a literal per column".to_owned();
            return Err(EngineError::InvalidPlan(message));
        }
        let column = |(place, field): (usize, &Arc<arrow::datatypes::Field>)| {
            if rows.is_empty() {
                return Ok(new_empty_array(field.data_type()));
            }
            let values = rows.iter().map(|row| scalar(&row[place]));
            Ok(ScalarValue::iter_to_array(values)?)
        };
        let columns: Vec<ArrayRef> =
            fields.iter().enumerate().map(column).collect::<Result<_, EngineError>>()?;
        let rows = codec.encode(&columns, rows.len())?;
        let batch = OrdZSet::from_keys((), rows.into_iter().map(|row| Tup2(row, 1)).collect());
        let id = self.identity.of(fingerprint, "values")?;
        let stream = constant(self.circuit, &id, batch);
        self.notes.note("constant rows, which enter once");
        let columns = (0..fields.len()).collect();
        let source = Source {
            stream: SourceStream::Set(stream),
            codec,
            placement: Placement::One,
            is_spread: false,
            carries_errors: false,
            books: Books::new(),
        };
        Ok(Relation::stored(fingerprint, source, columns))
    }
}
