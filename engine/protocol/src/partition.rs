//! What is computed of a partition as a whole: aggregates that need all rows of their group, window
//! functions, and the first rows in an order.
//!
//! Functions are named as hosts know them. Expressions and sort keys are over the columns of the
//! node's input.

use serde::{Deserialize, Serialize};

use crate::{Expression, Literal};

/// What the rows of a partition come to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Computation {
    /// One row: the keys, then a value per call. Without keys there is always exactly one row.
    Aggregates(Vec<AggregateCall>),
    /// Each row: the input's columns, then a value per call.
    Windows(Vec<WindowCall>),
    /// Some of the rows: the input's columns.
    Limit(Limit),
}

/// An aggregate function over the rows of a partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AggregateCall {
    /// The function's name.
    pub function: String,
    /// Its arguments.
    pub arguments: Vec<Expression>,
    /// Whether equal arguments count once.
    pub distinct: bool,
    /// Only rows for which this is true count.
    pub filter: Option<Expression>,
    /// The order in which it takes the rows; rows that are equal in it come in a fixed order.
    pub order: Vec<SortKey>,
    /// IGNORE NULLS.
    pub ignore_nulls: bool,
}

/// A window function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowCall {
    /// What is computed over the window.
    pub function: WindowFunction,
    /// Its arguments.
    pub arguments: Vec<Expression>,
    /// Whether equal arguments count once.
    pub distinct: bool,
    /// Only rows for which this is true count.
    pub filter: Option<Expression>,
    /// The order of the partition.
    pub order: Vec<SortKey>,
    /// The rows around the current one that it sees.
    pub frame: Frame,
    /// IGNORE NULLS.
    pub ignore_nulls: bool,
}

/// The function of a [`WindowCall`], by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WindowFunction {
    /// An aggregate over the frame.
    Aggregate(String),
    /// A window function proper, such as `rank`.
    Window(String),
}

/// A window's frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// How distances are measured.
    pub units: FrameUnits,
    /// Where it starts.
    pub start: FrameBound,
    /// Where it ends.
    pub end: FrameBound,
}

/// How a frame measures distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FrameUnits {
    /// In rows.
    Rows,
    /// In values of the one sort key.
    Range,
    /// In groups of rows that are equal in order.
    Groups,
}

/// An end of a frame. Without a distance it is unbounded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FrameBound {
    /// So far before the current row: an `Int64` but for RANGE.
    Preceding(Option<Literal>),
    /// The current row, with its equals but for ROWS.
    CurrentRow,
    /// So far after the current row.
    Following(Option<Literal>),
}

/// The first rows of a partition in an order. Rows that are equal in it come in a fixed order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// The order.
    pub order: Vec<SortKey>,
    /// How many rows are passed over.
    pub offset: u64,
    /// How many rows come then; all if none.
    pub count: Option<u64>,
    /// Whether those that equal the last one in order come as well.
    pub with_ties: bool,
}

/// A column to sort by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SortKey {
    /// Which.
    pub column: usize,
    /// The greatest first.
    pub descending: bool,
    /// NULLs before all others; else after them.
    pub nulls_first: bool,
}

impl Computation {
    /// Calls `visit` with the index of every column that is read.
    pub fn columns(&self, visit: &mut impl FnMut(usize)) {
        match self {
            Self::Aggregates(calls) => {
                for call in calls {
                    let expressions = call.arguments.iter().chain(&call.filter);
                    expressions.for_each(|expression| expression.columns(visit));
                    call.order.iter().for_each(|key| visit(key.column));
                }
            }
            Self::Windows(calls) => {
                for call in calls {
                    let expressions = call.arguments.iter().chain(&call.filter);
                    expressions.for_each(|expression| expression.columns(visit));
                    call.order.iter().for_each(|key| visit(key.column));
                }
            }
            Self::Limit(limit) => limit.order.iter().for_each(|key| visit(key.column)),
        }
    }
}
