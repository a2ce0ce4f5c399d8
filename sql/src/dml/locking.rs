//! SELECT ... FOR UPDATE and FOR SHARE: rows that are read are kept from being written until the
//! transaction ends.
//!
//! The query is run with the keys of its rows beside them; these are reserved, and if one of them
//! was written after the frame, the query is run again under a newer one.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{ArrayRef, UInt64Array, new_empty_array};
use arrow::compute::{cast, concat_batches, take_record_batch};
use arrow::datatypes::Schema;
use arrow::record_batch::RecordBatch;
use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, JoinOperator, LimitClause, LockClause, LockType, NonBlock, Query,
    SelectItem, SetExpr, TableFactor, Value,
};
use futures::TryStreamExt;
use stillframe_protocol::{Mode, Reservation, Step};

use super::{Arguments, Command, target};
use crate::parser::Source;
use crate::query::{QueryContext, classify};
use crate::settings::Settings;
use crate::write::{Target, Transaction, changed_meanwhile, hash, row_entries};
use crate::{Error, Frame, OutputColumn, RelationKind, SqlState, names};

/// A query that locks what it reads.
pub(crate) struct Locking<'a> {
    pub(crate) query: &'a Query,
    pub(crate) settings: &'a Settings,
    pub(crate) arguments: Arguments<'a>,
    pub(crate) source: Arc<Source>,
}

/// Its answer.
pub(crate) struct Locked {
    pub(crate) columns: Vec<OutputColumn>,
    pub(crate) batch: RecordBatch,
    pub(crate) step: Step,
}

/// The query without its locks.
pub(crate) fn without_locks(query: &Query) -> Cow<'_, Query> {
    if query.locks.is_empty() {
        return Cow::Borrowed(query);
    }
    let mut query = query.clone();
    query.locks.clear();
    Cow::Owned(query)
}

/// A table whose rows are locked.
struct LockedTable {
    name: Ident,
    target: Target,
    mode: Mode,
    non_block: Option<NonBlock>,
}

impl LockedTable {
    /// The columns that stand for a row.
    fn keys(&self) -> usize {
        match self.target.is_keyed() {
            true => self.target.key_columns(),
            false => self.target.schema().fields().len(),
        }
    }
}

