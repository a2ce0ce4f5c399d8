//! The SQL types, as PostgreSQL knows them, and the Arrow types that carry them.

mod name;
mod syntax;

pub(crate) use syntax::{Types, second_digits};

use std::collections::HashMap;

use arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};
use serde::{Deserialize, Serialize};

/// A SQL type with its modifier.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each name is PostgreSQL's")]
pub enum Type {
    Boolean,
    SmallInt,
    Integer,
    BigInt,
    Real,
    Double,
    /// Precision and scale; without them each value has its own.
    Numeric(Option<(u8, i8)>),
    Text,
    /// Characters at most.
    Varchar(Option<u32>),
    /// Characters, padded with blanks when shown and carried without them; `bpchar` without a
    /// length keeps them as short as they are.
    Char(Option<u32>),
    Name,
    /// PostgreSQL's one-byte `"char"`.
    InternalChar,
    Bytea,
    Date,
    Time,
    Timestamp,
    Timestamptz,
    Interval,
    Uuid,
    Json,
    Jsonb,
    Oid,
    Regclass,
    Regtype,
    Regproc,
    Regnamespace,
    Regrole,
    /// `smallint`s between blanks, in catalogs.
    Int2Vector,
    /// `oid`s between blanks, in catalogs.
    OidVector,
    AclItem,
    /// PostgreSQL's `pg_node_tree`.
    NodeTree,
    Xid,
    /// An array of some type, in catalogs.
    AnyArray,
    Array(Box<Type>),
    /// A literal or parameter whose type nothing has settled.
    Unknown,
    Void,
}

impl Type {
    /// The OID in `pg_type`.
    pub fn oid(&self) -> u32 {
        match self {
            Self::Boolean => 16,
            Self::Bytea => 17,
            Self::InternalChar => 18,
            Self::Name => 19,
            Self::BigInt => 20,
            Self::SmallInt => 21,
            Self::Int2Vector => 22,
            Self::Integer => 23,
            Self::Regproc => 24,
            Self::Text => 25,
            Self::Oid => 26,
            Self::Xid => 28,
            Self::OidVector => 30,
            Self::Json => 114,
            Self::NodeTree => 194,
            Self::Real => 700,
            Self::Double => 701,
            Self::Unknown => 705,
            Self::AclItem => 1033,
            Self::Char(_) => 1042,
            Self::Varchar(_) => 1043,
            Self::Date => 1082,
            Self::Time => 1083,
            Self::Timestamp => 1114,
            Self::Timestamptz => 1184,
            Self::Interval => 1186,
            Self::Numeric(_) => 1700,
            Self::Regclass => 2205,
            Self::Regtype => 2206,
            Self::AnyArray => 2277,
            Self::Void => 2278,
            Self::Uuid => 2950,
            Self::Jsonb => 3802,
            Self::Regnamespace => 4089,
            Self::Regrole => 4096,
            Self::Array(element) => match element.as_ref() {
                Self::Boolean => 1000,
                Self::Bytea => 1001,
                Self::InternalChar => 1002,
                Self::Name => 1003,
                Self::SmallInt => 1005,
                Self::Integer => 1007,
                Self::Text
                | Self::Unknown
                | Self::Void
                | Self::NodeTree
                | Self::AnyArray
                | Self::Array(_) => 1009,
                Self::Int2Vector => 1006,
                Self::Xid => 1011,
                Self::OidVector => 1013,
                Self::AclItem => 1034,
                Self::Regnamespace => 4090,
                Self::Regrole => 4097,
                Self::Regproc => 1008,
                Self::Char(_) => 1014,
                Self::Varchar(_) => 1015,
                Self::BigInt => 1016,
                Self::Real => 1021,
                Self::Double => 1022,
                Self::Oid => 1028,
                Self::Timestamp => 1115,
                Self::Date => 1182,
                Self::Time => 1183,
                Self::Timestamptz => 1185,
                Self::Interval => 1187,
                Self::Numeric(_) => 1231,
                Self::Json => 199,
                Self::Regclass => 2210,
                Self::Regtype => 2211,
                Self::Uuid => 2951,
                Self::Jsonb => 3807,
            },
        }
    }

