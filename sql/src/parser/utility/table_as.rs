//! WITH [NO] DATA at the end of CREATE TABLE AS, and of CREATE MATERIALIZED VIEW.

use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::tokenizer::Token;

use super::{Cursor, Utility};
use crate::Error;
use crate::parser::parse_tokens;

impl Cursor<'_> {
    /// How many words at the end say whether there is data, and what they say.
    pub(super) fn data_at_the_end(&self) -> Option<(usize, bool)> {
        let ends_with = |words: &[&str]| {
            words.len() < self.tokens.len()
                && words.iter().rev().zip(self.tokens.iter().rev()).all(|(word, token)| {
                    matches!(&token.token, Token::Word(found)
                        if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
                })
        };
        if ends_with(&["with", "no", "data"]) {
            return Some((3, false));
        }
        ends_with(&["with", "data"]).then_some((2, true))
    }

    /// CREATE TABLE AS, if it is one and says it.
    pub(super) fn create_table_as(&mut self) -> Result<Option<Utility>, Error> {
        let Some((taken, with_data)) = self.data_at_the_end() else { return Ok(None) };
        self.accept("unlogged");
        if !self.accept("table") {
            return Ok(None);
        }
        let tokens = self.tokens[..self.tokens.len() - taken].to_vec();
        Ok(match parse_tokens(self.source, tokens)? {
            ast::Statement::CreateTable(create) if create.query.is_some() => {
                Some(Utility::CreateTableAs { create: Box::new(create), with_data })
            }
            _ => None,
        })
    }
}
