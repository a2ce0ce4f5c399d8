//! `pg_catalog`: the catalog as PostgreSQL 15 shows it, as far as clients ask.

mod definitions;

use super::table::{Cell, SystemTable};
use super::{OWNER, OWNER_OID};
use crate::query::QueryContext;
use crate::{Catalog, DATABASE_NAME, Relation, RelationKind, Type, names};

/// The OIDs of what isn't created by itself are made from the relation's, in ranges of their own.
const INDEX_OIDS: u32 = 1 << 30;
const CONSTRAINT_OIDS: u32 = 1 << 29;
const ROW_TYPE_OIDS: u32 = 1 << 28;

/// PostgreSQL's own OIDs.
const PG_CATALOG_OID: u32 = 11;
const INFORMATION_SCHEMA_OID: u32 = 13_183;
const STILLFRAME_OID: u32 = 13_184;
const HEAP_OID: u32 = 2;
const BTREE_OID: u32 = 403;
const DATABASE_OID: u32 = 5;
const DEFAULT_COLLATION_OID: u32 = 100;

/// The table with this name.
pub(super) fn table(context: &QueryContext, name: &str) -> Option<SystemTable> {
    let catalog = &*context.catalog;
    let mut table = SystemTable::empty(definitions::columns(name)?);
    table.rows = match name {
        "pg_namespace" => namespaces(catalog)
            .map(|(oid, name)| vec![oid.into(), name.into(), OWNER_OID.into(), Cell::Null])
            .collect(),
        "pg_class" => catalog
            .relations
            .values()
            .flat_map(|relation| {
                let index = key(relation).map(|key| index_class(catalog, relation, key));
                std::iter::once(class(catalog, relation)).chain(index)
            })
            .collect(),
        "pg_attribute" => catalog.relations.values().flat_map(attributes).collect(),
        "pg_type" => TYPES.iter().map(type_row).collect(),
        "pg_index" => keyed(catalog).map(|(relation, key)| index(relation, key)).collect(),
        "pg_constraint" => {
            keyed(catalog).map(|(relation, key)| constraint(catalog, relation, key)).collect()
        }
        "pg_am" => vec![
            vec![HEAP_OID.into(), "heap".into(), "heap_tableam_handler".into(), "t".into()],
            vec![BTREE_OID.into(), "btree".into(), "bthandler".into(), "i".into()],
        ],
        "pg_database" => vec![database()],
        "pg_roles" | "pg_authid" => vec![role()],
        "pg_user" => vec![vec![
            OWNER.into(),
            OWNER_OID.into(),
            true.into(),
            true.into(),
            true.into(),
            true.into(),
        ]],
        "pg_collation" => vec![vec![
            DEFAULT_COLLATION_OID.into(),
            "default".into(),
            PG_CATALOG_OID.into(),
            OWNER_OID.into(),
            "d".into(),
            true.into(),
            (-1).into(),
        ]],
        "pg_tables" => tables(catalog),
        "pg_views" | "pg_matviews" => views(catalog, name == "pg_matviews"),
        // What nobody can create has no rows.
        _ => vec![],
    };
    Some(table)
}

/// The schemas, with PostgreSQL's own.
fn namespaces(catalog: &Catalog) -> impl Iterator<Item = (u32, &str)> {
    let own = [
        (PG_CATALOG_OID, "pg_catalog"),
        (INFORMATION_SCHEMA_OID, "information_schema"),
        (STILLFRAME_OID, "stillframe"),
    ];
    own.into_iter().chain(catalog.schemas.iter().map(|(name, schema)| (schema.oid, name.as_str())))
}

/// The schema's OID.
pub(super) fn namespace_oid(catalog: &Catalog, schema: &str) -> u32 {
    namespaces(catalog).find(|(_, name)| *name == schema).map_or(0, |(oid, _)| oid)
}

fn key(relation: &Relation) -> Option<&[usize]> {
    match &relation.kind {
        RelationKind::Table { key } if !key.is_empty() => Some(key),
        _ => None,
    }
}

fn keyed(catalog: &Catalog) -> impl Iterator<Item = (&Relation, &[usize])> {
    catalog.relations.values().filter_map(|relation| Some((relation, key(relation)?)))
}

/// The relation whose index has this OID, and its key.
pub(super) fn index_of(catalog: &Catalog, oid: u32) -> Option<(&Relation, &[usize])> {
    keyed(catalog).find(|(relation, _)| INDEX_OIDS | relation.id.0 == oid)
}

