//! What PostgreSQL reads and the parser library doesn't, spelled as it does, on the tokens of one
//! statement.
//!
//! - `SUBSTRING(x SIMILAR y ESCAPE z)` is `SUBSTRING(x FROM y FOR z)`.
//! - `BETWEEN SYMMETRIC` is `BETWEEN` with a mark on the first bound, `BETWEEN ASYMMETRIC` without.
//! - `f(..., VARIADIC x)` is `f(..., "variadic"(x))`.
//! - `TRIM(BOTH FROM x)` is `TRIM(BOTH ' ' FROM x)`.
//! - `DROP INDEX CONCURRENTLY` is `DROP INDEX`: nobody waits for it.
//! - `FROM ONLY t` is `FROM t`, as no table has descendants, and `CREATE UNLOGGED TABLE` is
//!   `CREATE TABLE`: there is no log that it could be spared.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// The function that marks an array of arguments.
pub(crate) const VARIADIC: &str = "variadic";

fn is_word(token: Option<&TokenWithSpan>, wanted: &str) -> bool {
    matches!(token.map(|token| &token.token), Some(Token::Word(word))
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
}

/// Rewrites them.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let has = |wanted: &str| tokens.iter().any(|token| is_word(Some(token), wanted));
    let (similar, symmetric) = (has("similar"), has("symmetric") || has("asymmetric"));
    let (variadic, has_trim) = (has("variadic"), has("trim"));
    if has("only") {
        only_tables(tokens);
    }
    let starts = |words: &[&str]| {
        words.iter().enumerate().all(|(place, word)| is_word(tokens.get(place), word))
    };
    let is_unlogged = starts(&["create", "unlogged", "table"]);
    let is_concurrent = starts(&["drop", "index", "concurrently"]);
    if is_unlogged {
        tokens.remove(1);
    }
    if is_concurrent {
        tokens.remove(2);
    }
    if has_trim {
        trimmed_blanks(tokens);
    }
    if similar {
        similar_substrings(tokens);
    }
    if symmetric {
        symmetric_bounds(tokens);
    }
    if variadic {
        variadic_arguments(tokens);
    }
}

/// The tokens between the parenthesis at a place and the one that closes it, with their depths.
fn inside(tokens: &[TokenWithSpan], open: usize) -> Vec<usize> {
    let mut depth = 0_usize;
    let mut found = vec![];
    for (place, token) in tokens.iter().enumerate().skip(open) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => {
                depth -= 1;
                if depth == 0 {
                    break;
                }
            }
            _ if depth == 1 => found.push(place),
            _ => {}
        }
    }
    found
}

fn similar_substrings(tokens: &mut [TokenWithSpan]) {
    for place in 0..tokens.len() {
        let is_call = is_word(tokens.get(place), "substring")
            && tokens.get(place + 1).is_some_and(|next| next.token == Token::LParen);
        if !is_call {
            continue;
        }
        let mut is_similar = false;
        for at in inside(tokens, place + 1) {
            if is_word(tokens.get(at), "similar") && !is_word(tokens.get(at + 1), "to") {
                tokens[at].token = Token::make_keyword("FROM");
                is_similar = true;
            } else if is_similar && is_word(tokens.get(at), "escape") {
                tokens[at].token = Token::make_keyword("FOR");
            }
        }
    }
}

fn trimmed_blanks(tokens: &mut Vec<TokenWithSpan>) {
    for place in (2..tokens.len()).rev() {
        let is_from = is_word(tokens.get(place), "from");
        let mut before = place;
        if ["both", "leading", "trailing"].iter().any(|side| is_word(tokens.get(place - 1), side)) {
            before -= 1;
        }
        let is_call = before >= 2
            && tokens[before - 1].token == Token::LParen
            && is_word(tokens.get(before - 2), "trim");
        if is_from && is_call {
            let span = tokens[place].span;
            let blank = Token::SingleQuotedString(" ".to_owned());
            tokens.insert(place, TokenWithSpan::new(blank, span));
        }
    }
}

fn symmetric_bounds(tokens: &mut Vec<TokenWithSpan>) {
    for place in (1..tokens.len()).rev() {
        if !is_word(tokens.get(place - 1), "between") {
            continue;
        }
        if is_word(tokens.get(place), "symmetric") {
            tokens[place].token = Token::DoubleExclamationMark;
        } else if is_word(tokens.get(place), "asymmetric") {
            tokens.remove(place);
        }
    }
}

fn only_tables(tokens: &mut Vec<TokenWithSpan>) {
    for place in (1..tokens.len()).rev() {
        let before = &tokens[place - 1];
        let takes_tables = ["from", "update", "join", "using"];
        let is_table = takes_tables.iter().any(|word| is_word(Some(before), word))
            || before.token == Token::Comma;
        let is_named =
            matches!(tokens.get(place + 1), Some(next) if matches!(next.token, Token::Word(_)));
        if is_word(tokens.get(place), "only") && is_table && is_named {
            tokens.remove(place);
        }
    }
}

fn variadic_arguments(tokens: &mut Vec<TokenWithSpan>) {
    let mut place = 0;
    while place < tokens.len() {
        let is_argument = is_word(tokens.get(place), "variadic")
            && place > 0
            && matches!(tokens[place - 1].token, Token::LParen | Token::Comma)
            && tokens.get(place + 1).is_some_and(|next| {
                !matches!(next.token, Token::RParen | Token::Comma | Token::Period)
            });
        if is_argument && let Some(end) = argument_end(tokens, place + 1) {
            let span = tokens[place].span;
            tokens[place].token = Token::Word(Word {
                value: VARIADIC.to_owned(),
                quote_style: Some('"'),
                keyword: datafusion::sql::sqlparser::keywords::Keyword::NoKeyword,
            });
            tokens.insert(end, TokenWithSpan::new(Token::RParen, span));
            tokens.insert(place + 1, TokenWithSpan::new(Token::LParen, span));
        }
        place += 1;
    }
}

/// Where the parenthesis is that closes the call around a place.
fn argument_end(tokens: &[TokenWithSpan], start: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (place, token) in tokens.iter().enumerate().skip(start) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return Some(place),
            Token::RParen => depth -= 1,
            _ => {}
        }
    }
    None
}
