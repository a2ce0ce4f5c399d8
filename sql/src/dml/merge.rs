//! MERGE: each row of the source does to the table what the first clause says that is true of it.

mod clause;

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, UInt64Array};
use arrow::compute::{cast, concat_batches, take};
use arrow::datatypes::{DataType, Int64Type};
use arrow::record_batch::RecordBatch;
use datafusion::sql::sqlparser::ast::{
    Expr, Join, JoinConstraint, JoinOperator, Merge, Query, SelectItem, SetExpr, TableWithJoins,
};

use super::affected::{Affected, exactly};
use super::assign::assign;
use super::complete::complete;
use super::defaults::fill_each;
use super::values::{Cell, ColumnValues};
use super::{Command, Statement, defaults, read};
use crate::resolve::refuse_grouped;
use crate::write::{Proposal, Rows, Target};
use crate::{Error, Frame, SqlState};
use clause::{Action, Clause, clauses};

/// What a MERGE would do under a frame.
pub(super) async fn propose(
    statement: &Statement<'_>,
    merge: &Merge,
    frame: &Arc<Frame>,
) -> Result<Proposal, Error> {
    let table = TableWithJoins { relation: merge.table.clone(), joins: vec![] };
    let affected = Affected::new(statement, frame, Command::Merge, &table, &[], None)?;
    let columns = affected.target.relation().columns.iter().enumerate();
    let defaults = defaults(frame, statement.settings, columns).await?;
    let target = affected.target.clone().with_defaults(defaults);
    let clauses = clauses(merge, &target)?;
    let context = statement.context(frame);
    check_unmatched(statement, merge, &clauses, frame)?;
    let mut computed = vec![choice(&affected, &clauses)?];
    // By clause, the columns that are computed and their places in the answer.
    let mut places: Vec<Vec<(usize, usize)>> = vec![];
    for (number, clause) in clauses.iter().enumerate() {
        let mut own = vec![];
        for (place, cell) in clause.cells() {
            let Cell::Expr(expr) = cell else { continue };
            let kind = &target.relation().columns[place].kind;
            if super::constant::Constant::of(expr, kind, &statement.arguments).is_some() {
                continue;
            }
            refuse_grouped(&context, expr, "MERGE")?;
            own.push((place, computed.len()));
            computed.push(if_chosen(&affected, &clauses, number, expr)?);
        }
        places.push(own);
    }
    let answer =
        read::answer(statement, frame, &query(merge, &affected, &clauses, computed)?).await?;
    let mut answered = answer.columns.into_iter();
    let fields = target.schema().fields();
    let old = fields.iter().zip(answered.by_ref());
    let old = old.map(|(field, (_, array))| exactly(array, field.data_type()));
    let old: Vec<ArrayRef> = old.collect::<Result<_, Error>>()?;
    let number = integers(answered.next())?;
    let rest: Vec<_> = answered.collect();
    let chosen = integers(rest.first().cloned())?;
    let chosen = chosen.as_primitive::<Int64Type>();
    let number = number.as_primitive::<Int64Type>();
    let mut by_clause: Vec<Vec<u64>> = vec![vec![]; clauses.len()];
    let mut seen = HashSet::new();
    for row in 0..answer.rows {
        let Some(clause) = usize::try_from(chosen.value(row)).ok() else { continue };
        if matches!(clauses[clause].action, Action::Nothing) {
            continue;
        }
        if clauses[clause].is_matched && !seen.insert(number.value(row)) {
            let message = "MERGE command cannot affect row a second time";
            return Err(Error::new(SqlState::CARDINALITY_VIOLATION, message).with_hint(
                "Ensure that not more than one source row matches any one target row.",
            ));
        }
        by_clause[clause].push(row as u64);
    }
    let (mut before, mut after, mut come, mut gone) = (vec![], vec![], vec![], vec![]);
    let writer = Writer { statement, frame, target: &target };
    for ((clause, rows), places) in clauses.iter().zip(by_clause).zip(places) {
        if rows.is_empty() {
            continue;
        }
        let rows = UInt64Array::from(rows);
        let columns = || old.iter().map(|array| take(array, &rows, None).map_err(broken));
        let kept = || target.batch(columns().collect::<Result<_, Error>>()?, rows.len());
        let computed = places.iter().map(|(place, answer)| {
            let (kind, array) = &rest[*answer];
            Ok((*place, kind.clone(), take(array, &rows, None).map_err(broken)?))
        });
        let computed = computed.collect::<Result<Vec<_>, Error>>()?;
        match &clause.action {
            Action::Nothing => {}
            Action::Delete => gone.push(kept()?),
            Action::Update(_) => {
                let kept = kept()?;
                let values = target.in_definition(&kept).into_iter().map(Some).collect();
                after.push(writer.rows(clause, values, computed, rows.len()).await?);
                before.push(kept);
            }
            Action::Insert(_) => {
                let values = vec![None; target.relation().columns.len()];
                come.push(writer.rows(clause, values, computed, rows.len()).await?);
            }
        }
    }
    let all = |batches: &[RecordBatch]| concat_batches(target.schema(), batches).map_err(broken);
    Proposal::write(
        &target,
        Rows {
            updated: Some((all(&before)?, all(&after)?)),
            inserted: Some(all(&come)?),
            deleted: Some(all(&gone)?),
        },
    )
}

