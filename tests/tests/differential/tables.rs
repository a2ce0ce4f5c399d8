//! Random tables and random changes of them. Values come from few, so that they meet.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Integer,
    Text,
}

pub struct Table {
    pub name: String,
    pub columns: Vec<(String, Kind)>,
    has_key: bool,
}

pub struct Tables {
    pub all: Vec<Table>,
    next_key: i32,
}

impl Tables {
    /// Three tables, with or without a primary key.
    pub fn new(random: &mut StdRng) -> Self {
        let mut all = vec![];
        for number in 0..3 {
            let mut columns = vec![("id".to_owned(), Kind::Integer)];
            for place in 0..random.random_range(2..5) {
                let kind = if random.random_bool(0.75) { Kind::Integer } else { Kind::Text };
                columns.push((format!("c{place}"), kind));
            }
            let has_key = random.random_bool(0.6);
            all.push(Table { name: format!("t{number}"), columns, has_key });
        }
        Self { all, next_key: 1 }
    }

    pub fn definitions(&self) -> Vec<String> {
        let definition = |table: &Table| {
            let columns = table.columns.iter().map(|(name, kind)| match kind {
                Kind::Integer if name == "id" && table.has_key => {
                    "id integer primary key".to_owned()
                }
                Kind::Integer => format!("{name} integer"),
                Kind::Text => format!("{name} text"),
            });
            let columns = columns.collect::<Vec<_>>().join(", ");
            format!("create table {} ({columns})", table.name)
        };
        self.all.iter().map(definition).collect()
    }

    /// Some statements that change them.
    pub fn changes(&mut self, random: &mut StdRng) -> Vec<String> {
        (0..random.random_range(1..5)).map(|_| self.change(random)).collect()
    }

    fn change(&mut self, random: &mut StdRng) -> String {
        let table = self.all.choose(random).expect("there are tables");
        let name = &table.name;
        let (column, kind) = table.columns[1..].choose(random).expect("there are columns");
        match random.random_range(0..10) {
            0 => format!("delete from {name} where {column} = {}", value(*kind, random)),
            1 => format!("delete from {name} where {column} is null"),
            2 if random.random_bool(0.2) => format!("delete from {name}"),
            2..4 => {
                let (other, _) = table.columns[1..].choose(random).expect("there are columns");
                let (a, b) = (value(*kind, random), random.random_range(0..4));
                format!("update {name} set {column} = {a} where {other} is null or id % 4 = {b}")
            }
            _ => {
                let rows = (0..random.random_range(1..5)).map(|_| {
                    let values = table.columns.iter().map(|(column, kind)| {
                        if column == "id" {
                            self.next_key += 1;
                            return self.next_key.to_string();
                        }
                        value(*kind, random)
                    });
                    format!("({})", values.collect::<Vec<_>>().join(", "))
                });
                let rows: Vec<_> = rows.collect();
                let mut rows = rows;
                if !table.has_key && random.random_bool(0.5) {
                    rows.push(rows[0].clone());
                }
                format!("insert into {name} values {}", rows.join(", "))
            }
        }
    }
}

/// A literal, or NULL.
pub fn value(kind: Kind, random: &mut StdRng) -> String {
    if random.random_bool(0.2) {
        return match kind {
            Kind::Integer => "null".to_owned(),
            Kind::Text => "null".to_owned(),
        };
    }
    match kind {
        Kind::Integer => random.random_range(0..5).to_string(),
        Kind::Text => format!("'{}'", ["a", "b", "c"].choose(random).expect("there are some")),
    }
}
