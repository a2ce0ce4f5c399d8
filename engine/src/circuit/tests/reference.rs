//! What a plan means, computed the slow way: row by row, from the whole tables.
//!
//! It shares the kernels of expressions with the engine, and nothing else.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, Schema};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::ScalarValue;
use stillframe_protocol::numeric::Numeric;
use stillframe_protocol::{
    Aggregate, AggregateFunction, Expression, JoinKey, Plan, RelationId, RowError,
};

use super::cluster::{Bag, functions};
use super::partitions::partition;
use super::plans::schema;
use crate::circuit::tests::model::Tables;
use crate::expression::scalar;
use crate::{Codec, compile, row_error};

pub(super) type Record = Vec<ScalarValue>;

/// The rows of a plan, and the errors of rows that have none.
#[derive(Default)]
pub(super) struct Answer {
    pub(super) rows: Vec<Record>,
    pub(super) errors: Vec<RowError>,
}

/// Views by id.
pub(super) type Views<'a> = BTreeMap<RelationId, &'a Plan>;

pub(super) fn answer(plan: &Plan, tables: &Tables, views: &Views<'_>) -> Answer {
    let mut errors = vec![];
    let rows = rows(plan, tables, views, &[], &mut errors);
    errors.sort();
    errors.dedup();
    Answer { rows, errors }
}

/// The rows as a bag of encoded ones.
pub(super) fn encoded(plan: &Plan, rows: &[Record]) -> Bag {
    let codec = Codec::new(plan.schema()).unwrap();
    let batch = batch(&plan.schema(), rows);
    let mut bag = Bag::new();
    for row in codec.encode_batch(&batch).unwrap() {
        *bag.entry(row).or_default() += 1;
    }
    bag
}

pub(super) fn batch(schema: &Arc<Schema>, rows: &[Record]) -> RecordBatch {
    let column = |place: usize| -> ArrayRef {
        let data_type = schema.field(place).data_type();
        if rows.is_empty() {
            return arrow::array::new_empty_array(data_type);
        }
        ScalarValue::iter_to_array(rows.iter().map(|row| row[place].clone())).unwrap()
    };
    let columns = (0..schema.fields().len()).map(column).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options).unwrap()
}

fn rows(
    plan: &Plan,
    tables: &Tables,
    views: &Views<'_>,
    given: &[Vec<Record>],
    errors: &mut Vec<RowError>,
) -> Vec<Record> {
    match plan {
        Plan::Reference(_) => panic!("a part of a plan is missing"),
        Plan::Relation { id, .. } => match views.get(id) {
            Some(view) => rows(view, tables, views, given, errors),
            None => tables.rows(*id).into_iter().map(normal).collect(),
        },
        Plan::Values { rows, .. } => {
            rows.iter().map(|row| row.iter().map(scalar).collect()).collect()
        }
        Plan::Filter { input, predicate } => {
            let input_schema = input.schema();
            let mut input = rows(input, tables, views, given, errors);
            input.retain(|row| is_true(predicate, &input_schema, row, errors));
            input
        }
        Plan::Project { input, expressions, .. } => {
            let input_schema = input.schema();
            let mut projected = vec![];
            for row in rows(input, tables, views, given, errors) {
                let values: Result<Record, RowError> = expressions
                    .iter()
                    .map(|expression| evaluate(expression, &input_schema, &row))
                    .collect();
                match values {
                    Ok(values) => projected.push(values),
                    Err(error) => errors.push(error),
                }
            }
            projected
        }
        Plan::Join { left, right, on, residual, schema } => {
            let left = rows(left, tables, views, given, errors);
            let right = rows(right, tables, views, given, errors);
            let mut joined = vec![];
            for left in &left {
                for right in &right {
                    let row: Record = left.iter().chain(right).cloned().collect();
                    if meet(left, right, on)
                        && residual.iter().all(|residual| is_true(residual, schema, &row, errors))
                    {
                        joined.push(row);
                    }
                }
            }
            joined
        }
        Plan::Semijoin { left, right, on, negated } => {
            let mut left = rows(left, tables, views, given, errors);
            let right = rows(right, tables, views, given, errors);
            left.retain(|left| right.iter().any(|right| meet(left, right, on)) != *negated);
            left
        }
        Plan::Unnest { input, lists, .. } => {
            let input_schema = input.schema();
            let mut unnested = vec![];
            for row in rows(input, tables, views, given, errors) {
                let lists: Result<Vec<ScalarValue>, RowError> =
                    lists.iter().map(|(list, _)| evaluate(list, &input_schema, &row)).collect();
                match lists {
                    Ok(lists) => unnested.extend(beside_elements(&row, &lists)),
                    Err(error) => errors.push(error),
                }
            }
            unnested
        }
        Plan::Aggregate { input, groups, aggregates, schema } => {
            let input = rows(input, tables, views, given, errors);
            aggregate(input, groups, aggregates, schema, errors)
        }
        Plan::Partition { input, keys, computation, .. } => {
            let input_schema = input.schema();
            let input = rows(input, tables, views, given, errors);
            partition(input, &input_schema, keys, computation, errors)
        }
        Plan::Distinct { input } => {
            let mut input = rows(input, tables, views, given, errors);
            input.sort_by(compare);
            input.dedup();
            input
        }
        Plan::Temporal { .. } => panic!("what depends on the clock has tests of its own"),
        Plan::Given { place, .. } => given[*place].clone(),
        Plan::Recursion { base, term, given: also, distinct, .. } => {
            let mut given: Vec<Vec<Record>> = [base]
                .into_iter()
                .chain(also)
                .map(|input| rows(input, tables, views, given, errors))
                .collect();
            let mut all = vec![];
            loop {
                if *distinct {
                    given[0].sort_by(compare);
                    given[0].dedup();
                    given[0].retain(|row| !all.contains(row));
                }
                if given[0].is_empty() {
                    return all;
                }
                all.extend(given[0].iter().cloned());
                given[0] = rows(term, tables, views, &given, errors);
            }
        }
        Plan::UnionAll { inputs, .. } => {
            inputs.iter().flat_map(|input| rows(input, tables, views, given, errors)).collect()
        }
    }
}

