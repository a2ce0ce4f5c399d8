//! The catalog: schemas and relations of one version, and the program they amount to.

mod constraint;
mod role;
mod sequence;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::datatypes::{Field, SchemaRef};
use serde::{Deserialize, Serialize};
use stillframe_protocol::{
    CatalogSnapshot, CatalogVersion, Plan, Program, RelationId, Table, View,
};

use crate::{Error, Type};

pub use constraint::{Action, Constraint, ConstraintKind, Deferral, Generated};
pub use role::Role;
pub use sequence::Sequence;

/// The first OID that users' objects get, as in PostgreSQL.
const FIRST_USER_OID: u32 = 16384;

/// One version of the catalog.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Catalog {
    /// The version, which the coordinator gives.
    #[serde(skip)]
    pub version: CatalogVersion,
    /// The OID that the next new object gets. OIDs are never used again.
    pub next_oid: u32,
    /// By name.
    pub schemas: BTreeMap<String, Schema>,
    /// By id. A relation only reads relations with lower ids.
    pub relations: BTreeMap<RelationId, Relation>,
    /// By OID.
    #[serde(default)]
    pub sequences: BTreeMap<u32, Sequence>,
    /// By name. The owner of everything is here only if something was said of it.
    #[serde(default)]
    pub roles: BTreeMap<String, Role>,
}

/// A namespace of relations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    /// Its OID.
    pub oid: u32,
    /// What COMMENT ON says of it.
    #[serde(default)]
    pub comment: Option<String>,
}

/// A table or a view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Relation {
    /// Its OID.
    pub id: RelationId,
    /// The name of its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// Its columns, in the order of the definition.
    pub columns: Vec<Column>,
    /// What it is.
    pub kind: RelationKind,
    /// The number under which the engine has its rows, if that isn't its OID: a table whose rows
    /// were all written anew, and a view that reads one.
    #[serde(default)]
    pub storage: Option<RelationId>,
    /// Constraints and indexes, in the order in which they were made. A primary key's columns are
    /// those of the table; here it has its name.
    #[serde(default)]
    pub constraints: Vec<Constraint>,
    /// What COMMENT ON says of it.
    #[serde(default)]
    pub comment: Option<String>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Type,
    /// Whether NULL is refused.
    pub not_null: bool,
    /// The expression whose value it has in a new row that gives it none; NULL without one.
    #[serde(default)]
    pub default: Option<String>,
    /// How it gets values that nobody gives.
    #[serde(default)]
    pub generated: Option<Generated>,
    /// What COMMENT ON says of it.
    #[serde(default)]
    pub comment: Option<String>,
    /// How many digits the seconds of a moment may have; without it six. It is no part of the type:
    /// what reads the column finds the values rounded.
    #[serde(default)]
    pub second_digits: Option<u8>,
}

/// What a relation is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RelationKind {
    /// A base table.
    Table {
        /// The primary key's columns, by place in the definition, in the key's order; may be empty.
        key: Vec<usize>,
    },
    /// A stored query, run again by each statement that reads it.
    View {
        /// Its text, with every relation name qualified.
        query: String,
        /// The relations it reads directly.
        reads: BTreeSet<RelationId>,
    },
    /// A maintained view.
    MaterializedView {
        /// Its text, with every relation name qualified.
        query: String,
        /// The relations it reads directly, stored queries included.
        reads: BTreeSet<RelationId>,
        /// What the engine computes.
        #[serde(with = "stillframe_protocol::shared")]
        plan: Arc<Plan>,
    },
}

impl Default for Catalog {
    fn default() -> Self {
        // PostgreSQL's own OID of `public`.
        let public = Schema { oid: 2200, comment: None };
        Self {
            version: CatalogVersion(0),
            next_oid: FIRST_USER_OID,
            schemas: BTreeMap::from([("public".to_owned(), public)]),
            relations: BTreeMap::new(),
            sequences: BTreeMap::new(),
            roles: BTreeMap::new(),
        }
    }
}

impl Catalog {
    /// Reads a version as the coordinator keeps it; the empty one is the default catalog.
    pub fn decode(snapshot: &CatalogSnapshot) -> Result<Self, Error> {
        let mut catalog = if snapshot.bytes.is_empty() {
            Self::default()
        } else {
            let mut bytes = rmp_serde::Deserializer::from_read_ref(&snapshot.bytes);
            // A plan nests as deep as the statement that it was made of.
            bytes.set_max_depth(usize::MAX);
            Self::deserialize(&mut bytes)
                .map_err(|error| Error::internal(format!("catalog cannot be read: {error}")))?
        };
        catalog.version = snapshot.version;
        Ok(catalog)
    }

