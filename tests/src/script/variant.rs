//! The variants of a script. They change how the answers come about, never the answers.

use std::fmt;
use std::str::FromStr;

use sqllogictest::{Connection, Record, StatementExpect};

use super::ScriptRecord;

/// A way to run a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    /// As written: views are mostly there before the data, and are kept up to date.
    AsWritten,
    /// The materialized views of the head of the script, which is everything before its first
    /// query, are created after the data of the head: they are filled from what exists.
    ViewsLast,
    /// Plain views instead of materialized ones: every read computes the query anew.
    AdHoc,
    /// Changes that follow each other are one transaction.
    OneTransaction,
}

impl Variant {
    /// All.
    pub const ALL: [Self; 4] =
        [Self::AsWritten, Self::ViewsLast, Self::AdHoc, Self::OneTransaction];

    /// Its name in trials, and its label in scripts.
    pub fn label(self) -> &'static str {
        match self {
            Self::AsWritten => "written",
            Self::ViewsLast => "viewslast",
            Self::AdHoc => "adhoc",
            Self::OneTransaction => "onetransaction",
        }
    }

    pub(super) fn apply(self, records: &[ScriptRecord]) -> Option<Vec<ScriptRecord>> {
        match self {
            Self::AsWritten => Some(records.to_vec()),
            Self::ViewsLast => views_last(records),
            Self::AdHoc => Some(plain_views(records)).filter(|plain| *plain != records),
            Self::OneTransaction => Some(in_blocks(records)).filter(|blocks| *blocks != records),
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

impl FromStr for Variant {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|variant| variant.label() == word);
        found.ok_or_else(|| format!("{word:?} is not a variant"))
    }
}

/// The rest of a text after these words in any case, if it starts with them.
pub(super) fn after_words<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    let mut rest = text.trim_start();
    for word in words.split(' ') {
        let start = rest.get(..word.len()).filter(|start| start.eq_ignore_ascii_case(word))?;
        rest = &rest[start.len()..];
        if rest.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
            return None;
        }
        rest = rest.trim_start();
    }
    Some(rest)
}

/// The statement with `view` for `materialized view`, if it starts with that.
pub(super) fn plain(sql: &str) -> Option<String> {
    ["create", "drop"].into_iter().find_map(|verb| {
        let rest = after_words(sql, &format!("{verb} materialized view"))?;
        Some(format!("{verb} view {rest}"))
    })
}

fn plain_views(records: &[ScriptRecord]) -> Vec<ScriptRecord> {
    let mut records = records.to_vec();
    records.retain(|record| match record {
        Record::Statement { sql, .. } => after_words(sql, "refresh").is_none(),
        _ => true,
    });
    for record in &mut records {
        if let Record::Statement { sql, .. } = record
            && let Some(plain) = plain(sql)
        {
            *sql = plain;
        }
    }
    records
}

/// What a record of the head of a script does.
#[derive(PartialEq, Eq)]
enum Part {
    View,
    Change,
    OtherCreate,
    /// A comment or an empty line.
    Silent,
}

impl Part {
    /// `None` for whatever ends the head.
    fn of(record: &ScriptRecord) -> Option<Self> {
        let sql = match record {
            Record::Comment(_) | Record::Newline => return Some(Self::Silent),
            Record::Statement {
                sql,
                conditions,
                connection: Connection::Default,
                expected: StatementExpect::Ok | StatementExpect::Count(_),
                ..
            } if conditions.is_empty() => sql,
            _ => return None,
        };
        let starts = |words: &str| after_words(sql, words).is_some();
        if starts("create materialized view") {
            Some(Self::View)
        } else if starts("insert") || starts("update") || starts("delete") {
            Some(Self::Change)
        } else if starts("create table") {
            Some(Self::OtherCreate)
        } else {
            None
        }
    }
}

fn views_last(records: &[ScriptRecord]) -> Option<Vec<ScriptRecord>> {
    let parts: Vec<Part> = records.iter().map_while(Part::of).collect();
    let first_view = parts.iter().position(|part| *part == Part::View)?;
    let last_change = parts.iter().rposition(|part| *part == Part::Change)?;
    if last_change < first_view {
        return None;
    }
    let (head, tail) = records.split_at(parts.len());
    let (views, others): (Vec<_>, Vec<_>) =
        head.iter().zip(parts).partition(|(_, part)| *part == Part::View);
    let moved = others.into_iter().chain(views).map(|(record, _)| record);
    Some(moved.chain(tail).cloned().collect())
}

