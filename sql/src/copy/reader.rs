//! COPY's data to rows of a table, batch by batch, as the data comes.

use std::ops::Range;

use arrow::array::ArrayRef;

use super::fields::{Fields, utf8};
use super::format::{Format, Header};
use super::lines::Lines;
use super::tuples::Tuples;
use crate::text::{Excess, TextDecoder, TextFormat};
use crate::write::Target;
use crate::{Error, SqlState, Type, binary};

/// How many rows a batch has.
const BATCH_ROWS: usize = 8192;

/// How many bytes of a line or a value an error shows.
const SHOWN_BYTES_MAX: usize = 100;

/// Reads the data of one COPY.
#[derive(Debug)]
pub(super) struct Reader {
    target: Target,
    format: Format,
    lines: Lines,
    fields: Fields,
    /// Of data in binary format; there are no lines then.
    tuples: Tuples,
    /// In the order of the data.
    columns: Vec<Column>,
    header: Header,
    /// Columns that aren't in the data and mustn't be NULL: every row fails.
    lacks_values: bool,
    /// Of each row of the batch under way.
    line_numbers: Vec<u64>,
}

#[derive(Debug)]
struct Column {
    /// The place in the table's definition.
    place: usize,
    name: String,
    kind: Type,
    not_null: bool,
    force_not_null: bool,
    force_null: bool,
    decoder: TextDecoder,
}

/// Some rows of the table.
#[derive(Debug)]
pub(super) struct Batch {
    /// By place in the definition; none where the data has no column.
    pub(super) values: Vec<Option<ArrayRef>>,
    /// By row.
    pub(super) line_numbers: Vec<u64>,
}

impl Reader {
    /// A reader of data that has these columns, by place in the table's definition.
    pub(super) fn new(
        target: &Target,
        places: &[usize],
        format: Format,
        text: &TextFormat,
    ) -> Result<Self, Error> {
        let definition = &target.relation().columns;
        let columns = places.iter().map(|place| {
            let column = &definition[*place];
            Ok(Column {
                place: *place,
                name: column.name.clone(),
                kind: column.kind.clone(),
                not_null: column.not_null,
                force_not_null: format.force_not_null.contains(&column.name),
                force_null: format.force_null.contains(&column.name),
                decoder: TextDecoder::new(&column.kind, text, Excess::Refuse)?,
            })
        });
        let columns = columns.collect::<Result<_, Error>>()?;
        let mut missing =
            definition.iter().enumerate().filter(|(place, _)| !places.contains(place));
        Ok(Self {
            lacks_values: missing
                .any(|(place, column)| column.not_null && !target.has_value(place)),
            target: target.clone(),
            lines: Lines::new(format.syntax.quotes),
            fields: Fields::default(),
            tuples: Tuples::default(),
            columns,
            header: format.header,
            format,
            line_numbers: vec![],
        })
    }

    /// How many columns the data has.
    pub(super) fn columns(&self) -> usize {
        self.columns.len()
    }

    /// Takes a piece of the data, cut anywhere.
    pub(super) fn push(&mut self, data: &[u8]) {
        match self.format.is_binary {
            true => self.tuples.push(data),
            false => self.lines.push(data),
        }
    }

    /// All data is there.
    pub(super) fn complete(&mut self) {
        self.lines.complete();
        self.tuples.complete();
    }

    /// The next full batch; the last one when all data is there. `None` if there is none now.
    pub(super) fn next_batch(&mut self) -> Result<Option<Batch>, Error> {
        if self.format.is_binary {
            return self.next_binary_batch();
        }
        while let Some(line) = self.next_line()? {
            let is_valid = self.read_row(&line)?;
            self.line_numbers.push(self.lines.number());
            if !is_valid {
                let Batch { values, line_numbers } = self.finish_batch();
                let error = self.target.rows(values, line_numbers.len()).err();
                let error = error.unwrap_or_else(|| Error::internal("a NULL that is none"));
                return Err(self.at_line(error, &line));
            }
            if self.line_numbers.len() == BATCH_ROWS {
                return Ok(Some(self.finish_batch()));
            }
        }
        if self.lines.is_over() && !self.line_numbers.is_empty() {
            return Ok(Some(self.finish_batch()));
        }
        Ok(None)
    }

    fn next_binary_batch(&mut self) -> Result<Option<Batch>, Error> {
        let name = self.name().to_owned();
        let columns = self.columns.len();
        loop {
            let next = self.tuples.next(columns);
            let number = self.tuples.number();
            let context = || format!("COPY {name}, line {number}");
            if !next.map_err(|error| error.with_context(context()))? {
                break;
            }
            self.line_numbers.push(number);
            let mut is_valid = !self.lacks_values;
            for (value, column) in self.tuples.values().zip(&mut self.columns) {
                let Some(bytes) = value else {
                    column.decoder.append_null();
                    is_valid &= !column.not_null;
                    continue;
                };
                let read = binary::read(&column.kind, bytes);
                read.and_then(|text| column.decoder.append(&text)).map_err(|error| {
                    error.with_context(format!("{}, column {}", context(), column.name))
                })?;
            }
            if !is_valid {
                let Batch { values, line_numbers } = self.finish_batch();
                let error = self.target.rows(values, line_numbers.len()).err();
                let error = error.unwrap_or_else(|| Error::internal("a NULL that is none"));
                return Err(error.with_context(context()));
            }
            if self.line_numbers.len() == BATCH_ROWS {
                return Ok(Some(self.finish_batch()));
            }
        }
        let is_last = self.tuples.is_over() && !self.line_numbers.is_empty();
        Ok(is_last.then(|| self.finish_batch()))
    }