impl Locking<'_> {
    /// Runs the query in a transaction, and reserves its rows.
    pub(crate) async fn run(&self, transaction: &mut Transaction) -> Result<Locked, Error> {
        let mut at_least = Step(0);
        'again: loop {
            let frame = transaction.frame(at_least).await?;
            let context = self.context(&frame);
            check(&context, self.query)?;
            let tables = self.tables(&context)?;
            let skips = tables.iter().any(|table| table.non_block == Some(NonBlock::SkipLocked));
            if skips && tables.len() > 1 {
                return Err(Error::unsupported("SKIP LOCKED of several tables"));
            }
            let (query, limit) = self.keyed(&tables, skips)?;
            let (mut columns, batch) = self.rows(&context, &query).await?;
            let keys: usize = tables.iter().map(LockedTable::keys).sum();
            let own = columns.len() - keys;
            let mut start = own;
            let mut kept: Option<Vec<u64>> = None;
            for table in &tables {
                let hashes = hashes(table, &batch.columns()[start..start + table.keys()])?;
                start += table.keys();
                let id = table.target.id();
                if skips {
                    let mut rows = vec![];
                    for (row, hash) in hashes.into_iter().enumerate() {
                        if limit.is_some_and(|limit| rows.len() >= limit) {
                            break;
                        }
                        let entries = row_entries(id, vec![hash], table.mode);
                        match transaction.try_reserve(&frame, entries).await? {
                            None => {}
                            Some(Reservation::Granted) => rows.push(row as u64),
                            Some(Reservation::Changed(step)) => {
                                at_least = later(transaction, step)?;
                                continue 'again;
                            }
                        }
                    }
                    kept = Some(rows);
                    continue;
                }
                let entries = row_entries(id, hashes, table.mode);
                let reservation = if table.non_block.is_some() {
                    let name = &table.target.relation().name;
                    transaction.try_reserve(&frame, entries).await?.ok_or_else(|| {
                        let message =
                            format!("could not obtain lock on row in relation \"{name}\"");
                        Error::new(SqlState::LOCK_NOT_AVAILABLE, message)
                    })?
                } else {
                    transaction.reserve(&frame, entries).await?
                };
                if let Reservation::Changed(step) = reservation {
                    at_least = later(transaction, step)?;
                    continue 'again;
                }
            }
            columns.truncate(own);
            let all: Vec<_> = (0..own).collect();
            let broken = |error| Error::internal(format!("rows cannot be put together: {error}"));
            let mut batch = batch.project(&all).map_err(broken)?;
            if let Some(rows) = kept {
                batch = take_record_batch(&batch, &UInt64Array::from(rows)).map_err(broken)?;
            }
            return Ok(Locked { columns, batch, step: frame.step() });
        }
    }

    fn context(&self, frame: &Arc<Frame>) -> QueryContext {
        let mut context = QueryContext::new(Arc::clone(frame), self.settings.clone());
        context.source = Some(Arc::clone(&self.source));
        context
    }

    /// The tables that are locked.
    fn tables(&self, context: &QueryContext) -> Result<Vec<LockedTable>, Error> {
        let SetExpr::Select(select) = self.query.body.as_ref() else { return Ok(vec![]) };
        let mut tables: Vec<LockedTable> = vec![];
        for clause in &self.query.locks {
            let only = clause.of.as_ref().map(names::unquoted);
            let mut found = false;
            for tree in &select.from {
                let joined =
                    tree.joins.iter().map(|join| (&join.relation, is_outer(&join.join_operator)));
                let first_is_outer = tree.joins.iter().any(|join| is_right(&join.join_operator));
                for (factor, is_nullable) in
                    std::iter::once((&tree.relation, first_is_outer)).chain(joined)
                {
                    let Some(name) = leaf(factor)? else {
                        if only.is_none() {
                            return Err(Error::unsupported(format!(
                                "{} of {factor}",
                                word(clause)
                            )));
                        }
                        continue;
                    };
                    if only.as_ref().is_some_and(|only| *only != names::fold(&name)) {
                        continue;
                    }
                    found = true;
                    if is_nullable {
                        let message = format!(
                            "{} cannot be applied to the nullable side of an outer join",
                            word(clause)
                        );
                        return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
                    }
                    let target = self.target(context, factor, clause)?;
                    let mode = match clause.lock_type {
                        LockType::Update => Mode::Exclusive,
                        LockType::Share => Mode::Shared,
                    };
                    let non_block = clause.nonblock;
                    tables.push(LockedTable { name, target, mode, non_block });
                }
            }
            if let Some(only) = only.filter(|_| !found) {
                let message = format!(
                    "relation \"{only}\" in {} clause not found in FROM clause",
                    word(clause)
                );
                return Err(Error::new(SqlState::UNDEFINED_TABLE, message));
            }
        }
        Ok(tables)
    }

    fn target(
        &self,
        context: &QueryContext,
        factor: &TableFactor,
        clause: &LockClause,
    ) -> Result<Target, Error> {
        let TableFactor::Table { name, .. } = factor else {
            return Err(Error::unsupported(format!("{} of {factor}", word(clause))));
        };
        let relation = context.relation(name)?;
        match relation.kind {
            RelationKind::Table { .. } => {
                target(&context.frame, self.settings, name, Command::Update)
            }
            RelationKind::MaterializedView { .. } => {
                let message =
                    format!("cannot lock rows in materialized view \"{}\"", relation.name);
                Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message))
            }
            RelationKind::View { .. } => {
                Err(Error::unsupported(format!("{} of a view", word(clause))))
            }
        }
    }

    /// The query with the keys beside its rows; without its limit if rows may be passed over.
    fn keyed(&self, tables: &[LockedTable], skips: bool) -> Result<(Query, Option<usize>), Error> {
        let mut query = without_locks(self.query).into_owned();
        let SetExpr::Select(select) = query.body.as_mut() else {
            return Err(Error::internal("SELECT is not a SELECT"));
        };
        for (number, table) in tables.iter().enumerate() {
            let columns = table.target.stored_columns().take(table.keys()).enumerate();
            select.projection.extend(columns.map(|(place, column)| SelectItem::ExprWithAlias {
                expr: Expr::CompoundIdentifier(vec![
                    table.name.clone(),
                    names::exact(&column.name),
                ]),
                alias: names::exact(&format!("stillframe key {number} {place}")),
            }));
        }
        let mut limit = None;
        if skips
            && let Some(LimitClause::LimitOffset { limit: given, offset, .. }) =
                &mut query.limit_clause
        {
            if offset.is_some() {
                return Err(Error::unsupported("SKIP LOCKED with OFFSET"));
            }
            if let Some(expr) = given.take() {
                limit = Some(self.number(&expr)?);
            }
            query.limit_clause = None;
        }
        Ok((query, limit))
    }

    fn number(&self, expr: &Expr) -> Result<usize, Error> {
        let text = match expr {
            Expr::Value(value) => match &value.value {
                Value::Number(digits, _) => Some(digits.clone()),
                Value::Placeholder(name) => match self.arguments.get(name) {
                    Some((crate::session::Parameter::Text(text), _)) => Some(text.clone()),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        };
        text.and_then(|text| text.parse().ok())
            .ok_or_else(|| Error::unsupported("SKIP LOCKED with a computed LIMIT"))
    }

    async fn rows(
        &self,
        context: &QueryContext,
        query: &Query,
    ) -> Result<(Vec<OutputColumn>, RecordBatch), Error> {
        let planned = context.plan(query, &self.arguments.declared())?;
        let values = self.arguments.scalars(&self.settings.text_format())?;
        let plan = planned.plan.with_param_values(values).map_err(classify)?;
        let batches: Vec<RecordBatch> = context.run(&plan).await?.try_collect().await?;
        let batch = match batches.first() {
            Some(first) => concat_batches(&first.schema(), &batches)
                .map_err(|error| Error::internal(error.to_string()))?,
            None => {
                let fields = planned.columns.iter();
                let fields = fields.map(|column| column.kind.field(&column.name, true));
                let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
                let none = planned.columns.iter().map(|c| new_empty_array(&c.kind.arrow()));
                RecordBatch::try_new(schema, none.collect())
                    .map_err(|error| Error::internal(error.to_string()))?
            }
        };
        Ok((planned.columns, batch))
    }
}

/// The step that has to be looked at; where all statements see one step there is none.
fn later(transaction: &Transaction, step: Step) -> Result<Step, Error> {
    if transaction.is_repeatable() { Err(changed_meanwhile()) } else { Ok(step) }
}

/// The hashes that stand for rows, of the columns that tell them apart.
fn hashes(table: &LockedTable, columns: &[ArrayRef]) -> Result<Vec<u64>, Error> {
    let fields = table.target.schema().fields().iter().take(columns.len());
    let fields: Vec<_> = fields.map(|field| field.as_ref().clone().with_nullable(true)).collect();
    let broken = |error| Error::internal(format!("rows cannot be put together: {error}"));
    let arrays = columns.iter().zip(&fields).map(|(array, field)| {
        match array.data_type() == field.data_type() {
            true => Ok(Arc::clone(array)),
            false => cast(array, field.data_type()),
        }
    });
    let arrays = arrays.collect::<Result<Vec<_>, _>>().map_err(broken)?;
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(broken)?;
    let encoded = table.target.key_encoder()?.encode(&rows)?;
    Ok(encoded.iter().map(|key| hash(key.data())).collect())
}

/// The name of a relation of FROM that can be locked.
fn leaf(factor: &TableFactor) -> Result<Option<Ident>, Error> {
    match factor {
        TableFactor::Table { alias: Some(alias), args: None, .. } => Ok(Some(alias.name.clone())),
        TableFactor::Table { name, args: None, .. } => {
            Ok(Some(names::exact(&names::relation(name)?.1)))
        }
        _ => Ok(None),
    }
}

fn is_outer(operator: &JoinOperator) -> bool {
    matches!(
        operator,
        JoinOperator::Left(_) | JoinOperator::LeftOuter(_) | JoinOperator::FullOuter(_)
    )
}

fn is_right(operator: &JoinOperator) -> bool {
    matches!(
        operator,
        JoinOperator::Right(_) | JoinOperator::RightOuter(_) | JoinOperator::FullOuter(_)
    )
}

fn word(clause: &LockClause) -> &'static str {
    match clause.lock_type {
        LockType::Update => "FOR UPDATE",
        LockType::Share => "FOR SHARE",
    }
}

