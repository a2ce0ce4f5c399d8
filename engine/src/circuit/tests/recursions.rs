//! Recursions: of graphs with cycles, that fail for some rows, that have no end for a while.

use arrow::datatypes::DataType;
use stillframe_protocol::{
    AggregateFunction, BinaryOperator, JoinKey, Program, RelationId, RowError, View,
};

use super::cluster::Cluster;
use super::differential::check;
use super::model::{CUSTOMERS, ORDERS, Tables, customer, customers, order, orders, tables};
use super::plans::{Rows, bigint, binary, cast, column, integer, keys, scan, union};

use AggregateFunction::{Count, Max, Min};
use BinaryOperator::{Add, Divide, Less, Modulo};

/// The nodes that are reached from some, with what is given as edges.
fn closure(base: &Rows, edges: &Rows) -> Rows {
    base.recursion(true, &[edges], |given| {
        given[0].join(&given[1], &[(1, 0)], None).select(&[0, 3])
    })
}

/// Edges between a few nodes: many, with cycles.
fn edges() -> Rows {
    scan(ORDERS, &orders()).project(vec![
        (column(1), DataType::Int32),
        (binary(column(2), Modulo, integer(12)), DataType::Int32),
    ])
}

/// Few edges, some of them twice.
fn few_edges() -> Rows {
    scan(CUSTOMERS, &customers()).project(vec![
        (column(0), DataType::Int32),
        (cast(column(2), DataType::Int32), DataType::Int32),
    ])
}

/// How long walks are, from each node of some edges on; at most so long.
fn walks(edges: &Rows, length: i64, distinct: bool) -> Rows {
    let start = edges.project(vec![(column(0), DataType::Int32), (bigint(0), DataType::Int64)]);
    start.recursion(distinct, &[edges], |given| {
        given[0]
            .filter(binary(column(1), Less, bigint(length)))
            .join(&given[1], &[(0, 0)], None)
            .project(vec![
                (column(3), DataType::Int32),
                (binary(column(1), Add, bigint(1)), DataType::Int64),
            ])
    })
}

pub(super) fn views() -> Vec<(&'static str, Rows)> {
    let (many, few) = (edges(), few_edges());
    let c = scan(CUSTOMERS, &customers());
    let reached = closure(&few, &few);
    let failing = few.recursion(true, &[&few], |given| {
        given[0].join(&given[1], &[(1, 0)], Some(binary(column(0), Less, integer(9)))).project(
            vec![
                (column(0), DataType::Int32),
                (binary(integer(6), Divide, column(3)), DataType::Int32),
            ],
        )
    });
    let not_met = few.recursion(true, &[&few, &many], |given| {
        given[0].join(&given[1], &[(1, 0)], None).select(&[0, 3]).semijoin(
            &given[2],
            &[JoinKey::new(1, 0)],
            true,
        )
    });
    let met = few.recursion(true, &[&few, &many], |given| {
        given[0].join(&given[1], &[(1, 0)], None).select(&[0, 3]).semijoin(
            &given[2],
            &keys(&[(0, 1)]),
            false,
        )
    });
    let counted = c
        .aggregate(&[2], &[(Count, None)])
        .project(vec![
            (cast(column(0), DataType::Int64), DataType::Int64),
            (column(1), DataType::Int64),
        ])
        .recursion(false, &[], |given| {
            given[0]
                .filter(binary(column(0), Less, bigint(5)))
                .aggregate(&[], &[(Max, Some(0)), (Count, None)])
                .filter(binary(column(0), Less, bigint(5)))
                .project(vec![
                    (binary(column(0), Add, bigint(1)), DataType::Int64),
                    (column(1), DataType::Int64),
                ])
        });
    let both_ways = few.recursion(true, &[&few], |given| {
        union(&[
            &given[0].join(&given[1], &[(1, 0)], None).select(&[0, 3]),
            &given[0].select(&[1, 0]),
        ])
    });
    let of_distinct = few.recursion(false, &[&few], |given| {
        given[0]
            .join(&given[1], &[(1, 0)], Some(binary(column(1), Less, column(3))))
            .select(&[0, 3])
            .distinct()
    });
    vec![
        ("closure of many edges", closure(&many, &many)),
        ("closure of few edges", reached.clone()),
        ("few nodes along many edges", closure(&few.select(&[0, 0]), &many)),
        ("many nodes along few edges", closure(&many, &few)),
        ("walks", walks(&few, 4, false)),
        ("walks, each end once", walks(&few, 4, true)),
        ("walks in many edges", walks(&many, 1, false)),
        ("recursion that fails for some rows", failing),
        ("recursion without what meets", not_met),
        ("recursion with what meets", met),
        ("recursion that counts", counted),
        ("recursion both ways", both_ways),
        ("recursion that is distinct in itself", of_distinct),
        ("aggregate of a recursion", reached.aggregate(&[0], &[(Count, None), (Min, Some(1))])),
        ("recursion joined with its edges", reached.join(&few, &[(0, 1)], None)),
        ("closure of a closure", closure(&reached.select(&[1, 0]), &many)),
        ("closure along a closure", closure(&many, &reached)),
    ]
}