    fn name(&self) -> &str {
        &self.target.relation().name
    }

    /// Where an error was found that lies in this line.
    pub(super) fn at(&self, error: Error, line_number: u64) -> Error {
        error.with_context(format!("COPY {}, line {line_number}", self.name()))
    }

    fn next_line(&mut self) -> Result<Option<Range<usize>>, Error> {
        loop {
            let line = self.lines.next_line().and_then(|line| {
                if let Some(line) = &line {
                    utf8(self.lines.bytes(line))?;
                }
                Ok(line)
            });
            let line = line.map_err(|error| self.at(error, self.lines.number()))?;
            match (line, self.header) {
                (Some(line), Header::Matched) => {
                    self.match_header(&line).map_err(|error| self.at_line(error, &line))?;
                    self.header = Header::Absent;
                }
                (Some(_), Header::Ignored) => self.header = Header::Absent,
                // Without any line there is no header either.
                (None, Header::Matched) if self.lines.is_over() => {
                    self.match_header(&(0..0)).map_err(|error| {
                        let context = format!("COPY {}, line 1: \"\"", self.name());
                        error.with_context(context)
                    })?;
                    self.header = Header::Absent;
                }
                (line, _) => return Ok(line),
            }
        }
    }

    fn match_header(&mut self, line: &Range<usize>) -> Result<(), Error> {
        self.fields.read(&self.format.syntax, self.lines.bytes(line))?;
        let (found, expected) = (self.fields.len(), self.columns.len());
        if found != expected {
            return Err(bad_format(format!(
                "wrong number of fields in header line: got {found}, expected {expected}"
            )));
        }
        for (place, (field, column)) in self.fields.iter()?.zip(&self.columns).enumerate() {
            let got = match field {
                Some(name) if name == column.name => continue,
                Some(name) => format!("\"{name}\""),
                None => format!("null value (\"{}\")", self.format.syntax.null),
            };
            return Err(bad_format(format!(
                "column name mismatch in header line field {}: got {got}, expected \"{}\"",
                place + 1,
                column.name
            )));
        }
        Ok(())
    }

    /// Reads a line into the batch under way; false if the row has a NULL where none may be.
    fn read_row(&mut self, line: &Range<usize>) -> Result<bool, Error> {
        let bytes = self.lines.bytes(line);
        self.fields.read(&self.format.syntax, bytes).map_err(|error| self.at_line(error, line))?;
        if self.fields.len() > self.columns.len() {
            let error = bad_format("extra data after last expected column");
            return Err(self.at_line(error, line));
        }
        if let Some(column) = self.columns.get(self.fields.len()) {
            let error = bad_format(format!("missing data for column \"{}\"", column.name));
            return Err(self.at_line(error, line));
        }
        let null = &self.format.syntax.null;
        let mut is_valid = !self.lacks_values;
        let fields = match self.fields.iter() {
            Ok(fields) => fields,
            Err(error) => return Err(self.at_line(error, line)),
        };
        for (field, column) in fields.zip(&mut self.columns) {
            let field = match field {
                None if column.force_not_null => Some(null.as_str()),
                Some(text) if column.force_null && text == null => None,
                field => field,
            };
            let Some(text) = field else {
                column.decoder.append_null();
                is_valid &= !column.not_null;
                continue;
            };
            if let Err(error) = column.decoder.append(text) {
                let context = format!(
                    "COPY {}, line {}, column {}: \"{}\"",
                    self.target.relation().name,
                    self.lines.number(),
                    column.name,
                    shown(text)
                );
                return Err(error.with_context(context));
            }
        }
        Ok(is_valid)
    }

    fn finish_batch(&mut self) -> Batch {
        let line_numbers = std::mem::take(&mut self.line_numbers);
        let mut values = vec![None; self.target.relation().columns.len()];
        for column in &mut self.columns {
            values[column.place] = Some(column.decoder.finish());
        }
        Batch { values, line_numbers }
    }

    fn at_line(&self, error: Error, line: &Range<usize>) -> Error {
        let text = String::from_utf8_lossy(self.lines.bytes(line));
        let context =
            format!("COPY {}, line {}: \"{}\"", self.name(), self.lines.number(), shown(&text));
        error.with_context(context)
    }
}

fn bad_format(message: impl Into<String>) -> Error {
    Error::new(SqlState::BAD_COPY_FILE_FORMAT, message)
}

/// The text, cut where it is too long to be shown.
fn shown(text: &str) -> String {
    if text.len() <= SHOWN_BYTES_MAX {
        return text.to_owned();
    }
    format!("{}...", &text[..text.floor_char_boundary(SHOWN_BYTES_MAX)])
}
