//! Tables whose rows are all written anew: under another number, with which the engine begins in the
//! step in which the change of the catalog takes effect. The views that read them begin anew, too.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::compute::concat_batches;
use arrow::record_batch::RecordBatch;
use stillframe_protocol::RelationId;

use super::check_rows;
use crate::query::QueryContext;
use crate::settings::Settings;
use crate::write::{ExactChanges, Overlay, Target};
use crate::{Catalog, Error, Frame, RelationKind, dml, view};

/// A table whose rows are written anew.
#[derive(Clone, Debug)]
pub(crate) struct Rewrite {
    pub(super) table: RelationId,
    /// By place in the new definition.
    pub(super) sources: Vec<Source>,
}

/// Where a column's values come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The column of this place in the old definition.
    Kept(usize),
    /// An expression over the old row.
    Computed(String),
    /// What a new row has.
    Default,
}

impl Rewrite {
    /// Adds the rows to what the transaction has changed. The frame shows the old ones, and the
    /// changes have the new definition.
    pub(super) async fn run(
        &self,
        frame: &Arc<Frame>,
        settings: &Settings,
        overlay: &mut Overlay,
    ) -> Result<(), Error> {
        let lost = || Error::internal("a table that is written anew is gone");
        let old = frame.catalog().relations.get(&self.table).ok_or_else(lost)?;
        let list = self.sources.iter().filter_map(|source| match source {
            Source::Kept(place) => Some(check_rows::quoted(&old.columns[*place].name)),
            Source::Computed(expression) => Some(expression.clone()),
            Source::Default => None,
        });
        // Its rows count even where nothing of them is kept.
        let list: Vec<_> = list.chain(["true".to_owned()]).collect();
        let query = format!("SELECT {} FROM {}", list.join(", "), check_rows::qualified(old));
        let context = QueryContext::new(Arc::clone(frame), settings.clone());
        let (found, batches) = check_rows::rows_of(&context, &query).await?;
        let Some(first) = batches.first() else { return Ok(()) };
        let rows = concat_batches(&first.schema(), &batches)
            .map_err(|error| Error::internal(error.to_string()))?;
        if rows.num_rows() == 0 {
            return Ok(());
        }
        let frame = frame.under(overlay);
        let relation = frame.catalog().relations.get(&self.table).ok_or_else(lost)?;
        let target = Target::new(frame.catalog(), relation).ok_or_else(lost)?;
        let columns = || self.sources.iter().zip(&relation.columns).enumerate();
        let asked = columns().filter(|(_, (source, _))| **source == Source::Default);
        let asked = asked.map(|(place, (_, column))| (place, column));
        let target = target.with_defaults(dml::defaults(&frame, settings, asked).await?);
        let mut read = found.iter().zip(rows.columns());
        let mut values = vec![];
        for (source, column) in self.sources.iter().zip(&relation.columns) {
            let array = match source {
                Source::Default => None,
                Source::Kept(_) | Source::Computed(_) => read.next(),
            };
            let format = settings.text_format();
            values.push(match array {
                None => None,
                Some((found, array)) => Some(dml::assign(array, &found.kind, column, &format)?),
            });
        }
        dml::fill_each(&frame, settings, &target, &mut values, rows.num_rows()).await?;
        let rows: RecordBatch =
            dml::rewritten(&frame, settings, &target, values, rows.num_rows()).await?;
        overlay.add(&target, vec![ExactChanges::inserted(&target, rows)])
    }
}

/// Gives the views that read such tables other numbers, too: an equal number stands for equal rows in
/// whatever the engine keeps.
pub(super) fn renumber_readers(catalog: &mut Catalog, rewrites: &[Rewrite]) {
    for id in readers(catalog, rewrites) {
        let storage = RelationId(catalog.allocate());
        if let Some(relation) = catalog.relations.get_mut(&id).filter(|found| found.is_stored()) {
            relation.storage = Some(storage);
        }
    }
}

/// Compiles the views that read such tables again. The context has the new definitions.
pub(super) fn compile_readers(
    context: &QueryContext,
    catalog: &mut Catalog,
    rewrites: &[Rewrite],
) -> Result<(), Error> {
    for id in readers(catalog, rewrites) {
        let Some(relation) = catalog.relations.get_mut(&id) else { continue };
        let RelationKind::MaterializedView { query, .. } = &relation.kind else { continue };
        let compiled = view::compile_stored(context, relation, query)?;
        if let RelationKind::MaterializedView { plan, .. } = &mut relation.kind {
            *plan = compiled;
        }
    }
    Ok(())
}

fn readers(catalog: &Catalog, rewrites: &[Rewrite]) -> BTreeSet<RelationId> {
    catalog.dependents(&rewrites.iter().map(|rewrite| rewrite.table).collect())
}