fn endless() -> RowError {
    RowError {
        sqlstate: "54000".to_owned(),
        message: "recursive query does not end within 1000 iterations, 10000000 rows and 512 MB"
            .to_owned(),
    }
}

#[test]
fn a_recursion_without_an_end_is_an_error_until_there_is_one() {
    let all = few_edges().recursion(false, &[&few_edges()], |given| {
        given[0].join(&given[1], &[(1, 0)], None).select(&[0, 3])
    });
    let schema = all.0.schema();
    let views = [
        all.clone(),
        scan(RelationId(100), &schema).aggregate(&[], &[(Count, None)]),
        closure(&few_edges(), &few_edges()),
        few_edges().recursion(true, &[], |given| {
            given[0]
                .project(vec![
                    (column(0), DataType::Int32),
                    (binary(column(1), Add, column(0)), DataType::Int32),
                ])
                .filter(binary(column(1), Less, integer(500)))
        }),
    ];
    let views = (100..).zip(&views).map(|(id, rows): (u32, &Rows)| View {
        id: RelationId(id),
        plan: std::sync::Arc::clone(&rows.0),
    });
    let program = Program { tables: tables(), views: views.collect() };
    let names = ["all", "how many", "closure", "series"];
    for shape in [(1, 1), (2, 2)] {
        let cluster = Cluster::start(shape, &program, |_, config| config);
        let mut model = Tables::new();
        for (from, to) in [(1, 2), (2, 3), (1, 3), (3, 4)] {
            model.insert(CUSTOMERS, customer(Some(from), "", to));
        }
        cluster.step(&model.take_changes());
        check(&cluster, &program, &names, &model);
        for _ in 0..2 {
            // A cycle, with more than one way round.
            model.insert(CUSTOMERS, customer(Some(4), "", 1));
            cluster.step(&model.take_changes());
            assert_eq!(cluster.errors(RelationId(100)), [endless()]);
            assert_eq!(cluster.errors(RelationId(101)), [endless()]);
            assert!(cluster.rows(RelationId(100)).is_empty());
            assert!(cluster.errors(RelationId(102)).is_empty());
            assert_eq!(cluster.rows(RelationId(102)).len(), 16);

            model.insert(ORDERS, order(7, Some(1), Some(1), None, None));
            cluster.step(&model.take_changes());
            assert_eq!(cluster.errors(RelationId(100)), [endless()]);
            model.delete_order(7);
            model.delete_customer(4);
            cluster.step(&model.take_changes());
            check(&cluster, &program, &names, &model);
        }
        // A sum of nothing goes on for ever.
        model.insert(CUSTOMERS, customer(Some(0), "", 7));
        model.insert(CUSTOMERS, customer(Some(-1), "", 7));
        cluster.step(&model.take_changes());
        assert_eq!(cluster.errors(RelationId(103)), [endless()]);
        model.delete_customer(-1);
        cluster.step(&model.take_changes());
        check(&cluster, &program, &names, &model);
    }
}
