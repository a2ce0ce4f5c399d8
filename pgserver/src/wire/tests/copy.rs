use super::client::{Client, Server};

async fn copy(server: &Server) -> Client {
    let mut client = server.connect().await;
    client.send('Q', b"copy\0").await;
    let messages = client.until('G').await;
    assert_eq!(messages.last().unwrap().body, [0, 0, 2, 0, 0, 0, 0]);
    client
}

#[tokio::test]
async fn data_comes_in_pieces_and_counts_at_the_end() {
    let server = Server::default();
    let mut client = copy(&server).await;
    client.send('d', b"a,").await;
    client.send('H', b"").await;
    client.send('d', b"b\n").await;
    client.send('c', b"").await;
    assert_eq!(client.kinds('Z').await, "CZ");
    assert_eq!(*server.world.copied.lock().unwrap(), b"a,b\n");
}

#[tokio::test]
async fn a_copy_that_fails_leaves_nothing_and_what_still_comes_is_passed_over() {
    let server = Server::default();
    let mut client = copy(&server).await;
    client.send('d', b"a!").await;
    assert_eq!(client.error().await, "22P04");
    client.send('d', b"more").await;
    client.send('c', b"").await;
    assert_eq!(client.kinds('Z').await, "Z");
    client.query("done").await;

    client.send('Q', b"copy\0").await;
    client.send('d', b"a").await;
    client.send('f', b"enough\0").await;
    assert_eq!(client.error().await, "57014");
    client.until('Z').await;

    client.send('Q', b"copy\0").await;
    client.send('B', b"").await;
    assert_eq!(client.error().await, "08P01");
    client.until('Z').await;
    assert!(server.world.copied.lock().unwrap().is_empty());
    assert_eq!(server.world.alive(), 0);
}

#[tokio::test]
async fn a_copy_can_be_canceled() {
    let server = Server::default();
    let mut client = copy(&server).await;
    server.keys.cancel(client.key.0, client.key.1);
    assert_eq!(client.error().await, "57014");
    client.until('Z').await;
    assert_eq!(server.world.alive(), 0);
}

#[tokio::test]
async fn a_client_that_vanishes_in_the_middle_leaves_nothing() {
    let server = Server::default();
    let mut client = copy(&server).await;
    client.send('d', b"a,b\n").await;
    client.vanish().await;
    assert!(server.world.copied.lock().unwrap().is_empty());
    assert_eq!(server.world.alive(), 0);
}

#[tokio::test]
async fn copy_works_in_the_extended_protocol() {
    let server = Server::default();
    let mut client = server.connect().await;
    client.parse("", "copy", &[]).await;
    client.bind("", "").await;
    client.execute("", 0).await;
    client.send('S', b"").await;
    client.until('G').await;
    client.send('d', b"x").await;
    client.send('c', b"").await;
    client.send('S', b"").await;
    assert_eq!(client.kinds('Z').await, "CZ");
    assert_eq!(*server.world.copied.lock().unwrap(), b"x");
}
