//! The tables that the tests use.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, Int64Array, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::execution::SessionStateBuilder;
use stillframe_protocol::{Changes, Program, RelationId, ScanRequest, Step, Table};

use crate::cluster::Cluster;
use crate::{Functions, HostOptions};

/// `accounts(id integer primary key, owner text, balance bigint)`.
pub(super) const ACCOUNTS: RelationId = RelationId(1);
/// `log(id integer, line text)`, without a key.
pub(super) const LOG: RelationId = RelationId(2);

pub(super) fn accounts_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int32, false),
        Field::new("owner", DataType::Utf8, true),
        Field::new("balance", DataType::Int64, true),
    ]))
}

pub(super) fn log_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int32, true),
        Field::new("line", DataType::Utf8, true),
    ]))
}

pub(super) fn tables() -> Vec<Table> {
    vec![
        Table { id: ACCOUNTS, schema: accounts_schema(), key_columns: 1 },
        Table { id: LOG, schema: log_schema(), key_columns: 0 },
    ]
}

pub(super) fn options() -> HostOptions {
    let registry = SessionStateBuilder::new().with_default_features().build();
    HostOptions::new(Functions::new(Arc::new(registry)))
}

/// A cluster with both tables, empty, at step 0.
pub(super) async fn cluster(hosts: usize, workers: u32) -> Cluster {
    let mut cluster = Cluster::start(hosts, workers, &options()).await.unwrap();
    cluster.replace(Program { tables: tables(), views: vec![] }).await.unwrap();
    cluster
}

pub(super) fn accounts(rows: &[(i32, &str, i64, i64)]) -> Changes {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row.0))),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.1))),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.2))),
    ];
    Changes {
        relation: ACCOUNTS,
        rows: RecordBatch::try_new(accounts_schema(), columns).unwrap(),
        weights: rows.iter().map(|row| row.3).collect(),
    }
}

pub(super) fn log(rows: &[(i32, &str, i64)]) -> Changes {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row.0))),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.1))),
    ];
    Changes {
        relation: LOG,
        rows: RecordBatch::try_new(log_schema(), columns).unwrap(),
        weights: rows.iter().map(|row| row.2).collect(),
    }
}

/// New accounts `from..to`, the balance of each being its number.
pub(super) fn new_accounts(from: i32, to: i32) -> Changes {
    let rows: Vec<_> = (from..to).map(|id| (id, "somebody", i64::from(id), 1)).collect();
    accounts(&rows)
}

/// The rows of a scan as text, sorted.
pub(super) async fn rows(cluster: &Cluster, request: &ScanRequest) -> Vec<String> {
    let batches = cluster.scan(request).await.unwrap();
    let mut rows: Vec<String> = batches.iter().flat_map(text).collect();
    rows.sort();
    rows
}

/// All rows of a relation at a step, as text, sorted.
pub(super) async fn contents(cluster: &Cluster, relation: RelationId, step: Step) -> Vec<String> {
    let columns = if relation == ACCOUNTS { 3 } else { 2 };
    rows(cluster, &ScanRequest { step, ..cluster.request(relation, columns) }).await
}

fn text(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let columns: Vec<_> = batch
        .columns()
        .iter()
        .map(|column| ArrayFormatter::try_new(column, &options).unwrap())
        .collect();
    let row = |row| {
        let fields: Vec<_> = columns.iter().map(|column| column.value(row).to_string()).collect();
        fields.join(" ")
    };
    (0..batch.num_rows()).map(row).collect()
}
