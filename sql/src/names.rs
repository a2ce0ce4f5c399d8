//! Names as PostgreSQL folds, quotes and qualifies them.

use std::collections::HashSet;
use std::sync::LazyLock;

use datafusion::sql::sqlparser::ast::{Ident, ObjectName, ObjectNamePart};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::tokenizer::{Span, Token, Tokenizer};

use crate::{Error, SqlState};

/// The name that an identifier stands for: folded to lower case unless it is quoted.
pub(crate) fn fold(identifier: &Ident) -> String {
    match identifier.quote_style {
        Some(_) => identifier.value.clone(),
        None => identifier.value.to_ascii_lowercase(),
    }
}

/// An identifier that stands for exactly this name.
pub(crate) fn exact(name: &str) -> Ident {
    Ident { value: name.to_owned(), quote_style: Some('"'), span: Span::empty() }
}

/// A name as it must be written to be read as itself.
pub(crate) fn quote(name: &str) -> String {
    let is_plain = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'$'
        });
    if is_plain && !is_reserved(name) {
        return name.to_owned();
    }
    quoted(name)
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The same as PostgreSQL's `quote_ident`, which quotes words that only a function or a type can't be,
/// too.
pub(crate) fn quote_ident(name: &str) -> String {
    if crate::system::is_special_word(name) { quoted(name) } else { quote(name) }
}

/// Words that can't stand bare as the name of a column or table in PostgreSQL.
const RESERVED: &str = "\
    all analyse analyze and any array as asc asymmetric authorization binary both case cast \
    check collate collation column concurrently constraint create cross current_catalog \
    current_date current_role current_schema current_time current_timestamp current_user default \
    deferrable desc distinct do else end except false fetch for foreign freeze from full grant \
    group having ilike in initially inner intersect into is isnull join lateral leading left \
    like limit localtime localtimestamp natural not notnull null offset on only or order outer \
    overlaps placing primary references returning right select session_user similar some \
    symmetric table tablesample then to trailing true union unique user using variadic verbose \
    when where window with";

/// Whether a word in lower case must be quoted to be the name of a column or table.
pub(crate) fn is_reserved(word: &str) -> bool {
    static WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| RESERVED.split(' ').collect());
    WORDS.contains(word)
}

/// A relation's name as a statement has it: the schema, if it says one, and the name. A database
/// before the schema must be this one, and there is one only.
pub(crate) fn relation(name: &ObjectName) -> Result<(Option<String>, String), Error> {
    let mut parts = vec![];
    for part in &name.0 {
        match part {
            ObjectNamePart::Identifier(identifier) => parts.push(fold(identifier)),
            ObjectNamePart::Function(_) => {
                return Err(Error::new(SqlState::SYNTAX_ERROR, "a function is no relation name"));
            }
        }
    }
    let mut parts = parts.into_iter().rev();
    let (relation, schema, database) = (parts.next(), parts.next(), parts.next());
    if parts.next().is_some() {
        let message =
            format!("improper qualified name (too many dotted names): {}", unquoted(name));
        return Err(Error::new(SqlState::SYNTAX_ERROR, message));
    }
    if let Some(database) = database
        && !crate::database::is_name(&database)
    {
        let message = format!("cross-database references are not implemented: {}", unquoted(name));
        return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    Ok((schema, relation.unwrap_or_default()))
}

/// A dotted name as messages have it.
pub(crate) fn unquoted(name: &ObjectName) -> String {
    let parts = name.0.iter().map(|part| match part {
        ObjectNamePart::Identifier(identifier) => fold(identifier),
        ObjectNamePart::Function(function) => function.to_string(),
    });
    parts.collect::<Vec<_>>().join(".")
}

/// A function's name. Those of `pg_catalog` go by their bare names.
pub(crate) fn function(name: &ObjectName) -> String {
    let name = unquoted(name);
    name.strip_prefix("pg_catalog.").map(str::to_owned).unwrap_or(name)
}

/// Where a dotted name begins.
pub(crate) fn span(name: &ObjectName) -> Span {
    match name.0.first() {
        Some(ObjectNamePart::Identifier(identifier)) => identifier.span,
        _ => Span::empty(),
    }
}

/// Reads a comma-separated list of names, as in `search_path`.
pub(crate) fn list(text: &str) -> Option<Vec<String>> {
    if text.trim().is_empty() {
        return Some(vec![]);
    }
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize().ok()?;
    let mut names = vec![];
    let mut wants_name = true;
    for token in tokens {
        match token {
            Token::Whitespace(_) => {}
            Token::Word(word) if wants_name => {
                let quoted = word.quote_style.is_some();
                names.push(if quoted { word.value } else { word.value.to_ascii_lowercase() });
                wants_name = false;
            }
            Token::Comma if !wants_name => wants_name = true,
            _ => return None,
        }
    }
    (!wants_name).then_some(names)
}
