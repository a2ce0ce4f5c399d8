//! COPY TO STDOUT: the rows of a table or a query as lines, or in binary format.

mod binary;

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use datafusion::sql::sqlparser::ast::{self, Expr, SelectItem, SetExpr};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use futures::StreamExt;
use futures::stream::BoxStream;
use stillframe_protocol::Step;

use super::fields::Syntax;
use super::format::OutputFormat;
use super::statement::{Copied, CopyStatement};
use crate::parser::Source;
use crate::query::QueryContext;
use crate::text::{TextColumn, TextFormat};
use crate::{Error, Frame, OutputColumn, RelationKind, SqlState, names};

/// A COPY TO STDOUT that is still coming. To drop it stops it and frees its lease.
pub struct CopyOut {
    /// How many columns there are.
    pub columns: usize,
    /// The step that is read.
    pub step: Option<Step>,
    /// The lines, each with its end; or the rows in binary format.
    pub lines: BoxStream<'static, Result<Vec<Vec<u8>>, Error>>,
    /// How many more of them than rows there are: a header in text, a trailer in binary format.
    pub lines_beside: u64,
    /// Whether it is in the binary format.
    pub is_binary: bool,
}

impl CopyOut {
    /// Begins a COPY TO STDOUT.
    pub(crate) async fn begin(
        frame: Arc<Frame>,
        settings: &crate::settings::Settings,
        source: &Arc<Source>,
        statement: &CopyStatement,
    ) -> Result<Self, Error> {
        let format = OutputFormat::new(&statement.options)?;
        if statement.is_filtered {
            return Err(Error::new(
                SqlState::SYNTAX_ERROR,
                "WHERE clause not allowed with COPY TO",
            ));
        }
        let mut context = QueryContext::new(frame, settings.clone());
        context.source = Some(Arc::clone(source));
        let query = query(&context, statement)?;
        let planned = context.plan(&query, &[])?;
        let step = Some(context.frame.step());
        if format.is_binary {
            let batches = context.run(&planned.plan).await?;
            let columns = planned.columns.len();
            let lines = binary::rows(planned.columns, batches);
            return Ok(Self { columns, step, lines, lines_beside: 1, is_binary: true });
        }
        let writer = Writer::new(&planned.columns, format, settings.text_format())?;
        let batches = context.run(&planned.plan).await?;
        let header = writer.header();
        let has_header = header.is_some();
        let header = futures::stream::iter(header.map(|line| Ok(vec![line])));
        let lines = batches.map(move |batch| writer.lines(&batch?));
        Ok(Self {
            columns: planned.columns.len(),
            step,
            lines: header.chain(lines).boxed(),
            lines_beside: has_header.into(),
            is_binary: false,
        })
    }
}

/// What is copied, as a query.
fn query(context: &QueryContext, statement: &CopyStatement) -> Result<ast::Query, Error> {
    let (name, columns) = match &statement.what {
        Copied::Query(tokens) => {
            let mut parser =
                Parser::new(&PostgreSqlDialect {}).with_tokens_with_locations(tokens.clone());
            let parsed = parser.parse_statement();
            return match parsed {
                Ok(ast::Statement::Query(query)) if !crate::session::is_write(&query) => Ok(*query),
                Ok(other) => Err(Error::unsupported(format!("COPY of {other}"))),
                Err(error) => Err(Error::new(SqlState::SYNTAX_ERROR, error.to_string())),
            };
        }
        Copied::Table { name, columns } => (name, columns),
    };
    let mut query = crate::resolve::select_all();
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(Error::internal("SELECT is not a SELECT"));
    };
    if let Some(table) = select.from.first_mut()
        && let ast::TableFactor::Table { name: table, .. } = &mut table.relation
    {
        table.clone_from(name);
    }
    // What nobody gives a value is left out, so that the same table can take it again.
    let relation = context.relation(name).ok();
    if let Some(relation) = relation {
        let kind = match relation.kind {
            RelationKind::View { .. } => Some("view"),
            RelationKind::MaterializedView { .. } => Some("materialized view"),
            RelationKind::Table { .. } => None,
        };
        if let Some(kind) = kind {
            let message = format!("cannot copy from {kind} \"{}\"", relation.name);
            return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message)
                .with_hint("Try the COPY (SELECT ...) TO variant."));
        }
    }
    let listed: Vec<String> = match (columns, relation) {
        (Some(columns), _) => columns.iter().map(names::fold).collect(),
        (None, Some(relation)) => {
            let given = relation.columns.iter().filter(|column| !column.is_computed());
            given.map(|column| column.name.clone()).collect()
        }
        (None, None) => return Ok(query),
    };
    let mut seen = BTreeSet::new();
    for column in &listed {
        let table = names::unquoted(name);
        if relation.is_some_and(|found| found.columns.iter().all(|known| known.name != *column)) {
            let message = format!("column \"{column}\" of relation \"{table}\" does not exist");
            return Err(Error::new(SqlState::UNDEFINED_COLUMN, message));
        }
        if !seen.insert(column) {
            let message = format!("column \"{column}\" specified more than once");
            return Err(Error::new(SqlState::DUPLICATE_COLUMN, message));
        }
    }
    let items = listed.iter().map(|name| Expr::Identifier(names::exact(name)));
    select.projection = items.map(SelectItem::UnnamedExpr).collect();
    Ok(query)
}

