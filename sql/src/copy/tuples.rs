//! The binary format of COPY: a header, rows as counted values with their lengths, and a trailer.

use std::ops::Range;

use crate::{Error, SqlState};

/// What binary data begins with.
pub(super) const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";
/// The number of values that stands for the end.
pub(super) const END: i16 = -1;

/// Flags that a reader must know; there are none.
const CRITICAL_FLAGS: u32 = 0xffff_0000;
/// The signature, the flags, and the length of what follows them.
const HEADER_BYTES: usize = SIGNATURE.len() + 4 + 4;
/// How many bytes were read that are kept before they are thrown away.
const READ_BYTES_MAX: usize = 64 << 10;

/// Rows from data that comes in pieces.
#[derive(Debug, Default)]
pub(super) struct Tuples {
    bytes: Vec<u8>,
    /// Up to where they were read.
    read: usize,
    phase: Phase,
    is_complete: bool,
    /// How many rows were read.
    rows: u64,
    /// Of the row that was read last: by value, its place; none is NULL.
    values: Vec<Option<Range<usize>>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Header,
    /// So many bytes that only others know.
    Extension(usize),
    Rows,
    /// The trailer has come.
    Over,
}

impl Tuples {
    /// Takes a piece of the data, cut anywhere.
    pub(super) fn push(&mut self, data: &[u8]) {
        if self.read > READ_BYTES_MAX || self.read == self.bytes.len() {
            self.bytes.drain(..self.read);
            self.read = 0;
        }
        self.bytes.extend_from_slice(data);
    }

    /// All data is there.
    pub(super) fn complete(&mut self) {
        self.is_complete = true;
    }

    /// Whether all data was read.
    pub(super) fn is_over(&self) -> bool {
        self.is_complete && self.read == self.bytes.len()
    }

    /// How many rows were begun.
    pub(super) fn number(&self) -> u64 {
        self.rows
    }

    /// The values of the row that was read last.
    pub(super) fn values(&self) -> impl Iterator<Item = Option<&[u8]>> {
        self.values.iter().map(|place| place.clone().map(|place| &self.bytes[place]))
    }

    /// Reads the next row of so many values; false if it isn't all there.
    pub(super) fn next(&mut self, columns: usize) -> Result<bool, Error> {
        loop {
            match self.phase {
                Phase::Header => {
                    if !self.header()? {
                        return self.starved();
                    }
                }
                Phase::Extension(rest) => {
                    let skipped = rest.min(self.bytes.len() - self.read);
                    self.read += skipped;
                    if skipped < rest {
                        self.phase = Phase::Extension(rest - skipped);
                        return self.starved();
                    }
                    self.phase = Phase::Rows;
                }
                Phase::Rows => {
                    let Some(count) = self.i16(self.read) else { return self.starved() };
                    if count == END {
                        self.read += 2;
                        self.phase = Phase::Over;
                        continue;
                    }
                    if usize::try_from(count) != Ok(columns) {
                        self.rows += 1;
                        let message = format!("row field count is {count}, expected {columns}");
                        return Err(bad(message));
                    }
                    return if self.row(columns)? { Ok(true) } else { self.starved() };
                }
                Phase::Over if self.read < self.bytes.len() => {
                    return Err(bad("received copy data after EOF marker"));
                }
                Phase::Over => return Ok(false),
            }
        }
    }

    /// Reads the header; false if it isn't all there.
    fn header(&mut self) -> Result<bool, Error> {
        let there = self.bytes.len().min(SIGNATURE.len());
        if self.bytes[..there] != SIGNATURE[..there] {
            return Err(bad("COPY file signature not recognized"));
        }
        if self.bytes.len() < HEADER_BYTES {
            return Ok(false);
        }
        let flags = self.i32(SIGNATURE.len()).unwrap_or_default().cast_unsigned();
        if flags & CRITICAL_FLAGS != 0 {
            return Err(bad("unrecognized critical flags in COPY file header"));
        }
        let extension = self.i32(SIGNATURE.len() + 4).unwrap_or_default();
        let extension = usize::try_from(extension);
        let extension = extension.map_err(|_| bad("invalid COPY file header (missing length)"))?;
        self.read = HEADER_BYTES;
        self.phase = Phase::Extension(extension);
        Ok(true)
    }

