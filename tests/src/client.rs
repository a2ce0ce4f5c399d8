//! A session with a server, through a driver.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::config::Config;
use tokio_postgres::{NoTls, SimpleQueryMessage};

use crate::deadline::PATIENCE;

/// A session. It ends when it is dropped.
#[derive(Debug)]
pub struct Client {
    driver: tokio_postgres::Client,
    connection: JoinHandle<()>,
}

/// What the last statement of a query answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The columns' names; none if the statement returns no rows.
    pub columns: Option<Vec<String>>,
    /// The values as text, NULL as `NULL` and nothing as `(empty)`.
    pub rows: Vec<Vec<String>>,
    /// How many rows were returned or changed.
    pub count: u64,
}

/// Why a statement failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The server says so.
    #[error("{sqlstate}: {message}")]
    Refused {
        /// Five characters.
        sqlstate: String,
        /// The primary message.
        message: String,
    },
    /// The connection broke, or what came wasn't the protocol.
    #[error("connection lost: {0}")]
    Lost(String),
    /// No answer came in time.
    #[error("no answer within {0:?}")]
    Hung(Duration),
}

impl Failure {
    /// The SQLSTATE, if the server has answered.
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Self::Refused { sqlstate, .. } => Some(sqlstate),
            Self::Lost(_) | Self::Hung(_) => None,
        }
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(refused) => Self::Refused {
                sqlstate: refused.code().code().to_owned(),
                message: refused.message().to_owned(),
            },
            None => Self::Lost(
                std::error::Error::source(&error)
                    .map_or_else(|| error.to_string(), |source| format!("{error}: {source}")),
            ),
        }
    }
}

impl Client {
    /// Opens a session with the default database of a server under test.
    pub async fn connect(address: SocketAddr) -> Result<Self, Failure> {
        let mut config = Config::new();
        config.host(address.ip().to_string()).port(address.port());
        config.user("tester").dbname("stillframe");
        Self::open(&config).await
    }

    /// Opens a session with any server.
    pub async fn open(config: &Config) -> Result<Self, Failure> {
        let (driver, connection) = in_time(config.connect(NoTls)).await?;
        let connection = tokio::spawn(async move {
            // Its error is seen by the statement that waits.
            let _ = connection.await;
        });
        Ok(Self { driver, connection })
    }

    /// Runs a query string through the simple protocol; the answer of its last statement.
    pub async fn try_query(&self, sql: &str) -> Result<Answer, Failure> {
        let messages = in_time(self.driver.simple_query(sql)).await?;
        let mut answer = Answer::default();
        let mut complete = false;
        for message in messages {
            if complete {
                answer = Answer::default();
                complete = false;
            }
            match message {
                SimpleQueryMessage::RowDescription(columns) => {
                    let names = columns.iter().map(|column| column.name().to_owned());
                    answer.columns = Some(names.collect());
                }
                SimpleQueryMessage::Row(row) => {
                    let values = (0..row.len()).map(|column| shown(row.get(column)));
                    answer.rows.push(values.collect());
                }
                SimpleQueryMessage::CommandComplete(count) => {
                    answer.count = count;
                    complete = true;
                }
                _ => {}
            }
        }
        Ok(answer)
    }

    /// Runs a statement that must succeed.
    pub async fn query(&self, sql: &str) -> Answer {
        self.try_query(sql).await.unwrap_or_else(|failure| panic!("{failure}\n{sql}"))
    }

    /// Runs a statement that must succeed; how many rows it has returned or changed.
    pub async fn execute(&self, sql: &str) -> u64 {
        self.query(sql).await.count
    }

    /// The rows of a query that must succeed, values separated by spaces.
    pub async fn rows(&self, sql: &str) -> Vec<String> {
        self.query(sql).await.rows.iter().map(|row| row.join(" ")).collect()
    }

    /// The only value of the only row of a query.
    pub async fn value(&self, sql: &str) -> String {
        let answer = self.query(sql).await;
        match answer.rows.as_slice() {
            [row] if row.len() == 1 => row[0].clone(),
            rows => panic!("one value was expected, got {rows:?}\n{sql}"),
        }
    }

    /// The only value of a query, as a number.
    pub async fn number(&self, sql: &str) -> i64 {
        let value = self.value(sql).await;
        value.parse().unwrap_or_else(|_| panic!("a number was expected, got {value}\n{sql}"))
    }

    /// The SQLSTATE of a statement that must be refused.
    pub async fn refused(&self, sql: &str) -> String {
        match self.try_query(sql).await {
            Err(Failure::Refused { sqlstate, .. }) => sqlstate,
            Err(failure) => panic!("{failure}\n{sql}"),
            Ok(answer) => panic!("an error was expected, got {answer:?}\n{sql}"),
        }
    }

    /// The driver, for what only it can do: the extended protocol, COPY, cancel.
    pub fn driver(&self) -> &tokio_postgres::Client {
        &self.driver
    }

    /// Whether the connection is gone.
    pub fn is_closed(&self) -> bool {
        self.driver.is_closed()
    }

    /// Breaks the connection off, as a client does that dies.
    pub fn vanish(self) {
        self.connection.abort();
    }
}

async fn in_time<T>(
    work: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, Failure> {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(result) => Ok(result?),
        Err(_) => Err(Failure::Hung(PATIENCE)),
    }
}

/// A value as answers have it.
pub(crate) fn shown(value: Option<&str>) -> String {
    match value {
        None => "NULL".to_owned(),
        Some("") => "(empty)".to_owned(),
        Some(text) => text.to_owned(),
    }
}
