//! What a transaction has changed and nobody else sees yet: it lies over the frames that the
//! transaction reads, and is staged when it commits.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use arrow::array::RecordBatchOptions;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use stillframe_protocol::{Changes, RelationId};

use super::changes::between_keys;
use super::staging::{Cuts, ExactChanges};
use super::{Draft, KeyEncoder, Target};
use crate::{Catalog, Error};

/// The changes of a transaction, by table. Cheap to clone; a clone stays as it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overlay {
    /// By the numbers under which the engine has tables.
    tables: Arc<BTreeMap<RelationId, Arc<TableChanges>>>,
    draft: Option<Draft>,
}

/// The changes of one table.
#[derive(Clone, Debug)]
pub(crate) struct TableChanges {
    target: Target,
    /// Those of the first statement, as it made them; none once there are others.
    first: Vec<ExactChanges>,
    /// All of them: by the bytes of a row, how often it comes or goes.
    net: OnceLock<Net>,
}

type Net = BTreeMap<Box<[u8]>, i64>;

/// What changes of a table in a read of it.
#[derive(Debug)]
pub(crate) struct Difference {
    /// Rows of the frame that go.
    pub(crate) gone: Gone,
    /// Rows that come, as stored.
    pub(crate) come: RecordBatch,
}

/// Rows of a frame that aren't there any more.
#[derive(Debug)]
pub(crate) struct Gone {
    encoder: KeyEncoder,
    is_keyed: bool,
    /// By the bytes of the key, or of the whole row where there is none.
    rows: HashMap<Box<[u8]>, i64>,
}

impl Overlay {
    /// The changes of a table.
    pub(crate) fn table(&self, relation: RelationId) -> Option<&Arc<TableChanges>> {
        self.tables.get(&relation)
    }

    /// The catalog as the transaction has it, if it has begun to change it.
    pub(crate) fn draft(&self) -> Option<&Draft> {
        self.draft.as_ref()
    }

    /// The same over another catalog.
    pub(super) fn drafting(&self, draft: Draft) -> Self {
        Self { tables: Arc::clone(&self.tables), draft: Some(draft) }
    }

    /// Changes the catalog.
    pub(crate) fn define(&mut self, catalog: Catalog) {
        if let Some(draft) = &mut self.draft {
            draft.catalog = Arc::new(catalog);
            draft.is_changed = true;
        }
    }

    /// Whether the catalog is still that of another overlay.
    pub(crate) fn has_catalog_of(&self, other: &Self) -> bool {
        let catalog =
            |overlay: &Self| overlay.draft.as_ref().map(|draft| Arc::as_ptr(&draft.catalog));
        let changed = self.draft.as_ref().is_some_and(|draft| draft.is_changed);
        !changed || catalog(self) == catalog(other)
    }

    /// Whether nothing is changed.
    pub(crate) fn is_empty(&self) -> bool {
        self.tables.is_empty() && self.draft.is_none()
    }

    /// Adds what a statement changes of a table.
    pub(crate) fn add(&mut self, target: &Target, changes: Vec<ExactChanges>) -> Result<(), Error> {
        let tables = Arc::make_mut(&mut self.tables);
        match tables.get_mut(&target.id()) {
            Some(table) => Arc::make_mut(table).add(&changes),
            None => {
                let table =
                    TableChanges { target: target.clone(), first: changes, net: OnceLock::new() };
                tables.insert(target.id(), Arc::new(table));
                Ok(())
            }
        }
    }

    /// All changes, for staging.
    pub(super) fn exact(&self) -> Result<Vec<ExactChanges>, Error> {
        // What was written to a table that the transaction has removed or written anew since is gone.
        let stays = |id: &RelationId| {
            let catalog = self.draft.as_ref().map(|draft| &draft.catalog);
            catalog.is_none_or(|catalog| catalog.stores(*id))
        };
        let tables = self.tables.iter().filter(|(id, _)| stays(id));
        let tables = tables.map(|(_, table)| table.exact());
        Ok(tables.collect::<Result<Vec<_>, Error>>()?.into_iter().flatten().collect())
    }
}

impl TableChanges {
    /// What is changed of the rows that have one of these keys, leading columns of the primary key;
    /// without keys, of all.
    pub(crate) fn difference(&self, keys: Option<&RecordBatch>) -> Result<Difference, Error> {
        let net = self.net()?;
        let keys = match keys {
            Some(keys) => {
                let encoder = KeyEncoder::new(self.target.schema(), keys.num_columns())?;
                Some(encoder.encode(keys)?)
            }
            None => None,
        };
        let mut changed: Vec<(&[u8], i64)> = vec![];
        match &keys {
            None => changed.extend(net.iter().map(|(row, weight)| (row.as_ref(), *weight))),
            Some(keys) => {
                for key in keys {
                    changed.extend(with_prefix(net, key.data()));
                }
            }
        }
        let come = changed.iter().filter(|(_, weight)| *weight > 0);
        let come = come.flat_map(|(row, weight)| std::iter::repeat_n(*row, *weight as usize));
        let come = self.decode(come)?;
        let gone = changed.iter().filter(|(_, weight)| *weight < 0);
        let encoder = self.target.key_encoder()?;
        let is_keyed = self.target.is_keyed();
        let rows = if is_keyed {
            let gone = self.decode(gone.map(|(row, _)| *row))?;
            encoder.encode(&gone)?.iter().map(|key| (Box::from(key.data()), 1)).collect()
        } else {
            gone.map(|(row, weight)| (Box::from(*row), -weight)).collect()
        };
        Ok(Difference { gone: Gone { encoder, is_keyed, rows }, come })
    }

