//! The statements that are read here and not by the parser library: those about settings and
//! transactions, and what only PostgreSQL has.

mod alter_sequence;
mod cursor;
mod maintenance;
mod prepare;
mod role;
mod signal;
mod table_as;

use std::sync::Arc;

use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

pub(crate) use alter_sequence::{AlterSequence, SequenceChange};
pub(crate) use cursor::Direction;
pub(crate) use maintenance::Maintenance;
pub(crate) use prepare::Discard;
pub(crate) use role::{RoleOptions, RoleStatement};
pub(crate) use signal::Signal;

use super::{Source, Statement, Tree, parse_tokens};
use crate::copy::{self, CopyStatement, Unexpected};
use crate::{Error, SqlState};

/// A statement that only PostgreSQL has, or not as the parser library means it.
#[derive(Clone, Debug)]
pub(crate) enum Utility {
    /// SET; without a value, to the default.
    Set { local: bool, name: String, value: Option<String> },
    /// SHOW.
    Show { name: String },
    /// SHOW ALL.
    ShowAll,
    /// RESET.
    Reset { name: String },
    /// RESET ALL.
    ResetAll,
    /// DISCARD.
    Discard(Discard),
    /// PREPARE, with the types that its parameters are given.
    Prepare { name: String, types: Vec<ast::DataType>, statement: Box<Statement> },
    /// EXECUTE.
    Execute { name: String, arguments: Vec<ast::Expr> },
    /// DEALLOCATE; all, without a name.
    Deallocate { name: Option<String> },
    /// DECLARE, with whether it may go back, if that is said.
    Declare { name: String, scroll: Option<bool>, hold: bool, query: Box<Statement> },
    /// FETCH, or MOVE, which shows no rows.
    Fetch { name: String, direction: Direction, moves: bool },
    /// CLOSE; all, without a name.
    CloseCursor { name: Option<String> },
    /// BEGIN, START TRANSACTION.
    Begin { modes: TransactionModes, tag: &'static str },
    /// SET TRANSACTION.
    SetTransaction { modes: TransactionModes },
    /// SET SESSION CHARACTERISTICS AS TRANSACTION.
    SetDefaultTransaction { modes: TransactionModes },
    /// SET CONSTRAINTS: without names of all.
    SetConstraints { names: Option<Vec<String>>, deferred: bool },
    /// COMMIT, END.
    Commit { chain: bool },
    /// ROLLBACK, ABORT.
    Rollback { chain: bool },
    /// SAVEPOINT, RELEASE, ROLLBACK TO.
    Savepoint { action: SavepointAction, name: String },
    /// CREATE MATERIALIZED VIEW, with WITH [NO] DATA taken off.
    CreateMaterializedView { create: Box<ast::CreateView>, with_data: bool },
    /// COPY.
    Copy(CopyStatement),
    /// EXPLAIN.
    Explain(Explain),
    /// ALTER SEQUENCE.
    AlterSequence(AlterSequence),
    /// CREATE, ALTER or DROP ROLE.
    Role(RoleStatement),
    /// LISTEN, UNLISTEN, NOTIFY.
    Signal(Signal),
    /// VACUUM and its like.
    Maintain(Maintenance),
    /// CREATE TABLE AS that says WITH [NO] DATA.
    CreateTableAs { create: Box<ast::CreateTable>, with_data: bool },
    /// REFRESH MATERIALIZED VIEW.
    Refresh { name: ast::ObjectName, with_data: bool },
}

/// An EXPLAIN.
#[derive(Clone, Debug)]
pub(crate) struct Explain {
    pub(crate) analyze: bool,
    pub(crate) verbose: bool,
    pub(crate) subject: ExplainSubject,
}

/// What is explained.
#[derive(Clone, Debug)]
pub(crate) enum ExplainSubject {
    /// How it would be run.
    Statement(Box<Tree>),
    /// How it is kept.
    MaterializedView(ast::ObjectName),
}

/// What a transaction asks for; what it doesn't mention is as the session's defaults have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TransactionModes {
    pub(crate) isolation: Option<IsolationLevel>,
    pub(crate) read_only: Option<bool>,
}

/// What is done about a savepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SavepointAction {
    /// SAVEPOINT.
    Set,
    /// RELEASE.
    Release,
    /// ROLLBACK TO.
    RollbackTo,
}

impl SavepointAction {
    /// As messages have it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Set => "SAVEPOINT",
            Self::Release => "RELEASE SAVEPOINT",
            Self::RollbackTo => "ROLLBACK TO SAVEPOINT",
        }
    }
}

/// What a transaction sees of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IsolationLevel {
    /// Each statement sees what was committed before it.
    ReadCommitted,
    /// All statements see what the first one saw.
    RepeatableRead,
}

