//! GROUPING SETS, ROLLUP and CUBE: a grouping for each set, put together.

use std::sync::Arc;

use datafusion::logical_expr::utils::{enumerate_grouping_sets, grouping_set_to_exprlist};
use datafusion::logical_expr::{Aggregate as Grouping, Expr, GroupingSet};
use stillframe_protocol::{Expression, Literal, Plan};

use super::{Output, grouped};
use crate::view::{build, refused};
use crate::{Error, query::classify};

/// Compiles a GROUP BY of sets. The columns are those of all sets, the number that tells of each
/// row which columns it isn't grouped by, and the aggregates.
pub(super) fn aggregate(grouping: &Grouping, input: &Arc<Plan>) -> Result<Arc<Plan>, Error> {
    let all = grouping_set_to_exprlist(&grouping.group_expr).map_err(classify)?;
    let sets = sets(&grouping.group_expr)?;
    let fields = grouping.schema.fields();
    let (id, first_call) = (all.len(), all.len() + 1);
    let schema = build::logical_schema(&grouping.schema)?;
    let mut inputs = vec![];
    for set in &sets {
        let kept: Vec<usize> = (0..all.len()).filter(|place| set.contains(all[*place])).collect();
        let groups: Vec<Expr> = kept.iter().map(|place| all[*place].clone()).collect();
        let own = kept.iter().copied().chain(first_call..fields.len());
        let own: Vec<_> = own.map(|place| Arc::clone(&fields[place])).collect();
        let output = Output { fields: &own };
        let below = grouping.input.schema();
        let part = grouped(Arc::clone(input), below, &groups, &grouping.aggr_expr, &output)?;
        let columns = schema.fields().iter().enumerate().map(|(place, field)| {
            let data_type = field.data_type();
            let column = if place == id {
                let number = (0..all.len())
                    .fold(0, |number, place| (number << 1) | i64::from(!kept.contains(&place)));
                build::cast(
                    Expression::Literal(Literal::Int64(number)),
                    &arrow::datatypes::DataType::Int64,
                    data_type,
                )
            } else if place >= first_call {
                Expression::Column(kept.len() + place - first_call)
            } else {
                match kept.iter().position(|known| *known == place) {
                    Some(group) => Expression::Column(group),
                    None => Expression::Literal(Literal::Null(data_type.clone())),
                }
            };
            build::Column::new(field.name(), column, data_type.clone())
        });
        inputs.push(build::project(part, columns.collect()));
    }
    Ok(Arc::new(Plan::UnionAll { inputs, schema }))
}

/// The sets, each of which is a list of expressions.
fn sets(group_expr: &[Expr]) -> Result<Vec<Vec<Expr>>, Error> {
    // Beside an empty list everything is spelled out as sets.
    let spelled = [Expr::GroupingSet(GroupingSet::GroupingSets(vec![vec![]]))];
    let spelled = spelled.into_iter().chain(group_expr.iter().cloned()).collect();
    match enumerate_grouping_sets(spelled).map_err(classify)?.pop() {
        Some(Expr::GroupingSet(GroupingSet::GroupingSets(sets))) => Ok(sets),
        _ => Err(refused("such GROUPING SETS")),
    }
}
