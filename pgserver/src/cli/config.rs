//! Options from a file: each section is a command, each key one of its options.
//!
//! ```toml
//! [coordinator]
//! hosts = 3
//! certs = "/etc/stillframe/certs"
//! ```
//!
//! A file is turned into arguments in front of those of the command line, which count. So names,
//! values and defaults are told in one place, and mistakes are the same.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{Args, Parser as _};
use toml::{Table, Value};

use super::{Arguments, ServeError};

/// The commands that have options in a file.
const COMMANDS: [&str; 4] = ["serve", "coordinator", "host", "demo"];

/// Tells all that is wrong with a file of options.
#[derive(Debug, Args)]
pub(super) struct CheckConfig {
    /// The file.
    file: PathBuf,
}

impl CheckConfig {
    pub(super) fn run(&self) -> Result<(), ServeError> {
        let mut problems = vec![];
        for (section, options) in &read(&self.file)? {
            match options {
                _ if !COMMANDS.contains(&section.as_str()) => {
                    let known = COMMANDS.join(", ");
                    problems.push(format!("{section}: there is no such section, but {known}"));
                }
                Value::Table(options) => match section_arguments(section, options) {
                    Ok(arguments) => problems.extend(checked(section, arguments)),
                    Err(found) => problems.extend(found),
                },
                _ => problems.push(format!("{section}: must be a section")),
            }
        }
        if problems.is_empty() {
            println!("{}: no problem found", self.file.display());
            return Ok(());
        }
        Err(ServeError::Config(self.file.clone(), problems))
    }
}

/// What else is wrong with options that can be understood.
fn checked(section: &str, arguments: Vec<OsString>) -> Vec<String> {
    let line = ["stillframe".into(), section.into()].into_iter().chain(arguments);
    match Arguments::try_parse_from(line) {
        Ok(arguments) => {
            arguments.problems().iter().map(|problem| format!("{section}: {problem}")).collect()
        }
        Err(error) => vec![format!("{section}: {}", told(&error))],
    }
}

/// The command line, with the options of its file, if it names one, in front.
///
/// # Errors
///
/// With all that is wrong with the command's section of the file.
pub(super) fn with_file(
    given: Vec<OsString>,
    command: &str,
    file: &Path,
) -> Result<Vec<OsString>, ServeError> {
    let mut sections = read(file)?;
    let options = match sections.remove(command) {
        Some(Value::Table(options)) => options,
        Some(_) => return Err(invalid(file, format!("{command} is not a section"))),
        None => Table::new(),
    };
    let arguments = section_arguments(command, &options)
        .map_err(|problems| ServeError::Config(file.to_owned(), problems))?;
    let mut given = given.into_iter();
    let mut line: Vec<_> = given.next().into_iter().collect();
    line.push(command.into());
    line.extend(arguments);
    // Options that stand before a command may stand behind it, too.
    let mut rest: Vec<_> = given.collect();
    if let Some(at) = rest.iter().position(|argument| argument == command) {
        rest.remove(at);
    }
    line.extend(rest);
    Ok(line)
}

fn read(file: &Path) -> Result<Table, ServeError> {
    let text = fs::read_to_string(file).map_err(|error| invalid(file, error.to_string()))?;
    text.parse().map_err(|error: toml::de::Error| invalid(file, error.to_string()))
}

fn invalid(file: &Path, problem: String) -> ServeError {
    ServeError::Config(file.to_owned(), vec![problem])
}

/// The options of a section as arguments, or all that is wrong with them.
fn section_arguments(section: &str, options: &Table) -> Result<Vec<OsString>, Vec<String>> {
    let (mut arguments, mut problems) = (vec![], vec![]);
    for (key, value) in options {
        let option = match value {
            Value::String(text) => vec![format!("--{key}={text}")],
            Value::Integer(number) => vec![format!("--{key}={number}")],
            Value::Boolean(true) => vec![format!("--{key}")],
            Value::Boolean(false) => vec![],
            _ => {
                problems.push(format!("{section}.{key}: neither text, number nor true or false"));
                continue;
            }
        };
        let known = if option.is_empty() { vec![format!("--{key}")] } else { option.clone() };
        let line = ["stillframe".to_owned(), section.to_owned()].into_iter().chain(known);
        match Arguments::try_parse_from(line) {
            Err(error) => problems.push(format!("{section}.{key}: {}", told(&error))),
            Ok(_) if key == "config" => {
                problems.push(format!("{section}.{key}: a file can't name another one"));
            }
            Ok(_) => arguments.extend(option.into_iter().map(OsString::from)),
        }
    }
    if problems.is_empty() { Ok(arguments) } else { Err(problems) }
}

/// A mistake in one line, without what is about the command line.
fn told(error: &clap::Error) -> String {
    match error.kind() {
        ErrorKind::UnknownArgument => "there is no such option".to_owned(),
        _ => {
            let text = error.to_string();
            text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
        }
    }
}
