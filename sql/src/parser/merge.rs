//! What the parser library doesn't read of MERGE: DO NOTHING, and INSERT DEFAULT VALUES. Both are put
//! as writes of a column that nobody's table has.

use datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan};

/// The column that stands for DO NOTHING.
pub(crate) const NOTHING: &str = "stillframe do nothing";

/// The column that stands for DEFAULT VALUES.
pub(crate) const DEFAULTS: &str = "stillframe default values";

/// Rewrites the actions of a MERGE.
pub(super) fn rewrite_actions(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.iter().any(|token| is_word(Some(token), "merge")) {
        return;
    }
    let mut is_matched = true;
    let mut place = 0;
    while place < tokens.len() {
        if is_word(tokens.get(place), "matched") {
            is_matched = !(place > 0 && is_word(tokens.get(place - 1), "not"));
        }
        let follows = |first: &str, second: &str| {
            is_word(tokens.get(place), first) && is_word(tokens.get(place + 1), second)
        };
        let after = |word: &str| place > 0 && is_word(tokens.get(place - 1), word);
        let new = if after("then") && follows("do", "nothing") {
            match is_matched {
                true => format!("UPDATE SET \"{NOTHING}\" = 0"),
                false => format!("INSERT (\"{NOTHING}\") VALUES (0)"),
            }
        } else if after("insert") && follows("default", "values") {
            format!("(\"{DEFAULTS}\") VALUES (0)")
        } else {
            place += 1;
            continue;
        };
        let span = tokens[place].span;
        let new = words(&new, span);
        let length = new.len();
        tokens.splice(place..place + 2, new);
        place += length;
    }
}

/// The tokens of a text of ours, all at one place.
fn words(text: &str, span: Span) -> Vec<TokenWithSpan> {
    let dialect = datafusion::sql::sqlparser::dialect::PostgreSqlDialect {};
    let tokens = datafusion::sql::sqlparser::tokenizer::Tokenizer::new(&dialect, text).tokenize();
    let tokens = tokens.unwrap_or_default().into_iter();
    let tokens = tokens.filter(|token| !matches!(token, Token::Whitespace(_)));
    tokens.map(|token| TokenWithSpan { token, span }).collect()
}

fn is_word(token: Option<&TokenWithSpan>, word: &str) -> bool {
    matches!(token.map(|token| &token.token), Some(Token::Word(found))
        if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}
