//! Transactions that meet: who waits, who is refused, and what a client leaves that goes away.

mod pgbench;
mod rules;

use std::process::ExitCode;
use std::time::Duration;

use stillframe_tests::suite::{self, answer};
use stillframe_tests::wire::{rows, sqlstate, tags};
use stillframe_tests::{Layout, Server, Wire};

/// For so long nothing comes from somebody who waits.
const A_WHILE: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    suite::run(
        Layout::new(2, 2),
        vec![
            ("all_writes_are_one_step", all_writes_are_one_step),
            ("a_writer_waits_and_looks_again", a_writer_waits_and_looks_again),
            ("repeatable_read_refuses_what_changed", repeatable_read_refuses_what_changed),
            ("a_deadlock_is_broken", a_deadlock_is_broken),
            ("who_waits_too_long_gives_up", who_waits_too_long_gives_up),
            ("a_killed_client_leaves_nothing", a_killed_client_leaves_nothing),
            ("a_query_of_several_statements", a_query_of_several_statements),
            ("a_pipeline_up_to_sync", a_pipeline_up_to_sync),
            ("copy_inside_a_block", copy_inside_a_block),
            ("cuts_do_not_matter", cuts_do_not_matter),
            ("a_unique_value_is_waited_for", rules::a_unique_value_is_waited_for),
            (
                "parents_and_children_wait_for_each_other",
                rules::parents_and_children_wait_for_each_other,
            ),
            (
                "counters_lose_nothing_and_children_keep_their_parents",
                rules::counters_lose_nothing_and_children_keep_their_parents,
            ),
            ("pgbench_makes_its_tables", pgbench::pgbench_makes_its_tables),
            ("pgbench_adds_up", pgbench::pgbench_adds_up),
            ("a_table_is_locked", rules::a_table_is_locked),
            ("definitions_wait_for_each_other", rules::definitions_wait_for_each_other),
            ("a_hot_row_and_a_long_update_get_on", pgbench::a_hot_row_and_a_long_update_get_on),
        ],
    )
}

fn step(wire: &mut Wire) -> u64 {
    answer(wire, "select stillframe.current_step()")[0][0].parse().expect("a step")
}

/// The answer to a query that was sent.
fn end(wire: &mut Wire) -> String {
    let messages = wire.until("Z");
    sqlstate(&messages).unwrap_or_else(|| tags(&messages).join(" "))
}

fn refused(wire: &mut Wire, sql: &str) -> String {
    let messages = wire.query(sql);
    sqlstate(&messages).unwrap_or_else(|| panic!("{sql}: {messages:?}"))
}

fn all_writes_are_one_step(server: &Server) {
    let (mut wire, mut other) = (server.wire(), server.wire());
    answer(&mut wire, "create table os_a (id int primary key, x int)");
    answer(&mut wire, "create table os_b (x int)");
    answer(&mut wire, "create materialized view os_v as select count(*) as a from os_a");
    answer(&mut wire, "create materialized view os_w as select count(*) as b from os_b");
    let before = step(&mut wire);
    answer(&mut wire, "begin");
    answer(&mut wire, "insert into os_a values (1, 1), (2, 2)");
    answer(&mut wire, "insert into os_b select x from os_a");
    answer(&mut wire, "update os_a set x = x + 1");
    answer(&mut wire, "delete from os_b where x = 1");
    assert_eq!(answer(&mut wire, "select sum(x) from os_a"), [["5"]]);
    assert_eq!(answer(&mut wire, "select x from os_b"), [["2"]]);
    assert_eq!(answer(&mut wire, "select a, b from os_v, os_w"), [["2", "1"]]);
    assert_eq!(answer(&mut other, "select a, b from os_v, os_w"), [["0", "0"]]);
    assert_eq!(step(&mut other), before);
    answer(&mut wire, "commit");
    assert_eq!(step(&mut other), before + 1);
    assert_eq!(answer(&mut other, "select a, b from os_v, os_w"), [["2", "1"]]);
    answer(&mut wire, "drop table os_a, os_b cascade");
    wire.close();
    other.close();
}