/// The relation whose key has this OID.
pub(super) fn constraint_of(catalog: &Catalog, oid: u32) -> Option<(&Relation, &[usize])> {
    keyed(catalog).find(|(relation, _)| CONSTRAINT_OIDS | relation.id.0 == oid)
}

fn key_name(relation: &Relation) -> String {
    format!("{}_pkey", relation.name)
}

/// The key's columns, as definitions list them.
pub(super) fn key_columns(relation: &Relation, key: &[usize]) -> String {
    let columns = key.iter().map(|place| names::quote(&relation.columns[*place].name));
    columns.map(|name| name.to_string()).collect::<Vec<_>>().join(", ")
}

/// The index's definition, as PostgreSQL writes it.
pub(super) fn index_definition(relation: &Relation, key: &[usize]) -> String {
    format!(
        "CREATE UNIQUE INDEX {} ON {}.{} USING btree ({})",
        names::quote(&key_name(relation)),
        names::quote(&relation.schema),
        names::quote(&relation.name),
        key_columns(relation, key)
    )
}

fn kind(relation: &Relation) -> &'static str {
    match relation.kind {
        RelationKind::Table { .. } => "r",
        RelationKind::View { .. } => "v",
        RelationKind::MaterializedView { .. } => "m",
    }
}

fn class(catalog: &Catalog, relation: &Relation) -> Vec<Cell> {
    let access = match relation.kind {
        RelationKind::View { .. } => 0,
        RelationKind::Table { .. } | RelationKind::MaterializedView { .. } => HEAP_OID,
    };
    let replica = if relation.is_stored() { "d" } else { "n" };
    let view = !matches!(relation.kind, RelationKind::Table { .. });
    class_row(ClassRow {
        oid: relation.id.0,
        name: relation.name.clone(),
        namespace: namespace_oid(catalog, &relation.schema),
        row_type: ROW_TYPE_OIDS | relation.id.0,
        access,
        has_index: key(relation).is_some(),
        kind: kind(relation),
        columns: relation.columns.len(),
        has_rules: view,
        replica,
    })
}

fn index_class(catalog: &Catalog, relation: &Relation, key: &[usize]) -> Vec<Cell> {
    class_row(ClassRow {
        oid: INDEX_OIDS | relation.id.0,
        name: key_name(relation),
        namespace: namespace_oid(catalog, &relation.schema),
        row_type: 0,
        access: BTREE_OID,
        has_index: false,
        kind: "i",
        columns: key.len(),
        has_rules: false,
        replica: "n",
    })
}

/// What rows of `pg_class` differ in.
struct ClassRow {
    oid: u32,
    name: String,
    namespace: u32,
    row_type: u32,
    access: u32,
    has_index: bool,
    kind: &'static str,
    columns: usize,
    has_rules: bool,
    replica: &'static str,
}

fn class_row(row: ClassRow) -> Vec<Cell> {
    vec![
        row.oid.into(),
        row.name.into(),
        row.namespace.into(),
        row.row_type.into(),
        0.into(), // reloftype
        OWNER_OID.into(),
        row.access.into(),
        row.oid.into(), // relfilenode
        0.into(),       // reltablespace
        0.into(),       // relpages
        (-1).into(),    // reltuples: never counted
        0.into(),       // relallvisible
        0.into(),       // reltoastrelid
        row.has_index.into(),
        false.into(), // relisshared
        "p".into(),   // relpersistence
        row.kind.into(),
        Cell::Integer(row.columns as i64),
        0.into(), // relchecks
        row.has_rules.into(),
        false.into(), // relhastriggers
        false.into(), // relhassubclass
        false.into(), // relrowsecurity
        false.into(), // relforcerowsecurity
        true.into(),  // relispopulated
        row.replica.into(),
        false.into(), // relispartition
        0.into(),     // relrewrite
        0.into(),     // relfrozenxid
        0.into(),     // relminmxid
        Cell::Null,   // relacl
        Cell::Null,   // reloptions
        Cell::Null,   // relpartbound
    ]
}

