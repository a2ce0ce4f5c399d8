//! Foreign keys: what a statement's writes mean for rows of other tables, when it is over.
//!
//! ```text
//! rows come to a child     share the parent's key; it must be there in the end
//! keys of a parent go      reserve them alone; look for children in the newest frame:
//!                          none -> fine; else they change too, or the statement fails
//! ```
//!
//! A key is reserved under the foreign key's own number, so that parents may change otherwise while
//! children come. Who reserves a parent's key alone looks in a frame that is taken then: it shows
//! every child that was committed before, and no other can come.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt64Array, new_null_array};
use arrow::compute::{CastOptions, cast_with_options, concat_batches, take};
use stillframe_protocol::{Entry, Lockable, Mode, RelationId, Reservation, Step};

use super::deferred::Modes;
use super::keys::{KEYS_MAX, hash};
use super::proposal::TableWrite;
use super::violation::key_text;
use super::{Overlay, Proposal, Target, Transaction, Values, changed_meanwhile, rows_with};
use crate::settings::Settings;
use crate::{
    Action, Catalog, ConstraintKind, Deferral, Error, Frame, Relation, SqlState, Subject, dml,
};

/// What has become of a statement's writes.
pub(super) enum Enforced {
    /// Something they depend on has changed since the frame, at this step at the latest.
    Changed(Step),
    /// All changes of the transaction, with those that follow from the statement's.
    Kept(Overlay),
}

/// A foreign key, as both its tables have it.
#[derive(Clone, Debug)]
struct Reference {
    oid: u32,
    name: String,
    deferral: Deferral,
    child: Target,
    /// By place as stored.
    child_columns: Vec<usize>,
    parent: Target,
    /// By place as stored.
    parent_columns: Vec<usize>,
    on_delete: Action,
    on_update: Action,
}

/// Whether any of some tables has or is referred to by a foreign key.
pub(super) fn concerns(writes: &[TableWrite]) -> bool {
    writes.iter().any(|write| {
        let relation = write.target.relation();
        let is_child = relation
            .constraints
            .iter()
            .any(|constraint| matches!(constraint.kind, ConstraintKind::ForeignKey { .. }));
        is_child || write.target.catalog().children(relation.id).next().is_some()
    })
}

/// What must be true when the statement is over.
#[derive(Debug, Default)]
pub(super) struct Checks {
    /// Values of children that parents must have.
    present: Vec<(Reference, RecordBatch)>,
    /// Keys of parents that went, which children mustn't have.
    absent: Vec<(Reference, RecordBatch, Action)>,
}

impl Transaction {
    /// Finds what follows from a statement's writes, and fails if a foreign key forbids them.
    pub(super) async fn enforce(
        &mut self,
        frame: &Arc<Frame>,
        settings: &Settings,
        writes: Vec<TableWrite>,
    ) -> Result<Enforced, Error> {
        let mut overlay = self.overlay().clone();
        for write in &writes {
            overlay.add(&write.target, write.changes.iter().cloned().collect())?;
        }
        let mut checks = Checks::default();
        let mut open = VecDeque::from(writes);
        while let Some(write) = open.pop_front() {
            for reference in References::of_child(&write.target)? {
                let values = reference.values_that_come(&write)?;
                if values.num_rows() == 0 {
                    continue;
                }
                let keys = typed_or_null(&values, &reference.parent, &reference.parent_columns)?;
                let entries = reference.entries(&keys, Mode::Shared)?;
                if let Some(step) = self.reserve_more(frame, entries).await? {
                    return Ok(Enforced::Changed(step));
                }
                checks.present.push((reference, values));
            }
            for reference in References::of_parent(&write.target)? {
                let gone = reference.keys_that_go(&write)?;
                if gone.old.num_rows() == 0 {
                    continue;
                }
                let entries = reference.entries(&gone.old, Mode::Exclusive)?;
                if let Some(step) = self.reserve_more(frame, entries).await? {
                    return Ok(Enforced::Changed(step));
                }
                for (action, old, new) in gone.by_action(&reference)? {
                    if matches!(action, Action::NoAction | Action::Restrict) {
                        checks.absent.push((reference.clone(), old, action));
                        continue;
                    }
                    if action == Action::SetDefault {
                        // The default may be the key that goes.
                        checks.absent.push((reference.clone(), old.clone(), Action::NoAction));
                    }
                    let newest = self.newer_frame(Step(0)).await?.under(&overlay);
                    let follows = reference.follow(&newest, settings, action, &old, new).await?;
                    let Some(mut proposal) = follows else { continue };
                    let entries = std::mem::take(&mut proposal.entries);
                    if let Some(step) = self.reserve_more(frame, entries).await? {
                        return Ok(Enforced::Changed(step));
                    }
                    proposal.check(&newest).await?;
                    for write in &proposal.writes {
                        overlay.add(&write.target, write.changes.iter().cloned().collect())?;
                    }
                    open.extend(proposal.writes);
                }
            }
        }
        let (later, now) = checks.split(&self.modes);
        if !now.is_empty() {
            let newest = self.newer_frame(Step(0)).await?.under(&overlay);
            now.run(&newest).await?;
        }
        self.deferred.extend(later);
        Ok(Enforced::Kept(overlay))
    }

