//! What the compiler makes of queries.

use crate::fake::{Fake, run};
use crate::{Session, SqlState};

async fn session() -> Session {
    let mut session = Session::new(Fake::start(1, 1).1, "alice");
    let tables = "
        create table t (a int, b text, c numeric(8, 2), k bigint primary key);
        create table u (x int, y text);
    ";
    run(&mut session, tables).await.unwrap();
    session
}

/// The plan of a view.
async fn plan(query: &str) -> String {
    let mut session = session().await;
    let text = format!("explain create materialized view v as {query}");
    run(&mut session, &text).await.unwrap().join("\n")
}

/// What a view is refused with.
async fn refusal(query: &str) -> String {
    let mut session = session().await;
    let text = format!("create materialized view v as {query}");
    let error = run(&mut session, &text).await.expect_err(query);
    assert_eq!(error.state, SqlState::FEATURE_NOT_SUPPORTED, "{error:?}");
    error.message
}

#[tokio::test]
async fn compiles_what_can_be_maintained() {
    for (query, operator) in [
        ("select * from t", "Relation"),
        ("select b, a from t where a > 5 and k = 3", "Filter"),
        ("select count(*) from t", "Aggregate"),
        ("select b, count(*), min(a) from t group by b having count(*) > 2", "Filter"),
        ("select t.b, u.y from t join u on t.a = u.x and t.c > u.x", "Join"),
        ("select t.b, u.y from t, u where t.a + 1 = u.x and u.y < 'z'", "Join"),
        ("select distinct b from t", "Distinct"),
        ("select a from t union all select x from u", "Union"),
        ("select a from t union select x from u", "Distinct"),
        ("select b, count(distinct a), count(b) from t group by b", "Distinct"),
        ("select count(*) filter (where a > 3) from t", "Aggregate"),
        ("select a from t where b in (select y from u)", "Semijoin"),
        ("select a from t where not exists (select 1 from u where x = a)", "Antijoin"),
        ("select * from t left join u on a = x", "Antijoin"),
        ("select a from t intersect select x from u", "Semijoin"),
        ("select a from t except all select x from u", "Unnest"),
        ("select a, (select max(x) from u where y = b) from t", "Join"),
        ("select a, x from t, lateral (select x from u where y = b) u", "Join"),
        ("select g from generate_series(1, 3) g", "Unnest"),
        ("select count(*) from t, u", "Join"),
        ("values (1, 'a'), (2, null)", "Values"),
        ("select a from t order by a", "Relation"),
    ] {
        let plan = plan(query).await;
        assert!(plan.contains(operator), "{query} should have {operator}:\n{plan}");
    }
}

#[tokio::test]
async fn names_what_cannot_be_maintained() {
    for (query, construct) in [
        ("select a from t limit 1", "LIMIT"),
        ("select a, row_number() over (order by a) from t", "window function"),
        ("select now() from t", "now()"),
        ("select distinct on (a) a, b from t", "DISTINCT ON"),
    ] {
        let message = refusal(query).await;
        assert!(message.contains(construct), "{query} should name {construct}: {message}");
    }
}
