//! COPY's data, cut anywhere, to lines. A line of CSV is a record: it may hold newlines in quotes.
//!
//! The rules are PostgreSQL's: the first newline settles which kind all others must be, a line with
//! nothing but `\.` ends the data, and in text a backslash takes what follows with it.

use std::ops::Range;

use memchr::{memchr2, memchr3};

use crate::{Error, SqlState};

/// The bytes that one line may have.
const LINE_BYTES_MAX: usize = 256 << 20;

/// The quotes of CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quotes {
    pub(super) quote: u8,
    pub(super) escape: u8,
}

/// Cuts data into lines.
#[derive(Debug)]
pub(super) struct Lines {
    /// None in text.
    quotes: Option<Quotes>,
    newline: Option<Newline>,
    buffer: Vec<u8>,
    /// Where the line under way starts.
    start: usize,
    /// Up to here the line under way has no end.
    scanned: usize,
    in_quotes: bool,
    /// The lines that have begun; those in quotes count too.
    number: u64,
    has_begun: bool,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Newline {
    LineFeed,
    CarriageReturn,
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// More data may come.
    Open,
    /// All data is there.
    Complete,
    /// The end was found; what follows it counts for nothing.
    Over,
}

/// How the search for a line's end came out.
enum Search {
    /// The line ends before `end`; the next one starts at `next`.
    End { end: usize, next: usize },
    /// The data ends before `end`.
    EndOfData { end: usize },
    /// There is no end up to here; go on from here when more is known.
    Pending { scanned: usize },
}

impl Lines {
    pub(super) fn new(quotes: Option<Quotes>) -> Self {
        Self {
            quotes,
            newline: None,
            buffer: vec![],
            start: 0,
            scanned: 0,
            in_quotes: false,
            number: 0,
            has_begun: false,
            phase: Phase::Open,
        }
    }

    /// Takes a piece of the data.
    pub(super) fn push(&mut self, data: &[u8]) {
        if self.phase == Phase::Over {
            return;
        }
        self.buffer.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
        self.buffer.extend_from_slice(data);
    }

    /// All data is there.
    pub(super) fn complete(&mut self) {
        if self.phase == Phase::Open {
            self.phase = Phase::Complete;
        }
    }

    /// Whether all data is there and all lines were found.
    pub(super) fn is_over(&self) -> bool {
        match self.phase {
            Phase::Open => false,
            Phase::Complete => self.start == self.buffer.len(),
            Phase::Over => true,
        }
    }

    /// The number of the line that was found last, or in which an error was found.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The bytes of a line that was found, until the next push.
    pub(super) fn bytes(&self, line: &Range<usize>) -> &[u8] {
        &self.buffer[line.clone()]
    }

    /// The next line, without its newline; `None` if there is none yet, or none any more.
    pub(super) fn next_line(&mut self) -> Result<Option<Range<usize>>, Error> {
        if self.phase == Phase::Over || self.start == self.buffer.len() {
            return Ok(None);
        }
        if !self.has_begun {
            self.has_begun = true;
            self.number += 1;
        }
        let search = match self.quotes {
            None => self.search_text()?,
            Some(quotes) => self.search_csv(quotes)?,
        };
        let start = self.start;
        match search {
            Search::End { end, next } => {
                self.start = next;
                self.scanned = next;
                self.has_begun = false;
                Ok(Some(start..end))
            }
            Search::EndOfData { end } => {
                self.phase = Phase::Over;
                Ok((end > start).then_some(start..end))
            }
            Search::Pending { scanned } => {
                self.scanned = scanned;
                if self.buffer.len() - start > LINE_BYTES_MAX {
                    let message = format!("a line has more than {LINE_BYTES_MAX} bytes");
                    return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
                }
                Ok(None)
            }
        }
    }

    fn search_text(&mut self) -> Result<Search, Error> {
        let mut from = self.scanned;
        loop {
            let Some(offset) = memchr3(b'\n', b'\r', b'\\', &self.buffer[from..]) else {
                return Ok(self.no_end());
            };
            let at = from + offset;
            if self.buffer[at] != b'\\' {
                return self.search_newline(at);
            }
            match self.byte(at + 1) {
                Peek::Unknown => return Ok(Search::Pending { scanned: at }),
                Peek::Byte(b'.') => match self.search_marker(at)? {
                    Some(search) => return Ok(search),
                    None => from = at + 2,
                },
                Peek::Byte(_) => from = at + 2,
                Peek::End => return Ok(self.no_end()),
            }
        }
    }

