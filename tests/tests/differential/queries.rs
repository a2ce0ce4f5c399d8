//! Random queries: joins of every kind, subqueries everywhere, set operations, groups, recursion.
//!
//! They never fail and never depend on an order: no division, no LIMIT, no subquery of many rows
//! where one is wanted, no recursion without an end.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use crate::tables::{Kind, Tables, value};

/// A column that can be named, and what it holds.
#[derive(Clone)]
struct Column {
    name: String,
    kind: Kind,
}

pub struct Queries<'a> {
    random: &'a mut StdRng,
    tables: &'a Tables,
    /// For the names of relations.
    next: usize,
}

impl<'a> Queries<'a> {
    pub fn new(random: &'a mut StdRng, tables: &'a Tables) -> Self {
        Self { random, tables, next: 0 }
    }

    /// A query of two or three columns.
    pub fn query(&mut self) -> String {
        let width = self.below(2) + 2;
        let kinds: Vec<_> = (0..width).map(|_| self.kind()).collect();
        self.select(&kinds, &[], 2)
    }

    /// A query of two or three columns over the walks in a random graph, whose edges are the tables'
    /// rows.
    pub fn recursive(&mut self) -> String {
        let width = self.below(2) + 2;
        let kinds: Vec<_> = (0..width).map(|_| self.kind()).collect();
        let kinds = &kinds;
        let base = self.edge();
        let edge = self.edge();
        let is_distinct = self.chance(0.6);
        let mut conditions = vec!["e.x0 = r.x1".to_owned()];
        let own = |names: &[&str]| -> Vec<Column> {
            let column = |name: &&str| Column { name: (*name).to_owned(), kind: Kind::Integer };
            names.iter().map(column).collect()
        };
        if self.chance(0.4) {
            conditions.push(self.simple(&own(&["r.x0", "r.x1", "e.x1"])));
        }
        if self.chance(0.25) {
            let not = if self.chance(0.5) { "not " } else { "" };
            let met = self.edge();
            let ends = if self.chance(0.5) { "m.x0 = e.x1" } else { "m.x0 = r.x0 and m.x1 = e.x1" };
            conditions.push(format!("{not}exists (select 1 from ({met}) m where {ends})"));
        }
        // With UNION ALL, walks must be bounded.
        let is_counted = !is_distinct || self.chance(0.3);
        let (first, next) = match is_counted {
            true => {
                conditions.push(format!("r.n < {}", self.below(3) + 1));
                ("0", "r.n + 1")
            }
            false => ("0", "r.n"),
        };
        let operator = if is_distinct { "union" } else { "union all" };
        let start = if self.chance(0.3) { "e.x1, e.x1" } else { "e.x0, e.x1" };
        let join = if self.chance(0.2) { "left join" } else { "join" };
        let step = match join {
            "left join" => format!(
                "select r.x0, e.x1, {next} from r left join ({edge}) e on {} where r.x1 is not null and r.n < 4",
                conditions.join(" and ")
            ),
            _ => format!(
                "select r.x0, e.x1, {next} from r join ({edge}) e on {}",
                conditions.join(" and ")
            ),
        };
        let with = format!(
            "with recursive r (x0, x1, n) as (select {start}, {first} from ({base}) e {operator} {step})"
        );
        let columns = own(&["r.x0", "r.x1", "r.n"]);
        let mut filter = String::new();
        if self.chance(0.3) {
            filter = format!(" where {}", self.simple(&columns));
        }
        if self.chance(0.5) {
            return format!("{with} {}", self.grouped(kinds, "r", &filter, &columns));
        }
        let items: Vec<_> = kinds
            .iter()
            .enumerate()
            .map(|(place, kind)| format!("{} as x{place}", self.of_kind(*kind, &columns)))
            .collect();
        format!("{with} select {} from r{filter}", items.join(", "))
    }

