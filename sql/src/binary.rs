//! PostgreSQL's binary format of values: out of Arrow arrays, and into the text that is read as a value.
//!
//! Types without a binary form here are refused with 0A000; never sent in another form.

mod moment;
mod numeric;
mod parameter;
mod value;

pub use parameter::{read, utf8};
pub use value::BinaryColumn;

use bytes::BytesMut;

use crate::{Error, SqlState};

/// How long a value or a message may be.
const BYTES_MAX: u32 = 0x3fff_fffe;

/// Writes a length into the four bytes that were left for it.
///
/// # Errors
///
/// 54000 if it is more than a message can have.
pub fn patch_length(buffer: &mut BytesMut, start: usize, length: usize) -> Result<(), Error> {
    buffer[start..start + 4].copy_from_slice(&checked_length(length)?.to_be_bytes());
    Ok(())
}

/// A length as messages have it.
///
/// # Errors
///
/// 54000 if it is more than a message can have.
pub fn checked_length(length: usize) -> Result<u32, Error> {
    match u32::try_from(length) {
        Ok(length) if length <= BYTES_MAX => Ok(length),
        _ => Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "a row is too long to be sent")),
    }
}
