//! COPY's grammar, the new and the old one.

use datafusion::sql::sqlparser::ast::{Ident, ObjectName, ObjectNamePart};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::names::fold;

/// A COPY statement as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CopyStatement {
    pub(crate) what: Copied,
    pub(crate) direction: Direction,
    pub(crate) options: Vec<CopyOption>,
    /// Whether it has a WHERE.
    pub(crate) is_filtered: bool,
}

/// What is copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Copied {
    /// A table, or some columns of it.
    Table { name: ObjectName, columns: Option<Vec<Ident>> },
    /// The rows of a query, between these tokens' parentheses.
    Query(Vec<TokenWithSpan>),
}

/// From where, or to where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    FromClient,
    ToClient,
    /// From or to a file or program of the server.
    Server {
        is_from: bool,
    },
}

/// One option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CopyOption {
    pub(crate) name: String,
    pub(crate) value: OptionValue,
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OptionValue {
    Absent,
    Text(String),
    Word(String),
    Number(String),
    /// `*`
    All,
    List(Vec<String>),
}

/// Where the grammar has no way on: the place of the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unexpected(pub(crate) usize);

/// Reads a COPY statement; `None` if it is another one.
pub(crate) fn parse(tokens: &[TokenWithSpan]) -> Option<Result<CopyStatement, Unexpected>> {
    let mut cursor = Cursor { tokens, place: 0 };
    cursor.accept("copy").then(|| cursor.statement())
}

struct Cursor<'a> {
    tokens: &'a [TokenWithSpan],
    place: usize,
}

type Parsed<T> = Result<T, Unexpected>;

