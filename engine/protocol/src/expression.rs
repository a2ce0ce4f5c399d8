//! Scalar expressions over the columns of one row, in a form that can be stored and sent.
//!
//! Types are Arrow's and already settled: whoever writes an expression has resolved names and
//! inserted every cast. A host evaluates it with DataFusion's kernels and with the functions it was
//! given by name, and so does an ad-hoc query: the two can't disagree.

use arrow::datatypes::DataType;
use serde::{Deserialize, Serialize};

/// A typed constant.
///
/// Floats are kept as their bits so that expressions have equality and a stable serialised form.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Literal {
    /// NULL of a type.
    Null(DataType),
    /// `boolean`.
    Boolean(bool),
    /// `smallint`.
    Int16(i16),
    /// `integer`.
    Int32(i32),
    /// `bigint`.
    Int64(i64),
    /// `real`, by its bits.
    Float32(u32),
    /// `double precision`, by its bits.
    Float64(u64),
    /// `numeric` whose scale is its type's: unscaled value, precision, scale.
    Decimal128(i128, u8, i8),
    /// `numeric` with a scale of its own, as [`crate::numeric`] encodes it.
    Numeric(Vec<u8>),
    /// `text` and its relatives.
    Utf8(String),
    /// `bytea`.
    Binary(Vec<u8>),
    /// `date`: days since 1970-01-01.
    Date32(i32),
    /// `time`: microseconds since midnight.
    Time64Microsecond(i64),
    /// `timestamp` (no zone) and `timestamptz` (with one): microseconds since 1970-01-01 UTC.
    TimestampMicrosecond(i64, Option<String>),
    /// `interval`: months, days, nanoseconds.
    IntervalMonthDayNano(i32, i32, i64),
    /// An array: the type of its elements, and they.
    List(DataType, Vec<Literal>),
}

/// An operator of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each name is the SQL operator")]
pub enum UnaryOperator {
    Not,
    Negative,
    IsNull,
    IsNotNull,
    IsTrue,
    IsNotTrue,
    IsFalse,
    IsNotFalse,
    IsUnknown,
    IsNotUnknown,
}

/// An operator of two operands, which have the types DataFusion's kernel wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each name is the SQL operator")]
pub enum BinaryOperator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    IsDistinctFrom,
    IsNotDistinctFrom,
    And,
    Or,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
    ShiftLeft,
    ShiftRight,
    Concat,
    RegexMatch,
    RegexIMatch,
    RegexNotMatch,
    RegexNotIMatch,
}

/// A scalar expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Expression {
    /// The input's column with this index.
    Column(usize),
    /// A constant.
    Literal(Literal),
    /// An operator of one operand.
    Unary {
        /// Which.
        operator: UnaryOperator,
        /// Its operand.
        operand: Box<Expression>,
    },
    /// An operator of two operands.
    Binary {
        /// Which.
        operator: BinaryOperator,
        /// The left operand.
        left: Box<Expression>,
        /// The right operand.
        right: Box<Expression>,
    },
    /// Arrow's cast; an impossible value is an error, or NULL if `null_on_error`.
    Cast {
        /// What is cast.
        operand: Box<Expression>,
        /// The type wanted.
        to: DataType,
        /// NULL instead of an error.
        null_on_error: bool,
    },
    /// CASE.
    Case {
        /// Compared with each WHEN; without it each WHEN is a condition.
        operand: Option<Box<Expression>>,
        /// WHEN, THEN.
        branches: Vec<(Expression, Expression)>,
        /// ELSE; NULL without it.
        otherwise: Option<Box<Expression>>,
    },
    /// LIKE.
    Like {
        /// What is matched.
        operand: Box<Expression>,
        /// The pattern.
        pattern: Box<Expression>,
        /// NOT LIKE.
        negated: bool,
        /// ILIKE.
        case_insensitive: bool,
        /// ESCAPE; a backslash without it.
        escape: Option<char>,
    },
    /// IN with a list.
    InList {
        /// What is looked for.
        operand: Box<Expression>,
        /// The list.
        list: Vec<Expression>,
        /// NOT IN.
        negated: bool,
    },
    /// A scalar function, by the name under which hosts know it.
    Call {
        /// The function's name.
        function: String,
        /// Its arguments.
        arguments: Vec<Expression>,
        /// The type it returns for these arguments.
        returns: DataType,
    },
}

impl Expression {
    /// Calls `visit` with the index of every column that the expression reads.
    pub fn columns(&self, visit: &mut impl FnMut(usize)) {
        if let Self::Column(index) = self {
            visit(*index);
        }
        self.children(&mut |child| child.columns(visit));
    }

    /// Calls `visit` with each direct operand.
    pub fn children<'a>(&'a self, visit: &mut dyn FnMut(&'a Expression)) {
        match self {
            Self::Column(_) | Self::Literal(_) => {}
            Self::Unary { operand, .. } | Self::Cast { operand, .. } => visit(operand),
            Self::Binary { left, right, .. } => {
                visit(left);
                visit(right);
            }
            Self::Case { operand, branches, otherwise } => {
                if let Some(operand) = operand {
                    visit(operand);
                }
                for (when, then) in branches {
                    visit(when);
                    visit(then);
                }
                if let Some(otherwise) = otherwise {
                    visit(otherwise);
                }
            }
            Self::Like { operand, pattern, .. } => {
                visit(operand);
                visit(pattern);
            }
            Self::InList { operand, list, .. } => {
                visit(operand);
                list.iter().for_each(visit);
            }
            Self::Call { arguments, .. } => arguments.iter().for_each(visit),
        }
    }

    /// The same expression with every column renumbered.
    #[must_use]
    pub fn map_columns(&self, map: &dyn Fn(usize) -> usize) -> Self {
        let boxed = |expression: &Expression| Box::new(expression.map_columns(map));
        let all = |list: &[Expression]| list.iter().map(|item| item.map_columns(map)).collect();
        match self {
            Self::Column(index) => Self::Column(map(*index)),
            Self::Literal(value) => Self::Literal(value.clone()),
            Self::Unary { operator, operand } => {
                Self::Unary { operator: *operator, operand: boxed(operand) }
            }
            Self::Binary { operator, left, right } => {
                Self::Binary { operator: *operator, left: boxed(left), right: boxed(right) }
            }
            Self::Cast { operand, to, null_on_error } => Self::Cast {
                operand: boxed(operand),
                to: to.clone(),
                null_on_error: *null_on_error,
            },
            Self::Case { operand, branches, otherwise } => Self::Case {
                operand: operand.as_deref().map(boxed),
                branches: branches
                    .iter()
                    .map(|(when, then)| (when.map_columns(map), then.map_columns(map)))
                    .collect(),
                otherwise: otherwise.as_deref().map(boxed),
            },
            Self::Like { operand, pattern, negated, case_insensitive, escape } => Self::Like {
                operand: boxed(operand),
                pattern: boxed(pattern),
                negated: *negated,
                case_insensitive: *case_insensitive,
                escape: *escape,
            },
            Self::InList { operand, list, negated } => {
                Self::InList { operand: boxed(operand), list: all(list), negated: *negated }
            }
            Self::Call { function, arguments, returns } => Self::Call {
                function: function.clone(),
                arguments: all(arguments),
                returns: returns.clone(),
            },
        }
    }
}
