//! Reads of a frame.
//!
//! A scan holds its frame, so what it reads stays what it is while steps go on. It makes one batch
//! at a time, on a thread where it may take its time, and one batch ahead of its reader; between two
//! batches it occupies nothing but memory. So any number of slow readers can't keep a quick one
//! waiting, and a reader that goes away stops its scan.

mod columns;
mod merge;
mod rows;

use std::num::NonZeroUsize;
use std::sync::Arc;

use futures::StreamExt as _;
use stillframe_protocol::{HostError, ScanPart, ScanRequest, ScanStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::Functions;
use crate::frames::Frame;
use columns::Columns;
use rows::{Cursor, Fill};

/// Makes the batches of all scans of a host, so many at a time.
#[derive(Clone, Debug)]
pub(crate) struct Scanner {
    permits: Arc<Semaphore>,
    functions: Functions,
}

/// One scan, between two of its batches.
struct Scan {
    cursor: Cursor,
    columns: Columns,
    batch_rows: usize,
    /// How many rows may still be returned.
    remaining: usize,
}

/// What a scan has come to.
enum Chunk {
    /// A part of the answer, if any row of it was wanted. More may follow.
    More(Option<ScanPart>),
    /// The last part, if any row of it was wanted.
    Last(Option<ScanPart>),
}

impl Scanner {
    /// A scanner that makes at most so many batches at a time.
    pub(crate) fn new(functions: Functions, concurrency: NonZeroUsize) -> Self {
        Self { permits: Arc::new(Semaphore::new(concurrency.get())), functions }
    }

    /// Starts a scan of a frame.
    pub(crate) fn scan(
        &self,
        frame: &Arc<Frame>,
        request: &ScanRequest,
    ) -> Result<ScanStream, HostError> {
        let scan = Scan::new(frame, request, &self.functions)?;
        Ok(stream(scan, Arc::clone(&self.permits)))
    }
}

impl Scan {
    fn new(
        frame: &Arc<Frame>,
        request: &ScanRequest,
        functions: &Functions,
    ) -> Result<Self, HostError> {
        let Some(relation) = frame.relations.get(&request.relation) else {
            return Err(HostError::UnknownRelation(request.relation));
        };
        if request.batch_rows == 0 {
            return Err(HostError::Invalid("a batch must have rows".to_owned()));
        }
        Ok(Self {
            cursor: Cursor::new(relation, request)?,
            columns: Columns::new(&relation.codec, request, functions)?,
            batch_rows: request.batch_rows,
            remaining: request.limit.unwrap_or(usize::MAX),
        })
    }

    /// Makes the next part of the answer.
    fn next(&mut self) -> Result<Chunk, HostError> {
        if self.remaining == 0 {
            return Ok(Chunk::Last(None));
        }
        // Without filters no more is read than is wanted.
        let wanted = match self.columns.has_filters() {
            true => self.batch_rows,
            false => self.batch_rows.min(self.remaining),
        };
        let Fill { rows, end } = self.cursor.fill(wanted, self.columns.needs_bytes())?;
        let batch = self.columns.batch(&rows, self.remaining)?;
        self.remaining -= batch.num_rows();
        let part = (batch.num_rows() > 0).then_some(ScanPart::Batch(batch));
        Ok(if end || self.remaining == 0 { Chunk::Last(part) } else { Chunk::More(part) })
    }
}

/// A scan as its reader sees it.
enum Reading {
    /// The next part is being made.
    Making(JoinHandle<(Scan, Result<Chunk, HostError>)>),
    /// Everything was made; the last word is to be said.
    Made,
    /// It was said.
    Over,
}

fn stream(scan: Scan, permits: Arc<Semaphore>) -> ScanStream {
    let first = Reading::Making(make(scan, &permits));
    futures::stream::unfold((first, 0), move |(mut reading, mut sent)| {
        let permits = Arc::clone(&permits);
        async move {
            loop {
                let (part, next) = match reading {
                    Reading::Making(part) => made(part.await, &permits),
                    Reading::Made => (Some(Ok(ScanPart::End { rows: sent })), Reading::Over),
                    Reading::Over => return None,
                };
                reading = next;
                if let Some(part) = part {
                    if let Ok(ScanPart::Batch(batch)) = &part {
                        sent += batch.num_rows() as u64;
                    }
                    return Some((part, (reading, sent)));
                }
            }
        }
    })
    .boxed()
}

/// Makes a scan's next part as soon as it is its turn.
fn make(mut scan: Scan, permits: &Arc<Semaphore>) -> JoinHandle<(Scan, Result<Chunk, HostError>)> {
    let permits = Arc::clone(permits);
    tokio::spawn(async move {
        let _permit = permits.acquire().await.expect("the semaphore is never closed");
        let made = tokio::task::spawn_blocking(move || {
            let chunk = scan.next();
            (scan, chunk)
        });
        match made.await {
            Ok(made) => made,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    })
}

/// Takes a part that was made, and has the next one made while it is read.
fn made(
    made: Result<(Scan, Result<Chunk, HostError>), tokio::task::JoinError>,
    permits: &Arc<Semaphore>,
) -> (Option<Result<ScanPart, HostError>>, Reading) {
    match made {
        Ok((scan, Ok(Chunk::More(part)))) => (part.map(Ok), Reading::Making(make(scan, permits))),
        Ok((_, Ok(Chunk::Last(part)))) => (part.map(Ok), Reading::Made),
        Ok((_, Err(error))) => (Some(Err(error)), Reading::Over),
        Err(error) => {
            (Some(Err(HostError::Failed(format!("scan failed: {error}")))), Reading::Over)
        }
    }
}