    /// Reads a row's values; false if they aren't all there.
    fn row(&mut self, columns: usize) -> Result<bool, Error> {
        self.values.clear();
        let mut at = self.read + 2;
        for _ in 0..columns {
            let Some(length) = self.i32(at) else { return Ok(false) };
            at += 4;
            if length == -1 {
                self.values.push(None);
                continue;
            }
            let Ok(length) = usize::try_from(length) else {
                self.rows += 1;
                return Err(bad("invalid field size"));
            };
            if self.bytes.len() - at < length {
                return Ok(false);
            }
            self.values.push(Some(at..at + length));
            at += length;
        }
        self.read = at;
        self.rows += 1;
        Ok(true)
    }

    /// More data is needed; it is an error if there is none.
    fn starved(&self) -> Result<bool, Error> {
        match self.phase {
            _ if !self.is_complete => Ok(false),
            // As in PostgreSQL, the trailer may be missing.
            Phase::Rows if self.read == self.bytes.len() => Ok(false),
            Phase::Header => Err(bad("COPY file signature not recognized")),
            _ => Err(bad("unexpected EOF in COPY data")),
        }
    }

    fn i16(&self, at: usize) -> Option<i16> {
        Some(i16::from_be_bytes(*self.bytes.get(at..)?.first_chunk()?))
    }

    fn i32(&self, at: usize) -> Option<i32> {
        Some(i32::from_be_bytes(*self.bytes.get(at..)?.first_chunk()?))
    }
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(SqlState::BAD_COPY_FILE_FORMAT, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(rows: &[&[Option<&[u8]>]]) -> Vec<u8> {
        let mut data = [&SIGNATURE[..], &[0; 4], &[0, 0, 0, 3], b"abc"].concat();
        for row in rows {
            data.extend(i16::try_from(row.len()).unwrap().to_be_bytes());
            for value in *row {
                let length = value.map_or(-1, |value| i32::try_from(value.len()).unwrap());
                data.extend(length.to_be_bytes());
                data.extend(value.unwrap_or_default());
            }
        }
        data
    }

    type Rows = Vec<Vec<Option<Vec<u8>>>>;

    fn read(data: &[u8], piece: usize) -> Result<Rows, Error> {
        let mut tuples = Tuples::default();
        let mut rows = vec![];
        let mut drain = |tuples: &mut Tuples| {
            while tuples.next(2)? {
                rows.push(tuples.values().map(|value| value.map(<[u8]>::to_vec)).collect());
            }
            Ok::<_, Error>(())
        };
        for piece in data.chunks(piece) {
            tuples.push(piece);
            drain(&mut tuples)?;
        }
        tuples.complete();
        drain(&mut tuples)?;
        assert!(tuples.is_over());
        Ok(rows)
    }

    #[test]
    fn rows_are_read_however_the_data_is_cut() {
        let mut data = data(&[&[Some(b"one"), None], &[Some(b""), Some(&[0xff; 300])]]);
        data.extend(END.to_be_bytes());
        let expected =
            vec![vec![Some(b"one".to_vec()), None], vec![Some(vec![]), Some(vec![0xff; 300])]];
        for piece in 1..data.len() {
            assert_eq!(read(&data, piece).unwrap(), expected, "{piece}");
        }
        // Without the trailer.
        assert_eq!(read(&data[..data.len() - 2], 7).unwrap(), expected);
    }

    #[test]
    fn every_truncation_and_every_change_of_the_frame_is_an_error_or_harmless() {
        let whole = data(&[&[Some(b"one"), None]]);
        for length in 0..whole.len() {
            // The header alone is a file without rows.
            let is_right = length == HEADER_BYTES + 3;
            assert_eq!(read(&whole[..length], 5).is_ok(), is_right, "{length}");
        }
        for place in 0..whole.len() {
            let mut changed = whole.clone();
            changed[place] ^= 0x81;
            let _ = read(&changed, 3);
        }
        let mut more = whole.clone();
        more.extend(END.to_be_bytes());
        more.push(0);
        assert_eq!(read(&more, 100).unwrap_err().message, "received copy data after EOF marker");
        let wrong = data(&[&[Some(b"one")]]);
        assert_eq!(read(&wrong, 100).unwrap_err().message, "row field count is 1, expected 2");
    }
}
