//! What a circuit computes: tables, and views by their relational plans.
//!
//! A plan refers to relations by their ids and to columns by their places, never by names, so that
//! equal plans are equal work: [`Plan::fingerprint`] names an operator's state.

pub mod shared;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use shared::Fingerprints;

use crate::{Computation, Expression, Literal, RelationId};

/// Everything that one circuit computes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The base tables.
    pub tables: Vec<Table>,
    /// The maintained views, each after those it reads.
    pub views: Vec<View>,
}

impl Program {
    /// Names the circuit that computes it: the same on every host, whatever columns are called.
    pub fn fingerprint(&self) -> Fingerprint {
        let tables = self.tables.iter().map(|table| {
            let types = table.schema.fields().iter().map(|f| (f.data_type(), f.is_nullable()));
            (table.id, table.key_columns, types.collect::<Vec<_>>())
        });
        let mut fingerprints = Fingerprints::default();
        let views = self.views.iter().map(|view| (view.id, fingerprints.of(&view.plan).0));
        Fingerprint::of(&(tables.collect::<Vec<_>>(), views.collect::<Vec<_>>()))
    }
}

/// A base table as the engine stores it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Its number.
    pub id: RelationId,
    /// Its columns as stored: those of the primary key first, in the key's order.
    pub schema: SchemaRef,
    /// How many columns the primary key has; 0 makes the table a bag.
    pub key_columns: usize,
}

/// A maintained view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// Its number.
    pub id: RelationId,
    /// What it computes. The columns of the plan are the columns of the view.
    #[serde(with = "shared")]
    pub plan: Arc<Plan>,
}

/// A relational operator with its inputs.
///
/// Plans are equal if they compute the same in columns of the same names.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Plan {
    /// What stands elsewhere: only in the serialised form of a plan ([`shared`]), and in what a
    /// fingerprint is computed of.
    Reference(u128),
    /// All rows and columns of a table or an earlier view.
    Relation {
        /// Which.
        id: RelationId,
        /// Its columns as stored.
        schema: SchemaRef,
    },
    /// Constant rows.
    Values {
        /// The columns.
        schema: SchemaRef,
        /// The rows, each with as many literals as there are columns.
        rows: Vec<Vec<Literal>>,
    },
    /// The rows for which the predicate is true.
    Filter {
        /// Where rows come from.
        input: Arc<Plan>,
        /// A boolean expression over the input.
        predicate: Expression,
    },
    /// One computed column per expression.
    Project {
        /// Where rows come from.
        input: Arc<Plan>,
        /// Expressions over the input, as many as `schema` has columns.
        expressions: Vec<Expression>,
        /// The columns that come out.
        schema: SchemaRef,
    },
    /// Inner join: the left columns, then the right ones.
    Join {
        /// The left input.
        left: Arc<Plan>,
        /// The right input.
        right: Arc<Plan>,
        /// What must be equal.
        on: Vec<JoinKey>,
        /// A boolean expression over left and right columns that must be true as well.
        residual: Option<Expression>,
        /// The columns that come out.
        schema: SchemaRef,
    },
    /// The left rows, as often as they are there, that meet at least one right row.
    Semijoin {
        /// Where rows come from.
        left: Arc<Plan>,
        /// What they are to meet.
        right: Arc<Plan>,
        /// What must be equal.
        on: Vec<JoinKey>,
        /// The left rows that meet none instead.
        negated: bool,
    },
    /// A row for each element of lists: the input's columns, then a column per list. Where one list
    /// is shorter than another it goes on with NULLs; a row whose lists have no element goes.
    Unnest {
        /// Where rows come from.
        input: Arc<Plan>,
        /// Expressions over the input, with their types, which are lists.
        lists: Vec<(Expression, DataType)>,
        /// The columns that come out.
        schema: SchemaRef,
    },
    /// GROUP BY: the group columns, then the aggregates. Without group columns there is always
    /// exactly one row.
    Aggregate {
        /// Where rows come from.
        input: Arc<Plan>,
        /// The input's columns to group by; NULLs are equal.
        groups: Vec<usize>,
        /// What is computed of each group.
        aggregates: Vec<Aggregate>,
        /// The columns that come out.
        schema: SchemaRef,
    },
    /// What is computed of each partition as a whole. A change of a partition computes it anew.
    Partition {
        /// Where rows come from.
        input: Arc<Plan>,
        /// The input's columns whose values make a partition; NULLs are equal.
        keys: Vec<usize>,
        /// What its rows come to.
        computation: Computation,
        /// The columns that come out.
        schema: SchemaRef,
    },
    /// Each distinct row once; NULLs are equal.
    Distinct {
        /// Where rows come from.
        input: Arc<Plan>,
    },
    /// All rows of all inputs, which have the same types.
    UnionAll {
        /// Where rows come from.
        inputs: Vec<Arc<Plan>>,
        /// The columns that come out.
        schema: SchemaRef,
    },
    /// The rows that are there at the step's clock, for as long as it is between two moments of each.
    /// A NULL among the moments, and the row is never there.
    Temporal {
        /// Where rows come from.
        input: Arc<Plan>,
        /// From the latest of these moments on.
        from: Vec<Moment>,
        /// Until before the earliest of these.
        until: Vec<Moment>,
    },
    /// WITH RECURSIVE: the base's rows, what the term makes of them, what the term makes of that, and
    /// so on until nothing comes out. An iteration reads the rows of the last one only.
    Recursion {
        /// The rows of the first iteration; its columns are those that come out.
        base: Arc<Plan>,
        /// The rows of an iteration, with the base's types: a plan over [`Plan::Given`] and
        /// constants only.
        term: Arc<Plan>,
        /// What the term reads beside the last iteration's rows, from [`Plan::Given`] 1 on.
        given: Vec<Arc<Plan>>,
        /// UNION: a row that was there before isn't there again.
        distinct: bool,
        /// The columns that come out.
        schema: SchemaRef,
    },
    /// What a recursion's term reads: at 0 the rows of the last iteration, then what is given.
    Given {
        /// Which.
        place: usize,
        /// Its columns.
        schema: SchemaRef,
    },
}

