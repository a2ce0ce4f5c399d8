//! The value of the only row that a scalar subquery may return.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};

use crate::{Error, SqlState};

/// The aggregate; NULL of no rows, and an error of two.
pub(in crate::functions) fn only_row() -> Arc<AggregateUDF> {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(AggregateUDF::new_from_impl(Only { signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Only {
    signature: Signature,
}

impl AggregateUDFImpl for Only {
    fn name(&self) -> &str {
        "only row"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments.first().cloned().unwrap_or(DataType::Null))
    }

    // The SQL type travels in the field's metadata.
    fn return_field(&self, arguments: &[FieldRef]) -> Result<FieldRef> {
        Ok(match arguments {
            [field] => Arc::new(field.as_ref().clone().with_name(self.name()).with_nullable(true)),
            _ => Arc::new(Field::new(self.name(), DataType::Null, true)),
        })
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let field = |name: &str, data_type| -> FieldRef {
            Arc::new(Field::new(format_state_name(arguments.name, name), data_type, true))
        };
        let value = arguments.return_field.data_type().clone();
        Ok(vec![field("value", value), field("is_seen", DataType::Boolean)])
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let value = ScalarValue::try_from(arguments.return_field.data_type())?;
        Ok(Box::new(OnlyRow { value, is_seen: false }))
    }
}

#[derive(Debug)]
struct OnlyRow {
    value: ScalarValue,
    is_seen: bool,
}

impl OnlyRow {
    fn take(&mut self, values: &ArrayRef, row: usize) -> Result<()> {
        if self.is_seen {
            let message = "more than one row returned by a subquery used as an expression";
            return Err(Error::new(SqlState::CARDINALITY_VIOLATION, message).into());
        }
        self.value = ScalarValue::try_from_array(values, row)?;
        self.is_seen = true;
        Ok(())
    }
}

impl Accumulator for OnlyRow {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        // The second row is one too many, and the others needn't be looked at.
        let rows = values[0].len().min(2);
        (0..rows).try_for_each(|row| self.take(&values[0], row))
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let is_seen = states[1].as_boolean();
        let mut seen = (0..is_seen.len()).filter(|row| is_seen.is_valid(*row) && is_seen.value(*row));
        seen.try_for_each(|row| self.take(&states[0], row))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.value.clone())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.value.clone(), ScalarValue::Boolean(Some(self.is_seen))])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.value.size()
    }
}
