//! COPY FROM STDIN: data that comes in pieces to rows of a table, all in one step.
//!
//! ```text
//! pieces -> lines -> fields -> values -> batches, staged at the hosts as they are full
//!                                  end -> reserve, look for keys that are there, commit
//! ```

#[cfg(test)]
mod cuts;
mod fields;
mod format;
mod lines;
mod output;
mod reader;
mod statement;
#[cfg(test)]
mod tests;
mod tuples;
mod used;

use std::collections::HashSet;
use std::sync::Arc;

use arrow::compute::concat_batches;
use arrow::record_batch::RecordBatch;
use futures::future::join;
use stillframe_protocol::{Reservation, Step};

use self::format::Format;
pub use self::output::CopyOut;
use self::reader::{Batch, Reader};
pub(crate) use self::statement::{Copied, CopyStatement, Direction, Unexpected, parse};
pub(crate) use self::used::Used;
use crate::query::Given;
use crate::settings::Settings;
use crate::write::{
    ExactChanges, KeyEncoder, Proposal, Returned, Target, UniqueKey, Write, changed_meanwhile,
    entries, existing_keys, hash, unique_violation,
};
use crate::{ConstraintKind, Error, Frame, Generated, Relation, SqlState, dml, names};

/// A COPY FROM STDIN under way. To drop it leaves nothing behind.
pub struct CopyIn {
    /// How many columns are expected.
    pub columns: usize,
    /// Whether the data comes in binary format.
    pub is_binary: bool,
    load: Box<Load>,
}

impl CopyIn {
    /// Begins a COPY FROM STDIN.
    pub(crate) async fn begin(
        mut used: Used,
        settings: &Settings,
        statement: &CopyStatement,
    ) -> Result<Self, Error> {
        let (name, columns) = match (&statement.what, statement.direction) {
            (Copied::Table { name, columns }, Direction::FromClient) => (name, columns),
            (_, Direction::Server { is_from }) => return Err(server_file(is_from)),
            _ => return Err(Error::internal("a COPY that takes no data")),
        };
        if statement.is_filtered {
            return Err(Error::unsupported("COPY FROM with WHERE"));
        }
        let format = Format::new(&statement.options)?;
        let is_binary = format.is_binary;
        let frame = used.transaction()?.frame(Step(0)).await?;
        let target = dml::target(&frame, settings, name, dml::Command::Copy)?;
        let places = match columns {
            None => (0..target.relation().columns.len()).collect(),
            Some(columns) => {
                let names: Vec<_> = columns.iter().map(names::fold).collect();
                target.columns(&names)?
            }
        };
        for (option, names) in
            [("FORCE_NOT_NULL", &format.force_not_null), ("FORCE_NULL", &format.force_null)]
        {
            for place in target.columns(names)? {
                if !places.contains(&place) {
                    let name = &target.relation().columns[place].name;
                    let message = format!("{option} column \"{name}\" not referenced by COPY");
                    return Err(Error::new(SqlState::INVALID_COLUMN_REFERENCE, message));
                }
            }
        }
        let columns = target.relation().columns.iter().enumerate();
        let columns = columns.filter(|(place, _)| !places.contains(place));
        let defaults = dml::defaults(&frame, settings, columns).await?;
        let target = target.with_defaults(defaults);
        let later = dml::later(&frame, settings, &target, &places)?;
        let checked = (!later.is_empty() || has_rules(target.relation()))
            .then(|| Checked { settings: settings.clone(), rows: vec![] });
        let reading = target.clone().with_later(later);
        let reader = Reader::new(&reading, &places, format, &settings.text_format())?;
        let keys = target.is_keyed().then(|| Keys::new(&target)).transpose()?;
        let load = Load { used, target, reader, keys, rows: 0, kept: vec![], checked };
        Ok(Self { columns: load.reader.columns(), is_binary, load: Box::new(load) })
    }

    /// Takes a piece of the data, cut anywhere. After an error the COPY can only be dropped.
    pub async fn write(&mut self, data: &[u8]) -> Result<(), Error> {
        self.load.reader.push(data);
        self.load.drain().await
    }

