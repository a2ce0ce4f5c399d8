//! DISTINCT arguments.
//!
//! An aggregate with DISTINCT reads each value of a group once. Where conditions (FILTER) are asked of
//! one column by several aggregates, its values are looked for once, with a count for each condition.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::datatypes::DataType;
use stillframe_protocol::{
    Aggregate, AggregateFunction, BinaryOperator, Expression, Literal, Plan, UnaryOperator,
};

use super::super::build;
use super::{Wanted, guarded};
use crate::Error;

/// What an aggregate reads: a plan, its group columns, and each aggregate's argument in it.
pub(super) struct Source {
    pub(super) input: Arc<Plan>,
    pub(super) groups: Vec<usize>,
    pub(super) arguments: Vec<Option<usize>>,
}

/// A DISTINCT argument, and the column that isn't NULL where its condition is true.
type Value = (usize, Option<usize>);

/// Takes care of the DISTINCT arguments.
///
/// The columns of the union are the groups, the arguments of the plain aggregates, the DISTINCT
/// arguments, and one that counts the rows themselves.
pub(super) fn source(
    input: Arc<Plan>,
    groups: &[usize],
    wanted: &[Wanted],
) -> Result<Source, Error> {
    let of_kind = |distinct| wanted.iter().filter(move |wanted| wanted.distinct == distinct);
    let plain: BTreeSet<usize> = of_kind(false).filter_map(|wanted| wanted.argument).collect();
    let distinct: BTreeSet<Value> =
        of_kind(true).filter_map(|wanted| Some((wanted.argument?, wanted.condition))).collect();
    if distinct.is_empty() {
        let arguments = wanted.iter().map(|wanted| wanted.argument).collect();
        return Ok(Source { input, groups: groups.to_vec(), arguments });
    }
    build::keys(&input, distinct.iter().map(|(argument, _)| *argument), "DISTINCT")?;
    let own = input.schema();
    let values = distinct.iter().map(|(argument, _)| argument);
    let places: Vec<usize> = groups.iter().chain(&plain).chain(values).copied().collect();
    let types = places.iter().map(|place| own.field(*place).data_type().clone());
    let types: Vec<_> = types.chain([DataType::Boolean]).collect();
    let schema = build::schema(types.iter().map(|data_type| ("c", data_type.clone())));
    let (first_plain, rows) = (groups.len(), places.len());
    let first_distinct = first_plain + plain.len();
    let part = |input: &Arc<Plan>, value: &dyn Fn(usize) -> Option<Expression>| {
        let columns = types.iter().enumerate().map(|(place, data_type)| {
            let null = || Expression::Literal(Literal::Null(data_type.clone()));
            build::Column::new("c", value(place).unwrap_or_else(null), data_type.clone())
        });
        build::project(Arc::clone(input), columns.collect())
    };

    let mut inputs = vec![];
    if of_kind(false).next().is_some() {
        inputs.push(part(&input, &|place| {
            if place == rows {
                Some(Expression::Literal(Literal::Boolean(true)))
            } else {
                (place < first_distinct).then(|| Expression::Column(places[place]))
            }
        }));
    }
    let mut together: BTreeMap<usize, Vec<(usize, Option<usize>)>> = BTreeMap::new();
    for (number, (argument, condition)) in distinct.iter().enumerate() {
        together.entry(*argument).or_default().push((first_distinct + number, *condition));
    }
    for (argument, asked) in &together {
        let (plan, outcomes) = values_of(&input, groups, *argument, asked);
        inputs.push(part(&plan, &|place| {
            let outcome = asked.iter().zip(&outcomes).find(|((asked, _), _)| *asked == place);
            match outcome {
                Some((_, outcome)) => Some(outcome.clone()),
                None => (place < groups.len()).then_some(Expression::Column(place)),
            }
        }));
    }
    let arguments = wanted.iter().map(|wanted| {
        let argument = wanted.argument?;
        let number = if wanted.distinct {
            distinct.iter().position(|known| *known == (argument, wanted.condition))
        } else {
            plain.iter().position(|known| *known == argument)
        };
        let first = if wanted.distinct { first_distinct } else { first_plain };
        number.map(|number| first + number)
    });
    let arguments = arguments.map(|argument| Some(argument.unwrap_or(rows))).collect();
    let input = Arc::new(Plan::UnionAll { inputs, schema });
    Ok(Source { input, groups: (0..groups.len()).collect(), arguments })
}

/// A column's values, each once in a group, and for each condition the value where it is true of a
/// row.
fn values_of(
    input: &Arc<Plan>,
    groups: &[usize],
    argument: usize,
    asked: &[(usize, Option<usize>)],
) -> (Arc<Plan>, Vec<Expression>) {
    let kept: Vec<_> = groups.iter().chain([&argument]).copied().collect();
    let value = Expression::Column(groups.len());
    match asked {
        [(_, None)] => {
            let values = Plan::Distinct { input: build::pick(Arc::clone(input), &kept) };
            (Arc::new(values), vec![value])
        }
        [(_, Some(condition))] => {
            let is_true = Expression::Unary {
                operator: UnaryOperator::IsNotNull,
                operand: Box::new(Expression::Column(*condition)),
            };
            let schema = input.schema();
            let column = |place: usize, expression| {
                build::Column::new("c", expression, schema.field(place).data_type().clone())
            };
            let own = groups.iter().map(|place| column(*place, Expression::Column(*place)));
            let guarded = column(argument, guarded(is_true, Expression::Column(argument)));
            let rows = build::project(Arc::clone(input), own.chain([guarded]).collect());
            (Arc::new(Plan::Distinct { input: rows }), vec![value])
        }
        _ => {
            let conditions = asked.iter().filter_map(|(_, condition)| *condition);
            let aggregates: Vec<_> = conditions
                .map(|condition| Aggregate {
                    function: AggregateFunction::Count,
                    argument: Some(condition),
                })
                .collect();
            let schema = input.schema();
            let types = kept.iter().map(|place| schema.field(*place).data_type().clone());
            let types = types.chain(aggregates.iter().map(|_| DataType::Int64));
            let schema = build::schema(types.map(|data_type| ("c", data_type)));
            let mut counts = kept.len()..;
            let outcomes = asked.iter().map(|(_, condition)| match condition {
                None => value.clone(),
                Some(_) => {
                    let is_there = Expression::Binary {
                        operator: BinaryOperator::Greater,
                        left: Box::new(Expression::Column(counts.next().unwrap_or_default())),
                        right: Box::new(Expression::Literal(Literal::Int64(0))),
                    };
                    guarded(is_there, value.clone())
                }
            });
            let outcomes = outcomes.collect();
            let input = Arc::clone(input);
            (Arc::new(Plan::Aggregate { input, groups: kept, aggregates, schema }), outcomes)
        }
    }
}
