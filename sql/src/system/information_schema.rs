//! `information_schema`: the catalog as the SQL standard shows it. As in PostgreSQL, materialized
//! views don't appear.

mod columns;
mod constraint;

use super::table::{Cell, SystemTable};
use super::{functions, pg_catalog};
use crate::{
    Catalog, Column, ConstraintKind, DATABASE_NAME, Deferral, Generated, Relation, RelationKind,
    Type,
};

/// The columns of a row that say something.
type Row = Vec<(&'static str, Cell)>;

/// The table with this name.
pub(super) fn table(catalog: &Catalog, name: &str) -> Option<SystemTable> {
    let columns = columns::find(name)?;
    let rows: Vec<Row> = match name {
        "schemata" => schemata(catalog),
        "tables" => standard(catalog).map(table_row).collect(),
        "views" => standard(catalog).filter_map(view_row).collect(),
        "columns" => {
            let rows = standard(catalog).flat_map(|relation| {
                let columns = relation.columns.iter().enumerate();
                columns.map(move |(place, column)| column_row(catalog, relation, column, place))
            });
            rows.collect()
        }
        "table_constraints" => {
            let keys = pg_catalog::all_constraints(catalog).map(|(relation, constraint)| {
                let kind = match &constraint.kind {
                    ConstraintKind::PrimaryKey => "PRIMARY KEY",
                    ConstraintKind::ForeignKey { .. } => "FOREIGN KEY",
                    ConstraintKind::Check { .. } => "CHECK",
                    _ => "UNIQUE",
                };
                let mut row =
                    constraint_row(relation, constraint.name.clone(), kind, constraint.deferral);
                if kind == "UNIQUE" {
                    row.push(("nulls_distinct", yes_or_no(true)));
                }
                row
            });
            let checks = not_null(catalog).map(|(relation, place, _)| {
                constraint_row(
                    relation,
                    not_null_name(catalog, relation, place),
                    "CHECK",
                    Deferral::Never,
                )
            });
            keys.chain(checks).collect()
        }
        "check_constraints" => {
            let rows = not_null(catalog).map(|(relation, place, column)| {
                let mut row = of_constraint(relation, not_null_name(catalog, relation, place));
                let clause = format!("{} IS NOT NULL", crate::names::quote(&column.name));
                row.push(("check_clause", clause.into()));
                row
            });
            let checks =
                pg_catalog::all_constraints(catalog).filter_map(|(relation, constraint)| {
                    let ConstraintKind::Check { expression } = &constraint.kind else {
                        return None;
                    };
                    let mut row = of_constraint(relation, constraint.name.clone());
                    let clause = functions::expression::shown(expression, &relation.columns, false);
                    row.push(("check_clause", format!("({clause})").into()));
                    Some(row)
                });
            checks.chain(rows).collect()
        }
        "key_column_usage" => constraint::key_columns(catalog),
        "constraint_column_usage" => constraint::used_columns(catalog),
        "referential_constraints" => constraint::references(catalog),
        "sequences" => constraint::sequences(catalog),
        // What nobody can create has no rows.
        _ => vec![],
    };
    let rows = rows.into_iter().map(|mut row| {
        let mut cell = |name: &str| {
            let place = row.iter().position(|(known, _)| *known == name);
            place.map_or(Cell::Null, |place| row.swap_remove(place).1)
        };
        columns.iter().map(|(name, _)| cell(name)).collect()
    });
    let rows = rows.collect();
    Some(SystemTable { columns, rows })
}

fn standard(catalog: &Catalog) -> impl Iterator<Item = &Relation> {
    catalog
        .relations
        .values()
        .filter(|relation| !matches!(relation.kind, RelationKind::MaterializedView { .. }))
}

/// The columns that refuse NULL, with their places.
fn not_null(catalog: &Catalog) -> impl Iterator<Item = (&Relation, usize, &Column)> {
    catalog.relations.values().flat_map(|relation| {
        let columns = relation.columns.iter().enumerate();
        let columns = columns.filter(|(_, column)| column.not_null);
        columns.map(move |(place, column)| (relation, place, column))
    })
}

fn yes_or_no(value: bool) -> Cell {
    if value { "YES" } else { "NO" }.into()
}

fn schemata(catalog: &Catalog) -> Vec<Row> {
    let names = super::SCHEMAS.iter().copied().chain(catalog.schemas.keys().map(String::as_str));
    let row = |name: &str| {
        vec![
            ("catalog_name", DATABASE_NAME.into()),
            ("schema_name", name.into()),
            ("schema_owner", super::OWNER.into()),
        ]
    };
    names.map(row).collect()
}

fn named(relation: &Relation) -> Row {
    vec![
        ("table_catalog", DATABASE_NAME.into()),
        ("table_schema", relation.schema.as_str().into()),
        ("table_name", relation.name.as_str().into()),
    ]
}

fn is_table(relation: &Relation) -> bool {
    matches!(relation.kind, RelationKind::Table { .. })
}

fn table_row(relation: &Relation) -> Row {
    let is_table = is_table(relation);
    let mut row = named(relation);
    row.push(("table_type", if is_table { "BASE TABLE" } else { "VIEW" }.into()));
    // Views can't be written.
    row.push(("is_insertable_into", yes_or_no(is_table)));
    row.push(("is_typed", yes_or_no(false)));
    row
}

fn view_row(relation: &Relation) -> Option<Row> {
    let RelationKind::View { query, .. } = &relation.kind else { return None };
    let mut row = named(relation);
    row.push(("view_definition", functions::viewdef::definition(query, &relation.columns).into()));
    row.push(("check_option", "NONE".into()));
    let never = [
        "is_updatable",
        "is_insertable_into",
        "is_trigger_updatable",
        "is_trigger_deletable",
        "is_trigger_insertable_into",
    ];
    row.extend(never.map(|name| (name, yes_or_no(false))));
    Some(row)
}

/// What PostgreSQL calls the constraint that it shows NOT NULL as.
fn not_null_name(catalog: &Catalog, relation: &Relation, place: usize) -> String {
    let schema = pg_catalog::schema_oid(catalog, &relation.schema).unwrap_or(0);
    format!("{schema}_{}_{}_not_null", relation.id.0, place + 1)
}

fn of_constraint(relation: &Relation, name: String) -> Row {
    vec![
        ("constraint_catalog", DATABASE_NAME.into()),
        ("constraint_schema", relation.schema.as_str().into()),
        ("constraint_name", name.into()),
    ]
}

fn constraint_row(relation: &Relation, name: String, kind: &str, deferral: Deferral) -> Row {
    let mut row = of_constraint(relation, name);
    row.extend(named(relation));
    row.push(("constraint_type", kind.into()));
    row.push(("is_deferrable", yes_or_no(deferral != Deferral::Never)));
    row.push(("initially_deferred", yes_or_no(deferral == Deferral::Initially)));
    row.push(("enforced", yes_or_no(true)));
    row
}

fn column_row(catalog: &Catalog, relation: &Relation, column: &Column, place: usize) -> Row {
    let number = place as i64 + 1;
    let shown = pg_catalog::shown_default(catalog, relation, column);
    let (default, expression, identity) = match &column.generated {
        None => (shown, None, None),
        Some(Generated::Stored { .. }) => (None, shown, None),
        Some(Generated::Identity { sequence, always }) => {
            let sequence = catalog.sequences.get(sequence);
            (None, None, sequence.map(|sequence| (sequence, *always)))
        }
    };
    let mut row = named(relation);
    row.extend([
        ("column_name", column.name.as_str().into()),
        ("ordinal_position", Cell::Integer(number)),
        ("column_default", default.into()),
        ("is_nullable", yes_or_no(!column.not_null)),
        ("udt_catalog", DATABASE_NAME.into()),
        ("udt_schema", "pg_catalog".into()),
        ("udt_name", pg_catalog::type_name(&column.kind).into()),
        ("dtd_identifier", number.to_string().into()),
        ("is_self_referencing", yes_or_no(false)),
        ("is_identity", yes_or_no(identity.is_some())),
        ("identity_cycle", yes_or_no(identity.is_some_and(|(sequence, _)| sequence.cycle))),
        ("is_generated", if expression.is_some() { "ALWAYS" } else { "NEVER" }.into()),
        ("generation_expression", expression.into()),
        ("is_updatable", yes_or_no(is_table(relation))),
    ]);
    if let Some((sequence, always)) = identity {
        row.extend([
            ("identity_generation", if always { "ALWAYS" } else { "BY DEFAULT" }.into()),
            ("identity_start", sequence.start.to_string().into()),
            ("identity_increment", sequence.increment.to_string().into()),
            ("identity_maximum", sequence.max.to_string().into()),
            ("identity_minimum", sequence.min.to_string().into()),
        ]);
    }
    row.extend(type_of(&column.kind, column.second_digits));
    row
}

fn type_of(kind: &Type, second_digits: Option<u8>) -> Row {
    let name = match kind {
        Type::Array(_) => "ARRAY".to_owned(),
        Type::Varchar(_) => "character varying".to_owned(),
        Type::Char(_) => "character".to_owned(),
        Type::Numeric(_) => "numeric".to_owned(),
        kind => kind.to_string(),
    };
    let length = match kind {
        Type::Varchar(length) => *length,
        Type::Char(length) => *length,
        _ => None,
    };
    // A character has four bytes at most; texts of no length a gigabyte.
    let octets = match (kind, length) {
        (Type::Text | Type::Varchar(None), _) => Some(1 << 30),
        (_, length) => length.map(|length| i64::from(length) * 4),
    };
    // Binary precision for binary numbers, decimal for numeric.
    let (precision, radix, scale) = match kind {
        Type::SmallInt => (Some(16), Some(2), Some(0)),
        Type::Integer => (Some(32), Some(2), Some(0)),
        Type::BigInt => (Some(64), Some(2), Some(0)),
        Type::Real => (Some(24), Some(2), None),
        Type::Double => (Some(53), Some(2), None),
        Type::Numeric(Some((precision, scale))) => {
            (Some(i32::from(*precision)), Some(10), Some(i32::from(*scale)))
        }
        Type::Numeric(None) => (None, Some(10), None),
        _ => (None, None, None),
    };
    let moments = match kind {
        Type::Date => Some(0),
        Type::Time | Type::Timestamp | Type::Timestamptz | Type::Interval => {
            Some(second_digits.map_or(6, i32::from))
        }
        _ => None,
    };
    let mut row: Row = vec![
        ("data_type", name.into()),
        ("character_maximum_length", length.into()),
        ("character_octet_length", octets.into()),
        ("numeric_precision", precision.into()),
        ("numeric_precision_radix", radix.into()),
        ("numeric_scale", scale.into()),
        ("datetime_precision", moments.into()),
    ];
    if *kind == Type::Name {
        row.push(("collation_catalog", DATABASE_NAME.into()));
        row.push(("collation_schema", "pg_catalog".into()));
        row.push(("collation_name", "C".into()));
    }
    row
}
