//! Joins with the values from around, and sides of joins with the columns that are compared.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use stillframe_protocol::{Expression, JoinKey, Plan};

use super::{Compiler, Rows, build};
use crate::Error;

/// What one side of a join is compared by.
pub(super) struct Key {
    pub(super) expression: Expression,
    /// What it computes.
    pub(super) found: DataType,
    /// As what it is compared.
    pub(super) stored: DataType,
}

/// A plan with its keys as columns, after its own where it has no such column.
pub(super) fn with_keys(input: Arc<Plan>, keys: Vec<Key>) -> (Arc<Plan>, Vec<usize>) {
    let own = input.schema();
    let mut columns: Vec<_> = own
        .fields()
        .iter()
        .enumerate()
        .map(|(place, field)| {
            build::Column::new(field.name(), Expression::Column(place), field.data_type().clone())
        })
        .collect();
    let mut places = vec![];
    for Key { expression, found, stored } in keys {
        match expression {
            Expression::Column(place) if *own.field(place).data_type() == stored => {
                places.push(place);
            }
            expression => {
                places.push(columns.len());
                let expression = build::cast(expression, &found, &stored);
                columns.push(build::Column::new("key", expression, stored));
            }
        }
    }
    (build::project(input, columns), places)
}

/// The columns of a join.
pub(super) fn joined(left: &Plan, right: &Plan) -> Arc<Schema> {
    let (left, right) = (left.schema(), right.schema());
    let fields = left.fields().iter().chain(right.fields());
    build::schema(fields.map(|field| (field.name().as_str(), field.data_type().clone())))
}

/// Keys for some columns of both sides, where NULL equals NULL.
pub(super) fn same(
    left: impl IntoIterator<Item = usize>,
    right: impl IntoIterator<Item = usize>,
) -> Vec<JoinKey> {
    left.into_iter().zip(right).map(|(left, right)| JoinKey::null_equal(left, right)).collect()
}

/// Columns of one side that equal values from around: each pair is (key of the rows, value).
pub(super) type Equalities = Vec<(Key, usize)>;

impl Compiler<'_> {
    /// Rows that don't depend on the values from around, for each list of values for which the
    /// equalities hold and the residual is true. The residual is over the rows' columns, followed by
    /// the values.
    pub(super) fn depending_where(
        &self,
        rows: Rows,
        equalities: Equalities,
        residual: Option<Expression>,
    ) -> Result<Rows, Error> {
        let Some(domain) = &self.around.domain else {
            return Err(Error::internal("values from around where there are none"));
        };
        let width = rows.width;
        let (keys, values): (Vec<_>, Vec<_>) = equalities.into_iter().unzip();
        let (plan, keys) = with_keys(rows.plan, keys);
        build::keys(&plan, keys.iter().copied(), "a correlated subquery")?;
        let total = plan.schema().fields().len();
        let residual = residual.map(|mut residual| {
            build::replace_columns(&mut residual, &|place| {
                Expression::Column(if place < width { place } else { total + place - width })
            });
            residual
        });
        let on = keys.iter().zip(values).map(|(key, value)| JoinKey::new(*key, value));
        let joined = Arc::new(Plan::Join {
            on: on.collect(),
            residual,
            schema: joined(&plan, domain),
            left: plan,
            right: Arc::clone(domain),
        });
        let kept: Vec<_> = (0..width).chain(total..total + self.around.columns.len()).collect();
        Ok(Rows { plan: build::pick(joined, &kept), width, depends: true })
    }
}
