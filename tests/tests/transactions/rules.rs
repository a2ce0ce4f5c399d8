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
