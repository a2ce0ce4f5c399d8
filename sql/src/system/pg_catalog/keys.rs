//! Indexes and constraints, and their definitions as PostgreSQL writes them.

use super::super::functions::expression;
use super::super::table::Cell;
use super::schema_oid;
use super::types::collation;
use crate::{Action, Catalog, Constraint, ConstraintKind, Deferral, Relation, names};

/// The OIDs of indexes are made from those of their constraints, in a range of their own.
const INDEX_OIDS: u32 = 1 << 30;

/// An index, or what PostgreSQL would have one for.
#[derive(Clone, Copy)]
pub(in crate::system) struct Index<'a> {
    pub(in crate::system) relation: &'a Relation,
    constraint: &'a Constraint,
    /// By place in the definition.
    pub(in crate::system) columns: &'a [usize],
}

impl<'a> Index<'a> {
    fn new(relation: &'a Relation, constraint: &'a Constraint) -> Option<Self> {
        let columns = match &constraint.kind {
            ConstraintKind::PrimaryKey => relation.key(),
            ConstraintKind::Unique { columns, .. } | ConstraintKind::Index { columns } => columns,
            _ => return None,
        };
        Some(Self { relation, constraint, columns })
    }

    /// All of a relation.
    pub(super) fn of(relation: &'a Relation) -> impl Iterator<Item = Self> {
        relation.constraints.iter().filter_map(|constraint| Self::new(relation, constraint))
    }

    /// All there are.
    pub(super) fn all(catalog: &'a Catalog) -> impl Iterator<Item = Self> {
        catalog.relations.values().flat_map(Self::of)
    }

    pub(super) fn oid(&self) -> u32 {
        INDEX_OIDS | self.constraint.oid
    }

    pub(super) fn name(&self) -> &'a str {
        &self.constraint.name
    }

    fn is_unique(&self) -> bool {
        !matches!(self.constraint.kind, ConstraintKind::Index { .. })
    }

    /// As PostgreSQL writes it.
    pub(in crate::system) fn definition(&self) -> String {
        format!(
            "CREATE {}INDEX {} ON {}.{} USING btree ({})",
            if self.is_unique() { "UNIQUE " } else { "" },
            names::quote(self.name()),
            names::quote(&self.relation.schema),
            names::quote(&self.relation.name),
            listed(self.relation, self.columns)
        )
    }

    /// Its row of `pg_index`.
    pub(super) fn row(&self) -> Vec<Cell> {
        let places = |each: &dyn Fn(usize) -> i64| {
            Cell::List(self.columns.iter().map(|place| each(*place)).collect())
        };
        let columns = &self.relation.columns;
        vec![
            self.oid().into(),
            self.relation.id.0.into(),
            Cell::Integer(self.columns.len() as i64),
            Cell::Integer(self.columns.len() as i64),
            self.is_unique().into(),
            false.into(), // indnullsnotdistinct
            (self.constraint.kind == ConstraintKind::PrimaryKey).into(),
            false.into(), // indisexclusion
            true.into(),  // indimmediate
            false.into(), // indisclustered
            true.into(),  // indisvalid
            false.into(), // indcheckxmin
            true.into(),  // indisready
            true.into(),  // indislive
            false.into(), // indisreplident
            places(&|place| place as i64 + 1),
            places(&|place| collation(&columns[place].kind).into()),
            places(&|_| 0),
            places(&|_| 0),
            Cell::Null,
            Cell::Null,
        ]
    }
}

/// The index with an OID.
pub(in crate::system) fn index_of(catalog: &Catalog, oid: u32) -> Option<Index<'_>> {
    Index::all(catalog).find(|index| index.oid() == oid)
}

/// `pg_constraint`.
pub(super) fn constraints(catalog: &Catalog) -> Vec<Vec<Cell>> {
    all(catalog).map(|(relation, constraint)| row(catalog, relation, constraint)).collect()
}

/// The constraint with an OID, and its table.
pub(in crate::system) fn constraint_of(
    catalog: &Catalog,
    oid: u32,
) -> Option<(&Relation, &Constraint)> {
    all(catalog).find(|(_, constraint)| constraint.oid == oid)
}

/// All constraints, with their tables.
pub(in crate::system) fn all(catalog: &Catalog) -> impl Iterator<Item = (&Relation, &Constraint)> {
    catalog.relations.values().flat_map(|relation| {
        let constraints = relation.constraints.iter();
        let constraints = constraints.filter(|constraint| letter(&constraint.kind).is_some());
        constraints.map(move |constraint| (relation, constraint))
    })
}

/// What `pg_constraint` calls it; none for what is an index only.
fn letter(kind: &ConstraintKind) -> Option<&'static str> {
    match kind {
        ConstraintKind::PrimaryKey => Some("p"),
        ConstraintKind::Unique { is_index: false, .. } => Some("u"),
        ConstraintKind::Check { .. } => Some("c"),
        ConstraintKind::ForeignKey { .. } => Some("f"),
        ConstraintKind::Unique { is_index: true, .. } | ConstraintKind::Index { .. } => None,
    }
}

/// How many CHECKs a relation has.
pub(super) fn checks(relation: &Relation) -> usize {
    let is_check =
        |constraint: &&Constraint| matches!(constraint.kind, ConstraintKind::Check { .. });
    relation.constraints.iter().filter(is_check).count()
}

