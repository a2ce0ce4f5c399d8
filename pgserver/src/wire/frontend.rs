//! A client's messages, read from frames.
//!
//! pgwire's own decoders panic on a message that is shorter than it claims to be, read on into the
//! next one, and replace bytes that aren't UTF-8. Here all of that is an error of the one message.

use std::num::NonZeroUsize;

use bytes::{Buf, Bytes};
use stillframe_sql::binary::utf8;
use stillframe_sql::{Error, SqlState};

/// A message as it came: its kind, and its body without the length.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) kind: u8,
    pub(super) body: Bytes,
}

/// How long a message of each kind may be, its length field included; none for a kind that no
/// client may send. The limits are PostgreSQL's.
pub(super) fn length_max(kind: u8) -> Option<usize> {
    const SMALL: usize = 10_000;
    const LARGE: usize = 0x3fff_fffe;
    match kind {
        b'Q' | b'P' | b'B' | b'F' | b'd' => Some(LARGE),
        b'C' | b'D' | b'E' | b'H' | b'S' | b'X' | b'c' | b'f' | b'p' => Some(SMALL),
        _ => None,
    }
}

/// A client's message.
#[derive(Debug)]
pub(super) enum Message {
    Query(String),
    Parse(Parse),
    Bind(Bind),
    Describe(Target),
    Execute {
        portal: String,
        /// None is all.
        rows_max: Option<NonZeroUsize>,
    },
    Close(Target),
    Flush,
    Sync,
    CopyData(Bytes),
    CopyDone,
    CopyFail(String),
    Terminate,
    /// Legal in the protocol, but not here or not now.
    Other,
}

/// Makes a statement of text.
#[derive(Debug)]
pub(super) struct Parse {
    pub(super) name: String,
    pub(super) text: String,
    /// By parameter; 0 leaves it open.
    pub(super) types: Vec<u32>,
}

/// Makes a portal of a statement.
#[derive(Debug)]
pub(super) struct Bind {
    pub(super) portal: String,
    pub(super) statement: String,
    pub(super) parameter_formats: Vec<i16>,
    /// None is NULL.
    pub(super) parameters: Vec<Option<Bytes>>,
    pub(super) result_formats: Vec<i16>,
}

/// What Describe and Close are about.
#[derive(Debug)]
pub(super) enum Target {
    Statement(String),
    Portal(String),
}

impl Message {
    /// Whether messages of this kind belong to the extended protocol, where an error is followed by
    /// silence up to Sync.
    pub(super) fn is_extended(kind: u8) -> bool {
        matches!(kind, b'P' | b'B' | b'D' | b'E' | b'C' | b'H')
    }

    /// Reads a message. An error concerns this message alone: the next one can be read.
    pub(super) fn read(frame: Frame) -> Result<Self, Error> {
        let mut body = Body(frame.body);
        let message = match frame.kind {
            b'Q' => Self::Query(body.text()?),
            b'P' => Self::Parse(body.parse()?),
            b'B' => Self::Bind(body.bind()?),
            b'D' => Self::Describe(body.target("DESCRIBE")?),
            b'E' => Self::Execute { portal: body.text()?, rows_max: body.rows_max()? },
            b'C' => Self::Close(body.target("CLOSE")?),
            b'H' => Self::Flush,
            b'S' => Self::Sync,
            b'd' => return Ok(Self::CopyData(body.0)),
            b'c' => Self::CopyDone,
            b'f' => Self::CopyFail(body.text()?),
            b'X' => return Ok(Self::Terminate),
            _ => return Ok(Self::Other),
        };
        body.end()?;
        Ok(message)
    }
}

/// What is left of a message's body.
struct Body(Bytes);

impl Body {
    fn parse(&mut self) -> Result<Parse, Error> {
        let (name, text) = (self.text()?, self.text()?);
        let count = self.count()?;
        let types = (0..count).map(|_| self.u32()).collect::<Result<_, _>>()?;
        Ok(Parse { name, text, types })
    }

    fn bind(&mut self) -> Result<Bind, Error> {
        let (portal, statement) = (self.text()?, self.text()?);
        let parameter_formats = self.formats()?;
        let count = self.count()?;
        let parameters = (0..count).map(|_| self.value()).collect::<Result<_, _>>()?;
        let result_formats = self.formats()?;
        Ok(Bind { portal, statement, parameter_formats, parameters, result_formats })
    }

