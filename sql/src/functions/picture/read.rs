//! Reads a number as a picture says.

use stillframe_protocol::numeric::Numeric;

use super::Row;
use super::pattern::{Anchor, Item, Picture};
use crate::SqlState;
use crate::functions::numeric::raised;
use crate::functions::row::raise;

/// The number that a text is.
pub(super) fn number(picture: &Picture, text: &str) -> Row<Numeric> {
    for (is_there, word) in [(picture.is_scientific, "EEEE"), (picture.is_roman, "RN")] {
        if is_there {
            let message = format!("\"{word}\" not supported for input");
            return Err(raise(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
    }
    let mut reader = Reader {
        picture,
        text: text.chars().collect(),
        at: 0,
        sign: ' ',
        digits: String::new(),
        whole: 0,
        fraction: 0,
        has_point: false,
    };
    for item in &picture.items {
        if reader.at >= reader.text.len() {
            break;
        }
        reader.item(*item);
    }
    reader.finish()
}

struct Reader<'a> {
    picture: &'a Picture,
    text: Vec<char>,
    at: usize,
    sign: char,
    digits: String,
    whole: usize,
    fraction: usize,
    has_point: bool,
}

impl Reader<'_> {
    fn next(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn item(&mut self, item: Item) {
        match item {
            Item::Nine | Item::Zero => {
                self.part(true);
                self.at += 1;
            }
            Item::Point => {
                self.part(false);
                self.at += 1;
            }
            // A number is never inside here: `,` fits a comma only, and nothing with FM.
            Item::Group => {
                if !self.picture.fills && self.next() == Some(',') {
                    self.at += 1;
                }
            }
            Item::Currency => self.skip(1),
            Item::Ordinal { .. } => self.skip(2),
            Item::Minus => self.sign_of(&['-']),
            Item::Plus => self.sign_of(&['+']),
            Item::Sign => self.sign_of(&['-', '+']),
            Item::Literal(_) => self.at += 1,
            Item::Roman { .. } | Item::Silent => {}
        }
    }

    fn sign_of(&mut self, signs: &[char]) {
        match self.next() {
            Some(sign) if signs.contains(&sign) => {
                self.sign = sign;
                self.at += 1;
            }
            _ => self.skip(1),
        }
    }

    /// Passes over characters that can't belong to a number.
    fn skip(&mut self, count: usize) {
        for _ in 0..count {
            match self.next() {
                Some(other) if !other.is_ascii_digit() && !".,+-".contains(other) => self.at += 1,
                _ => return,
            }
        }
    }

    /// A digit or the point, with the sign before or behind it.
    fn part(&mut self, is_digit: bool) {
        if self.next() == Some(' ') {
            self.at += 1;
        }
        let anchor = self.picture.anchor_at(self.picture.whole);
        if self.sign == ' ' && is_digit && self.whole + self.fraction == 0 {
            match self.next() {
                Some(sign @ ('-' | '+')) => {
                    self.sign = sign;
                    self.at += 1;
                }
                Some('<') if self.picture.has_brackets && anchor != Some(Anchor::Before) => {
                    self.sign = '-';
                    self.at += 1;
                }
                _ => {}
            }
        }
        let mut is_read = false;
        match self.next() {
            Some(digit) if digit.is_ascii_digit() => {
                if self.has_point && self.fraction == self.picture.fraction {
                    return;
                }
                self.digits.push(digit);
                if self.has_point {
                    self.fraction += 1;
                } else {
                    self.whole += 1;
                }
                is_read = true;
            }
            Some('.') if self.picture.has_point && !self.has_point => {
                self.digits.push('.');
                self.has_point = true;
                is_read = true;
            }
            Some(_) => {}
            None => return,
        }
        if self.sign == ' ' && self.whole + self.fraction > 0 {
            self.sign_behind(is_read);
        }
    }

    fn sign_behind(&mut self, is_read: bool) {
        if self.picture.anchor.is_some() {
            let behind = self.text.get(self.at + 1).copied();
            if let Some(sign @ ('-' | '+')) = behind.filter(|_| is_read) {
                self.sign = sign;
                self.at += 1;
            }
        } else if !is_read && let Some(sign @ ('-' | '+')) = self.next() {
            self.sign = sign;
        }
    }

    fn finish(self) -> Row<Numeric> {
        let digits = self.digits.strip_suffix('.').unwrap_or(&self.digits);
        let text = format!("{}{digits}", self.sign);
        let number = Numeric::parse(&text).map_err(|error| {
            let message = format!("invalid input syntax for type numeric: \"{text}\"");
            match digits.is_empty() {
                true => raise(SqlState::INVALID_TEXT_REPRESENTATION, message),
                false => raised(error),
            }
        })?;
        let shift = self.picture.shift;
        let precision = (self.picture.whole + shift + self.fraction).max(1) as u32;
        let fitted = number.fit(precision, self.fraction as i32);
        let number = fitted.map_err(|(error, _)| raised(error))?;
        if shift == 0 {
            return Ok(number);
        }
        let ten = Numeric::from(10_i64);
        let factor = ten.power(&Numeric::from(-(shift as i64))).map_err(raised)?;
        number.multiply(&factor).map_err(raised)
    }
}
