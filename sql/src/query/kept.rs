//! Plans that outlive the frame they were made under: those of a prepared statement.
//!
//! A plan is kept once it is optimized, its parameters still open. It holds nothing of its frame, so
//! it may be run under any other with the same catalog and the same settings.

use std::sync::{Arc, Mutex, PoisonError};

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result as PlanResult, ScalarValue};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};
use datafusion::sql::sqlparser::ast;

use super::{PlannedQuery, Purpose, QueryContext, classify};
use crate::scan::{StoredTable, is_widening};
use crate::settings::Settings;
use crate::{Catalog, Error, RelationKind, Type};

/// A statement has one query, or those that find the rows which it changes.
const PLANS_MAX: usize = 8;

/// The plans of one prepared statement. Its clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plans(Arc<Mutex<Vec<Kept>>>);

/// A plan, and what it holds for.
#[derive(Clone, Debug)]
struct Kept {
    query: ast::Query,
    catalog: Arc<Catalog>,
    settings: Settings,
    ready: Arc<Ready>,
}

/// A query that only needs the values of its parameters to be run.
#[derive(Clone, Debug)]
pub(crate) struct Ready {
    pub(crate) planned: PlannedQuery,
    pub(super) way: Way,
}

/// How a plan becomes operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Once its parameters have their values it is optimized.
    Optimize,
    /// It is optimized.
    Optimized,
    /// It is optimized, and its operators can't be put together better than they are.
    Plain,
}

impl Plans {
    fn find(
        &self,
        context: &QueryContext,
        query: &ast::Query,
        declared: &[Option<Type>],
    ) -> Option<Arc<Ready>> {
        let plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = plans.iter().find(|kept| {
            Arc::ptr_eq(&kept.catalog, &context.catalog)
                && kept.settings.plans_like(&context.settings)
                && kept.ready.is_of_types(declared)
                && kept.query == *query
        })?;
        context.can_keep(&kept.ready.planned).then(|| Arc::clone(&kept.ready))
    }

    fn keep(&self, kept: Kept) {
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A plan of another catalog isn't asked for again.
        plans.retain(|other| Arc::ptr_eq(&other.catalog, &kept.catalog));
        if plans.len() == PLANS_MAX {
            plans.remove(0);
        }
        plans.push(kept);
    }
}

impl QueryContext {
    /// Plans a query, unless the statement has its plan already.
    pub(crate) fn ready(
        &self,
        query: &ast::Query,
        declared: &[Option<Type>],
    ) -> Result<Arc<Ready>, Error> {
        let Some(plans) = &self.plans else {
            let planned = self.plan(query, declared)?;
            return Ok(Arc::new(Ready { planned, way: Way::Optimize }));
        };
        if let Some(ready) = plans.find(self, query, declared) {
            return Ok(ready);
        }
        let mut planned = self.plan(query, declared)?;
        if !self.can_keep(&planned) || !is_lasting(&planned.plan).map_err(classify)? {
            return Ok(Arc::new(Ready { planned, way: Way::Optimize }));
        }
        let optimized = self.optimize(&planned.plan)?;
        if has_extensions(&optimized).map_err(classify)? {
            return Ok(Arc::new(Ready { planned, way: Way::Optimize }));
        }
        planned.plan = optimized;
        let way = if is_plain(&planned.plan) { Way::Plain } else { Way::Optimized };
        let ready = Arc::new(Ready { planned, way });
        plans.keep(Kept {
            query: query.clone(),
            catalog: Arc::clone(&self.catalog),
            settings: self.settings.clone(),
            ready: Arc::clone(&ready),
        });
        Ok(ready)
    }

    /// Whether a plan of the context is the same under other frames. A view isn't that reads what the
    /// transaction has changed.
    fn can_keep(&self, planned: &PlannedQuery) -> bool {
        let is_table = |id| {
            let relation = self.catalog.relations.get(id);
            relation.is_some_and(|relation| matches!(relation.kind, RelationKind::Table { .. }))
        };
        self.purpose == Purpose::Run
            && self.given.is_empty()
            && (self.frame.overlay().is_empty() || planned.reads.iter().all(is_table))
    }
}

impl Ready {
    /// Whether its parameters have the types that are declared.
    fn is_of_types(&self, declared: &[Option<Type>]) -> bool {
        let types = &self.planned.parameters;
        let is_declared = |(found, declared): (&Type, &Option<Type>)| {
            found == declared.as_ref().unwrap_or(&Type::Unknown)
        };
        types.len() <= declared.len() && types.iter().zip(declared).all(is_declared)
    }

    /// The plan with the values of its parameters.
    pub(super) fn bind(&self, values: Vec<ScalarValue>) -> Result<LogicalPlan, Error> {
        let plan = self.planned.plan.clone();
        if values.is_empty() { Ok(plan) } else { plan.with_param_values(values).map_err(classify) }
    }
}

