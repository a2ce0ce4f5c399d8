//! What the parser library wants otherwise in statements about sequences: the options of a sequence in
//! one order, and no OVERRIDING in an INSERT.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// What an INSERT does with values for identity columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overriding {
    /// They are taken, even where nobody may give one.
    System,
    /// They are passed over.
    User,
}

/// The option that begins at a token: its rank in the parser library's order, and how many tokens it
/// has.
fn option(tokens: &[TokenWithSpan]) -> Option<(usize, usize)> {
    let is = |place: usize, word: &str| is_word(tokens.get(place), word);
    let number = |place: usize| {
        let sign = matches!(tokens.get(place).map(|t| &t.token), Some(Token::Minus | Token::Plus));
        let place = place + usize::from(sign);
        let is_number = matches!(tokens.get(place).map(|t| &t.token), Some(Token::Number(..)));
        is_number.then_some(place + 1)
    };
    if is(0, "increment") {
        return Some((0, number(1 + usize::from(is(1, "by")))?));
    }
    if is(0, "start") {
        return Some((3, number(1 + usize::from(is(1, "with")))?));
    }
    for (word, rank) in [("minvalue", 1), ("maxvalue", 2), ("cache", 4)] {
        if is(0, word) {
            return Some((rank, number(1)?));
        }
        if is(0, "no") && is(1, word) {
            return Some((rank, 2));
        }
    }
    if is(0, "cycle") {
        return Some((5, 1));
    }
    (is(0, "no") && is(1, "cycle")).then_some((5, 2))
}

/// Brings the options of sequences into the parser library's order.
pub(super) fn order_options(tokens: &mut [TokenWithSpan]) {
    let creates = is_word(tokens.first(), "create");
    let alters = is_word(tokens.first(), "alter");
    let sequence = creates && is_word(tokens.get(1), "sequence");
    if !creates && !alters {
        return;
    }
    let mut place = 0;
    while place < tokens.len() {
        let after_identity = place > 1
            && tokens[place - 1].token == Token::LParen
            && is_word(tokens.get(place - 2), "identity");
        if !(after_identity || sequence && place > 2) {
            place += 1;
            continue;
        }
        let start = place;
        let mut options = vec![];
        while let Some((rank, length)) = option(&tokens[place..]) {
            options.push((rank, tokens[place..place + length].to_vec()));
            place += length;
        }
        options.sort_by_key(|(rank, _)| *rank);
        let sorted: Vec<_> = options.into_iter().flat_map(|(_, tokens)| tokens).collect();
        tokens[start..place].clone_from_slice(&sorted);
        place += 1;
    }
}

/// Takes OVERRIDING out of an INSERT.
pub(super) fn take_overriding(tokens: &mut Vec<TokenWithSpan>) -> Option<Overriding> {
    let inserts = tokens.iter().any(|token| is_word(Some(token), "insert"));
    if !inserts {
        return None;
    }
    let mut depth = 0;
    for place in 0..tokens.len() {
        match tokens[place].token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        if depth != 0 || !is_word(tokens.get(place), "overriding") {
            continue;
        }
        let overriding = match tokens.get(place + 1) {
            token if is_word(token, "system") => Overriding::System,
            token if is_word(token, "user") => Overriding::User,
            _ => continue,
        };
        if is_word(tokens.get(place + 2), "value") {
            tokens.drain(place..place + 3);
            return Some(overriding);
        }
    }
    None
}

fn is_word(token: Option<&TokenWithSpan>, word: &str) -> bool {
    matches!(token.map(|token| &token.token), Some(Token::Word(found))
        if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}