    /// The form in which the coordinator keeps it.
    pub fn encode(&self) -> Arc<[u8]> {
        let mut bytes = rmp_serde::Serializer::new(vec![]).with_struct_map();
        bytes.unstable_set_max_depth(usize::MAX);
        self.serialize(&mut bytes).expect("a catalog has a form in MessagePack");
        bytes.into_inner().into()
    }

    /// A new OID.
    pub fn allocate(&mut self) -> u32 {
        let oid = self.next_oid;
        self.next_oid += 1;
        oid
    }

    /// The relation with this schema and name.
    pub fn find(&self, schema: &str, name: &str) -> Option<&Relation> {
        self.relations.values().find(|relation| relation.schema == schema && relation.name == name)
    }

    /// Whether the engine has rows under a number.
    pub fn stores(&self, id: RelationId) -> bool {
        let mut stored = self.relations.values().filter(|relation| relation.is_stored());
        stored.any(|relation| relation.stored_id() == id)
    }

    /// The relations that read one of `of`, directly or through others, in ascending order.
    pub fn dependents(&self, of: &BTreeSet<RelationId>) -> BTreeSet<RelationId> {
        let mut found = BTreeSet::new();
        // Ids ascend from what is read to what reads, so one pass sees all.
        for relation in self.relations.values() {
            let reads = relation.reads();
            if reads.iter().any(|id| of.contains(id) || found.contains(id)) {
                found.insert(relation.id);
            }
        }
        found
    }

    /// What the engine computes for this catalog.
    pub fn program(&self) -> Program {
        let mut program = Program::default();
        for relation in self.relations.values() {
            match &relation.kind {
                RelationKind::Table { .. } => program.tables.extend(relation.table()),
                RelationKind::MaterializedView { plan, .. } => {
                    program.views.push(View { id: relation.stored_id(), plan: Arc::clone(plan) });
                }
                RelationKind::View { .. } => {}
            }
        }
        program
    }
}

impl Relation {
    /// The relations it reads directly.
    pub fn reads(&self) -> &BTreeSet<RelationId> {
        static NONE: BTreeSet<RelationId> = BTreeSet::new();
        match &self.kind {
            RelationKind::Table { .. } => &NONE,
            RelationKind::View { reads, .. } | RelationKind::MaterializedView { reads, .. } => {
                reads
            }
        }
    }

    /// The number under which the engine has its rows.
    pub fn stored_id(&self) -> RelationId {
        self.storage.unwrap_or(self.id)
    }

    /// What the engine stores, if it is a table.
    pub fn table(&self) -> Option<Table> {
        let RelationKind::Table { key } = &self.kind else { return None };
        let (id, schema) = (self.stored_id(), self.stored_schema());
        Some(Table { id, schema, key_columns: key.len() })
    }

    /// Whether the engine holds rows of it.
    pub fn is_stored(&self) -> bool {
        !matches!(self.kind, RelationKind::View { .. })
    }

    /// By place as stored, the column's place in the definition: the primary key comes first.
    pub fn stored_order(&self) -> Vec<usize> {
        let key: &[usize] = match &self.kind {
            RelationKind::Table { key } => key,
            RelationKind::View { .. } | RelationKind::MaterializedView { .. } => &[],
        };
        let rest = (0..self.columns.len()).filter(|place| !key.contains(place));
        key.iter().copied().chain(rest).collect()
    }

    /// The columns as stored.
    pub fn stored_schema(&self) -> SchemaRef {
        let fields = self.stored_order().into_iter().map(|place| self.columns[place].field());
        Arc::new(arrow::datatypes::Schema::new(fields.collect::<Vec<_>>()))
    }

    /// The columns as defined.
    pub fn defined_schema(&self) -> SchemaRef {
        let fields = self.columns.iter().map(Column::field);
        Arc::new(arrow::datatypes::Schema::new(fields.collect::<Vec<_>>()))
    }
}

impl Column {
    /// Whether an expression over the row gives it its values.
    pub fn is_computed(&self) -> bool {
        matches!(self.generated, Some(Generated::Stored { .. }))
    }

    /// A column that takes NULL, and does without a value.
    pub fn new(name: String, kind: Type) -> Self {
        Self {
            name,
            kind,
            not_null: false,
            default: None,
            generated: None,
            comment: None,
            second_digits: None,
        }
    }

    /// The Arrow field that carries it; the SQL type travels in its metadata where Arrow's doesn't
    /// tell it.
    pub fn field(&self) -> Field {
        self.kind.field(&self.name, !self.not_null)
    }
}
