//! INSERT ... ON CONFLICT: rows that meet others are left out, or change those instead.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt64Array};
use arrow::compute::{interleave, take_record_batch};
use datafusion::sql::sqlparser::ast::{
    ConflictTarget, DoUpdate, Expr, Ident, Insert, ObjectName, OnConflict, OnConflictAction,
    OnInsert, SelectItem, Value,
};

use super::assign::assign;
use super::complete::complete;
use super::read::{Parameters, answer_in};
use super::returning::{of_table, query};
use super::update::{assignments, pairs};
use super::values::Cell;
use super::{Statement, defaults};
use crate::query::Given;
use crate::resolve::refuse_grouped;
use crate::write::{Proposal, Rows, Target, UniqueKey, rows_with};
use crate::{Error, Frame, SqlState, names};

/// The name of the rows that were proposed.
const EXCLUDED: &str = "excluded";

/// What an INSERT does about rows that are there.
pub(super) struct Conflict<'a> {
    /// The name under which the statement knows the table.
    name: Ident,
    /// The keys that conflicts are looked for of.
    arbiters: Vec<UniqueKey>,
    update: Option<Changes<'a>>,
}

struct Changes<'a> {
    pairs: Vec<(&'a ObjectName, Cow<'a, Expr>)>,
    selection: Option<&'a Expr>,
}

/// What becomes of a proposed row.
#[derive(Clone, Copy)]
enum Fate {
    Comes,
    /// It meets this one of the rows that are there.
    Meets(usize),
    LeftOut,
}

impl<'a> Conflict<'a> {
    /// The conflict clause of an INSERT, if it has one.
    pub(super) fn of(
        insert: &'a Insert,
        target: &Target,
        name: &Ident,
    ) -> Result<Option<Self>, Error> {
        let OnConflict { conflict_target, action } = match &insert.on {
            None => return Ok(None),
            Some(OnInsert::OnConflict(conflict)) => conflict,
            Some(_) => return Err(Error::unsupported("ON DUPLICATE KEY UPDATE")),
        };
        let update = match action {
            OnConflictAction::DoNothing => None,
            OnConflictAction::DoUpdate(DoUpdate { assignments, selection }) => {
                let pairs = pairs(assignments)?;
                // Whether there is a conflict or not.
                super::update::assignments(&pairs, target)?;
                Some(Changes { pairs, selection: selection.as_ref() })
            }
        };
        let arbiters = match conflict_target {
            Some(conflict_target) => arbiters(conflict_target, target)?,
            None if update.is_none() => UniqueKey::all(target.relation()),
            None => {
                let message =
                    "ON CONFLICT DO UPDATE requires inference specification or constraint name";
                return Err(Error::new(SqlState::SYNTAX_ERROR, message)
                    .with_hint("For example, ON CONFLICT (column_name)."));
            }
        };
        Ok(Some(Self { name: name.clone(), arbiters, update }))
    }

    /// Learns what the parameters of the clause are.
    pub(super) fn parameters(
        &self,
        statement: &Statement<'_>,
        frame: &Arc<Frame>,
        target: &Target,
        found: &mut Parameters<'_>,
    ) -> Result<(), Error> {
        let Some(update) = &self.update else { return Ok(()) };
        let mut items = vec![];
        for (place, cell) in assignments(&update.pairs, target)? {
            let kind = &target.relation().columns[place].kind;
            if let Cell::Expr(expr) = cell
                && !found.assigned(expr, kind)
            {
                items.push(SelectItem::UnnamedExpr(expr.clone()));
            }
        }
        items.extend(update.selection.map(|expr| SelectItem::UnnamedExpr(expr.clone())));
        if items.is_empty() {
            return Ok(());
        }
        let none = RecordBatch::new_empty(Arc::clone(target.schema()));
        let given = self.given(target, &none, &none)?;
        let query = query(&items, &given)?;
        found.plan_in(&statement.context(frame).with_given(given), &statement.with(query))?;
        Ok(())
    }

