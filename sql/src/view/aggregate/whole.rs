//! Aggregates that need all rows of their group at once.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::DFSchema;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::{AggregateFunction as Call, NullTreatment};
use stillframe_protocol::{AggregateCall, Computation, Plan};

use super::Output;
use crate::Error;
use crate::view::operand::Columns;
use crate::view::{build, refused};

/// All aggregates of a GROUP BY, computed of each group's rows.
pub(super) fn aggregate(
    input: Arc<Plan>,
    below: &DFSchema,
    groups: &[Expr],
    calls: &[Expr],
    output: &Output<'_>,
) -> Result<Arc<Plan>, Error> {
    let mut columns = Columns::default();
    let groups = groups.iter().map(|group| Ok(columns.value(group, below)?.0));
    let groups: Vec<usize> = groups.collect::<Result<_, Error>>()?;
    let calls = calls.iter().map(|expr| call(expr, below, &mut columns));
    let calls = calls.collect::<Result<Vec<_>, Error>>()?;
    let input = columns.over(input);
    build::keys(&input, groups.iter().copied(), "GROUP BY")?;

    let keys: Vec<usize> = groups.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    let own = input.schema();
    let mut types: Vec<_> = keys.iter().map(|key| own.field(*key).data_type().clone()).collect();
    for field in output.fields.iter().skip(groups.len()) {
        types.push(build::stored_type(field.data_type())?);
    }
    let schema = build::schema(types.iter().map(|data_type| ("c", data_type.clone())));
    let computation = Computation::Aggregates(calls);
    let result = Arc::new(Plan::Partition { input, keys: keys.clone(), computation, schema });
    output.columns(result, &groups, &keys)
}

fn call(expr: &Expr, below: &DFSchema, columns: &mut Columns) -> Result<AggregateCall, Error> {
    let mut expr = expr;
    while let Expr::Alias(alias) = expr {
        expr = &alias.expr;
    }
    let Expr::AggregateFunction(Call { func, params }) = expr else {
        return Err(refused(format!("the aggregate {expr}")));
    };
    Ok(AggregateCall {
        function: func.name().to_owned(),
        arguments: columns.operands(&params.args, below)?,
        distinct: params.distinct,
        filter: columns.filter(params.filter.as_deref(), below)?,
        order: columns.order(&params.order_by, below)?,
        ignore_nulls: params.null_treatment == Some(NullTreatment::IgnoreNulls),
    })
}
