//! What an error is about: names that programs read, where the message is for people.

use crate::Relation;

/// The object that an error is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// Its schema.
    pub schema: String,
    /// The table, or the one that the constraint or column is of.
    pub table: String,
    /// The column.
    pub column: Option<String>,
    /// The constraint, or the unique index.
    pub constraint: Option<String>,
}

impl Subject {
    /// A constraint of a table.
    pub(crate) fn constraint(table: &Relation, name: &str) -> Self {
        Self { constraint: Some(name.to_owned()), ..Self::table(table) }
    }

    /// A column of a table.
    pub(crate) fn column(table: &Relation, name: &str) -> Self {
        Self { column: Some(name.to_owned()), ..Self::table(table) }
    }

    fn table(table: &Relation) -> Self {
        Self { schema: table.schema.clone(), table: table.name.clone(), ..Self::default() }
    }
}
