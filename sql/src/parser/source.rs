//! The text that statements come from, and places in it.

use datafusion::sql::sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, TokenizerError};

use crate::{Error, SqlState};

/// A text that statements come from.
#[derive(Debug)]
pub(crate) struct Source {
    text: String,
    /// By line: its first byte and its first character.
    lines: Vec<(usize, usize)>,
}

impl Source {
    pub(super) fn new(text: &str) -> Self {
        let mut lines = vec![(0, 0)];
        for (characters, (bytes, character)) in text.char_indices().enumerate() {
            if character == '\n' {
                lines.push((bytes + 1, characters + 1));
            }
        }
        Self { text: text.to_owned(), lines }
    }

    /// The whole text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// A place as PostgreSQL counts: characters from 1. `None` for one that was made up.
    pub(crate) fn position(&self, location: Location) -> Option<u32> {
        let line = usize::try_from(location.line).ok()?.checked_sub(1)?;
        let column = usize::try_from(location.column).ok()?.checked_sub(1)?;
        let (_, characters) = self.lines.get(line)?;
        u32::try_from(characters + column + 1).ok()
    }

    /// The same error, at a place.
    pub(crate) fn locate(&self, error: Error, span: Span) -> Error {
        match self.position(span.start) {
            Some(position) if error.position.is_none() => error.at(position),
            _ => error,
        }
    }

    fn byte(&self, location: Location) -> usize {
        let line = (location.line as usize).saturating_sub(1);
        let Some((start, _)) = self.lines.get(line) else { return self.text.len() };
        let column = (location.column as usize).saturating_sub(1);
        self.text[*start..]
            .char_indices()
            .nth(column)
            .map_or(self.text.len(), |(offset, _)| start + offset)
    }

    /// The text from one place to another.
    pub(super) fn between(&self, start: Location, end: Location) -> &str {
        &self.text[self.byte(start)..self.byte(end)]
    }

    /// The text from the first to the last of some tokens.
    pub(super) fn slice(&self, tokens: &[TokenWithSpan]) -> &str {
        match (tokens.first(), tokens.last()) {
            (Some(first), Some(last)) => self.between(first.span.start, last.span.end),
            _ => "",
        }
    }

    /// What PostgreSQL says when it can't go on at a token, or at the end.
    pub(super) fn syntax_error(&self, token: Option<&TokenWithSpan>) -> Error {
        match token {
            Some(token) if token.token != Token::EOF => {
                let text = self.slice(std::slice::from_ref(token));
                let message = format!("syntax error at or near \"{text}\"");
                self.locate(Error::new(SqlState::SYNTAX_ERROR, message), token.span)
            }
            _ => {
                let end = self.text.trim_end().trim_end_matches(';').chars().count() + 1;
                Error::new(SqlState::SYNTAX_ERROR, "syntax error at end of input").at(end as u32)
            }
        }
    }

    pub(super) fn lexical_error(&self, error: &TokenizerError) -> Error {
        let rest = &self.text[self.byte(error.location)..];
        let message = match error.message.as_str() {
            message if message.starts_with("Unterminated string") => {
                format!("unterminated quoted string at or near \"{rest}\"")
            }
            message if message.starts_with("Unterminated encoded string") => {
                format!("unterminated quoted string at or near \"{rest}\"")
            }
            message if message.starts_with("Expected close delimiter '\"'") => {
                format!("unterminated quoted identifier at or near \"{rest}\"")
            }
            message if message.contains("multi-line comment") => {
                "unterminated /* comment".to_owned()
            }
            message if message.contains("dollar-quoted") => {
                format!("unterminated dollar-quoted string at or near \"{rest}\"")
            }
            _ => {
                let near = rest.split_whitespace().next().unwrap_or_default();
                format!("syntax error at or near \"{near}\"")
            }
        };
        let error_at = Error::new(SqlState::SYNTAX_ERROR, message);
        match self.position(error.location) {
            Some(position) => error_at.at(position),
            None => error_at,
        }
    }

    /// The parser library ends its messages with the place where it stopped.
    pub(super) fn parser_error(&self, message: &str, tokens: &[TokenWithSpan]) -> Error {
        match stopped_at(message) {
            Some(location) => {
                let token = tokens.iter().find(|token| token.span.start == location);
                self.syntax_error(token)
            }
            None if message.contains("found: EOF") => self.syntax_error(None),
            None => {
                let detail = format!("{}.", message.trim_start_matches("sql parser error: "));
                self.syntax_error(tokens.first()).with_detail(detail)
            }
        }
    }
}

fn stopped_at(message: &str) -> Option<Location> {
    let (_, place) = message.rsplit_once(" at Line: ")?;
    let (line, column) = place.split_once(", Column: ")?;
    Some(Location { line: line.parse().ok()?, column: column.parse().ok()? })
}
