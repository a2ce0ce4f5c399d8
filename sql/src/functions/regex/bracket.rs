//! Sets of characters in brackets, and characters behind a backslash.

use super::Row;
use super::syntax::{character, invalid};

/// What iswspace takes in C.UTF-8.
const SPACE: &str =
    r"\t-\r \x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}\x{2028}\x{2029}\x{205f}\x{3000}";

/// What stands in a set for `\d`, `\s` and `\w`.
pub(super) fn shorthand(letter: char) -> &'static str {
    match letter {
        'd' => "0-9",
        's' => SPACE,
        _ => r"\w",
    }
}

fn class(name: &str) -> Option<&'static str> {
    Some(match name {
        "alnum" => r"\p{Alphabetic}\p{Nd}",
        "alpha" => r"\p{Alphabetic}",
        "blank" => r"\t \x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}\x{205f}\x{3000}",
        "cntrl" => r"\p{Cc}\x{2028}\x{2029}",
        "digit" => "0-9",
        "graph" => {
            r"[[\p{Any}--\p{Cc}--\p{Cn}--\p{Cs}]--[\t-\r \x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}\x{2028}\x{2029}\x{205f}\x{3000}]]"
        }
        "lower" => r"\p{Lowercase}",
        "print" => r"[\p{Any}--\p{Cc}--\p{Cn}--\p{Cs}--[\x{2028}\x{2029}]]",
        "punct" => r"!-/:-@\[-`{-~[\p{P}\p{S}--\p{Alphabetic}]",
        "space" => SPACE,
        "upper" => r"\p{Uppercase}",
        "xdigit" => "0-9A-Fa-f",
        "word" => r"\w",
        _ => return None,
    })
}

/// The set that begins behind a bracket, and where what follows it begins.
pub(super) fn translate(
    characters: &[char],
    start: usize,
    stops_at_newline: bool,
) -> Row<(String, usize)> {
    let unbalanced = || invalid("brackets [] not balanced");
    let mut at = start;
    let is_negated = characters.get(at) == Some(&'^');
    at += usize::from(is_negated);
    let mut set = String::new();
    let first = at;
    loop {
        let next = *characters.get(at).ok_or_else(unbalanced)?;
        if next == ']' && at > first {
            at += 1;
            break;
        }
        if next == '[' && characters.get(at + 1) == Some(&':') {
            let (name, end) = named(characters, at, ':')?;
            set.push_str(class(&name).ok_or_else(|| invalid("invalid character class"))?);
            at = end;
            continue;
        }
        if next == '\\' && matches!(characters.get(at + 1), Some('d' | 's' | 'w')) {
            set.push_str(shorthand(characters[at + 1]));
            at += 2;
            continue;
        }
        let (low, end) = element(characters, at)?;
        at = end;
        let is_range = characters.get(at) == Some(&'-')
            && characters.get(at + 1).is_some_and(|next| *next != ']');
        if !is_range {
            set.push_str(&character(low));
            continue;
        }
        let (high, end) = element(characters, at + 1)?;
        at = end;
        // A hyphen can't begin another range.
        let goes_on = characters.get(at) == Some(&'-')
            && characters.get(at + 1).is_some_and(|next| *next != ']');
        if high < low || goes_on {
            return Err(invalid("invalid character range"));
        }
        set.push_str(&format!("{}-{}", character(low), character(high)));
    }
    let text = match (is_negated, stops_at_newline) {
        (true, true) => format!("[^\\n{set}]"),
        (true, false) => format!("[^{set}]"),
        (false, _) => format!("[{set}]"),
    };
    Ok((text, at))
}

/// `[:name:]` and its like: the name, and where what follows begins.
fn named(characters: &[char], at: usize, delimiter: char) -> Row<(String, usize)> {
    let rest = &characters[at + 2..];
    let length = rest.windows(2).position(|pair| pair == [delimiter, ']']);
    let length = length.ok_or_else(|| invalid("brackets [] not balanced"))?;
    Ok((rest[..length].iter().collect(), at + 2 + length + 2))
}

/// One character of a set, and where what follows begins.
fn element(characters: &[char], at: usize) -> Row<(char, usize)> {
    let next = *characters.get(at).ok_or_else(|| invalid("brackets [] not balanced"))?;
    if next == '\\' {
        return escape(characters, at + 1);
    }
    if next == '[' {
        for delimiter in ['.', '='] {
            if characters.get(at + 1) == Some(&delimiter) {
                let (name, end) = named(characters, at, delimiter)?;
                let mut name = name.chars();
                return match (name.next(), name.next()) {
                    (Some(only), None) => Ok((only, end)),
                    _ => Err(invalid("invalid collating element")),
                };
            }
        }
    }
    Ok((next, at + 1))
}

/// The character that an escape stands for, from behind its backslash, and where what follows begins.
pub(super) fn escape(characters: &[char], at: usize) -> Row<(char, usize)> {
    let wrong = || invalid("invalid escape \\ sequence");
    let next = *characters.get(at).ok_or_else(wrong)?;
    let digits = |radix: u32, from: usize, length_max: usize| {
        let rest = characters.get(from..).unwrap_or_default();
        let digits = rest.iter().take(length_max).map_while(|digit| digit.to_digit(radix));
        digits.fold((0_u32, 0), |(value, count), digit| {
            (value.saturating_mul(radix).saturating_add(digit), count + 1)
        })
    };
    let of =
        |value: u32, end: usize| char::from_u32(value).map(|found| (found, end)).ok_or_else(wrong);
    let fixed = |found: char| Ok((found, at + 1));
    match next {
        'a' => fixed('\u{7}'),
        'b' => fixed('\u{8}'),
        'B' => fixed('\\'),
        'c' => match characters.get(at + 1) {
            Some(control) => of(u32::from(*control) & 0x1f, at + 2),
            None => Err(wrong()),
        },
        'e' => fixed('\u{1b}'),
        'f' => fixed('\u{c}'),
        'n' => fixed('\n'),
        'r' => fixed('\r'),
        't' => fixed('\t'),
        'v' => fixed('\u{b}'),
        'u' | 'U' => {
            let length = if next == 'u' { 4 } else { 8 };
            match digits(16, at + 1, length) {
                (value, count) if count == length => of(value, at + 1 + length),
                _ => Err(wrong()),
            }
        }
        'x' => match digits(16, at + 1, 255) {
            (_, 0) => Err(wrong()),
            (value, count) => of(value, at + 1 + count),
        },
        '0'..='7' => {
            let (value, count) = digits(8, at, 3);
            of(value, at + count)
        }
        other if other.is_ascii_alphanumeric() => Err(wrong()),
        other => fixed(other),
    }
}