/// Refuses a query whose rows aren't rows of tables.
fn check(context: &QueryContext, query: &Query) -> Result<(), Error> {
    let Some(first) = query.locks.first() else { return Ok(()) };
    let refused = |what: &str| {
        let message = format!("{} is not allowed with {what}", word(first));
        Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message))
    };
    let select = match query.body.as_ref() {
        SetExpr::Select(select) => select,
        SetExpr::SetOperation { .. } => return refused("UNION/INTERSECT/EXCEPT"),
        SetExpr::Values(_) => return refused("VALUES"),
        _ => return Err(Error::unsupported(format!("{} of this query", word(first)))),
    };
    if select.distinct.is_some() {
        return refused("DISTINCT clause");
    }
    let is_grouped = match &select.group_by {
        GroupByExpr::All(_) => true,
        GroupByExpr::Expressions(expressions, _) => !expressions.is_empty(),
    };
    if is_grouped {
        return refused("GROUP BY clause");
    }
    if select.having.is_some() {
        return refused("HAVING clause");
    }
    for item in &select.projection {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            match crate::resolve::refuse_grouped(context, expr, "") {
                Ok(()) => {}
                Err(error) if error.state == SqlState::WINDOWING_ERROR => {
                    return refused("window functions");
                }
                Err(_) => return refused("aggregate functions"),
            }
        }
    }
    Ok(())
}
