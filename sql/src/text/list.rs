//! One-dimensional arrays in text.

use crate::{Error, SqlState};

/// Appends an element's text, quoted where it must be.
pub(super) fn write_element(element: &[u8], out: &mut Vec<u8>) {
    let special = |byte: &u8| {
        matches!(byte, b'"' | b'\\' | b'{' | b'}' | b',' | b' ' | b'\t' | b'\n' | b'\r' | 11 | 12)
    };
    let needs_quotes =
        element.is_empty() || element.eq_ignore_ascii_case(b"null") || element.iter().any(special);
    if !needs_quotes {
        out.extend_from_slice(element);
        return;
    }
    out.push(b'"');
    for byte in element {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

/// The elements' texts; `None` for NULL. Nested arrays are a 0A000.
pub(super) fn elements(text: &str) -> Result<Vec<Option<String>>, Error> {
    let malformed = |detail: &str| {
        let message = format!("malformed array literal: \"{text}\"");
        Error::new(SqlState::INVALID_TEXT_REPRESENTATION, message).with_detail(detail)
    };
    let inner = text.trim();
    if inner.starts_with('[') {
        return Err(Error::unsupported("an array literal with bounds"));
    }
    let inner = inner
        .strip_prefix('{')
        .ok_or_else(|| malformed("Array value must start with \"{\" or dimension information."))?;
    let mut elements = vec![];
    let mut characters = inner.chars().peekable();
    let skip_blanks = |characters: &mut std::iter::Peekable<std::str::Chars<'_>>| {
        while characters.next_if(|c| c.is_ascii_whitespace()).is_some() {}
    };
    skip_blanks(&mut characters);
    if characters.next_if_eq(&'}').is_some() {
        skip_blanks(&mut characters);
        return match characters.next() {
            None => Ok(elements),
            Some(_) => Err(malformed("Junk after closing right brace.")),
        };
    }
    loop {
        skip_blanks(&mut characters);
        let mut element = String::new();
        let mut quoted = false;
        match characters.peek() {
            Some('{') => return Err(Error::unsupported("an array of more than one dimension")),
            Some('"') => {
                quoted = true;
                characters.next();
                loop {
                    match characters.next() {
                        Some('"') => break,
                        Some('\\') => {
                            let escaped = characters.next();
                            element.push(
                                escaped.ok_or_else(|| malformed("Unexpected end of input."))?,
                            );
                        }
                        Some(other) => element.push(other),
                        None => return Err(malformed("Unexpected end of input.")),
                    }
                }
                skip_blanks(&mut characters);
            }
            _ => {
                let mut kept = 0;
                while let Some(c) = characters.next_if(|c| !matches!(c, ',' | '}' | '{' | '"')) {
                    if c == '\\' {
                        quoted = true;
                        let escaped = characters.next();
                        element.push(escaped.ok_or_else(|| malformed("Unexpected end of input."))?);
                        kept = element.len();
                    } else {
                        element.push(c);
                        if !c.is_ascii_whitespace() {
                            kept = element.len();
                        }
                    }
                }
                element.truncate(kept);
                if element.is_empty() {
                    return Err(malformed("Unexpected \",\" or \"}\" character."));
                }
            }
        }
        let is_null = !quoted && element.eq_ignore_ascii_case("null");
        elements.push((!is_null).then_some(element));
        match characters.next() {
            Some(',') => {}
            Some('}') => break,
            Some(_) => return Err(malformed("Unexpected array element.")),
            None => return Err(malformed("Unexpected end of input.")),
        }
    }
    skip_blanks(&mut characters);
    match characters.next() {
        None => Ok(elements),
        Some(_) => Err(malformed("Junk after closing right brace.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_survive_quoting() {
        let texts = ["1", "a b", "", "null", "quo\"te", "back\\slash", "{x}", "a,b"];
        let mut out = vec![b'{'];
        for (place, text) in texts.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            write_element(text.as_bytes(), &mut out);
        }
        out.extend_from_slice(b",NULL}");
        let read = elements(std::str::from_utf8(&out).unwrap()).unwrap();
        let expected: Vec<_> =
            texts.iter().map(|text| Some((*text).to_owned())).chain([None]).collect();
        assert_eq!(read, expected);
    }

    #[test]
    fn malformed_arrays_are_refused() {
        assert_eq!(elements("{}").unwrap(), Vec::<Option<String>>::new());
        assert_eq!(elements("{ 1 , 2 }").unwrap(), [Some("1".to_owned()), Some("2".to_owned())]);
        for text in ["", "1,2", "{1,2", "{1,,2}", "{1}x", "{\"a}", "{1,}"] {
            let state = elements(text).unwrap_err().state;
            assert_eq!(state, SqlState::INVALID_TEXT_REPRESENTATION, "{text}");
        }
        assert_eq!(elements("{{1}}").unwrap_err().state, SqlState::FEATURE_NOT_SUPPORTED);
    }
}
