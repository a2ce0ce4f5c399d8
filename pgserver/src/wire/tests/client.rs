//! A client that speaks in raw messages.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::scripted::{Scripted, World};
use crate::Access;
use crate::wire::{CancelKeys, Entrance, serve};

/// Nothing in these tests takes long; what does hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server without sockets.
#[derive(Default)]
pub(super) struct Server {
    pub(super) world: Arc<World>,
    pub(super) keys: CancelKeys,
    pub(super) stopping: watch::Sender<bool>,
}

impl Server {
    /// A connection on which nothing was said yet.
    pub(super) fn stranger(&self) -> Client {
        let (near, far) = tokio::io::duplex(16 << 10);
        let world = Arc::clone(&self.world);
        let (keys, stopping) = (self.keys.clone(), self.stopping.subscribe());
        let served = async move {
            let access = Access::trust();
            let entrance = Entrance { keys: &keys, access: &access, stopping };
            let role = async |_| Ok(None);
            serve(far, entrance, role, move |_| Scripted::new(world), ()).await;
        };
        Client { stream: near, served: tokio::spawn(served), key: (0, 0) }
    }

    /// A connection with a session.
    pub(super) async fn connect(&self) -> Client {
        let mut client = self.stranger();
        client.startup(196_608, &[("user", "u"), ("database", "stillframe")]).await;
        for message in client.until('Z').await {
            if message.kind == 'K' {
                let number =
                    |at: usize| i32::from_be_bytes(message.body[at..at + 4].try_into().unwrap());
                client.key = (number(0), number(4));
            }
        }
        client
    }

    /// Waits until nothing is alive: each statement, result and COPY was dropped.
    pub(super) async fn idle(&self) {
        let idle = async {
            while self.world.alive() > 0 {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, idle).await.expect("something is still alive");
    }
}

/// A message of the server.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) kind: char,
    pub(super) body: Vec<u8>,
}

impl Message {
    /// The strings it is made of, for messages that are made of strings.
    pub(super) fn strings(&self) -> Vec<String> {
        let strings = self.body.split(|byte| *byte == 0).filter(|string| !string.is_empty());
        strings.map(|string| String::from_utf8_lossy(string).into_owned()).collect()
    }

    /// The field of an error with this letter.
    pub(super) fn field(&self, letter: char) -> Option<String> {
        self.strings().into_iter().find_map(|field| field.strip_prefix(letter).map(str::to_owned))
    }
}

pub(super) struct Client {
    pub(super) stream: DuplexStream,
    served: JoinHandle<()>,
    pub(super) key: (i32, i32),
}

impl Client {
    pub(super) async fn raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    pub(super) async fn startup(&mut self, version: u32, parameters: &[(&str, &str)]) {
        let mut body = version.to_be_bytes().to_vec();
        for (name, value) in parameters {
            body.extend([name.as_bytes(), b"\0", value.as_bytes(), b"\0"].concat());
        }
        body.push(0);
        let length = u32::try_from(body.len() + 4).unwrap();
        self.raw(&[&length.to_be_bytes()[..], &body].concat()).await;
    }

    pub(super) async fn send(&mut self, kind: char, body: &[u8]) {
        let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
        self.raw(&[&[u8::try_from(kind).unwrap()], &length[..], body].concat()).await;
    }

    /// The next message; none at the end of the connection.
    pub(super) async fn next(&mut self) -> Option<Message> {
        let read = async {
            let kind = char::from(self.stream.read_u8().await.ok()?);
            let length = self.stream.read_u32().await.unwrap();
            let mut body = vec![0; usize::try_from(length).unwrap() - 4];
            self.stream.read_exact(&mut body).await.unwrap();
            Some(Message { kind, body })
        };
        timeout(PATIENCE, read).await.expect("no message comes")
    }

    /// All messages up to one of this kind.
    pub(super) async fn until(&mut self, kind: char) -> Vec<Message> {
        let mut messages = vec![];
        loop {
            let message = self.next().await.expect("the connection goes on");
            let last = message.kind == kind;
            messages.push(message);
            if last {
                return messages;
            }
        }
    }

    /// The kinds of all messages up to one of this kind.
    pub(super) async fn kinds(&mut self, last: char) -> String {
        self.until(last).await.iter().map(|message| message.kind).collect()
    }

    pub(super) async fn query(&mut self, text: &str) -> Vec<Message> {
        self.send('Q', format!("{text}\0").as_bytes()).await;
        self.until('Z').await
    }

    /// The SQLSTATE of the next error.
    pub(super) async fn error(&mut self) -> String {
        let messages = self.until('E').await;
        messages.last().unwrap().field('C').unwrap()
    }

    pub(super) async fn parse(&mut self, name: &str, text: &str, types: &[u32]) {
        let count = u16::try_from(types.len()).unwrap();
        let mut body = format!("{name}\0{text}\0").into_bytes();
        body.extend(count.to_be_bytes());
        body.extend(types.iter().flat_map(|oid| oid.to_be_bytes()));
        self.send('P', &body).await;
    }

    /// Binds without parameters.
    pub(super) async fn bind(&mut self, portal: &str, statement: &str) {
        self.send('B', format!("{portal}\0{statement}\0\0\0\0\0\0\0").as_bytes()).await;
    }

    pub(super) async fn execute(&mut self, portal: &str, rows_max: u32) {
        let body = [portal.as_bytes(), b"\0", &rows_max.to_be_bytes()].concat();
        self.send('E', &body).await;
    }

    /// Ends the connection on the server's side, and waits until that is done.
    pub(super) async fn vanish(self) {
        drop(self.stream);
        timeout(PATIENCE, self.served).await.expect("the connection ends").unwrap();
    }

    /// Waits for the server to end the connection.
    pub(super) async fn ended(mut self) -> Vec<Message> {
        let mut messages = vec![];
        while let Some(message) = self.next().await {
            messages.push(message);
        }
        timeout(PATIENCE, self.served).await.expect("the connection ends").unwrap();
        messages
    }
}

/// The values of a DataRow.
pub(super) fn values(message: &Message) -> Vec<Option<Vec<u8>>> {
    let mut rest = &message.body[2..];
    let mut values = vec![];
    while let Some((length, tail)) = rest.split_first_chunk::<4>() {
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            values.push(None);
            rest = tail;
            continue;
        };
        values.push(Some(tail[..length].to_vec()));
        rest = &tail[length..];
    }
    values
}
