//! Random statements against a model of what they should do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use crate::Session;
use crate::fake::{Fake, run};

/// A row of either table; the first column is the key where there is one.
type Row = (i64, Option<i64>);

/// A statement in both languages.
#[derive(Clone, Debug)]
enum Op {
    Insert(Vec<Row>),
    /// `INSERT ... SELECT k + by, v`.
    InsertShifted {
        by: i64,
        filter: Filter,
    },
    Delete(Filter),
    SetValue {
        to: Option<i64>,
        filter: Filter,
    },
    AddToValue {
        by: i64,
        filter: Filter,
    },
    AddToKey {
        by: i64,
        filter: Filter,
    },
    SetKey {
        to: i64,
        filter: Filter,
    },
    Truncate,
}

#[derive(Clone, Copy, Debug)]
enum Filter {
    All,
    Key(i64),
    KeyAbove(i64),
    Value(i64),
    NoValue,
    Never,
}

impl Filter {
    fn sql(self) -> String {
        match self {
            Self::All => String::new(),
            Self::Key(key) => format!(" where k = {key}"),
            Self::KeyAbove(key) => format!(" where k > {key}"),
            Self::Value(value) => format!(" where v = {value}"),
            Self::NoValue => " where v is null".to_owned(),
            Self::Never => " where false".to_owned(),
        }
    }

    fn takes(self, (key, value): &Row) -> bool {
        match self {
            Self::All => true,
            Self::Key(wanted) => *key == wanted,
            Self::KeyAbove(wanted) => *key > wanted,
            Self::Value(wanted) => *value == Some(wanted),
            Self::NoValue => value.is_none(),
            Self::Never => false,
        }
    }
}

impl Op {
    fn sql(&self, table: &str) -> String {
        let value = |value: &Option<i64>| value.map_or("null".to_owned(), |v| v.to_string());
        match self {
            Self::Insert(rows) => {
                let rows: Vec<_> =
                    rows.iter().map(|(k, v)| format!("({k}, {})", value(v))).collect();
                format!("insert into {table} values {}", rows.join(", "))
            }
            Self::InsertShifted { by, filter } => {
                format!("insert into {table} select k + {by}, v from {table}{}", filter.sql())
            }
            Self::Delete(filter) => format!("delete from {table}{}", filter.sql()),
            Self::SetValue { to, filter } => {
                format!("update {table} set v = {}{}", value(to), filter.sql())
            }
            Self::AddToValue { by, filter } => {
                format!("update {table} set v = v + {by}{}", filter.sql())
            }
            Self::AddToKey { by, filter } => {
                format!("update {table} set k = k + {by}{}", filter.sql())
            }
            Self::SetKey { to, filter } => {
                format!("update {table} set k = {to}{}", filter.sql())
            }
            Self::Truncate => format!("truncate {table}"),
        }
    }
}

/// A table in the model: its rows, sorted.
#[derive(Clone, Debug, Default)]
struct Model {
    is_keyed: bool,
    rows: Vec<Row>,
}

impl Model {
    /// Applies a statement; its tag, or the SQLSTATE it fails with.
    fn apply(&mut self, op: &Op) -> String {
        let result = match op {
            Op::Insert(rows) => self.insert(rows.clone()),
            Op::InsertShifted { by, filter } => {
                let taken = self.rows.iter().filter(|row| filter.takes(row));
                self.insert(taken.map(|(k, v)| (k + by, *v)).collect())
            }
            Op::Delete(filter) => {
                let before = self.rows.len();
                self.rows.retain(|row| !filter.takes(row));
                Ok(format!("DELETE {}", before - self.rows.len()))
            }
            Op::SetValue { to, filter } => self.update(*filter, |(k, _)| (k, *to)),
            Op::AddToValue { by, filter } => self.update(*filter, |(k, v)| (k, v.map(|v| v + by))),
            Op::AddToKey { by, filter } => self.update(*filter, |(k, v)| (k + by, v)),
            Op::SetKey { to, filter } => self.update(*filter, |(_, v)| (*to, v)),
            Op::Truncate => {
                self.rows.clear();
                Ok("TRUNCATE TABLE".to_owned())
            }
        };
        self.rows.sort_unstable();
        result.unwrap_or_else(|state| state.to_owned())
    }

