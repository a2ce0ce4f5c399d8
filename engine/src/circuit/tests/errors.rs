//! Rows that make an expression fail.

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use stillframe_protocol::{AggregateFunction, BinaryOperator, Program, RelationId, RowError, View};

use super::cluster::{Bag, Cluster};
use super::differential::check;
use super::model::{CUSTOMERS, ORDERS, Tables, customer, customers, order, orders, tables};
use super::plans::{Rows, and, binary, cast, column, integer, scan, union};
use super::reference::encoded;

use AggregateFunction::{Avg, Count, Max, Sum};
use BinaryOperator::{Divide, Greater, Less, NotEqual};

const SHAPES: [(usize, usize); 3] = [(1, 1), (1, 2), (2, 2)];

fn view(id: u32, rows: &Rows) -> View {
    View { id: RelationId(id), plan: std::sync::Arc::clone(&rows.0) }
}

fn program(views: &[Rows]) -> Program {
    let views = (100..).zip(views).map(|(id, rows)| view(id, rows)).collect();
    Program { tables: tables(), views }
}

fn hundred_by_amount() -> Rows {
    scan(ORDERS, &orders()).project(vec![
        (column(0), DataType::Int64),
        (binary(integer(100), Divide, column(2)), DataType::Int32),
    ])
}

fn error(sqlstate: &str, message: &str) -> RowError {
    RowError { sqlstate: sqlstate.to_owned(), message: message.to_owned() }
}

