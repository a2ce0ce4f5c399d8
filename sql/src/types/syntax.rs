//! Types as SQL text names them.

use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion::common::DataFusionError;
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, CharacterLength, DataType, ExactNumberInfo, ObjectName, TimezoneInfo,
};

use crate::text::MAX_PRECISION;
use crate::{Error, SqlState, Type};

/// Characters that a `varchar(n)` can have, as in PostgreSQL.
const CHARACTERS_MAX: u64 = 10_485_760;
/// Digits that PostgreSQL's own `numeric(p,s)` can have.
const POSTGRESQL_PRECISION_MAX: u64 = 1000;

impl Type {
    /// The type that a column definition names. What can't be kept as PostgreSQL keeps it is a
    /// 0A000.
    pub fn of_column(syntax: &DataType) -> Result<Self, Error> {
        let kind = Self::of_syntax(syntax)?;
        match &kind {
            Self::Boolean
            | Self::SmallInt
            | Self::Integer
            | Self::BigInt
            | Self::Real
            | Self::Double
            | Self::Numeric(_)
            | Self::Text
            | Self::Varchar(_)
            | Self::Bytea
            | Self::Date
            | Self::Time
            | Self::Timestamp
            | Self::Timestamptz
            | Self::Uuid
            | Self::Char(_)
            | Self::Interval
            | Self::Json
            | Self::Jsonb => Ok(kind),
            Self::Array(element) => {
                Self::of_element(element)?;
                Ok(kind)
            }
            _ => Err(Error::unsupported(format!("a column of type {kind}"))),
        }
    }

    /// Whether columns may hold arrays of this type.
    fn of_element(element: &Self) -> Result<(), Error> {
        match element {
            Self::Boolean
            | Self::SmallInt
            | Self::Integer
            | Self::BigInt
            | Self::Real
            | Self::Double
            | Self::Numeric(_)
            | Self::Text
            | Self::Varchar(_)
            | Self::Char(_)
            | Self::Bytea
            | Self::Date
            | Self::Time
            | Self::Timestamp
            | Self::Timestamptz
            | Self::Interval
            | Self::Uuid
            | Self::Json
            | Self::Jsonb => Ok(()),
            other => Err(Error::unsupported(format!("a column of type {other}[]"))),
        }
    }

    /// The type that SQL text names: 42704 if there is none, 0A000 if there is none yet.
    pub fn of_syntax(syntax: &DataType) -> Result<Self, Error> {
        Ok(match syntax {
            DataType::Boolean | DataType::Bool => Self::Boolean,
            DataType::SmallInt(None) | DataType::Int2(None) => Self::SmallInt,
            DataType::Int(None) | DataType::Integer(None) | DataType::Int4(None) => Self::Integer,
            DataType::BigInt(None) | DataType::Int8(None) => Self::BigInt,
            DataType::Real | DataType::Float4 => Self::Real,
            DataType::DoublePrecision | DataType::Float8 => Self::Double,
            DataType::Double(ExactNumberInfo::None) => {
                return Err(undefined("double"));
            }
            DataType::Float(bits) => float(bits)?,
            DataType::Numeric(digits) | DataType::Decimal(digits) | DataType::Dec(digits) => {
                numeric(digits)?
            }
            DataType::Text => Self::Text,
            DataType::Varchar(length)
            | DataType::CharacterVarying(length)
            | DataType::CharVarying(length) => Self::Varchar(characters(length, "varchar")?),
            DataType::Char(length) | DataType::Character(length) => {
                Self::Char(Some(characters(length, "char")?.unwrap_or(1)))
            }
            DataType::Bytea => Self::Bytea,
            DataType::Date => Self::Date,
            // How many digits seconds have is kept beside the type.
            DataType::Time(_, zone) => match zone {
                TimezoneInfo::None | TimezoneInfo::WithoutTimeZone => Self::Time,
                TimezoneInfo::WithTimeZone | TimezoneInfo::Tz => {
                    return Err(Error::unsupported("type time with time zone"));
                }
            },
            DataType::Timestamp(_, zone) => match zone {
                TimezoneInfo::None | TimezoneInfo::WithoutTimeZone => Self::Timestamp,
                TimezoneInfo::WithTimeZone | TimezoneInfo::Tz => Self::Timestamptz,
            },
            DataType::Interval { fields: None, precision: None } => Self::Interval,
            DataType::Uuid => Self::Uuid,
            DataType::JSON => Self::Json,
            DataType::JSONB => Self::Jsonb,
            DataType::Regclass => Self::Regclass,
            DataType::Array(element) => match element {
                ArrayElemTypeDef::SquareBracket(element, _)
                | ArrayElemTypeDef::AngleBracket(element)
                | ArrayElemTypeDef::Parenthesis(element) => {
                    if let Some(digits) = second_digits(element) {
                        let what = format!("an array of moments with {digits} digits of seconds");
                        return Err(Error::unsupported(what));
                    }
                    match Self::of_syntax(element)? {
                        // Dimensions are no part of an array's type.
                        Self::Array(element) => Self::Array(element),
                        element => Self::Array(Box::new(element)),
                    }
                }
                ArrayElemTypeDef::None => return Err(Error::unsupported("an array of no type")),
            },
            DataType::Custom(name, modifiers) => custom(name, modifiers)?,
            other => return Err(Error::unsupported(format!("type {other}"))),
        })
    }
}

