//! What transactions that run at the same time may see of each other, on three hosts.
//!
//! - [`hermitage`]: the anomalies of Adya and of Kleppmann's Hermitage, statement by statement, with
//!   PostgreSQL's answers.
//! - [`elle`]: many clients append to lists and read them, through tables and views; a checker in
//!   the manner of Elle looks for anomalies in what they saw.
//! - [`own_writes`]: random transactions read what they have written, through tables and views.
//!
//! `STILLFRAME_POSTGRESQL="host=... user=..."` asks a PostgreSQL server too; with
//! `STILLFRAME_UPDATE=1` its answers are recorded.

mod elle;
mod hermitage;
mod own_writes;

use stillframe_tests::Client;

/// Nobody waits so long but for another transaction.
const A_WHILE: std::time::Duration = std::time::Duration::from_millis(250);

/// Sessions with the PostgreSQL server that is to be asked too.
async fn postgresql(sessions: usize) -> Option<Vec<Client>> {
    let config = std::env::var("STILLFRAME_POSTGRESQL").ok()?;
    let config = config.parse().expect("a connection string");
    let mut clients = Vec::new();
    for _ in 0..sessions {
        clients.push(Client::open(&config).await.expect("PostgreSQL takes the connection"));
    }
    Some(clients)
}