impl IsolationLevel {
    /// As SHOW has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ReadCommitted => "read committed",
            Self::RepeatableRead => "repeatable read",
        }
    }

    /// Reads a level. SERIALIZABLE would be a promise we don't keep.
    pub(crate) fn from_name(name: &str) -> Result<Self, Error> {
        match name.to_ascii_lowercase().as_str() {
            "read committed" | "read uncommitted" => Ok(Self::ReadCommitted),
            "repeatable read" => Ok(Self::RepeatableRead),
            "serializable" => Err(Error::unsupported("isolation level SERIALIZABLE")
                .with_hint("Use REPEATABLE READ.")),
            _ => Err(Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("invalid value for parameter \"transaction_isolation\": \"{name}\""),
            )),
        }
    }
}

/// Reads one of these statements; `None` if it is none of them.
pub(super) fn parse(
    source: &Arc<Source>,
    tokens: &[TokenWithSpan],
) -> Result<Option<Utility>, Error> {
    if let Some(copy) = copy::parse(tokens) {
        let copy = copy.map_err(|Unexpected(place)| source.syntax_error(tokens.get(place)))?;
        return Ok(Some(Utility::Copy(copy)));
    }
    let mut cursor = Cursor { source, tokens, place: 0 };
    let Some(first) = cursor.word() else { return Ok(None) };
    cursor.place += 1;
    let utility = match first.as_str() {
        "set" => cursor.set()?,
        "show" => cursor.show()?,
        "reset" => match cursor.variable()? {
            name if name == "all" => Utility::ResetAll,
            name => Utility::Reset { name },
        },
        "discard" => cursor.discard()?,
        "prepare" => cursor.prepare()?,
        "execute" => cursor.execute()?,
        "deallocate" => cursor.deallocate()?,
        "declare" => cursor.declare()?,
        "fetch" => cursor.fetch(false)?,
        "move" => cursor.fetch(true)?,
        "close" => cursor.close()?,
        "listen" => cursor.listen()?,
        "unlisten" => cursor.unlisten()?,
        "notify" => cursor.notify()?,
        "begin" => {
            cursor.accept("transaction");
            cursor.accept("work");
            Utility::Begin { modes: cursor.modes()?, tag: "BEGIN" }
        }
        "start" => {
            cursor.expect("transaction")?;
            Utility::Begin { modes: cursor.modes()?, tag: "START TRANSACTION" }
        }
        "commit" | "end" => {
            cursor.accept_block_word();
            Utility::Commit { chain: cursor.chain()? }
        }
        "rollback" | "abort" => {
            cursor.accept_block_word();
            if cursor.accept("to") {
                cursor.savepoint(SavepointAction::RollbackTo)?
            } else {
                Utility::Rollback { chain: cursor.chain()? }
            }
        }
        "savepoint" => Utility::Savepoint { action: SavepointAction::Set, name: cursor.name()? },
        "release" => cursor.savepoint(SavepointAction::Release)?,
        "refresh" => cursor.refresh()?,
        "vacuum" => cursor.vacuum()?,
        "analyze" | "analyse" => cursor.analyze()?,
        "reindex" => cursor.reindex()?,
        "cluster" => cursor.cluster()?,
        "checkpoint" => Cursor::checkpoint(),
        "explain" => return cursor.explain().map(Some),
        "alter" => match cursor.role("alter")? {
            Some(role) => return Ok(Some(role)),
            None => {
                cursor.place = 1;
                return cursor.alter_sequence();
            }
        },
        "drop" => return cursor.role("drop"),
        "create" => {
            if let Some(role) = cursor.role("create")? {
                return Ok(Some(role));
            }
            cursor.place = 1;
            match cursor.create_materialized_view()? {
                Some(create) => return Ok(Some(create)),
                None => return cursor.create_table_as(),
            }
        }
        _ => return Ok(None),
    };
    cursor.end()?;
    Ok(Some(utility))
}

struct Cursor<'a> {
    source: &'a Arc<Source>,
    tokens: &'a [TokenWithSpan],
    place: usize,
}

