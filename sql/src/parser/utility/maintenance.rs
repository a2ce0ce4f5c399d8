//! VACUUM, ANALYZE, REINDEX, CLUSTER and CHECKPOINT: nothing of ours needs them, but many programs
//! send them.

use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::tokenizer::Token;

use super::{Cursor, Utility};
use crate::{Error, SqlState};

/// What is to be put in order.
#[derive(Clone, Debug)]
pub(crate) struct Maintenance {
    pub(crate) tag: &'static str,
    /// The relations that it names; of `REINDEX INDEX` the index.
    pub(crate) names: Vec<ast::ObjectName>,
    pub(crate) names_index: bool,
    /// Whether it must be a transaction of its own.
    pub(crate) is_alone: bool,
}

impl Maintenance {
    fn of(tag: &'static str, names: Vec<ast::ObjectName>, is_alone: bool) -> Utility {
        Utility::Maintain(Self { tag, names, names_index: false, is_alone })
    }
}

impl Cursor<'_> {
    pub(super) fn vacuum(&mut self) -> Result<Utility, Error> {
        const OPTIONS: &[&str] = &[
            "full",
            "freeze",
            "verbose",
            "analyze",
            "disable_page_skipping",
            "skip_locked",
            "index_cleanup",
            "process_toast",
            "truncate",
            "parallel",
        ];
        if !self.options("VACUUM", OPTIONS)? {
            for word in ["full", "freeze", "verbose", "analyze"] {
                self.accept(word);
            }
        }
        Ok(Maintenance::of("VACUUM", self.tables()?, true))
    }

    pub(super) fn analyze(&mut self) -> Result<Utility, Error> {
        if !self.options("ANALYZE", &["verbose", "skip_locked"])? {
            self.accept("verbose");
        }
        Ok(Maintenance::of("ANALYZE", self.tables()?, false))
    }

    pub(super) fn reindex(&mut self) -> Result<Utility, Error> {
        self.options("REINDEX", &["verbose", "concurrently", "tablespace"])?;
        let what = self.name()?;
        let concurrently = self.accept("concurrently");
        let name = self.relation_name()?;
        let (names, names_index, is_alone) = match what.as_str() {
            "index" => (vec![name], true, concurrently),
            "table" => (vec![name], false, concurrently),
            "schema" | "database" | "system" => (vec![], false, true),
            _ => return Err(self.unexpected()),
        };
        Ok(Utility::Maintain(Maintenance { tag: "REINDEX", names, names_index, is_alone }))
    }

    pub(super) fn cluster(&mut self) -> Result<Utility, Error> {
        if !self.options("CLUSTER", &["verbose"])? {
            self.accept("verbose");
        }
        if self.place == self.tokens.len() {
            return Ok(Maintenance::of("CLUSTER", vec![], true));
        }
        let name = self.relation_name()?;
        if self.accept("using") {
            self.name()?;
        }
        Ok(Maintenance::of("CLUSTER", vec![name], false))
    }

    pub(super) fn checkpoint() -> Utility {
        Maintenance::of("CHECKPOINT", vec![], false)
    }

    /// Options in parentheses; false if there are none.
    fn options(&mut self, command: &str, known: &[&str]) -> Result<bool, Error> {
        if !self.accept_token(&Token::LParen) {
            return Ok(false);
        }
        loop {
            let place = self.place;
            let option = self.name()?;
            if !known.contains(&option.as_str()) {
                let message = format!("unrecognized {command} option \"{option}\"");
                let error = Error::new(SqlState::SYNTAX_ERROR, message);
                return Err(self.source.locate(error, self.tokens[place].span));
            }
            let ends = |token: &Token| matches!(token, Token::Comma | Token::RParen);
            if self.tokens.get(self.place).is_some_and(|token| !ends(&token.token)) {
                self.value()?;
            }
            if !self.accept_token(&Token::Comma) {
                break;
            }
        }
        match self.accept_token(&Token::RParen) {
            true => Ok(true),
            false => Err(self.unexpected()),
        }
    }

    /// Tables to the end, perhaps with columns.
    fn tables(&mut self) -> Result<Vec<ast::ObjectName>, Error> {
        let mut names = vec![];
        while self.place < self.tokens.len() {
            names.push(self.relation_name()?);
            if self.accept_token(&Token::LParen) {
                self.name()?;
                while self.accept_token(&Token::Comma) {
                    self.name()?;
                }
                if !self.accept_token(&Token::RParen) {
                    return Err(self.unexpected());
                }
            }
            if !self.accept_token(&Token::Comma) {
                break;
            }
        }
        Ok(names)
    }
}
