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
        ("select a from t limit 1", "Limit by [] 1 from 0"),
        ("select a from t order by b desc limit 2 offset 3", "Limit by [] 2 from 3 order by [#"),
        ("select a, row_number() over (order by a) from t", "Window by [] row_number()"),
        ("select distinct on (a) a, b from t", "Limit by [#0] 1 from 0"),
        ("select b, string_agg(b, ',' order by a) from t group by b", "string_agg(#0, ',')"),
        ("select a, b, count(*) from t group by rollup (a, b)", "UnionAll"),
        (
            "with recursive r(n) as (select a from t union select u.x + 1 from r, u where u.x = n)
            select n from r",
            "Recursion UNION",
        ),
        (
            "with recursive r(n) as (select a from t union all select n + 1 from r where n < 9)
            select n from r",
            "Last iteration",
        ),
    ] {
        let plan = plan(query).await;
        assert!(plan.contains(operator), "{query} should have {operator}:\n{plan}");
    }
}

#[tokio::test]
async fn names_what_cannot_be_maintained() {
    for (query, construct) in [("select now() from t", "now()")] {
        let message = refusal(query).await;
        assert!(message.contains(construct), "{query} should name {construct}: {message}");
    }
}

/// What only looks at the first rows of each partition is cut to them; what looks further isn't.
#[tokio::test]
async fn numbered_rows_are_cut_to_the_first() {
    let numbered = |window: &str, condition: &str| {
        format!("select * from (select a, b, {window} as n from t) as s where {condition}")
    };
    for (window, condition, limit) in [
        ("row_number() over (partition by b order by a)", "n <= 3", Some("3 from 0")),
        ("row_number() over (partition by b order by a)", "n < 3 and a > 5", Some("2 from 0")),
        ("rank() over (order by a desc)", "n = 1", Some("1 from 0")),
        ("row_number() over (partition by b order by a)", "n > 3", None),
        ("dense_rank() over (order by a)", "n <= 3", None),
        ("row_number() over (partition by b order by a)", "n <= 3 or a = 1", None),
        ("count(*) over (partition by b order by a)", "n <= 3", None),
    ] {
        let plan = plan(&numbered(window, condition)).await;
        match limit {
            Some(limit) => assert!(plan.contains(limit), "{window}, {condition}:\n{plan}"),
            None => assert!(!plan.contains("Limit"), "{window}, {condition}:\n{plan}"),
        }
    }
    let beside =
        "select * from (select a, row_number() over (order by a) as n, count(*) over () as c
        from t) as s where n <= 3";
    assert!(!plan(beside).await.contains("Limit by"), "another window looks at all rows");
}

/// What stands in WHERE keeps the rows it wants, and only them: neither the others with what is false of
/// them, nor columns that nobody reads.
#[tokio::test]
async fn conditions_on_subqueries_keep_only_what_they_want() {
    for (query, operator, others) in [
        (
            "select t.b from t, u where a = x and exists (select 1 from u v where v.y = t.b and v.x > u.x)",
            "Semijoin",
            "Antijoin",
        ),
        (
            "select t.b from t, u where a = x and not exists (select 1 from u v where v.x > u.x and v.y = t.b)",
            "Antijoin",
            "Semijoin",
        ),
        (
            "select count(*) from t, u where a = x and t.b in (select y from u)",
            "Semijoin",
            "Antijoin",
        ),
    ] {
        let plan = plan(query).await;
        assert!(plan.contains(operator) && !plan.contains(others), "{query}\n{plan}");
    }
}

/// A search is asked of the table that has the column, below the join.
#[tokio::test]
async fn searches_stand_below_joins() {
    for query in [
        "select t.c, y from t, u where a = x and t.b in (select y from u where x > 3)",
        "select t.c, y from u, t where t.b in (select y from u where x > 3) and a = x",
    ] {
        let plan = plan(query).await;
        let (join, search) = (plan.find("Join"), plan.find("Semijoin"));
        assert!(join.is_some() && join < search, "{query}\n{plan}");
    }
}

/// A column's values are looked for once, whatever conditions are asked of them.
#[tokio::test]
async fn distinct_values_under_conditions_are_looked_for_once() {
    let query = "select b, count(distinct a), count(distinct a) filter (where k > 1),
        count(distinct a) filter (where k > 2), count(*) from t group by b";
    let plan = plan(query).await;
    assert_eq!(plan.matches("Aggregate").count(), 2, "{plan}");
    assert!(!plan.contains("Distinct"), "{plan}");
}
