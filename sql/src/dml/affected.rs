//! The rows that an UPDATE or DELETE is about: a query of their old columns and whatever else is
//! computed beside them.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt64Array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Int64Type};
use arrow::record_batch::RecordBatch;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, Query, TableAlias, TableFactor, TableWithJoins,
};

use super::read::{self, answer};
use super::returning::{Beside, of_table};
use super::{Command, Statement, target};
use crate::query::Given;
use crate::write::Target;
use crate::{Error, Frame, Type, names};

/// The name of the column that tells equal rows of a bag apart.
const ROW_NUMBER: &str = "stillframe row";

/// The rows that a statement is about.
#[derive(Debug)]
pub(super) struct Affected<'a> {
    pub(super) target: Target,
    /// The name under which the statement knows the table.
    qualifier: Ident,
    table: &'a TableFactor,
    /// Other relations that the table is joined with.
    others: &'a [TableWithJoins],
    selection: Option<&'a Expr>,
}

/// The rows that were found.
#[derive(Debug)]
pub(super) struct Found {
    /// As stored.
    pub(super) old: RecordBatch,
    pub(super) computed: Vec<(Type, ArrayRef)>,
}

impl<'a> Affected<'a> {
    pub(super) fn new(
        statement: &Statement<'_>,
        frame: &Frame,
        command: Command,
        table: &'a TableWithJoins,
        others: &'a [TableWithJoins],
        selection: Option<&'a Expr>,
    ) -> Result<Self, Error> {
        let (name, alias) = plain_table(table)?;
        let target = target(frame, statement.settings, name, command)?;
        let qualifier = match alias {
            Some(alias) if !alias.columns.is_empty() => {
                return Err(Error::unsupported("a list of columns in an alias of a written table"));
            }
            Some(alias) => alias.name.clone(),
            None => names::exact(&target.relation().name),
        };
        Ok(Self { target, qualifier, table: &table.relation, others, selection })
    }

    /// The query of the old columns, as stored, followed by `computed`.
    pub(super) fn query(&self, computed: Vec<Expr>) -> Result<Query, Error> {
        let old = self.target.stored_columns().map(|column| self.column(&column.name));
        let number = self.numbers_rows().then(|| self.column(ROW_NUMBER));
        let expressions = old.chain(number).chain(computed);
        let relation = if self.numbers_rows() { self.numbered()? } else { self.table.clone() };
        let from = std::iter::once(TableWithJoins { relation, joins: vec![] });
        let from = from.chain(self.others.iter().cloned()).collect();
        read::select(expressions, from, self.selection.cloned())
    }

    /// Finds the rows, and computes expressions beside each.
    pub(super) async fn find(
        &self,
        statement: &Statement<'_>,
        frame: &Arc<Frame>,
        computed: Vec<Expr>,
    ) -> Result<Found, Error> {
        let answer = answer(statement, frame, &self.query(computed)?).await?;
        let mut columns = answer.columns.into_iter();
        let fields = self.target.schema().fields();
        let old = fields
            .iter()
            .zip(columns.by_ref())
            .map(|(field, (_, array))| exactly(array, field.data_type()));
        let old = self.target.batch(old.collect::<Result<_, Error>>()?, answer.rows)?;
        let numbers = self.numbers_rows().then(|| columns.next()).flatten();
        let found = Found { old, computed: columns.collect() };
        if self.others.is_empty() {
            return Ok(found);
        }
        let rows = self.first_of_each(&found.old, numbers)?;
        found.only(&rows)
    }

    /// The relations beside the table whose columns RETURNING can name.
    pub(super) fn beside(
        &self,
        statement: &Statement<'_>,
        frame: &Arc<Frame>,
    ) -> Result<Vec<Beside>, Error> {
        if !statement.returns() {
            return Ok(vec![]);
        }
        Beside::all(statement, frame, self.others)
    }

