//! What benchmarks of databases ask, as materialized views: the 22 queries of TPC-H under changes like
//! its refresh functions, and those of Nexmark. After each change a view has the rows that PostgreSQL
//! gives, and that the same query gives ad hoc.
//!
//! `STILLFRAME_SCALE=0.1` takes ten times the rows, and `STILLFRAME_POSTGRESQL="host=... user=..."` asks a
//! PostgreSQL server, in a schema of its own.

mod nexmark;
mod tpch;

use std::fs;
use std::path::Path;

use futures::SinkExt as _;
use stillframe_tests::{Client, Server};

/// Tables, what is asked of them, and how they change.
struct Workload {
    name: &'static str,
    tables: Vec<Table>,
    /// A name for what is done, and the statements; each is a transaction.
    changes: Vec<(&'static str, String)>,
    /// What PostgreSQL needs to answer soon.
    indexes: &'static str,
}

struct Table {
    name: &'static str,
    /// Values between `|`, a line for each row.
    rows: Vec<String>,
    /// Rows that come with the first change.
    held_back: Vec<String>,
}

impl Table {
    /// Holds back the rows for which this is true of their first value.
    fn new(
        name: &'static str,
        rows: impl Iterator<Item = String>,
        is_held_back: impl Fn(u64) -> bool,
    ) -> Self {
        let first = |row: &String| row.split('|').next().and_then(|value| value.parse().ok());
        let (held_back, rows) = rows.partition(|row| first(row).is_some_and(&is_held_back));
        Self { name, rows, held_back }
    }
}

#[tokio::test]
async fn tpch_on_one_host() {
    run(1, 1, &tpch::workload(scale())).await;
}

#[tokio::test]
async fn tpch_on_three_hosts_with_two_workers() {
    run(3, 2, &tpch::workload(scale())).await;
}

#[tokio::test]
async fn nexmark_on_one_host() {
    run(1, 1, &nexmark::workload(scale())).await;
}

#[tokio::test]
async fn nexmark_on_three_hosts_with_two_workers() {
    run(3, 2, &nexmark::workload(scale())).await;
}

fn scale() -> f64 {
    std::env::var("STILLFRAME_SCALE").map_or(0.01, |text| text.parse().expect("a number"))
}

/// Every second view is there before the data, and the others come after; which, the number of hosts
/// tells.
async fn run(hosts: u32, workers: u32, workload: &Workload) {
    let server = Server::start(hosts, workers);
    let servers = Servers {
        stillframe: server.connect().await,
        postgresql: postgresql(&format!("{}_{hosts}x{workers}", workload.name)).await,
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(workload.name);
    servers.both(&read(&folder.join("schema.sql"))).await;
    if let Some(postgresql) = &servers.postgresql {
        postgresql.query(workload.indexes).await;
    }
    let (early, late): (Vec<_>, Vec<_>) =
        queries(&folder).into_iter().partition(|query| query.number % 2 == hosts / 2 % 2);
    servers.create(&early).await;
    for table in &workload.tables {
        servers.load(table.name, &table.rows).await;
    }
    servers.create(&late).await;
    let queries: Vec<_> = early.into_iter().chain(late).collect();
    for query in &queries {
        let rows = servers.compare(query, "loaded", true).await;
        assert_ne!(rows, 0, "{} shows something", query.name());
    }
    servers.both("begin").await;
    for table in &workload.tables {
        servers.load(table.name, &table.held_back).await;
    }
    servers.both("commit").await;
    for query in &queries {
        servers.compare(query, "more rows", false).await;
    }
    for (place, (change, sql)) in workload.changes.iter().enumerate() {
        servers.both(sql).await;
        // An ad-hoc query costs most of a trial's time.
        let asks_adhoc = place % 4 == 3;
        for query in &queries {
            servers.compare(query, change, asks_adhoc).await;
        }
    }
    drop(servers);
    server.stop().unwrap_or_else(|error| panic!("{error}"));
}

/// A query of a workload, `q01.sql`.
struct Query {
    number: u32,
    sql: String,
}

impl Query {
    fn name(&self) -> String {
        format!("q{:02}", self.number)
    }
}

fn queries(folder: &Path) -> Vec<Query> {
    let files = fs::read_dir(folder).expect("a readable folder");
    let files = files.map(|file| file.expect("a readable folder").path());
    let mut queries: Vec<_> = files
        .filter_map(|path| {
            let number = path.file_stem()?.to_str()?.strip_prefix('q')?.parse().ok()?;
            let sql = read(&path);
            Some(Query { number, sql: sql.trim_end().trim_end_matches(';').to_owned() })
        })
        .collect();
    queries.sort_by_key(|query| query.number);
    assert!(queries.len() > 20, "the queries of {}", folder.display());
    queries
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A session with an empty schema of PostgreSQL, if there is one to ask.
async fn postgresql(schema: &str) -> Option<Client> {
    let config = std::env::var("STILLFRAME_POSTGRESQL").ok()?;
    let config = config.parse().expect("a connection string");
    let client = Client::open(&config).await.expect("PostgreSQL takes the connection");
    client.query(&format!("drop schema if exists {schema} cascade; create schema {schema}")).await;
    client.query(&format!("set search_path to {schema}")).await;
    Some(client)
}

/// The servers that are to agree.
struct Servers {
    stillframe: Client,
    postgresql: Option<Client>,
}

impl Servers {
    fn all(&self) -> impl Iterator<Item = &Client> {
        [&self.stillframe].into_iter().chain(&self.postgresql)
    }

    async fn both(&self, sql: &str) {
        for server in self.all() {
            server.query(sql).await;
        }
    }

    async fn create(&self, queries: &[Query]) {
        for query in queries {
            let sql = format!("create materialized view {} as {}", query.name(), query.sql);
            self.stillframe.query(&sql).await;
        }
    }

    async fn load(&self, table: &str, rows: &[String]) {
        if rows.is_empty() {
            return;
        }
        let copy = format!("copy {table} from stdin (delimiter '|')");
        for server in self.all() {
            let sink = server.driver().copy_in(&copy).await.expect("COPY begins");
            let mut sink = Box::pin(sink);
            for piece in rows.chunks(500) {
                let mut text = piece.join("\n");
                text.push('\n');
                sink.send(std::io::Cursor::new(text.into_bytes())).await.expect("COPY goes on");
            }
            let copied = sink.as_mut().finish().await.expect("COPY ends");
            assert_eq!(copied, rows.len() as u64, "rows of {table}");
        }
    }

    /// Fails if a view's rows differ; how many they are.
    async fn compare(&self, query: &Query, change: &str, asks_adhoc: bool) -> usize {
        let name = query.name();
        let view = sorted(&self.stillframe, &format!("select * from {name}")).await;
        if let Some(postgresql) = &self.postgresql {
            let expected = sorted(postgresql, &query.sql).await;
            assert_same(&view, &expected, &format!("{name}, {change}: the view and PostgreSQL"));
        }
        if asks_adhoc || self.postgresql.is_none() {
            let adhoc = sorted(&self.stillframe, &query.sql).await;
            assert_same(&view, &adhoc, &format!("{name}, {change}: the view and the same query"));
        }
        view.len()
    }
}

async fn sorted(client: &Client, sql: &str) -> Vec<String> {
    let mut rows = client.rows(sql).await;
    rows.sort_unstable();
    rows
}

fn assert_same(actual: &[String], expected: &[String], what: &str) {
    if actual == expected {
        return;
    }
    let only = |rows: &[String], others: &[String]| {
        let only = rows.iter().filter(|row| others.binary_search(row).is_err());
        only.take(3).map(|row| format!("\n  {row}")).collect::<String>()
    };
    panic!(
        "{what}: {} and {} rows\nonly there:{}\nonly here:{}",
        actual.len(),
        expected.len(),
        only(actual, expected),
        only(expected, actual)
    );
}