fn a_writer_waits_and_looks_again(server: &Server) {
    let (mut wire, mut other) = (server.wire(), server.wire());
    answer(&mut wire, "create table ww_t (id int primary key, x int)");
    answer(&mut wire, "insert into ww_t values (1, 0), (2, 0)");
    answer(&mut wire, "begin");
    answer(&mut wire, "update ww_t set x = x + 1 where id = 1");
    other.send_query("update ww_t set x = x + 10 where x < 2");
    std::thread::sleep(A_WHILE);
    assert!(!other.has_something());
    answer(&mut wire, "commit");
    assert_eq!(end(&mut other), "UPDATE 2");
    assert_eq!(answer(&mut wire, "select x from ww_t order by id"), [["11"], ["10"]]);
    // A rollback lets the other go on as well, with the row as it was.
    answer(&mut wire, "begin");
    answer(&mut wire, "delete from ww_t where id = 1");
    other.send_query("update ww_t set x = x + 1 where id = 1");
    answer(&mut wire, "rollback");
    assert_eq!(end(&mut other), "UPDATE 1");
    answer(&mut wire, "drop table ww_t");
    wire.close();
    other.close();
}

fn repeatable_read_refuses_what_changed(server: &Server) {
    let (mut wire, mut other) = (server.wire(), server.wire());
    answer(&mut wire, "create table rc_t (id int primary key, x int)");
    answer(&mut wire, "insert into rc_t values (1, 0), (2, 0)");
    answer(&mut wire, "begin isolation level repeatable read");
    answer(&mut wire, "update rc_t set x = 1 where id = 2");
    answer(&mut other, "update rc_t set x = 5 where id = 1");
    assert_eq!(answer(&mut wire, "select x from rc_t order by id"), [["0"], ["1"]]);
    assert_eq!(refused(&mut wire, "update rc_t set x = x + 1"), "40001");
    assert_eq!(refused(&mut wire, "select 1"), "25P02");
    assert_eq!(tags(&wire.query("commit")), ["ROLLBACK"]);
    // One that waits learns of it when the other commits.
    answer(&mut other, "begin");
    answer(&mut other, "update rc_t set x = 6 where id = 1");
    answer(&mut wire, "begin isolation level repeatable read");
    wire.send_query("delete from rc_t where id = 1");
    std::thread::sleep(A_WHILE);
    answer(&mut other, "commit");
    assert_eq!(end(&mut wire), "40001");
    answer(&mut wire, "rollback");
    assert_eq!(answer(&mut wire, "select x from rc_t order by id"), [["6"], ["0"]]);
    answer(&mut wire, "drop table rc_t");
    wire.close();
    other.close();
}

fn a_deadlock_is_broken(server: &Server) {
    let (mut wire, mut other) = (server.wire(), server.wire());
    answer(&mut wire, "create table dl_t (id int primary key, x int)");
    answer(&mut wire, "insert into dl_t values (1, 0), (2, 0)");
    answer(&mut wire, "begin");
    answer(&mut other, "begin");
    answer(&mut wire, "update dl_t set x = x + 1 where id = 1");
    answer(&mut other, "update dl_t set x = x + 10 where id = 2");
    wire.send_query("update dl_t set x = x + 1 where id = 2");
    std::thread::sleep(A_WHILE);
    assert!(!wire.has_something());
    assert_eq!(refused(&mut other, "update dl_t set x = x + 10 where id = 1"), "40P01");
    assert_eq!(end(&mut wire), "UPDATE 1", "what the other had is free before it says ROLLBACK");
    answer(&mut wire, "commit");
    answer(&mut other, "rollback");
    assert_eq!(answer(&mut other, "select x from dl_t"), [["1"], ["1"]]);
    answer(&mut wire, "drop table dl_t");
    wire.close();
    other.close();
}

fn who_waits_too_long_gives_up(server: &Server) {
    let (mut wire, mut other) = (server.wire(), server.wire());
    answer(&mut wire, "create table lt_t (id int primary key, x int)");
    answer(&mut wire, "insert into lt_t values (1, 0)");
    answer(&mut wire, "begin");
    answer(&mut wire, "update lt_t set x = 1");
    answer(&mut other, "begin");
    answer(&mut other, "set local lock_timeout = '50ms'");
    assert_eq!(refused(&mut other, "truncate lt_t"), "55P03");
    answer(&mut other, "rollback");
    answer(&mut wire, "commit");
    answer(&mut wire, "drop table lt_t");
    wire.close();
    other.close();
}

