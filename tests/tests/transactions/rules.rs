//! Rules about rows while others write them: unique values, parents and their children.

use stillframe_tests::Server;
use stillframe_tests::suite::answer;
use stillframe_tests::wire::sqlstate;

use super::{A_WHILE, end};

pub(super) fn a_unique_value_is_waited_for(server: &Server) {
    let (mut wire, mut other) = (server.wire(), server.wire());
    answer(&mut wire, "create table uv_t (id int primary key, v text unique)");
    answer(&mut wire, "insert into uv_t values (1, 'kept')");
    for (end_of_first, outcome) in [("commit", "23505"), ("rollback", "INSERT 0 1")] {
        answer(&mut wire, "begin");
        answer(&mut wire, "insert into uv_t values (2, 'a')");
        other.send_query("insert into uv_t values (3, 'a')");
        std::thread::sleep(A_WHILE);
        assert!(!other.has_something());
        answer(&mut wire, end_of_first);
        assert_eq!(end(&mut other), outcome);
        answer(&mut wire, "delete from uv_t where v = 'a'");
    }
    // Who gives a value up is waited for as well.
    answer(&mut wire, "begin");
    answer(&mut wire, "delete from uv_t where v = 'kept'");
    other.send_query("insert into uv_t values (4, 'kept')");
    std::thread::sleep(A_WHILE);
    assert!(!other.has_something());
    answer(&mut wire, "commit");
    assert_eq!(end(&mut other), "INSERT 0 1");
    // One that was added meanwhile is changed instead.
    answer(&mut wire, "begin");
    answer(&mut wire, "insert into uv_t values (5, 'c')");
    other.send_query("insert into uv_t values (6, 'c') on conflict (v) do update set id = 7");
    std::thread::sleep(A_WHILE);
    assert!(!other.has_something());
    answer(&mut wire, "commit");
    assert_eq!(end(&mut other), "INSERT 0 1");
    assert_eq!(answer(&mut wire, "select id from uv_t order by id"), [["4"], ["7"]]);
    answer(&mut wire, "drop table uv_t");
    wire.close();
    other.close();
}

pub(super) fn parents_and_children_wait_for_each_other(server: &Server) {
    let (mut wire, mut other) = (server.wire(), server.wire());
    answer(&mut wire, "create table pc_p (id int primary key, x int)");
    answer(&mut wire, "create table pc_c (id int primary key, p int references pc_p)");
    answer(&mut wire, "insert into pc_p values (1, 0), (2, 0)");
    for (end_of_first, outcome) in [("commit", "23503"), ("rollback", "DELETE 1")] {
        answer(&mut wire, "begin");
        answer(&mut wire, "insert into pc_c values (1, 1)");
        // What isn't the key may change.
        answer(&mut other, "update pc_p set x = x + 1 where id = 1");
        other.send_query("delete from pc_p where id = 1");
        std::thread::sleep(A_WHILE);
        assert!(!other.has_something());
        answer(&mut wire, end_of_first);
        assert_eq!(end(&mut other), outcome);
        answer(&mut wire, "delete from pc_c");
    }
    for (end_of_first, outcome) in [("rollback", "INSERT 0 1"), ("commit", "23503")] {
        answer(&mut wire, "begin");
        answer(&mut wire, "delete from pc_p where id = 2");
        other.send_query("insert into pc_c values (2, 2)");
        std::thread::sleep(A_WHILE);
        assert!(!other.has_something());
        answer(&mut wire, end_of_first);
        assert_eq!(end(&mut other), outcome);
        answer(&mut wire, "delete from pc_c");
    }
    answer(&mut wire, "drop table pc_c, pc_p");
    wire.close();
    other.close();
}

pub(super) fn counters_lose_nothing_and_children_keep_their_parents(server: &Server) {
    const CLIENTS: usize = 4;
    const ROUNDS: usize = 12;
    let mut wire = server.wire();
    answer(&mut wire, "create table cn_t (k int primary key, n int not null)");
    answer(&mut wire, "create table cn_p (id int primary key)");
    answer(
        &mut wire,
        "create table cn_c (id int primary key, p int references cn_p on delete cascade)",
    );
    answer(&mut wire, "create materialized view cn_v as select sum(n) as n from cn_t");
    answer(&mut wire, "insert into cn_p select g from generate_series(0, 3) g");
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            scope.spawn(move || {
                let mut wire = server.wire();
                for round in 0..ROUNDS {
                    let count = format!(
                        "insert into cn_t values ({}, 1) on conflict (k) do update set n = cn_t.n + 1",
                        round % 2
                    );
                    answer(&mut wire, &count);
                    let (child, parent) = (client * ROUNDS + round, (client + round) % 4);
                    let add = wire.query(&format!("insert into cn_c values ({child}, {parent})"));
                    let refused = sqlstate(&add);
                    assert!(refused.is_none_or(|state| state == "23503"));
                    if round % 3 == 0 {
                        wire.query(&format!("delete from cn_p where id = {parent}"));
                    } else {
                        wire.query(&format!("insert into cn_p values ({parent}) on conflict do nothing"));
                    }
                }
                wire.close();
            });
        }
    });
    assert_eq!(answer(&mut wire, "select n from cn_v"), [[(CLIENTS * ROUNDS).to_string()]]);
    let orphans = "select count(*) from cn_c where p not in (select id from cn_p)";
    assert_eq!(answer(&mut wire, orphans), [["0"]]);
    answer(&mut wire, "drop table cn_t, cn_c, cn_p cascade");
    wire.close();
}