impl Cursor<'_> {
    fn statement(&mut self) -> Parsed<CopyStatement> {
        let mut options = vec![];
        if self.accept("binary") {
            options.push(format_option("binary"));
        }
        let what = if self.is(&Token::LParen) {
            let start = self.place + 1;
            self.skip_parentheses()?;
            Copied::Query(self.tokens[start..self.place - 1].to_vec())
        } else {
            let name = self.object_name()?;
            let columns = self.is(&Token::LParen).then(|| self.column_list()).transpose()?;
            Copied::Table { name, columns }
        };
        // A query is only copied out.
        let is_query = matches!(what, Copied::Query(_));
        let is_from = !is_query && self.accept("from");
        if !is_from {
            self.expect("to")?;
        }
        let direction = self.direction(is_from)?;
        self.options(&mut options)?;
        let is_filtered = self.accept("where");
        if !is_filtered && self.place < self.tokens.len() {
            return Err(self.unexpected());
        }
        Ok(CopyStatement { what, direction, options, is_filtered })
    }

    fn direction(&mut self, is_from: bool) -> Parsed<Direction> {
        // PostgreSQL takes either word for either direction.
        if self.accept("stdin") || self.accept("stdout") {
            return Ok(if is_from { Direction::FromClient } else { Direction::ToClient });
        }
        self.accept("program");
        self.text()?;
        Ok(Direction::Server { is_from })
    }

    fn options(&mut self, options: &mut Vec<CopyOption>) -> Parsed<()> {
        if self.accept("using") {
            self.expect("delimiters")?;
            let value = OptionValue::Text(self.text()?);
            options.push(CopyOption { name: "delimiter".to_owned(), value });
        } else if self.accept("delimiters") {
            let value = OptionValue::Text(self.text()?);
            options.push(CopyOption { name: "delimiter".to_owned(), value });
        }
        self.accept("with");
        if self.accept_token(&Token::LParen) {
            loop {
                options.push(self.option()?);
                if !self.accept_token(&Token::Comma) {
                    break;
                }
            }
            return self.expect_token(&Token::RParen);
        }
        while let Some(option) = self.old_option()? {
            options.push(option);
        }
        Ok(())
    }

    /// One of `(name value, ...)`.
    fn option(&mut self) -> Parsed<CopyOption> {
        let name = self.name()?;
        let value = match self.token() {
            Some(Token::Mul) => {
                self.place += 1;
                OptionValue::All
            }
            Some(Token::LParen) => {
                self.place += 1;
                let mut names = vec![self.name_or_text()?];
                while self.accept_token(&Token::Comma) {
                    names.push(self.name_or_text()?);
                }
                self.expect_token(&Token::RParen)?;
                OptionValue::List(names)
            }
            Some(Token::Plus | Token::Minus | Token::Number(..)) => self.number()?,
            Some(Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_)) => {
                OptionValue::Text(self.text()?)
            }
            Some(Token::Word(_)) => OptionValue::Word(self.name()?),
            _ => OptionValue::Absent,
        };
        Ok(CopyOption { name, value })
    }

    /// One of those without parentheses, as before PostgreSQL 9.0.
    fn old_option(&mut self) -> Parsed<Option<CopyOption>> {
        for format in ["csv", "binary"] {
            if self.accept(format) {
                return Ok(Some(format_option(format)));
            }
        }
        for name in ["freeze", "header"] {
            if self.accept(name) {
                let value = OptionValue::Absent;
                return Ok(Some(CopyOption { name: name.to_owned(), value }));
            }
        }
        for name in ["delimiter", "null", "quote", "escape", "encoding"] {
            if self.accept(name) {
                if name != "encoding" {
                    self.accept("as");
                }
                let value = OptionValue::Text(self.text()?);
                return Ok(Some(CopyOption { name: name.to_owned(), value }));
            }
        }
        if !self.accept("force") {
            return Ok(None);
        }
        let (name, may_be_all) = if self.accept("quote") {
            ("force_quote", true)
        } else if self.accept("not") {
            self.expect("null")?;
            ("force_not_null", false)
        } else {
            self.expect("null")?;
            ("force_null", false)
        };
        let value = if may_be_all && self.accept_token(&Token::Mul) {
            OptionValue::All
        } else {
            let mut names = vec![self.name()?];
            while self.accept_token(&Token::Comma) {
                names.push(self.name()?);
            }
            OptionValue::List(names)
        };
        Ok(Some(CopyOption { name: name.to_owned(), value }))
    }

    fn number(&mut self) -> Parsed<OptionValue> {
        let sign = match self.token() {
            Some(Token::Minus) => "-",
            _ => "",
        };
        if matches!(self.token(), Some(Token::Plus | Token::Minus)) {
            self.place += 1;
        }
        let Some(Token::Number(number, _)) = self.token() else { return Err(self.unexpected()) };
        let value = OptionValue::Number(format!("{sign}{number}"));
        self.place += 1;
        Ok(value)
    }

    fn object_name(&mut self) -> Parsed<ObjectName> {
        let mut parts = vec![ObjectNamePart::Identifier(self.identifier()?)];
        while self.accept_token(&Token::Period) {
            parts.push(ObjectNamePart::Identifier(self.identifier()?));
        }
        Ok(ObjectName(parts))
    }

    fn column_list(&mut self) -> Parsed<Vec<Ident>> {
        self.expect_token(&Token::LParen)?;
        let mut columns = vec![self.identifier()?];
        while self.accept_token(&Token::Comma) {
            columns.push(self.identifier()?);
        }
        self.expect_token(&Token::RParen)?;
        Ok(columns)
    }

    fn skip_parentheses(&mut self) -> Parsed<()> {
        let mut depth = 0_usize;
        while let Some(token) = self.token() {
            match token {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                _ => {}
            }
            self.place += 1;
            if depth == 0 {
                return Ok(());
            }
        }
        Err(self.unexpected())
    }

    fn token(&self) -> Option<&Token> {
        self.tokens.get(self.place).map(|token| &token.token)
    }

    fn is(&self, token: &Token) -> bool {
        self.token() == Some(token)
    }

    fn accept_token(&mut self, token: &Token) -> bool {
        let found = self.is(token);
        self.place += usize::from(found);
        found
    }

    fn expect_token(&mut self, token: &Token) -> Parsed<()> {
        if self.accept_token(token) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn accept(&mut self, word: &str) -> bool {
        let found = matches!(self.token(), Some(Token::Word(found))
            if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word));
        self.place += usize::from(found);
        found
    }

    fn expect(&mut self, word: &str) -> Parsed<()> {
        if self.accept(word) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn identifier(&mut self) -> Parsed<Ident> {
        let Some(TokenWithSpan { token: Token::Word(word), span }) = self.tokens.get(self.place)
        else {
            return Err(self.unexpected());
        };
        let identifier =
            Ident { value: word.value.clone(), quote_style: word.quote_style, span: *span };
        self.place += 1;
        Ok(identifier)
    }

    fn name(&mut self) -> Parsed<String> {
        Ok(fold(&self.identifier()?))
    }

    fn name_or_text(&mut self) -> Parsed<String> {
        match self.token() {
            Some(Token::Word(_)) => self.name(),
            _ => self.text(),
        }
    }

    fn text(&mut self) -> Parsed<String> {
        match self.token() {
            Some(Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text)) => {
                let text = text.clone();
                self.place += 1;
                Ok(text)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn unexpected(&self) -> Unexpected {
        Unexpected(self.place)
    }
}

fn format_option(format: &str) -> CopyOption {
    CopyOption { name: "format".to_owned(), value: OptionValue::Text(format.to_owned()) }
}
