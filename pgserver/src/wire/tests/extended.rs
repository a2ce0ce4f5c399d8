use super::client::{Server, values};

#[tokio::test]
async fn a_portal_gives_its_rows_a_part_at_a_time() {
    let server = Server::default();
    let mut client = server.connect().await;
    client.query("begin").await;
    client.parse("s", "rows 5", &[]).await;
    client.bind("p", "s").await;
    for _ in 0..4 {
        client.execute("p", 2).await;
    }
    client.send('S', b"").await;
    assert_eq!(client.kinds('Z').await, "12DDsDDsDSCCZ");
    assert_eq!(server.world.alive(), 0, "the result is freed when it is drained");
}

#[tokio::test]
async fn a_portal_that_is_closed_or_left_behind_frees_its_result() {
    let server = Server::default();
    let mut client = server.connect().await;
    client.query("begin").await;
    client.parse("", "endless", &[]).await;
    client.bind("p", "").await;
    client.execute("p", 10).await;
    client.send('H', b"").await;
    client.until('s').await;
    assert_eq!(server.world.alive(), 1);
    client.send('C', b"Pp\0").await;
    client.send('H', b"").await;
    client.until('3').await;
    assert_eq!(server.world.alive(), 0);
    client.bind("q", "").await;
    client.execute("q", 10).await;
    client.send('S', b"").await;
    client.until('Z').await;
    assert_eq!(server.world.alive(), 1, "a portal lives as long as its transaction");
    client.query("end").await;
    assert_eq!(server.world.alive(), 0);
}

#[tokio::test]
async fn after_an_error_everything_up_to_sync_is_passed_over() {
    let server = Server::default();
    let mut client = server.connect().await;
    client.parse("", "fail", &[]).await;
    client.bind("", "").await;
    client.execute("", 0).await;
    assert_eq!(client.error().await, "42P01", "the error is sent at once");
    client.execute("", 0).await;
    client.send('Q', b"done\0").await;
    client.parse("", "done", &[]).await;
    client.send('S', b"").await;
    assert_eq!(client.kinds('Z').await, "Z");
    client.parse("", "done", &[]).await;
    client.bind("", "").await;
    client.execute("", 0).await;
    client.send('S', b"").await;
    assert_eq!(client.kinds('Z').await, "12CZ");
}

#[tokio::test]
async fn names_are_checked() {
    let server = Server::default();
    let mut client = server.connect().await;
    client.parse("s", "done", &[]).await;
    client.parse("s", "done", &[]).await;
    assert_eq!(client.error().await, "42P05");
    client.send('S', b"").await;
    client.bind("p", "nothing").await;
    assert_eq!(client.error().await, "26000");
    client.send('S', b"").await;
    client.execute("nothing", 0).await;
    assert_eq!(client.error().await, "34000");
    client.send('S', b"").await;
    client.bind("p", "s").await;
    client.bind("p", "s").await;
    assert_eq!(client.error().await, "42P03");
    client.send('S', b"").await;
    client.send('C', b"Ss\0").await;
    client.send('C', b"Snothing\0").await;
    client.bind("", "s").await;
    assert_eq!(client.error().await, "26000");
    client.send('S', b"").await;
    client.parse("", "done; done", &[]).await;
    assert_eq!(client.error().await, "42601");
    client.send('S', b"").await;
    client.parse("", "echo", &[4_000_000]).await;
    assert_eq!(client.error().await, "42704");
}

#[tokio::test]
async fn statements_and_portals_are_described() {
    let server = Server::default();
    let mut client = server.connect().await;
    client.parse("", "echo", &[20]).await;
    client.send('D', b"S\0").await;
    client.send('B', b"\0\0\0\0\0\x01\0\0\0\x011\0\x01\0\x01").await;
    client.send('D', b"P\0").await;
    client.send('S', b"").await;
    let messages = client.until('Z').await;
    let kinds: String = messages.iter().map(|message| message.kind).collect();
    assert_eq!(kinds, "1tT2TZ");
    assert_eq!(messages[1].body, [0, 1, 0, 0, 0, 20]);
    let format = |body: &[u8]| body[body.len() - 1];
    assert_eq!((format(&messages[2].body), format(&messages[4].body)), (0, 1));
    client.parse("", "done", &[]).await;
    client.send('D', b"S\0").await;
    client.parse("", "", &[]).await;
    client.send('D', b"S\0").await;
    client.bind("", "").await;
    client.execute("", 0).await;
    client.send('S', b"").await;
    assert_eq!(client.kinds('Z').await, "1tn1tn2IZ");
}

#[tokio::test]
async fn values_travel_in_the_format_that_is_asked_for() {
    let server = Server::default();
    let mut client = server.connect().await;
    client.parse("", "echo", &[23]).await;
    // A binary parameter, a text result; then the other way round.
    client.send('B', b"\0\0\0\x01\0\x01\0\x01\0\0\0\x04\0\0\0\x2a\0\0").await;
    client.execute("", 0).await;
    client.send('B', b"\0\0\0\0\0\x01\0\0\0\x0242\0\x01\0\x01").await;
    client.execute("", 0).await;
    client.send('S', b"").await;
    let messages = client.until('Z').await;
    let rows: Vec<_> = messages.iter().filter(|m| m.kind == 'D').map(values).collect();
    assert_eq!(rows, [vec![Some(b"42".to_vec())], vec![Some(vec![0, 0, 0, 42])]]);
}

#[tokio::test]
async fn a_wrong_bind_is_an_error_of_the_statement() {
    let server = Server::default();
    let mut client = server.connect().await;
    client.parse("s", "echo", &[23]).await;
    for (bind, expected) in [
        (&b"\0s\0\0\0\0\0\0\0"[..], "08P01"),
        (b"\0s\0\0\x01\0\x01\0\x01\0\0\0\x03\0\0\0\0\0", "22P03"),
        (b"\0s\0\0\x01\0\x07\0\x01\0\0\0\x011\0\0", "22023"),
        (b"\0s\0\0\x02\0\0\0\0\0\x01\0\0\0\x011\0\0", "08P01"),
        (b"\0s\0\0\0\0\x01\0\0\0\x011\0\x02\0\0\0\0", "08P01"),
        (b"\0s\0\0\0\0\x01\0\0\0\x02\0\0\0\0", "22021"),
        (b"\0s\0\0\0\0\x01\0\0\xff\x001", "08P01"),
    ] {
        client.send('B', bind).await;
        assert_eq!(client.error().await, expected, "{bind:?}");
        client.send('S', b"").await;
        assert_eq!(client.kinds('Z').await, "Z");
    }
}

#[tokio::test]
async fn what_has_run_does_not_run_again() {
    let server = Server::default();
    let mut client = server.connect().await;
    client.parse("", "done", &[]).await;
    client.bind("", "").await;
    client.execute("", 0).await;
    client.execute("", 0).await;
    assert_eq!(client.error().await, "55000");
}