/// A name that the parser doesn't know, perhaps with the schema `pg_catalog`.
fn custom(name: &ObjectName, modifiers: &[String]) -> Result<Type, Error> {
    let parts: Vec<String> = name
        .0
        .iter()
        .map(|part| match part.as_ident() {
            Some(ident) if ident.quote_style.is_none() => ident.value.to_lowercase(),
            Some(ident) => ident.value.clone(),
            None => part.to_string(),
        })
        .collect();
    let bare = match parts.as_slice() {
        [bare] => bare,
        [schema, bare] if schema == "pg_catalog" => bare,
        [schema, bare] if schema == "information_schema" => match bare.as_str() {
            "sql_identifier" => return Ok(Type::Name),
            "cardinal_number" => return Ok(Type::Integer),
            "character_data" | "yes_or_no" => return Ok(Type::Varchar(None)),
            _ => return Err(undefined(&parts.join("."))),
        },
        _ => return Err(undefined(&parts.join("."))),
    };
    let with_modifiers = match bare.as_str() {
        // In quotes, or behind a schema, it is the one-byte type.
        "char" => "\"char\"".to_owned(),
        _ if modifiers.is_empty() => bare.clone(),
        _ => format!("{bare}({})", modifiers.join(",")),
    };
    with_modifiers.parse().map_err(|_| undefined(&parts.join(".")))
}

fn undefined(name: &str) -> Error {
    Error::new(SqlState::UNDEFINED_OBJECT, format!("type \"{name}\" does not exist"))
}

fn float(bits: &ExactNumberInfo) -> Result<Type, Error> {
    let invalid = |message| Error::new(SqlState::INVALID_PARAMETER_VALUE, message);
    match bits {
        ExactNumberInfo::None => Ok(Type::Double),
        ExactNumberInfo::Precision(0) => {
            Err(invalid("precision for type float must be at least 1 bit"))
        }
        ExactNumberInfo::Precision(1..=24) => Ok(Type::Real),
        ExactNumberInfo::Precision(25..=53) => Ok(Type::Double),
        ExactNumberInfo::Precision(_) => {
            Err(invalid("precision for type float must be less than 54 bits"))
        }
        ExactNumberInfo::PrecisionAndScale(..) => {
            Err(Error::new(SqlState::SYNTAX_ERROR, "syntax error at or near \",\""))
        }
    }
}