/// Writes rows as lines.
struct Writer {
    columns: Vec<OutputColumn>,
    /// By column, whether values are always quoted.
    quoted: Vec<bool>,
    syntax: Syntax,
    has_header: bool,
    text: TextFormat,
}

impl Writer {
    fn new(
        columns: &[OutputColumn],
        format: OutputFormat,
        text: TextFormat,
    ) -> Result<Self, Error> {
        let OutputFormat { syntax, has_header, quotes_all, quoted, .. } = format;
        for name in &quoted {
            if columns.iter().all(|column| column.name != *name) {
                let message = format!("column \"{name}\" does not exist");
                return Err(Error::new(SqlState::UNDEFINED_COLUMN, message));
            }
        }
        let quoted = columns.iter().map(|column| quotes_all || quoted.contains(&column.name));
        let quoted = quoted.collect();
        Ok(Self { columns: columns.to_vec(), quoted, syntax, has_header, text })
    }

    fn header(&self) -> Option<Vec<u8>> {
        if !self.has_header {
            return None;
        }
        let mut line = vec![];
        for (place, column) in self.columns.iter().enumerate() {
            self.begin(place, &mut line);
            self.value(column.name.as_bytes(), false, &mut line);
        }
        line.push(b'\n');
        Some(line)
    }

    fn lines(&self, batch: &RecordBatch) -> Result<Vec<Vec<u8>>, Error> {
        let columns = self.columns.iter().zip(batch.columns());
        let columns =
            columns.map(|(column, array)| TextColumn::new(&column.kind, array, &self.text));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let mut lines = Vec::with_capacity(batch.num_rows());
        let mut value = vec![];
        for row in 0..batch.num_rows() {
            let mut line = vec![];
            for (place, column) in columns.iter().enumerate() {
                self.begin(place, &mut line);
                value.clear();
                match column.write(row, &mut value) {
                    true => self.value(&value, self.quoted[place], &mut line),
                    false => line.extend_from_slice(self.syntax.null.as_bytes()),
                }
            }
            line.push(b'\n');
            lines.push(line);
        }
        Ok(lines)
    }

    fn begin(&self, place: usize, line: &mut Vec<u8>) {
        if place > 0 {
            line.push(self.syntax.delimiter);
        }
    }

    fn value(&self, value: &[u8], quotes: bool, line: &mut Vec<u8>) {
        let Some(csv) = &self.syntax.quotes else {
            for byte in value {
                let letter = match byte {
                    8 => b'b',
                    9 => b't',
                    10 => b'n',
                    11 => b'v',
                    12 => b'f',
                    13 => b'r',
                    byte if *byte == b'\\' || *byte == self.syntax.delimiter => *byte,
                    byte => {
                        line.push(*byte);
                        continue;
                    }
                };
                line.extend([b'\\', letter]);
            }
            return;
        };
        let is_special = |byte: &u8| {
            *byte == self.syntax.delimiter || *byte == csv.quote || matches!(byte, b'\n' | b'\r')
        };
        let is_end = self.columns.len() == 1 && value == b"\\.";
        let needs_quotes = quotes
            || value == self.syntax.null.as_bytes()
            || is_end
            || value.iter().any(is_special);
        if !needs_quotes {
            line.extend_from_slice(value);
            return;
        }
        line.push(csv.quote);
        for byte in value {
            if *byte == csv.quote || *byte == csv.escape {
                line.push(csv.escape);
            }
            line.push(*byte);
        }
        line.push(csv.quote);
    }
}
