//! Writing statements over a cluster in memory.

use crate::fake::{Fake, run};
use crate::{Error, Session};

/// A session on 2 hosts of 2 workers, with some statements run.
async fn session(setup: &str) -> Session {
    let mut session = Session::new(Fake::start(2, 2).1, "alice");
    run(&mut session, setup).await.unwrap();
    session
}

async fn ok(session: &mut Session, text: &str) -> Vec<String> {
    run(session, text).await.unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

async fn error(session: &mut Session, text: &str) -> Error {
    run(session, text).await.expect_err(text)
}

/// SQLSTATE, message and detail.
async fn refusal(session: &mut Session, text: &str) -> String {
    let error = error(session, text).await;
    let detail = error.detail.map(|detail| format!(" | {detail}")).unwrap_or_default();
    format!("{} {}{detail}", error.state.code(), error.message)
}

async fn rows(session: &mut Session, table: &str) -> Vec<String> {
    let mut rows = ok(session, &format!("select * from {table}")).await;
    rows.sort();
    rows
}

const KEYED: &str = "create table t (a int, id int primary key, b text not null)";

#[tokio::test]
async fn inserts_values_of_all_sorts() {
    let mut session = session(KEYED).await;
    for (text, tag) in [
        ("insert into t values (1, 1, 'x')", "INSERT 0 1"),
        ("insert into t (b, id) values ('y', 2), ('z', -3)", "INSERT 0 2"),
        ("insert into t select a, id + 10, b || b from t", "INSERT 0 3"),
        ("insert into t values (null, 20, default || 'q')", "ERROR"),
        (
            "insert into t values ('7', '21', 5), (1 + 1, (select max(id) from t) + 100, upper('u'))",
            "INSERT 0 2",
        ),
        ("insert into t values (1.5, 30, true), (-2.5, 31, 1.50)", "INSERT 0 2"),
        ("insert into t select 1, 40, 'q' where false", "INSERT 0 0"),
        ("insert into t select '5', id + 1000, '9' from t where id = 1", "INSERT 0 1"),
    ] {
        match run(&mut session, text).await {
            Ok(answer) => assert_eq!(answer, [tag], "{text}"),
            Err(error) => assert_eq!(tag, "ERROR", "{text}: {error:?}"),
        }
    }
    let mut expected = [
        "1|1|x",
        "NULL|2|y",
        "NULL|-3|z",
        "1|11|xx",
        "NULL|12|yy",
        "NULL|7|zz",
        "7|21|5",
        "2|112|U",
        "2|30|true",
        "-3|31|1.50",
        "5|1001|9",
    ];
    expected.sort_unstable();
    assert_eq!(rows(&mut session, "t").await, expected);
}

#[tokio::test]
async fn refuses_rows_as_postgresql_does() {
    let mut session = session(KEYED).await;
    ok(&mut session, "insert into t values (1, 1, 'x')").await;
    for (text, refused) in [
        (
            "insert into t values (1, 2)",
            "23502 null value in column \"b\" of relation \"t\" violates not-null constraint | Failing row contains (1, 2, null).",
        ),
        (
            "insert into t values (1, null, 'x')",
            "23502 null value in column \"id\" of relation \"t\" violates not-null constraint | Failing row contains (1, null, x).",
        ),
        (
            "insert into t values (2, 2, 'x'), (3, 1, 'y')",
            "23505 duplicate key value violates unique constraint \"t_pkey\" | Key (id)=(1) already exists.",
        ),
        (
            "insert into t values (2, 5, 'x'), (3, 5, 'y'), (4, 1, 'z')",
            "23505 duplicate key value violates unique constraint \"t_pkey\" | Key (id)=(5) already exists.",
        ),
        (
            "insert into t values (1, 2, 'x', 3)",
            "42601 INSERT has more expressions than target columns",
        ),
        (
            "insert into t (id, a) values (1)",
            "42601 INSERT has more target columns than expressions",
        ),
        (
            "insert into t values (1, 2, 'x'), (1, 2)",
            "42601 VALUES lists must all be the same length",
        ),
        (
            "insert into t (id, nope) values (1, 2)",
            "42703 column \"nope\" of relation \"t\" does not exist",
        ),
        ("insert into t (id, id) values (1, 2)", "42701 column \"id\" specified more than once"),
        ("insert into nope values (1)", "42P01 relation \"nope\" does not exist"),
        (
            "insert into t values ('x', 2, 'x')",
            "22P02 invalid input syntax for type integer: \"x\"",
        ),
        ("insert into t values (99999999999, 2, 'x')", "22003 integer out of range"),
        (
            "insert into t values (true, 2, 'x')",
            "42804 column \"a\" is of type integer but expression is of type boolean",
        ),
        (
            "insert into t select b, 2, 'x' from t",
            "42804 column \"a\" is of type integer but expression is of type text",
        ),
        ("update t set nope = 1", "42703 column \"nope\" of relation \"t\" does not exist"),
        ("update t set a = 1, a = 2", "42601 multiple assignments to same column \"a\""),
        (
            "update t set b = null",
            "23502 null value in column \"b\" of relation \"t\" violates not-null constraint | Failing row contains (1, 1, null).",
        ),
        ("update t set a = 'x' where false", "22P02 invalid input syntax for type integer: \"x\""),
        ("delete from nope", "42P01 relation \"nope\" does not exist"),
    ] {
        assert_eq!(refusal(&mut session, text).await, refused, "{text}");
    }
    assert_eq!(rows(&mut session, "t").await, ["1|1|x"]);
}

#[tokio::test]
async fn changes_and_deletes_rows_by_key() {
    let mut session = session(KEYED).await;
    ok(&mut session, "insert into t values (1, 1, 'x'), (2, 2, 'y'), (3, 3, 'z')").await;
    for (text, tag) in [
        ("update t set a = a + id where id <> 2", "UPDATE 2"),
        ("update t set (a, b) = (7, 'pair') where id = 2", "UPDATE 1"),
        ("update t u set a = u.a where u.b = 'pair'", "UPDATE 1"),
        ("update t set a = default, id = id + 10 where id = 3", "UPDATE 1"),
        ("update t set b = 'n' where id = 99", "UPDATE 0"),
        ("delete from t as d where d.id in (select id from t where b = 'x')", "DELETE 1"),
        ("delete from t where id = 1", "DELETE 0"),
    ] {
        assert_eq!(ok(&mut session, text).await, [tag], "{text}");
    }
    assert_eq!(rows(&mut session, "t").await, ["7|2|pair", "NULL|13|z"]);
    assert_eq!(ok(&mut session, "truncate t").await, ["TRUNCATE TABLE"]);
    assert_eq!(rows(&mut session, "t").await, [""; 0]);
}

#[tokio::test]
async fn keys_move_row_by_row_in_their_order() {
    let mut session = session("create table t (id int primary key, v text)").await;
    ok(&mut session, "insert into t values (1, 'a'), (2, 'b'), (10, 'c')").await;
    for text in
        ["update t set id = id + 1", "update t set id = 3 - id where id < 3", "update t set id = 1"]
    {
        assert_eq!(error(&mut session, text).await.state.code(), "23505", "{text}");
    }
    assert_eq!(
        refusal(&mut session, "update t set id = 10 where id = 1").await,
        "23505 duplicate key value violates unique constraint \"t_pkey\" | Key (id)=(10) already exists."
    );
    assert_eq!(ok(&mut session, "update t set id = id - 1").await, ["UPDATE 3"]);
    assert_eq!(rows(&mut session, "t").await, ["0|a", "1|b", "9|c"]);
    assert_eq!(ok(&mut session, "update t set id = id + 100, v = v || v").await, ["UPDATE 3"]);
    assert_eq!(rows(&mut session, "t").await, ["100|aa", "101|bb", "109|cc"]);
}

#[tokio::test]
async fn equal_rows_of_a_bag_are_counted() {
    let mut session = session("create table b (x int, y text)").await;
    ok(
        &mut session,
        "insert into b values (1, 'a'), (1, 'a'), (1, 'b'), (null, null), (null, null)",
    )
    .await;
    assert_eq!(ok(&mut session, "update b set x = 2 where y = 'a'").await, ["UPDATE 2"]);
    assert_eq!(rows(&mut session, "b").await, ["1|b", "2|a", "2|a", "NULL|NULL", "NULL|NULL"]);
    assert_eq!(ok(&mut session, "update b set x = 2, y = 'a' where y = 'b'").await, ["UPDATE 1"]);
    assert_eq!(ok(&mut session, "update b set y = y").await, ["UPDATE 5"]);
    assert_eq!(ok(&mut session, "delete from b where x = 2").await, ["DELETE 3"]);
    assert_eq!(ok(&mut session, "insert into b select * from b").await, ["INSERT 0 2"]);
    assert_eq!(ok(&mut session, "delete from b").await, ["DELETE 4"]);
    assert_eq!(rows(&mut session, "b").await, [""; 0]);
}

#[tokio::test]
async fn a_row_that_is_joined_with_several_changes_once() {
    let mut session = session(
        "create table t (id int primary key, v int);
         create table b (x int, v int);
         create table o (x int, w int);
         insert into t values (1, 0), (2, 0), (3, 0);
         insert into b values (1, 0), (1, 0), (2, 0), (3, 0);
         insert into o values (1, 5), (1, 5), (2, 7)",
    )
    .await;
    assert_eq!(ok(&mut session, "update t set v = w from o where id = x").await, ["UPDATE 2"]);
    assert_eq!(rows(&mut session, "t").await, ["1|5", "2|7", "3|0"]);
    assert_eq!(ok(&mut session, "update b set v = w from o where b.x = o.x").await, ["UPDATE 3"]);
    assert_eq!(rows(&mut session, "b").await, ["1|5", "1|5", "2|7", "3|0"]);
    assert_eq!(ok(&mut session, "delete from b using o where b.x = o.x").await, ["DELETE 3"]);
    assert_eq!(
        ok(&mut session, "delete from t using o where id = x and w = 5").await,
        ["DELETE 1"]
    );
    assert_eq!(rows(&mut session, "b").await, ["3|0"]);
    assert_eq!(rows(&mut session, "t").await, ["2|7", "3|0"]);
}
