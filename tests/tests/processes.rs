//! Hosts as processes: what is true in one process is true over many, and the loss of one is an
//! answer, never a wrong one.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use futures::{StreamExt as _, pin_mut};
use stillframe_tests::deadline::{PATIENCE, eventually, poll};
use stillframe_tests::{
    Client, Failure, Process, Processes, ProcessesOptions, Server, certificates, start_host,
};
use tempfile::TempDir;

/// Nobody waits longer for an answer, whatever is lost.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

/// Runs a statement again for as long as the cluster isn't ready.
async fn insist(client: &Client, sql: &str) {
    eventually(sql, || async {
        match client.try_query(sql).await {
            Ok(_) => Ok(()),
            Err(failure) if is_loss(&failure) => Err(failure.to_string()),
            Err(failure) => panic!("{failure}\n{sql}"),
        }
    })
    .await;
}

/// Whether that is what a client is told when a host is lost: not ready, shut down, out of date, or
/// unknown.
fn is_loss(failure: &Failure) -> bool {
    let states = ["57P01", "57P02", "57P03", "08006", "08007", "40001"];
    failure.sqlstate().is_some_and(|state| states.contains(&state))
}

/// An answer or an error of the right kind, in time.
async fn answered(client: &Client, sql: &str) -> bool {
    let began = Instant::now();
    let answer = client.try_query(sql).await;
    let took = began.elapsed();
    assert!(took < ANSWER_TIME_MAX, "{sql}: {answer:?} after {took:?}");
    match answer {
        Ok(_) => true,
        Err(failure) if is_loss(&failure) => false,
        Err(failure) => panic!("{failure}\n{sql}"),
    }
}

