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

use std::sync::Arc;

use arrow::compute::concat_batches;
use arrow::record_batch::RecordBatch;
use stillframe_protocol::Step;

use self::format::Format;
pub use self::output::CopyOut;
use self::reader::{Batch, Reader};
pub(crate) use self::statement::{Copied, CopyStatement, Direction, Unexpected, parse};
pub(crate) use self::used::Used;
use crate::query::Given;
use crate::settings::Settings;
use crate::write::{LoadError, Loading, Proposal, Repeated, Returned, Target, Write, check_table};
use crate::{Error, Frame, SqlState, dml, names};

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
            None => {
                let columns = target.relation().columns.iter().enumerate();
                columns.filter(|(_, column)| !column.is_computed()).map(|(at, _)| at).collect()
            }
            Some(columns) => {
                let names: Vec<_> = columns.iter().map(names::fold).collect();
                let places = target.columns(&names)?;
                let mut columns = places.iter().map(|place| &target.relation().columns[*place]);
                if let Some(computed) = columns.find(|column| column.is_computed()) {
                    let message = format!("column \"{}\" is a generated column", computed.name);
                    return Err(Error::new(SqlState::INVALID_COLUMN_REFERENCE, message)
                        .with_detail("Generated columns cannot be used in COPY."));
                }
                places
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
        let loading = match later.is_empty() {
            true => Loading::new(&target, "COPY", used.is_lent())?,
            false => None,
        };
        let destination = match loading {
            Some(loading) => {
                Destination::Loading { loading: Box::new(loading), line_numbers: vec![] }
            }
            None => Destination::Checked(Checked { settings: settings.clone(), rows: vec![] }),
        };
        let reading = target.clone().with_later(later);
        let reader = Reader::new(&reading, &places, format, &settings.text_format())?;
        let load = Load { used, target, reader, rows: 0, destination };
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
    rows: u64,
    destination: Destination,
}

/// Where rows go.
#[derive(Debug)]
enum Destination {
    /// Into the step, as they come.
    Loading { loading: Box<Loading>, line_numbers: Vec<u64> },
    /// They belong to a table with more rules than a primary key, and are written in the end, like
    /// those of an INSERT.
    Checked(Checked),
}

#[derive(Debug)]
struct Checked {
    settings: Settings,
    rows: Vec<RecordBatch>,
}

/// The rows of a COPY, as a statement that inserts them.
struct Loaded<'a> {
    settings: &'a Settings,
    target: &'a Target,
    rows: RecordBatch,
}

impl Write for Loaded<'_> {
    async fn propose(&self, frame: &Arc<Frame>) -> Result<Proposal, Error> {
        check_table(self.target, "COPY", frame)?;
        Proposal::insert(self.target, self.rows.clone())
    }

    fn settings(&self) -> &Settings {
        self.settings
    }

    async fn answer(&self, _: &Arc<Frame>, _: Vec<Given>) -> Result<Option<Returned>, Error> {
        Ok(None)
    }
}

impl Load {
    /// Stages the batches that are complete.
    async fn drain(&mut self) -> Result<(), Error> {
        while let Some(Batch { mut values, line_numbers }) = self.reader.next_batch()? {
            let count = line_numbers.len();
            self.rows += count as u64;
            match &mut self.destination {
                Destination::Checked(Checked { settings, rows }) => {
                    let frame = self.used.transaction()?.frame(Step(0)).await?;
                    dml::fill_each(&frame, settings, &self.target, &mut values, count).await?;
                    let complete =
                        dml::complete(&frame, settings, &self.target, values, count).await;
                    let context = format!("COPY {}", self.target.relation().name);
                    rows.push(complete.map_err(|error| error.with_context(context))?);
                }
                Destination::Loading { loading, line_numbers: all } => {
                    let rows = self.target.rows(values, count)?;
                    all.extend(line_numbers);
                    let added = loading.add(self.used.transaction()?, rows).await;
                    added.map_err(|error| located(&self.reader, all, error))?;
                }
            }
        }
        Ok(())
    }

    /// Lets all rows enter the next step, or the block's, if none of them is there already.
    async fn commit(mut self) -> Result<(), Error> {
        match self.destination {
            Destination::Checked(Checked { settings, rows }) => {
                let target = &self.target;
                let rows = concat_batches(target.schema(), &rows)
                    .map_err(|error| Error::internal(error.to_string()))?;
                let loaded = Loaded { settings: &settings, target, rows };
                self.used.transaction()?.run(&loaded).await?;
            }
            Destination::Loading { loading, line_numbers } => {
                let finished = loading.finish(self.used.transaction()?).await;
                finished.map_err(|error| located(&self.reader, &line_numbers, error))?;
            }
        }
        self.used.finish().await
    }
}

/// The error, with the line of the row that it is about.
fn located(reader: &Reader, line_numbers: &[u64], error: LoadError) -> Error {
    match error {
        LoadError::Repeated(Repeated { row, error }) => match line_numbers.get(row) {
            Some(line_number) => reader.at(error, *line_number),
            None => error,
        },
        LoadError::Other(error) => error,
    }
}