    /// The rows that RETURNING is about: those of the table, as stored, and what stands beside them.
    pub(super) fn given(
        &self,
        statement: &Statement<'_>,
        rows: &RecordBatch,
        beside: &[Beside],
        computed: Vec<(Type, ArrayRef)>,
    ) -> Result<Vec<Given>, Error> {
        if !statement.returns() {
            return Ok(vec![]);
        }
        let mut computed = computed.into_iter();
        let own = of_table(&self.qualifier, &self.target, rows);
        let others = beside.iter().map(|beside| beside.given(&mut computed, rows.num_rows()));
        std::iter::once(own).chain(others).collect()
    }

    /// The same without rows.
    pub(super) fn nothing_given(
        &self,
        statement: &Statement<'_>,
        frame: &Arc<Frame>,
    ) -> Result<Vec<Given>, Error> {
        let rows = RecordBatch::new_empty(Arc::clone(self.target.schema()));
        let own = of_table(&self.qualifier, &self.target, &rows);
        let beside = self.beside(statement, frame)?;
        std::iter::once(own).chain(beside.iter().map(Beside::empty)).collect()
    }

    /// Whether equal rows must be told apart: a row that is joined with several others is changed
    /// once, and so is each of its equals.
    fn numbers_rows(&self) -> bool {
        !self.others.is_empty() && !self.target.is_keyed()
    }

    /// The first place of each row of the table in a join.
    fn first_of_each(
        &self,
        old: &RecordBatch,
        numbers: Option<(Type, ArrayRef)>,
    ) -> Result<Vec<u64>, Error> {
        let places = 0..old.num_rows() as u64;
        if let Some((_, numbers)) = numbers {
            let numbers = cast(&numbers, &DataType::Int64).map_err(broken)?;
            let numbers = numbers.as_primitive::<Int64Type>();
            let mut seen = HashSet::new();
            return Ok(places.filter(|row| seen.insert(numbers.value(*row as usize))).collect());
        }
        let keys = self.target.key_encoder()?.encode(old)?;
        let mut seen = HashSet::new();
        Ok(places.filter(|row| seen.insert(keys.row(*row as usize).data())).collect())
    }

    /// The number of a row that [`Affected::numbered`] gives.
    pub(super) fn number(&self) -> Expr {
        self.column(ROW_NUMBER)
    }

    /// A column of the table.
    pub(super) fn column(&self, name: &str) -> Expr {
        Expr::CompoundIdentifier(vec![self.qualifier.clone(), names::exact(name)])
    }

    /// The table with a number for each row.
    pub(super) fn numbered(&self) -> Result<TableFactor, Error> {
        let TableFactor::Table { name, .. } = self.table else {
            return Err(Error::internal("the written relation isn't a table"));
        };
        let number = names::quote(ROW_NUMBER);
        let subquery =
            read::parse(&format!("SELECT *, row_number() OVER () AS {number} FROM {name}"))?;
        let alias =
            TableAlias { explicit: true, name: self.qualifier.clone(), columns: vec![], at: None };
        Ok(TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None })
    }
}

impl Found {
    /// Only these rows.
    fn only(self, rows: &[u64]) -> Result<Self, Error> {
        let rows = UInt64Array::from(rows.to_vec());
        let old = arrow::compute::take_record_batch(&self.old, &rows).map_err(broken)?;
        let computed = self
            .computed
            .into_iter()
            .map(|(kind, array)| Ok((kind, take(&array, &rows, None).map_err(broken)?)));
        Ok(Self { old, computed: computed.collect::<Result<_, Error>>()? })
    }
}

/// The name and alias of what must be one table.
fn plain_table(table: &TableWithJoins) -> Result<(&ObjectName, Option<&TableAlias>), Error> {
    match &table.relation {
        TableFactor::Table { name, alias, args: None, .. } if table.joins.is_empty() => {
            Ok((name, alias.as_ref()))
        }
        _ => Err(Error::unsupported(format!("writing to \"{table}\""))),
    }
}

/// Values of the stored type: the planner may carry them in another.
pub(super) fn exactly(array: ArrayRef, stored: &DataType) -> Result<ArrayRef, Error> {
    if array.data_type() == stored { Ok(array) } else { cast(&array, stored).map_err(broken) }
}

fn broken(error: arrow::error::ArrowError) -> Error {
    Error::internal(format!("rows cannot be put together: {error}"))
}
