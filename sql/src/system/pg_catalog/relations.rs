//! `pg_class`, `pg_attribute` and what else describes relations.

use super::definitions::{self, CatalogTable};
use super::types::{alignment, collation, is_by_value, storage};
use super::{BTREE_OID, HEAP_OID, OWNER_OID, PG_CATALOG_OID, schema_oid};
use crate::system::table::Cell;
use crate::{Catalog, Column, Relation, RelationKind, Type, names};

/// The OIDs of what isn't created by itself are made from the relation's, in ranges of their own.
const INDEX_OIDS: u32 = 1 << 30;
const CONSTRAINT_OIDS: u32 = 1 << 29;
const ROW_TYPE_OIDS: u32 = 1 << 28;
const RULE_OIDS: u32 = 1 << 27;

/// `pg_class`.
pub(super) fn classes(catalog: &Catalog) -> Vec<Vec<Cell>> {
    let relations = catalog.relations.values().flat_map(|relation| {
        let index = key(relation).map(|key| index_class(catalog, relation, key));
        std::iter::once(class(catalog, relation)).chain(index)
    });
    relations.chain(definitions::all().iter().map(catalog_class)).collect()
}

fn catalog_class(table: &CatalogTable) -> Vec<Cell> {
    class_row(ClassRow {
        oid: table.oid,
        name: table.name.to_owned(),
        namespace: PG_CATALOG_OID,
        row_type: 0,
        access: if table.is_view() { 0 } else { HEAP_OID },
        has_index: false,
        kind: if table.is_view() { "v" } else { "r" },
        columns: table.columns.len(),
        has_rules: table.is_view(),
        replica: "n",
    })
}

/// `pg_attribute`.
pub(super) fn attributes(catalog: &Catalog) -> Vec<Vec<Cell>> {
    let relations = catalog.relations.values().flat_map(|relation| {
        let columns = relation.columns.iter().enumerate();
        let columns = columns.map(|(place, column)| {
            attribute(relation.id.0, place, &column.name, Shown::of(column))
        });
        let of_index = key(relation).into_iter().flat_map(move |key| {
            let oid = INDEX_OIDS | relation.id.0;
            key.iter().enumerate().map(move |(place, column)| {
                let column = &relation.columns[*column];
                attribute(oid, place, &column.name, Shown::plain(&column.kind))
            })
        });
        columns.chain(of_index)
    });
    let catalogs = definitions::all().iter().flat_map(|table| {
        let columns = table.columns.iter().enumerate();
        columns.map(|(place, (name, kind))| attribute(table.oid, place, name, Shown::plain(kind)))
    });
    relations.chain(catalogs).collect()
}

/// `pg_attrdef`.
pub(super) fn defaults(catalog: &Catalog) -> Vec<Vec<Cell>> {
    let rows = catalog.relations.values().flat_map(|relation| {
        relation.columns.iter().zip(1u32..).filter_map(move |(column, number)| {
            let default = column.default.as_deref()?;
            // No relation has more columns.
            let oid = relation.id.0.wrapping_mul(1601).wrapping_add(number) | 1 << 31;
            Some(vec![oid.into(), relation.id.0.into(), number.into(), default.into()])
        })
    });
    rows.collect()
}

/// `pg_description`.
pub(super) fn descriptions(catalog: &Catalog) -> Vec<Vec<Cell>> {
    let of = |class: &str, oid: u32, place: u32, comment: &Option<String>| {
        let comment = comment.as_deref()?;
        let class = definitions::find(class)?.oid;
        Some(vec![oid.into(), class.into(), place.into(), comment.into()])
    };
    let schemas = catalog.schemas.values();
    let schemas = schemas.filter_map(|schema| of("pg_namespace", schema.oid, 0, &schema.comment));
    let relations = catalog.relations.values().flat_map(|relation| {
        let own = of("pg_class", relation.id.0, 0, &relation.comment);
        let columns = relation.columns.iter().zip(1..);
        let columns = columns.filter_map(move |(column, place)| {
            of("pg_class", relation.id.0, place, &column.comment)
        });
        own.into_iter().chain(columns)
    });
    schemas.chain(relations).collect()
}

/// `pg_index`.
pub(super) fn indexes(catalog: &Catalog) -> Vec<Vec<Cell>> {
    keyed(catalog).map(|(relation, key)| index(relation, key)).collect()
}

/// `pg_constraint`.
pub(super) fn constraints(catalog: &Catalog) -> Vec<Vec<Cell>> {
    keyed(catalog).map(|(relation, key)| constraint(catalog, relation, key)).collect()
}

/// `pg_rewrite`: what a view is made by.
pub(super) fn rules(catalog: &Catalog) -> Vec<Vec<Cell>> {
    let views = catalog.relations.values().filter(|relation| is_view(relation));
    let row = |relation: &Relation| {
        vec![
            rule_oid(relation).into(),
            "_RETURN".into(),
            relation.id.0.into(),
            "1".into(),
            "O".into(),
            true.into(),
        ]
    };
    views.map(row).collect()
}

/// The OID of a view's rule.
pub(super) fn rule_oid(view: &Relation) -> u32 {
    RULE_OIDS | view.id.0
}

/// The OID of what a schema has under a name: a relation, an index or a catalog.
pub(in crate::system) fn relation_oid(catalog: &Catalog, schema: &str, name: &str) -> Option<u32> {
    if schema == "pg_catalog" {
        return definitions::find(name).map(|table| table.oid);
    }
    if let Some(relation) = catalog.find(schema, name) {
        return Some(relation.id.0);
    }
    let mut indexes = keyed(catalog);
    let (relation, _) =
        indexes.find(|(relation, _)| relation.schema == schema && key_name(relation) == name)?;
    Some(INDEX_OIDS | relation.id.0)
}