    /// A query of two integers, `x0` and `x1`, of one table.
    fn edge(&mut self) -> String {
        let table = self.tables.all.choose(self.random).expect("there are tables");
        let columns = table.columns.iter().skip(1);
        let integers = columns.filter(|(_, kind)| *kind == Kind::Integer).map(|(name, _)| name);
        let integers: Vec<_> = integers.cloned().collect();
        let end = |random: &mut StdRng| match integers.choose(random) {
            Some(column) => column.clone(),
            None => "id % 5".to_owned(),
        };
        let (from, to) = (end(self.random), end(self.random));
        let to = if from == to { format!("({to} + id) % 5") } else { to };
        format!("select {from} as x0, {to} as x1 from {}", table.name)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.random.random_range(0..limit)
    }

    fn chance(&mut self, of: f64) -> bool {
        self.random.random_bool(of)
    }

    fn kind(&mut self) -> Kind {
        if self.chance(0.8) { Kind::Integer } else { Kind::Text }
    }

    /// A query whose columns `x0`, `x1`.. are of these kinds. `outer` are columns from around.
    fn select(&mut self, kinds: &[Kind], outer: &[Column], depth: usize) -> String {
        if depth > 0 && self.chance(0.15) {
            let operators =
                ["union", "union all", "intersect", "intersect all", "except", "except all"];
            let operator = *operators.choose(self.random).expect("there are some");
            let left = self.plain_select(kinds, outer, depth - 1);
            let right = self.plain_select(kinds, outer, depth - 1);
            return format!("({left}) {operator} ({right})");
        }
        self.plain_select(kinds, outer, depth)
    }

    fn plain_select(&mut self, kinds: &[Kind], outer: &[Column], depth: usize) -> String {
        let (from, columns) = self.from(outer, depth);
        let scope: Vec<Column> = columns.iter().chain(outer).cloned().collect();
        let mut filter = String::new();
        if self.chance(0.7) {
            filter = format!(" where {}", self.condition(&columns, &scope, depth));
        }
        if self.chance(0.2) {
            return self.grouped(kinds, &from, &filter, &columns);
        }
        let distinct = if self.chance(0.15) { "distinct " } else { "" };
        let items: Vec<_> = kinds
            .iter()
            .enumerate()
            .map(|(place, kind)| {
                let value = self.value(*kind, &columns, &scope, depth);
                format!("{value} as x{place}")
            })
            .collect();
        format!("select {distinct}{} from {from}{filter}", items.join(", "))
    }

    fn grouped(&mut self, kinds: &[Kind], from: &str, filter: &str, columns: &[Column]) -> String {
        let mut groups = vec![];
        let mut items = vec![];
        for (place, kind) in kinds.iter().enumerate() {
            let own: Vec<_> = columns.iter().filter(|column| column.kind == *kind).collect();
            let column = own.choose(self.random).map(|column| column.name.clone());
            let item = match (kind, column) {
                (Kind::Integer, None) => "count(*)::int".to_owned(),
                (Kind::Text, None) => "min('z')".to_owned(),
                (_, Some(column)) if self.chance(0.5) => {
                    groups.push(column.clone());
                    column
                }
                (Kind::Integer, Some(column)) => {
                    let calls =
                        ["count(*)", "count(#)", "sum(#)", "min(#)", "max(#)", "count(distinct #)"];
                    let call = calls.choose(self.random).expect("there are some");
                    format!("{}::int", call.replace('#', &column))
                }
                (Kind::Text, Some(column)) => format!("max({column})"),
            };
            items.push(format!("{item} as x{place}"));
        }
        let group = match groups.is_empty() {
            true => String::new(),
            false => format!(" group by {}", groups.join(", ")),
        };
        let having = if self.chance(0.3) { " having count(*) > 1" } else { "" };
        format!("select {} from {from}{filter}{group}{having}", items.join(", "))
    }