/// Whether a table has or is meant by a foreign key.
pub(super) fn has_foreign_keys(catalog: &Catalog, relation: &Relation) -> bool {
    let is_key =
        |constraint: &Constraint| matches!(constraint.kind, ConstraintKind::ForeignKey { .. });
    relation.constraints.iter().any(is_key) || catalog.children(relation.id).next().is_some()
}

fn row(catalog: &Catalog, relation: &Relation, constraint: &Constraint) -> Vec<Cell> {
    let list =
        |columns: &[usize]| Cell::List(columns.iter().map(|place| *place as i64 + 1).collect());
    let index = Index::new(relation, constraint).map(|index| index.oid());
    let mut row = vec![
        constraint.oid.into(),
        constraint.name.as_str().into(),
        schema_oid(catalog, &relation.schema).unwrap_or(0).into(),
        letter(&constraint.kind).into(),
        (constraint.deferral != Deferral::Never).into(), // condeferrable
        (constraint.deferral == Deferral::Initially).into(), // condeferred
        (!constraint.is_not_valid).into(),               // convalidated
        relation.id.0.into(),
        0.into(), // contypid
    ];
    let is_check = matches!(constraint.kind, ConstraintKind::Check { .. });
    let rest: Vec<Cell> = match &constraint.kind {
        ConstraintKind::ForeignKey { columns, parent, parent_columns, on_delete, on_update } => {
            let index = catalog.relations.get(parent).and_then(|parent| {
                let same = |index: &Index<'_>| {
                    index.is_unique() && same_columns(index.columns, parent_columns)
                };
                Index::of(parent).find(same).map(|index| index.oid())
            });
            vec![
                index.unwrap_or(0).into(),
                0.into(), // conparentid
                parent.0.into(),
                action_letter(*on_update).into(),
                action_letter(*on_delete).into(),
                "s".into(),
                true.into(), // conislocal
                0.into(),    // coninhcount
                true.into(), // connoinherit
                list(columns),
                list(parent_columns),
            ]
        }
        kind => vec![
            index.unwrap_or(0).into(),
            0.into(), // conparentid
            0.into(), // confrelid
            " ".into(),
            " ".into(),
            " ".into(),
            true.into(), // conislocal
            0.into(),    // coninhcount
            (!is_check).into(),
            match kind {
                ConstraintKind::PrimaryKey => list(relation.key()),
                ConstraintKind::Unique { columns, .. } => list(columns),
                ConstraintKind::Check { expression } => {
                    list(&expression::columns(expression, relation))
                }
                _ => Cell::Null,
            },
            Cell::Null, // confkey
        ],
    };
    row.extend(rest);
    row.extend([Cell::Null, Cell::Null, Cell::Null, Cell::Null, Cell::Null]);
    row.push(match &constraint.kind {
        ConstraintKind::Check { expression } => {
            expression::shown(expression, &relation.columns, false).into()
        }
        _ => Cell::Null,
    });
    row
}

fn same_columns(left: &[usize], right: &[usize]) -> bool {
    left.len() == right.len() && left.iter().all(|place| right.contains(place))
}

fn action_letter(action: Action) -> &'static str {
    match action {
        Action::NoAction => "a",
        Action::Restrict => "r",
        Action::Cascade => "c",
        Action::SetNull => "n",
        Action::SetDefault => "d",
    }
}

/// The definition of a constraint, as PostgreSQL writes it.
pub(in crate::system) fn constraint_definition(
    catalog: &Catalog,
    relation: &Relation,
    constraint: &Constraint,
    is_pretty: bool,
) -> Option<String> {
    let definition = match &constraint.kind {
        ConstraintKind::PrimaryKey => format!("PRIMARY KEY ({})", listed(relation, relation.key())),
        ConstraintKind::Unique { columns, .. } => format!("UNIQUE ({})", listed(relation, columns)),
        ConstraintKind::Index { .. } => return None,
        ConstraintKind::Check { expression } => {
            format!("CHECK ({})", expression::shown(expression, &relation.columns, is_pretty))
        }
        ConstraintKind::ForeignKey { columns, parent, parent_columns, on_delete, on_update } => {
            let parent = catalog.relations.get(parent)?;
            let schema = match parent.schema.as_str() {
                "public" => String::new(),
                schema => format!("{}.", names::quote(schema)),
            };
            format!(
                "FOREIGN KEY ({}) REFERENCES {schema}{}({}){}{}",
                listed(relation, columns),
                names::quote(&parent.name),
                listed(parent, parent_columns),
                action_text("UPDATE", *on_update),
                action_text("DELETE", *on_delete)
            )
        }
    };
    let deferral = match constraint.deferral {
        Deferral::Never => "",
        Deferral::OnDemand => " DEFERRABLE",
        Deferral::Initially => " DEFERRABLE INITIALLY DEFERRED",
    };
    let validity = if constraint.is_not_valid { " NOT VALID" } else { "" };
    Some(format!("{definition}{deferral}{validity}"))
}

fn action_text(event: &str, action: Action) -> String {
    let action = match action {
        Action::NoAction => return String::new(),
        Action::Restrict => "RESTRICT",
        Action::Cascade => "CASCADE",
        Action::SetNull => "SET NULL",
        Action::SetDefault => "SET DEFAULT",
    };
    format!(" ON {event} {action}")
}

/// Columns as definitions list them.
fn listed(relation: &Relation, columns: &[usize]) -> String {
    let columns = columns.iter().map(|place| names::quote(&relation.columns[*place].name));
    columns.collect::<Vec<_>>().join(", ")
}