    /// Reserves what follows from a statement; the step at which it was changed, if it was.
    async fn reserve_more(
        &mut self,
        frame: &Frame,
        entries: Vec<Entry>,
    ) -> Result<Option<Step>, Error> {
        if entries.is_empty() {
            return Ok(None);
        }
        match self.reserve(frame, entries).await? {
            Reservation::Granted => Ok(None),
            Reservation::Changed(_) if self.is_repeatable() => Err(changed_meanwhile()),
            Reservation::Changed(step) => Ok(Some(step)),
        }
    }
}

/// Finds the foreign keys of tables.
struct References;

impl References {
    fn of_child(target: &Target) -> Result<Vec<Reference>, Error> {
        let (catalog, relation) = (target.catalog(), target.relation());
        let constraints = relation.constraints.iter();
        let found = constraints.map(|constraint| Reference::new(catalog, relation, constraint.oid));
        Ok(found.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    fn of_parent(target: &Target) -> Result<Vec<Reference>, Error> {
        let catalog = target.catalog();
        let children = catalog.children(target.relation().id);
        let found =
            children.map(|(child, constraint)| Reference::new(catalog, child, constraint.oid));
        Ok(found.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }
}

/// Keys of a parent that go.
struct Gone {
    /// The keys.
    old: RecordBatch,
    /// What the first of them become; the rows of the others go.
    new: RecordBatch,
}

impl Gone {
    /// Those that change and those whose rows go, with what is to be done about their children.
    fn by_action(
        &self,
        reference: &Reference,
    ) -> Result<Vec<(Action, RecordBatch, Option<RecordBatch>)>, Error> {
        let changed = self.new.num_rows();
        let gone = self.old.num_rows() - changed;
        let mut all = vec![];
        if changed > 0 {
            let old = self.old.slice(0, changed);
            all.push((reference.on_update, old, Some(self.new.clone())));
        }
        if gone > 0 {
            all.push((reference.on_delete, self.old.slice(changed, gone), None));
        }
        Ok(all)
    }
}

impl Reference {
    fn new(catalog: &Arc<Catalog>, child: &Relation, oid: u32) -> Result<Option<Self>, Error> {
        let constraint = child.constraints.iter().find(|constraint| constraint.oid == oid);
        let Some(constraint) = constraint else { return Ok(None) };
        let ConstraintKind::ForeignKey { columns, parent, parent_columns, on_delete, on_update } =
            &constraint.kind
        else {
            return Ok(None);
        };
        let lost = || Error::internal(format!("foreign key {oid} has lost its table"));
        let parent = catalog.relations.get(parent).ok_or_else(lost)?;
        let parent = Target::new(catalog, parent).ok_or_else(lost)?;
        let child = Target::new(catalog, child).ok_or_else(lost)?;
        Ok(Some(Self {
            oid,
            name: constraint.name.clone(),
            deferral: constraint.deferral,
            child_columns: child.stored_places(columns),
            parent_columns: parent.stored_places(parent_columns),
            child,
            parent,
            on_delete: *on_delete,
            on_update: *on_update,
        }))
    }

    /// The values that rows of the child come with.
    fn values_that_come(&self, write: &TableWrite) -> Result<RecordBatch, Error> {
        let old = Values::new(&write.old, &self.child_columns)?;
        let new = Values::new(&write.new, &self.child_columns)?;
        let mut seen = HashSet::new();
        let rows = (0..write.new.num_rows()).filter(|row| {
            let Some(after) = new.get(*row) else { return false };
            let is_same = *row < write.updated && old.get(*row) == Some(after);
            !is_same && seen.insert(after)
        });
        new.only(rows.map(|row| row as u64).collect())
    }

    /// The keys that rows of the parent had.
    fn keys_that_go(&self, write: &TableWrite) -> Result<Gone, Error> {
        let old = Values::new(&write.old, &self.parent_columns)?;
        let new = Values::new(&write.new, &self.parent_columns)?;
        let changed = |row: &usize| old.get(*row).is_some() && old.get(*row) != new.get(*row);
        let changed: Vec<u64> = (0..write.updated).filter(changed).map(|row| row as u64).collect();
        let gone = (write.updated..write.old.num_rows()).filter(|row| old.get(*row).is_some());
        let gone = changed.iter().copied().chain(gone.map(|row| row as u64)).collect();
        Ok(Gone { old: old.only(gone)?, new: new.only(changed)? })
    }

    /// What is reserved of the parent's keys.
    fn entries(&self, keys: &RecordBatch, mode: Mode) -> Result<Vec<Entry>, Error> {
        let relation = self.parent.id();
        if keys.num_rows() > KEYS_MAX {
            let lockable = Lockable::Relation(relation);
            return Ok(vec![Entry { lockable, mode: Mode::Exclusive }]);
        }
        let all: Vec<_> = (0..keys.num_columns()).collect();
        let values = Values::new(keys, &all)?;
        let keys = (0..keys.num_rows()).filter_map(|row| values.get(row));
        let keys = keys.map(|key| Entry {
            lockable: Lockable::Key { relation, constraint: self.oid, hash: hash(key) },
            mode,
        });
        let whole = |relation: RelationId| Entry {
            lockable: Lockable::Relation(relation),
            mode: Mode::Shared,
        };
        // The child can't be emptied or dropped meanwhile either.
        Ok([whole(relation), whole(self.child.id())].into_iter().chain(keys).collect())
    }

    /// Rows of the child that have one of some keys of the parent.
    async fn children(&self, frame: &Arc<Frame>, keys: &RecordBatch) -> Result<RecordBatch, Error> {
        // A key that isn't of the child's type is no child's.
        let keys = typed_or_null(keys, &self.child, &self.child_columns)?;
        rows_with(frame, &self.child, &self.child_columns, &keys).await
    }

    /// Those of some values of the child that it has still.
    async fn still_there(
        &self,
        frame: &Arc<Frame>,
        values: &RecordBatch,
    ) -> Result<RecordBatch, Error> {
        let rows = rows_with(frame, &self.child, &self.child_columns, values).await?;
        let found = Values::new(&rows, &self.child_columns)?;
        let mut seen = HashSet::new();
        let distinct = (0..rows.num_rows())
            .filter(|row| found.get(*row).is_some_and(|key| seen.insert(key)))
            .map(|row| row as u64);
        found.only(distinct.collect())
    }

    /// What becomes of children whose parents' keys go.
    async fn follow(
        &self,
        frame: &Arc<Frame>,
        settings: &Settings,
        action: Action,
        old: &RecordBatch,
        new: Option<RecordBatch>,
    ) -> Result<Option<Proposal>, Error> {
        let children = self.children(frame, old).await?;
        if children.num_rows() == 0 {
            return Ok(None);
        }
        let rows = children.num_rows();
        let given: Vec<ArrayRef> = match (action, new) {
            (Action::Cascade, None) => return Proposal::delete(&self.child, children).map(Some),
            (Action::Cascade, Some(new)) => self.changed(&children, old, &new)?,
            (Action::SetDefault, _) => {
                let relation = self.child.relation();
                let order = self.child.order();
                let columns = self.child_columns.iter().map(|place| order[*place]);
                let columns: Vec<_> = columns.collect();
                let asked = columns.iter().map(|place| (*place, &relation.columns[*place]));
                let defaults = dml::defaults(frame, settings, asked).await?;
                let value = |place: &usize| match defaults.get(place) {
                    Some(value) => take(value, &UInt64Array::from(vec![0; rows]), None)
                        .map_err(|error| Error::internal(error.to_string())),
                    None => Ok(new_null_array(&relation.columns[*place].kind.arrow(), rows)),
                };
                columns.iter().map(value).collect::<Result<_, Error>>()?
            }
            _ => {
                let fields = self.child.schema().fields();
                let null = |place: &usize| new_null_array(fields[*place].data_type(), rows);
                self.child_columns.iter().map(null).collect()
            }
        };
        let mut columns = children.columns().to_vec();
        for (place, array) in self.child_columns.iter().zip(given) {
            columns[*place] = array;
        }
        let mut values = vec![None; columns.len()];
        for (place, array) in self.child.order().iter().zip(columns) {
            values[*place] = Some(array);
        }
        let changed = dml::complete(frame, settings, &self.child, values, rows).await?;
        Proposal::update(&self.child, children, changed).map(Some)
    }

    /// By child, the key that its parent has now.
    fn changed(
        &self,
        children: &RecordBatch,
        old: &RecordBatch,
        new: &RecordBatch,
    ) -> Result<Vec<ArrayRef>, Error> {
        let old = typed_or_null(old, &self.child, &self.child_columns)?;
        let all: Vec<_> = (0..old.num_columns()).collect();
        let old = Values::new(&old, &all)?;
        let places: HashMap<&[u8], u64> =
            (0..new.num_rows()).filter_map(|row| Some((old.get(row)?, row as u64))).collect();
        let values = Values::new(children, &self.child_columns)?;
        let place = |row| values.get(row).and_then(|key| places.get(key)).copied();
        let rows: Vec<Option<u64>> = (0..children.num_rows()).map(place).collect();
        let rows = UInt64Array::from(rows);
        let new = typed(new, &self.child, &self.child_columns)?;
        let taken = new.columns().iter().map(|column| take(column, &rows, None));
        taken
            .map(|column| column.map_err(|error| Error::internal(error.to_string())))
            .collect::<Result<_, _>>()
    }
}

impl Checks {
    pub(super) fn is_empty(&self) -> bool {
        self.present.is_empty() && self.absent.is_empty()
    }

    pub(super) fn extend(&mut self, more: Self) {
        self.present.extend(more.present);
        self.absent.extend(more.absent);
    }

    /// Those that a transaction puts off, and the others. RESTRICT can't be put off.
    pub(super) fn split(self, modes: &Modes) -> (Self, Self) {
        let is_late = |reference: &Reference| modes.put_off(reference.oid, reference.deferral);
        let (late_present, present) =
            self.present.into_iter().partition(|(reference, _)| is_late(reference));
        let (late_absent, absent) = self
            .absent
            .into_iter()
            .partition(|(reference, _, action)| *action != Action::Restrict && is_late(reference));
        let late = Self { present: late_present, absent: late_absent };
        (late, Self { present, absent })
    }

    /// The same of what was put off: rows may have gone since, and tables.
    pub(super) async fn run_late(mut self, frame: &Arc<Frame>) -> Result<(), Error> {
        let is_there = |reference: &Reference| {
            let there = |table: &Target| frame.catalog().relations.contains_key(&table.id());
            there(&reference.child) && there(&reference.parent)
        };
        self.present.retain(|(reference, _)| is_there(reference));
        self.absent.retain(|(reference, ..)| is_there(reference));
        for (reference, values) in &mut self.present {
            *values = reference.still_there(frame, values).await?;
        }
        self.run(frame).await
    }

    /// Whether all is true of the frame.
    async fn run(&self, frame: &Arc<Frame>) -> Result<(), Error> {
        for (reference, values) in &self.present {
            if let Some(row) = missing(frame, reference, values).await?.first() {
                let child = &reference.child.relation().name;
                let message = format!(
                    "insert or update on table \"{child}\" violates foreign key constraint \"{}\"",
                    reference.name
                );
                let key = key_text(&reference.child, &reference.child_columns, values, *row)?;
                let parent = &reference.parent.relation().name;
                return Err(Error::new(SqlState::FOREIGN_KEY_VIOLATION, message)
                    .about(Subject::constraint(reference.child.relation(), &reference.name))
                    .with_detail(format!("Key {key} is not present in table \"{parent}\".")));
            }
        }
        for (reference, keys, action) in &self.absent {
            // A key that another row has by now is as good.
            let gone = match action {
                Action::Restrict => keys.clone(),
                _ => {
                    let rows = missing(frame, reference, keys).await?;
                    let rows = rows.into_iter().map(|row| keys.slice(row, 1)).collect::<Vec<_>>();
                    concat_batches(&keys.schema(), &rows)
                        .map_err(|error| Error::internal(error.to_string()))?
                }
            };
            if gone.num_rows() == 0 {
                continue;
            }
            let children = reference.children(frame, &gone).await?;
            if children.num_rows() > 0 {
                return Err(reference.still_referenced(&gone, &children)?);
            }
        }
        Ok(())
    }
}

impl Reference {
    fn still_referenced(&self, keys: &RecordBatch, children: &RecordBatch) -> Result<Error, Error> {
        let (parent, child) = (&self.parent.relation().name, &self.child.relation().name);
        let message = format!(
            "update or delete on table \"{parent}\" violates foreign key constraint \"{}\" on table \
             \"{child}\"",
            self.name
        );
        let typed = typed_or_null(keys, &self.child, &self.child_columns)?;
        let all: Vec<_> = (0..typed.num_columns()).collect();
        let (keyed, found) =
            (Values::new(&typed, &all)?, Values::new(children, &self.child_columns)?);
        let referenced: HashSet<_> =
            (0..children.num_rows()).filter_map(|row| found.get(row)).collect();
        let row = (0..keys.num_rows())
            .find(|row| keyed.get(*row).is_some_and(|key| referenced.contains(key)));
        let key = key_text(&self.parent, &self.parent_columns, keys, row.unwrap_or(0))?;
        Ok(Error::new(SqlState::FOREIGN_KEY_VIOLATION, message)
            .about(Subject::constraint(self.child.relation(), &self.name))
            .with_detail(format!("Key {key} is still referenced from table \"{child}\".")))
    }
}

/// The places of keys, of the types of either table, that no row of the parent has.
async fn missing(
    frame: &Arc<Frame>,
    reference: &Reference,
    keys: &RecordBatch,
) -> Result<Vec<usize>, Error> {
    // A value that isn't of the parent's type is no key of it.
    let keys = &typed_or_null(keys, &reference.parent, &reference.parent_columns)?;
    let found = rows_with(frame, &reference.parent, &reference.parent_columns, keys).await?;
    let found = Values::new(&found, &reference.parent_columns)?;
    let count = found.columns.num_rows();
    let there: HashSet<_> = (0..count).filter_map(|row| found.get(row)).collect();
    let all: Vec<_> = (0..keys.num_columns()).collect();
    let values = Values::new(keys, &all)?;
    let is_missing = |row: &usize| values.get(*row).is_none_or(|key| !there.contains(key));
    Ok((0..keys.num_rows()).filter(is_missing).collect())
}

/// The same values in the types of some columns.
fn typed(values: &RecordBatch, target: &Target, columns: &[usize]) -> Result<RecordBatch, Error> {
    cast(values, target, columns, false)
}

/// The same, with NULL for what a column's type doesn't have.
fn typed_or_null(
    values: &RecordBatch,
    target: &Target,
    columns: &[usize],
) -> Result<RecordBatch, Error> {
    cast(values, target, columns, true)
}

fn cast(
    values: &RecordBatch,
    target: &Target,
    columns: &[usize],
    safe: bool,
) -> Result<RecordBatch, Error> {
    let fields: Vec<_> = columns
        .iter()
        .map(|place| target.schema().field(*place).clone().with_nullable(true))
        .collect();
    let options = CastOptions { safe, ..CastOptions::default() };
    let arrays = fields.iter().zip(values.columns()).map(|(field, array)| {
        match array.data_type() == field.data_type() {
            true => Ok(Arc::clone(array)),
            false => cast_with_options(array, field.data_type(), &options),
        }
    });
    let arrays = arrays.collect::<Result<Vec<_>, _>>();
    let schema = Arc::new(arrow::datatypes::Schema::new(fields));
    let arrays = arrays.and_then(|arrays| RecordBatch::try_new(schema, arrays));
    arrays.map_err(|error| {
        Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("value out of range: {error}"))
    })
}