    /// What stands in FROM, and its columns.
    fn from(&mut self, outer: &[Column], depth: usize) -> (String, Vec<Column>) {
        let (mut text, mut columns) = self.relation(outer, depth, &[]);
        for _ in 0..[0, 0, 1, 1, 2].choose(self.random).copied().unwrap_or(0) {
            if self.chance(0.12) {
                let beside: Vec<Column> = columns.iter().chain(outer).cloned().collect();
                let keeps = self.chance(0.5);
                let (right, more) = self.relation(outer, depth, &beside);
                let join = if keeps { "left join" } else { "join" };
                text = format!("{text} {join} {right} on true");
                columns.extend(more);
                continue;
            }
            let (right, more) = self.relation(outer, depth, &[]);
            let kind =
                ["join", "join", "left join", "left join", "right join", "full join", "cross join"]
                    .choose(self.random)
                    .copied()
                    .unwrap_or("join");
            text = match kind {
                "cross join" => format!("{text} cross join {right}"),
                _ => {
                    let on = self.on(kind, &columns, &more, depth);
                    format!("{text} {kind} {right} on {on}")
                }
            };
            columns.extend(more);
        }
        (text, columns)
    }

    /// A table, or a subquery; one that reads its neighbours, if there are any.
    fn relation(
        &mut self,
        outer: &[Column],
        depth: usize,
        beside: &[Column],
    ) -> (String, Vec<Column>) {
        self.next += 1;
        let name = format!("r{}", self.next);
        if !beside.is_empty() || depth > 0 && self.chance(0.2) {
            let kinds = [Kind::Integer, self.kind()];
            let (lateral, around) = match beside.is_empty() {
                true => ("", outer),
                false => ("lateral ", beside),
            };
            let query = self.select(&kinds, around, depth.saturating_sub(1));
            let columns = kinds.iter().enumerate();
            let columns = columns
                .map(|(place, kind)| Column { name: format!("{name}.x{place}"), kind: *kind })
                .collect();
            return (format!("{lateral}({query}) {name}"), columns);
        }
        let table = self.tables.all.choose(self.random).expect("there are tables");
        let columns = table
            .columns
            .iter()
            .map(|(column, kind)| Column { name: format!("{name}.{column}"), kind: *kind })
            .collect();
        (format!("{} {name}", table.name), columns)
    }

    fn of_kind(&mut self, kind: Kind, columns: &[Column]) -> String {
        let own: Vec<_> = columns.iter().filter(|column| column.kind == kind).collect();
        match own.choose(self.random) {
            Some(column) => column.name.clone(),
            None => self.literal(kind),
        }
    }

    fn literal(&mut self, kind: Kind) -> String {
        match (value(kind, self.random).as_str(), kind) {
            ("null", Kind::Integer) => "null::int".to_owned(),
            ("null", Kind::Text) => "null::text".to_owned(),
            (value, _) => value.to_owned(),
        }
    }

    /// The condition of a join.
    fn on(&mut self, kind: &str, left: &[Column], right: &[Column], depth: usize) -> String {
        let equal = {
            let kind = self.kind();
            format!("{} = {}", self.of_kind(kind, left), self.of_kind(kind, right))
        };
        if kind == "full join" {
            // PostgreSQL wants a full join to have an equality.
            let has_columns = equal.split(" = ").all(|side| side.contains('.'));
            let equal = match has_columns {
                true => equal,
                false => {
                    let left = self.of_kind(Kind::Integer, left);
                    format!("{left} = {}", self.of_kind(Kind::Integer, right))
                }
            };
            return match self.chance(0.3) {
                true => {
                    let x = self.of_kind(Kind::Integer, left);
                    format!("{equal} and {x} < {}", self.of_kind(Kind::Integer, right))
                }
                false => equal,
            };
        }
        match self.below(8) {
            0..4 => equal,
            4 => format!(
                "{} < {}",
                self.of_kind(Kind::Integer, left),
                self.of_kind(Kind::Integer, right)
            ),
            5 => {
                let side = if self.chance(0.5) { left } else { right };
                format!("{equal} and {}", self.condition(side, side, depth.saturating_sub(1)))
            }
            6 => {
                let both: Vec<Column> = left.iter().chain(right).cloned().collect();
                format!("{equal} and {}", self.simple(&both))
            }
            _ => format!(
                "{} is not distinct from {}",
                self.of_kind(Kind::Integer, left),
                self.of_kind(Kind::Integer, right)
            ),
        }
    }

