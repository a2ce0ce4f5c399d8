//! `numeric`s with a scale of their own: values of a [`Numeric`], carried as large binaries.
//!
//! Where the scale follows from the types, numbers are carried as decimals, which are faster; what
//! has more than 38 digits, or a scale that depends on the values, comes as a [`Numeric`]. Equal ones
//! may differ in their bytes, so whatever compares them compares their [`KEY`]s.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryBuilder, Int32Builder, LargeBinaryArray, LargeBinaryBuilder,
    StringArray,
};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal128Type, Int16Type, Int32Type, Int64Type,
};
use arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{ColumnarValue, Expr, ScalarFunctionArgs};
use stillframe_protocol::RowError;
use stillframe_protocol::numeric::{Numeric, key};

use crate::functions::resolve::{Rank, rank};
use crate::functions::row::{arrays, shaped};
use crate::functions::scalar::{Definition, Function, Resolved, no_function};
use crate::{Error, Type};

/// The Arrow type that carries them.
pub(super) const CARRIER: DataType = DataType::LargeBinary;

/// What equal numbers share, and what compares as they do.
pub(super) static KEY: Definition =
    Definition { name: "numeric key", resolve: key_types, invoke: keys };

/// The key as text, for DataFusion's RANGE frames, which take no binaries.
pub(super) static ORDER: Definition =
    Definition { name: "numeric order", resolve: order_types, invoke: orders };

type Row<T> = std::result::Result<T, RowError>;

/// An error as kernels raise it.
pub(super) fn raised(error: RowError) -> ArrowError {
    ArrowError::ExternalError(Box::new(error))
}

/// Whether values are carried so.
pub(super) fn is_carried(data_type: &DataType) -> bool {
    *data_type == CARRIER
}

/// The key of an expression.
pub(super) fn key_of(expr: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Function::udf(&KEY), vec![expr]))
}

/// The key of an expression as text.
pub(super) fn order_of(expr: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Function::udf(&ORDER), vec![expr]))
}

/// Reads a value.
pub(super) fn read(bytes: &[u8]) -> std::result::Result<Numeric, ArrowError> {
    Numeric::decode(bytes).ok_or_else(|| {
        ArrowError::ExternalError(Box::new(Error::internal("bytes that are no numeric")))
    })
}

/// The values of an array.
pub(super) fn values(
    array: &ArrayRef,
) -> Result<impl Iterator<Item = std::result::Result<Option<Numeric>, ArrowError>> + '_> {
    let array = array.as_binary_opt::<i64>().ok_or_else(|| unexpected(array.data_type()))?;
    Ok(array.iter().map(|bytes| bytes.map(read).transpose()))
}

/// The values of an array of exact numbers.
pub(super) fn exact_values(array: &ArrayRef) -> Result<Vec<Option<Numeric>>> {
    fn of<T: ArrowPrimitiveType>(
        array: &ArrayRef,
        numeric: impl Fn(T::Native) -> Numeric,
    ) -> Vec<Option<Numeric>> {
        array.as_primitive::<T>().iter().map(|value| value.map(&numeric)).collect()
    }
    Ok(match array.data_type() {
        DataType::Int16 => of::<Int16Type>(array, |value| Numeric::from(i64::from(value))),
        DataType::Int32 => of::<Int32Type>(array, |value| Numeric::from(i64::from(value))),
        DataType::Int64 => of::<Int64Type>(array, Numeric::from),
        DataType::Decimal128(_, scale) => {
            let scale = (*scale).max(0).unsigned_abs().into();
            of::<Decimal128Type>(array, |value| Numeric::from_units(value, scale))
        }
        _ => values(array)?.collect::<std::result::Result<_, _>>()?,
    })
}

fn unexpected(data_type: &DataType) -> DataFusionError {
    DataFusionError::Internal(format!("a numeric carried as {data_type}"))
}

/// Collects values into an array.
#[derive(Debug, Default)]
pub(super) struct Numerics {
    builder: LargeBinaryBuilder,
    bytes: Vec<u8>,
}