/// When a row comes or goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// An `Int64` over the input: a number of units since 1970-01-01 UTC.
    pub expression: Expression,
    /// What it counts in: a day or a microsecond.
    pub unit: MomentUnit,
    /// So many microseconds later.
    pub offset_us: i64,
}

/// What a [`Moment`] counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MomentUnit {
    /// Days.
    Day,
    /// Microseconds.
    Microsecond,
}

impl Moment {
    /// The moment for a value of its expression. Infinity stays what it is.
    pub fn us(&self, value: i64) -> i64 {
        const DAY_US: i64 = 86_400_000_000;
        let us = match self.unit {
            MomentUnit::Day => value.saturating_mul(DAY_US),
            MomentUnit::Microsecond => value,
        };
        match us {
            i64::MIN | i64::MAX => us,
            us => us.saturating_add(self.offset_us),
        }
    }
}

/// A pair of columns of the two sides of a join that must be equal; their types are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JoinKey {
    /// The left side's column.
    pub left: usize,
    /// The right side's column.
    pub right: usize,
    /// Whether NULL equals NULL; otherwise it equals nothing.
    pub null_equal: bool,
}

impl JoinKey {
    /// Columns that must be equal, where NULL equals nothing.
    pub fn new(left: usize, right: usize) -> Self {
        Self { left, right, null_equal: false }
    }

    /// Columns that must not be distinct: NULL equals NULL.
    pub fn null_equal(left: usize, right: usize) -> Self {
        Self { left, right, null_equal: true }
    }
}

/// An aggregate over the rows of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aggregate {
    /// What is computed.
    pub function: AggregateFunction,
    /// The input's column that it reads; none for `count(*)` alone.
    pub argument: Option<usize>,
}

/// An aggregate function. The result's type stands in the plan's schema.
///
/// NULLs are passed over; over no value at all `Count` is 0 and the others are NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AggregateFunction {
    /// `count(*)` without an argument, `count(x)` with one: `Int64`.
    Count,
    /// `Int16`, `Int32` -> `Int64`; `Int64` -> `Decimal128(38, 0)`; `Decimal128(p, s)` ->
    /// `Decimal128(38, s)`, or with `p > 19` `LargeBinary`, a [`crate::numeric`]; that and floats
    /// keep their type.
    Sum,
    /// Exact numbers -> `LargeBinary`, a [`crate::numeric`] with the digits that it gives a quotient;
    /// floats -> `Float64`.
    Avg,
    /// The argument's type. NaN is greater than every other float, as in PostgreSQL.
    Min,
    /// The argument's type.
    Max,
}

