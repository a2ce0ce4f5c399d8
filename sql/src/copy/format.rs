//! COPY's options: what a statement says, checked as PostgreSQL checks it.

use super::fields::Syntax;
use super::lines::Quotes;
use super::statement::{CopyOption, OptionValue};
use crate::{Error, SqlState};

/// How the data of a COPY FROM looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Format {
    /// Whether it is in the binary format; what follows means nothing then.
    pub(super) is_binary: bool,
    pub(super) syntax: Syntax,
    pub(super) header: Header,
    /// Columns in which what stands for NULL is a value.
    pub(super) force_not_null: Vec<String>,
    /// Columns in which what stands for NULL is NULL in quotes too.
    pub(super) force_null: Vec<String>,
}

/// What the first line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    /// Data.
    Absent,
    /// Passed over.
    Ignored,
    /// The columns' names.
    Matched,
}

/// The options as they are given.
#[derive(Default)]
struct Given {
    format: Option<FileFormat>,
    freeze: Option<bool>,
    delimiter: Option<String>,
    null: Option<String>,
    header: Option<Header>,
    quote: Option<String>,
    escape: Option<String>,
    force_quote: Option<Columns>,
    force_not_null: Option<Columns>,
    force_null: Option<Columns>,
    encoding: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FileFormat {
    Text,
    Csv,
    Binary,
}

enum Columns {
    All,
    Some(Vec<String>),
}

impl Format {
    /// Checks the options of a COPY FROM.
    pub(super) fn new(options: &[CopyOption]) -> Result<Self, Error> {
        Given::read(options)?.check()
    }
}

/// How the data of a COPY TO looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutputFormat {
    /// Whether it is in the binary format; what follows means nothing then.
    pub(super) is_binary: bool,
    pub(super) syntax: Syntax,
    pub(super) has_header: bool,
    /// Whether all values are quoted.
    pub(super) quotes_all: bool,
    /// Columns whose values are quoted.
    pub(super) quoted: Vec<String>,
}

impl OutputFormat {
    /// Checks the options of a COPY TO.
    pub(super) fn new(options: &[CopyOption]) -> Result<Self, Error> {
        let mut given = Given::read(options)?;
        let quoted = given.force_quote.take();
        let is_csv = given.format == Some(FileFormat::Csv);
        if quoted.is_some() && !is_csv {
            return Err(refused("COPY force quote available only in CSV mode"));
        }
        if is_csv && given.force_not_null.is_some() {
            return Err(refused("COPY force not null only available using COPY FROM"));
        }
        if is_csv && given.force_null.is_some() {
            return Err(refused("COPY force null only available using COPY FROM"));
        }
        if given.header == Some(Header::Matched) {
            return Err(refused("cannot use \"match\" with HEADER in COPY TO"));
        }
        let Format { is_binary, syntax, header, .. } = given.check()?;
        let (quotes_all, quoted) = match quoted {
            Some(Columns::All) => (true, vec![]),
            Some(Columns::Some(names)) => (false, names),
            None => (false, vec![]),
        };
        Ok(Self { is_binary, syntax, has_header: header == Header::Ignored, quotes_all, quoted })
    }
}

impl Given {
    fn read(options: &[CopyOption]) -> Result<Self, Error> {
        let mut given = Self::default();
        for option in options {
            let taken = match option.name.as_str() {
                "format" => set(&mut given.format, file_format(option)?),
                "freeze" => set(&mut given.freeze, boolean(option)?),
                "delimiter" => set(&mut given.delimiter, text(option)?),
                "null" => set(&mut given.null, text(option)?),
                "header" => set(&mut given.header, header(option)?),
                "quote" => set(&mut given.quote, text(option)?),
                "escape" => set(&mut given.escape, text(option)?),
                "force_quote" => set(&mut given.force_quote, columns(option, true)?),
                "force_not_null" => set(&mut given.force_not_null, columns(option, false)?),
                "force_null" => set(&mut given.force_null, columns(option, false)?),
                "encoding" => set(&mut given.encoding, encoding(option)?),
                name => {
                    let message = format!("option \"{name}\" not recognized");
                    return Err(Error::new(SqlState::SYNTAX_ERROR, message));
                }
            };
            if !taken {
                let message = "conflicting or redundant options";
                return Err(Error::new(SqlState::SYNTAX_ERROR, message));
            }
        }
        Ok(given)
    }

