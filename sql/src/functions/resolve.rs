//! Which type operands of several types come to have together: PostgreSQL's rules for comparisons,
//! and those for UNION, CASE and their like.

use arrow::datatypes::{DataType, TimeUnit};

use crate::Type;
use crate::text::MAX_PRECISION;

/// Numbers, in the order in which they give way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    SmallInt,
    Integer,
    BigInt,
    Numeric,
    Real,
    Double,
}

/// The rank of a number's type.
pub(super) fn rank(data_type: &DataType) -> Option<Rank> {
    Some(match data_type {
        DataType::Int8 | DataType::UInt8 | DataType::Int16 => Rank::SmallInt,
        DataType::UInt16 | DataType::Int32 => Rank::Integer,
        DataType::UInt32 | DataType::UInt64 | DataType::Int64 => Rank::BigInt,
        DataType::Decimal128(..) | DataType::LargeBinary => Rank::Numeric,
        DataType::Float16 | DataType::Float32 => Rank::Real,
        DataType::Float64 => Rank::Double,
        _ => return None,
    })
}

impl Rank {
    /// The type of this rank, if it isn't `numeric`.
    fn data_type(self) -> DataType {
        match self {
            Self::SmallInt => DataType::Int16,
            Self::Integer => DataType::Int32,
            Self::BigInt => DataType::Int64,
            Self::Numeric => Type::Numeric(None).arrow(),
            Self::Real => DataType::Float32,
            Self::Double => DataType::Float64,
        }
    }
}

/// Precision and scale of the decimal that holds every value of an exact number's type; none if
/// they aren't the type's.
pub(super) fn decimal(data_type: &DataType) -> Option<(u8, i8)> {
    match data_type {
        DataType::Decimal128(precision, scale) => Some((*precision, *scale)),
        _ => match rank(data_type)? {
            Rank::SmallInt => Some((5, 0)),
            Rank::Integer => Some((10, 0)),
            Rank::BigInt => Some((19, 0)),
            Rank::Numeric | Rank::Real | Rank::Double => None,
        },
    }
}

/// What operands are brought together for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// An operator compares them.
    Comparison,
    /// They become values of one column.
    Column,
}

/// The one type that all are cast to; none if PostgreSQL would refuse to mix them.
pub(super) fn common(types: &[DataType], purpose: Purpose) -> Option<DataType> {
    let (first, rest) = types.split_first()?;
    let mut common = plain(first);
    for next in rest {
        common = pair(&common, &plain(next), purpose)?;
    }
    Some(common)
}

/// The form in which a type is carried here.
fn plain(data_type: &DataType) -> DataType {
    match data_type {
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::Int8 | DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 | DataType::UInt64 => DataType::Int64,
        DataType::Dictionary(_, value) => plain(value),
        other => other.clone(),
    }
}

fn pair(left: &DataType, right: &DataType, purpose: Purpose) -> Option<DataType> {
    if left == right {
        return Some(left.clone());
    }
    if left.is_null() {
        return Some(right.clone());
    }
    if right.is_null() {
        return Some(left.clone());
    }
    if let (Some(left_rank), Some(right_rank)) = (rank(left), rank(right)) {
        let high = left_rank.max(right_rank);
        if high == Rank::Numeric {
            return Some(match (decimal(left), decimal(right)) {
                // Every value keeps the scale that it has.
                (Some(left), Some(right))
                    if purpose == Purpose::Comparison || left.1 == right.1 =>
                {
                    wider(left, right)
                }
                _ => high.data_type(),
            });
        }
        // PostgreSQL has no operator for real with anything but double precision.
        if high == Rank::Real && purpose == Purpose::Comparison {
            return Some(DataType::Float64);
        }
        return Some(high.data_type());
    }
    let (left_rank, right_rank) = (date_rank(left)?, date_rank(right)?);
    Some(if left_rank >= right_rank { left.clone() } else { right.clone() })
}

/// A decimal with room for the values of both; without enough, what has any.
fn wider(left: (u8, i8), right: (u8, i8)) -> DataType {
    let scale = left.1.max(right.1);
    let digits = |(precision, scale): (u8, i8)| i32::from(precision) - i32::from(scale);
    let whole = digits(left).max(digits(right));
    match u8::try_from(whole + i32::from(scale)) {
        Ok(precision @ 1..=MAX_PRECISION) => DataType::Decimal128(precision, scale),
        _ => Rank::Numeric.data_type(),
    }
}

fn date_rank(data_type: &DataType) -> Option<u8> {
    match data_type {
        DataType::Date32 => Some(0),
        DataType::Timestamp(TimeUnit::Microsecond, None) => Some(1),
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => Some(2),
        // What DataFusion's own functions return.
        DataType::Timestamp(_, None) => Some(1),
        DataType::Timestamp(_, Some(_)) => Some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_give_way_in_postgresql_s_order() {
        let common = |types: &[DataType], purpose| super::common(types, purpose);
        let (int, big, real) = (DataType::Int32, DataType::Int64, DataType::Float32);
        let decimal = DataType::Decimal128(8, 2);
        assert_eq!(common(&[int.clone(), big.clone()], Purpose::Column), Some(big.clone()));
        assert_eq!(
            common(&[big, decimal.clone()], Purpose::Comparison),
            Some(DataType::Decimal128(21, 2))
        );
        assert_eq!(
            common(&[int.clone(), real.clone()], Purpose::Comparison),
            Some(DataType::Float64)
        );
        assert_eq!(common(&[int.clone(), real.clone()], Purpose::Column), Some(real));
        assert_eq!(common(&[decimal, DataType::Float64], Purpose::Column), Some(DataType::Float64));
        assert_eq!(common(&[int, DataType::Utf8], Purpose::Comparison), None);
        assert_eq!(common(&[DataType::Boolean, DataType::Int32], Purpose::Column), None);
    }
}
