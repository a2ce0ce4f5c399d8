//! Joins.
//!
//! The protocol has inner joins and semijoins. A side whose rows are all kept adds those that meet
//! none, with NULLs in the place of the other side's columns: what an antijoin leaves. Where the
//! condition is more than equalities, the rows that meet one are those that the inner join has.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::NullEquality;
use datafusion::logical_expr::{Expr, ExprSchemable, Join, JoinType};
use stillframe_protocol::{Expression, JoinKey, Literal, Plan};

use super::equal::{Key, joined, same, with_keys};
use super::{Compiler, Rows, build, refused};
use crate::Error;
use crate::query::classify;

/// One side of a join: its columns, its values from around if it depends on them, and then what its
/// keys need beyond.
struct Side {
    plan: Arc<Plan>,
    width: usize,
    /// Its own columns and the values from around.
    whole: usize,
    keys: Vec<usize>,
}

impl Side {
    fn columns(&self) -> usize {
        self.plan.schema().fields().len()
    }

    /// Its own columns and the values from around only, or one column if there are none.
    fn whole_plan(&self) -> Arc<Plan> {
        let whole = self.whole.max(1);
        match whole == self.columns() {
            true => Arc::clone(&self.plan),
            false => build::pick(Arc::clone(&self.plan), &(0..whole).collect::<Vec<_>>()),
        }
    }

    fn types(&self, places: std::ops::Range<usize>) -> Vec<DataType> {
        let schema = self.plan.schema();
        places.map(|place| schema.field(place).data_type().clone()).collect()
    }
}

/// A join's sides and its condition.
struct Matching {
    left: Side,
    right: Side,
    on: Vec<JoinKey>,
    /// Over the columns of both sides.
    residual: Option<Expression>,
}

impl Matching {
    fn inner(&self) -> Arc<Plan> {
        Arc::new(Plan::Join {
            left: Arc::clone(&self.left.plan),
            right: Arc::clone(&self.right.plan),
            on: self.on.clone(),
            residual: self.residual.clone(),
            schema: joined(&self.left.plan, &self.right.plan),
        })
    }

    /// The rows of one side that meet one of the other, or none.
    fn semijoin(&self, is_left: bool, negated: bool) -> Result<Arc<Plan>, Error> {
        let (side, other) =
            if is_left { (&self.left, &self.right) } else { (&self.right, &self.left) };
        if self.residual.is_none() {
            let on = self.on.iter().map(|key| match is_left {
                true => *key,
                false => JoinKey { left: key.right, right: key.left, ..*key },
            });
            return Ok(Arc::new(Plan::Semijoin {
                left: Arc::clone(&side.plan),
                right: Arc::clone(&other.plan),
                on: on.collect(),
                negated,
            }));
        }
        let first = if is_left { 0 } else { self.left.columns() };
        let left = side.whole_plan();
        let places: Vec<_> = (first..first + left.schema().fields().len()).collect();
        let met = build::pick(self.inner(), &places);
        build::keys(&met, 0..places.len(), "an outer join")?;
        let right = Arc::new(Plan::Distinct { input: met });
        let on = same(0..places.len(), 0..places.len());
        Ok(Arc::new(Plan::Semijoin { left, right, on, negated }))
    }
}

