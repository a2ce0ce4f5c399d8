//! `uuid` in text.

use ::uuid::Uuid;

use crate::Error;
use crate::text::invalid_syntax;

/// The canonical spelling of a `uuid`.
pub(super) fn uuid(text: &str) -> Result<String, Error> {
    let bare = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(text);
    match Uuid::try_parse(bare) {
        Ok(value) if !bare.starts_with("urn") && !bare.starts_with('{') => {
            Ok(value.hyphenated().to_string())
        }
        _ => Err(invalid_syntax("uuid", text)),
    }
}