    /// Turns the keys that a frame has of some into those that are there.
    pub(super) fn correct(
        &self,
        existing: &mut HashSet<Box<[u8]>>,
        encoder: &KeyEncoder,
        keys: &RecordBatch,
    ) -> Result<(), Error> {
        let net = self.net()?;
        for key in &encoder.encode(keys)? {
            let key = key.data();
            let weights = with_prefix(net, key).map(|(_, weight)| weight);
            match weights.max() {
                Some(weight) if weight > 0 => {
                    existing.insert(Box::from(key));
                }
                Some(_) => {
                    existing.remove(key);
                }
                None => {}
            }
        }
        Ok(())
    }

    fn add(&mut self, changes: &[ExactChanges]) -> Result<(), Error> {
        self.net()?;
        self.first.clear();
        let Some(net) = self.net.get_mut() else {
            return Err(Error::internal("changes were netted and aren't there"));
        };
        count(net, &self.target, changes)
    }

    fn net(&self) -> Result<&Net, Error> {
        if let Some(net) = self.net.get() {
            return Ok(net);
        }
        let mut net = Net::new();
        count(&mut net, &self.target, &self.first)?;
        Ok(self.net.get_or_init(|| net))
    }

    fn exact(&self) -> Result<Vec<ExactChanges>, Error> {
        if !self.first.is_empty() {
            return Ok(self.first.clone());
        }
        let net = self.net()?;
        if net.is_empty() {
            return Ok(vec![]);
        }
        // In the order of the keys: those of one key stand together.
        let rows = self.decode(net.keys().map(AsRef::as_ref))?;
        let cuts = match self.target.is_keyed() {
            true => between_keys(&self.target, &rows)?,
            false => Cuts::Anywhere,
        };
        let weights = net.values().copied().collect();
        let changes = Changes { relation: self.target.id(), rows, weights };
        Ok(vec![ExactChanges { changes, cuts }])
    }

    fn decode<'a>(&self, rows: impl Iterator<Item = &'a [u8]>) -> Result<RecordBatch, Error> {
        let (columns, rows) = whole_rows(&self.target)?.decode(rows)?;
        self.target.batch(columns, rows)
    }
}

impl Gone {
    /// Whether no row goes.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How many leading columns, as stored, tell whether a row goes.
    pub(crate) fn columns(&self) -> usize {
        self.encoder.columns()
    }

    /// Which of some rows stay, told by their leading columns. `counted` is what was counted of
    /// rows before these; equal rows are on one shard.
    pub(crate) fn stay(
        &self,
        rows: &RecordBatch,
        counted: &mut HashMap<Box<[u8]>, i64>,
    ) -> Result<Vec<bool>, Error> {
        let encoded = self.encoder.encode(rows)?;
        let stays = encoded.iter().map(|row| {
            let Some(going) = self.rows.get(row.data()) else { return true };
            if self.is_keyed {
                return false;
            }
            let counted = counted.entry(Box::from(row.data())).or_default();
            *counted += 1;
            *counted > *going
        });
        Ok(stays.collect())
    }
}

fn whole_rows(target: &Target) -> Result<KeyEncoder, Error> {
    KeyEncoder::new(target.schema(), target.schema().fields().len())
}

fn with_prefix<'a>(net: &'a Net, prefix: &'a [u8]) -> impl Iterator<Item = (&'a [u8], i64)> {
    net.range::<[u8], _>((Bound::Included(prefix), Bound::Unbounded))
        .take_while(move |(row, _)| row.starts_with(prefix))
        .map(|(row, weight)| (row.as_ref(), *weight))
}

fn count(net: &mut Net, target: &Target, changes: &[ExactChanges]) -> Result<(), Error> {
    let encoder = whole_rows(target)?;
    for ExactChanges { changes, .. } in changes {
        for (row, weight) in encoder.encode(&changes.rows)?.iter().zip(&changes.weights) {
            let row = row.data();
            let Some(counted) = net.get_mut(row) else {
                net.insert(Box::from(row), *weight);
                continue;
            };
            *counted += weight;
            if *counted == 0 {
                net.remove(row);
            }
        }
    }
    Ok(())
}

/// Some rows of a batch, without its first columns.
pub(crate) fn keep(
    rows: &RecordBatch,
    stays: Vec<bool>,
    dropped: usize,
) -> Result<RecordBatch, Error> {
    let broken = |error| Error::internal(format!("rows cannot be put together: {error}"));
    let kept = arrow::compute::filter_record_batch(rows, &stays.into()).map_err(broken)?;
    let schema: SchemaRef = kept.schema();
    let wanted: Vec<_> = (dropped..schema.fields().len()).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(kept.num_rows()));
    let columns = kept.columns()[dropped..].to_vec();
    let schema = Arc::new(schema.project(&wanted).map_err(broken)?);
    RecordBatch::try_new_with_options(schema, columns, &options).map_err(broken)
}