impl Compiler<'_> {
    pub(super) fn join(&self, join: &Join) -> Result<Rows, Error> {
        if join.null_aware {
            return Err(refused("such a NOT IN"));
        }
        let (matching, depends) = self.matching(join)?;
        match join.join_type {
            JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
                self.outer(&matching, depends, join.join_type)
            }
            JoinType::LeftSemi | JoinType::LeftAnti => {
                let plan = matching.semijoin(true, join.join_type == JoinType::LeftAnti)?;
                let (width, whole) = (matching.left.width, matching.left.whole);
                let plan = build::pick(plan, &(0..whole.max(1)).collect::<Vec<_>>());
                Ok(Rows { plan, width, depends })
            }
            other => Err(refused(format!("{other} JOIN"))),
        }
    }

    /// The rows that match, and those of one side or both that match none.
    fn outer(&self, matching: &Matching, depends: bool, kind: JoinType) -> Result<Rows, Error> {
        let Matching { left, right, .. } = matching;
        let width = left.width + right.width;
        let values = if depends { self.around.columns.len() } else { 0 };
        let from_left = left.whole - left.width == values;
        let first_value = match from_left {
            true => left.width,
            false => left.columns() + right.width,
        };
        let kept: Vec<_> = (0..left.width)
            .chain(left.columns()..left.columns() + right.width)
            .chain(first_value..first_value + values)
            .collect();
        let matched = match kept.is_empty() {
            true => build::project(matching.inner(), vec![build::Column::nothing()]),
            false => build::pick(matching.inner(), &kept),
        };
        let mut inputs = vec![Arc::clone(&matched)];
        if matches!(kind, JoinType::Left | JoinType::Full) {
            let rows = matching.semijoin(true, true)?;
            let nulls = right.types(0..right.width);
            inputs.push(padded(&rows, left.width, vec![], nulls, values, &matched));
        }
        if matches!(kind, JoinType::Right | JoinType::Full) {
            let rows = matching.semijoin(false, true)?;
            let nulls = left.types(0..left.width);
            inputs.push(padded(&rows, right.width, nulls, vec![], values, &matched));
        }
        if inputs.len() == 1 {
            return Ok(Rows { plan: matched, width, depends });
        }
        let schema = matched.schema();
        Ok(Rows { plan: Arc::new(Plan::UnionAll { inputs, schema }), width, depends })
    }

    /// The sides and what they must meet, and whether what comes out depends on values from around.
    fn matching(&self, join: &Join) -> Result<(Matching, bool), Error> {
        let mut left = self.rows(&join.left)?;
        let mut right = self.rows(&join.right)?;
        let is_read = |expr: &Expr| self.around.is_read_by(expr);
        let reads = join.filter.as_ref().is_some_and(is_read)
            || join.on.iter().any(|(left, right)| is_read(left) || is_read(right));
        let depends = reads || left.depends || right.depends;
        if depends {
            let (needs_left, needs_right) = match join.join_type {
                JoinType::Right => (false, true),
                JoinType::Full => (true, true),
                JoinType::Inner => (!right.depends, false),
                _ => (true, false),
            };
            if needs_left {
                left = self.depending(left)?;
            }
            if needs_right {
                right = self.depending(right)?;
            }
        }

        let mut conditions = vec![];
        let (mut left_keys, mut right_keys) = (vec![], vec![]);
        let null_equal = join.null_equality == NullEquality::NullEqualsNull;
        for (l, r) in &join.on {
            if is_read(l) || is_read(r) {
                conditions.push(l.clone().eq(r.clone()));
                continue;
            }
            let found = l.get_type(join.left.schema()).map_err(classify)?;
            let other = r.get_type(join.right.schema()).map_err(classify)?;
            let stored = build::stored_type(&found)?;
            let expression = self.convert(l, join.left.schema(), &left)?;
            left_keys.push(Key { expression, found, stored: stored.clone() });
            let expression = self.convert(r, join.right.schema(), &right)?;
            right_keys.push(Key { expression, found: other, stored });
        }
        conditions.extend(join.filter.clone());
        let left = side(left, left_keys, self.around.columns.len());
        let right = side(right, right_keys, self.around.columns.len());
        build::keys(&left.plan, left.keys.iter().copied(), "a join")?;

        let pairs = left.keys.iter().zip(&right.keys);
        let mut on: Vec<_> =
            pairs.map(|(left, right)| JoinKey { left: *left, right: *right, null_equal }).collect();
        if left.whole > left.width && right.whole > right.width {
            on.extend(same(left.width..left.whole, right.width..right.whole));
        }
        let (left_width, left_columns) = (left.width, left.columns());
        // What is computed beyond stands between the two sides' columns.
        let place_of = |place: usize| match place < left_width {
            true => place,
            false => place - left_width + left_columns,
        };
        let value_of = |value: usize| match left.whole > left.width {
            true => left_width + value,
            false => left_columns + right.width + value,
        };
        let both = left_width + right.width;
        let conditions = conditions.iter().map(|condition| {
            let mut residual = self.around.convert(condition, &join.schema, &|v| both + v)?;
            build::replace_columns(&mut residual, &|place| {
                Expression::Column(match place < both {
                    true => place_of(place),
                    false => value_of(place - both),
                })
            });
            Ok(residual)
        });
        let residual = super::filter::conjunction(conditions.collect::<Result<Vec<_>, Error>>()?);
        Ok((Matching { left, right, on, residual }, depends))
    }
}

fn side(rows: Rows, keys: Vec<Key>, values: usize) -> Side {
    let Rows { plan, width, depends } = rows;
    let whole = if depends { width + values } else { width };
    let (plan, keys) = with_keys(plan, keys);
    Side { plan, width, whole, keys }
}

/// Rows of one side that meet none, with NULLs before and after; values from around stand last.
fn padded(
    rows: &Arc<Plan>,
    width: usize,
    before: Vec<DataType>,
    after: Vec<DataType>,
    values: usize,
    like: &Arc<Plan>,
) -> Arc<Plan> {
    let null = |data_type: DataType| Expression::Literal(Literal::Null(data_type));
    let own = (0..width).map(Expression::Column);
    let values = (width..width + values).map(Expression::Column);
    let expressions =
        before.into_iter().map(null).chain(own).chain(after.into_iter().map(null)).chain(values);
    let schema = like.schema();
    let columns = expressions.zip(schema.fields()).map(|(expression, field)| {
        build::Column::new(field.name(), expression, field.data_type().clone())
    });
    let mut columns: Vec<_> = columns.collect();
    if columns.is_empty() {
        columns.push(build::Column::nothing());
    }
    build::project(Arc::clone(rows), columns)
}
