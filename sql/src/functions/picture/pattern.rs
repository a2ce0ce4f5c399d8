//! What a picture of a number says.

use arrow::error::ArrowError;

use super::Row;
use crate::SqlState;
use crate::functions::row::raise;

/// A part of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// `9`
    Nine,
    /// `0`
    Zero,
    /// `.` or `D`
    Point,
    /// `,` or `G`
    Group,
    /// `L`: no locale has one here.
    Currency,
    /// `MI`
    Minus,
    /// `PL`
    Plus,
    /// `SG`
    Sign,
    /// `TH` or `th`
    Ordinal { is_upper: bool },
    /// `RN` or `rn`
    Roman { is_upper: bool },
    /// What only says something of the whole.
    Silent,
    /// Any other character.
    Literal(char),
}

/// Where `S` stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Before,
    Behind,
}

/// A picture.
#[derive(Clone, Debug, Default)]
pub(super) struct Picture {
    pub items: Vec<Item>,
    /// Digits before the point.
    pub whole: usize,
    /// Digits behind it.
    pub fraction: usize,
    /// Digits behind `V`.
    pub shift: usize,
    /// The first of the places that are filled with zeros.
    pub zero_start: Option<usize>,
    /// Behind the last of them.
    pub zero_end: usize,
    /// `S`, and how many digits are before it.
    pub anchor: Option<(Anchor, usize)>,
    pub has_point: bool,
    pub fills: bool,
    pub has_minus: bool,
    pub has_plus: bool,
    pub has_brackets: bool,
    pub is_roman: bool,
    pub is_scientific: bool,
    has_shift: bool,
    is_blank: bool,
}

/// The words, in the order in which they are looked for: of two that begin alike the longer first.
const WORDS: &[&str] = &[
    ",", ".", "0", "9", "B", "C", "D", "EEEE", "FM", "G", "L", "MI", "PL", "PR", "RN", "SG", "SP",
    "S", "TH", "V", "b", "c", "d", "eeee", "fm", "g", "l", "mi", "pl", "pr", "rn", "sg", "sp", "s",
    "th", "v",
];

fn refuse(message: &str) -> ArrowError {
    raise(SqlState::SYNTAX_ERROR, message)
}