impl Plan {
    /// The columns that come out.
    pub fn schema(&self) -> SchemaRef {
        match self {
            Self::Relation { schema, .. }
            | Self::Values { schema, .. }
            | Self::Project { schema, .. }
            | Self::Join { schema, .. }
            | Self::Aggregate { schema, .. }
            | Self::Unnest { schema, .. }
            | Self::Partition { schema, .. }
            | Self::UnionAll { schema, .. }
            | Self::Recursion { schema, .. }
            | Self::Given { schema, .. } => Arc::clone(schema),
            Self::Filter { input, .. }
            | Self::Temporal { input, .. }
            | Self::Distinct { input } => input.schema(),
            Self::Semijoin { left, .. } => left.schema(),
            Self::Reference(_) => Arc::new(Schema::empty()),
        }
    }

    /// The plans this one reads, in order.
    pub fn inputs(&self) -> Vec<&Arc<Plan>> {
        match self {
            Self::Reference(_)
            | Self::Relation { .. }
            | Self::Values { .. }
            | Self::Given { .. } => vec![],
            Self::Filter { input, .. }
            | Self::Temporal { input, .. }
            | Self::Project { input, .. }
            | Self::Aggregate { input, .. }
            | Self::Unnest { input, .. }
            | Self::Partition { input, .. }
            | Self::Distinct { input } => vec![input],
            Self::Join { left, right, .. } | Self::Semijoin { left, right, .. } => {
                vec![left, right]
            }
            Self::UnionAll { inputs, .. } => inputs.iter().collect(),
            Self::Recursion { base, term, given, .. } => {
                [base, term].into_iter().chain(given).collect()
            }
        }
    }

    /// The ids of all relations it reads, in order.
    pub fn relations(&self) -> Vec<RelationId> {
        let mut found = vec![];
        shared::relations(self, &mut HashSet::new(), &mut found);
        found
    }

    /// A name for what the plan computes: equal plans have equal fingerprints, whatever their
    /// columns are called.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprints::default().of(self)
    }

    /// The same operator over other inputs.
    #[must_use]
    pub fn map_inputs(&self, map: &mut dyn FnMut(&Arc<Plan>) -> Arc<Plan>) -> Self {
        let mut plan = self.clone();
        match &mut plan {
            Self::Reference(_)
            | Self::Relation { .. }
            | Self::Values { .. }
            | Self::Given { .. } => {}
            Self::Filter { input, .. }
            | Self::Temporal { input, .. }
            | Self::Project { input, .. }
            | Self::Aggregate { input, .. }
            | Self::Unnest { input, .. }
            | Self::Partition { input, .. }
            | Self::Distinct { input } => *input = map(input),
            Self::Join { left, right, .. } | Self::Semijoin { left, right, .. } => {
                *left = map(left);
                *right = map(right);
            }
            Self::UnionAll { inputs, .. } => {
                inputs.iter_mut().for_each(|input| *input = map(input));
            }
            Self::Recursion { base, term, given, .. } => {
                *base = map(base);
                *term = map(term);
                given.iter_mut().for_each(|input| *input = map(input));
            }
        }
        plan
    }

    /// The same operator with columns named by their places.
    fn nameless(mut self) -> Self {
        match &mut self {
            Self::Reference(_)
            | Self::Filter { .. }
            | Self::Temporal { .. }
            | Self::Semijoin { .. }
            | Self::Distinct { .. } => {}
            Self::Relation { schema, .. }
            | Self::Values { schema, .. }
            | Self::Project { schema, .. }
            | Self::Join { schema, .. }
            | Self::Aggregate { schema, .. }
            | Self::Unnest { schema, .. }
            | Self::Partition { schema, .. }
            | Self::UnionAll { schema, .. }
            | Self::Recursion { schema, .. }
            | Self::Given { schema, .. } => *schema = unnamed(schema),
        }
        self
    }
}

impl PartialEq for Plan {
    fn eq(&self, other: &Self) -> bool {
        self.schema() == other.schema() && self.fingerprint() == other.fingerprint()
    }
}

impl Eq for Plan {}

fn unnamed(schema: &Schema) -> SchemaRef {
    let fields = schema
        .fields()
        .iter()
        .enumerate()
        .map(|(place, field)| Field::new(place.to_string(), field.data_type().clone(), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// A name for what a plan computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Fingerprint(pub u128);

impl Fingerprint {
    fn of(what: &impl Serialize) -> Self {
        let bytes = serde_json::to_vec(what).expect("a plan has no map with non-string keys");
        let digest = Sha256::digest(bytes);
        let half = digest[..16].try_into().expect("a SHA-256 digest has 32 bytes");
        Self(u128::from_be_bytes(half))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}
