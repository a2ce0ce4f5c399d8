//! Every operator under random changes: after each step, every relation is what its plan says of
//! the tables as they are.

use std::collections::BTreeMap;

use arrow::datatypes::DataType;
use stillframe_protocol::{
    AggregateFunction, BinaryOperator, Expression, JoinKey, Literal, Program, RelationId,
    UnaryOperator, View,
};

use super::cluster::Cluster;
use super::model::{CUSTOMERS, ORDERS, RATES, Random, Tables, customers, orders, rates, tables};
use super::plans::{
    Rows, and, bigint, binary, call, cast, column, integer, keys, list, scan, text, union, values,
};
use super::reference::{Views, answer, encoded};
use super::{partitions, recursions};

use AggregateFunction::{Avg, Count, Max, Min, Sum};
use BinaryOperator::{Equal, Greater, Less, Multiply, NotEqual};

/// Views of every kind; some read others.
pub(super) fn views() -> Vec<(&'static str, Rows)> {
    let o = scan(ORDERS, &orders());
    let c = scan(CUSTOMERS, &customers());
    let r = scan(RATES, &rates());
    let is_null =
        |operand| Expression::Unary { operator: UnaryOperator::IsNull, operand: Box::new(operand) };
    let filtered = o.filter(binary(column(2), Greater, integer(0)));
    let projected = filtered.project(vec![
        (column(0), DataType::Int64),
        (binary(column(2), Multiply, integer(2)), DataType::Int32),
        (call("upper", vec![column(5)], DataType::Utf8), DataType::Utf8),
        (column(5), DataType::Utf8),
        (binary(column(3), Multiply, column(3)), DataType::Float64),
    ]);
    let joined =
        o.join(&c, &[(1, 0)], Some(binary(column(2), Less, cast(column(8), DataType::Int32))));
    let by_region = o.join(&c, &[(1, 0)], None).aggregate(
        &[8],
        &[
            (Count, None),
            (Sum, Some(2)),
            (Min, Some(3)),
            (Avg, Some(4)),
            (Max, Some(3)),
            (Max, Some(5)),
            (Count, Some(5)),
            (Sum, Some(3)),
        ],
    );
    let by_status = o.aggregate(&[5, 1], &[(Count, None)]);
    let views = vec![
        ("all of a keyed table", o.clone()),
        ("all of a bag", c.clone()),
        ("filter", filtered.clone()),
        ("filter and project", projected.clone()),
        (
            "filter by several",
            o.filter(and(
                binary(column(5), NotEqual, text("")),
                and(
                    binary(column(2), NotEqual, integer(0)),
                    binary(
                        binary(integer(100), BinaryOperator::Divide, column(2)),
                        Less,
                        integer(7),
                    ),
                ),
            )),
        ),
        ("columns twice and turned round", c.select(&[2, 0, 2, 1])),
        (
            "constants in a projection",
            c.project(vec![
                (bigint(7), DataType::Int64),
                (column(1), DataType::Utf8),
                (text("x"), DataType::Utf8),
            ]),
        ),
        ("join of a table and a bag", joined),
        ("join on a primary key", o.join(&o.select(&[0, 2]), &[(0, 0)], None)),
        ("join on two columns of a primary key", c.join(&r, &[(2, 1), (1, 0)], None)),
        ("self join of a bag", c.join(&c, &[(0, 0), (2, 2)], None).select(&[0, 1, 4])),
        (
            "join on a float",
            o.join(&o, &[(3, 3)], Some(binary(column(0), Less, column(6)))).select(&[0, 6, 3]),
        ),
        (
            "cross join",
            c.select(&[1]).distinct().join(&r, &[], Some(binary(column(0), NotEqual, column(1)))),
        ),
        (
            "join with constants",
            o.join(
                &values(
                    &[DataType::Int32, DataType::Utf8],
                    vec![
                        vec![Literal::Int32(3), Literal::Utf8("three".to_owned())],
                        vec![Literal::Int32(4), Literal::Utf8("four".to_owned())],
                        vec![Literal::Int32(4), Literal::Utf8("four".to_owned())],
                        vec![Literal::Null(DataType::Int32), Literal::Utf8("none".to_owned())],
                    ],
                ),
                &[(1, 0)],
                None,
            ),
        ),
        (
            "join where NULL equals NULL",
            o.select(&[1, 0]).join_with_nulls(&c, &[JoinKey::null_equal(0, 0)]),
        ),
        (
            "join where NULL equals NULL in one of two columns",
            o.join_with_nulls(&c, &[JoinKey::null_equal(5, 1), JoinKey::new(1, 0)]),
        ),
        (
            "join of groups where NULL equals NULL",
            by_status.join_with_nulls(
                &o.select(&[1, 5]),
                &[JoinKey::null_equal(1, 0), JoinKey::null_equal(0, 1)],
            ),
        ),
        ("semijoin", o.semijoin(&c, &keys(&[(1, 0)]), false)),
        ("antijoin", o.semijoin(&c, &keys(&[(1, 0)]), true)),
        ("antijoin of a bag", c.semijoin(&o, &keys(&[(0, 1)]), true)),
        ("semijoin of a bag", c.semijoin(&o, &keys(&[(0, 1)]), false)),
        ("antijoin with a primary key", c.semijoin(&r, &keys(&[(2, 1), (1, 0)]), true)),
        ("antijoin of a primary key", r.semijoin(&c, &keys(&[(1, 2), (0, 1)]), true)),
        (
            "antijoin of groups",
            by_status.semijoin(&c.select(&[0, 1]), &keys(&[(1, 0), (0, 1)]), true),
        ),
        (
            "antijoin of whole rows",
            o.select(&[1, 5]).semijoin(
                &c.select(&[0, 1]),
                &[JoinKey::null_equal(0, 0), JoinKey::null_equal(1, 1)],
                true,
            ),
        ),
        (
            "semijoin with both kinds of keys",
            o.filter(binary(column(2), Greater, integer(0))).semijoin(
                &c,
                &[JoinKey::new(1, 0), JoinKey::null_equal(5, 1)],
                false,
            ),
        ),
        ("semijoin with anything", c.semijoin(&r, &[], false)),
        ("antijoin with anything", c.semijoin(&r, &[], true)),
        (
            "unnest",
            o.select(&[0, 5]).unnest(vec![(
                call("make_array", vec![column(1), text("x"), column(1)], list(DataType::Utf8)),
                list(DataType::Utf8),
            )]),
        ),
        (
            "unnest of a series",
            o.select(&[0]).unnest(vec![(
                call("generate_series", vec![bigint(58), column(0)], list(DataType::Int64)),
                list(DataType::Int64),
            )]),
        ),
        ("group by", by_status.clone()),
        ("group by a primary key", o.aggregate(&[0], &[(Sum, Some(2)), (Max, Some(5))])),
        (
            "group by a join's key",
            o.join(&c, &[(1, 0)], None).aggregate(&[1], &[(Count, None), (Sum, Some(0))]),
        ),
        ("group by with everything", by_region.clone()),
        ("group by with the least alone", o.aggregate(&[1], &[(Min, Some(5))])),
        (
            "group by with the least and greatest of one",
            o.aggregate(&[1], &[(Max, Some(4)), (Min, Some(4)), (Max, Some(4))]),
        ),
        (
            "group by an expression",
            o.project(vec![
                (is_null(column(5)), DataType::Boolean),
                (column(0), DataType::Int64),
                (column(4), DataType::Decimal128(10, 2)),
            ])
            .aggregate(&[0], &[(Sum, Some(1)), (Avg, Some(1)), (Sum, Some(2)), (Avg, Some(2))]),
        ),
        ("group by without aggregates", o.aggregate(&[1, 5], &[])),
        ("wide decimals", r.aggregate(&[0], &[(Sum, Some(2)), (Avg, Some(2)), (Count, Some(2))])),
        ("small integers", c.aggregate(&[1], &[(Sum, Some(2)), (Avg, Some(2)), (Avg, Some(0))])),
        (
            "global",
            o.aggregate(&[], &[(Count, None), (Sum, Some(2)), (Min, Some(0)), (Avg, Some(3))]),
        ),
        ("global of the least", c.aggregate(&[], &[(Min, Some(1)), (Max, Some(0))])),
        (
            "global count of nothing",
            o.filter(binary(column(0), Less, bigint(0)))
                .aggregate(&[], &[(Count, Some(1)), (Max, Some(1))]),
        ),
        (
            "global of a global",
            o.aggregate(&[], &[(Count, None)]).aggregate(&[], &[(Count, None), (Max, Some(0))]),
        ),
        ("having", by_status.filter(binary(column(2), Greater, bigint(2)))),
        ("average over groups", by_status.aggregate(&[], &[(Avg, Some(2)), (Max, Some(2))])),
        ("distinct", o.select(&[1, 5]).distinct()),
        ("distinct of a bag", c.distinct()),
        ("distinct with the primary key", o.select(&[5, 0]).distinct()),
        ("union", union(&[&c.select(&[0]), &o.select(&[1]), &c.select(&[0])])),
        ("union of a bag with itself", union(&[&c, &c])),
        (
            "union of differently placed rows",
            union(&[
                &c.select(&[1]),
                &r.select(&[0]),
                &values(&[DataType::Utf8], vec![vec![Literal::Utf8("name 1".to_owned())]]),
            ])
            .distinct(),
        ),
        (
            "values",
            values(
                &[DataType::Int32, DataType::Float64],
                vec![
                    vec![Literal::Int32(1), Literal::Float64((-0.0f64).to_bits())],
                    vec![Literal::Int32(1), Literal::Float64(0.0f64.to_bits())],
                    vec![Literal::Int32(2), Literal::Null(DataType::Float64)],
                ],
            ),
        ),
        ("no values", values(&[DataType::Int32], vec![])),
        ("the same filter again", filtered),
    ];
    let mut all = views;
    all.extend(partitions::views());
    all.extend(recursions::views());
    let id = |name: &str, views: &[(&str, Rows)]| {
        let place = views.iter().position(|view| view.0 == name).expect("the view exists");
        (RelationId(100 + place as u32), views[place].1.0.schema())
    };
    let (status, status_schema) = id("group by", &all);
    let (region, region_schema) = id("group by with everything", &all);
    let (plain, plain_schema) = id("filter and project", &all);
    let (joined, joined_schema) = id("join of a table and a bag", &all);
    let status = scan(status, &status_schema);
    all.push(("view on an aggregate", status.aggregate(&[1], &[(Sum, Some(2)), (Count, None)])));
    all.push((
        "view on a filter",
        scan(plain, &plain_schema).filter(binary(column(3), Equal, text("OPEN"))),
    ));
    all.push(("join of a view and a table", status.join(&c, &[(1, 0)], None)));
    all.push(("join of two views", status.join(&scan(region, &region_schema), &[(2, 1)], None)));
    all.push((
        "join of two aggregates with NULL groups",
        o.aggregate(&[1], &[(Count, None)]).join(
            &c.aggregate(&[0], &[(Count, None)]),
            &[(0, 0)],
            None,
        ),
    ));
    all.push((
        "distinct of a joined view",
        scan(joined, &joined_schema).select(&[7, 8]).distinct(),
    ));
    all.push(("all of a view", status.clone()));
    all
}

