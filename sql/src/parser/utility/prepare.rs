//! PREPARE, EXECUTE, DEALLOCATE and DISCARD.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{Cursor, Utility};
use crate::Error;
use crate::parser::{Statement, Tree, parse_tree};

/// What DISCARD forgets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Discard {
    /// All that a session has.
    All,
    /// Cached plans, of which there are none.
    Plans,
    /// What sequences have given.
    Sequences,
    /// Temporary tables, of which there are none.
    Temporary,
}

impl Discard {
    /// Its command tag.
    pub(crate) fn tag(self) -> &'static str {
        match self {
            Self::All => "DISCARD ALL",
            Self::Plans => "DISCARD PLANS",
            Self::Sequences => "DISCARD SEQUENCES",
            Self::Temporary => "DISCARD TEMP",
        }
    }
}

impl Cursor<'_> {
    pub(super) fn prepare(&mut self) -> Result<Utility, Error> {
        let name = self.name()?;
        let mut types = vec![];
        if self.accept_token(&Token::LParen) {
            loop {
                types.push(self.type_name()?);
                if !self.accept_token(&Token::Comma) {
                    break;
                }
            }
            if !self.accept_token(&Token::RParen) {
                return Err(self.unexpected());
            }
        }
        self.expect("as")?;
        let statement = Box::new(self.inner_statement()?);
        Ok(Utility::Prepare { name, types, statement })
    }

    pub(super) fn execute(&mut self) -> Result<Utility, Error> {
        let name = self.name()?;
        let mut arguments = vec![];
        if self.place < self.tokens.len() {
            if !self.accept_token(&Token::LParen) {
                return Err(self.unexpected());
            }
            let mut parser = self.parser(self.place);
            let parsed = parser.parse_comma_separated(Parser::parse_expr);
            arguments = parsed.map_err(|_| self.source.syntax_error(Some(&parser.peek_token())))?;
            self.place = self.tokens.len();
            if parser.next_token().token != Token::RParen || parser.peek_token().token != Token::EOF
            {
                return Err(self.source.syntax_error(self.tokens.last()));
            }
        }
        Ok(Utility::Execute { name, arguments })
    }

    pub(super) fn deallocate(&mut self) -> Result<Utility, Error> {
        // A statement may have this name, too.
        if self.place + 1 < self.tokens.len() {
            self.accept("prepare");
        }
        let name = if self.accept("all") { None } else { Some(self.name()?) };
        Ok(Utility::Deallocate { name })
    }

    pub(super) fn discard(&mut self) -> Result<Utility, Error> {
        let kinds = [
            ("all", Discard::All),
            ("plans", Discard::Plans),
            ("sequences", Discard::Sequences),
            ("temp", Discard::Temporary),
            ("temporary", Discard::Temporary),
        ];
        let found = kinds.into_iter().find(|(word, _)| self.accept(word));
        found.map(|(_, discard)| Utility::Discard(discard)).ok_or_else(|| self.unexpected())
    }

    /// All that follows, as a statement of its own: one that reads or writes rows.
    pub(super) fn inner_statement(&mut self) -> Result<Statement, Error> {
        let start = self.place;
        self.place = self.tokens.len();
        let tree = parse_tree(self.source, self.tokens[start..].to_vec())?;
        let is_allowed = match &tree {
            Tree::Sql(tree) => matches!(
                tree.as_ref(),
                ast::Statement::Query(_)
                    | ast::Statement::Insert(_)
                    | ast::Statement::Update(_)
                    | ast::Statement::Delete(_)
                    | ast::Statement::Merge(_)
            ),
            Tree::Utility(_) => false,
        };
        if !is_allowed {
            return Err(self.source.syntax_error(self.tokens.get(start)));
        }
        Ok(Statement { tree, source: Arc::clone(self.source), notices: vec![], overriding: None })
    }

    fn type_name(&mut self) -> Result<ast::DataType, Error> {
        let start = self.place;
        let mut parser = self.parser(start);
        let parsed = parser.parse_data_type();
        let kind = parsed.map_err(|_| self.source.syntax_error(self.tokens.get(start)))?;
        self.place = self.tokens.len() - rest(parser);
        Ok(kind)
    }

    fn parser(&self, from: usize) -> Parser<'static> {
        let tokens: Vec<TokenWithSpan> = self.tokens[from..].to_vec();
        Parser::new(&PostgreSqlDialect {}).with_tokens_with_locations(tokens)
    }
}

/// How many tokens a parser has left.
fn rest(mut parser: Parser<'_>) -> usize {
    let mut rest = 0;
    while parser.next_token().token != Token::EOF {
        rest += 1;
    }
    rest
}