fn a_killed_client_leaves_nothing(server: &Server) {
    let (mut wire, mut other) = (server.wire(), server.wire());
    answer(&mut wire, "create table kc_t (id int primary key, x int)");
    answer(&mut wire, "insert into kc_t values (1, 0)");
    answer(&mut wire, "begin");
    answer(&mut wire, "update kc_t set x = 7");
    answer(&mut wire, "insert into kc_t values (2, 7)");
    other.send_query("update kc_t set x = x + 1");
    std::thread::sleep(A_WHILE);
    assert!(!other.has_something());
    drop(wire);
    assert_eq!(end(&mut other), "UPDATE 1");
    assert_eq!(answer(&mut other, "select id, x from kc_t"), [["1", "1"]]);
    answer(&mut other, "drop table kc_t");
    other.close();
}

fn a_query_of_several_statements(server: &Server) {
    let mut wire = server.wire();
    answer(&mut wire, "create table qs_t (id int primary key)");
    let before = step(&mut wire);
    let messages = wire.query(
        "insert into qs_t values (1); insert into qs_t values (2); select count(*) from qs_t",
    );
    assert_eq!(tags(&messages), ["INSERT 0 1", "INSERT 0 1", "SELECT 1"]);
    assert_eq!(rows(&messages), [["2"]]);
    assert_eq!(step(&mut wire), before + 1);
    assert_eq!(
        refused(&mut wire, "insert into qs_t values (3); insert into qs_t values (1)"),
        "23505"
    );
    assert_eq!(refused(&mut wire, "delete from qs_t; select 1 / 0"), "22012");
    assert_eq!(answer(&mut wire, "select count(*) from qs_t"), [["2"]]);
    // What stands before BEGIN is part of the block; COMMIT ends what stands before it.
    answer(&mut wire, "insert into qs_t values (3); begin; insert into qs_t values (4)");
    answer(&mut wire, "rollback");
    assert_eq!(
        refused(&mut wire, "insert into qs_t values (5); commit; insert into qs_t values (5)"),
        "23505"
    );
    assert_eq!(answer(&mut wire, "select id from qs_t order by id"), [["1"], ["2"], ["5"]]);
    // So are changes of the catalog.
    let definitions = "create table qs_u (x int); insert into qs_u select id from qs_t; \
         create materialized view qs_v as select count(*) from qs_u; alter table qs_t add y int";
    assert_eq!(refused(&mut wire, &format!("{definitions}; select 1 / 0")), "22012");
    assert_eq!(refused(&mut wire, "select * from qs_u"), "42P01");
    let before = step(&mut wire);
    answer(&mut wire, definitions);
    assert_eq!(answer(&mut wire, "select * from qs_v"), [["3"]]);
    assert!(step(&mut wire) <= before + 2);
    answer(&mut wire, "drop table qs_u cascade; drop table qs_t");
    wire.close();
}

fn a_pipeline_up_to_sync(server: &Server) {
    let mut wire = server.wire();
    answer(&mut wire, "create table pl_t (id int primary key)");
    let before = step(&mut wire);
    wire.parse("add", "insert into pl_t values ($1)");
    for key in ["1", "2", "3"] {
        wire.bind("", "add", &[Some(key.as_bytes())]);
        wire.execute("", 0);
    }
    let messages = wire.sync();
    assert_eq!(tags(&messages), ["INSERT 0 1"; 3], "{messages:?}");
    assert_eq!(step(&mut wire), before + 1);
    for key in ["4", "1", "5"] {
        wire.bind("", "add", &[Some(key.as_bytes())]);
        wire.execute("", 0);
    }
    assert_eq!(sqlstate(&wire.sync()).as_deref(), Some("23505"));
    assert_eq!(answer(&mut wire, "select count(*) from pl_t"), [["3"]]);
    answer(&mut wire, "drop table pl_t");
    wire.close();
}