fn numeric(digits: &ExactNumberInfo) -> Result<Type, Error> {
    let (precision, scale) = match *digits {
        ExactNumberInfo::None => return Ok(Type::Numeric(None)),
        ExactNumberInfo::Precision(precision) => (precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (precision, scale),
    };
    if !(1..=POSTGRESQL_PRECISION_MAX).contains(&precision) {
        let message = format!(
            "NUMERIC precision {precision} must be between 1 and {POSTGRESQL_PRECISION_MAX}"
        );
        return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    if !(-1000..=1000).contains(&scale) {
        let message = format!("NUMERIC scale {scale} must be between -1000 and 1000");
        return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    if precision > u64::from(MAX_PRECISION) {
        let what = format!("a numeric of more than {MAX_PRECISION} digits");
        return Err(Error::unsupported(what));
    }
    if scale < 0 || scale as u64 > precision {
        return Err(Error::unsupported("a numeric with a scale outside of its precision"));
    }
    Ok(Type::Numeric(Some((precision as u8, scale as i8))))
}

fn characters(length: &Option<CharacterLength>, kind: &str) -> Result<Option<u32>, Error> {
    let length = match length {
        None => return Ok(None),
        Some(CharacterLength::Max) => return Err(undefined("max")),
        Some(CharacterLength::IntegerLength { length, .. }) => *length,
    };
    let invalid = |message: String| Error::new(SqlState::INVALID_PARAMETER_VALUE, message);
    if length == 0 {
        return Err(invalid(format!("length for type {kind} must be at least 1")));
    }
    if length > CHARACTERS_MAX {
        return Err(invalid(format!("length for type {kind} cannot exceed {CHARACTERS_MAX}")));
    }
    Ok(Some(length as u32))
}

/// How many digits a type says that seconds have, if less than a moment can have.
pub(crate) fn second_digits(syntax: &DataType) -> Option<u8> {
    match syntax {
        DataType::Time(digits, _) | DataType::Timestamp(digits, _) => {
            digits.and_then(|digits| u8::try_from(digits).ok()).filter(|digits| *digits < 6)
        }
        _ => None,
    }
}

/// Makes DataFusion read the types in queries as column definitions do.
#[derive(Debug)]
pub(crate) struct Types;

impl TypePlanner for Types {
    fn plan_type_field(&self, syntax: &DataType) -> datafusion::common::Result<Option<FieldRef>> {
        let kind =
            Type::of_syntax(syntax).map_err(|error| DataFusionError::External(Box::new(error)))?;
        // A field without a name would take over what is known of the operand.
        Ok(Some(Arc::new(kind.field("cast", true))))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    fn syntax(text: &str) -> DataType {
        let mut parser = Parser::new(&PostgreSqlDialect {}).try_with_sql(text).unwrap();
        parser.parse_data_type().unwrap()
    }

    #[test]
    fn names_mean_what_they_mean_in_postgresql() {
        let cases = [
            ("bool", Type::Boolean),
            ("int2", Type::SmallInt),
            ("int", Type::Integer),
            ("pg_catalog.int4", Type::Integer),
            ("int8", Type::BigInt),
            ("float", Type::Double),
            ("float(24)", Type::Real),
            ("float8", Type::Double),
            ("double precision", Type::Double),
            ("numeric(10)", Type::Numeric(Some((10, 0)))),
            ("decimal(10,2)", Type::Numeric(Some((10, 2)))),
            ("numeric", Type::Numeric(None)),
            ("character varying(5)", Type::Varchar(Some(5))),
            ("varchar", Type::Varchar(None)),
            ("char", Type::Char(Some(1))),
            ("bpchar", Type::Char(None)),
            ("\"char\"", Type::InternalChar),
            ("timestamptz", Type::Timestamptz),
            ("timestamp(6) with time zone", Type::Timestamptz),
            ("pg_catalog.regtype", Type::Regtype),
            ("pg_catalog.text", Type::Text),
            ("int[]", Type::Array(Box::new(Type::Integer))),
            ("pg_catalog.int2[]", Type::Array(Box::new(Type::SmallInt))),
        ];
        for (text, expected) in cases {
            assert_eq!(Type::of_syntax(&syntax(text)).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        let cases = [
            ("numeric(39,2)", "0A000"),
            ("numeric(0)", "22023"),
            ("varchar(0)", "22023"),
            ("oid[]", "0A000"),
            ("timestamp(3)[]", "0A000"),
            ("nonsense", "42704"),
            ("float(54)", "22023"),
        ];
        for (text, state) in cases {
            let error = Type::of_column(&syntax(text)).unwrap_err();
            assert_eq!(error.state.code(), state, "{text}");
        }
    }
}
