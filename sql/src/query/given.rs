//! Rows that a statement has at hand itself, which its expressions read as they read a relation:
//! those that it has written, for RETURNING, and those that it proposes, for CHECK and ON CONFLICT.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use arrow::datatypes::{Field, Schema};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, TableAlias, TableFactor, TableWithJoins,
};
use stillframe_protocol::RelationId;

use super::QueryContext;
use crate::carrier::carried;
use crate::{Error, Type, names};

/// The schema in which given rows are found. Nobody's schema hides them, nor do they hide any: only
/// queries that we make name it.
const SCHEMA: &str = "stillframe given";

/// The column that counts given rows from 0.
const ROW: &str = "stillframe row";

/// Rows under a name.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    /// The name that columns are qualified with.
    name: String,
    /// The relation that they are rows of, if they are.
    relation: Option<RelationId>,
    columns: Vec<(String, Type)>,
    /// The columns, and the number of the row.
    batch: RecordBatch,
}

impl Given {
    /// Rows with these columns.
    pub(crate) fn new(
        name: impl Into<String>,
        relation: Option<RelationId>,
        columns: Vec<(String, Type)>,
        arrays: Vec<ArrayRef>,
        rows: usize,
    ) -> Result<Self, Error> {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows as i64));
        let fields = columns.iter().map(|(name, kind)| kind.field(name, true));
        let number = std::iter::once(Field::new(ROW, numbers.data_type().clone(), true));
        let schema = Schema::new(fields.chain(number).collect::<Vec<_>>());
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let arrays = columns.iter().zip(&arrays).map(|((_, kind), array)| carried(kind, array));
        let arrays = arrays.chain([Ok(numbers)]).collect::<Result<_, _>>()?;
        let batch = RecordBatch::try_new_with_options(Arc::new(schema), arrays, &options)
            .map_err(|error| Error::internal(format!("rows are not of their types: {error}")))?;
        Ok(Self { name: name.into(), relation, columns, batch })
    }

    /// The name that columns are qualified with.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its columns.
    pub(crate) fn columns(&self) -> &[(String, Type)] {
        &self.columns
    }

    /// A column.
    pub(crate) fn column(&self, name: &str) -> Expr {
        Expr::CompoundIdentifier(vec![self.identifier(), names::exact(name)])
    }

    /// The number of the row.
    pub(crate) fn row(&self) -> Expr {
        self.column(ROW)
    }

    /// The rows, for FROM.
    pub(crate) fn table(&self) -> TableWithJoins {
        let relation = TableFactor::Table {
            name: ObjectName::from(vec![names::exact(SCHEMA), self.identifier()]),
            alias: Some(TableAlias {
                explicit: true,
                name: self.identifier(),
                columns: vec![],
                at: None,
            }),
            args: None,
            with_hints: vec![],
            version: None,
            with_ordinality: false,
            partitions: vec![],
            json_path: None,
            sample: None,
            index_hints: vec![],
        };
        TableWithJoins { relation, joins: vec![] }
    }

    /// By place, the name and where it comes from, with the number of the row as the last.
    pub(crate) fn origins(&self) -> impl Iterator<Item = (&str, Option<(RelationId, i16)>)> {
        let columns = self.columns.iter().zip(1..).map(|((name, _), place)| {
            (name.as_str(), self.relation.map(|relation| (relation, place)))
        });
        columns.chain([(ROW, None)])
    }

    pub(super) fn provider(&self) -> Result<Arc<dyn TableProvider>, Error> {
        let table = MemTable::try_new(self.batch.schema(), vec![vec![self.batch.clone()]]);
        Ok(Arc::new(table.map_err(super::classify)?))
    }

    fn identifier(&self) -> Ident {
        names::exact(&self.name)
    }
}

impl QueryContext {
    /// The same, in which these rows can be named, too.
    pub(crate) fn with_given(self, given: Vec<Given>) -> Self {
        let given = self.given.iter().cloned().chain(given);
        Self { given: given.collect(), ..self }
    }

    /// The given rows that a name means.
    pub(crate) fn given(&self, schema: &str, name: &str) -> Option<&Given> {
        let mut given = self.given.iter().filter(|_| schema == SCHEMA);
        given.find(|given| given.name == name)
    }
}
