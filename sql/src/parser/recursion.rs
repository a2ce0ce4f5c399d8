//! The clauses of recursive queries that the parser library doesn't read.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::Source;
use crate::Error;

/// Refuses `WITH q AS (...) SEARCH DEPTH FIRST ...` and `WITH q AS (...) CYCLE ... SET ...`.
pub(super) fn refuse_clauses(source: &Source, tokens: &[TokenWithSpan]) -> Result<(), Error> {
    let is_word = |place: usize, word: &str| {
        matches!(tokens.get(place).map(|token| &token.token), Some(Token::Word(found))
            if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
    };
    for (place, token) in tokens.iter().enumerate().filter(|(_, t)| t.token == Token::RParen) {
        let next = place + 1;
        let is_search = is_word(next, "search")
            && (is_word(next + 1, "depth") || is_word(next + 1, "breadth"))
            && is_word(next + 2, "first");
        let is_cycle = is_word(next, "cycle") && is_list_before_set(&tokens[next + 1..]);
        if is_search || is_cycle {
            let clause = if is_search { "SEARCH" } else { "CYCLE" };
            let error = Error::unsupported(format!("{clause} in a recursive query")).with_hint(
                "Carry an array of the rows on the way in a column of the query, and compare it.",
            );
            return Err(source.locate(error, token.span));
        }
    }
    Ok(())
}

/// Whether names, separated by commas, stand before SET.
fn is_list_before_set(tokens: &[TokenWithSpan]) -> bool {
    for pair in tokens.chunks(2) {
        match pair.iter().map(|token| &token.token).collect::<Vec<_>>().as_slice() {
            [Token::Word(_), Token::Comma] => {}
            [Token::Word(_), Token::Word(set)] => return set.value.eq_ignore_ascii_case("set"),
            _ => return false,
        }
    }
    false
}
