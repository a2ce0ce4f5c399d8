//! LISTEN, UNLISTEN and NOTIFY.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::{Cursor, Utility};
use crate::Error;

/// What a session wants to hear or to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// To hear what is told on a channel.
    Listen(String),
    /// To hear no more of it; of none, without a channel.
    Unlisten(Option<String>),
    /// To tell something.
    Notify { channel: String, payload: String },
}

impl Signal {
    /// Its command tag.
    pub(crate) fn tag(&self) -> &'static str {
        match self {
            Self::Listen(_) => "LISTEN",
            Self::Unlisten(_) => "UNLISTEN",
            Self::Notify { .. } => "NOTIFY",
        }
    }
}

impl Cursor<'_> {
    pub(super) fn listen(&mut self) -> Result<Utility, Error> {
        Ok(Utility::Signal(Signal::Listen(self.name()?)))
    }

    pub(super) fn unlisten(&mut self) -> Result<Utility, Error> {
        let all = self.accept_token(&Token::Mul);
        let channel = if all { None } else { Some(self.name()?) };
        Ok(Utility::Signal(Signal::Unlisten(channel)))
    }

    pub(super) fn notify(&mut self) -> Result<Utility, Error> {
        let channel = self.name()?;
        let mut payload = String::new();
        if self.accept_token(&Token::Comma) {
            match self.tokens.get(self.place).map(|token| &token.token) {
                Some(Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text)) => {
                    payload.clone_from(text);
                    self.place += 1;
                }
                _ => return Err(self.unexpected()),
            }
        }
        Ok(Utility::Signal(Signal::Notify { channel, payload }))
    }
}
