//! What must be true of a table's rows.

use serde::{Deserialize, Serialize};
use stillframe_protocol::RelationId;

use super::{Catalog, Relation, RelationKind};

/// A constraint, or an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constraint {
    /// Its OID.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// What it says. Columns are places in the definition.
    pub kind: ConstraintKind,
    /// When it must be true.
    #[serde(default)]
    pub deferral: Deferral,
    /// Whether rows that were there before it may break it.
    #[serde(default)]
    pub is_not_valid: bool,
    /// What COMMENT ON says of it.
    #[serde(default)]
    pub comment: Option<String>,
}

/// When a constraint must be true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Deferral {
    /// When a statement is over.
    #[default]
    Never,
    /// When a statement is over, unless the transaction says that it may be later.
    OnDemand,
    /// When the transaction commits, unless it says otherwise.
    Initially,
}

/// What a constraint says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConstraintKind {
    /// The table's key has this name.
    PrimaryKey,
    /// No two rows have the same values, unless one is NULL.
    Unique {
        /// The columns.
        columns: Vec<usize>,
        /// Whether it was made by CREATE UNIQUE INDEX, and is no constraint.
        is_index: bool,
    },
    /// Nothing: it was made by CREATE INDEX.
    Index {
        /// The columns.
        columns: Vec<usize>,
    },
    /// An expression isn't false.
    Check {
        /// Its text.
        expression: String,
    },
    /// The values are those of a row of another table, unless one is NULL.
    ForeignKey {
        /// The columns.
        columns: Vec<usize>,
        /// The other table.
        parent: RelationId,
        /// Its columns, which are a key of it.
        parent_columns: Vec<usize>,
        /// What becomes of rows whose parent goes.
        on_delete: Action,
        /// What becomes of rows whose parent's key changes.
        on_update: Action,
    },
}

/// What becomes of rows whose parent goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// It may not, when the statement is over.
    NoAction,
    /// It may not.
    Restrict,
    /// They go, too, or change like it.
    Cascade,
    /// They become NULL.
    SetNull,
    /// They become what a new row has.
    SetDefault,
}

/// How a column gets values that nobody gives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Generated {
    /// From a sequence of its own, always or if nobody gives one.
    Identity {
        /// The sequence's OID.
        sequence: u32,
        /// Whether nobody may give one.
        always: bool,
    },
    /// By an expression over the row.
    Stored {
        /// Its text.
        expression: String,
    },
}

impl Constraint {
    /// A constraint that must be true of all rows whenever a statement is over.
    pub fn new(oid: u32, name: String, kind: ConstraintKind) -> Self {
        let (deferral, is_not_valid, comment) = (Deferral::Never, false, None);
        Self { oid, name, kind, deferral, is_not_valid, comment }
    }
}

impl Relation {
    /// The name of the primary key.
    pub fn key_name(&self) -> String {
        let named = self.constraints.iter().find(|c| c.kind == ConstraintKind::PrimaryKey);
        named.map_or_else(|| format!("{}_pkey", self.name), |constraint| constraint.name.clone())
    }

    /// The constraint of a name.
    pub fn constraint(&self, name: &str) -> Option<&Constraint> {
        self.constraints.iter().find(|constraint| constraint.name == name)
    }

    /// The primary key's columns; none if it has none.
    pub fn key(&self) -> &[usize] {
        match &self.kind {
            RelationKind::Table { key } => key,
            _ => &[],
        }
    }
}

impl Catalog {
    /// The foreign keys whose parent is this relation, with the tables that have them.
    pub fn children(
        &self,
        parent: RelationId,
    ) -> impl Iterator<Item = (&Relation, &Constraint)> + '_ {
        self.relations.values().flat_map(move |relation| {
            let constraints = relation.constraints.iter();
            let keys = constraints.filter(move |constraint| {
                matches!(&constraint.kind,
                    ConstraintKind::ForeignKey { parent: found, .. } if *found == parent)
            });
            keys.map(move |constraint| (relation, constraint))
        })
    }
}
