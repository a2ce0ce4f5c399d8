//! The Postgres protocol byte by byte, for what no driver does: bad input, asynchronous messages,
//! the exact order of messages.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::deadline::PATIENCE;

/// Version 3.0 of the protocol.
const VERSION: i32 = 196_608;

/// A connection. Calls block, up to a deadline.
#[derive(Debug)]
pub struct Wire {
    stream: TcpStream,
}

/// One message of the server.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    /// Its letter.
    pub kind: char,
    /// What follows the length.
    pub body: Vec<u8>,
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{:?}", self.kind, String::from_utf8_lossy(&self.body))
    }
}

impl Message {
    /// A field of an ErrorResponse or a NoticeResponse.
    pub fn field(&self, letter: char) -> Option<String> {
        let field = self
            .body
            .split(|byte| *byte == 0)
            .find(|field| field.first() == Some(&(letter as u8)))?;
        Some(String::from_utf8_lossy(&field[1..]).into_owned())
    }

    /// The values of a DataRow in text format.
    pub fn values(&self) -> Vec<Option<String>> {
        let mut rest = &self.body[2..];
        let mut values = Vec::new();
        while !rest.is_empty() {
            let length = i32::from_be_bytes(rest[..4].try_into().expect("four bytes"));
            rest = &rest[4..];
            let Ok(length) = usize::try_from(length) else {
                values.push(None);
                continue;
            };
            values.push(Some(String::from_utf8_lossy(&rest[..length]).into_owned()));
            rest = &rest[length..];
        }
        values
    }
}

impl Wire {
    /// Opens a connection and sends nothing.
    pub fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)
            .unwrap_or_else(|error| panic!("no connection with {address}: {error}"));
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout above zero");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout above zero");
        stream.set_nodelay(true).expect("a TCP option");
        Self { stream }
    }

    /// Opens a session with the default database.
    pub fn connect(address: SocketAddr) -> Self {
        let mut wire = Self::open(address);
        let greeting = wire.start(&[("user", "tester"), ("database", "stillframe")]);
        assert_eq!(greeting.last().map(|message| message.kind), Some('Z'), "{greeting:?}");
        wire
    }

    /// Sends the start-up packet; what comes up to ReadyForQuery or an error.
    pub fn start(&mut self, parameters: &[(&str, &str)]) -> Vec<Message> {
        self.start_until(parameters, "ZE")
    }

    /// Sends the start-up packet; what comes up to a message of one of these kinds.
    pub fn start_until(&mut self, parameters: &[(&str, &str)], kinds: &str) -> Vec<Message> {
        let mut body = VERSION.to_be_bytes().to_vec();
        for (name, value) in parameters {
            body.extend_from_slice(&text(name));
            body.extend_from_slice(&text(value));
        }
        body.push(0);
        self.bytes(&length(&body));
        self.bytes(&body);
        self.until(kinds)
    }

    /// Sends bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server reads in time");
    }

    /// Sends bytes as they are; false if the server has closed the connection.
    pub fn try_bytes(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// Sends a message.
    pub fn send(&mut self, kind: char, body: &[u8]) {
        let mut message = vec![kind as u8];
        message.extend_from_slice(&length(body));
        message.extend_from_slice(body);
        self.bytes(&message);
    }

    /// Sends a query string and waits for nothing.
    pub fn send_query(&mut self, sql: &str) {
        self.send('Q', &text(sql));
    }

    /// Runs a query string; what comes up to ReadyForQuery.
    pub fn query(&mut self, sql: &str) -> Vec<Message> {
        self.send_query(sql);
        self.until("Z")
    }

    /// Parses a statement; parameters have the types the server finds.
    pub fn parse(&mut self, name: &str, sql: &str) {
        let body = [text(name), text(sql), vec![0, 0]].concat();
        self.send('P', &body);
    }

    /// Binds a statement to a portal, with all parameters and results as text.
    pub fn bind(&mut self, portal: &str, statement: &str, parameters: &[Option<&[u8]>]) {
        let mut body = [text(portal), text(statement), vec![0, 0]].concat();
        let count = i16::try_from(parameters.len()).expect("few parameters");
        body.extend_from_slice(&count.to_be_bytes());
        for parameter in parameters {
            let length = parameter
                .map_or(-1, |bytes| i32::try_from(bytes.len()).expect("a short parameter"));
            body.extend_from_slice(&length.to_be_bytes());
            body.extend_from_slice(parameter.unwrap_or_default());
        }
        body.extend_from_slice(&[0, 0]);
        self.send('B', &body);
    }

    /// Asks for the description of a portal.
    pub fn describe(&mut self, portal: &str) {
        self.send('D', &[vec![b'P'], text(portal)].concat());
    }

    /// Runs a portal, for so many rows at most; 0 is all.
    pub fn execute(&mut self, portal: &str, rows_max: i32) {
        self.send('E', &[text(portal), rows_max.to_be_bytes().to_vec()].concat());
    }

    /// Ends a series of extended messages; what comes up to ReadyForQuery.
    pub fn sync(&mut self) -> Vec<Message> {
        self.send('S', &[]);
        self.until("Z")
    }

    /// Runs a statement with text parameters through the extended protocol.
    pub fn extended(&mut self, sql: &str, parameters: &[Option<&[u8]>]) -> Vec<Message> {
        self.parse("", sql);
        self.bind("", "", parameters);
        self.describe("");
        self.execute("", 0);
        self.sync()
    }

    /// Ends the session the polite way. Just to drop it is to vanish.
    pub fn close(mut self) {
        self.try_bytes(&[b'X', 0, 0, 0, 4]);
    }

    /// The next message; `None` if the server has closed the connection.
    pub fn receive(&mut self) -> Option<Message> {
        let mut head = [0; 5];
        match self.stream.read_exact(&mut head) {
            Ok(()) => {}
            Err(error) if closed(&error) => return None,
            Err(error) => panic!("no message came: {error}"),
        }
        let length = i32::from_be_bytes(head[1..].try_into().expect("four bytes"));
        let length = usize::try_from(length - 4).expect("a length covers itself");
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).expect("a whole message");
        Some(Message { kind: head[0] as char, body })
    }

    /// The next byte, where one answers that is no message.
    pub fn byte(&mut self) -> u8 {
        let mut byte = [0];
        self.stream.read_exact(&mut byte).expect("a byte comes");
        byte[0]
    }

    /// Whether something has come that wasn't read, or the connection has ended.
    pub fn has_something(&self) -> bool {
        self.stream.set_nonblocking(true).expect("an option of a socket");
        let peeked = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false).expect("an option of a socket");
        !matches!(peeked, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
    }

    /// What comes up to a message of one of these kinds.
    pub fn until(&mut self, kinds: &str) -> Vec<Message> {
        let mut messages = Vec::new();
        loop {
            let Some(message) = self.receive() else {
                panic!("the connection was closed before one of {kinds:?}: {messages:?}");
            };
            let last = kinds.contains(message.kind);
            messages.push(message);
            if last {
                return messages;
            }
        }
    }

    /// Everything up to the end of the connection, or until nothing came for long.
    pub fn drain(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        match self.stream.read_to_end(&mut all) {
            Ok(_) => all,
            Err(error) if closed(&error) => all,
            Err(error) => panic!("the server doesn't close the connection: {error}"),
        }
    }

    /// Runs COPY ... FROM STDIN with this data; what comes up to ReadyForQuery.
    pub fn copy(&mut self, sql: &str, mut data: impl Read) -> Vec<Message> {
        self.send_query(sql);
        let answer = self.until("GZ");
        if answer.last().map(|message| message.kind) != Some('G') {
            return answer;
        }
        // An odd size, so that messages end anywhere in a row.
        let mut piece = [0; 32_771];
        loop {
            let read = data.read(&mut piece).expect("readable data");
            if read == 0 {
                break;
            }
            self.send('d', &piece[..read]);
        }
        self.send('c', &[]);
        self.until("Z")
    }
}