/// Whether a plan depends on nothing but the relations' rows and the values of its parameters, and
/// is optimized as well without those.
fn is_lasting(plan: &LogicalPlan) -> PlanResult<bool> {
    let mut is_lasting = true;
    plan.apply_with_subqueries(|plan| {
        is_lasting &= match plan {
            LogicalPlan::TableScan(scan) => {
                let provider = source_as_provider(&scan.source)?;
                let provider = provider.as_ref() as &dyn std::any::Any;
                provider.is::<StoredTable>()
            }
            // How many rows are wanted decides how they are sorted.
            LogicalPlan::Limit(limit) => {
                let bounds = limit.skip.iter().chain(&limit.fetch);
                bounds.into_iter().all(|bound| matches!(bound.as_ref(), Expr::Literal(..)))
            }
            _ => true,
        };
        plan.apply_expressions(|expr| {
            is_lasting &= !expr.exists(|expr| Ok(is_of_the_statement(expr) || is_open(expr)))?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(is_lasting)
}

/// Whether an expression depends on the session or on the time.
fn is_of_the_statement(expr: &Expr) -> bool {
    let volatility = match expr {
        Expr::ScalarFunction(function) => function.func.signature().volatility,
        Expr::AggregateFunction(function) => function.func.signature().volatility,
        Expr::ScalarVariable(..) => Volatility::Volatile,
        _ => Volatility::Immutable,
    };
    volatility != Volatility::Immutable
}

/// Whether an expression becomes a constant once parameters have values: then the optimizer could do
/// more with it.
fn is_open(expr: &Expr) -> bool {
    if matches!(expr, Expr::Placeholder(_) | Expr::Alias(_)) || is_widening(expr) {
        return false;
    }
    let has_columns =
        expr.exists(|expr| Ok(matches!(expr, Expr::Column(_) | Expr::OuterReferenceColumn(..))));
    let has_parameters = expr.exists(|expr| Ok(matches!(expr, Expr::Placeholder(_))));
    has_parameters.unwrap_or(true) && !has_columns.unwrap_or(false)
}

/// Whether a plan has nodes that DataFusion doesn't know.
fn has_extensions(plan: &LogicalPlan) -> PlanResult<bool> {
    let mut has_extensions = false;
    plan.apply_with_subqueries(|plan| {
        has_extensions |= matches!(plan, LogicalPlan::Extension(_));
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(has_extensions)
}

/// Whether a plan only picks rows of one relation and computes something of each.
fn is_plain(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::TableScan(scan) => scan.fetch.is_none(),
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) => {
            // Whoever optimizes the operators of a subquery does so to its own.
            let has_subqueries = plan.expressions().iter().any(|expr| {
                expr.exists(|expr| Ok(matches!(expr, Expr::ScalarSubquery(_)))).unwrap_or(true)
            });
            !has_subqueries && plan.inputs().into_iter().all(is_plain)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt;

    use super::*;
    use crate::fake::{Fake, run};
    use crate::session::{Parameter, Prepared, Response};
    use crate::{Database, Session};

    impl Prepared {
        fn kept(&self) -> usize {
            self.plans.0.lock().unwrap().len()
        }
    }

    async fn session(database: &Arc<Database>) -> Session {
        let mut session = Session::new(Arc::clone(database), "alice");
        let setup = "create table t (k bigint primary key, a int, b text);
            create table u (k bigint, a int);
            create materialized view v as select a, count(*) as n from t group by a;
            insert into t values (1, 10, 'x'), (2, 20, 'y'), (3, 20, null)";
        run(&mut session, setup).await.unwrap();
        session
    }

    async fn prepare(session: &mut Session, text: &str) -> Prepared {
        let statement = session.parse(text).unwrap().remove(0);
        session.prepare(statement, &[]).await.unwrap()
    }

    /// How many rows there are, of what is returned or changed.
    async fn execute(session: &mut Session, prepared: &Prepared, values: &[&str]) -> usize {
        let values = values.iter().map(|value| match *value {
            "null" => Parameter::Null,
            value => Parameter::Text(value.to_owned()),
        });
        match session.execute(prepared, values.collect()).await.unwrap() {
            Response::Rows(rows) => {
                let batches: Vec<_> = rows.batches.try_collect().await.unwrap();
                batches.iter().map(|batch| batch.num_rows()).sum()
            }
            Response::Complete { tag } => {
                tag.rsplit(' ').next().and_then(|rows| rows.parse().ok()).unwrap()
            }
            _ => panic!("neither rows nor a tag"),
        }
    }

    #[tokio::test]
    async fn what_depends_on_the_statement_is_planned_anew() {
        let (_, database) = Fake::start(2, 2);
        let mut session = session(&database).await;
        for (text, kept) in [
            ("select a from t where k = $1", 1),
            ("select a, count(*) from t where k < $1 group by a order by a limit 2", 1),
            ("select (select max(a) from u where u.k < $1) from t", 1),
            ("select a from t where k = $1::int", 1),
            ("select n from v where a = $1", 1),
            ("update t set a = a + $1 where k = $2", 0),
            ("select $1 + 1", 0),
            ("select a from t where k = $1 + 1", 0),
            ("select a from t order by k limit $1", 0),
            ("select a from t where now() > $1", 0),
            ("select nextval('s') from t where k = $1", 0),
            ("select relname from pg_class where oid = $1", 0),
            ("select x from generate_series(1, 3) as g(x) where x = $1", 0),
        ] {
            if text.contains("nextval") {
                run(&mut session, "create sequence s").await.unwrap();
            }
            let prepared = prepare(&mut session, text).await;
            assert_eq!(prepared.kept(), kept, "{text}");
        }
    }

    #[tokio::test]
    async fn a_kept_plan_reads_what_is_there_when_it_runs() {
        let (fake, database) = Fake::start(2, 2);
        let mut session = session(&database).await;
        let find = prepare(&mut session, "select b from t where k = $1 and a > $2").await;
        let change = prepare(&mut session, "update t set a = a - $1 where k = $2").await;
        let views = prepare(&mut session, "select n from v where a >= $1").await;
        assert_eq!(execute(&mut session, &find, &["1", "9"]).await, 1);
        assert_eq!(execute(&mut session, &find, &["1", "10"]).await, 0);
        assert_eq!(execute(&mut session, &find, &["null", "9"]).await, 0);
        assert_eq!(execute(&mut session, &change, &["5", "1"]).await, 1);
        assert_eq!(execute(&mut session, &change, &["5", "7"]).await, 0);
        assert_eq!(execute(&mut session, &find, &["1", "9"]).await, 0, "what is committed");
        assert_eq!((find.kept(), change.kept()), (1, 1));
        // Hosts of the fake don't maintain views.
        assert_eq!(execute(&mut session, &views, &["0"]).await, 0);
        run(&mut session, "begin").await.unwrap();
        assert_eq!(execute(&mut session, &change, &["-5", "1"]).await, 1);
        assert_eq!(execute(&mut session, &find, &["1", "9"]).await, 1, "what is its own");
        run(&mut session, "delete from t where k = 1; insert into t values (9, 9)").await.unwrap();
        assert_eq!(execute(&mut session, &find, &["1", "0"]).await, 0);
        assert_eq!(execute(&mut session, &find, &["9", "8"]).await, 1);
        assert_eq!(execute(&mut session, &find, &["9", "9"]).await, 0, "filters hold for it, too");
        assert_eq!(execute(&mut session, &views, &["0"]).await, 2, "the view of its own rows");
        run(&mut session, "rollback").await.unwrap();
        assert_eq!(execute(&mut session, &find, &["9", "8"]).await, 0);
        assert_eq!(execute(&mut session, &views, &["0"]).await, 0);
        let change = "drop materialized view v; alter table t drop column a;
            alter table t add column a int default 7";
        run(&mut session, change).await.unwrap();
        assert_eq!(execute(&mut session, &find, &["1", "6"]).await, 1, "under another catalog");
        assert_eq!(execute(&mut session, &find, &["1", "7"]).await, 0);
        let released = async {
            while fake.leases() > 0 {
                tokio::task::yield_now().await;
            }
        };
        let deadline = std::time::Duration::from_secs(10);
        tokio::time::timeout(deadline, released).await.expect("a kept plan holds no lease");
        assert_eq!(find.kept(), 1);
    }

    #[tokio::test]
    async fn a_kept_plan_looks_keys_up_and_asks_for_nothing_else() {
        let (fake, database) = Fake::start(2, 2);
        let mut session = session(&database).await;
        for (text, value) in [
            ("select b from t where k = $1", "2"),
            ("select b from t where k = $1::int", "2"),
            ("select b from t where k in ($1, 5)", "2"),
        ] {
            let prepared = prepare(&mut session, text).await;
            for _ in 0..2 {
                fake.take_scans();
                assert_eq!(execute(&mut session, &prepared, &[value]).await, 1, "{text}");
                let scans = fake.take_scans();
                assert_eq!(scans.len(), 4, "{text}");
                assert!(scans.iter().all(|scan| scan.keys.is_some()), "{text}");
            }
        }
    }

    #[tokio::test]
    async fn settings_that_plans_depend_on_are_not_those_of_another_plan() {
        let (_, database) = Fake::start(1, 1);
        let mut session = session(&database).await;
        run(
            &mut session,
            "create schema s; create table s.u (k bigint); insert into s.u values (1)",
        )
        .await
        .unwrap();
        let prepared = prepare(&mut session, "select k from u where k = $1").await;
        assert_eq!(execute(&mut session, &prepared, &["1"]).await, 0);
        run(&mut session, "set search_path = s").await.unwrap();
        assert_eq!(execute(&mut session, &prepared, &["1"]).await, 1);
        run(&mut session, "set search_path = public").await.unwrap();
        assert_eq!(execute(&mut session, &prepared, &["1"]).await, 0);
    }
}
