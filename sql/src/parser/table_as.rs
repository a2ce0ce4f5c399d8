//! Tables that are made of queries: what the parser library doesn't read, or not as PostgreSQL means
//! it.

use datafusion::sql::sqlparser::ast::{self, SetExpr};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::Error;

/// Gives the columns of `CREATE TABLE t (a, b) AS` a type, which the parser library insists on and
/// nobody reads.
pub(super) fn give_types(tokens: &mut Vec<TokenWithSpan>) {
    let is_word = |token: Option<&TokenWithSpan>, word: &str| {
        matches!(token.map(|token| &token.token), Some(Token::Word(found))
            if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
    };
    let is_table = is_word(tokens.get(1), "table") || is_word(tokens.get(2), "table");
    if !is_word(tokens.first(), "create") || !is_table {
        return;
    }
    let Some(open) = tokens.iter().position(|token| token.token == Token::LParen) else { return };
    let mut names = vec![];
    let mut place = open + 1;
    loop {
        if !matches!(tokens.get(place).map(|t| &t.token), Some(Token::Word(_))) {
            return;
        }
        names.push(place);
        match tokens.get(place + 1).map(|token| &token.token) {
            Some(Token::Comma) => place += 2,
            Some(Token::RParen) if is_word(tokens.get(place + 2), "as") => break,
            Some(Token::RParen) if is_word(tokens.get(place + 2), "with") => break,
            _ => return,
        }
    }
    for place in names.into_iter().rev() {
        let span = tokens[place].span;
        tokens.insert(place + 1, TokenWithSpan { token: Token::make_word("text", None), span });
    }
}

/// `SELECT ... INTO t` is CREATE TABLE AS by another name.
pub(super) fn of_select_into(statement: ast::Statement) -> Result<ast::Statement, Error> {
    let ast::Statement::Query(mut query) = statement else { return Ok(statement) };
    let Some(into) = first_select(&mut query.body).and_then(|select| select.into.take()) else {
        return Ok(ast::Statement::Query(query));
    };
    let template = super::parse("CREATE TABLE t AS SELECT 1")?.pop().map(|parsed| parsed.tree);
    let Some(super::Tree::Sql(template)) = template else {
        return Err(Error::internal("a CREATE TABLE that is none"));
    };
    let mut statement = *template;
    if let ast::Statement::CreateTable(create) = &mut statement {
        create.name = into.name;
        create.temporary = into.temporary;
        create.query = Some(query);
    }
    Ok(statement)
}

fn first_select(body: &mut SetExpr) -> Option<&mut ast::Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::SetOperation { left, .. } => first_select(left),
        SetExpr::Query(query) => first_select(&mut query.body),
        _ => None,
    }
}
