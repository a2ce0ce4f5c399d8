//! The first rows of each partition by a number that a window gives them: `row_number() <= 3`.
//!
//! Who has such a number depends on the rows before it in order only. So the partition is cut to its
//! first rows before it is numbered: they can be found without reading the others.

use std::sync::Arc;

use stillframe_protocol::{
    BinaryOperator, Computation, Expression, Limit, Literal, Plan, SortKey, WindowCall,
    WindowFunction,
};

/// Windows whose values depend on nothing but the rows before, and those that equal the current one.
const NUMBERS: &[&str] = &["row_number", "rank", "dense_rank"];

/// The input of a filter with fewer rows, if the filter would drop the others.
pub(super) fn cut(input: Arc<Plan>, predicate: &Expression) -> Arc<Plan> {
    first_rows(&input, predicate).unwrap_or(input)
}

fn first_rows(input: &Arc<Plan>, predicate: &Expression) -> Option<Arc<Plan>> {
    match input.as_ref() {
        Plan::Project { input, expressions, schema } => {
            let below = predicate_below(predicate, expressions)?;
            let input = first_rows(input, &below)?;
            let (expressions, schema) = (expressions.clone(), Arc::clone(schema));
            Some(Arc::new(Plan::Project { input, expressions, schema }))
        }
        Plan::Partition { input, keys, computation: Computation::Windows(calls), schema } => {
            let order = &calls.first()?.order;
            if order.is_empty() || !calls.iter().all(|call| is_number(call, order)) {
                return None;
            }
            let passed = input.schema().fields().len();
            let (count, with_ties) = bound(predicate, passed, calls)?;
            let limit = Limit { order: order.clone(), offset: 0, count: Some(count), with_ties };
            let cut = Arc::new(Plan::Partition {
                input: Arc::clone(input),
                keys: keys.clone(),
                computation: Computation::Limit(limit),
                schema: input.schema(),
            });
            Some(Arc::new(Plan::Partition {
                input: cut,
                keys: keys.clone(),
                computation: Computation::Windows(calls.clone()),
                schema: Arc::clone(schema),
            }))
        }
        _ => None,
    }
}

/// The predicate over the columns below a projection that only moves columns.
fn predicate_below(predicate: &Expression, columns: &[Expression]) -> Option<Expression> {
    let mut is_moved = true;
    predicate.columns(&mut |column| {
        is_moved &= matches!(columns.get(column), Some(Expression::Column(_)));
    });
    let place = |column: usize| match &columns[column] {
        Expression::Column(below) => *below,
        _ => column,
    };
    is_moved.then(|| predicate.map_columns(&place))
}

fn is_number(call: &WindowCall, order: &[SortKey]) -> bool {
    matches!(&call.function, WindowFunction::Window(name) if NUMBERS.contains(&name.as_str()))
        && call.order == order
}

/// How many first rows can pass a predicate, and whether their equals can as well.
fn bound(predicate: &Expression, passed: usize, calls: &[WindowCall]) -> Option<(u64, bool)> {
    let Expression::Binary { operator, left, right } = predicate else { return None };
    if *operator == BinaryOperator::And {
        return bound(left, passed, calls).or_else(|| bound(right, passed, calls));
    }
    let Expression::Literal(Literal::Int64(limit)) = right.as_ref() else { return None };
    let Expression::Column(column) = without_casts(left) else { return None };
    let WindowFunction::Window(name) = &calls.get(column.checked_sub(passed)?)?.function else {
        return None;
    };
    let count = match operator {
        BinaryOperator::LessOrEqual | BinaryOperator::Equal => *limit,
        BinaryOperator::Less => limit.saturating_sub(1),
        _ => return None,
    };
    let count = u64::try_from(count).unwrap_or(0);
    match name.as_str() {
        "row_number" => Some((count, false)),
        "rank" => Some((count, true)),
        _ => None,
    }
}

/// A number without casts to the type that it has.
fn without_casts(expression: &Expression) -> &Expression {
    match expression {
        Expression::Cast { operand, to: arrow::datatypes::DataType::Int64, .. } => {
            without_casts(operand)
        }
        other => other,
    }
}
