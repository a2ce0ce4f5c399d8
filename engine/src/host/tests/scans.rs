//! What scans return.

use std::sync::Arc;

use arrow::array::{Int32Array, Int64Array};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use futures::StreamExt as _;
use stillframe_protocol::{
    BinaryOperator, Expression, Host as _, HostError, Literal, RelationId, ScanPart, ScanRequest,
};

use super::world::*;
use crate::cluster::Cluster;

fn balance(operator: BinaryOperator, value: i64) -> Expression {
    Expression::Binary {
        operator,
        left: Box::new(Expression::Column(2)),
        right: Box::new(Expression::Literal(Literal::Int64(value))),
    }
}

fn keys(ids: Vec<Option<i32>>) -> RecordBatch {
    let schema = Schema::new(vec![Field::new("id", DataType::Int32, true)]);
    RecordBatch::try_new(Arc::new(schema), vec![Arc::new(Int32Array::from(ids))]).unwrap()
}

/// 10,000 accounts in several batches, of which some were taken away again.
async fn filled(hosts: usize, workers: u32) -> Cluster {
    let mut cluster = cluster(hosts, workers).await;
    for part in 0..10 {
        cluster.write(vec![new_accounts(part * 1000, (part + 1) * 1000)]).await.unwrap();
    }
    let gone: Vec<_> =
        (0..10_000).step_by(7).map(|id| (id, "somebody", i64::from(id), -1)).collect();
    cluster.write(vec![accounts(&gone)]).await.unwrap();
    cluster
}

