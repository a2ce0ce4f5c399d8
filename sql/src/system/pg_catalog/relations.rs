//! `pg_class`, `pg_attribute` and what else describes relations.

use super::super::functions::expression;
use super::definitions::{self, CatalogTable};
use super::keys::{Index, checks, has_foreign_keys, index_of};
use super::types::{alignment, collation, is_by_value, storage};
use super::{BTREE_OID, HEAP_OID, OWNER_OID, PG_CATALOG_OID, schema_oid};
use crate::system::table::Cell;
use crate::{Catalog, Column, Generated, Relation, RelationKind, Type, names};

/// The OIDs of what isn't created by itself are made from the relation's, in ranges of their own.
const ROW_TYPE_OIDS: u32 = 1 << 28;
const RULE_OIDS: u32 = 1 << 27;

/// `pg_class`.
pub(super) fn classes(catalog: &Catalog) -> Vec<Vec<Cell>> {
    let relations = catalog.relations.values().flat_map(|relation| {
        let indexes = Index::of(relation).map(|index| index_class(catalog, &index));
        std::iter::once(class(catalog, relation)).chain(indexes)
    });
    let sequences = catalog.sequences.iter().map(|(oid, sequence)| {
        class_row(ClassRow {
            oid: *oid,
            name: sequence.name.clone(),
            namespace: schema_oid(catalog, &sequence.schema).unwrap_or(0),
            row_type: 0,
            access: 0,
            has_index: false,
            kind: "S",
            columns: 3,
            checks: 0,
            has_rules: false,
            has_triggers: false,
            replica: "n",
        })
    });
    relations.chain(sequences).chain(definitions::all().iter().map(catalog_class)).collect()
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
        checks: 0,
        has_rules: table.is_view(),
        has_triggers: false,
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
        let of_index = Index::of(relation).flat_map(move |index| {
            index.columns.iter().enumerate().map(move |(place, column)| {
                let column = &relation.columns[*column];
                attribute(index.oid(), place, &column.name, Shown::plain(&column.kind))
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
    let rows = catalog.relations.values().flat_map(move |relation| {
        relation.columns.iter().zip(1u32..).filter_map(move |(column, number)| {
            let default = shown_default(catalog, relation, column)?;
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

/// What a column has where a row gives it nothing, as PostgreSQL writes it.
pub(in crate::system) fn shown_default(
    catalog: &Catalog,
    relation: &Relation,
    column: &Column,
) -> Option<String> {
    if let Some(Generated::Stored { expression }) = &column.generated {
        return Some(expression::shown(expression, &relation.columns, false));
    }
    let mut text = column.default.clone()?;
    // Sequences are kept by their OIDs.
    for (oid, sequence) in &catalog.sequences {
        let schema = match sequence.schema.as_str() {
            "public" => String::new(),
            schema => format!("{}.", names::quote(schema)),
        };
        let name = format!("{schema}{}", names::quote(&sequence.name)).replace('\'', "''");
        text = text
            .replace(&format!("nextval({oid}::regclass)"), &format!("nextval('{name}'::regclass)"));
    }
    Some(text)
}

/// `pg_index`.
pub(super) fn indexes(catalog: &Catalog) -> Vec<Vec<Cell>> {
    Index::all(catalog).map(|index| index.row()).collect()
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
    if let Some((oid, _)) = catalog.find_sequence(schema, name) {
        return Some(oid);
    }
    let mut indexes = Index::all(catalog);
    let index = indexes.find(|index| index.relation.schema == schema && index.name() == name)?;
    Some(index.oid())
}

/// Schema and name of what has an OID.
pub(in crate::system) fn relation_name(catalog: &Catalog, oid: u32) -> Option<(String, String)> {
    if let Some(table) = definitions::all().iter().find(|table| table.oid == oid) {
        return Some(("pg_catalog".to_owned(), table.name.to_owned()));
    }
    if let Some(index) = index_of(catalog, oid) {
        return Some((index.relation.schema.clone(), index.name().to_owned()));
    }
    if let Some(sequence) = catalog.sequences.get(&oid) {
        return Some((sequence.schema.clone(), sequence.name.clone()));
    }
    let relation = catalog.relations.get(&stillframe_protocol::RelationId(oid))?;
    Some((relation.schema.clone(), relation.name.clone()))
}

/// `pg_indexes`.
pub(super) fn index_definitions(catalog: &Catalog) -> Vec<Vec<Cell>> {
    let row = |index: Index<'_>| {
        vec![
            index.relation.schema.as_str().into(),
            index.relation.name.as_str().into(),
            index.name().into(),
            Cell::Null,
            index.definition().into(),
        ]
    };
    Index::all(catalog).map(row).collect()
}

fn is_view(relation: &Relation) -> bool {
    !matches!(relation.kind, RelationKind::Table { .. })
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
        has_index: Index::of(relation).next().is_some(),
        kind: kind(relation),
        columns: relation.columns.len(),
        checks: checks(relation),
        has_rules: is_view(relation),
        has_triggers: has_foreign_keys(catalog, relation),
        replica,
    })
}

fn index_class(catalog: &Catalog, index: &Index<'_>) -> Vec<Cell> {
    class_row(ClassRow {
        oid: index.oid(),
        name: index.name().to_owned(),
        namespace: schema_oid(catalog, &index.relation.schema).unwrap_or(0),
        row_type: 0,
        access: BTREE_OID,
        has_index: false,
        kind: "i",
        columns: index.columns.len(),
        checks: 0,
        has_rules: false,
        has_triggers: false,
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
    checks: usize,
    has_rules: bool,
    has_triggers: bool,
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
        Cell::Integer(row.checks as i64),
        row.has_rules.into(),
        row.has_triggers.into(),
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
    modifier: i32,
    not_null: bool,
    has_default: bool,
    identity: &'static str,
    generated: &'static str,
}

impl<'a> Shown<'a> {
    fn of(column: &'a Column) -> Self {
        let (identity, generated) = match &column.generated {
            Some(Generated::Identity { always: true, .. }) => ("a", ""),
            Some(Generated::Identity { .. }) => ("d", ""),
            Some(Generated::Stored { .. }) => ("", "s"),
            None => ("", ""),
        };
        let has_default = column.default.is_some() || generated == "s";
        let modifier = column.second_digits.map_or(column.kind.modifier(), i32::from);
        let (kind, not_null) = (&column.kind, column.not_null);
        Self { kind, modifier, not_null, has_default, identity, generated }
    }

    fn plain(kind: &'a Type) -> Self {
        let modifier = kind.modifier();
        Self { kind, modifier, not_null: false, has_default: false, identity: "", generated: "" }
    }
}

fn attribute(oid: u32, place: usize, name: &str, shown: Shown<'_>) -> Vec<Cell> {
    let Shown { kind, modifier, not_null, has_default, identity, generated } = shown;
    vec![
        oid.into(),
        name.into(),
        kind.oid().into(),
        (-1).into(), // attstattarget
        kind.length().into(),
        Cell::Integer(place as i64 + 1),
        i32::from(matches!(kind, Type::Array(_))).into(),
        (-1).into(), // attcacheoff
        modifier.into(),
        is_by_value(kind).into(),
        alignment(kind).into(),
        storage(kind).into(),
        "".into(), // attcompression
        not_null.into(),
        has_default.into(),
        false.into(), // atthasmissing
        identity.into(),
        generated.into(),
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
