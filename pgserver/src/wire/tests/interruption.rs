use std::sync::atomic::Ordering;
use std::time::Duration;

use super::client::{Client, Server};

/// Starts a statement that doesn't end.
async fn busy(server: &Server, statement: &str) -> Client {
    let mut client = server.connect().await;
    client.send('Q', format!("{statement}\0").as_bytes()).await;
    while server.world.alive() == 0 {
        tokio::task::yield_now().await;
    }
    client
}

#[tokio::test]
async fn a_cancel_request_stops_what_runs_waits_or_streams() {
    let server = Server::default();
    for statement in ["hang", "stall 2", "endless"] {
        let mut client = busy(&server, statement).await;
        let mut canceler = server.stranger();
        let (process, secret) = client.key;
        let mut packet = vec![];
        for number in [16, 80_877_102, process, secret] {
            packet.extend(number.to_be_bytes());
        }
        canceler.raw(&packet).await;
        assert!(canceler.ended().await.is_empty(), "a cancel request has no answer");
        server.idle().await;
        assert_eq!(client.error().await, "57014", "{statement}");
        client.until('Z').await;
        client.query("done").await;
    }
}

#[tokio::test]
async fn a_cancel_request_for_a_silent_client_means_nothing() {
    let server = Server::default();
    let mut client = server.connect().await;
    server.keys.cancel(client.key.0, client.key.1);
    let messages = client.query("rows 4").await;
    assert!(messages.iter().all(|message| message.kind != 'E'));
}

#[tokio::test]
async fn what_is_committing_is_not_canceled() {
    let server = Server::default();
    let mut client = busy(&server, "commit-slowly").await;
    server.keys.cancel(client.key.0, client.key.1);
    server.world.go_on.notify_one();
    assert_eq!(client.kinds('Z').await, "CZ");
}

#[tokio::test]
async fn a_statement_has_a_time_limit() {
    let server = Server::default();
    *server.world.timeout.lock().unwrap() = Some(Duration::from_millis(20));
    for statement in ["hang", "stall 2", "endless"] {
        let mut client = server.connect().await;
        client.send('Q', format!("{statement}\0").as_bytes()).await;
        let messages = client.until('Z').await;
        let error = messages.iter().find(|message| message.kind == 'E').unwrap();
        assert_eq!(error.field('C').as_deref(), Some("57014"), "{statement}");
        assert!(error.field('M').unwrap().contains("timeout"));
    }
    server.idle().await;
}

#[tokio::test]
async fn a_client_that_vanishes_frees_what_it_held() {
    let server = Server::default();
    for statement in ["hang", "stall 2", "endless", "commit-slowly"] {
        busy(&server, statement).await.vanish().await;
        assert_eq!(server.world.alive(), 0, "{statement}");
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_a_bounded_part_of_its_result() {
    let server = Server::default();
    let mut client = busy(&server, "endless").await;
    // It is stuck when the number of batches stands still.
    let batches = || server.world.batches.load(Ordering::SeqCst);
    let mut last = (batches(), 0);
    while last.1 < 1000 {
        tokio::task::yield_now().await;
        last = if batches() == last.0 { (last.0, last.1 + 1) } else { (batches(), 0) };
    }
    // 1,000 rows take some 15 kB; a piece and the pipe hold less than 100 kB.
    assert!((1..10).contains(&batches()), "{}", batches());
    assert_eq!(client.next().await.unwrap().kind, 'T');
    client.vanish().await;
    assert_eq!(server.world.alive(), 0);
}

#[tokio::test]
async fn rows_that_are_there_are_sent_while_the_others_are_waited_for() {
    let server = Server::default();
    let mut client = busy(&server, "stall 4").await;
    for expected in "TDDDD".chars() {
        assert_eq!(client.next().await.unwrap().kind, expected);
    }
    client.vanish().await;
}

#[tokio::test]
async fn requests_that_come_early_wait_for_their_turn() {
    let server = Server::default();
    let mut client = busy(&server, "commit-slowly").await;
    client.send('Q', b"rows 1\0").await;
    client.send('Q', b"done\0").await;
    server.world.go_on.notify_one();
    assert_eq!(client.kinds('Z').await, "CZ");
    assert_eq!(client.kinds('Z').await, "TDSCZ");
    assert_eq!(client.kinds('Z').await, "CZ");
}

#[tokio::test]
async fn the_server_ends_everything_when_it_stops() {
    let server = Server::default();
    let idle = server.connect().await;
    let busy = busy(&server, "hang").await;
    server.stopping.send_replace(true);
    for client in [idle, busy] {
        let messages = client.ended().await;
        assert_eq!(messages[0].field('C').as_deref(), Some("57P01"));
    }
    assert_eq!(server.world.alive(), 0);
}