fn meet(left: &Record, right: &Record, on: &[JoinKey]) -> bool {
    on.iter().all(|key| {
        let (left, right) = (&left[key.left], &right[key.right]);
        left == right && (key.null_equal || !left.is_null())
    })
}

fn beside_elements(row: &Record, lists: &[ScalarValue]) -> Vec<Record> {
    let lists: Vec<Vec<ScalarValue>> = lists
        .iter()
        .map(|list| {
            let ScalarValue::List(list) = list else { panic!("{list} is no list") };
            let elements = if list.is_null(0) { list.values().slice(0, 0) } else { list.value(0) };
            let element = |place| ScalarValue::try_from_array(&elements, place).unwrap();
            (0..elements.len()).map(element).collect()
        })
        .collect();
    let length = lists.iter().map(Vec::len).max().unwrap_or(0);
    let beside = |place: usize| {
        let elements = lists.iter().map(|list| match list.get(place) {
            Some(element) => element.clone(),
            None => ScalarValue::try_from(list_type(list)).unwrap(),
        });
        row.iter().cloned().chain(elements).collect()
    };
    (0..length).map(beside).collect()
}

fn list_type(list: &[ScalarValue]) -> DataType {
    list.first().map_or(DataType::Int64, ScalarValue::data_type)
}

/// A row with the one zero and the one NaN that are stored.
fn normal(row: Record) -> Record {
    let value = |value| match value {
        ScalarValue::Float64(Some(value)) if value.is_nan() => ScalarValue::Float64(Some(f64::NAN)),
        ScalarValue::Float64(Some(value)) => ScalarValue::Float64(Some(value + 0.0)),
        other => other,
    };
    row.into_iter().map(value).collect()
}

pub(super) fn evaluate(
    expression: &Expression,
    schema: &Arc<Schema>,
    row: &Record,
) -> Result<ScalarValue, RowError> {
    // A batch of one row decides branches as if there were no batches.
    let compiled = compile(expression, schema, &functions()).unwrap();
    let batch = batch(schema, std::slice::from_ref(row));
    let value = compiled.evaluate(&batch).map_err(|error| row_error(&error))?;
    Ok(ScalarValue::try_from_array(&value.into_array(1).unwrap(), 0).unwrap())
}

/// Whether a condition holds; a failing row is an error. Parts of a conjunction are asked in order
/// until one doesn't hold.
fn is_true(
    predicate: &Expression,
    schema: &Arc<Schema>,
    row: &Record,
    errors: &mut Vec<RowError>,
) -> bool {
    if let Expression::Binary { operator: stillframe_protocol::BinaryOperator::And, left, right } =
        predicate
    {
        return is_true(left, schema, row, errors) && is_true(right, schema, row, errors);
    }
    match evaluate(predicate, schema, row) {
        Ok(value) => value == ScalarValue::Boolean(Some(true)),
        Err(error) => {
            errors.push(error);
            false
        }
    }
}

pub(super) fn compare(left: &Record, right: &Record) -> Ordering {
    let types: Vec<DataType> = left.iter().map(ScalarValue::data_type).collect();
    let codec = Codec::new(schema(&types)).unwrap();
    let encode =
        |row: &Record| codec.encode_batch(&batch(codec.schema(), std::slice::from_ref(row)));
    encode(left).unwrap().cmp(&encode(right).unwrap())
}

