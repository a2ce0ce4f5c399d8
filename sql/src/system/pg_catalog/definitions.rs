//! PostgreSQL 15's catalogs: all its tables and views in `pg_catalog`, with their columns. Many have no
//! rows here, but what clients ask of them has an answer.

use std::sync::LazyLock;

use crate::Type;

/// A catalog.
pub(super) struct CatalogTable {
    pub(super) name: &'static str,
    /// PostgreSQL's.
    pub(super) oid: u32,
    pub(super) columns: Vec<(&'static str, Type)>,
}

/// PostgreSQL's views have OIDs from here on.
const FIRST_VIEW_OID: u32 = 12_000;

impl CatalogTable {
    pub(super) fn is_view(&self) -> bool {
        self.oid >= FIRST_VIEW_OID
    }
}

/// A line for each: name, OID, and `column:type` for each column.
const CATALOGS: &str = include_str!("definitions/catalogs.txt");

/// All catalogs.
pub(super) fn all() -> &'static [CatalogTable] {
    static ALL: LazyLock<Vec<CatalogTable>> = LazyLock::new(|| {
        let column = |column: &'static str| {
            let (name, kind) = column.split_once(':').expect("a column is a name and a type");
            (name, kind_of(kind))
        };
        let catalogs = CATALOGS.lines().map(|line| {
            let mut words = line.split(' ');
            let (name, oid) = (words.next(), words.next().and_then(|oid| oid.parse().ok()));
            CatalogTable {
                name: name.expect("a line has a name"),
                oid: oid.expect("a line has an OID"),
                columns: words.map(column).collect(),
            }
        });
        catalogs.collect()
    });
    &ALL
}

/// The catalog with this name.
pub(super) fn find(name: &str) -> Option<&'static CatalogTable> {
    all().iter().find(|catalog| catalog.name == name)
}

fn kind_of(name: &str) -> Type {
    match name {
        "bool" => Type::Boolean,
        "char" => Type::InternalChar,
        "name" => Type::Name,
        "int2" => Type::SmallInt,
        "int4" => Type::Integer,
        "int8" => Type::BigInt,
        "float4" => Type::Real,
        "oid" => Type::Oid,
        "xid" => Type::Xid,
        "int2vector" => Type::Int2Vector,
        "oidvector" => Type::OidVector,
        "node" => Type::NodeTree,
        "timestamptz" => Type::Timestamptz,
        "bytea" => Type::Bytea,
        "regtype" => Type::Regtype,
        "anyarray" => Type::AnyArray,
        "text[]" => Type::Array(Box::new(Type::Text)),
        "char[]" => Type::Array(Box::new(Type::InternalChar)),
        "acl[]" => Type::Array(Box::new(Type::AclItem)),
        "regproc" => Type::Regproc,
        "float8" => Type::Double,
        "numeric" => Type::Numeric(None),
        "interval" => Type::Interval,
        "regtype[]" => Type::Array(Box::new(Type::Regtype)),
        "name[]" => Type::Array(Box::new(Type::Name)),
        "boolean[]" => Type::Array(Box::new(Type::Boolean)),
        "double_precision[]" => Type::Array(Box::new(Type::Double)),
        "int2[]" => Type::Array(Box::new(Type::SmallInt)),
        "float4[]" => Type::Array(Box::new(Type::Real)),
        "oid[]" => Type::Array(Box::new(Type::Oid)),
        // Types that aren't here: their columns are always NULL.
        _ => Type::Text,
    }
}
