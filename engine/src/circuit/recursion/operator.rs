//! A recursion as an operator.
//!
//! It waits for the end of a step's changes, as whatever comes of a part of them may be far more than
//! what comes of all. Its state is the rows that it reads. What it has made of them is computed again
//! when it is asked for after a restart.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::mem::{replace, take};
use std::sync::Arc;

use dbsp::circuit::operator_traits::{NaryOperator, Operator};
use dbsp::circuit::{GlobalNodeId, Scope};
use dbsp::storage::backend::{StorageError, StoragePath};
use dbsp::storage::buffer_cache::FBuf;
use dbsp::utils::Tup2;
use dbsp::{OrdIndexedZSet, OrdZSet, Runtime, ZWeight};
use feldera_storage::FileCommitter;
use stillframe_protocol::RowError;

use super::Definition;
use super::limits::{Endless, Limits};
use super::stored::{Change, Contents};
use super::term::Weights;
use super::worker::Worker;
use crate::circuit::linear::{Changes, ErrorBook};
use crate::row::Row;

/// The operator.
pub(super) struct Recurse {
    node: GlobalNodeId,
    definition: Definition,
    limits: Limits,
    book: ErrorBook,
    /// The errors that are in the book.
    errors: BTreeMap<RowError, ZWeight>,
    /// What this step has changed so far.
    pending: Change,
    /// Whether that is all.
    is_flushed: bool,
    contents: Contents,
    phase: Phase,
}

/// What there is of the result for the contents.
enum Phase {
    /// It is known and computed; without a worker there is none yet, or not since a restart.
    Ended(Option<Worker>),
    /// There is no end to it, so there are no rows.
    Endless,
}

impl Recurse {
    pub(super) fn new(definition: Definition, limits: Limits, book: ErrorBook) -> Self {
        let pending = vec![vec![]; definition.schemas.len()];
        Self {
            node: GlobalNodeId::root(),
            definition,
            limits,
            book,
            errors: BTreeMap::new(),
            pending,
            is_flushed: false,
            contents: Contents::default(),
            phase: Phase::Ended(None),
        }
    }

    /// What comes of all that has changed.
    fn follow(&mut self) -> Weights {
        let change: Change = self.pending.iter_mut().map(|rows| net(take(rows))).collect();
        if change.iter().all(Vec::is_empty) {
            return Weights::default();
        }
        let (worker, change) = match replace(&mut self.phase, Phase::Endless) {
            Phase::Ended(Some(worker)) => {
                self.contents.change(&change);
                (worker, change)
            }
            Phase::Ended(None) => {
                let worker = Worker::start(&self.definition);
                let before = self.contents.whole();
                if before.iter().any(|rows| !rows.is_empty()) {
                    // These rows have come out already, and there was an end to them.
                    worker.change(before, Limits::none());
                }
                self.contents.change(&change);
                (worker, change)
            }
            Phase::Endless => {
                self.contents.change(&change);
                (Worker::start(&self.definition), self.contents.whole())
            }
        };
        let answer = worker.change(change, self.limits);
        let errors = match answer.errors {
            Ok(errors) => {
                self.phase = Phase::Ended(Some(worker));
                errors
            }
            Err(Endless) => BTreeMap::from([(Endless::error(&self.limits), 1)]),
        };
        for (error, count) in replace(&mut self.errors, errors) {
            self.book.add(error, -count);
        }
        for (error, count) in &self.errors {
            self.book.add(error.clone(), *count);
        }
        answer.delta
    }

    fn file(&self, base: &StoragePath, id: Option<&str>) -> Result<StoragePath, StorageError> {
        let id = id.ok_or_else(|| StorageError::NoPersistentId(self.node.to_string()))?;
        Ok(base.clone().join(format!("recursion-{id}.dat")))
    }
}

/// Changes without what cancels out.
fn net(rows: Vec<(Row, ZWeight)>) -> Vec<(Row, ZWeight)> {
    let mut weights = Weights::default();
    for (row, weight) in rows {
        *weights.entry(row).or_default() += weight;
    }
    weights.into_iter().filter(|(_, weight)| *weight != 0).collect()
}

impl Operator for Recurse {
    fn name(&self) -> Cow<'static, str> {
        "Recursion".into()
    }

    fn init(&mut self, node: &GlobalNodeId) {
        self.node = node.clone();
    }

    fn fixedpoint(&self, _: Scope) -> bool {
        true
    }

    fn flush(&mut self) {
        self.is_flushed = true;
    }

    fn is_flush_complete(&self) -> bool {
        !self.is_flushed
    }

    fn checkpoint(
        &mut self,
        base: &StoragePath,
        id: Option<&str>,
        files: &mut Vec<Arc<dyn FileCommitter>>,
    ) -> Result<(), dbsp::Error> {
        let mut bytes = FBuf::new();
        bytes.push(u8::from(matches!(self.phase, Phase::Endless)));
        self.contents.write(&mut bytes);
        files.push(Runtime::storage_backend()?.write(&self.file(base, id)?, bytes)?);
        self.book.checkpoint(base, id, &self.node, files)
    }

    fn restore(&mut self, base: &StoragePath, id: Option<&str>) -> Result<(), dbsp::Error> {
        let bytes = Runtime::storage_backend()?.read(&self.file(base, id)?)?;
        let (is_endless, contents) = bytes.split_first().expect("the file has a first byte");
        self.phase = if *is_endless == 0 { Phase::Ended(None) } else { Phase::Endless };
        self.contents = Contents::read(contents).expect("the file is whole");
        self.book.restore(base, id, &self.node)?;
        self.errors = self.book.counts().clone();
        Ok(())
    }

    fn clear_state(&mut self) -> Result<(), dbsp::Error> {
        self.contents = Contents::default();
        self.phase = Phase::Ended(None);
        self.pending.iter_mut().for_each(Vec::clear);
        self.errors.clear();
        self.book.clear();
        Ok(())
    }

    fn swap_state(&mut self, other: &mut Self) -> Result<(), dbsp::Error> {
        std::mem::swap(&mut self.contents, &mut other.contents);
        std::mem::swap(&mut self.phase, &mut other.phase);
        std::mem::swap(&mut self.errors, &mut other.errors);
        self.book.swap(&mut other.book);
        Ok(())
    }
}

impl NaryOperator<OrdIndexedZSet<Row, Row>, OrdZSet<Row>> for Recurse {
    async fn eval<'a, Iter>(&'a mut self, inputs: Iter) -> OrdZSet<Row>
    where
        Iter: Iterator<Item = Cow<'a, OrdIndexedZSet<Row, Row>>>,
    {
        for (input, pending) in inputs.zip(&mut self.pending) {
            input.for_each(&mut |_, row, weight| pending.push((Row::new(row), weight)));
        }
        if !take(&mut self.is_flushed) {
            return OrdZSet::default();
        }
        let delta = self.follow();
        self.book.publish();
        OrdZSet::from_keys((), delta.into_iter().map(|(row, weight)| Tup2(row, weight)).collect())
    }
}