    /// All data is there: applies it, and returns the command tag.
    pub async fn finish(self) -> Result<String, Error> {
        let mut load = self.load;
        load.reader.complete();
        load.drain().await?;
        let rows = load.rows;
        load.commit().await?;
        Ok(format!("COPY {rows}"))
    }
}

fn server_file(is_from: bool) -> Error {
    let (role, preposition) =
        if is_from { ("pg_read_server_files", "from") } else { ("pg_write_server_files", "to") };
    let message = format!(
        "must be superuser or have privileges of the {role} role to COPY {preposition} a file"
    );
    Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message).with_hint(
        "Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone.",
    )
}

/// What has been loaded so far.
#[derive(Debug)]
struct Load {
    used: Used,
    target: Target,
    reader: Reader,
    /// Of a table with a primary key.
    keys: Option<Keys>,
    rows: u64,
    /// The rows, where they are part of a block; else they are staged as they come.
    kept: Vec<ExactChanges>,
    /// The rows of a table with more rules than a primary key: they are written in the end, like
    /// those of an INSERT.
    checked: Option<Checked>,
}

#[derive(Debug)]
struct Checked {
    settings: Settings,
    rows: Vec<RecordBatch>,
}

/// Whether rows of a table must be looked at in more ways than for NULLs and a primary key.
fn has_rules(relation: &Relation) -> bool {
    let needs_nothing = |kind: &ConstraintKind| {
        matches!(kind, ConstraintKind::PrimaryKey | ConstraintKind::Index { .. })
    };
    !relation.constraints.iter().all(|constraint| needs_nothing(&constraint.kind))
        || relation.columns.iter().any(|c| matches!(c.generated, Some(Generated::Stored { .. })))
}

/// The rows of a COPY, as a statement that inserts them.
struct Loaded<'a> {
    settings: &'a Settings,
    target: &'a Target,
    rows: RecordBatch,
}

impl Write for Loaded<'_> {
    async fn propose(&self, frame: &Arc<Frame>) -> Result<Proposal, Error> {
        check_table(self.target, frame)?;
        Proposal::insert(self.target, self.rows.clone())
    }

    fn settings(&self) -> &Settings {
        self.settings
    }

    async fn answer(&self, _: &Arc<Frame>, _: Vec<Given>) -> Result<Option<Returned>, Error> {
        Ok(None)
    }
}

/// The keys that have come.
#[derive(Debug)]
struct Keys {
    encoder: KeyEncoder,
    seen: HashSet<Box<[u8]>>,
    hashes: Vec<u64>,
    batches: Vec<RecordBatch>,
    line_numbers: Vec<u64>,
}

impl Load {
    /// Stages the batches that are complete.
    async fn drain(&mut self) -> Result<(), Error> {
        while let Some(Batch { mut values, line_numbers }) = self.reader.next_batch()? {
            let count = line_numbers.len();
            self.rows += count as u64;
            if let Some(Checked { settings, rows }) = &mut self.checked {
                let frame = self.used.transaction()?.frame(Step(0)).await?;
                dml::fill_each(&frame, settings, &self.target, &mut values, count).await?;
                let complete = dml::complete(&frame, settings, &self.target, values, count).await;
                let context = format!("COPY {}", self.target.relation().name);
                rows.push(complete.map_err(|error| error.with_context(context))?);
                continue;
            }
            let rows = self.target.rows(values, count)?;
            if let Some(keys) = &mut self.keys {
                let repeated = keys.add(&self.target, &rows, &line_numbers)?;
                if let Some(row) = repeated {
                    let error = violation(&self.target, &rows, row);
                    return Err(self.reader.at(error, line_numbers[row]));
                }
            }
            let changes = ExactChanges::inserted(&self.target, rows);
            if self.used.is_lent() {
                self.kept.push(changes);
            } else {
                self.used.transaction()?.stage(&[changes]).await?;
            }
        }
        Ok(())
    }