    fn simple(&mut self, scope: &[Column]) -> String {
        let kind = self.kind();
        let column = self.of_kind(kind, scope);
        match self.below(6) {
            0 => format!("{column} is null"),
            1 => format!("{column} is not null"),
            2 => format!("{column} <> {}", self.of_kind(kind, scope)),
            3 => format!("{column} < {}", self.of_kind(kind, scope)),
            4 => format!("{column} = {}", self.literal(kind)),
            _ => format!("{column} in ({}, {})", self.literal(kind), self.of_kind(kind, scope)),
        }
    }

    /// A condition. Subqueries may read all of `scope`.
    fn condition(&mut self, columns: &[Column], scope: &[Column], depth: usize) -> String {
        if depth == 0 {
            return self.simple(scope);
        }
        match self.below(12) {
            0..3 => self.simple(scope),
            3 => {
                let left = self.condition(columns, scope, depth - 1);
                format!("({left} and {})", self.condition(columns, scope, depth - 1))
            }
            4 => {
                let left = self.condition(columns, scope, depth - 1);
                format!("({left} or {})", self.condition(columns, scope, depth - 1))
            }
            5 => format!("not ({})", self.condition(columns, scope, depth - 1)),
            6 | 7 => {
                let not = if self.chance(0.5) { "not " } else { "" };
                let query = self.subquery(&[Kind::Integer], scope, depth);
                format!("{not}exists ({query})")
            }
            8 | 9 => {
                let not = if self.chance(0.5) { "not " } else { "" };
                let kind = self.kind();
                let operand = self.of_kind(kind, columns);
                format!("{operand} {not}in ({})", self.subquery(&[kind], scope, depth))
            }
            10 => {
                let operators = ["=", "<>", "<", "<=", ">", ">="];
                let operator = *operators.choose(self.random).expect("there are some");
                let quantifier = if self.chance(0.5) { "any" } else { "all" };
                let operand = self.of_kind(Kind::Integer, columns);
                let query = self.subquery(&[Kind::Integer], scope, depth);
                format!("{operand} {operator} {quantifier} ({query})")
            }
            _ => {
                let operand = self.of_kind(Kind::Integer, columns);
                format!("{operand} >= ({})", self.scalar(scope, depth))
            }
        }
    }

    fn subquery(&mut self, kinds: &[Kind], scope: &[Column], depth: usize) -> String {
        let outer: &[Column] = if self.chance(0.7) { scope } else { &[] };
        self.select(kinds, outer, depth - 1)
    }

    /// A subquery of one row.
    fn scalar(&mut self, scope: &[Column], depth: usize) -> String {
        let outer: &[Column] = if self.chance(0.7) { scope } else { &[] };
        let (from, columns) = self.from(outer, depth - 1);
        let all: Vec<Column> = columns.iter().chain(outer).cloned().collect();
        let condition = self.condition(&columns, &all, depth - 1);
        let column = self.of_kind(Kind::Integer, &columns);
        let calls = ["count(*)", "count(#)", "sum(#)", "min(#)", "max(#)"];
        let call = calls.choose(self.random).expect("there are some").replace('#', &column);
        format!("select {call}::int from {from} where {condition}")
    }

    /// A value of a result.
    fn value(&mut self, kind: Kind, columns: &[Column], scope: &[Column], depth: usize) -> String {
        if depth > 0 && self.chance(0.15) {
            return match kind {
                Kind::Integer => format!("({})", self.scalar(scope, depth)),
                Kind::Text => {
                    let condition = self.condition(columns, scope, depth);
                    format!("case when {condition} then 'yes' else 'no' end")
                }
            };
        }
        match (kind, self.below(8)) {
            (Kind::Integer, 0) => format!("{} + 1", self.of_kind(kind, scope)),
            (Kind::Integer, 1) => {
                format!("coalesce({}, {})", self.of_kind(kind, scope), self.of_kind(kind, scope))
            }
            (_, 2) => self.literal(kind),
            _ => self.of_kind(kind, columns),
        }
    }
}
