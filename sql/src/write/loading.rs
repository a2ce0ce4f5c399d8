//! Rows that are added to a table batch by batch: staged as they come, applied in one step.
//!
//! ```text
//! batches -> staged at the hosts          (not the rows, but their keys are remembered)
//!     end -> reserve, look for keys that are there, commit
//! ```

use std::collections::HashSet;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use futures::future::join;
use stillframe_protocol::{Reservation, Step};

use super::keys::{KeyEncoder, entries, hash};
use super::{
    ExactChanges, Target, Transaction, UniqueKey, changed_meanwhile, existing_keys,
    unique_violation,
};
use crate::{ConstraintKind, Error, Frame, Generated, Relation, SqlState};

/// Rows that a statement adds to a table whose only rules are a primary key and NOT NULL.
#[derive(Debug)]
pub(crate) struct Loading {
    target: Target,
    /// The statement, for messages.
    command: &'static str,
    /// Of a table with a primary key.
    keys: Option<Keys>,
    rows: u64,
    /// The rows, where they are part of a block, which may read them; else they are at the hosts.
    kept: Option<Vec<ExactChanges>>,
}

/// A row that mustn't come, and its number among all that have.
#[derive(Debug)]
pub(crate) struct Repeated {
    pub(crate) row: usize,
    pub(crate) error: Error,
}

/// The keys that have come. Of each no more is remembered than its columns and a hash.
#[derive(Debug)]
struct Keys {
    encoder: KeyEncoder,
    hashes: HashSet<u64>,
    batches: Vec<RecordBatch>,
}

impl Loading {
    /// None of a table whose rows must be looked at in more ways.
    pub(crate) fn new(
        target: &Target,
        command: &'static str,
        is_in_block: bool,
    ) -> Result<Option<Self>, Error> {
        if has_rules(target.relation()) {
            return Ok(None);
        }
        let keys = target.is_keyed().then(|| Keys::new(target)).transpose()?;
        let kept = is_in_block.then(Vec::new);
        Ok(Some(Self { target: target.clone(), command, keys, rows: 0, kept }))
    }

    /// How many rows have come.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds rows, as stored.
    pub(crate) async fn add(
        &mut self,
        transaction: &mut Transaction,
        rows: RecordBatch,
    ) -> Result<(), LoadError> {
        if let Some(keys) = &mut self.keys
            && let Some(row) = keys.add(&self.target, &rows)?
        {
            let error = violation(&self.target, &rows, row);
            return Err(LoadError::Repeated(Repeated { row: self.rows as usize + row, error }));
        }
        self.rows += rows.num_rows() as u64;
        let changes = ExactChanges::inserted(&self.target, rows);
        match &mut self.kept {
            Some(kept) => kept.push(changes),
            None => transaction.stage(&[changes]).await?,
        }
        Ok(())
    }

    /// Reserves the rows, if none of them is there already. The transaction may commit then.
    pub(crate) async fn finish(mut self, transaction: &mut Transaction) -> Result<(), LoadError> {
        if self.rows > 0 {
            self.reserve(transaction).await?;
        }
        let kept = self.kept.take().unwrap_or_default();
        Ok(transaction.keep(&self.target, kept)?)
    }

    async fn reserve(&self, transaction: &mut Transaction) -> Result<(), LoadError> {
        let mut at_least = Step(0);
        loop {
            let frame = transaction.frame(at_least).await?;
            check_table(&self.target, self.command, &frame)?;
            let hashes = self.keys.iter().flat_map(|keys| keys.hashes.iter().copied()).collect();
            let entries = entries(self.target.id(), hashes, vec![]);
            let (reservation, unique) =
                join(transaction.reserve(&frame, entries), self.check_keys(&frame)).await;
            match reservation? {
                Reservation::Granted => return unique,
                Reservation::Changed(step) if transaction.is_repeatable() => {
                    let newer = transaction.newer_frame(step).await?;
                    self.check_keys(&newer).await?;
                    return Err(changed_meanwhile().into());
                }
                Reservation::Changed(step) => at_least = step,
            }
        }
    }

    async fn check_keys(&self, frame: &Arc<Frame>) -> Result<(), LoadError> {
        let Some(keys) = &self.keys else { return Ok(()) };
        let existing = existing_keys(frame, &self.target, &keys.encoder, &keys.batches).await?;
        if existing.is_empty() {
            return Ok(());
        }
        let mut before = 0;
        for batch in &keys.batches {
            let encoded = keys.encoder.encode(batch)?;
            if let Some(row) = encoded.iter().position(|key| existing.contains(key.data())) {
                let error = violation(&self.target, batch, row);
                return Err(LoadError::Repeated(Repeated { row: before + row, error }));
            }
            before += batch.num_rows();
        }
        Err(Error::internal("a host found a key that nobody has asked for").into())
    }
}

/// Why rows can't be added.
#[derive(Debug)]
pub(crate) enum LoadError {
    /// A row has the key of another.
    Repeated(Repeated),
    /// Anything else.
    Other(Error),
}

impl From<Error> for LoadError {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl From<LoadError> for Error {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Repeated(Repeated { error, .. }) | LoadError::Other(error) => error,
        }
    }
}

impl Keys {
    fn new(target: &Target) -> Result<Self, Error> {
        Ok(Self { encoder: target.key_encoder()?, hashes: HashSet::new(), batches: vec![] })
    }

    /// Adds the keys of rows; returns the first row whose key has come before.
    fn add(&mut self, target: &Target, rows: &RecordBatch) -> Result<Option<usize>, Error> {
        let keys = target.keys_of(rows)?;
        let encoded = self.encoder.encode(&keys)?;
        for (row, key) in encoded.iter().enumerate() {
            if self.hashes.insert(hash(key.data())) {
                continue;
            }
            // Keys of one hash are hardly ever two.
            let is_earlier = encoded.iter().take(row).any(|earlier| earlier == key);
            if is_earlier || self.has(key.data())? {
                return Ok(Some(row));
            }
        }
        self.batches.push(keys);
        Ok(None)
    }

    fn has(&self, key: &[u8]) -> Result<bool, Error> {
        for batch in &self.batches {
            if self.encoder.encode(batch)?.iter().any(|earlier| earlier.data() == key) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether rows of a table must be looked at in more ways than for NULLs and a primary key.
fn has_rules(relation: &Relation) -> bool {
    let needs_nothing = |kind: &ConstraintKind| {
        matches!(kind, ConstraintKind::PrimaryKey | ConstraintKind::Index { .. })
    };
    !relation.constraints.iter().all(|constraint| needs_nothing(&constraint.kind))
        || relation.columns.iter().any(|c| matches!(c.generated, Some(Generated::Stored { .. })))
}

fn violation(target: &Target, keys: &RecordBatch, row: usize) -> Error {
    match UniqueKey::all(target.relation()).first() {
        Some(key) => unique_violation(target, key, keys, row),
        None => Error::internal("a repeated key of a table without one"),
    }
}

/// The table must still be as it was when the statement began.
pub(crate) fn check_table(target: &Target, command: &str, frame: &Frame) -> Result<(), Error> {
    let relation = target.relation();
    match frame.catalog().relations.get(&relation.id) {
        Some(found) if found == relation => Ok(()),
        Some(_) => {
            let message = format!("relation \"{}\" was changed during {command}", relation.name);
            Err(Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message))
        }
        None => {
            let message = format!("relation \"{}\" does not exist", relation.name);
            Err(Error::new(SqlState::UNDEFINED_TABLE, message)
                .with_detail(format!("It was dropped during {command}.")))
        }
    }
}
