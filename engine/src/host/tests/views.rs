//! Views through steps and replacements.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::Result as DataFusionResult;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::registry::FunctionRegistry as _;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use stillframe_protocol::{
    Action, Aggregate, AggregateFunction, BinaryOperator, Expression, Host as _, HostError,
    JoinKey, Literal, Plan, Program, RelationId, ScanRequest, Step, View,
};

use super::world::*;
use crate::cluster::{Cluster, EPOCH};
use crate::{Functions, HostOptions};

pub(super) const TOTALS: RelationId = RelationId(10);
pub(super) const LATER: RelationId = RelationId(11);
pub(super) const QUOTIENTS: RelationId = RelationId(12);
const LARGE_QUOTIENTS: RelationId = RelationId(13);
pub(super) const MEETINGS: RelationId = RelationId(14);

fn schema(columns: &[(&str, DataType)]) -> SchemaRef {
    let field = |(name, data_type): &(&str, DataType)| Field::new(*name, data_type.clone(), true);
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

fn stored(id: RelationId, schema: SchemaRef) -> Arc<Plan> {
    Arc::new(Plan::Relation { id, schema })
}

fn compared(operator: BinaryOperator, column: usize, value: i64) -> Expression {
    Expression::Binary {
        operator,
        left: Box::new(Expression::Column(column)),
        right: Box::new(Expression::Literal(Literal::Int64(value))),
    }
}

/// `SELECT owner, count(*), sum(balance) FROM accounts WHERE balance >= least GROUP BY owner`
pub(super) fn totals(id: RelationId, least: i64) -> View {
    let input = Arc::new(Plan::Filter {
        input: stored(ACCOUNTS, accounts_schema()),
        predicate: compared(BinaryOperator::GreaterOrEqual, 2, least),
    });
    let aggregate = |function, argument| Aggregate { function, argument };
    let plan = Plan::Aggregate {
        input,
        groups: vec![1],
        aggregates: vec![
            aggregate(AggregateFunction::Count, None),
            aggregate(AggregateFunction::Sum, Some(2)),
        ],
        schema: schema(&[
            ("owner", DataType::Utf8),
            ("count", DataType::Int64),
            ("sum", DataType::Decimal128(38, 0)),
        ]),
    };
    View { id, plan: Arc::new(plan) }
}

/// `SELECT * FROM accounts JOIN log ON accounts.id = log.id AND accounts.balance > least`
pub(super) fn meetings(id: RelationId, least: i64) -> View {
    let both = [accounts_schema().fields().to_vec(), log_schema().fields().to_vec()].concat();
    let plan = Plan::Join {
        left: stored(ACCOUNTS, accounts_schema()),
        right: stored(LOG, log_schema()),
        on: vec![JoinKey::new(0, 0)],
        residual: Some(compared(BinaryOperator::Greater, 2, least)),
        schema: Arc::new(Schema::new(both)),
    };
    View { id, plan: Arc::new(plan) }
}

fn quotients_schema() -> SchemaRef {
    schema(&[("id", DataType::Int32), ("quotient", DataType::Int64)])
}

/// `SELECT id, 1000 / balance FROM accounts`
pub(super) fn quotients() -> View {
    let quotient = Expression::Binary {
        operator: BinaryOperator::Divide,
        left: Box::new(Expression::Literal(Literal::Int64(1000))),
        right: Box::new(Expression::Column(2)),
    };
    let plan = Plan::Project {
        input: stored(ACCOUNTS, accounts_schema()),
        expressions: vec![Expression::Column(0), quotient],
        schema: quotients_schema(),
    };
    View { id: QUOTIENTS, plan: Arc::new(plan) }
}

/// `SELECT * FROM quotients WHERE quotient > 100`
fn large_quotients() -> View {
    let plan = Plan::Filter {
        input: stored(QUOTIENTS, quotients_schema()),
        predicate: compared(BinaryOperator::Greater, 1, 100),
    };
    View { id: LARGE_QUOTIENTS, plan: Arc::new(plan) }
}

pub(super) fn program(views: &[View]) -> Program {
    Program { tables: tables(), views: views.to_vec() }
}

/// All rows of a view with so many columns at the last step.
pub(super) async fn view(cluster: &Cluster, id: RelationId, columns: usize) -> Vec<String> {
    rows(cluster, &cluster.request(id, columns)).await
}

/// The errors of a view on all hosts at a step, each once.
pub(super) async fn errors(cluster: &Cluster, id: RelationId, step: Step) -> Vec<String> {
    let mut all = Vec::new();
    for host in cluster.hosts() {
        let errors = host.view_errors(EPOCH, step, id).await.unwrap();
        all.extend(errors.into_iter().map(|error| format!("{} {error}", error.sqlstate)));
    }
    all.sort();
    all.dedup();
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_made_after_the_data_is_the_one_made_before() {
    for (hosts, workers) in [(1, 1), (1, 2), (2, 2), (3, 1)] {
        let mut cluster = cluster(hosts, workers).await;
        let before = [totals(TOTALS, 0), meetings(MEETINGS, 0)];
        cluster.replace(program(&before)).await.unwrap();
        // More than dbsp hands on at once.
        let rows: Vec<_> = (0..25_000)
            .map(|id| (id, ["ann", "bob", "cid"][id as usize % 3], i64::from(id), 1))
            .collect();
        cluster.write(vec![accounts(&rows)]).await.unwrap();
        let lines: Vec<_> = (0..100).map(|id| (id * 7, "met", 1)).collect();
        cluster.write(vec![log(&lines)]).await.unwrap();
        assert_eq!(view(&cluster, TOTALS, 3).await.len(), 3);
        assert_eq!(view(&cluster, MEETINGS, 5).await.len(), 99);

        // Not the same plans, but the same rows.
        let (later_totals, later_meetings) = (LATER, RelationId(LATER.0 + 100));
        let after = [totals(later_totals, -1), meetings(later_meetings, -1)];
        let replaced = cluster.replace(program(&[&before[..], &after].concat())).await.unwrap();
        let compare = async |cluster: &Cluster| {
            let totals = view(cluster, TOTALS, 3).await;
            assert_eq!(view(cluster, later_totals, 3).await, totals);
            let meetings: Vec<_> = view(cluster, MEETINGS, 5).await;
            let later: Vec<_> = view(cluster, later_meetings, 5).await;
            // The account with a balance of 0 is met by the later view alone.
            assert_eq!(later.len(), meetings.len() + 1);
            assert!(meetings.iter().all(|row| later.contains(row)));
            totals
        };
        let totals_then = compare(&cluster).await;
        cluster.write(vec![accounts(&[(3, "ann", 3, -1), (3, "bob", 30, 1)])]).await.unwrap();
        assert_ne!(compare(&cluster).await, totals_then);

        // Without the first ones, the later ones go on.
        cluster.replace(program(&after)).await.unwrap();
        let totals_now = view(&cluster, later_totals, 3).await;
        cluster.write(vec![accounts(&[(3, "bob", 30, -1), (3, "ann", 3, 1)])]).await.unwrap();
        assert_eq!(view(&cluster, later_totals, 3).await, totals_then);
        assert_ne!(totals_now, totals_then);
        let old = ScanRequest { step: replaced, ..cluster.request(TOTALS, 3) };
        assert_eq!(super::world::rows(&cluster, &old).await, totals_then);
        cluster.shut_down().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_shares_all_its_work_with_another_view_is_there_at_once() {
    let mut cluster = cluster(2, 1).await;
    cluster.replace(program(&[totals(TOTALS, 0)])).await.unwrap();
    cluster.write(vec![new_accounts(0, 1000)]).await.unwrap();
    let expected = view(&cluster, TOTALS, 3).await;
    assert_eq!(expected, ["somebody 1000 499500"]);

    let same = totals(LATER, 0);
    let on_top = RelationId(30);
    let all = View { id: on_top, plan: stored(LATER, same.plan.schema()) };
    cluster.replace(program(&[totals(TOTALS, 0), same.clone()])).await.unwrap();
    assert_eq!(view(&cluster, LATER, 3).await, expected);
    cluster.replace(program(&[totals(TOTALS, 0), same.clone(), all.clone()])).await.unwrap();
    assert_eq!(view(&cluster, on_top, 3).await, expected);
    cluster.replace(program(&[same, all])).await.unwrap();
    assert_eq!(view(&cluster, on_top, 3).await, expected);
    cluster.write(vec![new_accounts(1000, 1001)]).await.unwrap();
    for id in [LATER, on_top] {
        assert_eq!(view(&cluster, id, 3).await, ["somebody 1001 500500"]);
    }
    cluster.shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_row_is_an_error_of_its_view_until_it_goes() {
    for (hosts, workers) in [(1, 2), (3, 1)] {
        let mut cluster = cluster(hosts, workers).await;
        let both = [quotients(), totals(TOTALS, 0)];
        let made = cluster.replace(program(&both)).await.unwrap();
        assert!(errors(&cluster, QUOTIENTS, made).await.is_empty());
        let failing = accounts(&[(1, "ann", 0, 1), (2, "ann", 5, 1), (3, "ann", 500, 1)]);
        let wrong = cluster.write(vec![failing]).await.unwrap();
        assert_eq!(errors(&cluster, QUOTIENTS, wrong).await, ["22012 division by zero"]);
        assert!(errors(&cluster, TOTALS, wrong).await.is_empty());
        assert_eq!(view(&cluster, TOTALS, 3).await, ["ann 3 505"]);
        assert_eq!(view(&cluster, QUOTIENTS, 2).await, ["2 200", "3 2"]);

        // Whoever reads the view later inherits its errors; and they survive a replacement.
        let all = [quotients(), totals(TOTALS, 0), large_quotients()];
        let replaced = cluster.replace(program(&all)).await.unwrap();
        assert_eq!(errors(&cluster, QUOTIENTS, replaced).await, ["22012 division by zero"]);
        assert_eq!(errors(&cluster, LARGE_QUOTIENTS, replaced).await, ["22012 division by zero"]);
        assert_eq!(view(&cluster, LARGE_QUOTIENTS, 2).await, ["2 200"]);

        let right = cluster.write(vec![accounts(&[(1, "ann", 0, -1)])]).await.unwrap();
        assert!(errors(&cluster, QUOTIENTS, right).await.is_empty());
        assert!(errors(&cluster, LARGE_QUOTIENTS, right).await.is_empty());
        assert_eq!(errors(&cluster, QUOTIENTS, wrong).await, ["22012 division by zero"]);
        let unknown = cluster.hosts()[0].view_errors(EPOCH, right, RelationId(99)).await;
        assert!(matches!(unknown, Err(HostError::UnknownRelation(_))));
        cluster.shut_down().await;
    }
}

/// A function that breaks the engine.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Explode(Signature);

impl ScalarUDFImpl for Explode {
    fn name(&self) -> &str {
        "explode"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> DataFusionResult<DataType> {
        Ok(DataType::Int32)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        panic!("a bug in the engine")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_one_host_breaks_no_host_waits_for_ever() {
    let mut registry = SessionStateBuilder::new().with_default_features().build();
    let signature = Signature::any(1, Volatility::Immutable);
    registry.register_udf(Arc::new(ScalarUDF::from(Explode(signature)))).unwrap();
    let options = HostOptions::new(Functions::new(Arc::new(registry)));
    let mut cluster = Cluster::start(3, 1, &options).await.unwrap();
    let call = Expression::Call {
        function: "explode".to_owned(),
        arguments: vec![Expression::Column(0)],
        returns: DataType::Int32,
    };
    let plan = Plan::Project {
        input: stored(ACCOUNTS, accounts_schema()),
        expressions: vec![call],
        schema: schema(&[("never", DataType::Int32)]),
    };
    let view = View { id: LATER, plan: Arc::new(plan) };
    cluster.replace(program(&[view])).await.unwrap();

    // The row is on one host; only its worker breaks.
    let transaction = cluster.transaction();
    let changes = vec![accounts(&[(1, "ann", 1, 1)])];
    let staging = stillframe_protocol::Staging {
        epoch: EPOCH,
        transaction,
        sequence: 0,
        changes,
        tables: vec![],
    };
    cluster.hosts()[0].stage(staging).await.unwrap();
    let step = cluster.step().next();
    let transactions = vec![transaction];
    let command = cluster.command(Action::Advance { step, clock_us: 0, transactions });
    let executed = cluster.hosts().iter().map(|host| host.execute(Arc::clone(&command)));
    for failed in futures::future::join_all(executed).await {
        assert!(matches!(failed, Err(HostError::Failed(_))), "{failed:?}");
    }
    for host in cluster.hosts() {
        let request = cluster.request(ACCOUNTS, 3);
        assert!(matches!(host.scan(request).await, Err(HostError::Failed(_))));
    }
    cluster.shut_down().await;
}
