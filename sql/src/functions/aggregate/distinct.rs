//! An aggregate over distinct values: each goes in once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Accumulator;
use stillframe_protocol::numeric::{Numeric, key};

#[derive(Debug)]
pub(super) struct Distinct {
    argument: DataType,
    /// By what equal values share.
    seen: HashMap<ScalarValue, ScalarValue>,
    inner: Box<dyn Accumulator>,
}

impl Distinct {
    pub(super) fn new(argument: DataType, inner: Box<dyn Accumulator>) -> Self {
        Self { argument, seen: HashMap::default(), inner }
    }

    fn take(&mut self, values: &ArrayRef) -> Result<()> {
        for place in 0..values.len() {
            if values.is_null(place) {
                continue;
            }
            let value = ScalarValue::try_from_array(values, place)?;
            let identity = match &value {
                ScalarValue::LargeBinary(Some(bytes)) => {
                    ScalarValue::LargeBinary(Some(key(bytes).to_vec()))
                }
                other => other.clone(),
            };
            match self.seen.entry(identity) {
                Entry::Vacant(vacant) => {
                    vacant.insert(value);
                }
                // Of equal numbers the one with the least scale stays, whatever their order.
                Entry::Occupied(mut known) => {
                    if length(&value) < length(known.get()) {
                        known.insert(value);
                    }
                }
            }
        }
        Ok(())
    }
}

/// What is shorter among equal values, if anything.
fn length(value: &ScalarValue) -> Option<u32> {
    match value {
        ScalarValue::LargeBinary(Some(bytes)) => Numeric::decode(bytes)?.scale(),
        _ => None,
    }
}

impl Accumulator for Distinct {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.take(&values[0])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        // All at once: what is known of a value until now may have changed.
        let values: Vec<_> = self.seen.values().cloned().collect();
        if !values.is_empty() {
            self.inner.update_batch(&[ScalarValue::iter_to_array(values)?])?;
        }
        self.inner.evaluate()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values: Vec<_> = self.seen.values().cloned().collect();
        let list = ScalarValue::new_list_nullable(&values, &self.argument);
        Ok(vec![ScalarValue::List(Arc::clone(&list))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for list in states[0].as_list::<i32>().iter().flatten() {
            self.take(&list)?;
        }
        Ok(())
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.inner.size() + self.seen.capacity() * 2 * size_of::<ScalarValue>()
    }
}
