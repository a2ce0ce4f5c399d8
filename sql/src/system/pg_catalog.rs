//! `pg_catalog`: the catalog as PostgreSQL 15 shows it, as far as clients ask.

mod definitions;
mod dependencies;
mod keys;
mod procedures;
mod relations;
mod roles;
mod sequences;
mod sessions;
mod types;

pub(crate) use dependencies::read_by;
pub(super) use keys::{all as all_constraints, constraint_definition, constraint_of, index_of};
pub(super) use procedures::{procedure_name, procedure_oid};
pub(super) use relations::{relation_name, relation_oid, shown_default};
pub(super) use roles::{name as role_name, oid as role_oid};
pub(super) use types::type_name;

use super::table::{Cell, SystemTable};
use super::{OWNER, OWNER_OID, functions};
use crate::query::QueryContext;
use crate::{Catalog, DATABASE_NAME, Relation, RelationKind};

/// PostgreSQL's own OIDs.
const PG_CATALOG_OID: u32 = 11;
const INFORMATION_SCHEMA_OID: u32 = 13_183;
const STILLFRAME_OID: u32 = 13_184;
const HEAP_OID: u32 = 2;
const BTREE_OID: u32 = 403;
const DATABASE_OID: u32 = 5;
const DEFAULT_COLLATION_OID: u32 = 100;
const C_COLLATION_OID: u32 = 950;
/// The number of the encoding.
pub(super) const UTF8: i64 = 6;

/// The table with this name.
pub(super) fn table(context: &QueryContext, name: &str) -> Option<SystemTable> {
    let catalog = &*context.catalog;
    let mut table = SystemTable::empty(definitions::find(name)?.columns.clone());
    table.rows = match name {
        "pg_namespace" => namespaces(catalog)
            .map(|(oid, name)| vec![oid.into(), name.into(), OWNER_OID.into(), Cell::Null])
            .collect(),
        "pg_class" => relations::classes(catalog),
        "pg_attribute" => relations::attributes(catalog),
        "pg_index" => relations::indexes(catalog),
        "pg_constraint" => keys::constraints(catalog),
        "pg_sequence" => sequences::rows(catalog),
        "pg_sequences" => sequences::shown(context),
        "pg_attrdef" => relations::defaults(catalog),
        "pg_description" => relations::descriptions(catalog),
        "pg_rewrite" => relations::rules(catalog),
        "pg_depend" => dependencies::rows(catalog),
        "pg_type" => types::rows(),
        "pg_settings" => settings(context),
        "pg_tablespace" => [(1663, "pg_default"), (1664, "pg_global")]
            .map(|(oid, name)| {
                vec![oid.into(), name.into(), OWNER_OID.into(), Cell::Null, Cell::Null]
            })
            .into(),
        "pg_am" => [
            (HEAP_OID, "heap", "heap_tableam_handler", "t"),
            (BTREE_OID, "btree", "bthandler", "i"),
        ]
        .map(|(oid, name, handler, kind)| {
            vec![oid.into(), name.into(), procedure_oid(handler).into(), kind.into()]
        })
        .into(),
        "pg_database" => vec![database()],
        "pg_roles" | "pg_authid" | "pg_user" | "pg_shadow" => roles::rows(context, name),
        "pg_collation" => collations(),
        "pg_prepared_statements" => sessions::prepared_statements(context),
        "pg_cursors" => sessions::cursors(context),
        "pg_stat_activity" => sessions::activities(context),
        "pg_tables" => tables(catalog),
        "pg_views" | "pg_matviews" => views(catalog, name == "pg_matviews"),
        "pg_indexes" => relations::index_definitions(catalog),
        "pg_stat_user_tables" => statistics(catalog),
        // What nobody can create has no rows.
        _ => vec![],
    };
    // What comes after the columns that say something says nothing.
    let width = table.columns.len();
    table.rows.iter_mut().for_each(|row| row.resize(width, Cell::Null));
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

/// A schema's OID.
pub(super) fn schema_oid(catalog: &Catalog, schema: &str) -> Option<u32> {
    namespaces(catalog).find(|(_, name)| *name == schema).map(|(oid, _)| oid)
}

/// The schema with an OID.
pub(super) fn schema_name(catalog: &Catalog, oid: u32) -> Option<&str> {
    namespaces(catalog).find(|(known, _)| *known == oid).map(|(_, name)| name)
}

fn settings(context: &QueryContext) -> Vec<Vec<Cell>> {
    let all = context.settings.all().into_iter();
    let row = |(name, value, description): (&'static str, &str, &'static str)| {
        vec![
            name.into(),
            value.into(),
            Cell::Null,
            Cell::Null,
            description.into(),
            Cell::Null,
            "user".into(),
        ]
    };
    all.map(row).collect()
}

fn database() -> Vec<Cell> {
    vec![
        DATABASE_OID.into(),
        DATABASE_NAME.into(),
        OWNER_OID.into(),
        Cell::Integer(UTF8),
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

fn collations() -> Vec<Vec<Cell>> {
    let all = [
        (DEFAULT_COLLATION_OID, "default", "d", None),
        (C_COLLATION_OID, "C", "c", Some("C")),
        (951, "POSIX", "c", Some("POSIX")),
    ];
    all.map(|(oid, name, provider, locale)| {
        vec![
            oid.into(),
            name.into(),
            PG_CATALOG_OID.into(),
            OWNER_OID.into(),
            provider.into(),
            true.into(),
            (-1).into(),
            locale.into(),
            locale.into(),
        ]
    })
    .into()
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
            keys::Index::of(relation).next().is_some().into(),
            false.into(),
            false.into(),
            false.into(),
        ]
    };
    tables.map(row).collect()
}

/// The tables; nobody counts what is done to them.
fn statistics(catalog: &Catalog) -> Vec<Vec<Cell>> {
    let tables = catalog.relations.values().filter(|relation| relation.is_stored());
    let row = |relation: &Relation| {
        vec![relation.id.0.into(), relation.schema.as_str().into(), relation.name.as_str().into()]
    };
    tables.map(row).collect()
}

fn views(catalog: &Catalog, materialized: bool) -> Vec<Vec<Cell>> {
    let row = |relation: &Relation| {
        let name: [Cell; 3] =
            [relation.schema.as_str().into(), relation.name.as_str().into(), OWNER.into()];
        let definition =
            |query: &str| Cell::Text(functions::viewdef::definition(query, &relation.columns));
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
