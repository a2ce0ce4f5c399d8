//! The names of types, as `format_type` writes them and as casts carry them.

use std::fmt;
use std::str::FromStr;

use crate::{Error, SqlState, Type};

/// The names that PostgreSQL shows, by type without modifier.
const SHOWN: [(Type, &str); 34] = [
    (Type::Boolean, "boolean"),
    (Type::SmallInt, "smallint"),
    (Type::Integer, "integer"),
    (Type::BigInt, "bigint"),
    (Type::Real, "real"),
    (Type::Double, "double precision"),
    (Type::Numeric(None), "numeric"),
    (Type::Text, "text"),
    (Type::Varchar(None), "character varying"),
    (Type::Char(None), "bpchar"),
    (Type::Name, "name"),
    (Type::InternalChar, "\"char\""),
    (Type::Bytea, "bytea"),
    (Type::Date, "date"),
    (Type::Time, "time without time zone"),
    (Type::Timestamp, "timestamp without time zone"),
    (Type::Timestamptz, "timestamp with time zone"),
    (Type::Interval, "interval"),
    (Type::Uuid, "uuid"),
    (Type::Json, "json"),
    (Type::Jsonb, "jsonb"),
    (Type::Oid, "oid"),
    (Type::Regclass, "regclass"),
    (Type::Regtype, "regtype"),
    (Type::Regproc, "regproc"),
    (Type::Regnamespace, "regnamespace"),
    (Type::Regrole, "regrole"),
    (Type::Int2Vector, "int2vector"),
    (Type::OidVector, "oidvector"),
    (Type::AclItem, "aclitem"),
    (Type::NodeTree, "pg_node_tree"),
    (Type::Xid, "xid"),
    (Type::AnyArray, "anyarray"),
    (Type::Void, "void"),
];

/// Other names that casts may carry.
const ALIASES: [(&str, Type); 12] = [
    ("bool", Type::Boolean),
    ("int2", Type::SmallInt),
    ("int", Type::Integer),
    ("int4", Type::Integer),
    ("int8", Type::BigInt),
    ("float4", Type::Real),
    ("float8", Type::Double),
    ("varchar", Type::Varchar(None)),
    ("time", Type::Time),
    ("timestamp", Type::Timestamp),
    ("timestamptz", Type::Timestamptz),
    ("unknown", Type::Unknown),
];

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Numeric(Some((precision, scale))) => write!(f, "numeric({precision},{scale})"),
            Self::Varchar(Some(characters)) => write!(f, "character varying({characters})"),
            Self::Char(Some(characters)) => write!(f, "character({characters})"),
            Self::Array(element) => write!(f, "{element}[]"),
            Self::Unknown => f.write_str("unknown"),
            other => {
                let shown = SHOWN.iter().find(|(kind, _)| kind == other);
                f.write_str(shown.map_or("???", |(_, name)| name))
            }
        }
    }
}

impl FromStr for Type {
    type Err = Error;

    /// Reads a name as [`fmt::Display`] writes it, and PostgreSQL's short names. 42704 for others.
    fn from_str(name: &str) -> Result<Self, Error> {
        find(name.trim()).ok_or_else(|| {
            let message = format!("type \"{name}\" does not exist");
            Error::new(SqlState::UNDEFINED_OBJECT, message)
        })
    }
}

fn find(name: &str) -> Option<Type> {
    if let Some(element) = name.strip_suffix("[]") {
        return Some(Type::Array(Box::new(find(element)?)));
    }
    if let Some((base, rest)) = name.split_once('(') {
        let modifiers = rest.strip_suffix(')')?;
        return match base {
            "numeric" => {
                let (precision, scale) = modifiers.split_once(',')?;
                Some(Type::Numeric(Some((precision.parse().ok()?, scale.parse().ok()?))))
            }
            "character varying" | "varchar" => Some(Type::Varchar(Some(modifiers.parse().ok()?))),
            "character" | "char" | "bpchar" => Some(Type::Char(Some(modifiers.parse().ok()?))),
            _ => None,
        };
    }
    let shown = SHOWN.iter().find(|(_, shown)| *shown == name).map(|(kind, _)| kind.clone());
    shown.or_else(|| ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, kind)| kind.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back() {
        let modified = [
            Type::Numeric(Some((10, 2))),
            Type::Varchar(Some(3)),
            Type::Char(Some(3)),
            Type::Array(Box::new(Type::Varchar(Some(3)))),
            Type::Unknown,
        ];
        for kind in SHOWN.iter().map(|(kind, _)| kind).chain(&modified) {
            assert_eq!(&kind.to_string().parse::<Type>().unwrap(), kind);
        }
        assert_eq!("nothing".parse::<Type>().unwrap_err().state, SqlState::UNDEFINED_OBJECT);
    }
}
