//! Regular expressions.
//!
//! Of the matches that begin at the same place PostgreSQL takes the longest, or the shortest if the
//! expression says so; the crate takes the one that it finds first. So where a match begins is asked
//! of the crate's matcher, and where it ends of an automaton that knows all ends. The parts in
//! parentheses are those that the crate finds in such a match.

mod bracket;
mod count;
mod operator;
mod pieces;
mod replace;
mod syntax;

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use arrow::error::ArrowError;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::{Anchored, Input, MatchKind, meta};

use crate::SqlState;
use crate::functions::row::raise;
use crate::functions::typed::Typed;
use syntax::{Options, Preference, Translated, invalid, translate};

pub(super) use operator::{MATCHES, MATCHES_ANY_CASE, MISMATCHES, MISMATCHES_ANY_CASE};
pub(super) use pieces::substring;

type Row<T> = std::result::Result<T, ArrowError>;

/// All of them.
pub(super) fn definitions() -> impl Iterator<Item = &'static Typed> {
    [&MATCHES, &MATCHES_ANY_CASE, &MISMATCHES, &MISMATCHES_ANY_CASE]
        .into_iter()
        .chain(count::DEFINITIONS)
        .chain(pieces::DEFINITIONS)
        .chain(replace::DEFINITIONS)
}

/// Bytes that a compiled expression may take.
const SIZE_MAX: usize = 10 << 20;

/// A compiled expression.
struct Regex {
    search: meta::Regex,
    /// Finds all ends of matches; none where it would take too much.
    ends: Option<DFA>,
    cache: RefCell<Option<Cache>>,
    /// Made when the first match needs it.
    exact: OnceCell<Option<meta::Regex>>,
    translated: Translated,
}

/// A match, and the parts in parentheses.
struct Found {
    whole: Range<usize>,
    groups: Vec<Option<Range<usize>>>,
}

impl Regex {
    fn new(pattern: &str, options: Options) -> Row<Self> {
        let translated = translate(pattern, options)?;
        let syntax = translated.syntax();
        let config = meta::Config::new().nfa_size_limit(Some(SIZE_MAX));
        let search = meta::Builder::new().configure(config).syntax(syntax).build(&translated.text);
        let search = search.map_err(|error| match error.size_limit() {
            Some(_) => invalid("regular expression is too complex"),
            None => invalid(&error.to_string()),
        })?;
        let config = DFA::config()
            .match_kind(MatchKind::All)
            .unicode_word_boundary(true)
            .skip_cache_capacity_check(true);
        let thompson = regex_automata::nfa::thompson::Config::new().nfa_size_limit(Some(SIZE_MAX));
        let ends = DFA::builder()
            .configure(config)
            .syntax(syntax)
            .thompson(thompson)
            .build(&translated.text)
            .ok();
        Ok(Self { search, ends, cache: RefCell::new(None), exact: OnceCell::new(), translated })
    }

    fn is_match(&self, text: &str) -> bool {
        self.search.is_match(text)
    }

    /// How many parts are in parentheses.
    fn groups(&self) -> usize {
        self.search.captures_len() - 1
    }

    /// The first match from a place.
    fn find(&self, text: &str, start: usize) -> Option<Range<usize>> {
        let input = Input::new(text).range(start..);
        let found = self.search.find(input)?;
        let end = self.end(text, found.start()).unwrap_or(found.end());
        Some(found.start()..end)
    }

    /// Where the match ends that begins at a place.
    fn end(&self, text: &str, start: usize) -> Option<usize> {
        let dfa = self.ends.as_ref()?;
        let mut cache = self.cache.borrow_mut();
        let cache = cache.get_or_insert_with(|| dfa.create_cache());
        let input = Input::new(text)
            .range(start..)
            .anchored(Anchored::Yes)
            .earliest(self.translated.prefers == Preference::Shortest);
        Some(dfa.try_search_fwd(cache, &input).ok()??.offset())
    }

