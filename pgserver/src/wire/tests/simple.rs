use super::client::{Server, values};

fn kinds(messages: &[super::client::Message]) -> String {
    messages.iter().map(|message| message.kind).collect()
}

#[tokio::test]
async fn each_statement_is_answered_up_to_the_first_error() {
    let server = Server::default();
    let mut client = server.connect().await;
    let messages = client.query("rows 4; done; fail; done").await;
    assert_eq!(kinds(&messages), "TDDDDSCCEZ");
    let rows: Vec<_> = messages.iter().filter(|message| message.kind == 'D').map(values).collect();
    assert_eq!(rows, [b"1", b"2", b"3", b"4"].map(|value| vec![Some(value.to_vec())]));
    assert_eq!(messages[5].strings(), ["stillframe.step", "7"]);
    assert_eq!(messages[6].strings(), ["SELECT 4"]);
    let error = &messages[8];
    let fields = ['S', 'V', 'C', 'M', 'D', 'H', 'P'].map(|letter| error.field(letter).unwrap());
    let expected = ["ERROR", "ERROR", "42P01", "no such table", "A detail.", "A hint.", "5"];
    assert_eq!(fields, expected);
}

#[tokio::test]
async fn an_error_of_syntax_keeps_every_statement_from_running() {
    let server = Server::default();
    let mut client = server.connect().await;
    assert_eq!(kinds(&client.query("done; syntax").await), "EZ");
}

#[tokio::test]
async fn text_without_statements_has_its_own_answer() {
    let server = Server::default();
    let mut client = server.connect().await;
    for text in ["", " ; ; "] {
        assert_eq!(kinds(&client.query(text).await), "IZ");
    }
}

#[tokio::test]
async fn the_status_follows_the_transaction() {
    let server = Server::default();
    let mut client = server.connect().await;
    for (text, expected) in
        [("done", b"I"), ("begin", b"T"), ("done", b"T"), ("break 1", b"E"), ("end", b"I")]
    {
        assert_eq!(client.query(text).await.last().unwrap().body, expected, "{text}");
    }
}

#[tokio::test]
async fn notices_and_changed_settings_are_told() {
    let server = Server::default();
    let mut client = server.connect().await;
    let messages = client.query("notice; zone").await;
    assert_eq!(kinds(&messages), "NCCSZ");
    assert_eq!(messages[0].field('M').as_deref(), Some("look"));
    assert_eq!(messages[3].strings(), ["TimeZone", "Europe/Paris"]);
}

#[tokio::test]
async fn bytes_that_are_no_text_are_an_error_of_the_statement() {
    let server = Server::default();
    let mut client = server.connect().await;
    client.send('Q', b"rows \xff\0").await;
    assert_eq!(client.error().await, "22021");
    assert_eq!(client.kinds('Z').await, "Z");
    assert_eq!(kinds(&client.query("done").await), "CZ");
}

#[tokio::test]
async fn a_panic_ends_its_own_connection_only() {
    let server = Server::default();
    let mut other = server.connect().await;
    let mut client = server.connect().await;
    client.send('Q', b"panic\0").await;
    let messages = client.ended().await;
    assert_eq!(kinds(&messages), "E");
    assert_eq!(messages[0].field('C').as_deref(), Some("XX000"));
    assert_eq!(kinds(&other.query("done").await), "CZ");
}
