//! PostgreSQL's advanced regular expressions, written as the crate `regex` reads them.
//!
//! What that crate can't do (back references, constraints that look around, basic expressions) is
//! refused.

use arrow::error::ArrowError;

use super::Row;
use super::bracket;
use crate::SqlState;
use crate::functions::row::raise;

/// How an expression is to be read and matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Options {
    pub ignores_case: bool,
    /// `.` and `[^...]` don't match a newline.
    pub stops_at_newline: bool,
    /// `^` and `$` match at newlines, too.
    pub has_lines: bool,
    /// Blanks and comments mean nothing.
    pub is_expanded: bool,
    /// It is no expression but a text.
    pub is_literal: bool,
    pub is_global: bool,
    pub is_basic: bool,
}

impl Options {
    /// Reads the letters of a flags argument. 22023 for one that there isn't.
    pub(super) fn parse(flags: &str) -> Row<Self> {
        let mut options = Self::default();
        for flag in flags.chars() {
            if flag == 'g' {
                options.is_global = true;
            } else if !options.set(flag) {
                let message = format!("invalid regular expression option: \"{flag}\"");
                return Err(raise(SqlState::INVALID_PARAMETER_VALUE, message));
            }
        }
        Ok(options)
    }

    fn set(&mut self, flag: char) -> bool {
        match flag {
            'i' => self.ignores_case = true,
            'c' => self.ignores_case = false,
            'n' | 'm' => (self.stops_at_newline, self.has_lines) = (true, true),
            's' => (self.stops_at_newline, self.has_lines) = (false, false),
            'p' => (self.stops_at_newline, self.has_lines) = (true, false),
            'w' => (self.stops_at_newline, self.has_lines) = (false, true),
            'x' => self.is_expanded = true,
            't' => self.is_expanded = false,
            'q' => self.is_literal = true,
            'e' => (self.is_literal, self.is_basic) = (false, false),
            'b' => (self.is_literal, self.is_basic) = (false, true),
            _ => return false,
        }
        true
    }
}

/// What an expression prefers among the matches that begin at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preference {
    Longest,
    Shortest,
}

/// An expression as the crate reads it.
#[derive(Debug)]
pub(super) struct Translated {
    pub text: String,
    pub ignores_case: bool,
    pub prefers: Preference,
}

impl Translated {
    pub(super) fn syntax(&self) -> regex_automata::util::syntax::Config {
        let syntax = regex_automata::util::syntax::Config::new();
        syntax.case_insensitive(self.ignores_case).nest_limit(400)
    }
}

/// 2201B.
pub(super) fn invalid(what: &str) -> ArrowError {
    let message = format!("invalid regular expression: {what}");
    raise(SqlState::from_code("2201B"), message)
}

fn unsupported(what: &str) -> ArrowError {
    let message = format!("{what} in a regular expression is not supported");
    raise(SqlState::FEATURE_NOT_SUPPORTED, message)
}

/// Translates an expression.
pub(super) fn translate(pattern: &str, options: Options) -> Row<Translated> {
    let mut options = options;
    let mut rest = pattern;
    if let Some(directed) = rest.strip_prefix("***") {
        match directed.chars().next() {
            Some('=') => {
                options.is_literal = true;
                rest = &directed[1..];
            }
            Some(':') => {
                options.is_basic = false;
                rest = &directed[1..];
            }
            _ => return Err(invalid("quantifier operand invalid")),
        }
    }
    if options.is_basic {
        return Err(unsupported("basic syntax"));
    }
    if options.is_literal {
        let text = escaped(rest);
        return Ok(Translated {
            text,
            ignores_case: options.ignores_case,
            prefers: Preference::Longest,
        });
    }
    if let Some(embedded) = rest.strip_prefix("(?")
        && embedded.starts_with(|first: char| first.is_ascii_alphabetic())
    {
        let end = embedded.find(')').ok_or_else(|| invalid("invalid embedded option"))?;
        for flag in embedded[..end].chars() {
            if !options.set(flag) {
                return Err(invalid("invalid embedded option"));
            }
        }
        if options.is_basic {
            return Err(unsupported("basic syntax"));
        }
        rest = &embedded[end + 1..];
        if options.is_literal {
            return translate(&format!("***={rest}"), options);
        }
    }
    let characters: Vec<char> = rest.chars().collect();
    let mut reader = Reader { characters: &characters, at: 0, options, depth: 0, groups: 0 };
    let whole = reader.alternatives()?;
    if reader.at < characters.len() {
        return Err(invalid("parentheses () not balanced"));
    }
    Ok(Translated {
        text: whole.text,
        ignores_case: options.ignores_case,
        prefers: whole.prefers.unwrap_or(Preference::Longest),
    })
}

