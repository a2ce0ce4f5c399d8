//! Variances and standard deviations.

use super::arithmetic::{add, divide, multiply, quotient_scale};
use super::exponential::square_root;
use super::{Finite, Numeric};
use crate::RowError;

/// What is asked of the values of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spread {
    /// Of a sample, and not of all there is.
    pub of_sample: bool,
    /// The standard deviation, and not the variance.
    pub is_deviation: bool,
}

impl Spread {
    /// The result from the count of some values, their sum, and the sum of their squares; none of too
    /// few. (`numeric_stddev_internal`)
    ///
    /// # Errors
    ///
    /// 22003.
    pub fn of(
        self,
        count: i64,
        sum: &Numeric,
        squares: &Numeric,
    ) -> Result<Option<Numeric>, RowError> {
        if count <= i64::from(self.of_sample) {
            return Ok(None);
        }
        let (Numeric::Finite(sum), Numeric::Finite(squares)) = (sum, squares) else {
            return Ok(Some(Numeric::NaN));
        };
        let count = i128::from(count);
        let square = multiply(sum, sum);
        let square = Finite::new(!square.negative, square.magnitude, square.scale);
        let above = add(&multiply(&Finite::integer(count), squares), &square);
        if above.negative || above.is_zero() {
            return Ok(Some(Numeric::zero()));
        }
        let below = Finite::integer(count * (count - i128::from(self.of_sample)));
        let scale = quotient_scale(&above, &below);
        let variance = divide(&above, &below, scale, true);
        let result = match self.is_deviation {
            true => square_root(&variance, scale),
            false => variance,
        };
        Numeric::checked(result).map(Some)
    }
}