impl Picture {
    pub(super) fn parse(text: &str) -> Row<Self> {
        let mut picture = Self::default();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            if let Some(word) = WORDS.iter().find(|word| rest.starts_with(**word)) {
                rest = &rest[word.len()..];
                let item = picture.word(word)?;
                picture.items.push(item);
            } else if first == '"' {
                rest = picture.quoted(&rest[1..]);
            } else {
                if rest.starts_with("\\\"") {
                    rest = &rest[1..];
                }
                let character = rest.chars().next().unwrap_or(first);
                picture.items.push(Item::Literal(character));
                rest = &rest[character.len_utf8()..];
            }
        }
        picture.settle();
        Ok(picture)
    }

    /// What stands in quotes; returns what follows.
    fn quoted<'a>(&mut self, text: &'a str) -> &'a str {
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            match character {
                '"' => break,
                '\\' => match characters.next() {
                    Some(escaped) => self.items.push(Item::Literal(escaped)),
                    None => self.items.push(Item::Literal('\\')),
                },
                other => self.items.push(Item::Literal(other)),
            }
        }
        characters.as_str()
    }

    fn word(&mut self, word: &str) -> Row<Item> {
        let upper = word.to_ascii_uppercase();
        if self.is_scientific && upper != "EEEE" {
            return Err(refuse("\"EEEE\" must be the last pattern used"));
        }
        Ok(match upper.as_str() {
            "9" => {
                self.digit("9")?;
                Item::Nine
            }
            "0" => {
                self.zero()?;
                Item::Zero
            }
            "." | "D" => {
                if self.has_point {
                    return Err(refuse("multiple decimal points"));
                }
                if self.has_shift {
                    return Err(refuse("cannot use \"V\" and decimal point together"));
                }
                self.has_point = true;
                Item::Point
            }
            "," | "G" => Item::Group,
            "B" => {
                self.is_blank |= self.whole == 0 && self.fraction == 0 && self.zero_start.is_none();
                Item::Silent
            }
            "FM" => {
                self.fills = true;
                Item::Silent
            }
            "S" => {
                self.anchor()?;
                Item::Silent
            }
            "MI" => {
                self.no_anchor("MI")?;
                self.has_minus = true;
                Item::Minus
            }
            "PL" => {
                self.no_anchor("PL")?;
                self.has_plus = true;
                Item::Plus
            }
            "SG" => {
                self.no_anchor("SG")?;
                (self.has_minus, self.has_plus) = (true, true);
                Item::Sign
            }
            "PR" => {
                if self.anchor.is_some() || self.has_minus || self.has_plus {
                    let message = "cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together";
                    return Err(refuse(message));
                }
                self.has_brackets = true;
                Item::Silent
            }
            "L" => Item::Currency,
            "RN" => {
                self.is_roman = true;
                Item::Roman { is_upper: word == upper }
            }
            "TH" => Item::Ordinal { is_upper: word == upper },
            "V" => {
                if self.has_point {
                    return Err(refuse("cannot use \"V\" and decimal point together"));
                }
                self.has_shift = true;
                Item::Silent
            }
            "EEEE" => {
                self.scientific()?;
                Item::Silent
            }
            _ => Item::Silent,
        })
    }

    fn digit(&mut self, word: &str) -> Row<()> {
        if self.has_brackets {
            return Err(refuse(&format!("\"{word}\" must be ahead of \"PR\"")));
        }
        if self.has_shift && word == "9" {
            self.shift += 1;
        } else if self.has_point {
            self.fraction += 1;
        } else {
            self.whole += 1;
        }
        Ok(())
    }

    fn zero(&mut self) -> Row<()> {
        if self.zero_start.is_none() && !self.has_point && !self.has_brackets {
            self.zero_start = Some(self.whole);
        }
        self.digit("0")?;
        self.zero_end = self.whole + self.fraction;
        Ok(())
    }

    fn anchor(&mut self) -> Row<()> {
        if self.anchor.is_some() {
            return Err(refuse("cannot use \"S\" twice"));
        }
        if self.has_plus || self.has_minus || self.has_brackets {
            let message = "cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together";
            return Err(refuse(message));
        }
        let anchor = if self.has_point { Anchor::Behind } else { Anchor::Before };
        self.anchor = Some((anchor, self.whole));
        Ok(())
    }

    fn no_anchor(&self, word: &str) -> Row<()> {
        match self.anchor {
            Some(_) => Err(refuse(&format!("cannot use \"S\" and \"{word}\" together"))),
            None => Ok(()),
        }
    }

    fn scientific(&mut self) -> Row<()> {
        if self.is_scientific {
            return Err(refuse("cannot use \"EEEE\" twice"));
        }
        let has_others = self.is_blank
            || self.fills
            || self.anchor.is_some()
            || self.has_brackets
            || self.has_minus
            || self.has_plus
            || self.is_roman
            || self.has_shift;
        if has_others {
            return Err(refuse("\"EEEE\" is incompatible with other formats"));
        }
        self.is_scientific = true;
        Ok(())
    }

    /// A Roman number has nothing else; an `S` behind all whole digits is behind the number.
    fn settle(&mut self) {
        if self.is_roman {
            (self.anchor, self.zero_start) = (None, None);
            (self.whole, self.fraction, self.shift) = (0, 0, 0);
            (self.has_point, self.has_minus, self.has_plus) = (false, false, false);
            self.has_brackets = false;
        }
    }

    /// Whether places are filled with zeros.
    pub(super) fn has_zeros(&self) -> bool {
        self.zero_start.is_some()
    }

    /// Where the sign that `S` stands for is written; `digits` are those before the point.
    pub(super) fn anchor_at(&self, digits: usize) -> Option<Anchor> {
        match self.anchor? {
            (Anchor::Before, before) if before == digits && before == self.whole => {
                Some(Anchor::Behind)
            }
            (anchor, _) => Some(anchor),
        }
    }
}