pub(super) fn program(views: &[(&'static str, Rows)]) -> Program {
    let view = |(place, (_, rows)): (usize, &(&str, Rows))| View {
        id: RelationId(100 + place as u32),
        plan: std::sync::Arc::clone(&rows.0),
    };
    Program { tables: tables(), views: views.iter().enumerate().map(view).collect() }
}

/// Compares every relation with its plan.
pub(super) fn check(cluster: &Cluster, program: &Program, names: &[&str], model: &Tables) {
    check_only(cluster, program, names, names, model);
}

/// Compares the tables and some of the views with their plans.
pub(super) fn check_only(
    cluster: &Cluster,
    program: &Program,
    names: &[&str],
    checked: &[&str],
    model: &Tables,
) {
    let views: Views<'_> = program.views.iter().map(|view| (view.id, &*view.plan)).collect();
    for table in &program.tables {
        let plan = scan(table.id, &table.schema).0;
        let expected = encoded(&plan, &model.rows(table.id));
        assert_eq!(cluster.rows(table.id), expected, "table {}", table.id);
    }
    for (view, name) in program.views.iter().zip(names) {
        if !checked.contains(name) {
            continue;
        }
        let expected = answer(&view.plan, model, &views);
        let rows = cluster.rows(view.id);
        let expected_rows = encoded(&view.plan, &expected.rows);
        if rows != expected_rows {
            let only = |a: &BTreeMap<_, i64>, b: &BTreeMap<_, i64>| {
                let differs = |entry: &(&crate::Row, &i64)| b.get(entry.0) != Some(entry.1);
                format!("{:?}", a.iter().filter(differs).take(3).collect::<Vec<_>>())
            };
            panic!(
                "view \"{name}\": only the engine has {}, only the plan has {}",
                only(&rows, &expected_rows),
                only(&expected_rows, &rows)
            );
        }
        assert_eq!(cluster.errors(view.id), expected.errors, "errors of view \"{name}\"");
    }
}

fn differ(shape: (usize, usize), seed: u64) {
    let views = views();
    let names: Vec<&str> = views.iter().map(|view| view.0).collect();
    let program = program(&views);
    let cluster = Cluster::start(shape, &program, |_, config| config);
    let mut model = Tables::new();
    let mut random = Random::new(seed);
    cluster.step(&[]);
    check(&cluster, &program, &names, &model);
    for step in 0..8 {
        if step == 5 {
            model.clear();
        } else {
            model.change(&mut random);
        }
        cluster.step(&model.take_changes());
        check(&cluster, &program, &names, &model);
    }
}

#[test]
fn one_worker_computes_every_plan() {
    differ((1, 1), 1);
}

#[test]
fn two_workers_compute_every_plan() {
    differ((1, 2), 2);
}

#[test]
fn two_hosts_compute_every_plan() {
    differ((2, 2), 3);
}