    /// What becomes of proposed rows, and of those they meet.
    pub(super) async fn propose(
        &self,
        statement: &Statement<'_>,
        frame: &Arc<Frame>,
        target: &Target,
        proposed: RecordBatch,
    ) -> Result<Proposal, Error> {
        let (there, fates) = self.fates(frame, target, &proposed).await?;
        let pairs: Vec<(usize, usize)> = fates
            .iter()
            .enumerate()
            .filter_map(|(row, fate)| match fate {
                Fate::Meets(met) => Some((*met, row)),
                _ => None,
            })
            .collect();
        let (old, new, changed) = match &self.update {
            Some(update) if !pairs.is_empty() => {
                let met = only(&there, pairs.iter().map(|(met, _)| *met))?;
                let with = only(&proposed, pairs.iter().map(|(_, row)| *row))?;
                let chosen = self.chosen(statement, frame, target, update, &met, &with).await?;
                let mut seen = BTreeSet::new();
                if chosen.iter().any(|place| !seen.insert(pairs[*place].0)) {
                    return Err(second_time());
                }
                let old = only(&met, chosen.iter().copied())?;
                let with = only(&with, chosen.iter().copied())?;
                let new = self.changed(statement, frame, target, update, &old, &with).await?;
                let rows: Vec<_> = chosen.iter().map(|place| pairs[*place].1).collect();
                (old, new, rows)
            }
            _ => {
                let none = RecordBatch::new_empty(Arc::clone(target.schema()));
                (none.clone(), none, vec![])
            }
        };
        let comes = |(row, fate): (usize, &Fate)| matches!(fate, Fate::Comes).then_some(row);
        let come: Vec<_> = fates.iter().enumerate().filter_map(comes).collect();
        let inserted = only(&proposed, come.iter().copied())?;
        let given = match statement.returns() {
            true => {
                let mut order: Vec<_> =
                    come.iter().enumerate().map(|(at, row)| (*row, 0, at)).collect();
                order.extend(changed.iter().enumerate().map(|(at, row)| (*row, 1, at)));
                order.sort_unstable();
                let places: Vec<_> = order.into_iter().map(|(_, which, at)| (which, at)).collect();
                vec![of_table(&self.name, target, &merged(target, &inserted, &new, &places)?)?]
            }
            false => vec![],
        };
        let rows = Rows { updated: Some((old, new)), inserted: Some(inserted), deleted: None };
        Ok(Proposal::write(target, rows)?.giving(given))
    }

    /// The rows that proposed ones meet, and what becomes of each proposed row.
    async fn fates(
        &self,
        frame: &Arc<Frame>,
        target: &Target,
        proposed: &RecordBatch,
    ) -> Result<(RecordBatch, Vec<Fate>), Error> {
        let mut found = vec![];
        let mut known = vec![];
        let mut keys = vec![];
        let mut count = 0;
        for arbiter in &self.arbiters {
            let values = arbiter.of(proposed)?;
            let rows = rows_with(frame, target, &arbiter.columns, &values.columns).await?;
            let there = arbiter.of(&rows)?;
            let places = (0..rows.num_rows())
                .filter_map(|row| Some((Box::<[u8]>::from(there.get(row)?), count + row)));
            known.push(places.collect::<HashMap<_, _>>());
            keys.push(values);
            count += rows.num_rows();
            found.push(rows);
        }
        let there = arrow::compute::concat_batches(target.schema(), &found).map_err(broken)?;
        let mut come: Vec<HashSet<&[u8]>> = self.arbiters.iter().map(|_| HashSet::new()).collect();
        let mut fates = Vec::with_capacity(proposed.num_rows());
        for row in 0..proposed.num_rows() {
            let own: Vec<_> = keys.iter().map(|values| values.get(row)).collect();
            let meets = own.iter().zip(&known).find_map(|(key, known)| known.get((*key)?));
            let repeats =
                own.iter().zip(&come).any(|(key, come)| key.is_some_and(|key| come.contains(key)));
            fates.push(match (meets, &self.update) {
                (Some(met), Some(_)) => Fate::Meets(*met),
                (Some(_), None) => Fate::LeftOut,
                (None, Some(_)) if repeats => return Err(second_time()),
                (None, None) if repeats => Fate::LeftOut,
                (None, _) => {
                    for (key, come) in own.into_iter().zip(&mut come) {
                        come.extend(key);
                    }
                    Fate::Comes
                }
            });
        }
        Ok((there, fates))
    }

    /// The table's row under its name, and the proposed one.
    fn given(
        &self,
        target: &Target,
        met: &RecordBatch,
        proposed: &RecordBatch,
    ) -> Result<Vec<Given>, Error> {
        let excluded = names::exact(EXCLUDED);
        Ok(vec![of_table(&self.name, target, met)?, of_table(&excluded, target, proposed)?])
    }

    /// The places of the pairs for which the WHERE is true.
    async fn chosen(
        &self,
        statement: &Statement<'_>,
        frame: &Arc<Frame>,
        target: &Target,
        update: &Changes<'_>,
        met: &RecordBatch,
        proposed: &RecordBatch,
    ) -> Result<Vec<usize>, Error> {
        let Some(selection) = update.selection else { return Ok((0..met.num_rows()).collect()) };
        let given = self.given(target, met, proposed)?;
        // As a condition of the query it would be checked to be one.
        let condition = Expr::Case {
            case_token:
                datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken::empty(),
            end_token:
                datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken::empty(),
            operand: None,
            conditions: vec![datafusion::sql::sqlparser::ast::CaseWhen {
                condition: selection.clone(),
                result: Expr::value(Value::Boolean(true)),
            }],
            else_result: Some(Box::new(Expr::value(Value::Boolean(false)))),
        };
        let query = query(&[SelectItem::UnnamedExpr(condition)], &given)?;
        let context = statement.context(frame).with_given(given);
        refuse_grouped(&context, selection, "WHERE")?;
        let (_, answer) = answer_in(statement, &context, &query).await?;
        let found = answer.columns.first().and_then(|(_, array)| array.as_boolean_opt());
        let Some(found) = found else { return Err(Error::internal("a WHERE without an answer")) };
        Ok((0..found.len()).filter(|row| found.is_valid(*row) && found.value(*row)).collect())
    }

