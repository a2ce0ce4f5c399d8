//! What is computed of whole partitions: plans of every kind, and what they mean.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::common::ScalarValue;
use stillframe_protocol::{
    AggregateCall, BinaryOperator, Computation, Expression, Frame, FrameBound, FrameUnits, Limit,
    Literal, Plan, Program, RelationId, RowError, SortKey, View, WindowCall, WindowFunction,
};

use super::cluster::Cluster;
use super::differential::check;
use super::model::{CUSTOMERS, ORDERS, Tables, customers, order, orders, tables};
use super::plans::{Rows, bigint, binary, cast, column, integer, scan, schema, text};
use super::reference::{Record, compare, evaluate};

use BinaryOperator::{Divide, Greater, LessOrEqual};

fn ascending(column: usize) -> SortKey {
    SortKey { column, descending: false, nulls_first: false }
}

fn descending(column: usize) -> SortKey {
    SortKey { column, descending: true, nulls_first: true }
}

fn aggregate(function: &str, arguments: Vec<Expression>, order: &[SortKey]) -> AggregateCall {
    AggregateCall {
        function: function.to_owned(),
        arguments,
        distinct: false,
        filter: None,
        order: order.to_vec(),
        ignore_nulls: false,
    }
}

fn window(function: WindowFunction, arguments: Vec<Expression>, order: &[SortKey]) -> WindowCall {
    let frame = Frame {
        units: FrameUnits::Range,
        start: FrameBound::Preceding(None),
        end: FrameBound::CurrentRow,
    };
    let order = order.to_vec();
    WindowCall {
        function,
        arguments,
        distinct: false,
        filter: None,
        order,
        frame,
        ignore_nulls: false,
    }
}

fn ranked(function: &str, order: &[SortKey]) -> WindowCall {
    window(WindowFunction::Window(function.to_owned()), vec![], order)
}

fn rows_frame(mut call: WindowCall, before: i64, after: i64) -> WindowCall {
    call.frame = Frame {
        units: FrameUnits::Rows,
        start: FrameBound::Preceding(Some(Literal::Int64(before))),
        end: FrameBound::Following(Some(Literal::Int64(after))),
    };
    call
}

impl Rows {
    fn partition(&self, keys: &[usize], computation: Computation, results: &[DataType]) -> Self {
        let types = self.types();
        let passed = match computation {
            Computation::Aggregates(_) => keys.iter().map(|key| types[*key].clone()).collect(),
            Computation::Windows(_) | Computation::Limit(_) => types,
        };
        Self(Arc::new(Plan::Partition {
            input: Arc::clone(&self.0),
            keys: keys.to_vec(),
            computation,
            schema: schema(&[passed, results.to_vec()].concat()),
        }))
    }

    fn limit(&self, keys: &[usize], limit: Limit) -> Self {
        self.partition(keys, Computation::Limit(limit), &[])
    }
}

fn first(order: &[SortKey], offset: u64, count: Option<u64>, with_ties: bool) -> Limit {
    Limit { order: order.to_vec(), offset, count, with_ties }
}