fn expected(wanted: impl Fn(i32) -> bool) -> Vec<String> {
    let mut rows: Vec<_> = (0..10_000)
        .filter(|id| id % 7 != 0 && wanted(*id))
        .map(|id| format!("{id} somebody {id}"))
        .collect();
    rows.sort();
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_rows_come_in_batches_of_any_size() {
    let cluster = filled(1, 2).await;
    for batch_rows in [100_000, 1024, 999] {
        let request = ScanRequest { batch_rows, ..cluster.request(ACCOUNTS, 3) };
        assert_eq!(rows(&cluster, &request).await, expected(|_| true));
        for batch in cluster.scan(&request).await.unwrap() {
            assert!(batch.num_rows() <= batch_rows);
        }
    }
    cluster.shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_projection_and_limit_are_applied() {
    let cluster = filled(2, 1).await;
    let filters =
        vec![balance(BinaryOperator::GreaterOrEqual, 100), balance(BinaryOperator::Less, 200)];
    let request = ScanRequest { filters, ..cluster.request(ACCOUNTS, 3) };
    assert_eq!(rows(&cluster, &request).await, expected(|id| (100..200).contains(&id)));

    let turned = ScanRequest { projection: vec![2, 0], ..request.clone() };
    assert!(rows(&cluster, &turned).await.contains(&"123 123".to_owned()));

    let limited = ScanRequest { limit: Some(5), batch_rows: 3, ..request.clone() };
    let found = rows(&cluster, &limited).await;
    assert_eq!(found.len(), 2 * 5, "a limit is per shard");
    assert!(found.iter().all(|row| expected(|id| (100..200).contains(&id)).contains(row)));

    let none = ScanRequest { limit: Some(0), ..request };
    assert!(rows(&cluster, &none).await.is_empty());
    cluster.shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counts_need_no_columns() {
    let cluster = filled(2, 2).await;
    let count = |batches: Vec<RecordBatch>| -> usize {
        assert!(batches.iter().all(|batch| batch.num_columns() == 0));
        batches.iter().map(RecordBatch::num_rows).sum()
    };
    let request = cluster.request(ACCOUNTS, 0);
    assert_eq!(count(cluster.scan(&request).await.unwrap()), expected(|_| true).len());
    let filtered = ScanRequest {
        filters: vec![balance(BinaryOperator::Less, 5000)],
        limit: Some(100_000),
        ..request.clone()
    };
    let below = expected(|id| id < 5000).len();
    assert_eq!(count(cluster.scan(&filtered).await.unwrap()), below);
    let always = Expression::Literal(Literal::Boolean(true));
    let constant = ScanRequest { filters: vec![always], ..request };
    assert_eq!(count(cluster.scan(&constant).await.unwrap()), expected(|_| true).len());
    cluster.shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_sought() {
    let cluster = filled(2, 2).await;
    let wanted = [1, 2, 3, 7, 500, 9999, 123_456];
    let mut ids: Vec<_> = wanted.iter().rev().copied().map(Some).collect();
    ids.extend([None, Some(2)]);
    let request = ScanRequest { keys: Some(keys(ids)), ..cluster.request(ACCOUNTS, 3) };
    assert_eq!(rows(&cluster, &request).await, expected(|id| wanted.contains(&id)));

    let many = keys((0..10_000).filter(|id| id % 3 == 0).map(Some).collect());
    let request = ScanRequest { keys: Some(many), batch_rows: 100, ..request };
    assert_eq!(rows(&cluster, &request).await, expected(|id| id % 3 == 0));

    let request = ScanRequest {
        filters: vec![balance(BinaryOperator::Greater, 9000)],
        limit: Some(1_000_000),
        ..request
    };
    assert_eq!(rows(&cluster, &request).await, expected(|id| id % 3 == 0 && id > 9000));
    cluster.shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_of_a_row_are_all_returned() {
    let mut cluster = cluster(1, 1).await;
    cluster.write(vec![log(&[(1, "a", 3), (2, "b", 2000), (3, "c", 1)])]).await.unwrap();
    cluster.write(vec![log(&[(1, "a", -1), (2, "b", 500), (3, "c", -1)])]).await.unwrap();
    for batch_rows in [1, 2, 7, 10_000] {
        let request = ScanRequest { batch_rows, ..cluster.request(LOG, 2) };
        let found = rows(&cluster, &request).await;
        assert_eq!(found.iter().filter(|row| *row == "1 a").count(), 2);
        assert_eq!(found.iter().filter(|row| *row == "2 b").count(), 2500);
        assert_eq!(found.len(), 2502);
    }
    let request = ScanRequest { limit: Some(1000), ..cluster.request(LOG, 0) };
    let counted: usize =
        cluster.scan(&request).await.unwrap().iter().map(RecordBatch::num_rows).sum();
    assert_eq!(counted, 1000);
    cluster.shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_a_filter_fails_on_is_an_error() {
    let cluster = filled(1, 1).await;
    let quotient = Expression::Binary {
        operator: BinaryOperator::Divide,
        left: Box::new(Expression::Literal(Literal::Int64(1000))),
        right: Box::new(Expression::Binary {
            operator: BinaryOperator::Subtract,
            left: Box::new(Expression::Column(2)),
            right: Box::new(Expression::Literal(Literal::Int64(5000))),
        }),
    };
    let positive = Expression::Binary {
        operator: BinaryOperator::Greater,
        left: Box::new(quotient),
        right: Box::new(Expression::Literal(Literal::Int64(0))),
    };
    let request = ScanRequest { filters: vec![positive.clone()], ..cluster.request(ACCOUNTS, 3) };
    match cluster.scan(&request).await {
        Err(HostError::Row(error)) => assert_eq!(error.sqlstate, "22012"),
        other => panic!("{other:?}"),
    }
    // What an earlier filter has taken out can't fail a later one.
    let filters = vec![balance(BinaryOperator::NotEqual, 5000), positive];
    let request = ScanRequest { filters, ..request };
    assert_eq!(rows(&cluster, &request).await, expected(|id| (5001..=6000).contains(&id)));
    cluster.shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn senseless_requests_are_refused() {
    let cluster = filled(1, 1).await;
    let host = &cluster.hosts()[0];
    let request = cluster.request(ACCOUNTS, 3);
    let wrong_type = RecordBatch::try_new(
        Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true)])),
        vec![Arc::new(Int64Array::from(vec![1]))],
    )
    .unwrap();
    for wrong in [
        ScanRequest { worker: 1, ..request.clone() },
        ScanRequest { projection: vec![3], ..request.clone() },
        ScanRequest { filters: vec![Expression::Column(0)], ..request.clone() },
        ScanRequest { batch_rows: 0, ..request.clone() },
        ScanRequest { keys: Some(wrong_type), ..request.clone() },
        ScanRequest { keys: Some(keys(vec![Some(1)])), ..cluster.request(LOG, 2) },
    ] {
        assert!(matches!(host.scan(wrong).await, Err(HostError::Invalid(_))));
    }
    let unknown = ScanRequest { relation: RelationId(99), ..request };
    assert!(matches!(host.scan(unknown).await, Err(HostError::UnknownRelation(_))));
    cluster.shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_may_leave_and_others_go_on_while_steps_are_made() {
    let mut cluster = filled(1, 1).await;
    let request = ScanRequest { batch_rows: 10, ..cluster.request(ACCOUNTS, 3) };
    let host = Arc::clone(&cluster.hosts()[0]);
    // More readers than batches can be made at a time: none waits for another.
    let mut readers = Vec::new();
    for _ in 0..20 {
        let mut stream = host.scan(request.clone()).await.unwrap();
        let first = stream.next().await.unwrap().unwrap();
        assert!(matches!(first, ScanPart::Batch(batch) if batch.num_rows() == 10));
        readers.push(stream);
    }
    readers.truncate(2);
    for part in 10..20 {
        cluster.write(vec![new_accounts(part * 1000, (part + 1) * 1000)]).await.unwrap();
    }
    for stream in readers {
        let parts: Vec<_> = stream.collect().await;
        let ScanPart::End { rows } = parts.last().unwrap().as_ref().unwrap() else {
            panic!("no end");
        };
        assert_eq!(*rows as usize, expected(|_| true).len());
    }
    cluster.shut_down().await;
}
