//! Numbers to numbers: floats round half to even, decimals half away from zero, and nothing is cut
//! off in silence.

use arrow::error::ArrowError;
use stillframe_protocol::numeric::Numeric;

use crate::functions::numeric::raised;
use crate::functions::row::{out_of_range, overflow, raise, raise_error, underflow};
use crate::text::{MAX_PRECISION, out_of_precision, rescale};
use crate::{SqlState, Type};

type Row<T> = std::result::Result<T, ArrowError>;

/// An integer of a type with these bounds.
pub(super) fn integer(value: i128, (low, high): (i64, i64), kind: &Type) -> Row<i64> {
    match i64::try_from(value) {
        Ok(value) if (low..=high).contains(&value) => Ok(value),
        _ => Err(out_of_range(&kind.to_string())),
    }
}

/// The nearest integer, the even one of two.
pub(super) fn integer_of_double(value: f64, bounds: (i64, i64), kind: &Type) -> Row<i64> {
    let rounded = value.round_ties_even();
    // The bounds of every integer type but bigint's upper one are doubles.
    if rounded.is_nan() || rounded < bounds.0 as f64 || rounded >= bounds.1 as f64 + 1.0 {
        return Err(out_of_range(&kind.to_string()));
    }
    Ok(rounded as i64)
}

/// The nearest integer, the one farther from zero of two.
pub(super) fn integer_of_decimal(
    value: i128,
    scale: i8,
    bounds: (i64, i64),
    kind: &Type,
) -> Row<i64> {
    let rounded = rescale(value, scale, 0).ok_or_else(|| out_of_range(&kind.to_string()))?;
    integer(rounded, bounds, kind)
}

/// The nearest double.
pub(super) fn double_of_decimal(value: i128, scale: i8) -> f64 {
    const EXACT: u128 = 1 << 53;
    if value.unsigned_abs() < EXACT && (0..=22).contains(&scale) {
        // Both are exact, so the quotient is rounded once.
        return value as f64 / 10f64.powi(i32::from(scale));
    }
    let text = format!("{value}e{}", -i32::from(scale));
    text.parse().unwrap_or(f64::NAN)
}

/// The nearest real, which must neither overflow nor vanish.
pub(super) fn real_of_double(value: f64) -> Row<f32> {
    let narrow = value as f32;
    if narrow.is_infinite() && !value.is_infinite() {
        return Err(overflow());
    }
    if narrow == 0.0 && value != 0.0 {
        return Err(underflow());
    }
    Ok(narrow + 0.0)
}

/// A decimal of these digits.
pub(super) fn decimal(value: i128, scale: i8, (precision, to): (u8, i8)) -> Row<i128> {
    let limit = 10i128.pow(u32::from(precision.min(MAX_PRECISION)));
    rescale(value, scale, to)
        .filter(|value| -limit < *value && *value < limit)
        .ok_or_else(|| raise_error(out_of_precision(precision, to)))
}

/// A decimal of a numeric.
pub(super) fn decimal_of_numeric(value: &Numeric, (precision, scale): (u8, i8)) -> Row<i128> {
    let fitted = value.fit(precision.into(), scale.into()).map_err(|(error, _)| raised(error))?;
    fitted.to_units(scale.max(0).unsigned_abs().into()).ok_or_else(|| not_finite(precision, scale))
}

/// NaN isn't one of the values that decimals carry.
fn not_finite(precision: u8, scale: i8) -> ArrowError {
    raise(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("NaN as a numeric({precision},{scale}) is not supported"),
    )
}

/// The nearest integer, the one farther from zero of two.
pub(super) fn integer_of_numeric(value: &Numeric, bounds: (i64, i64), kind: &Type) -> Row<i64> {
    let cannot = |what: &str| {
        let message = format!("cannot convert {what} to {kind}");
        raise(SqlState::FEATURE_NOT_SUPPORTED, message)
    };
    match value {
        Numeric::NaN => Err(cannot("NaN")),
        Numeric::Infinity | Numeric::NegativeInfinity => Err(cannot("infinity")),
        value => match value.to_integer() {
            Some(whole) => integer(whole, bounds, kind),
            None => Err(out_of_range(&kind.to_string())),
        },
    }
}

/// The nearest double.
pub(super) fn double_of_numeric(value: &Numeric) -> Row<f64> {
    let double = value.to_f64();
    if double.is_infinite() && value.scale().is_some() {
        let message = format!("\"{value}\" is out of range for type double precision");
        return Err(raise(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
    }
    Ok(double + 0.0)
}

/// The nearest real.
pub(super) fn real_of_numeric(value: &Numeric) -> Row<f32> {
    let real = match value {
        Numeric::NaN => f32::NAN,
        Numeric::Infinity => f32::INFINITY,
        Numeric::NegativeInfinity => f32::NEG_INFINITY,
        value => value.to_string().parse().unwrap_or(f32::NAN),
    };
    if (real.is_infinite() && value.scale().is_some()) || (real == 0.0 && !value.is_zero()) {
        let message = format!("\"{value}\" is out of range for type real");
        return Err(raise(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
    }
    Ok(real + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_round_half_to_even_and_decimals_away_from_zero() {
        let bounds = (i32::MIN.into(), i32::MAX.into());
        let of_double = |value| integer_of_double(value, bounds, &Type::Integer).ok();
        assert_eq!(of_double(0.5), Some(0));
        assert_eq!(of_double(1.5), Some(2));
        assert_eq!(of_double(-2.5), Some(-2));
        assert_eq!(of_double(2_147_483_647.4), Some(2_147_483_647));
        assert_eq!(of_double(2_147_483_647.5), None);
        assert_eq!(of_double(f64::NAN), None);
        let big = (i64::MIN, i64::MAX);
        assert!(integer_of_double(9.3e18, big, &Type::BigInt).is_err());
        assert!(integer_of_double(9_223_372_036_854_775_808.0, big, &Type::BigInt).is_err());
        let of_decimal = |value| integer_of_decimal(value, 1, bounds, &Type::Integer).ok();
        assert_eq!(of_decimal(25), Some(3));
        assert_eq!(of_decimal(-25), Some(-3));
        assert_eq!(of_decimal(24), Some(2));
    }

    #[test]
    fn floats_give_the_digits_they_are_sure_of() {
        let of = |value, kind| decimal_of_numeric(&Numeric::from_float(value, 15), kind).ok();
        assert_eq!(of(0.1 + 0.2, (38, 16)), Some(3_000_000_000_000_000));
        assert_eq!(of(2.675, (10, 2)), Some(268));
        assert_eq!(of(1e10, (10, 2)), None);
    }

    #[test]
    fn decimals_become_the_nearest_double() {
        assert_eq!(double_of_decimal(1, 1), 0.1);
        assert_eq!(double_of_decimal(123_456_789_012_345_678_901_234_567, 10), {
            12_345_678_901_234_567.890_123_456_7
        });
    }
}
