//! ALTER SEQUENCE, which the parser library doesn't know.

use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;

use super::{Cursor, Utility};
use crate::Error;

/// An ALTER SEQUENCE.
#[derive(Clone, Debug)]
pub(crate) struct AlterSequence {
    pub(crate) name: ast::ObjectName,
    pub(crate) if_exists: bool,
    pub(crate) changes: Vec<SequenceChange>,
}

/// What is changed of a sequence.
#[derive(Clone, Debug)]
pub(crate) enum SequenceChange {
    Type(ast::DataType),
    Increment(i64),
    /// None for what the type has.
    Min(Option<i64>),
    Max(Option<i64>),
    Start(i64),
    /// None for where it has started.
    Restart(Option<i64>),
    Cache(i64),
    Cycle(bool),
    OwnedBy(ast::ObjectName),
    Rename(String),
}

impl Cursor<'_> {
    /// ALTER SEQUENCE, if it is one.
    pub(super) fn alter_sequence(&mut self) -> Result<Option<Utility>, Error> {
        if !self.accept("sequence") {
            return Ok(None);
        }
        let if_exists = self.accept("if");
        if if_exists {
            self.expect("exists")?;
        }
        let name = self.relation_name()?;
        let mut changes = vec![];
        if self.accept("rename") {
            self.expect("to")?;
            changes.push(SequenceChange::Rename(self.name()?));
        } else {
            while self.place < self.tokens.len() {
                changes.push(self.sequence_change()?);
            }
            if changes.is_empty() {
                return Err(self.unexpected());
            }
        }
        self.end()?;
        Ok(Some(Utility::AlterSequence(AlterSequence { name, if_exists, changes })))
    }

    fn sequence_change(&mut self) -> Result<SequenceChange, Error> {
        use SequenceChange::{Cache, Cycle, Increment, Max, Min, OwnedBy, Restart, Start, Type};
        if self.accept("as") {
            let start = self.place;
            self.name()?;
            let tokens = self.tokens[start..self.place].to_vec();
            let mut parser = Parser::new(&PostgreSqlDialect {}).with_tokens_with_locations(tokens);
            let parsed = parser.parse_data_type();
            return parsed.map(Type).map_err(|_| self.unexpected());
        }
        if self.accept("increment") {
            self.accept("by");
            return Ok(Increment(self.integer()?));
        }
        if self.accept("minvalue") {
            return Ok(Min(Some(self.integer()?)));
        }
        if self.accept("maxvalue") {
            return Ok(Max(Some(self.integer()?)));
        }
        if self.accept("start") {
            self.accept("with");
            return Ok(Start(self.integer()?));
        }
        if self.accept("restart") {
            let has_value = self.accept("with") || self.is_number();
            return Ok(Restart(if has_value { Some(self.integer()?) } else { None }));
        }
        if self.accept("cache") {
            return Ok(Cache(self.integer()?));
        }
        if self.accept("cycle") {
            return Ok(Cycle(true));
        }
        if self.accept("owned") {
            self.expect("by")?;
            return Ok(OwnedBy(self.relation_name()?));
        }
        if self.accept("no") {
            return match self.name()?.as_str() {
                "minvalue" => Ok(Min(None)),
                "maxvalue" => Ok(Max(None)),
                "cycle" => Ok(Cycle(false)),
                _ => Err(self.unexpected()),
            };
        }
        Err(self.unexpected())
    }

    fn is_number(&self) -> bool {
        let token = self.tokens.get(self.place).map(|token| &token.token);
        matches!(token, Some(Token::Number(..) | Token::Minus | Token::Plus))
    }

    fn integer(&mut self) -> Result<i64, Error> {
        if !self.is_number() {
            return Err(self.unexpected());
        }
        self.value()?.parse().map_err(|_| self.unexpected())
    }
}
