//! Many rows as one: what a partition comes to, as a value of dbsp's aggregation.
//!
//! A byte that no error starts with, then for each row how often it is there and its length, four
//! bytes each, and its bytes.

use stillframe_protocol::RowError;

use super::gather::too_many;
use crate::row::Row;

const SHEET: u8 = 0;
const NUMBER: usize = size_of::<u32>();

/// A sheet that is being written.
pub(super) struct Sheet {
    bytes: Vec<u8>,
    /// Where the last row's entry starts.
    last: Option<usize>,
}

impl Sheet {
    pub(super) fn new() -> Self {
        Self { bytes: vec![SHEET], last: None }
    }

    /// Adds a row in two parts. One that equals the last is counted.
    pub(super) fn push(&mut self, head: &[u8], tail: &[u8]) {
        if let Some(last) = self.last
            && self.bytes[last + 2 * NUMBER..].strip_prefix(head) == Some(tail)
        {
            let count = number(&self.bytes, last) + 1;
            self.bytes[last..last + NUMBER].copy_from_slice(&count.to_be_bytes());
            return;
        }
        self.entry(1, head, tail);
    }

    /// Adds a row that is there so often.
    pub(super) fn push_copies(&mut self, row: &[u8], count: usize) -> Result<(), RowError> {
        let count = u32::try_from(count)
            .map_err(|_| too_many("a partition comes to too many equal rows".to_owned()))?;
        self.entry(count, row, &[]);
        Ok(())
    }

    fn entry(&mut self, count: u32, head: &[u8], tail: &[u8]) {
        self.last = Some(self.bytes.len());
        self.bytes.extend_from_slice(&count.to_be_bytes());
        let length = (head.len() + tail.len()) as u32;
        self.bytes.extend_from_slice(&length.to_be_bytes());
        self.bytes.extend_from_slice(head);
        self.bytes.extend_from_slice(tail);
    }

    /// The sheet as a row; none without rows.
    pub(super) fn into_row(self) -> Result<Option<Row>, RowError> {
        if self.last.is_none() {
            return Ok(None);
        }
        if u32::try_from(self.bytes.len()).is_err() {
            return Err(too_many("a partition comes to more than 4 GiB".to_owned()));
        }
        Ok(Some(Row::new(&self.bytes)))
    }
}

/// The rows of a sheet, each with how often it is there.
pub(super) fn entries(sheet: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    let mut rest = sheet.get(1..).unwrap_or_default();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (count, length) = (number(rest, 0), number(rest, NUMBER) as usize);
        let (row, after) = rest[2 * NUMBER..].split_at(length);
        rest = after;
        Some((count, row))
    })
}

fn number(bytes: &[u8], place: usize) -> u32 {
    let number = bytes.get(place..).and_then(|bytes| bytes.first_chunk());
    u32::from_be_bytes(*number.expect("a sheet is whole"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_again_and_equal_neighbours_counted() {
        let mut sheet = Sheet::new();
        for (head, tail) in [("a", "bc"), ("ab", "c"), ("", ""), ("", ""), ("abc", "")] {
            sheet.push(head.as_bytes(), tail.as_bytes());
        }
        let row = sheet.into_row().unwrap().unwrap();
        let found: Vec<_> = entries(row.as_bytes()).collect();
        assert_eq!(found, [(2, &b"abc"[..]), (2, &b""[..]), (1, &b"abc"[..])]);
        assert_eq!(Sheet::new().into_row(), Ok(None));
    }
}