fn attributes(relation: &Relation) -> Vec<Vec<Cell>> {
    let of_relation =
        relation.columns.iter().enumerate().map(|(place, column)| (relation.id.0, place, column));
    let of_index = key(relation).into_iter().flat_map(|key| {
        let oid = INDEX_OIDS | relation.id.0;
        key.iter().enumerate().map(move |(place, column)| (oid, place, &relation.columns[*column]))
    });
    let row = |(oid, place, column): (u32, usize, &crate::Column)| {
        vec![
            oid.into(),
            column.name.as_str().into(),
            column.kind.oid().into(),
            (-1).into(), // attstattarget
            column.kind.length().into(),
            Cell::Integer(place as i64 + 1),
            i32::from(matches!(column.kind, Type::Array(_))).into(),
            (-1).into(), // attcacheoff
            column.kind.modifier().into(),
            (column.kind.length() > 0 && column.kind.length() <= 8).into(),
            alignment(&column.kind).into(),
            if column.kind.length() < 0 { "x" } else { "p" }.into(),
            "".into(), // attcompression
            column.not_null.into(),
            false.into(), // atthasdef
            false.into(), // atthasmissing
            "".into(),    // attidentity
            "".into(),    // attgenerated
            false.into(), // attisdropped
            true.into(),  // attislocal
            0.into(),     // attinhcount
            collation(&column.kind).into(),
            Cell::Null,
            Cell::Null,
            Cell::Null,
            Cell::Null,
        ]
    };
    of_relation.chain(of_index).map(row).collect()
}

fn alignment(kind: &Type) -> &'static str {
    match kind.length() {
        1 => "c",
        2 => "s",
        8 => "d",
        _ => "i",
    }
}

fn collation(kind: &Type) -> u32 {
    match kind {
        Type::Text | Type::Varchar(_) | Type::Char(_) => DEFAULT_COLLATION_OID,
        Type::Name => 950,
        _ => 0,
    }
}

fn index(relation: &Relation, key: &[usize]) -> Vec<Cell> {
    let places = |each: &dyn Fn(usize) -> String| {
        key.iter().map(|place| each(*place)).collect::<Vec<_>>().join(" ")
    };
    vec![
        (INDEX_OIDS | relation.id.0).into(),
        relation.id.0.into(),
        Cell::Integer(key.len() as i64),
        Cell::Integer(key.len() as i64),
        true.into(),  // indisunique
        false.into(), // indnullsnotdistinct
        true.into(),  // indisprimary
        false.into(), // indisexclusion
        true.into(),  // indimmediate
        false.into(), // indisclustered
        true.into(),  // indisvalid
        false.into(), // indcheckxmin
        true.into(),  // indisready
        true.into(),  // indislive
        false.into(), // indisreplident
        places(&|place| (place + 1).to_string()).into(),
        places(&|place| collation(&relation.columns[place].kind).to_string()).into(),
        places(&|_| "0".to_owned()).into(),
        places(&|_| "0".to_owned()).into(),
        Cell::Null,
        Cell::Null,
    ]
}

fn constraint(catalog: &Catalog, relation: &Relation, _key: &[usize]) -> Vec<Cell> {
    vec![
        (CONSTRAINT_OIDS | relation.id.0).into(),
        key_name(relation).into(),
        namespace_oid(catalog, &relation.schema).into(),
        "p".into(),
        false.into(), // condeferrable
        false.into(), // condeferred
        true.into(),  // convalidated
        relation.id.0.into(),
        0.into(), // contypid
        (INDEX_OIDS | relation.id.0).into(),
        0.into(), // conparentid
        0.into(), // confrelid
        " ".into(),
        " ".into(),
        " ".into(),
        true.into(), // conislocal
        0.into(),    // coninhcount
        true.into(), // connoinherit
        Cell::Null,  // conkey
        Cell::Null,  // confkey
    ]
}

fn database() -> Vec<Cell> {
    vec![
        DATABASE_OID.into(),
        DATABASE_NAME.into(),
        OWNER_OID.into(),
        6.into(), // UTF8
        "c".into(),
        false.into(),
        true.into(),
        (-1).into(),
        0.into(),
        0.into(),
        0.into(),
        "C.UTF-8".into(),
        "C.UTF-8".into(),
        Cell::Null,
        Cell::Null,
        Cell::Null,
    ]
}

fn role() -> Vec<Cell> {
    vec![
        OWNER_OID.into(),
        OWNER.into(),
        true.into(), // rolsuper
        true.into(), // rolinherit
        true.into(), // rolcreaterole
        true.into(), // rolcreatedb
        true.into(), // rolcanlogin
        true.into(), // rolreplication
        true.into(), // rolbypassrls
        (-1).into(),
        Cell::Null,
        Cell::Null,
    ]
}

