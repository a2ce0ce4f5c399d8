//! SQL text to statements: splits the text, parses each statement, and turns the parser's complaints
//! into PostgreSQL's.
//!
//! It knows no catalog; names are as written.

mod ancestors;
mod depth;
mod distinct;
mod lexis;
mod merge;
mod recursion;
mod sequences;
mod source;
mod spellings;
mod table_as;
mod utility;
mod words;

use std::sync::Arc;

use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

pub(crate) use merge::{DEFAULTS, NOTHING};
pub(crate) use sequences::Overriding;
pub(crate) use source::Source;
pub(crate) use spellings::VARIADIC;
pub(crate) use utility::{
    AlterSequence, Direction, Discard, Explain, ExplainSubject, IsolationLevel, Maintenance,
    RoleOptions, RoleStatement, SavepointAction, SequenceChange, Signal, TransactionModes, Utility,
};

use crate::session::Notice;
use crate::{Error, SqlState};

/// How deep a statement may nest.
const NESTING_MAX: usize = 256;

/// A parsed statement.
#[derive(Clone, Debug)]
pub struct Statement {
    pub(crate) tree: Tree,
    /// The text it is a part of: positions in errors count from its start.
    pub(crate) source: Arc<Source>,
    /// What the lexer had to say.
    pub(crate) notices: Vec<Notice>,
    /// What an INSERT does with values for identity columns.
    pub(crate) overriding: Option<Overriding>,
}

impl Statement {
    /// The cursor that it fetches from, moves or closes.
    pub fn cursor(&self) -> Option<&str> {
        match &self.tree {
            Tree::Utility(
                Utility::Fetch { name, .. } | Utility::CloseCursor { name: Some(name) },
            ) => Some(name),
            _ => None,
        }
    }
}

/// What a statement is.
#[derive(Clone, Debug)]
pub(crate) enum Tree {
    /// What the parser library knows.
    Sql(Box<ast::Statement>),
    /// What it doesn't know, or not as PostgreSQL means it.
    Utility(Utility),
}

/// Splits text into statements and parses them all.
pub(crate) fn parse(text: &str) -> Result<Vec<Statement>, Error> {
    let source = Arc::new(Source::new(text));
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text)
        .tokenize_with_location()
        .map_err(|error| source.lexical_error(&error))?;
    tokens
        .split(|token| token.token == Token::SemiColon)
        .filter(|tokens| !tokens.iter().all(is_blank))
        .map(|tokens| parse_one(&source, tokens))
        .collect()
}

fn is_blank(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Whitespace(_) | Token::EOF)
}

fn parse_one(source: &Arc<Source>, tokens: &[TokenWithSpan]) -> Result<Statement, Error> {
    let mut tokens = lexis::tokens(source, tokens)?;
    let notices = lexis::truncate_names(&mut tokens);
    if depth::longest_chain(&tokens).is_too_deep() {
        return Err(too_deep());
    }
    recursion::refuse_clauses(source, &tokens)?;
    sequences::order_options(&mut tokens);
    table_as::give_types(&mut tokens);
    merge::rewrite_actions(&mut tokens);
    spellings::rewrite(&mut tokens);
    let overriding = sequences::take_overriding(&mut tokens);
    let tree = parse_tree(source, tokens)?;
    Ok(Statement { tree, source: Arc::clone(source), notices, overriding })
}

fn parse_tree(source: &Arc<Source>, tokens: Vec<TokenWithSpan>) -> Result<Tree, Error> {
    Ok(match utility::parse(source, &tokens)? {
        Some(utility) => Tree::Utility(utility),
        None => {
            let statement = parse_tokens(source, tokens)?;
            Tree::Sql(Box::new(table_as::of_select_into(statement)?))
        }
    })
}

/// Parses what must be one statement of the parser library.
fn parse_tokens(source: &Source, tokens: Vec<TokenWithSpan>) -> Result<ast::Statement, Error> {
    let mut parser = Parser::new(&PostgreSqlDialect {})
        .with_recursion_limit(NESTING_MAX)
        .with_tokens_with_locations(tokens.clone());
    let parsed = parser.parse_statement();
    let rest = parser.peek_token();
    match parsed {
        Ok(mut statement) if rest.token == Token::EOF => {
            words::check(source, &statement)?;
            ancestors::replace(source, &mut statement);
            distinct::rebind(&mut statement);
            Ok(statement)
        }
        Ok(_) => Err(source.syntax_error(Some(&rest))),
        Err(ParserError::RecursionLimitExceeded) => Err(too_deep()),
        Err(ParserError::TokenizerError(message) | ParserError::ParserError(message)) => {
            Err(source.parser_error(&message, &tokens))
        }
    }
}

/// What a statement fails with that nests too deep.
pub(crate) fn too_deep() -> Error {
    Error::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded").with_hint(format!(
        "Statements may nest {NESTING_MAX} levels deep and chain {} operators.",
        depth::CHAIN_MAX
    ))
}