/// Views of every kind; some read others of them.
pub(super) fn views() -> Vec<(&'static str, Rows)> {
    use DataType::{Boolean, Int32, Int64, Utf8};
    let o = scan(ORDERS, &orders());
    let c = scan(CUSTOMERS, &customers());
    let wide = || cast(column(2), Int64);
    let positive = || binary(column(2), Greater, integer(0));
    let listed = |order: &[SortKey]| aggregate("string_agg", vec![column(5), text("-")], order);
    let aggregates = Computation::Aggregates(vec![
        listed(&[descending(0)]),
        AggregateCall { filter: Some(positive()), ..aggregate("count", vec![bigint(1)], &[]) },
        aggregate("bool_and", vec![positive()], &[]),
        aggregate("sum", vec![wide()], &[]),
    ]);
    let of_aggregates = [Utf8, Int64, Boolean, Int64];
    let names = Computation::Aggregates(vec![
        aggregate("string_agg", vec![column(1), text(", ")], &[ascending(1), descending(2)]),
        AggregateCall { distinct: true, ..aggregate("count", vec![column(0)], &[]) },
    ]);
    let sum = |order: &[SortKey]| {
        window(WindowFunction::Aggregate("sum".to_owned()), vec![wide()], order)
    };
    let lag = |argument| {
        window(WindowFunction::Window("lag".to_owned()), vec![column(argument)], &[ascending(0)])
    };
    let windows = Computation::Windows(vec![
        ranked("row_number", &[descending(2), ascending(0)]),
        ranked("rank", &[ascending(2)]),
        lag(2),
        lag(5),
        rows_frame(sum(&[ascending(0)]), 2, 1),
    ]);
    let of_windows = [Int64, Int64, Int32, Utf8, Int64];
    let numbered = c.partition(
        &[],
        Computation::Windows(vec![ranked("row_number", &[ascending(0)])]),
        &[Int64],
    );
    let windowed = o.partition(&[5, 1], windows.clone(), &of_windows);
    vec![
        ("aggregates by a key", o.partition(&[5], aggregates.clone(), &of_aggregates)),
        ("aggregates by two keys", o.partition(&[5, 1], aggregates.clone(), &of_aggregates)),
        ("aggregates of all rows", o.partition(&[], aggregates.clone(), &of_aggregates)),
        (
            "aggregates of no rows",
            o.filter(binary(column(0), LessOrEqual, bigint(-1))).partition(
                &[],
                aggregates,
                &of_aggregates,
            ),
        ),
        ("aggregates of a bag", c.partition(&[1], names.clone(), &[Utf8, Int64])),
        ("aggregates of a whole bag", c.partition(&[], names, &[Utf8, Int64])),
        ("windows by a key", o.partition(&[5], windows.clone(), &of_windows)),
        ("windows by two keys", windowed.clone()),
        ("windows without a key", o.partition(&[], windows, &of_windows)),
        ("windows over a bag", numbered.clone()),
        (
            "windows over windows",
            numbered.partition(
                &[1],
                Computation::Windows(vec![
                    ranked("rank", &[ascending(3)]),
                    ranked("row_number", &[descending(3)]),
                ]),
                &[Int64, Int64],
            ),
        ),
        ("the first by number", windowed.filter(binary(column(6), LessOrEqual, bigint(2)))),
        (
            "windows of nothing but keys",
            c.select(&[1, 2]).partition(
                &[0, 1],
                Computation::Windows(vec![ranked("row_number", &[])]),
                &[Int64],
            ),
        ),
        ("the first rows", o.limit(&[], first(&[descending(2)], 2, Some(5), false))),
        ("the first rows and their equals", o.limit(&[], first(&[ascending(1)], 1, Some(3), true))),
        ("the first rows by key", o.limit(&[5], first(&[ascending(3)], 0, Some(2), false))),
        ("some rows of a bag", c.limit(&[], first(&[], 1, Some(4), false))),
        ("all but the first rows", c.limit(&[1], first(&[descending(0)], 2, None, false))),
        ("no rows", c.limit(&[], first(&[], 0, Some(0), true))),
        (
            "an aggregate over the first rows",
            o.limit(&[5], first(&[descending(0)], 0, Some(3), false))
                .aggregate(&[1], &[(stillframe_protocol::AggregateFunction::Sum, Some(2))]),
        ),
    ]
}

/// What a partition node means.
pub(super) fn partition(
    input: Vec<Record>,
    input_schema: &Arc<Schema>,
    keys: &[usize],
    computation: &Computation,
    errors: &mut Vec<RowError>,
) -> Vec<Record> {
    let mut partitions: Vec<(Record, Vec<Record>)> = vec![];
    if keys.is_empty() {
        partitions.push((vec![], vec![]));
    }
    for row in input {
        let key: Record = keys.iter().map(|key| row[*key].clone()).collect();
        match partitions.iter_mut().find(|(known, _)| *known == key) {
            Some((_, rows)) => rows.push(row),
            None => partitions.push((key, vec![row])),
        }
    }
    let mut results = vec![];
    for (key, rows) in partitions {
        let computed = match computation {
            Computation::Aggregates(calls) => {
                let values: Result<Record, RowError> =
                    calls.iter().map(|call| aggregated(call, &rows, input_schema)).collect();
                values.map(|values| vec![[key, values].concat()])
            }
            Computation::Windows(calls) => windowed(calls, rows, input_schema),
            Computation::Limit(limit) => Ok(limited(limit, rows)),
        };
        match computed {
            Ok(computed) => results.extend(computed),
            Err(error) => errors.push(error),
        }
    }
    results
}