fn tables(catalog: &Catalog) -> Vec<Vec<Cell>> {
    let tables = catalog
        .relations
        .values()
        .filter(|relation| matches!(relation.kind, RelationKind::Table { .. }));
    let row = |relation: &Relation| {
        vec![
            relation.schema.as_str().into(),
            relation.name.as_str().into(),
            OWNER.into(),
            Cell::Null,
            key(relation).is_some().into(),
            false.into(),
            false.into(),
            false.into(),
        ]
    };
    tables.map(row).collect()
}

fn views(catalog: &Catalog, materialized: bool) -> Vec<Vec<Cell>> {
    let row = |relation: &Relation| {
        let name: [Cell; 3] =
            [relation.schema.as_str().into(), relation.name.as_str().into(), OWNER.into()];
        let definition = |query: &str| Cell::Text(format!("{query};"));
        match &relation.kind {
            RelationKind::View { query, .. } if !materialized => {
                Some(name.into_iter().chain([definition(query)]).collect())
            }
            RelationKind::MaterializedView { query, .. } if materialized => {
                let rest = [Cell::Null, false.into(), true.into(), definition(query)];
                Some(name.into_iter().chain(rest).collect())
            }
            _ => None,
        }
    };
    catalog.relations.values().filter_map(row).collect()
}

/// The types, with their names in `pg_type`, their categories, and whether each is its category's
/// preferred one.
static TYPES: &[(Type, &str, &str, bool)] = &[
    (Type::Boolean, "bool", "B", true),
    (Type::Bytea, "bytea", "U", false),
    (Type::InternalChar, "char", "Z", false),
    (Type::Name, "name", "S", false),
    (Type::BigInt, "int8", "N", false),
    (Type::SmallInt, "int2", "N", false),
    (Type::Int2Vector, "int2vector", "A", false),
    (Type::Integer, "int4", "N", false),
    (Type::Regproc, "regproc", "N", false),
    (Type::Text, "text", "S", true),
    (Type::Oid, "oid", "N", true),
    (Type::Xid, "xid", "U", false),
    (Type::OidVector, "oidvector", "A", false),
    (Type::Json, "json", "U", false),
    (Type::NodeTree, "pg_node_tree", "Z", false),
    (Type::Real, "float4", "N", false),
    (Type::Double, "float8", "N", true),
    (Type::Unknown, "unknown", "X", false),
    (Type::AclItem, "aclitem", "U", false),
    (Type::Varchar(None), "varchar", "S", false),
    (Type::Date, "date", "D", false),
    (Type::Time, "time", "D", false),
    (Type::Timestamp, "timestamp", "D", false),
    (Type::Timestamptz, "timestamptz", "D", true),
    (Type::Interval, "interval", "T", true),
    (Type::Numeric(None), "numeric", "N", false),
    (Type::Regclass, "regclass", "N", false),
    (Type::Regtype, "regtype", "N", false),
    (Type::Regrole, "regrole", "N", false),
    (Type::Regnamespace, "regnamespace", "N", false),
    (Type::Void, "void", "P", false),
    (Type::Uuid, "uuid", "U", false),
    (Type::Jsonb, "jsonb", "U", false),
];

/// The name in `pg_type`.
pub(super) fn type_name(kind: &Type) -> String {
    match kind {
        Type::Array(element) => format!("_{}", type_name(element)),
        Type::Char(_) => "bpchar".to_owned(),
        kind => TYPES
            .iter()
            .find(|(listed, ..)| listed.oid() == kind.oid())
            .map_or_else(|| "unknown".to_owned(), |(_, name, ..)| (*name).to_owned()),
    }
}

fn type_row((kind, name, category, preferred): &(Type, &str, &str, bool)) -> Vec<Cell> {
    vec![
        kind.oid().into(),
        (*name).into(),
        PG_CATALOG_OID.into(),
        OWNER_OID.into(),
        kind.length().into(),
        (kind.length() > 0 && kind.length() <= 8).into(),
        if *category == "P" { "p" } else { "b" }.into(),
        (*category).into(),
        (*preferred).into(),
        true.into(),
        ",".into(),
        0.into(), // typrelid
        0.into(), // typelem
        Type::Array(Box::new(kind.clone())).oid().into(),
        false.into(), // typnotnull
        0.into(),     // typbasetype
        (-1).into(),  // typtypmod
        collation(kind).into(),
        Cell::Null, // typdefault
    ]
}