/// The SQLSTATE of the first error among messages.
pub fn sqlstate(messages: &[Message]) -> Option<String> {
    messages.iter().find(|message| message.kind == 'E')?.field('C')
}

/// The tags of the commands that were completed.
pub fn tags(messages: &[Message]) -> Vec<String> {
    let complete = messages.iter().filter(|message| message.kind == 'C');
    complete
        .map(|message| String::from_utf8_lossy(&message.body).trim_end_matches('\0').to_owned())
        .collect()
}

/// The rows among messages, NULL as `NULL`.
pub fn rows(messages: &[Message]) -> Vec<Vec<String>> {
    let rows = messages.iter().filter(|message| message.kind == 'D');
    rows.map(|row| {
        let values = row.values().into_iter();
        values.map(|value| value.unwrap_or_else(|| "NULL".to_owned())).collect()
    })
    .collect()
}

/// The last value a parameter was reported to have.
pub fn parameter(messages: &[Message], name: &str) -> Option<String> {
    let statuses = messages.iter().rev().filter(|message| message.kind == 'S');
    statuses
        .filter_map(|message| {
            let mut parts = message.body.split(|byte| *byte == 0);
            let found = parts.next()? == name.as_bytes();
            let value = parts.next()?;
            found.then(|| String::from_utf8_lossy(value).into_owned())
        })
        .next()
}

fn text(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    bytes
}

fn length(body: &[u8]) -> [u8; 4] {
    i32::try_from(body.len() + 4).expect("a short message").to_be_bytes()
}

fn closed(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe)
}