fn aggregate(
    input: Vec<Record>,
    groups: &[usize],
    aggregates: &[Aggregate],
    schema: &Arc<Schema>,
    errors: &mut Vec<RowError>,
) -> Vec<Record> {
    let mut by_group: Vec<(Record, Vec<Record>)> = vec![];
    if groups.is_empty() {
        by_group.push((vec![], vec![]));
    }
    for row in input {
        let key: Record = groups.iter().map(|group| row[*group].clone()).collect();
        match by_group.iter_mut().find(|(known, _)| *known == key) {
            Some((_, rows)) => rows.push(row),
            None => by_group.push((key, vec![row])),
        }
    }
    let mut results = vec![];
    for (mut result, rows) in by_group {
        let values: Result<Vec<ScalarValue>, RowError> = aggregates
            .iter()
            .enumerate()
            .map(|(place, aggregate)| {
                let returns = schema.field(groups.len() + place).data_type();
                aggregate_one(aggregate, &rows, returns)
            })
            .collect();
        match values {
            Ok(values) => {
                result.extend(values);
                results.push(result);
            }
            Err(error) => errors.push(error),
        }
    }
    results
}

fn aggregate_one(
    aggregate: &Aggregate,
    rows: &[Record],
    returns: &DataType,
) -> Result<ScalarValue, RowError> {
    let values: Vec<ScalarValue> = match aggregate.argument {
        None => return Ok(ScalarValue::Int64(Some(rows.len() as i64))),
        Some(argument) => {
            rows.iter().map(|row| row[argument].clone()).filter(|value| !value.is_null()).collect()
        }
    };
    if aggregate.function == AggregateFunction::Count {
        return Ok(ScalarValue::Int64(Some(values.len() as i64)));
    }
    if values.is_empty() {
        return Ok(ScalarValue::try_from(returns).unwrap());
    }
    let by_order = |a: &ScalarValue, b: &ScalarValue| compare(&vec![a.clone()], &vec![b.clone()]);
    match aggregate.function {
        AggregateFunction::Count => unreachable!("counted above"),
        AggregateFunction::Min => Ok(values.into_iter().min_by(by_order).unwrap()),
        AggregateFunction::Max => Ok(values.into_iter().max_by(by_order).unwrap()),
        AggregateFunction::Sum => sum(&values, returns),
        AggregateFunction::Avg => average(&values, returns),
    }
}

/// The sum of exact numbers.
fn total(values: &[ScalarValue]) -> Option<Numeric> {
    values.iter().try_fold(Numeric::zero(), |total, value| {
        let value = match value {
            ScalarValue::Int16(value) => Numeric::from(i64::from((*value)?)),
            ScalarValue::Int32(value) => Numeric::from(i64::from((*value)?)),
            ScalarValue::Int64(value) => Numeric::from((*value)?),
            ScalarValue::Decimal128(value, _, scale) => {
                Numeric::from_units((*value)?, scale.unsigned_abs().into())
            }
            ScalarValue::LargeBinary(value) => Numeric::decode(value.as_deref()?)?,
            _ => return None,
        };
        total.add(&value).ok()
    })
}

/// The plain sum of floats; tests with floats use ones whose sums are exact.
fn float_total(values: &[ScalarValue]) -> f64 {
    let float = |value: &ScalarValue| match value {
        ScalarValue::Float32(Some(value)) => f64::from(*value),
        ScalarValue::Float64(Some(value)) => *value,
        other => panic!("{other} is no float"),
    };
    values.iter().map(float).sum()
}

fn sum(values: &[ScalarValue], returns: &DataType) -> Result<ScalarValue, RowError> {
    match (returns, total(values)) {
        (DataType::Int64, Some(total)) => match total.to_units(0).map(i64::try_from) {
            Some(Ok(total)) => Ok(ScalarValue::Int64(Some(total))),
            _ => Err(out_of_range("bigint out of range")),
        },
        (DataType::Decimal128(precision, scale), Some(total)) => {
            match total.to_units(scale.unsigned_abs().into()) {
                Some(total) => Ok(ScalarValue::Decimal128(Some(total), *precision, *scale)),
                None => Err(out_of_range("numeric field overflow")),
            }
        }
        (DataType::LargeBinary, Some(total)) => {
            Ok(ScalarValue::LargeBinary(Some(total.to_bytes())))
        }
        (DataType::Float32, None) => Ok(ScalarValue::Float32(Some(float_total(values) as f32))),
        (DataType::Float64, None) => Ok(ScalarValue::Float64(Some(float_total(values)))),
        other => panic!("no sum {other:?}"),
    }
}

fn average(values: &[ScalarValue], returns: &DataType) -> Result<ScalarValue, RowError> {
    let Some(total) = total(values) else {
        return Ok(ScalarValue::Float64(Some(float_total(values) / values.len() as f64)));
    };
    assert_eq!(*returns, DataType::LargeBinary, "an average of exact numbers");
    let average = total.divide(&Numeric::from(values.len() as i64))?;
    Ok(ScalarValue::LargeBinary(Some(average.to_bytes())))
}

fn out_of_range(message: &str) -> RowError {
    RowError { sqlstate: "22003".to_owned(), message: message.to_owned() }
}