    fn insert(&mut self, rows: Vec<Row>) -> Result<String, &'static str> {
        let tag = format!("INSERT 0 {}", rows.len());
        let mut keys: BTreeSet<_> = self.rows.iter().map(|(k, _)| *k).collect();
        if self.is_keyed && !rows.iter().all(|(k, _)| keys.insert(*k)) {
            return Err("23505");
        }
        self.rows.extend(rows);
        Ok(tag)
    }

    /// Row by row, in the order of the keys.
    fn update(
        &mut self,
        filter: Filter,
        change: impl Fn(Row) -> Row,
    ) -> Result<String, &'static str> {
        let mut rows = self.rows.clone();
        let mut keys: BTreeMap<i64, usize> = BTreeMap::new();
        rows.iter().for_each(|(k, _)| *keys.entry(*k).or_default() += 1);
        let mut count = 0;
        for row in rows.iter_mut().filter(|row| filter.takes(row)) {
            count += 1;
            let new = change(*row);
            if self.is_keyed && new.0 != row.0 {
                keys.remove(&row.0);
                if keys.insert(new.0, 1).is_some() {
                    return Err("23505");
                }
            }
            *row = new;
        }
        self.rows = rows;
        Ok(format!("UPDATE {count}"))
    }

    fn texts(&self) -> Vec<String> {
        let value = |value: &Option<i64>| value.map_or("NULL".to_owned(), |v| v.to_string());
        let mut texts: Vec<_> =
            self.rows.iter().map(|(k, v)| format!("{k}|{}", value(v))).collect();
        texts.sort();
        texts
    }
}

fn filters() -> impl Strategy<Value = Filter> {
    prop_oneof![
        2 => Just(Filter::All),
        4 => (0..6_i64).prop_map(Filter::Key),
        2 => (0..6_i64).prop_map(Filter::KeyAbove),
        2 => (0..3_i64).prop_map(Filter::Value),
        1 => Just(Filter::NoValue),
        1 => Just(Filter::Never),
    ]
}

fn ops() -> impl Strategy<Value = Op> {
    let value = || prop::option::of(0..3_i64);
    prop_oneof![
        6 => prop::collection::vec((0..6_i64, value()), 1..4).prop_map(Op::Insert),
        2 => (-2..7_i64, filters()).prop_map(|(by, filter)| Op::InsertShifted { by, filter }),
        2 => filters().prop_map(Op::Delete),
        2 => (value(), filters()).prop_map(|(to, filter)| Op::SetValue { to, filter }),
        2 => (-1..2_i64, filters()).prop_map(|(by, filter)| Op::AddToValue { by, filter }),
        3 => (-2..3_i64, filters()).prop_map(|(by, filter)| Op::AddToKey { by, filter }),
        1 => (0..6_i64, filters()).prop_map(|(to, filter)| Op::SetKey { to, filter }),
        1 => Just(Op::Truncate),
    ]
}

async fn check(ops: &[(bool, Op)]) -> Result<(), TestCaseError> {
    let (fake, database) = Fake::start(2, 2);
    let mut session = Session::new(database, "alice");
    run(
        &mut session,
        "create table keyed (k int primary key, v int); create table bag (k int, v int)",
    )
    .await
    .unwrap();
    let mut keyed = Model { is_keyed: true, rows: vec![] };
    let mut bag = Model::default();
    for (is_keyed, op) in ops {
        let (table, model) = if *is_keyed { ("keyed", &mut keyed) } else { ("bag", &mut bag) };
        let sql = op.sql(table);
        let answer = match run(&mut session, &sql).await {
            Ok(answer) => answer.concat(),
            Err(error) => error.state.code().to_owned(),
        };
        prop_assert_eq!(answer, model.apply(op), "{}", sql);
        let mut rows = run(&mut session, &format!("select * from {table}")).await.unwrap();
        rows.sort();
        prop_assert_eq!(rows, model.texts(), "after {}", sql);
    }
    drop(session);
    drop(fake);
    Ok(())
}