impl Cursor<'_> {
    /// The next word, folded; `None` if it isn't an unquoted one.
    fn word(&self) -> Option<String> {
        match &self.tokens.get(self.place)?.token {
            Token::Word(word) if word.quote_style.is_none() => {
                Some(word.value.to_ascii_lowercase())
            }
            _ => None,
        }
    }

    fn accept(&mut self, word: &str) -> bool {
        let found = self.word().is_some_and(|found| found == word);
        self.place += usize::from(found);
        found
    }

    fn accept_token(&mut self, token: &Token) -> bool {
        let found = self.tokens.get(self.place).is_some_and(|found| found.token == *token);
        self.place += usize::from(found);
        found
    }

    fn accept_block_word(&mut self) {
        let _ = self.accept("transaction") || self.accept("work");
    }

    fn expect(&mut self, word: &str) -> Result<(), Error> {
        if self.accept(word) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn end(&self) -> Result<(), Error> {
        if self.place == self.tokens.len() { Ok(()) } else { Err(self.unexpected()) }
    }

    fn unexpected(&self) -> Error {
        self.source.syntax_error(self.tokens.get(self.place))
    }

    fn name(&mut self) -> Result<String, Error> {
        match self.tokens.get(self.place).map(|token| &token.token) {
            Some(Token::Word(word)) => {
                self.place += 1;
                Ok(match word.quote_style {
                    Some(_) => word.value.clone(),
                    None => word.value.to_ascii_lowercase(),
                })
            }
            _ => Err(self.unexpected()),
        }
    }

    /// The name of a setting. PostgreSQL's have no case.
    fn variable(&mut self) -> Result<String, Error> {
        let mut name = self.name()?;
        while self.accept_token(&Token::Period) {
            name = format!("{name}.{}", self.name()?);
        }
        Ok(name.to_ascii_lowercase())
    }

    fn set(&mut self) -> Result<Utility, Error> {
        let session = self.accept("session");
        if session && self.accept("characteristics") {
            self.expect("as")?;
            self.expect("transaction")?;
            return Ok(Utility::SetDefaultTransaction { modes: self.modes()? });
        }
        let local = !session && self.accept("local");
        if self.accept("transaction") {
            if self.accept("snapshot") {
                return Err(Error::unsupported("SET TRANSACTION SNAPSHOT"));
            }
            return Ok(Utility::SetTransaction { modes: self.modes()? });
        }
        if !session && !local && self.accept("constraints") {
            return self.constraints();
        }
        for refused in ["role", "authorization"] {
            if self.word().is_some_and(|word| word == refused) {
                return Err(Error::unsupported(format!("SET {}", refused.to_uppercase())));
            }
        }
        if self.accept("time") {
            self.expect("zone")?;
            let default = self.accept("local") || self.accept("default");
            let value = if default { None } else { Some(self.value()?) };
            return Ok(Utility::Set { local, name: "timezone".to_owned(), value });
        }
        if self.accept("names") {
            let value = if self.accept("default") { None } else { Some(self.value()?) };
            return Ok(Utility::Set { local, name: "client_encoding".to_owned(), value });
        }
        let name = self.variable()?;
        if !self.accept("to") && !self.accept_token(&Token::Eq) {
            return Err(self.unexpected());
        }
        if self.accept("default") {
            return Ok(Utility::Set { local, name, value: None });
        }
        let is_list = name == "search_path";
        let mut values = vec![self.item(is_list)?];
        while self.accept_token(&Token::Comma) {
            values.push(self.item(is_list)?);
        }
        Ok(Utility::Set { local, name, value: Some(values.join(", ")) })
    }

    /// One value of a list; in a list of names each is quoted where it must be.
    fn item(&mut self, is_name: bool) -> Result<String, Error> {
        let value = self.value()?;
        Ok(if is_name { crate::names::quote(&value) } else { value })
    }

    fn value(&mut self) -> Result<String, Error> {
        let sign = match self.tokens.get(self.place).map(|token| &token.token) {
            Some(Token::Minus) => "-",
            Some(Token::Plus) => "+",
            _ => "",
        };
        self.place += sign.len();
        let value = match self.tokens.get(self.place).map(|token| &token.token) {
            Some(Token::Number(number, _)) => format!("{}{number}", sign.trim_start_matches('+')),
            Some(Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text))
                if sign.is_empty() =>
            {
                text.clone()
            }
            Some(Token::Word(_)) if sign.is_empty() => return self.name(),
            _ => return Err(self.unexpected()),
        };
        self.place += 1;
        Ok(value)
    }

    fn show(&mut self) -> Result<Utility, Error> {
        let name = if self.accept("time") {
            self.expect("zone")?;
            "timezone".to_owned()
        } else if self.accept("transaction") {
            self.expect("isolation")?;
            self.expect("level")?;
            "transaction_isolation".to_owned()
        } else if self.accept("session") {
            self.expect("authorization")?;
            "session_authorization".to_owned()
        } else {
            self.variable()?
        };
        Ok(if name == "all" { Utility::ShowAll } else { Utility::Show { name } })
    }

    fn constraints(&mut self) -> Result<Utility, Error> {
        let mut names = vec![];
        if !self.accept("all") {
            loop {
                let mut name = self.name()?;
                while self.accept_token(&Token::Period) {
                    name = self.name()?;
                }
                names.push(name);
                if !self.accept_token(&Token::Comma) {
                    break;
                }
            }
        }
        let deferred = self.accept("deferred");
        if !deferred {
            self.expect("immediate")?;
        }
        let names = (!names.is_empty()).then_some(names);
        Ok(Utility::SetConstraints { names, deferred })
    }

    fn modes(&mut self) -> Result<TransactionModes, Error> {
        let mut modes = TransactionModes::default();
        while self.place < self.tokens.len() {
            if self.accept("isolation") {
                self.expect("level")?;
                let mut level = self.name()?;
                if level != "serializable" {
                    level = format!("{level} {}", self.name()?);
                }
                modes.isolation = Some(IsolationLevel::from_name(&level)?);
            } else if self.accept("read") {
                modes.read_only = Some(self.accept("only"));
                if modes.read_only == Some(false) {
                    self.expect("write")?;
                }
            } else {
                // Says when a serializable transaction waits; there is none.
                self.accept("not");
                self.expect("deferrable")?;
            }
            self.accept_token(&Token::Comma);
        }
        Ok(modes)
    }

    /// The savepoint that is released or gone back to.
    fn savepoint(&mut self, action: SavepointAction) -> Result<Utility, Error> {
        // A savepoint may have this name, too.
        if self.place + 1 < self.tokens.len() {
            self.accept("savepoint");
        }
        Ok(Utility::Savepoint { action, name: self.name()? })
    }

    fn chain(&mut self) -> Result<bool, Error> {
        if !self.accept("and") {
            return Ok(false);
        }
        let no = self.accept("no");
        self.expect("chain")?;
        Ok(!no)
    }

    fn explain(&mut self) -> Result<Utility, Error> {
        let (mut analyze, mut verbose) = (false, false);
        if self.accept_token(&Token::LParen) {
            loop {
                let place = self.place;
                let option = self.name()?;
                let value = self.word();
                self.place += usize::from(value.is_some());
                let is_on = !matches!(value.as_deref(), Some("off" | "false" | "0"));
                match option.as_str() {
                    "analyze" => analyze = is_on,
                    "verbose" => verbose = is_on,
                    "costs" | "settings" | "buffers" | "wal" | "timing" | "summary" => {}
                    "format" if value.as_deref() == Some("text") => {}
                    "format" => return Err(Error::unsupported("an EXPLAIN format but TEXT")),
                    _ => {
                        let message = format!("unrecognized EXPLAIN option \"{option}\"");
                        let error = Error::new(SqlState::SYNTAX_ERROR, message);
                        return Err(self.source.locate(error, self.tokens[place].span));
                    }
                }
                if !self.accept_token(&Token::Comma) {
                    break;
                }
            }
            if !self.accept_token(&Token::RParen) {
                return Err(self.unexpected());
            }
        } else {
            analyze = self.accept("analyze");
            verbose = self.accept("verbose");
        }
        let subject = if self.accept("materialized") {
            self.expect("view")?;
            let name = self.relation_name()?;
            self.end()?;
            ExplainSubject::MaterializedView(name)
        } else if self.place == self.tokens.len() {
            return Err(self.unexpected());
        } else {
            let rest = self.tokens[self.place..].to_vec();
            ExplainSubject::Statement(Box::new(super::parse_tree(self.source, rest)?))
        };
        Ok(Utility::Explain(Explain { analyze, verbose, subject }))
    }

    fn relation_name(&mut self) -> Result<ast::ObjectName, Error> {
        let start = self.place;
        self.name()?;
        while self.accept_token(&Token::Period) {
            self.name()?;
        }
        self.object_name(start)
    }

    fn refresh(&mut self) -> Result<Utility, Error> {
        self.expect("materialized")?;
        self.expect("view")?;
        self.accept("concurrently");
        let name = self.relation_name()?;
        let with_data = self.with_data()?.unwrap_or(true);
        Ok(Utility::Refresh { name, with_data })
    }

    fn object_name(&self, start: usize) -> Result<ast::ObjectName, Error> {
        let tokens = self.tokens[start..self.place].to_vec();
        Parser::new(&PostgreSqlDialect {})
            .with_tokens_with_locations(tokens)
            .parse_object_name(false)
            .map_err(|_| self.source.syntax_error(self.tokens.get(start)))
    }

    /// WITH [NO] DATA, if it stands here.
    fn with_data(&mut self) -> Result<Option<bool>, Error> {
        if !self.accept("with") {
            return Ok(None);
        }
        let no = self.accept("no");
        self.expect("data")?;
        Ok(Some(!no))
    }

    fn create_materialized_view(&mut self) -> Result<Option<Utility>, Error> {
        if !self.accept("materialized") {
            return Ok(None);
        }
        let (taken, with_data) = self.data_at_the_end().unwrap_or((0, true));
        let tokens = self.tokens[..self.tokens.len() - taken].to_vec();
        match parse_tokens(self.source, tokens)? {
            ast::Statement::CreateView(create) => {
                Ok(Some(Utility::CreateMaterializedView { create: Box::new(create), with_data }))
            }
            _ => Err(self.source.syntax_error(self.tokens.get(1))),
        }
    }
}
