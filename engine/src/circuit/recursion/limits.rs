//! When a recursion is taken for one that never ends.

use stillframe_protocol::RowError;

/// More than this is an error, 54000: what takes longer would stop the steps of all other views.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Iterations of one change.
    pub(super) iterations_max: usize,
    /// Rows that the recursion has, equal ones counted.
    pub(super) rows_max: usize,
    /// Bytes of these rows, equal ones counted once.
    pub(super) bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let iterations_max = if cfg!(test) { 1_000 } else { 100_000 };
        Self { iterations_max, rows_max: 10_000_000, bytes_max: 512 << 20 }
    }
}

impl Limits {
    /// For what is known to end.
    pub(super) fn none() -> Self {
        Self { iterations_max: usize::MAX, rows_max: usize::MAX, bytes_max: usize::MAX }
    }
}

/// What a recursion has used of its limits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Used {
    pub(super) iterations: usize,
    pub(super) rows: i64,
    pub(super) bytes: usize,
}

impl Used {
    /// Whether it goes on.
    pub(super) fn check(&self, limits: &Limits) -> Result<(), Endless> {
        let rows = usize::try_from(self.rows).unwrap_or(0);
        let is_within = self.iterations <= limits.iterations_max
            && rows <= limits.rows_max
            && self.bytes <= limits.bytes_max;
        if is_within { Ok(()) } else { Err(Endless) }
    }
}

/// The recursion doesn't end within the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Endless;

impl Endless {
    pub(super) fn error(limits: &Limits) -> RowError {
        let message = format!(
            "recursive query does not end within {} iterations, {} rows and {} MB",
            limits.iterations_max,
            limits.rows_max,
            limits.bytes_max >> 20
        );
        RowError { sqlstate: "54000".to_owned(), message }
    }
}