#[test]
fn an_error_goes_with_its_row() {
    let o = scan(ORDERS, &orders());
    let failing = hundred_by_amount();
    let schema = failing.0.schema();
    let views = [
        failing.clone(),
        // A view that reads it has its errors too; one beside it has none.
        scan(RelationId(100), &schema).aggregate(&[], &[(Count, None)]),
        o.select(&[0, 2]),
        // Every operator that evaluates expressions.
        o.filter(binary(binary(integer(100), Divide, column(2)), Greater, integer(3))),
        failing.aggregate(&[1], &[(Count, None), (Max, Some(0))]),
        failing.distinct(),
        union(&[&failing, &failing]),
        failing.join(&o, &[(0, 0)], None),
        o.join(
            &o,
            &[(0, 0)],
            Some(binary(binary(integer(100), Divide, column(2)), Greater, integer(3))),
        ),
        // Never asked about the failing row.
        o.filter(and(
            binary(column(2), NotEqual, integer(0)),
            binary(binary(integer(100), Divide, column(2)), Greater, integer(3)),
        )),
    ];
    let names: Vec<String> = (0..views.len()).map(|number| number.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let program = program(&views);
    for shape in SHAPES {
        let cluster = Cluster::start(shape, &program, |_, config| config);
        let mut model = Tables::new();
        for id in 0..50 {
            model.insert(ORDERS, order(id, None, Some(id as i32 % 10 + 1), None, None));
        }
        cluster.step(&model.take_changes());
        check(&cluster, &program, &names, &model);
        assert!(cluster.errors(RelationId(100)).is_empty());

        for id in 50..55 {
            model.insert(ORDERS, order(id, None, Some(0), None, None));
        }
        cluster.step(&model.take_changes());
        check(&cluster, &program, &names, &model);
        assert_eq!(cluster.errors(RelationId(100)), [error("22012", "division by zero")]);
        assert_eq!(cluster.errors(RelationId(101)), [error("22012", "division by zero")]);
        assert!(cluster.errors(RelationId(102)).is_empty());
        assert!(cluster.errors(RelationId(109)).is_empty());

        // It stays as long as one of the rows does.
        (50..54).for_each(|id| model.delete_order(id));
        cluster.step(&model.take_changes());
        check(&cluster, &program, &names, &model);
        assert_eq!(cluster.errors(RelationId(108)), [error("22012", "division by zero")]);

        model.delete_order(54);
        cluster.step(&model.take_changes());
        check(&cluster, &program, &names, &model);
        assert!(cluster.errors(RelationId(100)).is_empty());
    }
}

#[test]
fn all_failing_rows_of_a_batch_are_found() {
    let program = program(&[scan(ORDERS, &orders()).project(vec![
        (cast(column(5), DataType::Int32), DataType::Int32),
        (binary(column(2), Divide, column(1)), DataType::Int32),
    ])]);
    let cluster = Cluster::start((1, 1), &program, |_, config| config);
    let mut model = Tables::new();
    for id in 0..10_000 {
        let status = match id % 1000 {
            17 => "one".to_owned(),
            18 => "99999999999".to_owned(),
            _ => id.to_string(),
        };
        let divisor = i32::from(id % 2500 != 3);
        model.insert(ORDERS, order(id, Some(divisor), Some(1), None, Some(&status)));
    }
    cluster.step(&model.take_changes());
    let rows: i64 = cluster.rows(RelationId(100)).values().sum();
    assert_eq!(rows, 10_000 - 10 - 10 - 4);
    assert_eq!(
        cluster.errors(RelationId(100)),
        [
            error("22003", "value \"99999999999\" is out of range for type integer"),
            error("22012", "division by zero"),
            error("22P02", "invalid input syntax for type integer: \"one\""),
        ]
    );
    model.clear();
    cluster.step(&model.take_changes());
    assert!(cluster.rows(RelationId(100)).is_empty());
    assert!(cluster.errors(RelationId(100)).is_empty());
}

/// A bag that holds its rows very often: as many as it takes for sums to leave their types.
#[test]
fn a_sum_that_leaves_its_type_is_an_error_of_its_group() {
    let c = scan(CUSTOMERS, &customers());
    let doubled = c.project(vec![
        (column(1), DataType::Utf8),
        (cast(column(0), DataType::Decimal128(20, 0)), DataType::Decimal128(20, 0)),
        (cast(column(0), DataType::Float32), DataType::Float32),
    ]);
    let sums = [
        c.aggregate(&[1], &[(Sum, Some(0)), (Count, None)]),
        c.aggregate(&[], &[(Sum, Some(0)), (Max, Some(1))]),
        c.aggregate(&[1], &[(Avg, Some(0))]),
        doubled.aggregate(&[0], &[(Sum, Some(1)), (Sum, Some(2))]),
    ];
    let program = program(&sums);
    let sum_plan = &program.views[0].plan;
    for shape in SHAPES {
        let cluster = Cluster::start(shape, &program, |_, config| config);
        let often = |name: &str, weight: i64| -> Bag {
            let mut bag =
                encoded(&scan(CUSTOMERS, &customers()).0, &[customer(Some(i32::MAX), name, 1)]);
            bag.values_mut().for_each(|count| *count *= weight);
            bag
        };
        cluster.step(&[(CUSTOMERS, often("a", 1 << 33)), (CUSTOMERS, often("b", 1))]);
        let too_much = [error("22003", "bigint out of range")];
        assert_eq!(cluster.errors(RelationId(100)), too_much);
        assert_eq!(cluster.errors(RelationId(101)), too_much);
        assert!(cluster.errors(RelationId(102)).is_empty());
        assert!(cluster.errors(RelationId(103)).is_empty());
        let b = vec![
            ScalarValue::Utf8(Some("b".to_owned())),
            ScalarValue::Int64(Some(i64::from(i32::MAX))),
            ScalarValue::Int64(Some(1)),
        ];
        assert_eq!(cluster.rows(RelationId(100)), encoded(sum_plan, std::slice::from_ref(&b)));
        assert!(cluster.rows(RelationId(101)).is_empty());

        // Less of it fits again.
        cluster.step(&[(CUSTOMERS, often("a", -(1 << 33) + 2))]);
        assert!(cluster.errors(RelationId(100)).is_empty());
        assert!(cluster.errors(RelationId(101)).is_empty());
        let a = vec![
            ScalarValue::Utf8(Some("a".to_owned())),
            ScalarValue::Int64(Some(2 * i64::from(i32::MAX))),
            ScalarValue::Int64(Some(2)),
        ];
        assert_eq!(cluster.rows(RelationId(100)), encoded(sum_plan, &[a, b]));
    }
}

#[test]
fn a_float_sum_forgets_what_is_deleted() {
    let o = scan(ORDERS, &orders());
    let program = program(&[o.aggregate(&[], &[(Sum, Some(3)), (Avg, Some(3))])]);
    for shape in SHAPES {
        let cluster = Cluster::start(shape, &program, |_, config| config);
        let mut model = Tables::new();
        for (id, price) in [(1, 0.1), (2, 1e300), (3, 0.2), (4, f64::INFINITY)] {
            model.insert(ORDERS, order(id, None, None, Some(price), None));
        }
        cluster.step(&model.take_changes());
        model.delete_order(2);
        model.delete_order(4);
        cluster.step(&model.take_changes());
        let sum = 0.1 + 0.2;
        let left = [ScalarValue::Float64(Some(sum)), ScalarValue::Float64(Some(sum / 2.0))];
        let expected = encoded(&program.views[0].plan, &[left.to_vec()]);
        assert_eq!(cluster.rows(RelationId(100)), expected);

        model.insert(ORDERS, order(5, None, None, Some(f64::MAX), None));
        model.insert(ORDERS, order(6, None, None, Some(f64::MAX), None));
        cluster.step(&model.take_changes());
        let overflow = error("22003", "value out of range: overflow");
        assert_eq!(cluster.errors(RelationId(100)), [overflow]);
        assert!(cluster.rows(RelationId(100)).is_empty());
    }
}

#[test]
fn plans_that_make_no_sense_are_refused() {
    use crate::EngineError;
    let o = scan(ORDERS, &orders());
    let less = |index| binary(column(index), Less, integer(1));
    let refused = [
        o.filter(less(17)),
        o.filter(less(5)),
        o.filter(column(0)),
        o.project(vec![(column(0), DataType::Int32)]),
        o.project(vec![(binary(column(2), Divide, integer(1)), DataType::Int64)]),
        o.join(&o, &[(0, 1)], None),
        scan(RelationId(77), &orders()),
        scan(ORDERS, &customers()),
    ];
    for (number, rows) in refused.iter().enumerate() {
        let program = program(std::slice::from_ref(rows));
        let config = dbsp::circuit::CircuitConfig::with_workers(1);
        let result = dbsp::Runtime::init_circuit(config, move |circuit| {
            let built = super::super::construct(
                circuit,
                &program,
                &super::cluster::functions(),
                &Default::default(),
            );
            Ok(matches!(built, Err(EngineError::InvalidPlan(_))))
        });
        let (handle, refused) = result.unwrap();
        assert!(refused, "plan {number} is refused");
        handle.kill().unwrap();
    }
}
