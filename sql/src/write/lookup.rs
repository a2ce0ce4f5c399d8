//! What a frame has of a table that is written: rows, and keys.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::compute::concat_batches;
use arrow::record_batch::RecordBatch;
use futures::future::try_join_all;
use futures::{StreamExt, TryStreamExt};
use stillframe_protocol::{ScanPart, ScanRequest, Shard};

use super::{Difference, KeyEncoder, Target, Values, keep};
use crate::{Error, Frame};

/// How many keys a host is asked for at once.
const KEYS_PER_SCAN: usize = 8192;

/// From so many keys on it is worth to ask first whether the table has rows at all.
const KEYS_WORTH_A_LOOK: usize = 1024;

/// The bytes of those of `keys` that rows of the frame have.
///
/// A key's owner isn't known here, so every shard is asked for every key.
pub(crate) async fn existing_keys(
    frame: &Arc<Frame>,
    target: &Target,
    encoder: &KeyEncoder,
    keys: &[RecordBatch],
) -> Result<HashSet<Box<[u8]>>, Error> {
    let total: usize = keys.iter().map(RecordBatch::num_rows).sum();
    let overlay = frame.overlay().table(target.id());
    let mut found = HashSet::new();
    if total == 0
        || (overlay.is_none() && total >= KEYS_WORTH_A_LOOK && is_empty(frame, target).await?)
    {
        return Ok(found);
    }
    for batch in keys {
        for start in (0..batch.num_rows()).step_by(KEYS_PER_SCAN) {
            let rows = KEYS_PER_SCAN.min(batch.num_rows() - start);
            let keys = batch.slice(start, rows);
            let scans = shards(frame, target).map(|shard| {
                let request = ScanRequest {
                    keys: Some(keys.clone()),
                    limit: None,
                    ..request(frame, target, shard)
                };
                scan(frame, shard, request)
            });
            for batch in try_join_all(scans).await?.into_iter().flatten() {
                let rows = encoder.encode(&batch)?;
                found.extend(rows.iter().map(|row| Box::from(row.data())));
            }
        }
        if let Some(changes) = overlay {
            changes.correct(&mut found, encoder, batch)?;
        }
    }
    Ok(found)
}

/// All rows of the frame and what lies over it.
pub(crate) async fn all_rows(frame: &Arc<Frame>, target: &Target) -> Result<RecordBatch, Error> {
    let columns = target.schema().fields().len();
    let scans = shards(frame, target).map(|shard| {
        let request =
            ScanRequest { projection: (0..columns).collect(), ..request(frame, target, shard) };
        scan(frame, shard, request)
    });
    let mut batches: Vec<_> = try_join_all(scans).await?.into_iter().flatten().collect();
    if let Some(changes) = frame.overlay().table(target.id()) {
        let Difference { gone, come } = changes.difference(None)?;
        let mut counted = HashMap::new();
        for batch in &mut batches {
            *batch = keep(batch, gone.stay(batch, &mut counted)?, 0)?;
        }
        batches.push(come);
    }
    concat_batches(target.schema(), &batches)
        .map_err(|error| Error::internal(format!("rows do not fit their table: {error}")))
}

/// The rows of the frame, and of what lies over it, that have one of some values in some columns,
/// by place as stored. A value with a NULL meets nothing.
pub(crate) async fn rows_with(
    frame: &Arc<Frame>,
    target: &Target,
    columns: &[usize],
    values: &RecordBatch,
) -> Result<RecordBatch, Error> {
    let all: Vec<_> = (0..values.num_columns()).collect();
    let wanted = Values::new(values, &all)?;
    let wanted: HashSet<&[u8]> = (0..values.num_rows()).filter_map(|row| wanted.get(row)).collect();
    if wanted.is_empty() {
        return Ok(RecordBatch::new_empty(Arc::clone(target.schema())));
    }
    // The leading columns of the primary key among them, in its order.
    let place = |column: usize| columns.iter().position(|found| *found == column);
    let prefix: Vec<usize> = (0..target.key_columns()).map_while(place).collect();
    let few = values.num_rows() <= KEYS_PER_SCAN;
    let keys = (!prefix.is_empty() && few)
        .then(|| {
            let columns = prefix.iter().map(|place| Arc::clone(values.column(*place))).collect();
            RecordBatch::try_new(target.keys_schema(prefix.len()), columns)
        })
        .transpose()
        .map_err(|error| Error::internal(error.to_string()))?;
    let width = target.schema().fields().len();
    let scans = shards(frame, target).map(|shard| {
        let projection = (0..width).collect();
        let keys = keys.clone();
        scan(frame, shard, ScanRequest { projection, keys, ..request(frame, target, shard) })
    });
    let mut batches: Vec<_> = try_join_all(scans).await?.into_iter().flatten().collect();
    if let Some(changes) = frame.overlay().table(target.id()) {
        let Difference { gone, come } = changes.difference(keys.as_ref())?;
        let mut counted = HashMap::new();
        for batch in &mut batches {
            *batch = keep(batch, gone.stay(batch, &mut counted)?, 0)?;
        }
        batches.push(come);
    }
    for batch in &mut batches {
        let found = Values::new(batch, columns)?;
        let is_wanted = |row| found.get(row).is_some_and(|value| wanted.contains(value));
        *batch = keep(batch, (0..batch.num_rows()).map(is_wanted).collect(), 0)?;
    }
    concat_batches(target.schema(), &batches)
        .map_err(|error| Error::internal(format!("rows do not fit their table: {error}")))
}

async fn is_empty(frame: &Arc<Frame>, target: &Target) -> Result<bool, Error> {
    let scans = shards(frame, target).map(|shard| {
        let request = ScanRequest { keys: None, limit: Some(1), ..request(frame, target, shard) };
        scan(frame, shard, request)
    });
    let batches = try_join_all(scans).await?;
    Ok(batches.iter().flatten().all(|batch| batch.num_rows() == 0))
}

/// The shards that have rows of the table: none of one that the transaction itself has made.
fn shards(frame: &Frame, target: &Target) -> impl Iterator<Item = Shard> + use<> {
    let is_stored = frame.stores(target.id());
    frame.database().shards().filter(move |_| is_stored)
}

fn request(frame: &Frame, target: &Target, shard: Shard) -> ScanRequest {
    ScanRequest {
        epoch: frame.epoch(),
        step: frame.step(),
        relation: target.id(),
        worker: shard.worker,
        keys: None,
        filters: vec![],
        limit: None,
        projection: (0..target.key_columns()).collect(),
        batch_rows: KEYS_PER_SCAN,
    }
}

/// Reads a shard to its end.
async fn scan(
    frame: &Frame,
    shard: Shard,
    request: ScanRequest,
) -> Result<Vec<RecordBatch>, Error> {
    let mut parts = frame.database().host(shard.host).scan(request).await?.fuse();
    let mut batches = vec![];
    while let Some(part) = parts.try_next().await? {
        match part {
            ScanPart::Batch(batch) => batches.push(batch),
            ScanPart::End { rows } => {
                let received: usize = batches.iter().map(RecordBatch::num_rows).sum();
                if received as u64 == rows {
                    return Ok(batches);
                }
                let message = format!("a scan of shard {shard} lost rows: {received} of {rows}");
                return Err(Error::internal(message));
            }
        }
    }
    Err(Error::internal(format!("a scan of shard {shard} ended early")))
}
