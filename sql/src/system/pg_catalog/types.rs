//! `pg_type`.

use super::procedures::{of_type, procedure_oid};
use super::{OWNER_OID, PG_CATALOG_OID};
use crate::Type;
use crate::system::table::Cell;

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
    (Type::Char(None), "bpchar", "S", false),
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
    (Type::AnyArray, "anyarray", "P", false),
    (Type::Void, "void", "P", false),
    (Type::Uuid, "uuid", "U", false),
    (Type::Jsonb, "jsonb", "U", false),
];

/// The name in `pg_type`.
pub(in crate::system) fn type_name(kind: &Type) -> String {
    match kind {
        Type::Array(element) => format!("_{}", type_name(element)),
        Type::Char(_) => "bpchar".to_owned(),
        kind => TYPES
            .iter()
            .find(|(listed, ..)| listed.oid() == kind.oid())
            .map_or_else(|| "unknown".to_owned(), |(_, name, ..)| (*name).to_owned()),
    }
}

/// The collation of values of a type.
pub(super) fn collation(kind: &Type) -> u32 {
    match kind {
        Type::Text | Type::Varchar(_) | Type::Char(_) => super::DEFAULT_COLLATION_OID,
        Type::Name => super::C_COLLATION_OID,
        Type::Array(element) => collation(element),
        _ => 0,
    }
}

/// How values of a type are aligned.
pub(super) fn alignment(kind: &Type) -> &'static str {
    match kind {
        Type::Name | Type::Uuid | Type::Unknown => "c",
        Type::Interval => "d",
        Type::Array(element) => match alignment(element) {
            "d" => "d",
            _ => "i",
        },
        kind => match kind.length() {
            1 => "c",
            2 => "s",
            8 => "d",
            _ => "i",
        },
    }
}

/// How values of a type are stored.
pub(super) fn storage(kind: &Type) -> &'static str {
    match kind {
        Type::Numeric(_) => "m",
        Type::Int2Vector | Type::OidVector => "p",
        kind if kind.length() == -1 => "x",
        _ => "p",
    }
}

/// Whether values of a type are passed as they are.
pub(super) fn is_by_value(kind: &Type) -> bool {
    (1..=8).contains(&kind.length())
}

/// Each type and its array.
pub(super) fn rows() -> Vec<Vec<Cell>> {
    let rows = TYPES.iter().flat_map(|(kind, name, category, is_preferred)| {
        let array = Type::Array(Box::new(kind.clone()));
        let has_array = !is_pseudo(category) && *kind != Type::NodeTree;
        let array_oid = if has_array { array.oid() } else { 0 };
        let own = row(kind, name, category, *is_preferred, 0, array_oid);
        let array_name = format!("_{name}");
        let array = has_array.then(|| row(&array, &array_name, "A", false, kind.oid(), 0));
        std::iter::once(own).chain(array)
    });
    rows.collect()
}

/// Whether no column can be of a type of this category.
fn is_pseudo(category: &str) -> bool {
    matches!(category, "P" | "X")
}

fn row(
    kind: &Type,
    name: &str,
    category: &str,
    is_preferred: bool,
    element: u32,
    array: u32,
) -> Vec<Cell> {
    let is_array = category == "A" && name.starts_with('_');
    let functions = if is_array { "array" } else { name };
    let kind_name = name.trim_start_matches('_');
    let subscript = match category {
        "A" => procedure_oid("array_subscript_handler"),
        _ if name == "name" => procedure_oid("raw_array_subscript_handler"),
        _ if name == "jsonb" => procedure_oid("jsonb_subscript_handler"),
        _ => 0,
    };
    vec![
        kind.oid().into(),
        name.into(),
        PG_CATALOG_OID.into(),
        OWNER_OID.into(),
        kind.length().into(),
        is_by_value(kind).into(),
        if is_pseudo(category) { "p" } else { "b" }.into(),
        category.into(),
        is_preferred.into(),
        true.into(),
        ",".into(),
        0.into(), // typrelid
        subscript.into(),
        element.into(),
        array.into(),
        of_type(functions, "in").into(),
        of_type(functions, "out").into(),
        of_type(functions, "recv").into(),
        of_type(functions, "send").into(),
        of_type(kind_name, "typmodin").into(),
        of_type(kind_name, "typmodout").into(),
        if is_array { procedure_oid("array_typanalyze") } else { 0 }.into(),
        alignment(kind).into(),
        storage(kind).into(),
        false.into(), // typnotnull
        0.into(),     // typbasetype
        (-1).into(),  // typtypmod
        0.into(),     // typndims
        collation(kind).into(),
        Cell::Null, // typdefaultbin
    ]
}
