//! The parts of a text that is known to be JSON, as they are written there.

use std::ops::Range;

use super::{Detail, Json, parse};
use crate::Error;

/// The first character that isn't blank: it tells what kind of value follows.
pub(crate) fn kind(text: &str) -> u8 {
    text.as_bytes().get(skip_blanks(text.as_bytes(), 0)).copied().unwrap_or(b'n')
}

/// The elements of an array, as they are written; none of anything else.
pub(crate) fn elements(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let mut place = skip_blanks(bytes, 0);
    if bytes.get(place) != Some(&b'[') {
        return vec![];
    }
    let mut found = vec![];
    place = skip_blanks(bytes, place + 1);
    while !matches!(bytes.get(place), None | Some(b']')) {
        let range = value(bytes, place);
        found.push(&text[range.clone()]);
        place = skip_blanks(bytes, range.end);
        if bytes.get(place) == Some(&b',') {
            place = skip_blanks(bytes, place + 1);
        }
    }
    found
}

/// The members of an object, with the values as they are written; none of anything else.
pub(crate) fn members(text: &str) -> Result<Vec<(String, &str)>, Error> {
    let bytes = text.as_bytes();
    let mut place = skip_blanks(bytes, 0);
    if bytes.get(place) != Some(&b'{') {
        return Ok(vec![]);
    }
    let mut found = vec![];
    place = skip_blanks(bytes, place + 1);
    while !matches!(bytes.get(place), None | Some(b'}')) {
        let key = value(bytes, place);
        // Past the colon.
        place = skip_blanks(bytes, skip_blanks(bytes, key.end) + 1);
        let range = value(bytes, place);
        let key = match parse(&text[key], Detail::Values)? {
            Json::String(key) => key,
            other => other.text(),
        };
        found.push((key, &text[range.clone()]));
        place = skip_blanks(bytes, range.end);
        if bytes.get(place) == Some(&b',') {
            place = skip_blanks(bytes, place + 1);
        }
    }
    Ok(found)
}

fn skip_blanks(bytes: &[u8], mut place: usize) -> usize {
    while matches!(bytes.get(place), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        place += 1;
    }
    place
}

/// The value that starts at a place.
fn value(bytes: &[u8], start: usize) -> Range<usize> {
    let mut depth = 0_usize;
    let mut place = start;
    while place < bytes.len() {
        match bytes[place] {
            b'"' => {
                place += 1;
                while place < bytes.len() && bytes[place] != b'"' {
                    place += if bytes[place] == b'\\' { 2 } else { 1 };
                }
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return start..place,
            b'}' | b']' => depth -= 1,
            b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => return start..place,
            _ => {}
        }
        place += 1;
        if depth == 0 && matches!(bytes[place.min(bytes.len()) - 1], b'"' | b'}' | b']') {
            return start..place.min(bytes.len());
        }
    }
    start..bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_as_they_were_written() {
        let text = " { \"a\" : [1, {\"b\":\"]}\\\"\"}] ,\"c\":2,\"d\":\"x,y\" , \"e\": true}";
        let found = members(text).unwrap();
        let found: Vec<_> = found.iter().map(|(key, value)| (key.as_str(), *value)).collect();
        let expected =
            [("a", "[1, {\"b\":\"]}\\\"\"}]"), ("c", "2"), ("d", "\"x,y\""), ("e", "true")];
        assert_eq!(found, expected);
        assert_eq!(elements("[1,[2,3] , \"4\",{}]"), ["1", "[2,3]", "\"4\"", "{}"]);
        assert_eq!(elements("[]"), Vec::<&str>::new());
        assert_eq!(elements("{\"a\":1}"), Vec::<&str>::new());
        assert_eq!(kind("  -1"), b'-');
    }
}
