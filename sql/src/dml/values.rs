//! Rows of expressions to columns of a table: constants are read at once, everything else is asked
//! of the planner.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::compute::{concat, interleave};
use datafusion::sql::sqlparser::ast::Expr;

use super::Statement;
use super::assign::assign;
use super::complete::each;
use super::constant::Constant;
use super::defaults::volatile;
use super::read::{answer, select};
use crate::query::QueryContext;
use crate::resolve::refuse_grouped;
use crate::text::{Excess, TextDecoder};
use crate::write::Target;
use crate::{Column, Error, Frame, SqlState};

/// How many expressions one query computes at most.
const EXPRESSIONS_PER_QUERY: usize = 256;

/// What a column is given.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cell<'a> {
    Default,
    Expr(&'a Expr),
}

impl<'a> Cell<'a> {
    /// An expression, or the word DEFAULT.
    pub(super) fn new(expr: &'a Expr) -> Self {
        match expr {
            Expr::Identifier(word)
                if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("default") =>
            {
                Self::Default
            }
            expr => Self::Expr(expr),
        }
    }
}

/// Reads the constants of one column; remembers what has to be computed.
#[derive(Debug)]
pub(super) struct ColumnValues<'a> {
    column: &'a Column,
    decoder: TextDecoder,
    /// By row, from which of the three (constants, computed, the default) it comes and its place
    /// there.
    cells: Vec<(usize, usize)>,
    computed: Vec<&'a Expr>,
    /// What the word DEFAULT stands for; NULL without one.
    default: Option<ArrayRef>,
    /// The same, if it differs from row to row, and how many rows have it.
    each: Option<Expr>,
    each_rows: usize,
}

impl<'a> ColumnValues<'a> {
    pub(super) fn new(
        statement: &Statement<'_>,
        context: &QueryContext,
        target: &'a Target,
        place: usize,
    ) -> Result<Self, Error> {
        let column = &target.relation().columns[place];
        let default = target.default_of(place).cloned();
        let format = statement.settings.text_format();
        let decoder = TextDecoder::new(&column.kind, &format, Excess::Refuse)?;
        let each = volatile(context, column)?;
        Ok(Self { column, decoder, cells: vec![], computed: vec![], default, each, each_rows: 0 })
    }

    /// Adds the next row's value.
    pub(super) fn push(&mut self, statement: &Statement<'a>, cell: Cell<'a>) -> Result<(), Error> {
        let kind = &self.column.kind;
        match cell {
            Cell::Default if self.each.is_some() => {
                self.cells.push((2, self.each_rows));
                self.each_rows += 1;
            }
            Cell::Default if self.default.is_some() => self.cells.push((2, 0)),
            Cell::Default => {
                self.cells.push((0, self.decoder.len()));
                self.decoder.append_null();
            }
            Cell::Expr(expr) => match Constant::of(expr, kind, &statement.arguments) {
                Some(constant) => {
                    self.cells.push((0, self.decoder.len()));
                    constant.append(kind, &mut self.decoder)?;
                }
                None => {
                    self.cells.push((1, self.computed.len()));
                    self.computed.push(expr);
                }
            },
        }
        Ok(())
    }
}

impl ColumnValues<'_> {
    /// The only value, which is a constant or the default.
    pub(super) fn constant(mut self) -> ArrayRef {
        match (self.cells.as_slice(), self.default) {
            ([(2, _)], Some(default)) => default,
            _ => self.decoder.finish(),
        }
    }
}

/// Computes what is left, and puts the columns together.
pub(super) async fn finish(
    statement: &Statement<'_>,
    frame: &Arc<Frame>,
    columns: Vec<ColumnValues<'_>>,
) -> Result<Vec<ArrayRef>, Error> {
    let expressions = columns
        .iter()
        .flat_map(|column| column.computed.iter().map(move |expr| (column.column, *expr)));
    let expressions: Vec<_> = expressions.collect();
    if !expressions.is_empty() {
        let context = QueryContext::new(Arc::clone(frame), statement.settings.clone());
        for (_, expr) in &expressions {
            refuse_grouped(&context, expr, "VALUES")?;
        }
    }
    let mut computed = vec![];
    for chunk in expressions.chunks(EXPRESSIONS_PER_QUERY) {
        let query = select(chunk.iter().map(|(_, expr)| (*expr).clone()), vec![], None)?;
        let answer = answer(statement, frame, &query).await?;
        if answer.rows != 1 {
            return Err(Error::unsupported("a set-returning function in VALUES"));
        }
        for ((column, _), (kind, array)) in chunk.iter().zip(answer.columns) {
            computed.push(assign(&array, &kind, column, &statement.settings.text_format())?);
        }
    }
    let mut computed = computed.into_iter();
    let mut finished = Vec::with_capacity(columns.len());
    for mut column in columns {
        let constants = column.decoder.finish();
        if column.cells.iter().all(|(source, _)| *source == 0) {
            finished.push(constants);
            continue;
        }
        let arrays: Vec<_> = computed.by_ref().take(column.computed.len()).collect();
        let arrays: Vec<_> = arrays.iter().map(AsRef::as_ref).collect();
        let computed = match arrays.is_empty() {
            true => constants.slice(0, 0),
            false => concat(&arrays).map_err(broken)?,
        };
        let default = match (&column.each, column.default) {
            (Some(expr), _) => {
                each(frame, statement.settings, column.column, expr, column.each_rows).await?
            }
            (None, Some(default)) => default,
            (None, None) => constants.slice(0, 0),
        };
        let sources = [constants.as_ref(), computed.as_ref(), default.as_ref()];
        finished.push(interleave(&sources, &column.cells).map_err(broken)?);
    }
    Ok(finished)
}

fn broken(error: arrow::error::ArrowError) -> Error {
    Error::new(SqlState::INTERNAL_ERROR, format!("values cannot be put together: {error}"))
}
