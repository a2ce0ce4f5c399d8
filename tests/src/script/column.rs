//! The type letters of a script's queries. What counts is how many there are.

use sqllogictest::ColumnType;
use tokio_postgres::types::Type;

/// A column: the letter that the script gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column(pub char);

impl Column {
    /// A column of a type that nobody has looked at.
    pub const ANY: Self = Self('?');

    /// The letter of a type of PostgreSQL.
    pub fn of(of: &Type) -> Self {
        Self(match *of {
            Type::BOOL => 'B',
            Type::INT2 | Type::INT4 | Type::INT8 | Type::OID => 'I',
            Type::FLOAT4 | Type::FLOAT8 | Type::NUMERIC => 'R',
            _ => 'T',
        })
    }
}

impl ColumnType for Column {
    fn from_char(letter: char) -> Option<Self> {
        Some(Self(letter))
    }

    fn to_char(&self) -> char {
        self.0
    }
}
