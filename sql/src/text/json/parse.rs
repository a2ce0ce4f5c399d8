//! Text to a value.

use super::{Json, number};
use crate::{Error, SqlState};

/// How deep arrays and objects may nest.
const DEPTH_MAX: usize = 256;
/// What must be free on the stack for another level, and what is made of it where less is.
const FREE_BYTES: usize = 128 << 10;
const STACK_BYTES: usize = 1 << 20;

/// How much is asked of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// That it has JSON's form. Escapes that stand for no character are let through, and what comes
    /// out for them means nothing.
    Form,
    /// That each part is a value that PostgreSQL has.
    Values,
}

/// Reads a value.
pub(crate) fn parse(text: &str, detail: Detail) -> Result<Json, Error> {
    let mut parser = Parser { text, place: 0, detail, depth: 0 };
    let value = parser.value()?;
    parser.skip_blanks();
    match parser.peek() {
        None => Ok(value),
        Some(_) => Err(parser.unexpected("Expected end of input, but found")),
    }
}

struct Parser<'a> {
    text: &'a str,
    place: usize,
    detail: Detail,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.place).copied()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.place += 1;
        }
    }

    fn error(&self, detail: String) -> Error {
        Error::new(SqlState::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type json")
            .with_detail(detail)
    }

    /// What stands here stands wrongly.
    fn unexpected(&self, expected: &str) -> Error {
        let rest = &self.text[self.place..];
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.' || c == '-' || c == '+';
        let end = match rest.chars().next() {
            None => return self.error("The input string ended unexpectedly.".to_owned()),
            Some(first) if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            Some(first) => first.len_utf8(),
        };
        self.error(format!("{expected} \"{}\".", &rest[..end]))
    }

    fn value(&mut self) -> Result<Json, Error> {
        self.skip_blanks();
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => self.string().map(Json::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => {
                let words = [
                    ("true", Json::Boolean(true)),
                    ("false", Json::Boolean(false)),
                    ("null", Json::Null),
                ];
                for (word, value) in words {
                    if self.text[self.place..].starts_with(word) {
                        let after = self.text[self.place + word.len()..].chars().next();
                        if !after.is_some_and(|c| c.is_alphanumeric() || c == '_') {
                            self.place += word.len();
                            return Ok(value);
                        }
                    }
                }
                Err(self.unexpected("Expected JSON value, but found"))
            }
        }
    }

    fn nested(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Json, Error>,
    ) -> Result<Json, Error> {
        self.place += 1;
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let message = format!("a JSON value of more than {DEPTH_MAX} levels");
            return Err(Error::new(SqlState::STATEMENT_TOO_COMPLEX, message));
        }
        let value = stacker::maybe_grow(FREE_BYTES, STACK_BYTES, || read(self))?;
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> Result<Json, Error> {
        let mut members = vec![];
        self.skip_blanks();
        if self.peek() == Some(b'}') {
            self.place += 1;
            return Ok(Json::Object(members));
        }
        loop {
            self.skip_blanks();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("Expected string or \"}\", but found"));
            }
            let key = self.string()?;
            self.skip_blanks();
            if self.peek() != Some(b':') {
                return Err(self.unexpected("Expected \":\", but found"));
            }
            self.place += 1;
            members.push((key, self.value()?));
            self.skip_blanks();
            match self.peek() {
                Some(b',') => self.place += 1,
                Some(b'}') => {
                    self.place += 1;
                    return Ok(Json::object(members));
                }
                _ => return Err(self.unexpected("Expected \",\" or \"}\", but found")),
            }
        }
    }

    fn array(&mut self) -> Result<Json, Error> {
        let mut elements = vec![];
        self.skip_blanks();
        if self.peek() == Some(b']') {
            self.place += 1;
            return Ok(Json::Array(elements));
        }
        loop {
            elements.push(self.value()?);
            self.skip_blanks();
            match self.peek() {
                Some(b',') => self.place += 1,
                Some(b']') => {
                    self.place += 1;
                    return Ok(Json::Array(elements));
                }
                _ => return Err(self.unexpected("Expected \",\" or \"]\", but found")),
            }
        }
    }

    fn number(&mut self) -> Result<Json, Error> {
        let start = self.place;
        let bytes = self.text.as_bytes();
        let mut place = start + usize::from(bytes[start] == b'-');
        let digits = |place: &mut usize| {
            let first = *place;
            while bytes.get(*place).is_some_and(u8::is_ascii_digit) {
                *place += 1;
            }
            *place > first
        };
        let mut is_well_formed = match bytes.get(place) {
            Some(b'0') => {
                place += 1;
                true
            }
            _ => digits(&mut place),
        };
        if is_well_formed && bytes.get(place) == Some(&b'.') {
            place += 1;
            is_well_formed = digits(&mut place);
        }
        if is_well_formed && matches!(bytes.get(place), Some(b'e' | b'E')) {
            place += 1;
            place += usize::from(matches!(bytes.get(place), Some(b'-' | b'+')));
            is_well_formed = digits(&mut place);
        }
        let follows = self.text[place..].chars().next();
        if !is_well_formed || follows.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '.') {
            return Err(self.unexpected("Token is invalid:"));
        }
        self.place = place;
        let text = &self.text[start..place];
        Ok(Json::Number(match self.detail {
            Detail::Form => text.to_owned(),
            Detail::Values => number::plain(text)?,
        }))
    }

    fn string(&mut self) -> Result<String, Error> {
        self.place += 1;
        let mut string = String::new();
        loop {
            let rest = &self.text[self.place..];
            let Some(stop) = rest.find(|c: char| c == '"' || c == '\\' || c < ' ') else {
                return Err(self.error(format!("Token \"\"{rest}\" is invalid.")));
            };
            string.push_str(&rest[..stop]);
            self.place += stop + 1;
            match rest.as_bytes()[stop] {
                b'"' => return Ok(string),
                b'\\' => self.escape(&mut string)?,
                control => {
                    let detail = format!("Character with value 0x{control:02x} must be escaped.");
                    return Err(self.error(detail));
                }
            }
        }
    }

    /// What follows a backslash.
    fn escape(&mut self, string: &mut String) -> Result<(), Error> {
        let escaped = self.text[self.place..].chars().next();
        self.place += escaped.map_or(0, char::len_utf8);
        string.push(match escaped {
            Some(plain @ ('"' | '\\' | '/')) => plain,
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => return self.unicode(string),
            Some(other) => {
                return Err(self.error(format!("Escape sequence \"\\{other}\" is invalid.")));
            }
            None => return Err(self.error("The input string ended unexpectedly.".to_owned())),
        });
        Ok(())
    }

    fn hexadecimal(&mut self) -> Result<u32, Error> {
        let digits = self.text.as_bytes().get(self.place..self.place + 4);
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let code = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .ok_or_else(|| {
                let detail = "\"\\u\" must be followed by four hexadecimal digits.";
                self.error(detail.to_owned())
            })?;
        self.place += 4;
        Ok(code)
    }

    fn unicode(&mut self, string: &mut String) -> Result<(), Error> {
        let first = self.hexadecimal()?;
        if self.detail == Detail::Form {
            string.push(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
            return Ok(());
        }
        let code = match first {
            0 => {
                let message = "unsupported Unicode escape sequence";
                return Err(Error::new(SqlState::UNTRANSLATABLE_CHARACTER, message)
                    .with_detail("\\u0000 cannot be converted to text."));
            }
            0xd800..0xdc00 => {
                let alone = "Unicode low surrogate must follow a high surrogate.";
                if !self.text[self.place..].starts_with("\\u") {
                    return Err(self.error(alone.to_owned()));
                }
                self.place += 2;
                let second = self.hexadecimal()?;
                if !(0xdc00..0xe000).contains(&second) {
                    return Err(self.error(alone.to_owned()));
                }
                0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
            }
            code => code,
        };
        let character = char::from_u32(code).ok_or_else(|| {
            self.error("Unicode low surrogate must follow a high surrogate.".to_owned())
        })?;
        string.push(character);
        Ok(())
    }
}
