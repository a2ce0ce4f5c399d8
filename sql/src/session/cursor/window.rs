//! The rows of a cursor around the place where it stands.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::UInt32Array;
use arrow::compute::take_record_batch;
use arrow::record_batch::RecordBatch;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use tokio::sync::Mutex;

use crate::parser::Direction;
use crate::{Error, SqlState};

/// Rows that were fetched are kept up to so many bytes, to go back to.
const BYTES_MAX: usize = 64 << 20;

/// Rows that were read from the query, and where the cursor stands among all.
///
/// Rows count from 1. It stands on a row, before the first (0), or after the last.
pub(super) struct Window {
    /// What the query has not given yet.
    rest: BoxStream<'static, Result<RecordBatch, Error>>,
    /// What it has given, the oldest first: the rows after `forgotten` up to `read`.
    batches: VecDeque<RecordBatch>,
    bytes: usize,
    forgotten: u64,
    read: u64,
    has_ended: bool,
    position: u64,
    goes_back: bool,
}

impl Window {
    pub(super) fn new(
        rest: BoxStream<'static, Result<RecordBatch, Error>>,
        goes_back: bool,
    ) -> Self {
        Self {
            rest,
            batches: VecDeque::new(),
            bytes: 0,
            forgotten: 0,
            read: 0,
            has_ended: false,
            position: 0,
            goes_back,
        }
    }

    /// Reads on until it has a row, or there are no more; whether it has it.
    async fn reach(&mut self, row: u64) -> Result<bool, Error> {
        while self.read < row && !self.has_ended {
            match self.rest.next().await {
                Some(batch) => {
                    let batch = batch?;
                    self.read += batch.num_rows() as u64;
                    self.bytes += batch.get_array_memory_size();
                    self.batches.push_back(batch);
                    self.forget();
                }
                None => self.has_ended = true,
            }
        }
        Ok(row <= self.read)
    }

    /// Gives up the oldest rows before the one on which it stands, if there are too many.
    fn forget(&mut self) {
        let limit = if self.goes_back { BYTES_MAX } else { 0 };
        while self.bytes > limit
            && let Some(oldest) = self.batches.front()
            && self.forgotten + (oldest.num_rows() as u64) < self.position
        {
            self.forgotten += oldest.num_rows() as u64;
            self.bytes -= oldest.get_array_memory_size();
            self.batches.pop_front();
        }
    }

    /// The rows that follow one, up to another, as far as they are in one batch; both are there.
    fn slice(&self, after: u64, last: u64) -> Option<RecordBatch> {
        let mut before = self.forgotten;
        for batch in &self.batches {
            let end = before + batch.num_rows() as u64;
            if after < end {
                let from = (after - before) as usize;
                let count = (last.min(end) - after) as usize;
                return Some(batch.slice(from, count));
            }
            before = end;
        }
        None
    }

    /// The next rows, at most so many; none if there are no more.
    async fn forward(&mut self, count: u64) -> Result<Option<RecordBatch>, Error> {
        let after = self.position;
        if !self.reach(after.saturating_add(1)).await? {
            self.position = self.read + 1;
            return Ok(None);
        }
        let batch = self.slice(after, self.read.min(after.saturating_add(count)));
        let batch = batch.ok_or_else(|| Error::internal("a row of a cursor is gone"))?;
        self.position = after + batch.num_rows() as u64;
        Ok(Some(batch))
    }

    /// The rows before, at most so many, the nearest first.
    fn backward(&mut self, count: u64) -> Result<Vec<RecordBatch>, Error> {
        self.check_back()?;
        let last = self.position.saturating_sub(1);
        let first = self.position.saturating_sub(count);
        let target = first;
        let first = first.max(1);
        if last < first {
            self.position = 0;
            return Ok(vec![]);
        }
        self.check_kept(first)?;
        let mut batches = vec![];
        let mut after = first - 1;
        while after < last {
            let batch = self.slice(after, last);
            let batch = batch.ok_or_else(|| Error::internal("a row of a cursor is gone"))?;
            after += batch.num_rows() as u64;
            let places = (0..batch.num_rows() as u32).rev().collect::<Vec<_>>();
            let reversed = take_record_batch(&batch, &UInt32Array::from(places));
            batches.push(reversed.map_err(|error| Error::internal(error.to_string()))?);
        }
        batches.reverse();
        self.position = if target == 0 { 0 } else { first };
        Ok(batches)
    }

    /// Stands on a row, or beside the first or the last; the row, if there is one.
    async fn stand_on(&mut self, row: u64) -> Result<Option<RecordBatch>, Error> {
        if row <= self.position && self.position > 0 {
            self.check_back()?;
        }
        if row == 0 {
            self.position = 0;
            return Ok(None);
        }
        if row > self.position {
            // What is passed over need not be kept.
            while self.position + 1 < row {
                if self.forward(row - 1 - self.position).await?.is_none() {
                    return Ok(None);
                }
            }
            return self.forward(1).await;
        }
        self.check_kept(row)?;
        self.position = row;
        Ok(self.slice(row - 1, row))
    }

    fn check_back(&self) -> Result<(), Error> {
        if self.goes_back {
            return Ok(());
        }
        let message = "cursor can only scan forward";
        Err(Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
            .with_hint("Declare it with SCROLL option to enable backward scan."))
    }

    fn check_kept(&self, row: u64) -> Result<(), Error> {
        if row > self.forgotten {
            return Ok(());
        }
        let message = "cursor has gone too far to go back to this row";
        let hint = format!("A cursor keeps the rows of the last {} MiB.", BYTES_MAX >> 20);
        Err(Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message).with_hint(hint))
    }

    /// The number of the row so far from the last one, which is 1 away from the end; or 0.
    async fn back_from_end(&mut self, distance: u64) -> Result<u64, Error> {
        self.check_back()?;
        while self.reach(self.read.saturating_add(1)).await? {
            // What is passed over need not all be kept.
            self.position = self.read;
            self.forget();
        }
        Ok((self.read + 1).saturating_sub(distance))
    }
}

/// The rows that are meant, as they are asked for.
pub(super) async fn fetch(
    window: Arc<Mutex<Window>>,
    direction: Direction,
) -> Result<BoxStream<'static, Result<RecordBatch, Error>>, Error> {
    let one = |found: Option<RecordBatch>| stream::iter(found.map(Ok)).boxed();
    let mut locked = window.lock().await;
    Ok(match direction {
        Direction::Forward(0) | Direction::Backward(0) | Direction::Relative(0) => {
            let here = locked.position;
            match here {
                0 => one(None),
                here if here > locked.read => one(None),
                here => one(locked.stand_on(here).await?),
            }
        }
        Direction::Forward(count) => {
            drop(locked);
            let rows = stream::try_unfold((window, count), async |(window, rest)| {
                if rest == 0 {
                    return Ok(None);
                }
                // Not beyond what is asked: others may fetch meanwhile.
                let found = window.lock().await.forward(rest).await?;
                Ok(found.map(|batch| {
                    let rest = rest - batch.num_rows() as u64;
                    (batch, (window, rest))
                }))
            });
            rows.boxed()
        }
        Direction::Backward(count) => {
            stream::iter(locked.backward(count)?.into_iter().map(Ok)).boxed()
        }
        Direction::Absolute(place) => {
            let row = match u64::try_from(place) {
                Ok(row) => row,
                Err(_) => locked.back_from_end(place.unsigned_abs()).await?,
            };
            one(locked.stand_on(row).await?)
        }
        Direction::Relative(distance) => {
            let row = locked.position.saturating_add_signed(distance);
            one(locked.stand_on(row).await?)
        }
    })
}
