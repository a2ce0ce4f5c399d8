//! Semijoins and antijoins.
//!
//! Both sides are indexed as for a join, and by the same indexes. A key of the right side counts
//! once, however many rows have it. What meets none is the left side's rows without those that do;
//! rows with a NULL where it equals nothing, which no index has, are added at the end.

use std::sync::Arc;

use dbsp::operator::Sum;
use dbsp::{Circuit, OrdZSet};
use stillframe_protocol::{BinaryOperator, Expression, Fingerprint, JoinKey, UnaryOperator};

use super::aggregate::Exists;
use super::builder::Builder;
use super::join::Side;
use super::linear::Rows;
use super::relation::{Relation, schema_of};
use super::source::{Books, KeyedStream, Placement, RowStream, Source, SourceStream};
use crate::EngineError;
use crate::row::{Codec, Row};

/// A semijoin or antijoin that is being built.
pub(super) struct Semijoin<'a> {
    pub(super) fingerprint: Fingerprint,
    pub(super) left: &'a Relation,
    pub(super) right: &'a Relation,
    pub(super) on: &'a [JoinKey],
    /// Whether it is an antijoin.
    pub(super) negated: bool,
}

impl Builder<'_> {
    /// The left rows that meet a right one, or those that don't.
    pub(super) fn semijoin(&mut self, semijoin: &Semijoin<'_>) -> Result<Relation, EngineError> {
        let Semijoin { fingerprint, left, right, on, negated } = semijoin;
        let (left_side, right_side) = self.sides(left, right, on)?;
        let keys = self.keys(right, &right_side)?;
        self.notes.note(
            "a change of the left side costs a seek, the first and last of a key on \
                         the right one a row per match",
        );
        let mut books = left_side.books.clone();
        books.extend(right_side.books.clone());
        let codec = Arc::new(Codec::new(Arc::new(schema_of(&left_side.types(left))))?);
        let key_len = left_side.key.len();
        let mut placement = Placement::By((0..key_len).collect());

        let id = self.identity.of(*fingerprint, "meets")?;
        let meets = left_side
            .stream
            .join(&keys, |key, left, _| Row::concatenate([key.as_bytes(), left.as_bytes()]))
            .set_persistent_id(Some(&id));
        let stream = if *negated {
            let mut parts = vec![
                self.whole_rows(*fingerprint, &left_side, &codec)?,
                self.negative(*fingerprint, &meets)?,
            ];
            if let Some((rows, of_rows)) = self.without_key(semijoin, &left_side)? {
                parts.push(rows);
                books.extend(of_rows);
                placement = Placement::Derived;
            }
            let id = self.identity.of(*fingerprint, "antijoin")?;
            self.circuit.add_nary_operator(Sum::new(), &parts).set_persistent_id(Some(&id))
        } else {
            meets
        };
        let columns = left_side.fields(left, key_len).collect();
        let source = Source {
            stream: SourceStream::Set(stream),
            codec,
            placement,
            carries_errors: false,
            is_spread: false,
            books,
        };
        Ok(Relation::stored(*fingerprint, source, columns))
    }

    /// The keys of the right side, each once.
    fn keys(&mut self, right: &Relation, right_side: &Side) -> Result<KeyedStream, EngineError> {
        if right_side.is_unique {
            return Ok(right_side.stream.clone());
        }
        self.notes.note("stores each key of the right side once more");
        let role = format!("keys{}", right_side.role);
        let (keys, _) = self.keyed(right.fingerprint, &role, |_, id| {
            let keys = right_side.stream.aggregate_persistent(Some(id), Exists);
            Ok((keys.set_persistent_id(Some(id)), Books::new()))
        })?;
        Ok(keys)
    }

    /// The rows of a side in one part.
    fn whole_rows(
        &mut self,
        fingerprint: Fingerprint,
        side: &Side,
        codec: &Arc<Codec>,
    ) -> Result<RowStream, EngineError> {
        let key_columns = side.key.len();
        let fields = codec.schema().fields().len();
        let source = Source {
            stream: SourceStream::Keyed {
                stream: side.stream.clone(),
                key_columns,
                key_not_null: side.key_not_null,
            },
            codec: Arc::clone(codec),
            placement: Placement::By((0..key_columns).collect()),
            is_spread: false,
            carries_errors: false,
            books: Books::new(),
        };
        let rows = Relation::stored(fingerprint, source, (0..fields).collect());
        let emission = Box::new(Rows::new(&rows, &rows.columns)?);
        let id = self.identity.of(fingerprint, "left")?;
        Ok(self.linear("Rows", &rows, emission, &id)?.0)
    }

    fn negative(
        &mut self,
        fingerprint: Fingerprint,
        rows: &RowStream,
    ) -> Result<RowStream, EngineError> {
        let id = self.identity.of(fingerprint, "negative")?;
        let negative = rows.apply_named("Negative", |rows: &OrdZSet<Row>| -rows.clone());
        Ok(negative.set_persistent_id(Some(&id)))
    }

    /// The left rows that the index has not, because of a NULL in their key.
    fn without_key(
        &mut self,
        semijoin: &Semijoin<'_>,
        side: &Side,
    ) -> Result<Option<(RowStream, Books)>, EngineError> {
        if side.is_unique {
            // The relation is its own index, which has every row.
            return Ok(None);
        }
        let is_null = |key: &JoinKey| Expression::Unary {
            operator: UnaryOperator::IsNull,
            operand: Box::new(Expression::Column(key.left)),
        };
        let strict = semijoin.on.iter().filter(|key| !key.null_equal).map(is_null);
        let either = strict.reduce(|left, right| Expression::Binary {
            operator: BinaryOperator::Or,
            left: Box::new(left),
            right: Box::new(right),
        });
        let Some(either) = either else { return Ok(None) };
        self.notes.note("rows with a NULL in their key are passed on");
        let rows = semijoin.left.clone().filter(&either)?;
        let registers: Vec<usize> = side.key.iter().chain(&side.rest).copied().collect();
        let emission = Box::new(Rows::new(&rows, &registers)?);
        let id = self.identity.of(semijoin.fingerprint, "nulls")?;
        self.linear("Rows", &rows, emission, &id).map(Some)
    }
}