/// The types of a MERGE's parameters.
pub(super) fn parameters(
    statement: &Statement<'_>,
    merge: &Merge,
    frame: &Arc<Frame>,
    found: &mut read::Parameters<'_>,
) -> Result<(), Error> {
    let table = TableWithJoins { relation: merge.table.clone(), joins: vec![] };
    let affected = Affected::new(statement, frame, Command::Merge, &table, &[], None)?;
    let clauses = clauses(merge, &affected.target)?;
    let mut computed = vec![choice(&affected, &clauses)?];
    for clause in &clauses {
        for (place, cell) in clause.cells() {
            let kind = &affected.target.relation().columns[place].kind;
            if let Cell::Expr(expr) = cell
                && read::has_parameters(expr)
                && !found.assigned(expr, kind)
            {
                computed.push(expr.clone());
            }
        }
    }
    found.plan(frame, &statement.with(query(merge, &affected, &clauses, computed)?))?;
    Ok(())
}

/// Makes the rows of a clause.
struct Writer<'a> {
    statement: &'a Statement<'a>,
    frame: &'a Arc<Frame>,
    target: &'a Target,
}

impl Writer<'_> {
    /// The rows, as stored, from the values that they have before the clause sets any.
    async fn rows(
        &self,
        clause: &Clause<'_>,
        mut values: Vec<Option<ArrayRef>>,
        computed: Vec<(usize, crate::Type, ArrayRef)>,
        rows: usize,
    ) -> Result<RecordBatch, Error> {
        let Self { statement, frame, target } = *self;
        let format = statement.settings.text_format();
        let context = statement.context(frame);
        for (place, cell) in clause.cells() {
            if computed.iter().any(|(computed, ..)| *computed == place) {
                continue;
            }
            values[place] = match cell {
                Cell::Default => None,
                cell => {
                    let mut column = ColumnValues::new(statement, &context, target, place)?;
                    column.push(statement, cell)?;
                    let repeated = UInt64Array::from(vec![0; rows]);
                    Some(take(&column.constant(), &repeated, None).map_err(broken)?)
                }
            };
        }
        for (place, kind, array) in computed {
            let column = &target.relation().columns[place];
            values[place] = Some(assign(&array, &kind, column, &format)?);
        }
        fill_each(frame, statement.settings, target, &mut values, rows).await?;
        complete(frame, statement.settings, target, values, rows).await
    }
}

/// The query of the old columns, the row's number, which clause is chosen, and what else is computed.
fn query(
    merge: &Merge,
    affected: &Affected<'_>,
    clauses: &[Clause<'_>],
    computed: Vec<Expr>,
) -> Result<Query, Error> {
    let old = affected.target.stored_columns().map(|column| affected.column(&column.name));
    let expressions = old.chain([affected.number()]).chain(computed);
    let on = JoinConstraint::On((*merge.on).clone());
    let is_inner = clauses.iter().all(|clause| clause.is_matched);
    let join_operator = match is_inner {
        true => JoinOperator::Inner(on),
        false => JoinOperator::LeftOuter(on),
    };
    let join = Join { relation: affected.numbered()?, global: false, join_operator };
    let from = TableWithJoins { relation: merge.source.clone(), joins: vec![join] };
    read::select(expressions, vec![from], None)
}

/// The number of the first clause that is true; -1 if none is.
fn choice(affected: &Affected<'_>, clauses: &[Clause<'_>]) -> Result<Expr, Error> {
    expression(&choice_text(affected, clauses))
}

fn choice_text(affected: &Affected<'_>, clauses: &[Clause<'_>]) -> String {
    let number = affected.number();
    let whens = clauses.iter().enumerate().map(|(place, clause)| {
        let is_there = if clause.is_matched { "IS NOT NULL" } else { "IS NULL" };
        let predicate = clause.predicate.map(|predicate| format!(" AND ({predicate})"));
        format!(" WHEN {number} {is_there}{} THEN {place}", predicate.unwrap_or_default())
    });
    format!("CASE{} ELSE -1 END", whens.collect::<String>())
}

/// An expression where a clause is chosen; elsewhere it isn't computed.
fn if_chosen(
    affected: &Affected<'_>,
    clauses: &[Clause<'_>],
    number: usize,
    expr: &Expr,
) -> Result<Expr, Error> {
    let choice = choice_text(affected, &clauses[..=number]);
    expression(&format!("CASE WHEN {choice} = {number} THEN {expr} END"))
}

fn expression(text: &str) -> Result<Expr, Error> {
    let query = read::parse(&format!("SELECT {text}"))?;
    let SetExpr::Select(mut select) = *query.body else {
        return Err(Error::internal("SELECT is not a SELECT"));
    };
    match select.projection.pop() {
        Some(SelectItem::UnnamedExpr(expr)) => Ok(expr),
        _ => Err(Error::internal(format!("not an expression: {text}"))),
    }
}

/// What is done for rows that match nothing can't name columns of the table.
fn check_unmatched(
    statement: &Statement<'_>,
    merge: &Merge,
    clauses: &[Clause<'_>],
    frame: &Arc<Frame>,
) -> Result<(), Error> {
    let mut named = vec![];
    for clause in clauses.iter().filter(|clause| !clause.is_matched) {
        named.extend(clause.predicate.cloned());
        named.extend(clause.cells().filter_map(|(_, cell)| match cell {
            Cell::Expr(expr) => Some(expr.clone()),
            Cell::Default => None,
        }));
    }
    if named.is_empty() {
        return Ok(());
    }
    let from = TableWithJoins { relation: merge.source.clone(), joins: vec![] };
    let query = statement.with(read::select(named, vec![from], None)?);
    statement.context(frame).plan(&query, &statement.arguments.declared())?;
    Ok(())
}

fn integers(column: Option<(crate::Type, ArrayRef)>) -> Result<ArrayRef, Error> {
    let (_, array) = column.ok_or_else(|| Error::internal("an answer lacks columns"))?;
    cast(&array, &DataType::Int64).map_err(broken)
}

fn broken(error: arrow::error::ArrowError) -> Error {
    Error::internal(format!("rows cannot be put together: {error}"))
}
