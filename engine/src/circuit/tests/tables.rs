//! Tables alone: what is written is read, wherever it is written.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use stillframe_protocol::{Program, RelationId, Table};

use super::cluster::{Bag, Cluster, bag};

const KEYED: RelationId = RelationId(1);
const BAG: RelationId = RelationId(2);

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("name", DataType::Utf8, true),
    ]))
}

fn batch(rows: &[(i64, &str)]) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0)));
    let names: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.1)));
    RecordBatch::try_new(schema(), vec![ids, names]).unwrap()
}

fn program() -> Program {
    Program {
        tables: vec![
            Table { id: KEYED, schema: schema(), key_columns: 1 },
            Table { id: BAG, schema: schema(), key_columns: 0 },
        ],
        views: vec![],
    }
}

fn add(into: &mut Bag, changes: &Bag) {
    for (row, weight) in changes {
        *into.entry(row.clone()).or_default() += weight;
    }
    into.retain(|_, weight| *weight != 0);
}

#[test]
fn tables_hold_what_was_written() {
    for shape in [(1, 1), (1, 2), (2, 2)] {
        let cluster = Cluster::start(shape, &program(), |_, config| config);
        let codec = cluster.codec(KEYED);
        let long = "a name that is far too long for the inline part of a row";
        let first = bag(&codec, &batch(&[(1, "a"), (2, long), (3, ""), (4, "d"), (5, "e")]), 1);
        let twice = bag(&codec, &batch(&[(7, "x"), (7, "x"), (7, "x"), (8, long)]), 1);
        cluster.step(&[(KEYED, first.clone()), (BAG, twice.clone())]);
        assert_eq!(cluster.rows(KEYED), first);
        assert_eq!(cluster.rows(BAG), twice);

        // An update of 2, a deletion of 3, one copy less of 7, no more of 8.
        let mut changes = bag(&codec, &batch(&[(2, long), (3, "")]), -1);
        add(&mut changes, &bag(&codec, &batch(&[(2, "b")]), 1));
        let fewer = bag(&codec, &batch(&[(7, "x"), (8, long)]), -1);
        cluster.step(&[(KEYED, changes.clone()), (BAG, fewer.clone())]);
        let (mut keyed, mut plain) = (first, twice);
        add(&mut keyed, &changes);
        add(&mut plain, &fewer);
        assert_eq!(cluster.rows(KEYED), keyed);
        assert_eq!(cluster.rows(BAG), plain);

        // A step without changes shows the same.
        cluster.step(&[]);
        assert_eq!(cluster.rows(KEYED), keyed);
        assert!(cluster.errors(KEYED).is_empty());
    }
}

#[test]
fn a_table_is_spread_over_all_workers() {
    let cluster = Cluster::start((2, 2), &program(), |_, config| config);
    let rows: Vec<(i64, &str)> = (0..400).map(|id| (id, "n")).collect();
    let rows = bag(&cluster.codec(KEYED), &batch(&rows), 1);
    cluster.step(&[(KEYED, rows.clone()), (BAG, rows)]);
    for relation in [KEYED, BAG] {
        let spread = cluster.spread(relation);
        assert_eq!(spread.len(), 4);
        assert!(spread.iter().all(|rows| (60..140).contains(rows)), "{spread:?}");
    }
}
