//! Writes a number as a picture says.

use super::number::Shown;
use super::pattern::{Anchor, Item, Picture};

/// The text. A picture may have more places than there are digits; then it ends with the digits.
pub(super) fn written(picture: &Picture, shown: &Shown) -> String {
    if picture.is_scientific {
        return shown.digits.clone();
    }
    let mut writer = Writer::new(picture, shown);
    for item in &picture.items {
        writer.item(*item);
    }
    writer.out
}

struct Writer<'a> {
    picture: &'a Picture,
    shown: &'a Shown,
    digits: Vec<char>,
    out: String,
    /// The digit that comes next.
    next: usize,
    /// The place in the picture, counted in digits.
    place: usize,
    /// How many places there are.
    places: usize,
    /// The last digit that is written if what means nothing is left out.
    last: Option<usize>,
    /// Whether a digit was the last that was written.
    is_inside: bool,
    is_signed: bool,
    has_brackets: bool,
    anchor: Option<Anchor>,
    /// Nothing more is written.
    has_ended: bool,
}

impl<'a> Writer<'a> {
    fn new(picture: &'a Picture, shown: &'a Shown) -> Self {
        let mut has_brackets = picture.has_brackets;
        let (mut is_signed, mut anchor) = (false, None);
        if picture.has_plus || picture.has_minus {
            // These write signs of their own.
            is_signed = picture.has_minus;
        } else {
            has_brackets &= shown.is_negative || !picture.fills;
            is_signed |= !shown.is_negative && picture.fills && picture.anchor.is_none();
            anchor = picture.anchor_at(shown.whole);
        }
        let digits: Vec<char> = shown.digits.chars().collect();
        let last = last_digit(picture, shown, &digits);
        let extra = usize::from(!is_signed && shown.spaces == 0);
        Self {
            picture,
            shown,
            digits,
            out: String::new(),
            next: 0,
            place: 0,
            places: (shown.whole + shown.fraction + extra).saturating_sub(1),
            last,
            is_inside: false,
            is_signed,
            has_brackets,
            anchor,
            has_ended: false,
        }
    }

    fn put(&mut self, character: char) {
        if !self.has_ended {
            self.out.push(character);
        }
    }

    fn digit_at(&self, place: usize) -> Option<char> {
        self.digits.get(place).copied()
    }

    fn is_last_a_point(&self) -> bool {
        self.last.and_then(|last| self.digit_at(last)) == Some('.')
    }

    /// `0.1` in `9.9` has a blank instead of the zero.
    fn is_blank_zero(&self) -> bool {
        !self.picture.has_zeros()
            && self.next == 0
            && self.digit_at(0) == Some('0')
            && self.shown.fraction != 0
    }

    fn item(&mut self, item: Item) {
        let (fills, is_negative) = (self.picture.fills, self.shown.is_negative);
        match item {
            Item::Nine | Item::Zero | Item::Point => self.digit(item),
            Item::Group if self.is_inside => self.put(','),
            Item::Minus if is_negative => self.put('-'),
            Item::Plus if !is_negative => self.put('+'),
            Item::Group | Item::Minus | Item::Plus if fills => {}
            Item::Group | Item::Minus | Item::Plus | Item::Currency => self.put(' '),
            Item::Sign => self.put(if is_negative { '-' } else { '+' }),
            Item::Ordinal { is_upper } => self.ordinal(is_upper),
            Item::Roman { is_upper } => self.roman(is_upper),
            Item::Silent => {}
            Item::Literal(character) => self.put(character),
        }
    }

    fn ordinal(&mut self, is_upper: bool) {
        let is_number = !self.picture.is_roman
            && self.digit_at(0) != Some('#')
            && !self.shown.is_negative
            && !self.picture.has_point;
        if !is_number {
            return;
        }
        let suffix = match self.digits.as_slice() {
            [.., '1', _] => "th",
            [.., '1'] => "st",
            [.., '2'] => "nd",
            [.., '3'] => "rd",
            _ => "th",
        };
        for letter in suffix.chars() {
            self.put(if is_upper { letter.to_ascii_uppercase() } else { letter });
        }
    }

    fn roman(&mut self, is_upper: bool) {
        let digits = &self.shown.digits;
        let digits = if is_upper { digits.clone() } else { digits.to_lowercase() };
        let width = if self.picture.fills { 0 } else { 15 };
        format!("{digits:>width$}").chars().for_each(|digit| self.put(digit));
    }

    fn digit(&mut self, item: Item) {
        if self.picture.is_roman {
            return;
        }
        self.is_inside = false;
        self.sign();
        let is_zeroed = self.picture.zero_start.is_some_and(|start| start <= self.place);
        if self.place < self.shown.spaces {
            if is_zeroed {
                self.put('0');
                self.is_inside = true;
            } else if !self.picture.fills {
                self.put(' ');
            }
        } else {
            self.next_digit(item);
        }
        let mut end =
            self.places + usize::from(self.shown.spaces > 0) + usize::from(self.picture.has_point);
        if self.last == Some(self.next) {
            end = self.place;
        }
        if self.place + 1 == end {
            if self.is_signed && self.has_brackets {
                self.put(if self.shown.is_negative { '>' } else { ' ' });
            } else if self.anchor == Some(Anchor::Behind) {
                self.put(if self.shown.is_negative { '-' } else { '+' });
            }
        }
        self.place += 1;
    }

    /// The sign stands before the first digit that is written.
    fn sign(&mut self) {
        let is_there =
            self.place >= self.shown.spaces || self.picture.zero_start == Some(self.place);
        if self.is_signed || !is_there || self.is_blank_zero() && !self.is_last_a_point() {
            return;
        }
        let is_negative = self.shown.is_negative;
        match self.anchor {
            Some(Anchor::Before) => self.put(if is_negative { '-' } else { '+' }),
            Some(Anchor::Behind) => return,
            None if self.has_brackets => self.put(if is_negative { '<' } else { ' ' }),
            None if is_negative => self.put('-'),
            None if !self.picture.fills => self.put(' '),
            None => {}
        }
        self.is_signed = true;
    }

    fn next_digit(&mut self, item: Item) {
        match self.digit_at(self.next) {
            Some('.') => {
                if self.last.is_none() || !self.is_last_a_point() || self.picture.fills {
                    self.put('.');
                }
            }
            _ if self.last.is_some_and(|last| self.next > last) && item != Item::Zero => {}
            _ if self.is_blank_zero() => {
                if !self.picture.fills {
                    self.put(' ');
                } else if self.is_last_a_point() {
                    self.put('0');
                }
            }
            Some(digit) => {
                self.put(digit);
                self.is_inside = true;
            }
            None => self.has_ended = true,
        }
        self.next = (self.next + 1).min(self.digits.len());
    }
}

/// With `FM` zeros at the end are left out, but for those that the picture asks for.
fn last_digit(picture: &Picture, shown: &Shown, digits: &[char]) -> Option<usize> {
    if !picture.fills || !picture.has_point {
        return None;
    }
    let point = digits.iter().position(|digit| *digit == '.')?;
    let last = digits.iter().rposition(|digit| *digit != '0').map_or(point, |last| last.max(point));
    match picture.zero_end.checked_sub(shown.spaces) {
        Some(asked) if asked > 0 => Some(last.max(asked.min(digits.len() - 1))),
        _ => Some(last),
    }
}
