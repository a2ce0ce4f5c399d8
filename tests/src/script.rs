//! SQL scripts in sqllogictest format, in the variants that must all give the same answers.
//!
//! `statement error (22012)` compares the SQLSTATE. The label of a server is `stillframe` or
//! `postgresql`, and every variant is a label too, for `onlyif` and `skipif`. A comment
//! `# only: VARIANT ...` at the start of a line restricts a script to some variants.

mod again;
mod column;
mod session;
mod variant;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sqllogictest::{Record, Runner, StatementExpect};

pub use column::Column;
pub use session::{Product, Session};
pub use variant::Variant;

/// A record of a script.
pub type ScriptRecord = Record<Column>;

/// A script.
#[derive(Clone, Debug)]
pub struct Script {
    /// Its path below the folder of scripts, without the ending.
    pub name: String,
    path: PathBuf,
    records: Vec<ScriptRecord>,
    only: Option<Vec<Variant>>,
}

/// Something a script creates.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Created {
    /// `table`, `view` or `materialized view`.
    pub kind: &'static str,
    /// Its name, as the script writes it.
    pub name: String,
}

impl Script {
    /// All scripts of a folder and those below it.
    pub fn load_all(folder: &Path) -> Vec<Self> {
        let mut found = Vec::new();
        find(folder, &mut found);
        found.sort();
        found.iter().map(|path| Self::load(folder, path)).collect()
    }

    /// One script of a folder.
    pub fn load(folder: &Path, path: &Path) -> Self {
        let text = std::fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let shown = path.strip_prefix(folder).unwrap_or(path).with_extension("");
        let name = shown.to_string_lossy().into_owned();
        let records = sqllogictest::parse_with_name(&text, path.to_string_lossy())
            .unwrap_or_else(|error| panic!("{error}"));
        let only = text.lines().find_map(|line| line.strip_prefix("# only:")).map(|variants| {
            let words = variants.split_whitespace();
            words.map(|word| word.parse().unwrap_or_else(|e| panic!("{name}: {e}"))).collect()
        });
        Self { name, path: path.to_owned(), records, only }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its records, as written.
    pub fn records(&self) -> &[ScriptRecord] {
        &self.records
    }

    /// Its records in a variant; `None` if it can't run in it or would be the same as written.
    pub fn variant(&self, variant: Variant) -> Option<Vec<ScriptRecord>> {
        if self.only.as_ref().is_some_and(|only| !only.contains(&variant)) {
            return None;
        }
        variant.apply(&self.records)
    }

    /// What it creates and expects to succeed, in order.
    pub fn created(&self) -> Vec<Created> {
        let mut seen = BTreeSet::new();
        let statements = self.records.iter().filter_map(|record| match record {
            Record::Statement { sql, expected: StatementExpect::Ok, .. } => created(sql),
            _ => None,
        });
        statements.filter(|created| seen.insert(created.clone())).collect()
    }

    /// Runs records of this script in a session of its own, and drops what they have created, so
    /// that a failure stays alone.
    pub async fn run<C>(
        &self,
        product: Product,
        variant: Variant,
        connect: impl Fn() -> C,
    ) -> Result<(), String>
    where
        C: Future<Output = Result<Session, crate::Failure>>,
    {
        let records = self.variant(variant).expect("a script is only run in its own variants");
        let mut runner = Runner::new(&connect);
        runner.with_validator(same_rows);
        runner.with_column_validator(|actual, expected| actual.len() == expected.len());
        runner.add_label(variant.label());
        for record in records {
            if matches!(record, Record::Halt { .. }) {
                break;
            }
            if let Err(error) = runner.run_async(record).await {
                runner.shutdown_async().await;
                self.clean_up(&connect, product).await;
                return Err(error.display(false).to_string());
            }
        }
        runner.shutdown_async().await;
        self.clean_up(&connect, product).await;
        Ok(())
    }

    async fn clean_up<C>(&self, connect: impl Fn() -> C, product: Product)
    where
        C: Future<Output = Result<Session, crate::Failure>>,
    {
        // Whatever is wrong with the server has been reported; this one only tries.
        let Ok(session) = connect().await else { return };
        for created in self.created().iter().rev() {
            for kind in product.kinds(created.kind) {
                let _ =
                    session.query(&format!("DROP {kind} IF EXISTS {} CASCADE", created.name)).await;
            }
        }
    }
}

/// Expected and actual lines are equal but for the amount of white space. A value with line ends
/// in it takes several expected lines.
fn same_rows(
    normalizer: sqllogictest::Normalizer,
    actual: &[Vec<String>],
    expected: &[String],
) -> bool {
    if sqllogictest::default_validator(normalizer, actual, expected) {
        return true;
    }
    let squeeze = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let several_lines = actual.iter().flatten().any(|value| value.contains('\n'));
    let actual: Vec<_> = actual.iter().map(|row| squeeze(row.join(" "))).collect();
    let expected: Vec<_> = expected.iter().map(|line| squeeze(line.clone())).collect();
    actual == expected || several_lines && actual.join(" ") == expected.join(" ")
}

fn find(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries =
        std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            find(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "slt") {
            found.push(path);
        }
    }
}

/// What a CREATE statement creates: a table, a view or a materialized view.
fn created(sql: &str) -> Option<Created> {
    let (kind, rest) = ["table", "view", "materialized view"]
        .into_iter()
        .find_map(|kind| Some((kind, variant::after_words(sql, &format!("create {kind}"))?)))?;
    let rest = variant::after_words(rest, "if not exists").unwrap_or(rest).trim_start();
    let end = if let Some(quoted) = rest.strip_prefix('"') {
        quoted.find('"')? + 2
    } else {
        rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '.')?
    };
    Some(Created { kind, name: rest[..end].to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_statement_creates() {
        let created = |sql| created(sql).map(|c| (c.kind, c.name));
        assert_eq!(created("create table a_t(a int)"), Some(("table", "a_t".to_owned())));
        assert_eq!(
            created("CREATE\n MATERIALIZED  VIEW \"My View\"(x) AS SELECT 1"),
            Some(("materialized view", "\"My View\"".to_owned()))
        );
        assert_eq!(created("create view if not exists v as"), Some(("view", "v".to_owned())));
        assert_eq!(created("create index i on t(a)"), None);
        assert_eq!(created("insert into t select 1"), None);
    }

    #[test]
    fn rows_are_compared_by_their_words() {
        let rows = |rows: &[&[&str]]| -> Vec<Vec<String>> {
            rows.iter().map(|row| row.iter().map(|v| (*v).to_owned()).collect()).collect()
        };
        let lines =
            |lines: &[&str]| -> Vec<String> { lines.iter().map(|l| (*l).to_owned()).collect() };
        let same = |actual: &[&[&str]], expected: &[&str]| {
            same_rows(sqllogictest::default_normalizer, &rows(actual), &lines(expected))
        };
        assert!(same(&[&["1", "a  b"]], &["1 a b"]));
        assert!(same(&[&["1", "a\nb"], &["2", "c"]], &["1 a", "b", "2 c"]));
        assert!(!same(&[&["1"], &["2"]], &["1 2"]));
        assert!(!same(&[&["1"], &["2"]], &["2", "1"]));
        assert!(!same(&[&["1.0"]], &["1.00"]));
    }
}