impl Numerics {
    pub(super) fn push(&mut self, value: Option<&Numeric>) {
        let Some(value) = value else { return self.builder.append_null() };
        self.bytes.clear();
        value.encode(&mut self.bytes);
        self.builder.append_value(&self.bytes);
    }

    pub(super) fn finish(mut self) -> ArrayRef {
        Arc::new(self.builder.finish())
    }
}

/// An array of values that may raise errors.
pub(super) fn collect<E: Into<ArrowError>>(
    values: impl Iterator<Item = std::result::Result<Option<Numeric>, E>>,
) -> std::result::Result<ArrayRef, ArrowError> {
    let mut numerics = Numerics::default();
    for value in values {
        numerics.push(value.map_err(Into::into)?.as_ref());
    }
    Ok(numerics.finish())
}

/// Computes one value of each.
pub(super) fn unary(
    arguments: &ScalarFunctionArgs,
    operation: impl Fn(&Numeric) -> Row<Numeric>,
) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let results = values(&arrays[0])?
        .map(|value| value?.map(|value| operation(&value).map_err(raised)).transpose());
    shaped(collect(results)?, is_scalar)
}

/// Computes one value of each pair.
pub(super) fn binary(
    arguments: &ScalarFunctionArgs,
    operation: impl Fn(&Numeric, &Numeric) -> Row<Numeric>,
) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let results = values(&arrays[0])?.zip(values(&arrays[1])?).map(|(left, right)| {
        let (Some(left), Some(right)) = (left?, right?) else { return Ok(None) };
        operation(&left, &right).map(Some).map_err(raised)
    });
    shaped(collect(results)?, is_scalar)
}

/// Computes one value of each with an integer.
pub(super) fn with_integer(
    arguments: &ScalarFunctionArgs,
    operation: impl Fn(&Numeric, i32) -> Row<Numeric>,
) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let integers = arrays[1].as_primitive::<Int32Type>();
    let results = values(&arrays[0])?.zip(integers).map(|(value, integer)| {
        let (Some(value), Some(integer)) = (value?, integer) else { return Ok(None) };
        operation(&value, integer).map(Some).map_err(raised)
    });
    shaped(collect(results)?, is_scalar)
}

/// Computes an integer of each, or NULL.
pub(super) fn integer_of(
    arguments: &ScalarFunctionArgs,
    operation: impl Fn(&Numeric) -> Option<u32>,
) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let mut builder = Int32Builder::with_capacity(arrays[0].len());
    for value in values(&arrays[0])? {
        builder.append_option(value?.and_then(|value| operation(&value)).map(|n| n as i32));
    }
    shaped(Arc::new(builder.finish()), is_scalar)
}

fn key_types(types: &[DataType]) -> Result<Resolved, Error> {
    match types {
        [operand] if operand.is_null() || rank(operand) <= Some(Rank::Numeric) => {
            Ok(Resolved::new(vec![CARRIER], Type::Bytea))
        }
        _ => Err(no_function(KEY.name, types)),
    }
}

fn order_types(types: &[DataType]) -> Result<Resolved, Error> {
    let keyed = key_types(types)?;
    Ok(Resolved::new(keyed.arguments, Type::Text))
}

fn orders(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let array: &LargeBinaryArray =
        arrays[0].as_binary_opt().ok_or_else(|| unexpected(arrays[0].data_type()))?;
    let text =
        |bytes: &[u8]| key(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let texts: StringArray = array.iter().map(|bytes| bytes.map(text)).collect();
    shaped(Arc::new(texts), is_scalar)
}

fn keys(arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let array: &LargeBinaryArray =
        arrays[0].as_binary_opt().ok_or_else(|| unexpected(arrays[0].data_type()))?;
    let mut builder = BinaryBuilder::with_capacity(array.len(), array.value_data().len());
    array.iter().for_each(|bytes| builder.append_option(bytes.map(key)));
    shaped(Arc::new(builder.finish()), is_scalar)
}