    /// Lets all rows enter the next step, or the block's, if none of them is there already.
    async fn commit(mut self) -> Result<(), Error> {
        if let Some(Checked { settings, rows }) = self.checked.take() {
            let target = &self.target;
            let rows = concat_batches(target.schema(), &rows)
                .map_err(|error| Error::internal(error.to_string()))?;
            let loaded = Loaded { settings: &settings, target, rows };
            self.used.transaction()?.run(&loaded).await?;
            return self.used.finish().await;
        }
        let mut at_least = Step(0);
        while self.rows > 0 {
            let transaction = self.used.transaction()?;
            let frame = transaction.frame(at_least).await?;
            check_table(&self.target, &frame)?;
            let hashes = self.keys.as_ref().map(|keys| keys.hashes.clone()).unwrap_or_default();
            let entries = entries(self.target.id(), hashes, vec![]);
            let (reservation, unique) = join(
                transaction.reserve(&frame, entries),
                check_keys(&frame, &self.target, &self.reader, self.keys.as_ref()),
            )
            .await;
            match reservation? {
                Reservation::Granted => {
                    unique?;
                    break;
                }
                Reservation::Changed(step) if transaction.is_repeatable() => {
                    let newer = transaction.newer_frame(step).await?;
                    check_keys(&newer, &self.target, &self.reader, self.keys.as_ref()).await?;
                    return Err(changed_meanwhile());
                }
                Reservation::Changed(step) => at_least = step,
            }
        }
        let kept = std::mem::take(&mut self.kept);
        self.used.transaction()?.keep(&self.target, kept)?;
        self.used.finish().await
    }
}

fn violation(target: &Target, keys: &RecordBatch, row: usize) -> Error {
    match UniqueKey::all(target.relation()).first() {
        Some(key) => unique_violation(target, key, keys, row),
        None => Error::internal("a repeated key of a table without one"),
    }
}

/// The table must still be as it was when the COPY began.
fn check_table(target: &Target, frame: &Frame) -> Result<(), Error> {
    let relation = target.relation();
    match frame.catalog().relations.get(&relation.id) {
        Some(found) if found == relation => Ok(()),
        Some(_) => {
            let message = format!("relation \"{}\" was changed during COPY", relation.name);
            Err(Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message))
        }
        None => {
            let message = format!("relation \"{}\" does not exist", relation.name);
            Err(Error::new(SqlState::UNDEFINED_TABLE, message)
                .with_detail("It was dropped during COPY."))
        }
    }
}

async fn check_keys(
    frame: &Arc<Frame>,
    target: &Target,
    reader: &Reader,
    keys: Option<&Keys>,
) -> Result<(), Error> {
    let Some(keys) = keys else { return Ok(()) };
    let existing = existing_keys(frame, target, &keys.encoder, &keys.batches).await?;
    if existing.is_empty() {
        return Ok(());
    }
    let mut line_numbers = keys.line_numbers.iter();
    for batch in &keys.batches {
        let encoded = keys.encoder.encode(batch)?;
        for (row, (key, line_number)) in encoded.iter().zip(&mut line_numbers).enumerate() {
            if existing.contains(key.data()) {
                return Err(reader.at(violation(target, batch, row), *line_number));
            }
        }
    }
    Err(Error::internal("a host found a key that nobody has asked for"))
}

impl Keys {
    fn new(target: &Target) -> Result<Self, Error> {
        Ok(Self {
            encoder: target.key_encoder()?,
            seen: HashSet::new(),
            hashes: vec![],
            batches: vec![],
            line_numbers: vec![],
        })
    }

    /// Adds the keys of rows; returns the first row whose key has come before.
    fn add(
        &mut self,
        target: &Target,
        rows: &RecordBatch,
        line_numbers: &[u64],
    ) -> Result<Option<usize>, Error> {
        let keys = target.keys_of(rows)?;
        for (row, key) in self.encoder.encode(&keys)?.iter().enumerate() {
            if !self.seen.insert(Box::from(key.data())) {
                return Ok(Some(row));
            }
            self.hashes.push(hash(key.data()));
        }
        self.batches.push(keys);
        self.line_numbers.extend_from_slice(line_numbers);
        Ok(None)
    }
}
