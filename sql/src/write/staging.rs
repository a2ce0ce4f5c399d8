//! How changes are spread over messages and hosts.

use arrow::record_batch::RecordBatch;
use stillframe_protocol::{Changes, HostId};

use super::Target;

/// How many rows one message has, unless a key's changes don't fit.
const ROWS_MAX: usize = 8192;

/// About how many bytes of rows one message has at most.
const BYTES_MAX: usize = 4 << 20;

/// Exact changes of one table, and where they can be cut: a host gets all changes of a key or
/// none.
#[derive(Clone, Debug)]
pub(crate) struct ExactChanges {
    pub(crate) changes: Changes,
    pub(crate) cuts: Cuts,
}

/// Where changes can be cut.
#[derive(Clone, Debug)]
pub(crate) enum Cuts {
    /// Before every row.
    Anywhere,
    /// Before these rows only, ascending.
    Before(Vec<usize>),
}

impl ExactChanges {
    /// Rows that come.
    pub(crate) fn inserted(target: &Target, rows: RecordBatch) -> Self {
        Self::all(target, rows, 1)
    }

    /// Rows that go.
    pub(super) fn deleted(target: &Target, rows: RecordBatch) -> Self {
        Self::all(target, rows, -1)
    }

    fn all(target: &Target, rows: RecordBatch, weight: i64) -> Self {
        let weights = vec![weight; rows.num_rows()];
        let changes = Changes { relation: target.id(), rows, weights };
        Self { changes, cuts: Cuts::Anywhere }
    }

    /// Cuts changes into messages.
    pub(super) fn slices(&self) -> Vec<Changes> {
        let total = self.changes.rows.num_rows();
        let rows = rows_per_slice(&self.changes.rows);
        let mut slices = vec![];
        let mut start = 0;
        while start < total {
            let end = self.cuts.at_or_after(start + rows).min(total);
            slices.push(Changes {
                relation: self.changes.relation,
                rows: self.changes.rows.slice(start, end - start),
                weights: self.changes.weights[start..end].to_vec(),
            });
            start = end;
        }
        slices
    }
}

impl Cuts {
    fn at_or_after(&self, row: usize) -> usize {
        match self {
            Self::Anywhere => row,
            Self::Before(rows) => {
                let place = rows.partition_point(|cut| *cut < row);
                rows.get(place).copied().unwrap_or(usize::MAX)
            }
        }
    }
}

fn rows_per_slice(rows: &RecordBatch) -> usize {
    let bytes: usize = rows
        .columns()
        .iter()
        .map(|column| {
            let data = column.to_data();
            data.get_slice_memory_size().unwrap_or_else(|_| data.get_array_memory_size())
        })
        .sum();
    let bytes_per_row = bytes / rows.num_rows().max(1) + 1;
    ROWS_MAX.min(BYTES_MAX / bytes_per_row).max(1)
}

/// Hosts in turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    next: usize,
    hosts: usize,
}

impl Turn {
    /// Begins somewhere, as `seed` has it, so that small transactions spread too.
    pub(super) fn new(seed: u128, hosts: usize) -> Self {
        let hosts = hosts.max(1);
        Self { next: (seed % hosts as u128) as usize, hosts }
    }

    /// The host whose turn it is.
    pub(super) fn take(&mut self) -> HostId {
        let host = self.next;
        self.next = (host + 1) % self.hosts;
        HostId(host as u32)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int32Array, StringArray};
    use stillframe_protocol::RelationId;

    use super::*;

    fn changes(column: ArrayRef, cuts: Cuts) -> ExactChanges {
        let weights = vec![1; column.len()];
        let rows = RecordBatch::try_from_iter([("a", column)]).unwrap();
        ExactChanges { changes: Changes { relation: RelationId(1), rows, weights }, cuts }
    }

    fn lengths(changes: &ExactChanges) -> Vec<usize> {
        let slices = changes.slices();
        for slice in &slices {
            assert_eq!(slice.rows.num_rows(), slice.weights.len());
        }
        slices.iter().map(|slice| slice.weights.len()).collect()
    }

    #[test]
    fn small_changes_are_one_message() {
        let column = Arc::new(Int32Array::from_iter_values(0..10));
        assert_eq!(lengths(&changes(column, Cuts::Anywhere)), [10]);
    }

    #[test]
    fn many_rows_are_several_messages() {
        let column = Arc::new(Int32Array::from_iter_values(0..20_000));
        assert_eq!(lengths(&changes(column, Cuts::Anywhere)), [8192, 8192, 3616]);
    }

    #[test]
    fn long_rows_are_several_messages() {
        let long = "x".repeat(1 << 20);
        let column = Arc::new(StringArray::from_iter_values(std::iter::repeat_n(long, 10)));
        assert_eq!(lengths(&changes(column, Cuts::Anywhere)), [3, 3, 3, 1]);
    }

    #[test]
    fn a_key_is_not_cut_apart() {
        let column = Arc::new(Int32Array::from_iter_values(0..20_000));
        let cuts = Cuts::Before(vec![0, 8000, 8193, 16_384, 19_999]);
        assert_eq!(lengths(&changes(column, cuts)), [8193, 11_806, 1]);
    }

    #[test]
    fn hosts_take_turns() {
        let mut turn = Turn::new(5, 3);
        let hosts: Vec<_> = std::iter::repeat_with(|| turn.take().0).take(4).collect();
        assert_eq!(hosts, [2, 0, 1, 2]);
    }
}