pub(super) fn a_table_is_locked(server: &Server) {
    let (mut wire, mut other) = (server.wire(), server.wire());
    answer(&mut wire, "create table lt_t (id int primary key, x int)");
    answer(&mut wire, "insert into lt_t values (1, 0)");
    assert_eq!(sqlstate(&wire.query("lock table lt_t")).as_deref(), Some("25P01"));
    for (mode, waits) in [
        ("", true),
        ("in share mode", true),
        ("in exclusive mode", true),
        ("in share update exclusive mode", false),
        ("in row exclusive mode", false),
        ("in access share mode", false),
    ] {
        answer(&mut wire, "begin");
        answer(&mut wire, &format!("lock table lt_t {mode}"));
        // Who reads doesn't wait.
        assert_eq!(answer(&mut other, "select count(*) from lt_t"), [["1"]]);
        other.send_query("update lt_t set x = x + 1 where id = 1");
        if waits {
            std::thread::sleep(A_WHILE);
            assert!(!other.has_something(), "{mode}");
        } else {
            assert_eq!(end(&mut other), "UPDATE 1", "{mode}");
        }
        answer(&mut wire, "commit");
        if waits {
            assert_eq!(end(&mut other), "UPDATE 1", "{mode}");
        }
    }
    answer(&mut wire, "begin");
    answer(&mut wire, "update lt_t set x = 0");
    answer(&mut other, "begin");
    let refused = sqlstate(&other.query("lock lt_t in exclusive mode nowait"));
    assert_eq!(refused.as_deref(), Some("55P03"));
    answer(&mut other, "rollback");
    answer(&mut wire, "rollback");
    answer(&mut wire, "drop table lt_t");
    wire.close();
    other.close();
}

pub(super) fn definitions_wait_for_each_other(server: &Server) {
    let (mut wire, mut other) = (server.wire(), server.wire());
    answer(&mut wire, "create table dw_t (id int primary key)");
    // Nobody sees what a block has made, and who changes the catalog too waits for its end.
    answer(&mut wire, "begin");
    answer(&mut wire, "create table dw_new (x int)");
    answer(&mut wire, "alter table dw_t add column y int default 4");
    assert_eq!(sqlstate(&other.query("select * from dw_new")).as_deref(), Some("42P01"));
    assert_eq!(answer(&mut other, "select * from dw_t").len(), 0);
    other.send_query("create table dw_new (x int)");
    std::thread::sleep(A_WHILE);
    assert!(!other.has_something());
    answer(&mut wire, "commit");
    assert_eq!(end(&mut other), "42P07");
    // A writer waits for who writes its table anew, and writes it as it is then.
    answer(&mut wire, "begin");
    answer(&mut wire, "alter table dw_t add column z int default 5");
    other.send_query("insert into dw_t (id) values (1)");
    std::thread::sleep(A_WHILE);
    assert!(!other.has_something());
    answer(&mut wire, "commit");
    assert_eq!(end(&mut other), "INSERT 0 1");
    assert_eq!(answer(&mut wire, "select * from dw_t"), [["1", "4", "5"]]);
    // And the other way round.
    answer(&mut other, "begin");
    answer(&mut other, "insert into dw_t values (2, 0, 0)");
    wire.send_query("alter table dw_t drop column y");
    std::thread::sleep(A_WHILE);
    assert!(!wire.has_something());
    answer(&mut other, "commit");
    assert_eq!(end(&mut wire), "ALTER TABLE");
    assert_eq!(answer(&mut wire, "select * from dw_t order by id"), [["1", "5"], ["2", "0"]]);
    // A client that goes away leaves nothing.
    answer(&mut wire, "begin");
    answer(&mut wire, "drop table dw_t, dw_new");
    wire.close();
    assert_eq!(answer(&mut other, "select count(*) from dw_t"), [["2"]]);
    answer(&mut other, "drop table dw_t, dw_new");
    other.close();
}