    fn search_csv(&mut self, Quotes { quote, escape }: Quotes) -> Result<Search, Error> {
        let mut from = self.scanned;
        if from == self.start && self.buffer[from] == b'\\' {
            match self.byte(from + 1) {
                Peek::Unknown => return Ok(Search::Pending { scanned: from }),
                Peek::Byte(b'.') => {
                    if let Some(search) = self.search_marker(from)? {
                        return Ok(search);
                    }
                }
                Peek::Byte(_) | Peek::End => {}
            }
        }
        loop {
            let rest = &self.buffer[from..];
            if !self.in_quotes {
                let Some(offset) = memchr3(quote, b'\n', b'\r', rest) else {
                    return Ok(self.no_end());
                };
                let at = from + offset;
                if self.buffer[at] != quote {
                    return self.search_newline(at);
                }
                self.in_quotes = true;
                from = at + 1;
                continue;
            }
            // PostgreSQL counts the lines within quotes so, too.
            let newline = if self.newline == Some(Newline::LineFeed) { b'\n' } else { b'\r' };
            let offset = if quote == escape {
                memchr2(quote, newline, rest)
            } else {
                memchr3(quote, newline, escape, rest)
            };
            let Some(offset) = offset else { return Ok(self.no_end()) };
            let at = from + offset;
            let found = self.buffer[at];
            from = at + 1;
            if found == escape && quote != escape {
                match self.byte(at + 1) {
                    Peek::Unknown => return Ok(Search::Pending { scanned: at }),
                    Peek::Byte(next) if next == quote || next == escape => from = at + 2,
                    Peek::Byte(_) | Peek::End => {}
                }
            } else if found == quote {
                self.in_quotes = false;
            } else {
                self.number += 1;
            }
        }
    }

    /// The rest of the data has no newline.
    fn no_end(&self) -> Search {
        let end = self.buffer.len();
        match self.phase {
            Phase::Open => Search::Pending { scanned: end },
            // The last line needs none.
            Phase::Complete | Phase::Over => Search::EndOfData { end },
        }
    }

    /// There is a newline, or a half of one, at `at`.
    fn search_newline(&mut self, at: usize) -> Result<Search, Error> {
        let (kind, next) = if self.buffer[at] == b'\n' {
            (Newline::LineFeed, at + 1)
        } else if self.newline.is_some_and(|newline| newline != Newline::Both) {
            (Newline::CarriageReturn, at + 1)
        } else {
            match self.byte(at + 1) {
                Peek::Unknown => return Ok(Search::Pending { scanned: at }),
                Peek::Byte(b'\n') => (Newline::Both, at + 2),
                Peek::Byte(_) | Peek::End => (Newline::CarriageReturn, at + 1),
            }
        };
        if *self.newline.get_or_insert(kind) == kind {
            return Ok(Search::End { end: at, next });
        }
        Err(self.stray(kind))
    }

    /// There is `\.` at `at`; `None` if it is just data.
    fn search_marker(&self, at: usize) -> Result<Option<Search>, Error> {
        let is_text = self.quotes.is_none();
        let corrupt = |message: &str| {
            if is_text { Err(bad_format(message)) } else { Ok(None) }
        };
        let mut next = self.byte(at + 2);
        if self.newline == Some(Newline::Both) {
            match next {
                Peek::Byte(b'\r') => next = self.byte(at + 3),
                Peek::Byte(b'\n') => return corrupt(MISMATCH),
                Peek::Unknown => {}
                Peek::Byte(_) | Peek::End => return corrupt(CORRUPT),
            }
        }
        let kind = match next {
            Peek::Unknown => return Ok(Some(Search::Pending { scanned: at })),
            Peek::Byte(b'\n') => Newline::LineFeed,
            Peek::Byte(b'\r') => Newline::CarriageReturn,
            Peek::Byte(_) | Peek::End => return corrupt(CORRUPT),
        };
        let fits = match self.newline {
            None => true,
            Some(Newline::Both) => kind == Newline::LineFeed,
            Some(newline) => kind == newline,
        };
        if fits { Ok(Some(Search::EndOfData { end: at })) } else { Err(bad_format(MISMATCH)) }
    }

    fn byte(&self, at: usize) -> Peek {
        match self.buffer.get(at) {
            Some(byte) => Peek::Byte(*byte),
            None if self.phase == Phase::Open => Peek::Unknown,
            None => Peek::End,
        }
    }

    /// A newline of another kind than the first one.
    fn stray(&self, kind: Newline) -> Error {
        let (name, escaped) = match kind {
            Newline::LineFeed => ("newline", "\\n"),
            Newline::CarriageReturn | Newline::Both => ("carriage return", "\\r"),
        };
        if self.quotes.is_none() {
            bad_format(&format!("literal {name} found in data"))
                .with_hint(format!("Use \"{escaped}\" to represent {name}."))
        } else {
            bad_format(&format!("unquoted {name} found in data"))
                .with_hint(format!("Use quoted CSV field to represent {name}."))
        }
    }
}

const CORRUPT: &str = "end-of-copy marker corrupt";
const MISMATCH: &str = "end-of-copy marker does not match previous newline style";

/// What stands at a place, as far as is known.
enum Peek {
    Byte(u8),
    /// It hasn't come yet.
    Unknown,
    /// Nothing: the data ends before it.
    End,
}

fn bad_format(message: &str) -> Error {
    Error::new(SqlState::BAD_COPY_FILE_FORMAT, message)
}