async fn epoch_is_empty(client: &Client) {
    eventually("a new epoch", || async {
        match client.try_query("SELECT count(*) FROM t").await {
            Err(Failure::Refused { sqlstate, .. }) if sqlstate == "42P01" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_hosts_answer_as_one() {
    let cluster = Processes::start(3, 2);
    let client = cluster.connect().await;
    insist(&client, "CREATE TABLE t (a int PRIMARY KEY, b int, c text)").await;
    client.execute("CREATE TABLE bag (a int)").await;
    client.execute("INSERT INTO t SELECT i, i % 3, 'x' FROM generate_series(1, 100) g(i)").await;
    client.execute("INSERT INTO bag VALUES (1), (1), (NULL)").await;
    client
        .execute(
            "CREATE MATERIALIZED VIEW v AS SELECT b, count(*) AS n, sum(a) AS s FROM t GROUP BY b",
        )
        .await;
    let view = "SELECT * FROM v ORDER BY b";
    assert_eq!(client.rows(view).await, ["0 33 1683", "1 34 1717", "2 33 1650"]);
    client.execute("UPDATE t SET b = 2 WHERE a = 3").await;
    client.execute("DELETE FROM t WHERE a = 1").await;
    assert_eq!(client.rows(view).await, ["0 32 1680", "1 33 1716", "2 34 1653"]);
    assert_eq!(client.rows("SELECT b, c FROM t WHERE a = 3").await, ["2 x"]);
    assert_eq!(client.number("SELECT count(*) FROM t").await, 99);
    assert_eq!(client.rows("SELECT a FROM bag ORDER BY a").await, ["1", "1", "NULL"]);
    assert_eq!(client.refused("INSERT INTO t VALUES (2, 0, '')").await, "23505");
    client.execute("CREATE MATERIALIZED VIEW w AS SELECT 6 / b AS q FROM t").await;
    assert_eq!(client.refused("SELECT * FROM w").await, "22012");
    assert_eq!(client.number("SELECT count(*) FROM stillframe.hosts").await, 3);
    client.execute("DROP MATERIALIZED VIEW w").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_host_is_an_error_and_then_a_new_epoch() {
    let mut cluster = Processes::start(3, 1);
    let (reader, writer) = (cluster.connect().await, cluster.connect().await);
    insist(&writer, "CREATE TABLE t (a int PRIMARY KEY, b int)").await;
    writer.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t").await;
    writer.execute("INSERT INTO t SELECT i, i FROM generate_series(1, 100) g(i)").await;

    cluster.hosts[1].kill();
    let reads = async {
        for _ in 0..3 {
            assert!(!answered(&reader, "SELECT count(*), sum(b) FROM t").await);
        }
    };
    let writes = async { answered(&writer, "UPDATE t SET b = b + 1").await };
    let (inserter, definer) = (cluster.connect().await, cluster.connect().await);
    let inserts = async { answered(&inserter, "INSERT INTO t VALUES (1000, 0)").await };
    let defines = async { answered(&definer, "CREATE TABLE u (a int)").await };
    let (wrote, (), inserted, defined) = tokio::join!(writes, reads, inserts, defines);
    assert!(!inserted && !defined, "there is no step without all hosts");
    assert!(!wrote, "a part of the table is gone");

    cluster.add_host();
    epoch_is_empty(&reader).await;
    insist(&writer, "CREATE TABLE t (a int PRIMARY KEY, b int)").await;
    writer.execute("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)").await;
    assert_eq!(reader.rows("SELECT sum(b) FROM t").await, ["6"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_host_is_waited_for() {
    let cluster = Processes::start(3, 1);
    let (reader, writer) = (cluster.connect().await, cluster.connect().await);
    insist(&writer, "CREATE TABLE t (a int PRIMARY KEY, b int)").await;
    writer.execute("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)").await;

    cluster.hosts[2].signal("STOP");
    let began = Instant::now();
    let paused = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        cluster.hosts[2].signal("CONT");
    };
    let write = async { answered(&writer, "UPDATE t SET b = 10").await };
    let read = async { answered(&reader, "SELECT sum(b) FROM t").await };
    let (wrote, _, ()) = tokio::join!(write, read, paused);
    assert!(began.elapsed() >= Duration::from_secs(3));

    // The same epoch, with all that is in it.
    let sum = reader.number("SELECT sum(b) FROM t").await;
    assert_eq!(sum, if wrote { 30 } else { 6 });
    writer.execute("UPDATE t SET b = 1").await;
    assert_eq!(reader.number("SELECT sum(b) FROM t").await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_killed_in_the_middle_of_a_scan_is_no_short_result() {
    const ROWS: usize = 200_000;
    let mut cluster = Processes::start(3, 1);
    let client = cluster.connect().await;
    insist(&client, "CREATE TABLE t (a int PRIMARY KEY, b text)").await;
    let filler = "x".repeat(200);
    let insert =
        format!("INSERT INTO t SELECT i, '{filler}' || i FROM generate_series(1, {ROWS}) g(i)");
    client.execute(&insert).await;

    let none: [&str; 0] = [];
    let rows = client.driver().query_raw("SELECT a, b FROM t", none).await.expect("rows");
    pin_mut!(rows);
    let mut read = 0;
    while read < 100 {
        rows.next().await.expect("there are more rows").expect("a row");
        read += 1;
    }
    cluster.hosts[0].kill();
    let drained = tokio::time::timeout(PATIENCE, async {
        while let Some(row) = rows.next().await {
            match row {
                Ok(_) => read += 1,
                Err(error) => return Failure::from(error),
            }
        }
        panic!("{read} rows of {ROWS} without an error");
    });
    let failure = drained.await.expect("an end");
    assert!(is_loss(&failure), "{failure}");
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_start_in_any_order_and_stop_when_told() {
    // A free address, which nobody else is given soon.
    let listen = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("one");
    let one = ProcessesOptions::new(1);
    let hosts: Vec<_> = (0..2).map(|_| start_host(listen, &one, &[])).collect();
    eventually("hosts look for their coordinator", || async {
        let look = hosts.iter().all(|host| host.stderr().contains("cannot be reached"));
        if look { Ok(()) } else { Err("silent".to_owned()) }
    })
    .await;
    let mut cluster = Processes::start_coordinator(2, one.clone(), &listen.to_string());
    cluster.hosts = hosts;
    let client = cluster.connect().await;
    insist(&client, "CREATE TABLE t (a int)").await;
    client.execute("INSERT INTO t VALUES (1), (2)").await;

    // A coordinator that starts again knows nothing, and its hosts start again too.
    cluster.coordinator.kill();
    let hosts = std::mem::take(&mut cluster.hosts);
    let mut cluster = Processes::start_coordinator(2, one.clone(), &listen.to_string());
    cluster.hosts = hosts;
    let client = cluster.connect().await;
    epoch_is_empty(&client).await;

    for host in &mut cluster.hosts {
        host.signal("TERM");
        assert!(host.ended().success(), "{}", host.stderr());
        assert_eq!(host.temporary_files(), 0, "files are left behind");
    }
    cluster.coordinator.signal("TERM");
    assert!(cluster.coordinator.ended().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_no_certificate_of_the_cluster_stays_outside() {
    let (_folder, ours) = certificates();
    let (_other_folder, theirs) = certificates();
    let mut cluster = Processes::start_with(2, ProcessesOptions::new(1).certified(&ours));
    let client = cluster.connect().await;
    insist(&client, "CREATE TABLE t (a int PRIMARY KEY, b text)").await;
    client.execute("CREATE MATERIALIZED VIEW v AS SELECT b, count(*) AS n FROM t GROUP BY b").await;
    client.execute("INSERT INTO t SELECT i, 'x' FROM generate_series(1, 10000) g(i)").await;
    assert_eq!(client.rows("SELECT * FROM v").await, ["x 10000"]);
    assert_eq!(client.number("SELECT count(*) FROM t").await, 10_000);

    cluster.hosts.pop();
    let registering = cluster.registering();
    let plain = ProcessesOptions::new(1);
    let foreign = ProcessesOptions::new(1).certified(&theirs);
    for options in [plain, foreign] {
        let host = start_host(registering, &options, &[]);
        let told = poll(PATIENCE, || {
            let stderr = host.stderr();
            let refused = ["cannot be reached", "does not answer"];
            refused.iter().any(|told| stderr.contains(told)).then_some(())
        });
        assert!(told.is_some(), "{}", host.stderr());
    }
    cluster.add_host();
    epoch_is_empty(&client).await;
}

/// Each replacement of the circuit has ports, threads and files of its own.
#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_replacements_leave_nothing_behind() {
    const WARM: usize = 20;
    let cluster = Processes::start(2, 1);
    let client = cluster.connect().await;
    insist(&client, "CREATE TABLE t (a int)").await;
    let replace = async |views: usize| {
        for _ in 0..views {
            client.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t").await;
            client.execute("DROP MATERIALIZED VIEW v").await;
        }
    };
    replace(WARM).await;
    let before: Vec<_> = cluster.hosts.iter().map(usage).collect();
    replace(250 - WARM).await;
    for (host, (files, threads)) in cluster.hosts.iter().zip(before) {
        // What is being closed right now may still be there.
        let flat = poll(PATIENCE, || {
            let (files_now, threads_now) = usage(host);
            (files_now <= files + 4 && threads_now <= threads + 4).then_some(())
        });
        assert!(flat.is_some(), "files {files}, threads {threads}; now {:?}", usage(host));
    }
}

/// What a circuit has held is free when it is replaced: also what dbsp would keep for ever, such as
/// the mailboxes of all pairs of workers, and the lists of blocks of files that are gone.
#[tokio::test(flavor = "multi_thread")]
async fn memory_is_flat_while_views_come_and_go() {
    const WARM: usize = 30;
    const VIEWS: usize = 90;
    /// Each left more than half a megabyte behind once; the profiler in dbsp keeps a few kilobytes
    /// of every thread.
    const KB_PER_VIEW_MAX: usize = 250;
    let server = Server::start(3, 2);
    let client = server.connect().await;
    client.execute("CREATE TABLE t (a int PRIMARY KEY, b int)").await;
    client.execute("INSERT INTO t SELECT i, i % 7 FROM generate_series(1, 100) g(i)").await;
    let replace = async |views: usize| {
        for view in 0..views {
            let query = match view % 2 {
                0 => "SELECT b, count(*) AS n, sum(a) AS s FROM t GROUP BY b",
                _ => "SELECT a, row_number() OVER (PARTITION BY b ORDER BY a) AS n FROM t",
            };
            client.execute(&format!("CREATE MATERIALIZED VIEW v AS {query}")).await;
            client.execute("DROP MATERIALIZED VIEW v").await;
        }
    };
    replace(WARM).await;
    let before = memory_kb(server.front());
    replace(VIEWS).await;
    let after = memory_kb(server.front());
    assert!(after <= before + VIEWS * KB_PER_VIEW_MAX, "{before} KB, then {after} KB");
    server.stop().unwrap_or_else(|error| panic!("{error}"));
}

/// The memory that a process has used and not given back.
fn memory_kb(process: &Process) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", process.id())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// How many open files and threads a process has.
fn usage(process: &Process) -> (usize, usize) {
    let count = |what| {
        let folder = format!("/proc/{}/{what}", process.id());
        fs::read_dir(folder).expect("it runs").count()
    };
    (count("fd"), count("task"))
}

/// The demo's views are of one step with its tables, its page and metrics tell of them, and it ends
/// when it is told to.
#[tokio::test(flavor = "multi_thread")]
async fn the_demo_shows_what_happens() {
    let folder = TempDir::new().expect("a temporary folder");
    let ready = folder.path().join("ready");
    let demo = Process::start(&[
        "demo".to_owned(),
        "--workers=1".to_owned(),
        "--pg-listen=127.0.0.1:0".to_owned(),
        "--http-listen=127.0.0.1:0".to_owned(),
        format!("--ready-file={}", ready.display()),
    ]);
    let told = poll(PATIENCE, || serde_json::from_slice(&fs::read(&ready).ok()?).ok());
    let told: serde_json::Value = told.unwrap_or_else(|| panic!("{}", demo.stderr()));
    let address = |name: &str| -> SocketAddr {
        told[name].as_str().expect("an address").parse().expect("one")
    };
    let client = Client::connect(address("pg")).await.expect("a session");
    let sql = "SELECT (SELECT sum(bids) FROM channels) = (SELECT count(*) FROM bid)";
    eventually("bids", || async {
        match client.number("SELECT count(*) FROM bid").await {
            count if count > 100 => Ok(()),
            count => Err(count.to_string()),
        }
    })
    .await;
    for _ in 0..20 {
        assert_eq!(client.rows(sql).await, ["t"]);
    }
    let page = get(address("http"), "/");
    for part in
        ["200 OK", "Views and tables", "<td>categories</td>", "Running queries", "Newest steps"]
    {
        assert!(page.contains(part), "{part}\n{page}");
    }
    let metrics = get(address("http"), "/metrics");
    let step = metrics.lines().find_map(|line| line.strip_prefix("stillframe_step "));
    let step: u64 = step.expect("a step").parse().expect("a number");
    assert!(step > 0 && metrics.contains("stillframe_relation_entries{schema=\"public\""));
    assert!(get(address("http"), "/nowhere").contains("404"));
    demo.stop().unwrap_or_else(|error| panic!("{error}"));
}

fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a page");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn options_come_from_a_file_too() {
    let folder = TempDir::new().expect("a temporary folder");
    let file = folder.path().join("stillframe.toml");
    let check = |text: &str| {
        fs::write(&file, text).expect("a file can be written");
        let mut check = Process::start(&["check-config", file.to_str().expect("text")]);
        let status = check.ended();
        (status.success(), check.stderr())
    };
    let fine = "[coordinator]\nhosts = 3\npg-listen = \"127.0.0.1:0\"\n[host]\nplace = 1\n";
    assert!(check(fine).0, "{fine}");
    let (right, told) = check(
        "[coordinator]\nhosts = 0\nhots = 3\nlisten = \"0.0.0.0:1\"\n\
         [host]\nexchange-ports = \"7\"\nworkers = [1]\n[hosts]\nplace = 1\n",
    );
    assert!(!right);
    // All of them, each with its place.
    for problem in [
        "coordinator.hosts: invalid value '0'",
        "coordinator.hots: there is no such option",
        "host.exchange-ports: invalid value '7'",
        "host.workers: neither text",
        "hosts: there is no such section",
    ] {
        assert!(told.contains(problem), "{problem}\n{told}");
    }
    let (right, told) = check("[coordinator]\nlisten = \"0.0.0.0:1\"\ncerts = \"/nowhere\"\n");
    assert!(!right && told.contains("cannot read /nowhere/ca.crt"), "{told}");
    let (right, told) = check("[host]\nlisten = \"192.0.2.1:1\"\n");
    assert!(!right && told.contains("without certificates"), "{told}");
    assert!(!check("[host\n").0);

    // What is given on the command line counts.
    let ready = folder.path().join("ready");
    fs::write(&file, "[serve]\npg-listen = \"127.0.0.1:0\"\nhosts = 2\nworkers = 7\n")
        .expect("a file");
    let arguments = ["--workers=1", "--config", file.to_str().expect("text"), "--ready-file"];
    let mut server = Process::start(&[&arguments[..], &[ready.to_str().expect("text")]].concat());
    let stderr = poll(PATIENCE, || match server.exited() {
        Some(status) => panic!("{status}: {}", server.stderr()),
        None => ready.exists().then(|| server.stderr()),
    });
    let stderr = stderr.expect("it starts");
    assert!(stderr.contains("hosts=2") && stderr.contains("workers=1"), "{stderr}");
    server.stop().unwrap_or_else(|error| panic!("{error}"));
    let mut host = Process::start(&["host", "--config", "/nowhere"]);
    assert!(!host.ended().success() && host.stderr().contains("/nowhere"));
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_refused() {
    let cluster = Processes::start_coordinator(1, ProcessesOptions::new(2), "127.0.0.1:0");
    let registering = cluster.registering();
    let cases: [(u32, &[&str], &str); 3] = [
        (2, &["--cluster", "other"], "cluster \"stillframe\""),
        (1, &[], "--workers 2"),
        (2, &["--place", "7"], "there is no place 7"),
    ];
    for (workers, more, told) in cases {
        let more: Vec<_> = more.iter().copied().map(str::to_owned).collect();
        let mut host = start_host(registering, &ProcessesOptions::new(workers), &more);
        assert!(!host.ended().success());
        let stderr = host.stderr();
        assert!(stderr.contains("refused") && stderr.contains(told), "{stderr}");
        assert_eq!(host.temporary_files(), 0, "files are left behind");
    }
    let client = cluster.connect().await;
    assert!(!answered(&client, "CREATE TABLE t (a int)").await);
}