    fn check(self) -> Result<Format, Error> {
        let is_csv = self.format == Some(FileFormat::Csv);
        let is_binary = self.format == Some(FileFormat::Binary);
        for (option, is_given) in [
            ("DELIMITER", self.delimiter.is_some()),
            ("NULL", self.null.is_some()),
            ("HEADER", self.header.is_some_and(|header| header != Header::Absent)),
        ] {
            if is_binary && is_given {
                let message = format!("cannot specify {option} in BINARY mode");
                return Err(if option == "HEADER" {
                    refused(&message)
                } else {
                    Error::new(SqlState::SYNTAX_ERROR, message)
                });
            }
        }
        let default_delimiter = if is_csv { "," } else { "\t" };
        let default_null = if is_csv { "" } else { "\\N" };
        let delimiter_text = self.delimiter.unwrap_or_else(|| default_delimiter.to_owned());
        let null = self.null.unwrap_or_else(|| default_null.to_owned());
        let delimiter = one_byte(&delimiter_text, "COPY delimiter")?;
        if matches!(delimiter, b'\n' | b'\r') {
            return Err(invalid("COPY delimiter cannot be newline or carriage return"));
        }
        if null.contains(['\n', '\r']) {
            return Err(invalid("COPY null representation cannot use newline or carriage return"));
        }
        // In text these would be confused with escapes.
        let is_confusing = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'\\' | b'.')
        };
        if !is_csv && is_confusing(delimiter) {
            return Err(invalid(&format!("COPY delimiter cannot be \"{delimiter_text}\"")));
        }
        if !is_csv && self.quote.is_some() {
            return Err(refused("COPY quote available only in CSV mode"));
        }
        let quote = one_byte(self.quote.as_deref().unwrap_or("\""), "COPY quote")?;
        if is_csv && delimiter == quote {
            return Err(invalid("COPY delimiter and quote must be different"));
        }
        if !is_csv && self.escape.is_some() {
            return Err(refused("COPY escape available only in CSV mode"));
        }
        let escape = match &self.escape {
            Some(escape) => one_byte(escape, "COPY escape")?,
            None => quote,
        };
        if self.force_quote.is_some() {
            return Err(refused(if is_csv {
                "COPY force quote only available using COPY TO"
            } else {
                "COPY force quote available only in CSV mode"
            }));
        }
        if !is_csv && self.force_not_null.is_some() {
            return Err(refused("COPY force not null available only in CSV mode"));
        }
        if !is_csv && self.force_null.is_some() {
            return Err(refused("COPY force null available only in CSV mode"));
        }
        if null.as_bytes().contains(&delimiter) {
            return Err(refused("COPY delimiter must not appear in the NULL specification"));
        }
        if is_csv && null.as_bytes().contains(&quote) {
            return Err(refused("CSV quote character must not appear in the NULL specification"));
        }
        let names = |columns: Option<Columns>| match columns {
            Some(Columns::Some(names)) => names,
            Some(Columns::All) | None => vec![],
        };
        Ok(Format {
            is_binary,
            syntax: Syntax { delimiter, null, quotes: is_csv.then_some(Quotes { quote, escape }) },
            header: self.header.unwrap_or(Header::Absent),
            force_not_null: names(self.force_not_null),
            force_null: names(self.force_null),
        })
    }
}

fn set<T>(place: &mut Option<T>, value: T) -> bool {
    place.replace(value).is_none()
}

fn invalid(message: &str) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn refused(message: &str) -> Error {
    Error::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

fn one_byte(text: &str, what: &str) -> Result<u8, Error> {
    match text.as_bytes() {
        [byte] => Ok(*byte),
        _ => Err(refused(&format!("{what} must be a single one-byte character"))),
    }
}

fn file_format(option: &CopyOption) -> Result<FileFormat, Error> {
    match text(option)?.as_str() {
        "text" => Ok(FileFormat::Text),
        "csv" => Ok(FileFormat::Csv),
        "binary" => Ok(FileFormat::Binary),
        other => Err(invalid(&format!("COPY format \"{other}\" not recognized"))),
    }
}

fn encoding(option: &CopyOption) -> Result<String, Error> {
    let name = text(option)?;
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    match plain.to_ascii_lowercase().as_str() {
        "utf8" | "unicode" => Ok(name),
        _ => {
            let message = "argument to option \"encoding\" must be a valid encoding name";
            Err(invalid(message))
        }
    }
}

fn text(option: &CopyOption) -> Result<String, Error> {
    match &option.value {
        OptionValue::Text(text) | OptionValue::Word(text) | OptionValue::Number(text) => {
            Ok(text.clone())
        }
        OptionValue::Absent => {
            let message = format!("{} requires a parameter", option.name);
            Err(Error::new(SqlState::SYNTAX_ERROR, message))
        }
        OptionValue::All => Ok("*".to_owned()),
        OptionValue::List(names) => Ok(names.join(", ")),
    }
}

fn as_boolean(option: &CopyOption) -> Option<bool> {
    match &option.value {
        OptionValue::Absent => Some(true),
        OptionValue::Number(number) if number == "0" => Some(false),
        OptionValue::Number(number) if number == "1" => Some(true),
        OptionValue::Text(text) | OptionValue::Word(text) => {
            match text.to_ascii_lowercase().as_str() {
                "true" | "on" => Some(true),
                "false" | "off" => Some(false),
                _ => None,
            }
        }
        OptionValue::Number(_) | OptionValue::All | OptionValue::List(_) => None,
    }
}

fn boolean(option: &CopyOption) -> Result<bool, Error> {
    as_boolean(option).ok_or_else(|| {
        let message = format!("{} requires a Boolean value", option.name);
        Error::new(SqlState::SYNTAX_ERROR, message)
    })
}

fn header(option: &CopyOption) -> Result<Header, Error> {
    match (as_boolean(option), &option.value) {
        (Some(true), _) => Ok(Header::Ignored),
        (Some(false), _) => Ok(Header::Absent),
        (None, OptionValue::Text(text) | OptionValue::Word(text))
            if text.eq_ignore_ascii_case("match") =>
        {
            Ok(Header::Matched)
        }
        _ => {
            let message = "header requires a Boolean value or \"match\"";
            Err(Error::new(SqlState::SYNTAX_ERROR, message))
        }
    }
}

fn columns(option: &CopyOption, may_be_all: bool) -> Result<Columns, Error> {
    match &option.value {
        OptionValue::All if may_be_all => Ok(Columns::All),
        OptionValue::List(names) => Ok(Columns::Some(names.clone())),
        _ => {
            let message =
                format!("argument to option \"{}\" must be a list of column names", option.name);
            Err(invalid(&message))
        }
    }
}