/// Schema and name of what has an OID.
pub(in crate::system) fn relation_name(catalog: &Catalog, oid: u32) -> Option<(String, String)> {
    if let Some(table) = definitions::all().iter().find(|table| table.oid == oid) {
        return Some(("pg_catalog".to_owned(), table.name.to_owned()));
    }
    if let Some((relation, _)) = index_of(catalog, oid) {
        return Some((relation.schema.clone(), key_name(relation)));
    }
    let relation = catalog.relations.get(&stillframe_protocol::RelationId(oid))?;
    Some((relation.schema.clone(), relation.name.clone()))
}

/// `pg_indexes`.
pub(super) fn index_definitions(catalog: &Catalog) -> Vec<Vec<Cell>> {
    let row = |(relation, key): (&Relation, &[usize])| {
        vec![
            relation.schema.as_str().into(),
            relation.name.as_str().into(),
            key_name(relation).into(),
            Cell::Null,
            index_definition(relation, key).into(),
        ]
    };
    keyed(catalog).map(row).collect()
}

fn is_view(relation: &Relation) -> bool {
    !matches!(relation.kind, RelationKind::Table { .. })
}

pub(super) fn key(relation: &Relation) -> Option<&[usize]> {
    match &relation.kind {
        RelationKind::Table { key } if !key.is_empty() => Some(key),
        _ => None,
    }
}

fn keyed(catalog: &Catalog) -> impl Iterator<Item = (&Relation, &[usize])> {
    catalog.relations.values().filter_map(|relation| Some((relation, key(relation)?)))
}

/// The relation whose index has this OID, and its key.
pub(in crate::system) fn index_of(catalog: &Catalog, oid: u32) -> Option<(&Relation, &[usize])> {
    keyed(catalog).find(|(relation, _)| INDEX_OIDS | relation.id.0 == oid)
}

/// The relation whose key has this OID.
pub(in crate::system) fn constraint_of(
    catalog: &Catalog,
    oid: u32,
) -> Option<(&Relation, &[usize])> {
    keyed(catalog).find(|(relation, _)| CONSTRAINT_OIDS | relation.id.0 == oid)
}

fn key_name(relation: &Relation) -> String {
    format!("{}_pkey", relation.name)
}

/// The key's columns, as definitions list them.
pub(in crate::system) fn key_columns(relation: &Relation, key: &[usize]) -> String {
    let columns = key.iter().map(|place| names::quote(&relation.columns[*place].name));
    columns.collect::<Vec<_>>().join(", ")
}

/// The index's definition, as PostgreSQL writes it.
pub(in crate::system) fn index_definition(relation: &Relation, key: &[usize]) -> String {
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
    class_row(ClassRow {
        oid: relation.id.0,
        name: relation.name.clone(),
        namespace: schema_oid(catalog, &relation.schema).unwrap_or(0),
        row_type: ROW_TYPE_OIDS | relation.id.0,
        access,
        has_index: key(relation).is_some(),
        kind: kind(relation),
        columns: relation.columns.len(),
        has_rules: is_view(relation),
        replica,
    })
}

fn index_class(catalog: &Catalog, relation: &Relation, key: &[usize]) -> Vec<Cell> {
    class_row(ClassRow {
        oid: INDEX_OIDS | relation.id.0,
        name: key_name(relation),
        namespace: schema_oid(catalog, &relation.schema).unwrap_or(0),
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

/// What attributes differ in.
struct Shown<'a> {
    kind: &'a Type,
    not_null: bool,
    has_default: bool,
}

impl<'a> Shown<'a> {
    fn of(column: &'a Column) -> Self {
        let has_default = column.default.is_some();
        Self { kind: &column.kind, not_null: column.not_null, has_default }
    }

    fn plain(kind: &'a Type) -> Self {
        Self { kind, not_null: false, has_default: false }
    }
}

fn attribute(oid: u32, place: usize, name: &str, shown: Shown<'_>) -> Vec<Cell> {
    let Shown { kind, not_null, has_default } = shown;
    vec![
        oid.into(),
        name.into(),
        kind.oid().into(),
        (-1).into(), // attstattarget
        kind.length().into(),
        Cell::Integer(place as i64 + 1),
        i32::from(matches!(kind, Type::Array(_))).into(),
        (-1).into(), // attcacheoff
        kind.modifier().into(),
        is_by_value(kind).into(),
        alignment(kind).into(),
        storage(kind).into(),
        "".into(), // attcompression
        not_null.into(),
        has_default.into(),
        false.into(), // atthasmissing
        "".into(),    // attidentity
        "".into(),    // attgenerated
        false.into(), // attisdropped
        true.into(),  // attislocal
        0.into(),     // attinhcount
        collation(kind).into(),
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
    ]
}

fn index(relation: &Relation, key: &[usize]) -> Vec<Cell> {
    let places =
        |each: &dyn Fn(usize) -> i64| Cell::List(key.iter().map(|place| each(*place)).collect());
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
        places(&|place| place as i64 + 1),
        places(&|place| collation(&relation.columns[place].kind).into()),
        places(&|_| 0),
        places(&|_| 0),
        Cell::Null,
        Cell::Null,
    ]
}

fn constraint(catalog: &Catalog, relation: &Relation, key: &[usize]) -> Vec<Cell> {
    vec![
        (CONSTRAINT_OIDS | relation.id.0).into(),
        key_name(relation).into(),
        schema_oid(catalog, &relation.schema).unwrap_or(0).into(),
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
        Cell::List(key.iter().map(|place| *place as i64 + 1).collect()),
        Cell::Null, // confkey
    ]
}
