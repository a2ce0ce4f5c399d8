//! The patterns of `to_char`, `to_date` and `to_timestamp`.

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// A character that stands for itself, with whether it was quoted.
    Literal(char, bool),
    Field {
        word: Word,
        /// In which case the pattern has its word, which is that of a name's text.
        case: Case,
        /// Without padding.
        is_bare: bool,
        /// With `st`, `nd`, `rd` or `th` behind a number.
        ordinal: Option<Case>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    Upper,
    Capital,
    Lower,
}

/// What a field shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// With points between the letters, or not.
    Era(bool),
    Meridian(bool),
    Century,
    Day,
    DayName,
    DayAbbreviated,
    DayOfYear,
    DayOfWeek,
    Fraction(u8),
    Hour12,
    Hour24,
    IsoDayOfYear,
    IsoDayOfWeek,
    IsoWeek,
    /// Its last so many digits.
    IsoYear(u8),
    Julian,
    Minute,
    Month,
    MonthName,
    MonthAbbreviated,
    Roman,
    Quarter,
    Second,
    SecondOfDay,
    Zone,
    ZoneHour,
    ZoneMinute,
    ZoneOffset,
    Week,
    WeekOfMonth,
    /// Its last so many digits.
    Year(u8),
    YearWithComma,
}

/// The words, where one begins another the longer first. Names are there in three cases.
const WORDS: &[(&str, Word)] = &[
    ("A.D.", Word::Era(true)),
    ("A.M.", Word::Meridian(true)),
    ("AD", Word::Era(false)),
    ("AM", Word::Meridian(false)),
    ("B.C.", Word::Era(true)),
    ("BC", Word::Era(false)),
    ("CC", Word::Century),
    ("DAY", Word::DayName),
    ("DDD", Word::DayOfYear),
    ("DD", Word::Day),
    ("DY", Word::DayAbbreviated),
    ("D", Word::DayOfWeek),
    ("FF1", Word::Fraction(1)),
    ("FF2", Word::Fraction(2)),
    ("FF3", Word::Fraction(3)),
    ("FF4", Word::Fraction(4)),
    ("FF5", Word::Fraction(5)),
    ("FF6", Word::Fraction(6)),
    ("HH24", Word::Hour24),
    ("HH12", Word::Hour12),
    ("HH", Word::Hour12),
    ("IDDD", Word::IsoDayOfYear),
    ("ID", Word::IsoDayOfWeek),
    ("IW", Word::IsoWeek),
    ("IYYY", Word::IsoYear(4)),
    ("IYY", Word::IsoYear(3)),
    ("IY", Word::IsoYear(2)),
    ("I", Word::IsoYear(1)),
    ("J", Word::Julian),
    ("MI", Word::Minute),
    ("MM", Word::Month),
    ("MONTH", Word::MonthName),
    ("MON", Word::MonthAbbreviated),
    ("MS", Word::Fraction(3)),
    ("OF", Word::ZoneOffset),
    ("P.M.", Word::Meridian(true)),
    ("PM", Word::Meridian(false)),
    ("Q", Word::Quarter),
    ("RM", Word::Roman),
    ("SSSSS", Word::SecondOfDay),
    ("SSSS", Word::SecondOfDay),
    ("SS", Word::Second),
    ("TZH", Word::ZoneHour),
    ("TZM", Word::ZoneMinute),
    ("TZ", Word::Zone),
    ("US", Word::Fraction(6)),
    ("WW", Word::Week),
    ("W", Word::WeekOfMonth),
    ("Y,YYY", Word::YearWithComma),
    ("YYYY", Word::Year(4)),
    ("YYY", Word::Year(3)),
    ("YY", Word::Year(2)),
    ("Y", Word::Year(1)),
];

/// Reads a pattern.
pub(super) fn items(pattern: &str) -> Vec<Item> {
    let mut items = vec![];
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        if first == '"' {
            rest = quoted(&rest[1..], &mut items);
            continue;
        }
        if first == '\\' {
            let mut after = rest[1..].chars();
            if let Some('"') = after.next() {
                items.push(Item::Literal('"', true));
                rest = after.as_str();
                continue;
            }
        }
        let mut body = rest;
        let (mut is_bare, mut is_translated) = (false, false);
        loop {
            let prefix = body.get(..2).map(str::to_ascii_uppercase);
            match prefix.as_deref() {
                Some("FM") => {
                    is_bare = true;
                    body = &body[2..];
                }
                Some("TM") => {
                    is_translated = true;
                    body = &body[2..];
                }
                Some("FX") => body = &body[2..],
                _ => break,
            }
        }
        let Some((word, case, length)) = find(body) else {
            // What prefixes stand before must be a field; otherwise they mean nothing.
            let kept = if body.len() < rest.len() { body } else { rest };
            let mut characters = kept.chars();
            items.extend(characters.next().map(|character| Item::Literal(character, false)));
            rest = characters.as_str();
            continue;
        };
        rest = &body[length..];
        let suffix = rest.get(..2);
        let ordinal = match suffix {
            Some("TH") => Some(Case::Upper),
            Some("th") => Some(Case::Lower),
            _ => None,
        };
        if ordinal.is_some() {
            rest = &rest[2..];
        }
        // Translated names have no blanks behind them.
        let is_bare = is_bare || is_translated && word.is_named();
        items.push(Item::Field { word, case, is_bare, ordinal });
    }
    items
}

/// What stands in quotes; returns what follows.
fn quoted<'a>(text: &'a str, items: &mut Vec<Item>) -> &'a str {
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => break,
            '\\' => items.extend(characters.next().map(|escaped| Item::Literal(escaped, true))),
            other => items.push(Item::Literal(other, true)),
        }
    }
    characters.as_str()
}

impl Word {
    /// Whether it is the name of a day or a month.
    fn is_named(self) -> bool {
        matches!(
            self,
            Self::DayName | Self::DayAbbreviated | Self::MonthName | Self::MonthAbbreviated
        )
    }
}

/// The word at the beginning, its case and its length.
fn find(text: &str) -> Option<(Word, Case, usize)> {
    WORDS.iter().find_map(|(word, found)| {
        let written = text.get(..word.len())?;
        if !written.eq_ignore_ascii_case(word) {
            return None;
        }
        let is_named = found.is_named();
        let lower = word.to_ascii_lowercase();
        let case = if written == *word {
            Case::Upper
        } else if written == lower {
            Case::Lower
        } else if is_named && written[1..] == lower[1..] {
            Case::Capital
        } else {
            return None;
        };
        Some((*found, case, word.len()))
    })
}

/// The months' names, in the first letter's case.
pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The days' names, from Sunday.
pub(super) const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// The months in Roman numbers.
pub(super) const ROMAN: [&str; 12] =
    ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];