    /// The type with this OID, without a modifier; none if there is no such type here.
    pub fn from_oid(oid: u32) -> Option<Self> {
        let scalars = [
            Self::Boolean,
            Self::Bytea,
            Self::InternalChar,
            Self::Name,
            Self::BigInt,
            Self::SmallInt,
            Self::Integer,
            Self::Regproc,
            Self::Text,
            Self::Oid,
            Self::Json,
            Self::Real,
            Self::Double,
            Self::Unknown,
            Self::Varchar(None),
            Self::Char(None),
            Self::Int2Vector,
            Self::OidVector,
            Self::Xid,
            Self::NodeTree,
            Self::AclItem,
            Self::Regnamespace,
            Self::Regrole,
            Self::Date,
            Self::Time,
            Self::Timestamp,
            Self::Timestamptz,
            Self::Interval,
            Self::Numeric(None),
            Self::Regclass,
            Self::Regtype,
            Self::Void,
            Self::Uuid,
            Self::Jsonb,
        ];
        scalars.into_iter().find_map(|scalar| {
            if scalar.oid() == oid {
                return Some(scalar);
            }
            let array = Self::Array(Box::new(scalar));
            (array.oid() == oid).then_some(array)
        })
    }

    /// Whether it is one of the types that are OIDs and show as names.
    pub(crate) fn is_name_of_object(&self) -> bool {
        matches!(
            self,
            Self::Regclass | Self::Regtype | Self::Regproc | Self::Regnamespace | Self::Regrole
        )
    }

    /// Bytes of a value in PostgreSQL; -1 if they vary.
    pub fn length(&self) -> i16 {
        match self {
            Self::Boolean | Self::InternalChar => 1,
            Self::SmallInt => 2,
            Self::Integer
            | Self::Real
            | Self::Date
            | Self::Oid
            | Self::Regclass
            | Self::Regtype
            | Self::Regproc
            | Self::Regnamespace
            | Self::Regrole
            | Self::Xid
            | Self::Void => 4,
            Self::BigInt | Self::Double | Self::Time | Self::Timestamp | Self::Timestamptz => 8,
            Self::AclItem => 12,
            Self::Interval | Self::Uuid => 16,
            Self::Name => 64,
            Self::Unknown => -2,
            Self::Numeric(_)
            | Self::Text
            | Self::Varchar(_)
            | Self::Char(_)
            | Self::Bytea
            | Self::Json
            | Self::Jsonb
            | Self::Int2Vector
            | Self::OidVector
            | Self::NodeTree
            | Self::AnyArray
            | Self::Array(_) => -1,
        }
    }

    /// The type modifier as `pg_attribute.atttypmod` has it; -1 without one.
    pub fn modifier(&self) -> i32 {
        match self {
            Self::Numeric(Some((precision, scale))) => {
                ((i32::from(*precision) << 16) | (i32::from(*scale) & 0x7ff)) + 4
            }
            Self::Varchar(Some(characters)) | Self::Char(Some(characters)) => {
                i32::try_from(*characters).map_or(-1, |characters| characters + 4)
            }
            _ => -1,
        }
    }

    /// The Arrow type that carries values of this type.
    pub fn arrow(&self) -> DataType {
        match self {
            Self::Boolean => DataType::Boolean,
            Self::SmallInt => DataType::Int16,
            Self::Integer => DataType::Int32,
            Self::BigInt => DataType::Int64,
            Self::Real => DataType::Float32,
            Self::Double => DataType::Float64,
            Self::Numeric(Some((precision, scale))) => DataType::Decimal128(*precision, *scale),
            // See `functions::numeric`.
            Self::Numeric(None) => DataType::LargeBinary,
            Self::Text
            | Self::Varchar(_)
            | Self::Char(_)
            | Self::Name
            | Self::InternalChar
            | Self::Uuid
            | Self::Json
            | Self::Jsonb
            | Self::AclItem
            | Self::NodeTree
            | Self::AnyArray
            | Self::Void
            | Self::Unknown => DataType::Utf8,
            Self::Bytea => DataType::Binary,
            Self::Date => DataType::Date32,
            Self::Time => DataType::Time64(TimeUnit::Microsecond),
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            Self::Timestamptz => DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())),
            Self::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
            Self::Oid
            | Self::Regclass
            | Self::Regtype
            | Self::Regproc
            | Self::Regnamespace
            | Self::Regrole
            | Self::Xid => DataType::Int64,
            Self::Int2Vector => DataType::new_list(DataType::Int16, true),
            Self::OidVector => DataType::new_list(DataType::Int64, true),
            Self::Array(element) => DataType::new_list(element.arrow(), true),
        }
    }
}

