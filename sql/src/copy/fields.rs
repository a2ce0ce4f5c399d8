//! One line of COPY's data to its fields.

use memchr::{memchr2, memchr3};

use super::lines::Quotes;
use crate::{Error, SqlState};

/// How a line is made of fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Syntax {
    pub(super) delimiter: u8,
    /// What stands for NULL.
    pub(super) null: String,
    /// None in text.
    pub(super) quotes: Option<Quotes>,
}

/// The fields of one line. Reused from line to line.
#[derive(Debug, Default)]
pub(super) struct Fields {
    text: Vec<u8>,
    fields: Vec<Field>,
}

#[derive(Clone, Copy, Debug)]
struct Field {
    end: usize,
    is_null: bool,
}

impl Fields {
    /// Reads the fields of a line, which is UTF-8.
    pub(super) fn read(&mut self, syntax: &Syntax, line: &[u8]) -> Result<(), Error> {
        self.text.clear();
        self.fields.clear();
        match syntax.quotes {
            None => self.read_text(syntax, line),
            Some(quotes) => self.read_csv(syntax, quotes, line),
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }

    /// All fields in order; NULLs are `None`.
    pub(super) fn iter(&self) -> Result<impl Iterator<Item = Option<&str>>, Error> {
        // Escapes can make what isn't UTF-8 of what was.
        let text = utf8(&self.text)?;
        let starts = std::iter::once(0).chain(self.fields.iter().map(|field| field.end));
        Ok(starts
            .zip(&self.fields)
            .map(move |(start, field)| (!field.is_null).then(|| &text[start..field.end])))
    }

    fn push(&mut self, is_null: bool) {
        if is_null {
            self.text.truncate(self.fields.last().map_or(0, |field| field.end));
        }
        self.fields.push(Field { end: self.text.len(), is_null });
    }

    fn read_text(&mut self, syntax: &Syntax, line: &[u8]) -> Result<(), Error> {
        let mut start = 0;
        let mut from = 0;
        loop {
            let found = memchr2(syntax.delimiter, b'\\', &line[from..]);
            let at = found.map_or(line.len(), |offset| from + offset);
            self.text.extend_from_slice(&line[from..at]);
            if line.get(at) == Some(&b'\\') {
                let (byte, taken) = unescape(&line[at + 1..]);
                self.text.extend(byte);
                from = at + 1 + taken;
                continue;
            }
            // NULL is recognised before escapes are.
            self.push(line[start..at] == *syntax.null.as_bytes());
            if at == line.len() {
                return Ok(());
            }
            start = at + 1;
            from = start;
        }
    }

    fn read_csv(&mut self, syntax: &Syntax, quotes: Quotes, line: &[u8]) -> Result<(), Error> {
        let Quotes { quote, escape } = quotes;
        let mut start = 0;
        let mut from = 0;
        let mut was_quoted = false;
        loop {
            let found = memchr2(syntax.delimiter, quote, &line[from..]);
            let at = found.map_or(line.len(), |offset| from + offset);
            self.text.extend_from_slice(&line[from..at]);
            if line.get(at) == Some(&quote) {
                was_quoted = true;
                from = self.read_quoted(quote, escape, line, at + 1)?;
                continue;
            }
            self.push(!was_quoted && line[start..at] == *syntax.null.as_bytes());
            if at == line.len() {
                return Ok(());
            }
            start = at + 1;
            from = start;
            was_quoted = false;
        }
    }

    /// Reads up to and with the closing quote; returns where it goes on.
    fn read_quoted(
        &mut self,
        quote: u8,
        escape: u8,
        line: &[u8],
        mut from: usize,
    ) -> Result<usize, Error> {
        loop {
            let Some(offset) = memchr3(quote, escape, escape, &line[from..]) else {
                return Err(Error::new(
                    SqlState::BAD_COPY_FILE_FORMAT,
                    "unterminated CSV quoted field",
                ));
            };
            let at = from + offset;
            self.text.extend_from_slice(&line[from..at]);
            let next = line.get(at + 1).copied();
            match next {
                Some(next) if line[at] == escape && (next == quote || next == escape) => {
                    self.text.push(next);
                    from = at + 2;
                }
                _ if line[at] == quote => return Ok(at + 1),
                _ => {
                    self.text.push(escape);
                    from = at + 1;
                }
            }
        }
    }
}

/// What a backslash and the bytes after it stand for, and how many of those it takes.
fn unescape(rest: &[u8]) -> (Option<u8>, usize) {
    let Some(first) = rest.first() else { return (None, 0) };
    let byte = match first {
        b'0'..=b'7' => {
            let digits = rest.iter().take(3).take_while(|byte| (b'0'..=b'7').contains(byte));
            let digits: Vec<u8> = digits.map(|byte| byte - b'0').collect();
            let value = digits.iter().fold(0_u32, |value, digit| value * 8 + u32::from(*digit));
            return (Some((value & 0xff) as u8), digits.len());
        }
        b'x' => {
            let digits = rest[1..].iter().take(2).map_while(|byte| (*byte as char).to_digit(16));
            let digits: Vec<u32> = digits.collect();
            if !digits.is_empty() {
                let value = digits.iter().fold(0, |value, digit| value * 16 + digit);
                return (Some(value as u8), 1 + digits.len());
            }
            b'x'
        }
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        other => *other,
    };
    (Some(byte), 1)
}

/// Text as UTF-8 without NUL.
pub(super) fn utf8(bytes: &[u8]) -> Result<&str, Error> {
    match std::str::from_utf8(bytes) {
        Ok(text) => match memchr::memchr(0, bytes) {
            None => Ok(text),
            Some(_) => Err(not_utf8(&[0])),
        },
        Err(error) => {
            let wrong = &bytes[error.valid_up_to()..];
            // NUL may come first.
            match memchr::memchr(0, &bytes[..error.valid_up_to()]) {
                None => Err(not_utf8(wrong)),
                Some(_) => Err(not_utf8(&[0])),
            }
        }
    }
}

fn not_utf8(wrong: &[u8]) -> Error {
    // As many bytes as the first one announces.
    let length = match wrong[0] {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    };
    let bytes: Vec<_> = wrong.iter().take(length).map(|byte| format!("0x{byte:02x}")).collect();
    let message = format!("invalid byte sequence for encoding \"UTF8\": {}", bytes.join(" "));
    Error::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message)
}