    fn target(&mut self, message: &str) -> Result<Target, Error> {
        match self.take(1)?[0] {
            b'S' => Ok(Target::Statement(self.text()?)),
            b'P' => Ok(Target::Portal(self.text()?)),
            kind => Err(violation(format!("invalid {message} message subtype {kind}"))),
        }
    }

    fn rows_max(&mut self) -> Result<Option<NonZeroUsize>, Error> {
        // A negative limit is none, as in PostgreSQL.
        Ok(usize::try_from(self.u32()?.cast_signed()).ok().and_then(NonZeroUsize::new))
    }

    fn formats(&mut self) -> Result<Vec<i16>, Error> {
        let count = self.count()?;
        (0..count).map(|_| self.count().map(u16::cast_signed)).collect()
    }

    fn value(&mut self) -> Result<Option<Bytes>, Error> {
        match self.u32()?.cast_signed() {
            -1 => Ok(None),
            length => match usize::try_from(length) {
                Ok(length) => Ok(Some(self.take(length)?)),
                Err(_) => Err(short()),
            },
        }
    }

    /// A string up to its NUL.
    fn text(&mut self) -> Result<String, Error> {
        let Some(length) = self.0.iter().position(|byte| *byte == 0) else {
            return Err(violation("invalid string in message"));
        };
        let bytes = self.0.split_to(length);
        self.0.advance(1);
        utf8(&bytes).map(str::to_owned)
    }

    fn count(&mut self) -> Result<u16, Error> {
        Ok(self.take(2)?.get_u16())
    }

    fn u32(&mut self) -> Result<u32, Error> {
        Ok(self.take(4)?.get_u32())
    }

    fn take(&mut self, length: usize) -> Result<Bytes, Error> {
        if length > self.0.len() {
            return Err(short());
        }
        Ok(self.0.split_to(length))
    }

    fn end(self) -> Result<(), Error> {
        if self.0.is_empty() { Ok(()) } else { Err(violation("invalid message format")) }
    }
}

/// A message that isn't as the protocol has it: 08P01.
pub(super) fn violation(message: impl Into<String>) -> Error {
    Error::new(SqlState::PROTOCOL_VIOLATION, message)
}

fn short() -> Error {
    violation("insufficient data left in message")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: u8, body: &[u8]) -> Result<Message, Error> {
        Message::read(Frame { kind, body: Bytes::copy_from_slice(body) })
    }

    #[test]
    fn every_truncation_of_a_message_is_an_error_and_no_panic() {
        let bind = b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\x01\0\0";
        let parse = b"s\0select $1\0\0\x01\0\0\0\x17";
        let execute = b"p\0\0\0\0\x05";
        for (kind, body) in
            [(b'B', &bind[..]), (b'P', parse), (b'E', execute), (b'D', b"Sx\0"), (b'Q', b"q\0")]
        {
            read(kind, body).unwrap();
            for length in 0..body.len() {
                let error = read(kind, &body[..length]).unwrap_err();
                assert_eq!(error.state, SqlState::PROTOCOL_VIOLATION, "{kind} {length}");
            }
            let longer = [body, b"\0"].concat();
            assert_eq!(read(kind, &longer).unwrap_err().state, SqlState::PROTOCOL_VIOLATION);
        }
    }

    #[test]
    fn a_bind_is_read_whole() {
        let bytes = b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\x01\0\0";
        let Message::Bind(bind) = read(b'B', bytes).unwrap() else { panic!("not a Bind") };
        assert_eq!((bind.portal.as_str(), bind.statement.as_str()), ("p", "s"));
        assert_eq!(bind.parameter_formats, [1]);
        assert_eq!(bind.parameters, [Some(Bytes::from_static(b"ab")), None]);
        assert_eq!(bind.result_formats, [0]);
    }

    #[test]
    fn no_row_limit_is_zero_or_less() {
        for (bytes, expected) in
            [(b"\0\0\0\0\0", None), (b"\0\xff\xff\xff\xff", None), (b"\0\0\0\0\x03", Some(3))]
        {
            let Message::Execute { rows_max, .. } = read(b'E', bytes).unwrap() else {
                panic!("not an Execute")
            };
            assert_eq!(rows_max.map(NonZeroUsize::get), expected);
        }
    }
}