/// The metadata key under which a field names its SQL type, where the Arrow type doesn't tell it.
const METADATA_KEY: &str = "stillframe.type";

impl Type {
    /// An Arrow field of this type.
    pub fn field(&self, name: &str, nullable: bool) -> Field {
        let field = Field::new(name, self.arrow(), nullable);
        if Self::from_arrow(field.data_type()).as_ref() == Some(self) {
            return field;
        }
        let kind = serde_json::to_string(self).expect("a type has no map");
        field.with_metadata([(METADATA_KEY.to_owned(), kind)].into())
    }

    /// The type that a literal takes: with all its digits and characters.
    pub(crate) fn without_limit(&self) -> Self {
        match self {
            Self::Numeric(_) => Self::Numeric(None),
            Self::Varchar(_) => Self::Varchar(None),
            Self::Char(_) => Self::Char(None),
            Self::Array(element) => Self::Array(Box::new(element.without_limit())),
            other => other.clone(),
        }
    }

    /// What a constant's metadata must say for it to be of this type, if anything: a text without
    /// metadata is a literal of no type.
    pub(crate) fn told(&self) -> Option<HashMap<String, String>> {
        let is_plain =
            *self != Self::Text && Self::from_arrow(&self.arrow()).as_ref() == Some(self);
        let kind = || serde_json::to_string(self).expect("a type has no map");
        (!is_plain).then(|| [(METADATA_KEY.to_owned(), kind())].into())
    }

    /// The SQL type of a field: what its metadata says, else what its Arrow type tells.
    pub fn of(field: &Field) -> Option<Self> {
        match field.metadata().get(METADATA_KEY) {
            Some(kind) => serde_json::from_str(kind).ok(),
            None => Self::from_arrow(field.data_type()),
        }
    }

    /// The SQL type that an Arrow type stands for when nothing else is known.
    pub fn from_arrow(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Boolean => Self::Boolean,
            DataType::Int8 | DataType::Int16 | DataType::UInt8 => Self::SmallInt,
            DataType::Int32 | DataType::UInt16 => Self::Integer,
            // DataFusion's own functions count unsigned; no count exceeds a bigint.
            DataType::Int64 | DataType::UInt32 | DataType::UInt64 => Self::BigInt,
            DataType::Float16 | DataType::Float32 => Self::Real,
            DataType::Float64 => Self::Double,
            DataType::Decimal128(precision, scale) => Self::Numeric(Some((*precision, *scale))),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => {
                Self::Text
            }
            DataType::LargeBinary => Self::Numeric(None),
            DataType::Binary | DataType::BinaryView => Self::Bytea,
            DataType::Date32 | DataType::Date64 => Self::Date,
            DataType::Time32(_) | DataType::Time64(_) => Self::Time,
            DataType::Timestamp(_, None) => Self::Timestamp,
            DataType::Timestamp(_, Some(_)) => Self::Timestamptz,
            DataType::Interval(_) | DataType::Duration(_) => Self::Interval,
            DataType::List(field)
            | DataType::LargeList(field)
            | DataType::FixedSizeList(field, _) => Self::Array(Box::new(Self::of(field)?)),
            DataType::Dictionary(_, value) => Self::from_arrow(value)?,
            _ => return None,
        })
    }
}