fn by_keys(order: &[SortKey], a: &Record, b: &Record) -> Ordering {
    let key = |key: &SortKey| {
        let (a, b) = (&a[key.column], &b[key.column]);
        match (a.is_null(), b.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) if key.nulls_first => Ordering::Less,
            (true, false) => Ordering::Greater,
            (false, true) if key.nulls_first => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => {
                let ascending = compare(&vec![a.clone()], &vec![b.clone()]);
                if key.descending { ascending.reverse() } else { ascending }
            }
        }
    };
    order.iter().map(key).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

fn sort(order: &[SortKey], rows: &mut [Record]) {
    rows.sort_by(|a, b| by_keys(order, a, b).then_with(|| compare(a, b)));
}

fn limited(limit: &Limit, mut rows: Vec<Record>) -> Vec<Record> {
    sort(&limit.order, &mut rows);
    let first = rows.len().min(limit.offset as usize);
    let mut end = limit.count.map_or(rows.len(), |count| rows.len().min(first + count as usize));
    while limit.with_ties
        && end > first
        && end < rows.len()
        && by_keys(&limit.order, &rows[end - 1], &rows[end]).is_eq()
    {
        end += 1;
    }
    rows[first..end].to_vec()
}

fn is_true(value: &ScalarValue) -> bool {
    *value == ScalarValue::Boolean(Some(true))
}

fn sum_of(values: &[ScalarValue]) -> ScalarValue {
    let number = |value: &ScalarValue| match value {
        ScalarValue::Int64(value) => *value,
        other => panic!("no sum of {other}"),
    };
    let numbers: Vec<i64> = values.iter().filter_map(number).collect();
    ScalarValue::Int64((!numbers.is_empty()).then(|| numbers.iter().sum()))
}

fn aggregated(
    call: &AggregateCall,
    rows: &[Record],
    schema: &Arc<Schema>,
) -> Result<ScalarValue, RowError> {
    let mut kept = vec![];
    for row in rows {
        let passes = match &call.filter {
            Some(filter) => is_true(&evaluate(filter, schema, row)?),
            None => true,
        };
        if passes {
            kept.push(row.clone());
        }
    }
    sort(&call.order, &mut kept);
    let values: Result<Vec<_>, RowError> =
        kept.iter().map(|row| evaluate(&call.arguments[0], schema, row)).collect();
    let mut values: Vec<ScalarValue> =
        values?.into_iter().filter(|value| !value.is_null()).collect();
    if call.distinct {
        values.sort_by(|a, b| compare(&vec![a.clone()], &vec![b.clone()]));
        values.dedup();
    }
    Ok(match call.function.as_str() {
        "count" => ScalarValue::Int64(Some(values.len() as i64)),
        "sum" => sum_of(&values),
        "bool_and" => {
            ScalarValue::Boolean((!values.is_empty()).then(|| values.iter().all(is_true)))
        }
        "string_agg" => {
            let text = |value: &ScalarValue| match value {
                ScalarValue::Utf8(Some(text)) => text.clone(),
                other => panic!("no text: {other}"),
            };
            let Expression::Literal(Literal::Utf8(between)) = &call.arguments[1] else {
                panic!("a list has a delimiter")
            };
            let texts: Vec<String> = values.iter().map(text).collect();
            ScalarValue::Utf8((!texts.is_empty()).then(|| texts.join(between)))
        }
        other => panic!("no aggregate {other}"),
    })
}