    /// What the rows that were met become.
    async fn changed(
        &self,
        statement: &Statement<'_>,
        frame: &Arc<Frame>,
        target: &Target,
        update: &Changes<'_>,
        old: &RecordBatch,
        proposed: &RecordBatch,
    ) -> Result<RecordBatch, Error> {
        let assigned = assignments(&update.pairs, target)?;
        let columns = &target.relation().columns;
        let rows = old.num_rows();
        let mut values: Vec<Option<ArrayRef>> =
            target.in_definition(old).into_iter().map(Some).collect();
        let mut computed = vec![];
        let mut asked = vec![];
        for (place, cell) in assigned {
            match cell {
                Cell::Default => asked.push(place),
                Cell::Expr(expr) => computed.push((place, expr)),
            }
        }
        let given = self.given(target, old, proposed)?;
        let items: Vec<_> =
            computed.iter().map(|(_, expr)| SelectItem::UnnamedExpr((*expr).clone())).collect();
        let query = query(&items, &given)?;
        let context = statement.context(frame).with_given(given);
        for (_, expr) in &computed {
            refuse_grouped(&context, expr, "UPDATE")?;
        }
        if !items.is_empty() {
            let (_, answer) = answer_in(statement, &context, &query).await?;
            let format = statement.settings.text_format();
            for ((place, expr), (kind, array)) in computed.iter().zip(answer.columns) {
                let is_untyped = super::source::is_untyped(expr);
                let kind = if is_untyped { crate::Type::Unknown } else { kind };
                values[*place] = Some(assign(&array, &kind, &columns[*place], &format)?);
            }
        }
        let wanted = asked.iter().map(|place| (*place, &columns[*place]));
        let defaults = defaults(frame, statement.settings, wanted).await?;
        for place in asked {
            values[place] = None;
        }
        let target = target.clone().with_defaults(defaults);
        super::fill_each(frame, statement.settings, &target, &mut values, rows).await?;
        complete(frame, statement.settings, &target, values, rows).await
    }
}

/// The keys that a conflict target names.
fn arbiters(named: &ConflictTarget, target: &Target) -> Result<Vec<UniqueKey>, Error> {
    let keys = UniqueKey::all(target.relation());
    match named {
        ConflictTarget::OnConstraint(name) => {
            let name = names::unquoted(name);
            let table = &target.relation().name;
            let found: Vec<_> = keys.into_iter().filter(|key| key.name == name).collect();
            match (found.is_empty(), target.relation().constraint(&name)) {
                (false, _) => Ok(found),
                (true, Some(_)) => Err(Error::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    "constraint in ON CONFLICT clause has no associated index",
                )),
                (true, None) => Err(Error::new(
                    SqlState::UNDEFINED_OBJECT,
                    format!("constraint \"{name}\" for table \"{table}\" does not exist"),
                )),
            }
        }
        ConflictTarget::Columns(columns) => {
            let mut wanted = BTreeSet::new();
            for column in columns {
                let name = names::fold(column);
                let place = target.relation().columns.iter().position(|c| c.name == name);
                let place = place.ok_or_else(|| {
                    let message = format!("column \"{name}\" does not exist");
                    Error::new(SqlState::UNDEFINED_COLUMN, message)
                })?;
                wanted.extend(target.stored_places(&[place]));
            }
            let is_wanted =
                |key: &UniqueKey| key.columns.iter().copied().collect::<BTreeSet<_>>() == wanted;
            let found: Vec<_> = keys.into_iter().filter(is_wanted).collect();
            match found.is_empty() {
                false => Ok(found),
                true => Err(Error::new(
                    SqlState::INVALID_COLUMN_REFERENCE,
                    "there is no unique or exclusion constraint matching the ON CONFLICT \
                     specification",
                )),
            }
        }
    }
}

fn second_time() -> Error {
    let message = "ON CONFLICT DO UPDATE command cannot affect row a second time";
    Error::new(SqlState::CARDINALITY_VIOLATION, message).with_hint(
        "Ensure that no rows proposed for insertion within the same command have duplicate \
         constrained values.",
    )
}

fn only(rows: &RecordBatch, places: impl Iterator<Item = usize>) -> Result<RecordBatch, Error> {
    let places: UInt64Array = places.map(|place| place as u64).collect::<Vec<_>>().into();
    take_record_batch(rows, &places).map_err(broken)
}

/// Rows of both, in an order.
fn merged(
    target: &Target,
    first: &RecordBatch,
    second: &RecordBatch,
    places: &[(usize, usize)],
) -> Result<RecordBatch, Error> {
    let columns = first.columns().iter().zip(second.columns());
    let columns = columns.map(|(first, second)| interleave(&[first.as_ref(), second], places));
    target.batch(columns.collect::<Result<_, _>>().map_err(broken)?, places.len())
}

fn broken(error: arrow::error::ArrowError) -> Error {
    Error::internal(format!("rows cannot be put together: {error}"))
}
