//! Joins.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::NullEquality;
use datafusion::logical_expr::{Expr, ExprSchemable, Join, LogicalPlan};
use stillframe_protocol::{Expression, Plan};

use super::{build, plan, refused};
use crate::Error;
use crate::expression::convert;

/// One side of a join: its own columns, then those that its keys need.
struct Side {
    plan: Arc<Plan>,
    width: usize,
    keys: Vec<usize>,
}

/// An inner or cross join.
pub(super) fn inner(join: &Join) -> Result<Arc<Plan>, Error> {
    let (left, right) = sides(join)?;
    let (left_width, right_width) = (left.width, right.width);
    let left_total = left.plan.schema().fields().len();
    let residual = match &join.filter {
        Some(filter) => {
            let mut residual = convert(filter, &join.schema)?;
            // The keys that were computed stand between the two sides' columns.
            build::replace_columns(&mut residual, &|place| {
                let is_left = place < left_width;
                Expression::Column(if is_left { place } else { place - left_width + left_total })
            });
            Some(residual)
        }
        None => None,
    };
    let schema = joined(&left.plan, &right.plan);
    let joined = Arc::new(Plan::Join {
        on: left.keys.into_iter().zip(right.keys).collect(),
        left: left.plan,
        right: right.plan,
        residual,
        schema,
    });
    let kept: Vec<_> = (0..left_width).chain(left_total..left_total + right_width).collect();
    Ok(build::pick(joined, &kept))
}

/// The rows of the left side that meet at least one of the right: a join with the right side's
/// distinct keys.
pub(super) fn semi(join: &Join) -> Result<Arc<Plan>, Error> {
    if join.filter.is_some() || join.on.is_empty() {
        return Err(refused("EXISTS or IN with a condition other than equality"));
    }
    let (left, right) = sides(join)?;
    let keys = Arc::new(Plan::Distinct { input: build::pick(right.plan, &right.keys) });
    let schema = joined(&left.plan, &keys);
    let joined = Arc::new(Plan::Join {
        on: left.keys.into_iter().zip(0..).collect(),
        left: left.plan,
        right: keys,
        residual: None,
        schema,
    });
    Ok(build::pick(joined, &(0..left.width).collect::<Vec<_>>()))
}

fn sides(join: &Join) -> Result<(Side, Side), Error> {
    if join.null_equality == NullEquality::NullEqualsNull && !join.on.is_empty() {
        return Err(refused("INTERSECT, EXCEPT or a join on IS NOT DISTINCT FROM"));
    }
    let types = join
        .on
        .iter()
        .map(|(left, _)| left.get_type(join.left.schema()).map_err(crate::query::classify));
    let types = types.collect::<Result<Vec<_>, Error>>()?;
    let left = join.on.iter().map(|(left, _)| left).zip(&types);
    let right = join.on.iter().map(|(_, right)| right).zip(&types);
    let left = side(&join.left, left)?;
    let right = side(&join.right, right)?;
    build::keys(&left.plan, left.keys.iter().copied(), "a join")?;
    Ok((left, right))
}

/// A side with its keys as columns of these types.
fn side<'a>(
    query: &LogicalPlan,
    keys: impl Iterator<Item = (&'a Expr, &'a DataType)>,
) -> Result<Side, Error> {
    let input = plan(query)?;
    let own = input.schema();
    // A plan has a column even where nothing is read of it.
    let width = query.schema().fields().len();
    let mut columns: Vec<_> = own
        .fields()
        .iter()
        .enumerate()
        .take(width)
        .map(|(place, field)| {
            build::Column::new(field.name(), Expression::Column(place), field.data_type().clone())
        })
        .collect();
    let mut places = vec![];
    for (key, data_type) in keys {
        let expression = convert(key, query.schema())?;
        let stored = build::stored_type(data_type)?;
        match expression {
            Expression::Column(place) if *own.field(place).data_type() == stored => {
                places.push(place);
            }
            expression => {
                let found = key.get_type(query.schema()).map_err(crate::query::classify)?;
                places.push(columns.len());
                let expression = build::cast(expression, &found, &stored);
                columns.push(build::Column::new("key", expression, stored));
            }
        }
    }
    if columns.is_empty() {
        columns.push(build::Column::nothing());
    }
    let plan = build::project(input, columns);
    Ok(Side { plan, width, keys: places })
}

fn joined(left: &Plan, right: &Plan) -> Arc<Schema> {
    let (left, right) = (left.schema(), right.schema());
    let fields = left.fields().iter().chain(right.fields());
    let fields = fields.map(|field| Field::new(field.name(), field.data_type().clone(), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