/// Some statements, and whether they are committed.
type Block = (Vec<(bool, Op)>, bool);

/// Every statement of a block under a savepoint. The block sees its own changes at once, in every
/// way to read them; others see nothing before the commit.
async fn check_blocks(blocks: &[Block]) -> Result<(), TestCaseError> {
    let (fake, database) = Fake::start(2, 2);
    let mut session = Session::new(Arc::clone(&database), "alice");
    let mut other = Session::new(database, "bob");
    run(
        &mut session,
        "create table keyed (k int primary key, v int); create table bag (k int, v int)",
    )
    .await
    .unwrap();
    let mut models = [Model::default(), Model { is_keyed: true, rows: vec![] }];
    let tables = ["bag", "keyed"];
    for (ops, is_committed) in blocks {
        let before = models.clone();
        run(&mut session, "begin").await.unwrap();
        for (is_keyed, op) in ops {
            let (table, model) =
                (tables[usize::from(*is_keyed)], &mut models[usize::from(*is_keyed)]);
            let sql = op.sql(table);
            run(&mut session, "savepoint s").await.unwrap();
            let answer = match run(&mut session, &sql).await {
                Ok(answer) => answer.concat(),
                Err(error) => {
                    run(&mut session, "rollback to s").await.unwrap();
                    error.state.code().to_owned()
                }
            };
            prop_assert_eq!(answer, model.apply(op), "{}", sql);
            check_reads(&mut session, table, model, &sql).await?;
        }
        for (table, model) in tables.iter().zip(&before) {
            let mut rows = run(&mut other, &format!("select * from {table}")).await.unwrap();
            rows.sort();
            prop_assert_eq!(rows, model.texts(), "what others see of {}", table);
        }
        let end = if *is_committed { "commit" } else { "rollback" };
        prop_assert_eq!(run(&mut session, end).await.unwrap().concat(), end.to_uppercase());
        if !is_committed {
            models = before;
        }
        for (table, model) in tables.iter().zip(&models) {
            check_reads(&mut other, table, model, end).await?;
        }
    }
    drop(session);
    drop(fake);
    Ok(())
}

async fn check_reads(
    session: &mut Session,
    table: &str,
    model: &Model,
    after: &str,
) -> Result<(), TestCaseError> {
    let mut rows = run(session, &format!("select * from {table}")).await.unwrap();
    rows.sort();
    prop_assert_eq!(&rows, &model.texts(), "after {}", after);
    let count = run(session, &format!("select count(*) from {table}")).await.unwrap();
    prop_assert_eq!(count.concat(), model.rows.len().to_string(), "after {}", after);
    let limited = run(session, &format!("select v from {table} limit 3")).await.unwrap();
    prop_assert_eq!(limited.len(), model.rows.len().min(3), "after {}", after);
    for filter in [Filter::Key(2), Filter::KeyAbove(2), Filter::Value(1)] {
        let sql = format!("select k from {table}{}", filter.sql());
        let mut found = run(session, &sql).await.unwrap();
        found.sort();
        let expected = model.rows.iter().filter(|row| filter.takes(row));
        let mut expected: Vec<_> = expected.map(|(k, _)| k.to_string()).collect();
        expected.sort();
        prop_assert_eq!(found, expected, "{} after {}", sql, after);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn statements_do_what_the_model_does(
        ops in prop::collection::vec((any::<bool>(), ops()), 1..16),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(check(&ops))?;
    }

    #[test]
    fn blocks_do_what_the_model_does(
        blocks in prop::collection::vec(
            (prop::collection::vec((any::<bool>(), ops()), 1..6), prop::bool::weighted(0.7)),
            1..5,
        ),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(check_blocks(&blocks))?;
    }
}
