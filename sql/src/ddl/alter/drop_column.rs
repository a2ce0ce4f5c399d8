//! DROP COLUMN: with the constraints that name it, and what depends on it if it is to.

use std::collections::BTreeSet;

use stillframe_protocol::RelationId;

use super::super::constraint::columns_of;
use super::super::drop::{depends_on, describe, describe_key};
use super::{Change, notice};
use crate::{
    Catalog, Constraint, ConstraintKind, Error, Generated, Relation, SqlState, names, system,
};

impl Change<'_> {
    pub(super) fn drop_column(
        &mut self,
        name: &str,
        if_exists: bool,
        cascades: bool,
    ) -> Result<(), Error> {
        let id = self.id;
        let table = self.relation()?.clone();
        let Some(place) = table.columns.iter().position(|column| column.name == name) else {
            let message =
                format!("column \"{name}\" of relation \"{}\" does not exist", table.name);
            if if_exists {
                self.notices.push(notice(format!("{message}, skipping")));
                return Ok(());
            }
            return Err(Error::new(SqlState::UNDEFINED_COLUMN, message));
        };
        if table.columns.len() == 1 {
            return Err(Error::unsupported("a table without columns"));
        }
        let depending = Depending::on(&self.catalog, &table, place);
        if !depending.is_empty() {
            let column =
                format!("column {} of {}", names::quote(name), describe(&self.catalog, id));
            if !cascades {
                return Err(depending.refuse(&self.catalog, &table, &column));
            }
            self.notices.extend(depending.told(&self.catalog, &table).map(notice));
            for view in &depending.views {
                self.catalog.relations.remove(view);
                self.locked.push(*view);
            }
            for (child, key) in &depending.keys {
                if let Some(child) = self.catalog.relations.get_mut(child) {
                    child.constraints.retain(|constraint| constraint.name != *key);
                }
            }
            // From the last to the first, so that places stay what they are.
            for generated in depending.generated.iter().rev() {
                let name = table.columns[*generated].name.clone();
                self.drop_column(&name, true, true)?;
            }
            return self.drop_column(name, true, true);
        }
        self.rewrite()?.remove(place);
        let relation = self.relation()?;
        relation.columns.remove(place);
        let constraints = std::mem::take(&mut relation.constraints);
        relation.constraints = constraints
            .into_iter()
            .filter_map(|constraint| without(constraint, &table, place))
            .collect();
        if let crate::RelationKind::Table { key } = &mut relation.kind {
            match key.contains(&place) {
                true => key.clear(),
                false => key.iter_mut().for_each(|column| shift(column, place)),
            }
        }
        self.catalog.sequences.retain(|_, sequence| sequence.owner != Some((id, place)));
        for sequence in self.catalog.sequences.values_mut() {
            if let Some((owner, column)) = &mut sequence.owner
                && *owner == id
            {
                shift(column, place);
            }
        }
        for relation in self.catalog.relations.values_mut() {
            for constraint in &mut relation.constraints {
                if let ConstraintKind::ForeignKey { parent, parent_columns, .. } =
                    &mut constraint.kind
                    && *parent == id
                {
                    parent_columns.iter_mut().for_each(|column| shift(column, place));
                }
            }
        }
        Ok(())
    }
}

fn shift(column: &mut usize, gone: usize) {
    *column -= usize::from(*column > gone);
}

/// A constraint of a table that loses a column; none if it goes with it.
fn without(constraint: Constraint, table: &Relation, place: usize) -> Option<Constraint> {
    let mut constraint = constraint;
    let columns = match &mut constraint.kind {
        ConstraintKind::PrimaryKey => {
            return (!table.key().contains(&place)).then_some(constraint);
        }
        ConstraintKind::Check { expression } => {
            let is_used = columns_of(table, expression).contains(&place);
            return (!is_used).then_some(constraint);
        }
        ConstraintKind::Unique { columns, .. }
        | ConstraintKind::Index { columns }
        | ConstraintKind::ForeignKey { columns, .. } => columns,
    };
    if columns.contains(&place) {
        return None;
    }
    columns.iter_mut().for_each(|column| shift(column, place));
    Some(constraint)
}

/// What depends on a column.
struct Depending {
    /// The views that read it, and those that read them.
    views: BTreeSet<RelationId>,
    /// The foreign keys that refer to it, with the tables that have them.
    keys: Vec<(RelationId, String)>,
    /// The columns that are computed of it.
    generated: Vec<usize>,
}

impl Depending {
    fn on(catalog: &Catalog, table: &Relation, place: usize) -> Self {
        let reads = (table.id, place as u32 + 1);
        let views = catalog.relations.values();
        let views = views.filter(|view| system::read_by(catalog, view).contains(&reads));
        let mut views: BTreeSet<_> = views.map(|view| view.id).collect();
        views.extend(catalog.dependents(&views));
        let keys = catalog.children(table.id).filter(|(child, constraint)| {
            matches!(&constraint.kind, ConstraintKind::ForeignKey { parent_columns, columns, .. }
                if parent_columns.contains(&place)
                    && !(child.id == table.id && columns.contains(&place)))
        });
        let keys = keys.map(|(child, constraint)| (child.id, constraint.name.clone())).collect();
        let generated = (0..table.columns.len()).filter(|other| {
            matches!(&table.columns[*other].generated, Some(Generated::Stored { expression })
                if columns_of(table, expression).contains(&place))
        });
        Self { views, keys, generated: generated.collect() }
    }

    fn is_empty(&self) -> bool {
        self.views.is_empty() && self.keys.is_empty() && self.generated.is_empty()
    }

    /// Its names.
    fn names(&self, catalog: &Catalog, table: &Relation) -> Vec<String> {
        let column = |place: &usize| {
            let name = names::quote(&table.columns[*place].name);
            format!("column {name} of {}", describe(catalog, table.id))
        };
        let generated = self.generated.iter().map(column);
        let keys = self.keys.iter().map(|key| describe_key(catalog, key));
        let views = self.views.iter().map(|view| describe(catalog, *view));
        generated.chain(keys).chain(views).collect()
    }

    fn told(&self, catalog: &Catalog, table: &Relation) -> impl Iterator<Item = String> + use<> {
        let names = self.names(catalog, table);
        names.into_iter().map(|name| format!("drop cascades to {name}"))
    }

    fn refuse(&self, catalog: &Catalog, table: &Relation, column: &str) -> Error {
        let named = BTreeSet::from([table.id]);
        let beyond: Vec<_> = self.views.iter().copied().collect();
        let on_column =
            self.names(catalog, table).into_iter().take(self.generated.len() + self.keys.len());
        let mut lines: Vec<_> =
            on_column.map(|name| format!("{name} depends on {column}")).collect();
        for view in &self.views {
            let reads_table =
                catalog.relations.get(view).is_some_and(|view| view.reads().contains(&table.id));
            lines.push(match reads_table {
                true => format!("{} depends on {column}", describe(catalog, *view)),
                false => depends_on(catalog, *view, &named, &beyond),
            });
        }
        let message = format!("cannot drop {column} because other objects depend on it");
        Error::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
            .with_detail(lines.join("\n"))
            .with_hint("Use DROP ... CASCADE to drop the dependent objects too.")
    }
}
