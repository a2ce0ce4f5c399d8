//! An aggregate over distinct values: each goes in once.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;
use datafusion::common::{HashSet, Result, ScalarValue};
use datafusion::logical_expr::Accumulator;

#[derive(Debug)]
pub(super) struct Distinct {
    argument: DataType,
    seen: HashSet<ScalarValue>,
    inner: Box<dyn Accumulator>,
}

impl Distinct {
    pub(super) fn new(argument: DataType, inner: Box<dyn Accumulator>) -> Self {
        Self { argument, seen: HashSet::default(), inner }
    }

    fn take(&mut self, values: &ArrayRef) -> Result<()> {
        let mut fresh = vec![];
        for place in 0..values.len() {
            if values.is_null(place) {
                continue;
            }
            let value = ScalarValue::try_from_array(values, place)?;
            if self.seen.insert(value.clone()) {
                fresh.push(value);
            }
        }
        if fresh.is_empty() {
            return Ok(());
        }
        self.inner.update_batch(&[ScalarValue::iter_to_array(fresh)?])
    }
}

impl Accumulator for Distinct {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.take(&values[0])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.inner.evaluate()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values: Vec<_> = self.seen.iter().cloned().collect();
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
        size_of::<Self>() + self.inner.size() + self.seen.capacity() * size_of::<ScalarValue>()
    }
}