fn windowed(
    calls: &[WindowCall],
    mut rows: Vec<Record>,
    schema: &Arc<Schema>,
) -> Result<Vec<Record>, RowError> {
    sort(&[], &mut rows);
    let mut results = rows.clone();
    for call in calls {
        // Places in order, and back.
        let mut numbers: Vec<usize> = (0..rows.len()).collect();
        numbers.sort_by(|a, b| by_keys(&call.order, &rows[*a], &rows[*b]));
        // All are computed, whether a window looks at them or not.
        let arguments: Result<Record, RowError> = numbers
            .iter()
            .map(|number| match call.arguments.first() {
                Some(argument) => evaluate(argument, schema, &rows[*number]),
                None => Ok(ScalarValue::Null),
            })
            .collect();
        let arguments = arguments?;
        for place in 0..numbers.len() {
            let (WindowFunction::Aggregate(name) | WindowFunction::Window(name)) = &call.function;
            let value = match name.as_str() {
                "row_number" => ScalarValue::Int64(Some(place as i64 + 1)),
                "rank" => {
                    let equal = |other: &usize| {
                        by_keys(&call.order, &rows[numbers[*other]], &rows[numbers[place]]).is_eq()
                    };
                    let first = (0..=place).find(equal).expect("it equals itself");
                    ScalarValue::Int64(Some(first as i64 + 1))
                }
                "lag" if place == 0 => ScalarValue::try_from(&arguments[0].data_type()).unwrap(),
                "lag" => arguments[place - 1].clone(),
                "sum" => {
                    let (
                        FrameBound::Preceding(Some(Literal::Int64(before))),
                        FrameBound::Following(Some(Literal::Int64(after))),
                    ) = (&call.frame.start, &call.frame.end)
                    else {
                        panic!("no such frame")
                    };
                    let first = place.saturating_sub(*before as usize);
                    let end = numbers.len().min(place + *after as usize + 1);
                    sum_of(&arguments[first..end])
                }
                other => panic!("no window {other}"),
            };
            results[numbers[place]].push(value);
        }
    }
    Ok(results)
}

#[test]
fn an_error_is_that_of_its_partition_and_goes_with_its_row() {
    let failing = binary(binary(integer(100), Divide, column(2)), Greater, integer(3));
    let o = scan(ORDERS, &orders());
    let counted = Computation::Aggregates(vec![AggregateCall {
        filter: Some(failing.clone()),
        ..aggregate("count", vec![bigint(1)], &[])
    }]);
    let hundred = binary(integer(100), Divide, column(2));
    let lagged = Computation::Windows(vec![window(
        WindowFunction::Window("lag".to_owned()),
        vec![hundred],
        &[ascending(0)],
    )]);
    let views = [
        o.partition(&[1], counted.clone(), &[DataType::Int64]),
        o.partition(&[], counted, &[DataType::Int64]),
        o.partition(&[1], lagged.clone(), &[DataType::Int32]),
        o.partition(&[], lagged, &[DataType::Int32]),
    ];
    // The last one reads a view that fails.
    let last = scan(RelationId(102), &views[2].0.schema());
    let views: Vec<Rows> = views.iter().cloned().chain([last]).collect();
    let names = ["by key", "of all", "windows by key", "windows of all", "of another"];
    let views = (100..)
        .zip(&views)
        .map(|(id, rows)| View { id: RelationId(id), plan: Arc::clone(&rows.0) });
    let program = Program { tables: tables(), views: views.collect() };
    let zero = RowError { sqlstate: "22012".to_owned(), message: "division by zero".to_owned() };
    for shape in [(1, 1), (1, 2), (2, 2)] {
        let cluster = Cluster::start(shape, &program, |_, config| config);
        let mut model = Tables::new();
        for id in 0..20 {
            model.insert(ORDERS, order(id, Some(id as i32 % 3), Some(id as i32 + 1), None, None));
        }
        cluster.step(&model.take_changes());
        check(&cluster, &program, &names, &model);
        assert!(cluster.errors(RelationId(100)).is_empty());
        model.insert(ORDERS, order(50, Some(1), Some(0), None, None));
        model.insert(ORDERS, order(51, Some(1), Some(0), None, None));
        cluster.step(&model.take_changes());
        check(&cluster, &program, &names, &model);
        assert_eq!(cluster.errors(RelationId(104)), std::slice::from_ref(&zero));
        model.delete_order(50);
        cluster.step(&model.take_changes());
        check(&cluster, &program, &names, &model);
        assert_eq!(cluster.errors(RelationId(101)), std::slice::from_ref(&zero));
        model.delete_order(51);
        cluster.step(&model.take_changes());
        check(&cluster, &program, &names, &model);
        assert!(cluster.errors(RelationId(104)).is_empty());
    }
}