/// The expression that matches a text and nothing else.
fn escaped(text: &str) -> String {
    text.chars().map(character).collect()
}

/// The expression that matches a character.
pub(super) fn character(character: char) -> String {
    match character {
        other if other.is_alphanumeric() || other == ' ' || other == '_' => other.to_string(),
        other => format!("\\x{{{:x}}}", u32::from(other)),
    }
}

/// Deeper ones are refused, as PostgreSQL does it when its stack ends.
const DEPTH_MAX: usize = 100;
/// Repetitions at most, as in PostgreSQL.
const REPETITIONS_MAX: u32 = 255;

/// A part of an expression.
struct Part {
    text: String,
    prefers: Option<Preference>,
}

struct Reader<'a> {
    characters: &'a [char],
    at: usize,
    options: Options,
    depth: usize,
    groups: usize,
}

/// What a quantifier can follow.
enum Atom {
    Part(Part),
    /// `^` and its like.
    Constraint(String),
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.characters.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek();
        self.at += usize::from(next.is_some());
        next
    }

    fn follows(&self, text: &str) -> bool {
        let mut place = self.at;
        text.chars().all(|character| {
            place += 1;
            self.characters.get(place - 1) == Some(&character)
        })
    }

    fn alternatives(&mut self) -> Row<Part> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(invalid("regular expression is too complex"));
        }
        let mut whole = self.branch()?;
        while self.peek() == Some('|') {
            self.at += 1;
            let branch = self.branch()?;
            whole.text = format!("{}|{}", whole.text, branch.text);
            whole.prefers = Some(Preference::Longest);
        }
        self.depth -= 1;
        Ok(whole)
    }

    fn branch(&mut self) -> Row<Part> {
        let mut branch = Part { text: String::new(), prefers: None };
        loop {
            self.skip_comments()?;
            match self.peek() {
                None | Some('|') => return Ok(branch),
                Some(')') if self.depth > 1 => return Ok(branch),
                _ => {}
            }
            match self.atom()? {
                Atom::Constraint(text) => {
                    self.skip_comments()?;
                    if self.is_quantifier() {
                        return Err(invalid("quantifier operand invalid"));
                    }
                    branch.text.push_str(&text);
                }
                Atom::Part(part) => {
                    let part = self.quantified(part)?;
                    branch.text.push_str(&part.text);
                    branch.prefers = branch.prefers.or(part.prefers);
                }
            }
        }
    }

    /// Comments, and what is none in the expanded syntax.
    fn skip_comments(&mut self) -> Row<()> {
        loop {
            if self.follows("(?#") {
                let end = self.characters[self.at..].iter().position(|next| *next == ')');
                let end = end.ok_or_else(|| invalid("parentheses () not balanced"))?;
                self.at += end + 1;
            } else if self.options.is_expanded && self.peek() == Some('#') {
                let end = self.characters[self.at..].iter().position(|next| *next == '\n');
                self.at = end.map_or(self.characters.len(), |end| self.at + end + 1);
            } else if self.options.is_expanded && self.peek().is_some_and(char::is_whitespace) {
                self.at += 1;
            } else {
                return Ok(());
            }
        }
    }

    fn is_quantifier(&self) -> bool {
        match self.peek() {
            Some('*' | '+' | '?') => true,
            Some('{') => self.characters.get(self.at + 1).is_some_and(char::is_ascii_digit),
            _ => false,
        }
    }

    fn quantified(&mut self, atom: Part) -> Row<Part> {
        self.skip_comments()?;
        if !self.is_quantifier() {
            return Ok(atom);
        }
        let (bounds, is_fixed) = match self.next() {
            Some('*') => ("*".to_owned(), false),
            Some('+') => ("+".to_owned(), false),
            Some('?') => ("?".to_owned(), false),
            _ => self.bounds()?,
        };
        let is_lazy = self.peek() == Some('?');
        self.at += usize::from(is_lazy);
        self.skip_comments()?;
        if self.is_quantifier() {
            return Err(invalid("quantifier operand invalid"));
        }
        let prefers = match (is_fixed, is_lazy) {
            (true, _) => atom.prefers,
            (false, true) => Some(Preference::Shortest),
            (false, false) => Some(Preference::Longest),
        };
        // Once and not more, but as little as possible: so it is said that a part has this preference.
        let text = match bounds.as_str() {
            "{1,1}" if is_lazy => format!("(?U:{})", atom.text),
            "{1,1}" => atom.text,
            bounds => {
                let lazy = if is_lazy { "?" } else { "" };
                format!("(?:{}){bounds}{lazy}", atom.text)
            }
        };
        Ok(Part { text, prefers })
    }

    /// What stands in braces, and whether it is one number.
    fn bounds(&mut self) -> Row<(String, bool)> {
        let low = self.number()?;
        let (high, is_fixed) = match self.peek() {
            Some(',') => {
                self.at += 1;
                match self.peek() {
                    Some('}') => (None, false),
                    _ => (Some(self.number()?), false),
                }
            }
            _ => (Some(low), true),
        };
        if self.next() != Some('}') || high.is_some_and(|high| high < low) {
            return Err(invalid("invalid repetition count(s)"));
        }
        let bounds = match high {
            Some(high) if is_fixed => format!("{{{high}}}"),
            Some(high) => format!("{{{low},{high}}}"),
            None => format!("{{{low},}}"),
        };
        Ok((bounds, is_fixed))
    }

    fn number(&mut self) -> Row<u32> {
        let mut number = None;
        while let Some(digit) = self.peek().and_then(|next| next.to_digit(10)) {
            let value = number.unwrap_or(0) * 10 + digit;
            if value > REPETITIONS_MAX {
                return Err(invalid("invalid repetition count(s)"));
            }
            number = Some(value);
            self.at += 1;
        }
        number.ok_or_else(|| invalid("invalid repetition count(s)"))
    }

    fn atom(&mut self) -> Row<Atom> {
        let plain = |text: String| Ok(Atom::Part(Part { text, prefers: None }));
        match self.next() {
            Some('(') => self.group(),
            Some('[') => {
                if let Some(word) = self.word_end() {
                    return Ok(Atom::Constraint(word));
                }
                let (text, end) =
                    bracket::translate(self.characters, self.at, self.options.stops_at_newline)?;
                self.at = end;
                plain(text)
            }
            Some('.') if self.options.stops_at_newline => plain("[^\\n]".to_owned()),
            Some('.') => plain("(?s:.)".to_owned()),
            Some(anchor @ ('^' | '$')) => Ok(Atom::Constraint(match self.options.has_lines {
                true => format!("(?m:{anchor})"),
                false => anchor.to_string(),
            })),
            Some('\\') => self.escape(),
            Some(')') => Err(invalid("parentheses () not balanced")),
            Some('*' | '+' | '?') => Err(invalid("quantifier operand invalid")),
            Some('{') if self.peek().is_some_and(|next| next.is_ascii_digit()) => {
                Err(invalid("quantifier operand invalid"))
            }
            Some(other) => plain(character(other)),
            None => plain(String::new()),
        }
    }

    /// `[[:<:]]` and `[[:>:]]`
    fn word_end(&mut self) -> Option<String> {
        let text = match () {
            () if self.follows("[:<:]]") => "\\b{start}",
            () if self.follows("[:>:]]") => "\\b{end}",
            () => return None,
        };
        self.at += "[:<:]]".len();
        Some(text.to_owned())
    }

    fn group(&mut self) -> Row<Atom> {
        let captures = !self.follows("?");
        if !captures {
            self.at += 1;
            match self.next() {
                Some(':') => {}
                Some('=' | '!') => return Err(unsupported("a lookahead constraint")),
                Some('<') => return Err(unsupported("a lookbehind constraint")),
                _ => return Err(invalid("quantifier operand invalid")),
            }
        }
        self.groups += usize::from(captures);
        let inner = self.alternatives()?;
        if self.next() != Some(')') {
            return Err(invalid("parentheses () not balanced"));
        }
        let open = if captures { "(" } else { "(?:" };
        Ok(Atom::Part(Part { text: format!("{open}{})", inner.text), prefers: inner.prefers }))
    }

    fn escape(&mut self) -> Row<Atom> {
        let constraint = |text: &str| Ok(Atom::Constraint(text.to_owned()));
        let plain = |text: String| Ok(Atom::Part(Part { text, prefers: None }));
        let Some(next) = self.peek() else { return Err(invalid("invalid escape \\ sequence")) };
        match next {
            'A' => {
                self.at += 1;
                constraint("\\A")
            }
            'Z' => {
                self.at += 1;
                constraint("\\z")
            }
            'm' => {
                self.at += 1;
                constraint("\\b{start}")
            }
            'M' => {
                self.at += 1;
                constraint("\\b{end}")
            }
            'y' => {
                self.at += 1;
                constraint("\\b")
            }
            'Y' => {
                self.at += 1;
                constraint("\\B")
            }
            'd' | 's' | 'w' | 'D' | 'S' | 'W' => {
                self.at += 1;
                let is_negated = next.is_ascii_uppercase();
                let class = bracket::shorthand(next.to_ascii_lowercase());
                let newline = if self.options.stops_at_newline { "\\n" } else { "" };
                plain(match is_negated {
                    true => format!("[^{class}{newline}]"),
                    false => format!("[{class}]"),
                })
            }
            '1'..='9' => {
                let is_octal = self.characters.get(self.at + 1).is_some_and(char::is_ascii_digit);
                if is_octal && self.groups < 10 {
                    let (found, end) = bracket::escape(self.characters, self.at)?;
                    self.at = end;
                    return plain(character(found));
                }
                Err(unsupported("a back reference"))
            }
            _ => {
                let (found, end) = bracket::escape(self.characters, self.at)?;
                self.at = end;
                plain(character(found))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(pattern: &str) -> String {
        translate(pattern, Options::default()).unwrap().text
    }

    #[test]
    fn expressions_are_written_as_the_crate_reads_them() {
        for (pattern, expected) in [
            ("abc", "abc"),
            ("a.c", "a(?s:.)c"),
            ("(a|b)*", "(?:(a|b))*"),
            (r"\mfoo\M", r"\b{start}foo\b{end}"),
            (r"\d{2,3}", "(?:[0-9]){2,3}"),
            ("[]a]", r"[\x{5d}a]"),
            ("{x", r"\x{7b}x"),
            (r"\x41", "A"),
            ("***=a.b", r"a\x{2e}b"),
            ("a(?#hello)b", "ab"),
        ] {
            assert_eq!(translated(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn bad_expressions_are_refused() {
        for (pattern, state) in [
            ("(", "2201B"),
            (")", "2201B"),
            ("a**", "2201B"),
            ("*a", "2201B"),
            ("a{2,1}", "2201B"),
            ("[z-a]", "2201B"),
            ("[a", "2201B"),
            (r"\q", "2201B"),
            (r"(a)\1", "0A000"),
            ("(?=a)", "0A000"),
        ] {
            let error = translate(pattern, Options::default()).unwrap_err();
            assert!(format!("{error:?}").contains(state), "{pattern}: {error:?}");
        }
    }

    #[test]
    fn the_first_quantifier_says_what_is_preferred() {
        let prefers = |pattern| translate(pattern, Options::default()).unwrap().prefers;
        assert_eq!(prefers("a.*?b"), Preference::Shortest);
        assert_eq!(prefers("a.*b.*?"), Preference::Longest);
        assert_eq!(prefers("a??|b"), Preference::Longest);
        assert_eq!(prefers("(a*?){2}b+"), Preference::Shortest);
    }
}
