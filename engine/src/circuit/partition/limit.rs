//! The first rows of a partition in an order.

use datafusion::common::DataFusionError;
use stillframe_protocol::Limit;

use super::Scope;
use super::gather::Partition;
use super::order::Order;
use super::sheet::Sheet;
use crate::EngineError;

/// OFFSET, LIMIT and WITH TIES.
pub(super) struct FirstRows {
    order: Order,
    offset: usize,
    count: usize,
    with_ties: bool,
}

impl FirstRows {
    pub(super) fn compile(limit: &Limit, scope: &Scope<'_>) -> Result<Self, EngineError> {
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        Ok(Self {
            order: Order::compile(&limit.order, scope)?,
            offset: size(limit.offset),
            count: limit.count.map_or(usize::MAX, size),
            with_ties: limit.with_ties,
        })
    }

    pub(super) fn sheet(&self, partition: &Partition<'_>) -> Result<Sheet, DataFusionError> {
        let numbers = self.order.sorted(&partition.batch)?;
        let first = self.offset.min(numbers.len());
        let mut end = first.saturating_add(self.count).min(numbers.len());
        if self.with_ties && end > first {
            let values = self.order.values(&partition.batch)?;
            let value = |place: usize| values.row(numbers[place] as usize);
            while end < numbers.len() && value(end) == value(end - 1) {
                end += 1;
            }
        }
        // Back in the order of bytes, in which equal rows are neighbours.
        let mut chosen = numbers[first..end].to_vec();
        chosen.sort_unstable();
        let mut sheet = Sheet::new();
        for number in chosen {
            sheet.push(partition.rows[number as usize], &[]);
        }
        Ok(sheet)
    }
}
