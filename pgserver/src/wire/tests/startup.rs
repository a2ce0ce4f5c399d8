use tokio::io::AsyncReadExt;

use super::client::Server;

#[tokio::test]
async fn a_client_is_told_who_we_are() {
    let server = Server::default();
    let mut client = server.stranger();
    client
        .startup(196_608, &[("user", "anybody"), ("database", "postgres"), ("TimeZone", "UTC")])
        .await;
    let messages = client.until('Z').await;
    let parameters: Vec<_> = messages
        .iter()
        .filter(|message| message.kind == 'S')
        .map(|message| message.strings()[0].clone())
        .collect();
    assert_eq!(parameters, ["TimeZone"]);
    assert_eq!(messages[0].kind, 'R');
    assert!(messages.iter().any(|message| message.kind == 'K'));
    assert_eq!(messages.last().unwrap().body, b"I");
}

#[tokio::test]
async fn encryption_is_refused_and_the_connection_goes_on() {
    let server = Server::default();
    let mut client = server.stranger();
    for code in [80_877_104_u32, 80_877_103] {
        client.raw(&[&8_u32.to_be_bytes()[..], &code.to_be_bytes()].concat()).await;
        assert_eq!(client.stream.read_u8().await.unwrap(), b'N');
    }
    client.startup(196_608, &[("user", "u")]).await;
    client.until('Z').await;
}

#[tokio::test]
async fn newer_protocols_are_negotiated_down() {
    let server = Server::default();
    let mut client = server.stranger();
    client.startup(196_610, &[("user", "u"), ("_pq_.x", "1")]).await;
    let messages = client.until('Z').await;
    assert_eq!(messages[0].kind, 'v');
    assert_eq!(messages[0].body[..8], [0, 3, 0, 0, 0, 0, 0, 1]);
}

#[tokio::test]
async fn whoever_cannot_be_served_is_told_why() {
    let server = Server::default();
    for (version, parameters, expected) in [
        (196_608, vec![("user", "u"), ("database", "other")], "3D000"),
        (196_608, vec![("database", "stillframe")], "28000"),
        (131_072, vec![("user", "u")], "0A000"),
        (196_608, vec![("user", "u"), ("replication", "true")], "0A000"),
        (196_608, vec![("user", "u"), ("no_such_setting", "1")], "42704"),
        (196_608, vec![("user", "u"), ("options", "nonsense")], "42601"),
    ] {
        let mut client = server.stranger();
        client.startup(version, &parameters).await;
        let messages = client.ended().await;
        let error = messages.last().unwrap();
        assert_eq!(error.field('C').as_deref(), Some(expected), "{parameters:?}");
        assert_eq!(error.field('S').as_deref(), Some("FATAL"));
    }
}

#[tokio::test]
async fn garbage_ends_its_own_connection_only() {
    let server = Server::default();
    let bytes: [&[u8]; 6] = [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        &[0xff; 64],
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03",
        b"\0\0\0\x03abc",
        b"\0\0\0\x08\0\x03\0\0",
        b"\0\0\0\x0c\0\x03\0\0user",
    ];
    for bytes in bytes {
        let mut client = server.stranger();
        client.raw(bytes).await;
        let messages = client.ended().await;
        assert_eq!(messages[0].field('C').as_deref(), Some("08P01"), "{bytes:?}");
    }
    let mut client = server.connect().await;
    client.query("done").await;
}

#[tokio::test]
async fn garbage_after_the_start_ends_the_connection() {
    let server = Server::default();
    for bytes in [&b"\x01\0\0\0\x04"[..], b"Q\0\0\0\x03", b"Q\x7f\xff\xff\xff", b"S\0\x01\0\0"] {
        let mut client = server.connect().await;
        client.raw(bytes).await;
        let messages = client.ended().await;
        assert_eq!(messages[0].field('C').as_deref(), Some("08P01"), "{bytes:?}");
        assert_eq!(messages[0].field('S').as_deref(), Some("FATAL"));
    }
}