/// Puts changes that follow each other, and succeed, into a block.
fn in_blocks(records: &[ScriptRecord]) -> Vec<ScriptRecord> {
    let statement = |sql: &str| {
        let text = format!("statement ok\n{sql}\n");
        sqllogictest::parse::<super::Column>(&text).expect("a script of one statement")
    };
    let mut put = vec![];
    let mut run: Vec<ScriptRecord> = vec![];
    let mut is_in_block = false;
    let flush = |run: &mut Vec<ScriptRecord>, put: &mut Vec<ScriptRecord>| {
        let changes = run.iter().filter(|record| Part::of(record) == Some(Part::Change)).count();
        if changes > 1 {
            put.extend(statement("begin"));
            put.append(run);
            put.extend(statement("commit"));
        } else {
            put.append(run);
        }
    };
    for record in records {
        let part = Part::of(record);
        if !is_in_block && matches!(part, Some(Part::Change | Part::Silent)) {
            run.push(record.clone());
            continue;
        }
        flush(&mut run, &mut put);
        if let Record::Statement { sql, .. } = record {
            let starts = |words: &[&str]| words.iter().any(|word| after_words(sql, word).is_some());
            if starts(&["begin", "start transaction"]) {
                is_in_block = true;
            } else if starts(&["commit", "end", "rollback", "abort"]) {
                is_in_block = after_words(sql, "rollback to").is_some();
            }
        }
        put.push(record.clone());
    }
    flush(&mut run, &mut put);
    put
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "\
statement ok
create table t(a int)

statement ok
CREATE Materialized View v as select a from t

statement count 1
insert into t values (1)

statement ok
create materialized view w as select a from v

query I
select * from v
----
1

statement ok
drop materialized view v
";

    fn sql(records: &[ScriptRecord]) -> Vec<&str> {
        let statements = records.iter().filter_map(|record| match record {
            Record::Statement { sql, .. } | Record::Query { sql, .. } => Some(sql.as_str()),
            _ => None,
        });
        statements.collect()
    }

    fn script() -> Vec<ScriptRecord> {
        sqllogictest::parse(SCRIPT).expect("a script")
    }

    #[test]
    fn changes_become_one_transaction() {
        let script = "\
statement ok
insert into t values (1)

statement count 1
delete from t

query I
select * from t
----

statement ok
begin

statement ok
insert into t values (1)

statement ok
insert into t values (2)

statement ok
commit

statement ok
insert into t values (3)
";
        let records = sqllogictest::parse(script).expect("a script");
        let blocks = Variant::OneTransaction.apply(&records).expect("something to put in a block");
        assert_eq!(
            sql(&blocks),
            [
                "begin",
                "insert into t values (1)",
                "delete from t",
                "commit",
                "select * from t",
                "begin",
                "insert into t values (1)",
                "insert into t values (2)",
                "commit",
                "insert into t values (3)",
            ]
        );
        assert!(Variant::OneTransaction.apply(&blocks).is_none(), "nothing is left to put in one");
    }

    #[test]
    fn views_come_after_the_data() {
        let moved = Variant::ViewsLast.apply(&script()).expect("something to move");
        assert_eq!(
            sql(&moved),
            [
                "create table t(a int)",
                "insert into t values (1)",
                "CREATE Materialized View v as select a from t",
                "create materialized view w as select a from v",
                "select * from v",
                "drop materialized view v",
            ]
        );
        assert!(Variant::ViewsLast.apply(&moved).is_none(), "nothing is left to move");
    }

    #[test]
    fn plain_views_take_their_place() {
        let plain = Variant::AdHoc.apply(&script()).expect("views to change");
        assert_eq!(sql(&plain)[1], "create view v as select a from t");
        assert_eq!(sql(&plain)[5], "drop view v");
        assert!(Variant::AdHoc.apply(&plain).is_none(), "nothing is left to change");
    }
}
