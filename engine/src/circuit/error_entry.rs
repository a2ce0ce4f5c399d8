//! Errors that travel in the place of a row, out of operators that can't book them.

use stillframe_protocol::RowError;

use crate::row::Row;

/// No encoded field starts so.
const ERROR: u8 = 0xFF;
const SQLSTATE_LEN: usize = 5;

/// An error as a row.
pub(crate) fn error_row(error: &RowError) -> Row {
    debug_assert_eq!(error.sqlstate.len(), SQLSTATE_LEN);
    let length = u16::try_from(error.message.len()).unwrap_or(u16::MAX);
    let message = &error.message.as_bytes()[..usize::from(length)];
    let length = length.to_be_bytes();
    Row::concatenate([&[ERROR][..], &length, error.sqlstate.as_bytes(), message])
}

/// The error that stands at the start of `bytes`, if one does.
pub(crate) fn parse_error(bytes: &[u8]) -> Option<RowError> {
    let (length, bytes) = bytes.strip_prefix(&[ERROR])?.split_first_chunk::<2>()?;
    let (sqlstate, bytes) = bytes.split_at_checked(SQLSTATE_LEN)?;
    let message = bytes.get(..usize::from(u16::from_be_bytes(*length)))?;
    Some(RowError {
        sqlstate: String::from_utf8_lossy(sqlstate).into_owned(),
        message: String::from_utf8_lossy(message).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_survives_the_journey() {
        let error =
            RowError { sqlstate: "22003".to_owned(), message: "bigint out of range".to_owned() };
        let row = error_row(&error);
        let joined = [row.as_bytes(), b"and what a join adds"].concat();
        assert_eq!(parse_error(&joined), Some(error));
        assert_eq!(parse_error(&[1, 2, 3]), None);
        assert_eq!(parse_error(&[]), None);
    }
}