fn copy_inside_a_block(server: &Server) {
    let (mut wire, mut other) = (server.wire(), server.wire());
    answer(&mut wire, "create table cb_t (id int primary key, x int)");
    answer(&mut wire, "insert into cb_t values (1, 0)");
    answer(&mut wire, "begin");
    answer(&mut wire, "truncate cb_t");
    let messages = wire.copy("copy cb_t from stdin", "1\t1\n2\t2\n".as_bytes());
    assert_eq!(tags(&messages), ["COPY 2"], "{messages:?}");
    answer(&mut wire, "update cb_t set x = x + 1 where id = 2");
    assert_eq!(answer(&mut other, "select id, x from cb_t"), [["1", "0"]]);
    answer(&mut wire, "commit");
    assert_eq!(answer(&mut other, "select id, x from cb_t order by id"), [["1", "1"], ["2", "3"]]);
    answer(&mut wire, "begin");
    let messages = wire.copy("copy cb_t from stdin", "3\t1\n1\t2\n".as_bytes());
    assert_eq!(sqlstate(&messages).as_deref(), Some("23505"));
    assert_eq!(refused(&mut wire, "select 1"), "25P02");
    answer(&mut wire, "rollback");
    assert_eq!(answer(&mut wire, "select count(*) from cb_t"), [["2"]]);
    answer(&mut wire, "drop table cb_t");
    wire.close();
    other.close();
}

/// Statements give the same tables and views, one by one and in transactions of any size.
fn cuts_do_not_matter(server: &Server) {
    let mut wire = server.wire();
    let names = ["cd_one", "cd_many"];
    for name in names {
        answer(&mut wire, &format!("create table {name} (k int primary key, g int, v int)"));
        answer(&mut wire, &format!("create table {name}_bag (g int, v int)"));
        for (view, query) in [
            (
                "sums",
                format!("select g, count(*) as n, sum(v) as s, max(v) as m from {name} group by g"),
            ),
            ("joined", format!("select t.k, b.v from {name} t join {name}_bag b on t.g = b.g")),
            ("top", format!("select max(n) as n from {name}_sums")),
        ] {
            answer(&mut wire, &format!("create materialized view {name}_{view} as {query}"));
        }
    }
    let mut random = Random(0x5f11_f4a3);
    for round in 0..12 {
        let size = 1 + round % 5;
        answer(&mut wire, "begin");
        let mut failed = false;
        let statements: Vec<_> = (0..size).map(|_| random.statement()).collect();
        for statement in &statements {
            failed = sqlstate(&wire.query(&statement.replace("TABLE", names[1]))).is_some();
            if failed {
                break;
            }
            for view in ["sums", "joined", "top"] {
                answer(&mut wire, &format!("select * from {}_{view}", names[1]));
            }
        }
        answer(&mut wire, "commit");
        if !failed {
            for statement in &statements {
                answer(&mut wire, &statement.replace("TABLE", names[0]));
            }
        }
        for relation in ["", "_bag", "_sums", "_joined", "_top"] {
            let [one, many] = names.map(|name| {
                let mut rows = answer(&mut wire, &format!("select * from {name}{relation}"));
                rows.sort();
                rows
            });
            assert_eq!(one, many, "{relation} after {statements:?}");
        }
    }
    for name in names {
        answer(&mut wire, &format!("drop table {name}, {name}_bag cascade"));
    }
    wire.close();
}

/// Numbers that are the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn statement(&mut self) -> String {
        let (k, g, v) = (self.below(12), self.below(3), self.below(50));
        match self.below(9) {
            0..3 => format!("insert into TABLE values ({k}, {g}, {v})"),
            3 => format!("insert into TABLE_bag values ({g}, {v}), ({g}, {v})"),
            4 => format!("update TABLE set v = v + {v} where k > {k}"),
            5 => format!("update TABLE set g = {g} where k = {k}"),
            6 => format!("delete from TABLE where k = {k} or v = {v}"),
            7 => format!("delete from TABLE_bag where g = {g}"),
            _ => "insert into TABLE_bag select g, v from TABLE".to_owned(),
        }
    }
}