    /// The first match from a place, with its parts.
    fn captures(&self, text: &str, start: usize) -> Option<Found> {
        let whole = self.find(text, start)?;
        if self.groups() == 0 {
            return Some(Found { whole, groups: vec![] });
        }
        let mut captures = self.search.create_captures();
        let input = Input::new(text).range(whole.start..).anchored(Anchored::Yes);
        self.search.captures(input, &mut captures);
        if captures.get_match().is_none_or(|found| found.end() != whole.end)
            && let Some(exact) = self.exact.get_or_init(|| self.until_end())
        {
            captures = exact.create_captures();
            let cut = Input::new(&text[..whole.end]).range(whole.start..);
            exact.captures(cut.anchored(Anchored::Yes), &mut captures);
        }
        let groups = (1..=self.groups())
            .map(|group| captures.get_group(group).map(|span| span.start..span.end));
        Some(Found { whole, groups: groups.collect() })
    }

    /// The same expression, which must match up to the end.
    fn until_end(&self) -> Option<meta::Regex> {
        let config = meta::Config::new().nfa_size_limit(Some(SIZE_MAX));
        let text = format!("(?:{})\\z", self.translated.text);
        meta::Builder::new().configure(config).syntax(self.translated.syntax()).build(&text).ok()
    }

    /// All matches from a place, which don't overlap.
    fn all<'a>(&'a self, text: &'a str, start: usize) -> impl Iterator<Item = Found> + 'a {
        let mut next = Some(start);
        std::iter::from_fn(move || {
            let found = self.captures(text, next?)?;
            next = following(text, &found.whole);
            Some(found)
        })
    }
}

/// Where the search goes on behind a match: one of nothing isn't found again.
fn following(text: &str, found: &Range<usize>) -> Option<usize> {
    if found.start < found.end {
        return Some(found.end);
    }
    let character = text[found.end..].chars().next()?;
    Some(found.end + character.len_utf8())
}

/// Compiled expressions that each thread keeps.
const KEPT_MAX: usize = 64;

/// The compiled expression.
fn compiled(pattern: &str, options: Options) -> Row<Rc<Regex>> {
    thread_local! {
        static KEPT: RefCell<HashMap<(String, Options), Rc<Regex>>> = RefCell::default();
    }
    KEPT.with(|kept| {
        let mut kept = kept.borrow_mut();
        let key = (pattern.to_owned(), options);
        if let Some(known) = kept.get(&key) {
            return Ok(Rc::clone(known));
        }
        let regex = Rc::new(Regex::new(pattern, options)?);
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(key, Rc::clone(&regex));
        Ok(regex)
    })
}

/// Compiles the expressions of rows, of which one is mostly like the one before.
#[derive(Default)]
struct Last(Option<(String, String, Rc<Regex>, Options)>);

impl Last {
    /// The expression with the options that flags say.
    fn get(&mut self, pattern: &str, flags: &str) -> Row<(Rc<Regex>, Options)> {
        if let Some((known, known_flags, regex, options)) = &self.0
            && known == pattern
            && known_flags == flags
        {
            return Ok((Rc::clone(regex), *options));
        }
        let options = Options::parse(flags)?;
        let regex = compiled(pattern, Options { is_global: false, ..options })?;
        self.0 = Some((pattern.to_owned(), flags.to_owned(), Rc::clone(&regex), options));
        Ok((regex, options))
    }
}

/// Whether an expression matches a text somewhere.
pub(super) fn is_match(text: &str, pattern: &str, flags: &str) -> Row<bool> {
    Ok(compiled(pattern, Options::parse(flags)?)?.is_match(text))
}

/// Refuses the flag `g`.
fn not_global(function: &str, options: Options) -> Row<()> {
    if options.is_global {
        let message = format!("{function}() does not support the \"global\" option");
        return Err(raise(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    Ok(())
}

/// A positive argument. 22023 for another.
fn positive(name: &str, value: i32) -> Row<usize> {
    usize::try_from(value).ok().filter(|value| *value > 0).ok_or_else(|| bad(name, value))
}

fn bad(name: &str, value: i32) -> ArrowError {
    let message = format!("invalid value for parameter \"{name}\": {value}");
    raise(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// Where the character with a number, from 1, begins; none if the text ends before.
fn offset(text: &str, number: usize) -> Option<usize> {
    let mut starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    starts.nth(number - 1)
}
