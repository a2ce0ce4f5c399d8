//! The value of the only row that a scalar subquery may return.
//!
//! Groups may be computed that no row asks for, so the aggregate keeps two values, and who asks
//! refuses the second.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::functions::row::{one_array, shaped};
use crate::{Error, SqlState};

/// The aggregate: an array of the first two values, or of fewer.
pub(in crate::functions) fn first_two() -> Arc<AggregateUDF> {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(AggregateUDF::new_from_impl(FirstTwo { signature }))
}

/// The function: the only value of such an array; NULL of none, and an error of two.
pub(in crate::functions) fn only_row() -> Arc<ScalarUDF> {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(OnlyRow { signature }))
}

/// The name of [`only_row_of`].
pub(crate) const ONLY_ROW_OF: &str = "only row of";

/// The function: a value that was taken from so many rows; an error of more than one. Its arguments
/// are the number of rows and the value.
pub(in crate::functions) fn only_row_of() -> Arc<ScalarUDF> {
    let signature = Signature::any(2, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(OnlyRowOf { signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct FirstTwo {
    signature: Signature,
}

impl AggregateUDFImpl for FirstTwo {
    fn name(&self) -> &str {
        "first two"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let element = arguments.first().cloned().unwrap_or(DataType::Null);
        Ok(DataType::new_list(element, true))
    }

    // The SQL type travels in the field's metadata.
    fn return_field(&self, arguments: &[FieldRef]) -> Result<FieldRef> {
        let types: Vec<_> = arguments.iter().map(|field| field.data_type().clone()).collect();
        let field = Field::new(self.name(), self.return_type(&types)?, true);
        let metadata = arguments.first().map(|element| element.metadata().clone());
        Ok(Arc::new(field.with_metadata(metadata.unwrap_or_default())))
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let name = format_state_name(arguments.name, "values");
        Ok(vec![Arc::new(Field::new(name, arguments.return_field.data_type().clone(), true))])
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let data_type = match arguments.return_field.data_type() {
            DataType::List(element) => element.data_type().clone(),
            _ => return Err(Error::internal("an array that is none").into()),
        };
        Ok(Box::new(TwoValues { data_type, values: vec![] }))
    }
}

#[derive(Debug)]
struct TwoValues {
    data_type: DataType,
    values: Vec<ScalarValue>,
}

impl TwoValues {
    fn add(&mut self, values: &ArrayRef) -> Result<()> {
        let free = 2 - self.values.len();
        for row in 0..values.len().min(free) {
            self.values.push(ScalarValue::try_from_array(values, row)?);
        }
        Ok(())
    }
}

impl Accumulator for TwoValues {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(&values[0])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        states[0].as_list::<i32>().iter().flatten().try_for_each(|values| self.add(&values))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::List(ScalarValue::new_list_nullable(&self.values, &self.data_type)))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.iter().map(ScalarValue::size).sum::<usize>()
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OnlyRow {
    signature: Signature,
}

impl ScalarUDFImpl for OnlyRow {
    fn name(&self) -> &str {
        "only row"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [DataType::List(element)] => Ok(element.data_type().clone()),
            _ => Err(Error::internal("a row of something else than rows").into()),
        }
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types = arguments.arg_fields.iter().map(|field| field.data_type().clone());
        let field = Field::new(self.name(), self.return_type(&types.collect::<Vec<_>>())?, true);
        let metadata = arguments.arg_fields.first().map(|array| array.metadata().clone());
        Ok(Arc::new(field.with_metadata(metadata.unwrap_or_default())))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(argument) = arguments.args.first() else {
            return Err(Error::internal("a row of nothing").into());
        };
        let (array, is_scalar) = one_array(argument)?;
        let lists = array.as_list::<i32>();
        let offsets = lists.value_offsets();
        let places = (0..lists.len()).map(|row| {
            let length = if lists.is_null(row) { 0 } else { lists.value_length(row) };
            match length {
                0 => Ok(None),
                1 => Ok(Some(offsets[row] as u32)),
                _ => Err(too_many()),
            }
        });
        let places = places.collect::<std::result::Result<UInt32Array, Error>>()?;
        shaped(take(lists.values(), &places, None)?, is_scalar)
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OnlyRowOf {
    signature: Signature,
}

impl ScalarUDFImpl for OnlyRowOf {
    fn name(&self) -> &str {
        ONLY_ROW_OF
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [DataType::Int64, value] => Ok(value.clone()),
            _ => Err(Error::internal("a row without a count").into()),
        }
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [count, value] = arguments.args.as_slice() else {
            return Err(Error::internal("a row without a count").into());
        };
        let (counts, _) = one_array(count)?;
        if counts.as_primitive::<Int64Type>().iter().flatten().any(|count| count > 1) {
            return Err(too_many().into());
        }
        Ok(value.clone())
    }
}

fn too_many() -> Error {
    let message = "more than one row returned by a subquery used as an expression";
    Error::new(SqlState::CARDINALITY_VIOLATION, message)
}
