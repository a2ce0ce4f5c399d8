//! What PostgreSQL's lexer does and the parser library's doesn't, on the tokens of one statement.

use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan, Tokenizer, Whitespace};

use super::Source;
use crate::session::Notice;
use crate::{Error, SqlState, names};

/// The bytes that a name may have.
const NAME_BYTES_MAX: usize = 63;

/// The tokens without what is between them, as PostgreSQL would have them.
pub(super) fn tokens(source: &Source, raw: &[TokenWithSpan]) -> Result<Vec<TokenWithSpan>, Error> {
    let mut tokens: Vec<TokenWithSpan> = vec![];
    let mut gap = Gap::None;
    for token in raw {
        match &token.token {
            Token::EOF => continue,
            Token::Whitespace(space) => {
                gap = gap.with(space);
                continue;
            }
            _ => {}
        }
        let last = tokens.last_mut();
        match last {
            Some(last) if is_string(&last.token) && is_plain_string(&token.token) => {
                continued(source, last, token, gap)?;
            }
            Some(last) if gap == Gap::None && is_number(&last.token) && is_wordy(&token.token) => {
                return Err(junk(source, last.span, token.span));
            }
            _ if let Some((operator, signs)) = before_signs(&token.token) => {
                let parts = Tokenizer::new(&PostgreSqlDialect {}, operator).tokenize();
                let parts = parts.map_err(|_| source.syntax_error(Some(token)))?;
                let parts = parts.into_iter().chain(signs.chars().map(|sign| match sign {
                    '+' => Token::Plus,
                    _ => Token::Minus,
                }));
                tokens.extend(parts.map(|part| TokenWithSpan::new(part, token.span)));
            }
            _ => {
                refuse(source, token)?;
                tokens.push(without_foreign_meaning(token.clone()));
            }
        }
        gap = Gap::None;
    }
    Ok(with_tables(tokens))
}

/// An operator and the signs behind it, which belong to its operand: `a>-1` compares with -1.
/// Operators with certain characters may end in a sign.
fn before_signs(token: &Token) -> Option<(&str, &str)> {
    let Token::CustomBinaryOperator(operator) = token else { return None };
    let kept = operator.trim_end_matches(['+', '-']);
    let may_end_in_signs = operator.contains(['~', '!', '@', '#', '%', '^', '&', '|', '`', '?']);
    (!may_end_in_signs && !kept.is_empty() && kept.len() < operator.len())
        .then(|| operator.split_at(kept.len()))
}

/// The token; a name if only other products know it as a word of the language. `SELECT top` asks for
/// a column.
fn without_foreign_meaning(mut token: TokenWithSpan) -> TokenWithSpan {
    if let Token::Word(word) = &mut token.token
        && word.keyword == Keyword::TOP
    {
        word.keyword = Keyword::NoKeyword;
    }
    token
}

/// What is between two tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    None,
    Space,
    NewLine,
}

impl Gap {
    fn with(self, space: &Whitespace) -> Self {
        let has_new_line =
            matches!(space, Whitespace::Newline | Whitespace::SingleLineComment { .. });
        self.max(if has_new_line { Self::NewLine } else { Self::Space })
    }
}

fn is_plain_string(token: &Token) -> bool {
    matches!(token, Token::SingleQuotedString(_))
}

fn is_string(token: &Token) -> bool {
    is_plain_string(token) || matches!(token, Token::EscapedStringLiteral(_))
}

fn is_number(token: &Token) -> bool {
    matches!(token, Token::Number(..))
}

fn is_wordy(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none()) || is_number(token)
}

/// A string goes on after a line's end, and nowhere else.
fn continued(
    source: &Source,
    first: &mut TokenWithSpan,
    next: &TokenWithSpan,
    gap: Gap,
) -> Result<(), Error> {
    if gap != Gap::NewLine {
        return Err(source.syntax_error(Some(next)));
    }
    let text = match &next.token {
        Token::SingleQuotedString(text) => text.clone(),
        _ => String::new(),
    };
    match &mut first.token {
        Token::SingleQuotedString(start) => start.push_str(&text),
        // It is still one with escapes.
        Token::EscapedStringLiteral(start) => {
            let written = format!("E{}", source.slice(std::slice::from_ref(next)));
            let tokens = Tokenizer::new(&PostgreSqlDialect {}, &written).tokenize();
            match tokens.as_deref() {
                Ok([Token::EscapedStringLiteral(text)]) => start.push_str(text),
                _ => return Err(source.syntax_error(Some(next))),
            }
        }
        _ => {}
    }
    first.span.end = next.span.end;
    Ok(())
}

/// Numbers that PostgreSQL 15 doesn't read.
fn refuse(source: &Source, token: &TokenWithSpan) -> Result<(), Error> {
    let is_junk = match &token.token {
        Token::Number(digits, _) => digits.contains('_'),
        Token::HexStringLiteral(_) => source.slice(std::slice::from_ref(token)).starts_with(['0']),
        _ => false,
    };
    if is_junk { Err(junk(source, token.span, token.span)) } else { Ok(()) }
}

fn junk(source: &Source, first: Span, last: Span) -> Error {
    let text = source.between(first.start, last.end);
    let message = format!("trailing junk after numeric literal at or near \"{text}\"");
    source.locate(Error::new(SqlState::SYNTAX_ERROR, message), first)
}

/// `TABLE t` as `SELECT * FROM t`.
fn with_tables(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut written = Vec::with_capacity(tokens.len());
    for (place, token) in tokens.iter().enumerate() {
        let before = place.checked_sub(1).map(|before| &tokens[before].token);
        let is_query = word(&token.token) == Some("table".to_owned())
            && starts_query(before)
            && tokens.get(place + 1).is_some_and(|next| is_name(&next.token));
        if !is_query {
            written.push(token.clone());
            continue;
        }
        let stands_for = [Token::make_keyword("SELECT"), Token::Mul, Token::make_keyword("FROM")];
        written.extend(stands_for.map(|part| TokenWithSpan::new(part, token.span)));
    }
    written
}

/// Whether a query can begin after a token.
fn starts_query(before: Option<&Token>) -> bool {
    let Some(before) = before else { return true };
    let words = ["as", "union", "intersect", "except", "all", "distinct", "explain", "analyze"];
    *before == Token::LParen || word(before).is_some_and(|word| words.contains(&word.as_str()))
}

fn is_name(token: &Token) -> bool {
    match token {
        Token::Word(name) if name.quote_style.is_some() => true,
        token => word(token).is_some_and(|word| !names::is_reserved(&word)),
    }
}

fn word(token: &Token) -> Option<String> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_ascii_lowercase()),
        _ => None,
    }
}

/// Cuts names that are too long.
pub(super) fn truncate_names(tokens: &mut [TokenWithSpan]) -> Vec<Notice> {
    let mut notices = vec![];
    for token in tokens {
        if let Token::Word(word) = &mut token.token
            && word.value.len() > NAME_BYTES_MAX
        {
            let cut = word.value.floor_char_boundary(NAME_BYTES_MAX);
            let short = word.value[..cut].to_owned();
            let message = format!("identifier \"{}\" will be truncated to \"{short}\"", word.value);
            notices.push(Notice::of(Error::new(SqlState::NAME_TOO_LONG, message)));
            word.value = short;
        }
    }
    notices
}
