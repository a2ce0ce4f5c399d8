//! DECLARE, FETCH, MOVE and CLOSE.

use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::tokenizer::Token;

use super::{Cursor, Utility};
use crate::parser::Tree;
use crate::{Error, SqlState};

/// Which rows of a cursor are meant, from where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// So many that follow; the row where it stands, for 0.
    Forward(u64),
    /// So many before, the nearest first; the row where it stands, for 0.
    Backward(u64),
    /// The row of this number from 1; from the last one, -1, if it is negative.
    Absolute(i64),
    /// The row so far away.
    Relative(i64),
}

impl Direction {
    const ALL: u64 = u64::MAX;

    fn of_count(count: i64) -> Self {
        match u64::try_from(count) {
            Ok(count) => Self::Forward(count),
            Err(_) => Self::Backward(count.unsigned_abs()),
        }
    }

    fn back(self) -> Self {
        match self {
            Self::Forward(count) => Self::Backward(count),
            Self::Backward(count) => Self::Forward(count),
            other => other,
        }
    }
}

impl Cursor<'_> {
    pub(super) fn declare(&mut self) -> Result<Utility, Error> {
        let name = self.name()?;
        let mut scroll = None;
        loop {
            if self.accept("binary") {
                return Err(Error::unsupported("a binary cursor")
                    .with_hint("Bind a portal with binary results instead."));
            } else if self.accept("scroll") {
                scroll = Some(true);
            } else if self.accept("no") {
                self.expect("scroll")?;
                scroll = Some(false);
            } else if !self.accept("insensitive") && !self.accept("asensitive") {
                break;
            }
        }
        self.expect("cursor")?;
        let mut hold = false;
        if self.accept("with") {
            self.expect("hold")?;
            hold = true;
        } else if self.accept("without") {
            self.expect("hold")?;
        }
        self.expect("for")?;
        let start = self.place;
        let query = self.inner_statement()?;
        match &query.tree {
            Tree::Sql(tree) if matches!(tree.as_ref(), ast::Statement::Query(_)) => {}
            _ => return Err(self.source.syntax_error(self.tokens.get(start))),
        }
        Ok(Utility::Declare { name, scroll, hold, query: Box::new(query) })
    }

    /// FETCH or MOVE.
    pub(super) fn fetch(&mut self, moves: bool) -> Result<Utility, Error> {
        let direction = self.direction()?;
        if self.place + 1 < self.tokens.len() {
            let _ = self.accept("from") || self.accept("in");
        }
        Ok(Utility::Fetch { name: self.name()?, direction, moves })
    }

    pub(super) fn close(&mut self) -> Result<Utility, Error> {
        let name = if self.accept("all") { None } else { Some(self.name()?) };
        Ok(Utility::CloseCursor { name })
    }

    fn direction(&mut self) -> Result<Direction, Error> {
        // A cursor may have the name of any of these words.
        if self.place + 1 == self.tokens.len() {
            return Ok(Direction::Forward(1));
        }
        let Some(word) = self.word() else {
            return match self.count()? {
                Some(count) => Ok(Direction::of_count(count)),
                None => Ok(Direction::Forward(1)),
            };
        };
        let direction = match word.as_str() {
            "next" => Direction::Forward(1),
            "prior" => Direction::Backward(1),
            "first" => Direction::Absolute(1),
            "last" => Direction::Absolute(-1),
            "all" => Direction::Forward(Direction::ALL),
            "absolute" | "relative" => {
                self.place += 1;
                let count = self.count()?.ok_or_else(|| self.unexpected())?;
                return Ok(match word.as_str() {
                    "absolute" => Direction::Absolute(count),
                    _ => Direction::Relative(count),
                });
            }
            "forward" | "backward" => {
                self.place += 1;
                let forward = if self.place + 1 < self.tokens.len() && self.accept("all") {
                    Direction::Forward(Direction::ALL)
                } else {
                    Direction::of_count(self.count()?.unwrap_or(1))
                };
                return Ok(if word == "backward" { forward.back() } else { forward });
            }
            // FROM or IN, or the cursor's name.
            _ => return Ok(Direction::Forward(1)),
        };
        self.place += 1;
        Ok(direction)
    }

    /// A whole number, if one stands here.
    fn count(&mut self) -> Result<Option<i64>, Error> {
        let start = self.place;
        let sign = if self.accept_token(&Token::Minus) {
            "-"
        } else {
            self.accept_token(&Token::Plus);
            ""
        };
        let Some(Token::Number(digits, _)) = self.tokens.get(self.place).map(|t| &t.token) else {
            return if self.place == start { Ok(None) } else { Err(self.unexpected()) };
        };
        let count: i64 = format!("{sign}{digits}").parse().map_err(|_| {
            let message = format!("integer out of range: {sign}{digits}");
            Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
        })?;
        self.place += 1;
        Ok(Some(count))
    }
}
