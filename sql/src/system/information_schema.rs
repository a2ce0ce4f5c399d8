//! `information_schema`: the catalog as the SQL standard shows it. As in PostgreSQL, materialized
//! views don't appear.

use super::table::{Cell, SystemTable};
use crate::{Catalog, Column, DATABASE_NAME, Relation, RelationKind, Type};

/// The table with this name.
pub(super) fn table(catalog: &Catalog, name: &str) -> Option<SystemTable> {
    Some(match name {
        "schemata" => SystemTable {
            columns: text(&["catalog_name", "schema_name", "schema_owner"]),
            rows: catalog
                .schemas
                .keys()
                .map(|schema| {
                    vec![DATABASE_NAME.into(), schema.as_str().into(), super::OWNER.into()]
                })
                .collect(),
        },
        "tables" => SystemTable {
            columns: text(&["table_catalog", "table_schema", "table_name", "table_type"]),
            rows: standard(catalog)
                .map(|relation| {
                    let kind = match relation.kind {
                        RelationKind::Table { .. } => "BASE TABLE",
                        RelationKind::View { .. } | RelationKind::MaterializedView { .. } => "VIEW",
                    };
                    let mut row = named(relation);
                    row.push(kind.into());
                    row
                })
                .collect(),
        },
        "views" => SystemTable {
            columns: text(&["table_catalog", "table_schema", "table_name", "view_definition"]),
            rows: standard(catalog)
                .filter_map(|relation| match &relation.kind {
                    RelationKind::View { query, .. } => {
                        let mut row = named(relation);
                        row.push(query.as_str().into());
                        Some(row)
                    }
                    RelationKind::Table { .. } | RelationKind::MaterializedView { .. } => None,
                })
                .collect(),
        },
        "columns" => columns(catalog),
        "table_constraints" => SystemTable {
            columns: text(&[
                "constraint_catalog",
                "constraint_schema",
                "constraint_name",
                "table_catalog",
                "table_schema",
                "table_name",
                "constraint_type",
            ]),
            rows: keys(catalog)
                .map(|(relation, _)| {
                    let mut row = constraint(relation);
                    row.extend(named(relation));
                    row.push("PRIMARY KEY".into());
                    row
                })
                .collect(),
        },
        "key_column_usage" => {
            let mut columns = text(&[
                "constraint_catalog",
                "constraint_schema",
                "constraint_name",
                "table_catalog",
                "table_schema",
                "table_name",
                "column_name",
            ]);
            columns.push(("ordinal_position", Type::Integer));
            let rows = keys(catalog).flat_map(|(relation, key)| {
                key.iter().enumerate().map(|(place, column)| {
                    let mut row = constraint(relation);
                    row.extend(named(relation));
                    row.push(relation.columns[*column].name.as_str().into());
                    row.push(Cell::Integer(place as i64 + 1));
                    row
                })
            });
            SystemTable { columns, rows: rows.collect() }
        }
        _ => return None,
    })
}

fn text(names: &[&'static str]) -> Vec<(&'static str, Type)> {
    names.iter().map(|name| (*name, Type::Name)).collect()
}

fn standard(catalog: &Catalog) -> impl Iterator<Item = &Relation> {
    catalog
        .relations
        .values()
        .filter(|relation| !matches!(relation.kind, RelationKind::MaterializedView { .. }))
}

fn keys(catalog: &Catalog) -> impl Iterator<Item = (&Relation, &Vec<usize>)> {
    catalog.relations.values().filter_map(|relation| match &relation.kind {
        RelationKind::Table { key } if !key.is_empty() => Some((relation, key)),
        _ => None,
    })
}

fn named(relation: &Relation) -> Vec<Cell> {
    vec![DATABASE_NAME.into(), relation.schema.as_str().into(), relation.name.as_str().into()]
}

fn constraint(relation: &Relation) -> Vec<Cell> {
    vec![
        DATABASE_NAME.into(),
        relation.schema.as_str().into(),
        format!("{}_pkey", relation.name).into(),
    ]
}

fn columns(catalog: &Catalog) -> SystemTable {
    let columns = vec![
        ("table_catalog", Type::Name),
        ("table_schema", Type::Name),
        ("table_name", Type::Name),
        ("column_name", Type::Name),
        ("ordinal_position", Type::Integer),
        ("column_default", Type::Text),
        ("is_nullable", Type::Varchar(Some(3))),
        ("data_type", Type::Text),
        ("character_maximum_length", Type::Integer),
        ("numeric_precision", Type::Integer),
        ("numeric_scale", Type::Integer),
        ("datetime_precision", Type::Integer),
        ("udt_schema", Type::Name),
        ("udt_name", Type::Name),
    ];
    let rows = standard(catalog).flat_map(|relation| {
        relation.columns.iter().enumerate().map(move |(place, column)| {
            let mut row = named(relation);
            row.extend(described(column, place));
            row
        })
    });
    SystemTable { columns, rows: rows.collect() }
}

fn described(column: &Column, place: usize) -> Vec<Cell> {
    let length = match column.kind {
        Type::Varchar(length) => length,
        Type::Char(length) => Some(length),
        _ => None,
    };
    // Binary precision for binary numbers, decimal for numeric.
    let (precision, scale) = match column.kind {
        Type::SmallInt => (Some(16), Some(0)),
        Type::Integer => (Some(32), Some(0)),
        Type::BigInt => (Some(64), Some(0)),
        Type::Real => (Some(24), None),
        Type::Double => (Some(53), None),
        Type::Numeric(Some((precision, scale))) => (Some(precision.into()), Some(scale.into())),
        _ => (None, None),
    };
    let moments = match column.kind {
        Type::Date => Some(0),
        Type::Time | Type::Timestamp | Type::Timestamptz | Type::Interval => Some(6),
        _ => None,
    };
    let kind = match &column.kind {
        Type::Array(_) => "ARRAY".to_owned(),
        Type::Varchar(_) => "character varying".to_owned(),
        Type::Char(_) => "character".to_owned(),
        Type::Numeric(_) => "numeric".to_owned(),
        kind => kind.to_string(),
    };
    vec![
        column.name.as_str().into(),
        Cell::Integer(place as i64 + 1),
        Cell::Null,
        if column.not_null { "NO" } else { "YES" }.into(),
        kind.into(),
        length.into(),
        precision.map(|precision: i32| precision).into(),
        scale.map(|scale: i32| scale).into(),
        moments.map(|precision: i32| precision).into(),
        "pg_catalog".into(),
        super::pg_catalog::type_name(&column.kind).into(),
    ]
}
