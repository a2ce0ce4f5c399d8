//! Real data: the flights that left New York in a month, loaded by COPY, under three views with
//! PostgreSQL's answers.
//!
//! `STILLFRAME_FLIGHTS=FOLDER` takes another set of the same form, such as a whole year.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use stillframe_tests::wire::{rows, sqlstate, tags};
use stillframe_tests::{Server, Wire};

const TABLES: [&str; 3] = ["airlines", "weather", "flights"];
const VIEWS: [&str; 3] = ["delay_by_carrier", "busy_routes", "delay_in_wind"];

#[test]
fn on_one_host_with_two_workers() {
    run(1, 2);
}

#[test]
fn on_two_hosts_with_two_workers() {
    run(2, 2);
}

fn run(hosts: u32, workers: u32) {
    let server = Server::start(hosts, workers);
    let mut session = Session { wire: server.wire(), folder: folder() };
    session.create(TABLES, "table");
    session.create(VIEWS, "materialized view");
    for table in TABLES {
        session.load(table);
    }
    for view in VIEWS {
        session.check_expected(view, "created before the data");
    }
    // Gone before they come again: a view beside its equal would only share what that one has.
    for view in VIEWS {
        session.run(&format!("drop materialized view {view}"));
    }
    session.create(VIEWS, "materialized view");
    for view in VIEWS {
        session.check_expected(view, "created after the data");
    }
    for change in [
        "delete from flights where carrier = 'EV' and day < 15",
        "update flights set dep_delay = dep_delay + 1, arr_delay = null where origin = 'LGA'",
        "insert into flights select * from flights where dest = 'ATL'",
        "update airlines set name = 'Delta' where carrier in ('DL', 'AA')",
        "update weather set wind_speed = wind_speed * 2 where origin = 'JFK'",
        "delete from weather where origin = 'EWR'",
    ] {
        session.run(change);
        for view in VIEWS {
            session.check_query(view, change);
        }
    }
    drop(session);
    server.stop().unwrap_or_else(|error| panic!("{error}"));
}

fn folder() -> PathBuf {
    std::env::var_os("STILLFRAME_FLIGHTS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("data/flights"), PathBuf::from)
}

struct Session {
    wire: Wire,
    folder: PathBuf,
}

impl Session {
    fn run(&mut self, sql: &str) -> Vec<String> {
        let answer = self.wire.query(sql);
        assert_eq!(sqlstate(&answer), None, "{sql}\n{answer:?}");
        rows(&answer).iter().map(|row| row.join("\t")).collect()
    }

    /// The CREATE statement of a name, from one of the set's SQL files.
    fn definition(&self, kind: &str, name: &str) -> String {
        let file = if kind == "table" { "schema.sql" } else { "views.sql" };
        let text = fs::read_to_string(self.folder.join(file)).expect("a readable file");
        let start = text.find(&format!("create {kind} {name} ")).expect("a definition");
        let end = text[start..].find(";\n").expect("an end of the definition");
        text[start..start + end].to_owned()
    }

    fn create<const N: usize>(&mut self, names: [&str; N], kind: &str) {
        for name in names {
            let sql = self.definition(kind, name);
            self.run(&sql);
        }
    }

    fn load(&mut self, table: &str) {
        let plain = self.folder.join(format!("{table}.csv"));
        let packed = self.folder.join(format!("{table}.csv.gz"));
        let mut data: Box<dyn Read> = if plain.exists() {
            Box::new(File::open(plain).expect("a readable file"))
        } else {
            Box::new(unpack(&packed))
        };
        let mut counter = Counter { lines: 0, inner: &mut data };
        let sql = format!("copy {table} from stdin (format csv, header, null 'NA')");
        let answer = self.wire.copy(&sql, &mut counter);
        assert_eq!(sqlstate(&answer), None, "{answer:?}");
        let loaded = counter.lines - 1;
        assert!(loaded > 10, "{table} has rows");
        assert_eq!(tags(&answer), [format!("COPY {loaded}")]);
        assert_eq!(self.run(&format!("select count(*) from {table}")), [loaded.to_string()]);
    }

    fn check_expected(&mut self, view: &str, when: &str) {
        let path = self.folder.join(format!("expected/{view}.tsv"));
        let text = fs::read_to_string(path).expect("a readable file");
        let mut expected: Vec<_> = text.lines().map(str::to_owned).collect();
        expected.sort_unstable();
        let actual = self.sorted(&format!("select * from {view}"));
        assert_same(&actual, &expected, &format!("{view}, {when}"));
    }

    fn check_query(&mut self, view: &str, after: &str) {
        let definition = self.definition("materialized view", view);
        let (_, query) = definition.split_once(" as\n").expect("a query in the definition");
        let expected = self.sorted(query);
        let actual = self.sorted(&format!("select * from {view}"));
        assert!(!actual.is_empty(), "{view} is empty after {after}");
        assert_same(&actual, &expected, &format!("{view}, after {after}"));
    }

    fn sorted(&mut self, sql: &str) -> Vec<String> {
        let mut rows = self.run(sql);
        rows.sort_unstable();
        rows
    }
}

fn assert_same(actual: &[String], expected: &[String], what: &str) {
    let missing: Vec<_> = expected.iter().filter(|row| !actual.contains(row)).collect();
    let extra: Vec<_> = actual.iter().filter(|row| !expected.contains(row)).collect();
    assert!(
        actual == expected,
        "{what}: {} rows instead of {}\nmissing: {missing:#?}\nextra: {extra:#?}",
        actual.len(),
        expected.len(),
    );
}

fn unpack(packed: &Path) -> impl Read + use<> {
    let gzip = Command::new("gzip")
        .args(["--decompress", "--stdout"])
        .arg(packed)
        .stderr(Stdio::inherit())
        .output()
        .expect("gzip is part of every Debian");
    assert!(gzip.status.success(), "gzip: {}", gzip.status);
    std::io::Cursor::new(gzip.stdout)
}

/// Counts the lines that run through.
struct Counter<'a> {
    lines: usize,
    inner: &'a mut dyn Read,
}

impl Read for Counter<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.lines += buffer[..read].iter().filter(|byte| **byte == b'\n').count();
        Ok(read)
    }
}
