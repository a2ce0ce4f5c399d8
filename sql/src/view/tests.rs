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
async fn show() {
    for q in [
        "select * from t",
        "select b, a from t where a > 5 and k = 3",
        "select count(*) from t",
        "select b, count(*), count(a), min(a), max(b) from t group by b having count(*) > 2",
        "select t.b, u.y from t join u on t.a = u.x and t.c > u.x",
        "select t.b, u.y from t, u where t.a + 1 = u.x and u.y < 'z'",
        "select distinct b from t",
        "select a from t union all select x from u",
        "select a from t union select x from u",
        "select count(distinct a), count(*), sum(distinct c), max(b) from t",
        "select b, count(distinct a), count(b) from t group by b",
        "select count(*) filter (where a > 3) from t",
        "select a from t where b in (select y from u)",
        "select count(*) from t, u",
        "values (1, 'a'), (2, null)",
        "select 1 as one",
        "select a from t order by a",
        "select (a / 5)::int as x, sum(a) from t group by (a/5)::int",
    ] {
        println!("-- {q}\n{}\n", plan(q).await);
    }
    for q in [
        "select * from t left join u on a = x",
        "select a from t limit 1",
        "select a, row_number() over (order by a) from t",
        "select now() from t",
        "select a from t where not exists (select 1 from u where x = a)",
        "select a from t intersect select x from u",
        "select (select max(x) from u) from t",
        "select distinct on (a) a, b from t",
    ] {
        println!("-- {q}\n{}\n", refusal(q).await);
    }
}
