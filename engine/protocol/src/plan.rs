//! What a circuit computes: tables, and views by their relational plans.
//!
//! A plan refers to relations by their ids and to columns by their places, never by names, so that
//! equal plans are equal work: [`Plan::fingerprint`] names an operator's state.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

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
        let views = self.views.iter().map(|view| (view.id, view.plan.fingerprint().0));
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
    pub plan: Arc<Plan>,
}

/// A relational operator with its inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Plan {
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
    /// Inner join: the left columns, then the right ones. A NULL key meets nothing.
    Join {
        /// The left input.
        left: Arc<Plan>,
        /// The right input.
        right: Arc<Plan>,
        /// Pairs of (left column, right column) that must be equal; their types are the same.
        on: Vec<(usize, usize)>,
        /// A boolean expression over left and right columns that must be true as well.
        residual: Option<Expression>,
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
    /// `Int16`, `Int32` -> `Int64`; `Int64` -> `Decimal128(38, 0)`; `Decimal128(_, s)` ->
    /// `Decimal128(38, s)`; floats keep their type.
    Sum,
    /// Integers -> `Decimal128(38, 16)`; `Decimal128(_, s)` -> `Decimal128(38, max(s, 16))`; floats
    /// -> `Float64`. Decimals are rounded half away from zero.
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
            | Self::Partition { schema, .. }
            | Self::UnionAll { schema, .. } => Arc::clone(schema),
            Self::Filter { input, .. } | Self::Distinct { input } => input.schema(),
        }
    }

    /// The plans this one reads, in order.
    pub fn inputs(&self) -> Vec<&Arc<Plan>> {
        match self {
            Self::Relation { .. } | Self::Values { .. } => vec![],
            Self::Filter { input, .. }
            | Self::Project { input, .. }
            | Self::Aggregate { input, .. }
            | Self::Partition { input, .. }
            | Self::Distinct { input } => vec![input],
            Self::Join { left, right, .. } => vec![left, right],
            Self::UnionAll { inputs, .. } => inputs.iter().collect(),
        }
    }

    /// The ids of all relations it reads, in order, each as often as it is read.
    pub fn relations(&self) -> Vec<RelationId> {
        match self {
            Self::Relation { id, .. } => vec![*id],
            plan => plan.inputs().into_iter().flat_map(|input| input.relations()).collect(),
        }
    }

    /// A name for what the plan computes: equal plans have equal fingerprints, whatever their
    /// columns are called.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.nameless())
    }

    /// The same plan with columns named by their places.
    fn nameless(&self) -> Plan {
        let recurse = |plan: &Arc<Plan>| Arc::new(plan.nameless());
        match self {
            Self::Relation { id, schema } => Self::Relation { id: *id, schema: unnamed(schema) },
            Self::Values { schema, rows } => {
                Self::Values { schema: unnamed(schema), rows: rows.clone() }
            }
            Self::Filter { input, predicate } => {
                Self::Filter { input: recurse(input), predicate: predicate.clone() }
            }
            Self::Project { input, expressions, schema } => Self::Project {
                input: recurse(input),
                expressions: expressions.clone(),
                schema: unnamed(schema),
            },
            Self::Join { left, right, on, residual, schema } => Self::Join {
                left: recurse(left),
                right: recurse(right),
                on: on.clone(),
                residual: residual.clone(),
                schema: unnamed(schema),
            },
            Self::Aggregate { input, groups, aggregates, schema } => Self::Aggregate {
                input: recurse(input),
                groups: groups.clone(),
                aggregates: aggregates.clone(),
                schema: unnamed(schema),
            },
            Self::Partition { input, keys, computation, schema } => Self::Partition {
                input: recurse(input),
                keys: keys.clone(),
                computation: computation.clone(),
                schema: unnamed(schema),
            },
            Self::Distinct { input } => Self::Distinct { input: recurse(input) },
            Self::UnionAll { inputs, schema } => Self::UnionAll {
                inputs: inputs.iter().map(recurse).collect(),
                schema: unnamed(schema),
            },
        }
    }
}

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
