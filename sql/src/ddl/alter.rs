//! ALTER TABLE: one operation after the other, all of them or none.

mod column;
mod drop_column;

use datafusion::sql::sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, DropBehavior, Ident, RenameTableNameKind,
};
use stillframe_protocol::RelationId;

use super::check_rows::RowCheck;
use super::constraint::Definer;
use super::rewrite::{Rewrite, Source};
use super::{Edit, default, rename};
use crate::query::QueryContext;
use crate::session::Notice;
use crate::{
    Catalog, Constraint, ConstraintKind, Error, Generated, Relation, RelationKind, SqlState, names,
};

/// Changes a table.
pub(super) fn table(context: &QueryContext, alter: &AlterTable) -> Result<Edit, Error> {
    if alter.on_cluster.is_some() || alter.location.is_some() || alter.table_type.is_some() {
        return Err(Error::unsupported("this form of ALTER TABLE"));
    }
    let relation = match context.relation(&alter.name) {
        Ok(relation) => relation,
        Err(error) if alter.if_exists && error.state == SqlState::UNDEFINED_TABLE => {
            let message = format!("{}, skipping", error.message);
            return Ok(Edit::Nothing(notice(message)));
        }
        Err(error) => return Err(error),
    };
    if let [AlterTableOperation::RenameTable { table_name: RenameTableNameKind::To(new) }] =
        alter.operations.as_slice()
    {
        return rename::table(context, relation, new);
    }
    if !matches!(relation.kind, RelationKind::Table { .. }) {
        let action = "ALTER action cannot be performed on relation";
        let message = format!("{action} \"{}\"", relation.name);
        return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
    }
    let mut change = Change {
        context,
        catalog: (*context.catalog).clone(),
        id: relation.id,
        locked: vec![],
        notices: vec![],
        sources: None,
        checks: vec![],
    };
    for operation in &alter.operations {
        change.apply(operation)?;
    }
    let Change { catalog, id, locked, notices, sources, checks, .. } = change;
    let rewrites = sources.map(|sources| Rewrite { table: id, sources }).into_iter().collect();
    Ok(Edit::Changed { catalog, locked, notices, rewrites, checks })
}

fn notice(message: String) -> Notice {
    Notice::of(Error::new(SqlState::SUCCESSFUL_COMPLETION, message))
}

/// What an ALTER TABLE has changed so far.
struct Change<'a> {
    context: &'a QueryContext,
    catalog: Catalog,
    id: RelationId,
    locked: Vec<RelationId>,
    notices: Vec<Notice>,
    /// What the columns come from, if all rows are written anew.
    sources: Option<Vec<Source>>,
    checks: Vec<RowCheck>,
}

impl Change<'_> {
    fn apply(&mut self, operation: &AlterTableOperation) -> Result<(), Error> {
        match operation {
            AlterTableOperation::AddConstraint { constraint, not_valid } => {
                use datafusion::sql::sqlparser::ast::TableConstraint::{
                    Check, ForeignKey, PrimaryKey,
                };
                if matches!(constraint, PrimaryKey(_)) {
                    // Rows are found by their keys, and stored with them.
                    self.rewrite()?;
                }
                if *not_valid && !matches!(constraint, Check(_) | ForeignKey(_)) {
                    let message = "only foreign keys and checks can be marked NOT VALID";
                    return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
                }
                let checked = self.checks.len();
                self.define(|definer| definer.add(constraint))?;
                if *not_valid {
                    // The rows that are there may be wrong.
                    self.checks.truncate(checked);
                    if let Some(constraint) = self.relation()?.constraints.last_mut() {
                        constraint.is_not_valid = true;
                    }
                }
                Ok(())
            }
            AlterTableOperation::ValidateConstraint { name } => self.validate(&names::fold(name)),
            AlterTableOperation::AddColumn {
                column_def,
                if_not_exists,
                column_position: None,
                ..
            } => self.add_column(column_def, *if_not_exists),
            AlterTableOperation::DropColumn { column_names, if_exists, drop_behavior, .. } => {
                let cascades = *drop_behavior == Some(DropBehavior::Cascade);
                column_names
                    .iter()
                    .try_for_each(|name| self.drop_column(&names::fold(name), *if_exists, cascades))
            }
            AlterTableOperation::DropConstraint { if_exists, name, drop_behavior } => {
                let cascades = *drop_behavior == Some(DropBehavior::Cascade);
                self.drop_constraint(&names::fold(name), *if_exists, cascades)
            }
            AlterTableOperation::RenameConstraint { old_name, new_name } => {
                self.rename_constraint(&names::fold(old_name), &names::fold(new_name))
            }
            AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
                let (old, new) = (names::fold(old_column_name), names::fold(new_column_name));
                rename::column(&mut self.catalog, self.id, &old, &new)
            }
            AlterTableOperation::AlterColumn { column_name, op } => {
                self.alter_column(column_name, op)
            }
            other => Err(Error::unsupported(format!("ALTER TABLE ... {other}"))),
        }
    }

    fn relation(&mut self) -> Result<&mut Relation, Error> {
        let relation = self.catalog.relations.get_mut(&self.id);
        relation.ok_or_else(|| Error::internal("the table is gone"))
    }

    /// Adds constraints, which all rows must meet.
    fn define(
        &mut self,
        add: impl FnOnce(&mut Definer<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let relation = self.relation()?.clone();
        let before = relation.constraints.len();
        let mut definer = Definer { context: self.context, catalog: &mut self.catalog, relation };
        add(&mut definer)?;
        let relation = definer.relation;
        for constraint in &relation.constraints[before..] {
            self.check(&relation, constraint);
        }
        self.locked.extend(super::table::parents(&relation));
        self.locked.push(self.id);
        *self.relation()? = relation;
        Ok(())
    }

    /// Has all rows looked at.
    fn check(&mut self, relation: &Relation, constraint: &Constraint) {
        let name = &constraint.name;
        self.checks.push(match &constraint.kind {
            ConstraintKind::Check { expression } => RowCheck::check(relation, name, expression),
            ConstraintKind::Unique { columns, .. } => RowCheck::unique(relation, name, columns),
            ConstraintKind::ForeignKey { columns, parent, parent_columns, .. } => {
                let parent = match *parent == relation.id {
                    true => relation,
                    false => &self.catalog.relations[parent],
                };
                RowCheck::foreign_key(relation, name, columns, parent, parent_columns)
            }
            ConstraintKind::PrimaryKey => RowCheck::unique(relation, name, relation.key()),
            ConstraintKind::Index { .. } => return,
        });
    }

    /// VALIDATE CONSTRAINT: rows that were there before it must not break it any more.
    fn validate(&mut self, name: &str) -> Result<(), Error> {
        let relation = self.relation()?.clone();
        let Some(constraint) = relation.constraint(name) else {
            let message =
                format!("constraint \"{name}\" of relation \"{}\" does not exist", relation.name);
            return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
        };
        let kind = &constraint.kind;
        if !matches!(kind, ConstraintKind::Check { .. } | ConstraintKind::ForeignKey { .. }) {
            let message = format!(
                "constraint \"{name}\" of relation \"{}\" is not a foreign key or check constraint",
                relation.name
            );
            return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
        if constraint.is_not_valid {
            self.check(&relation, constraint);
            self.locked.extend(super::table::parents(&relation));
            self.locked.push(self.id);
            let constraints = self.relation()?.constraints.iter_mut();
            constraints.filter(|found| found.name == name).for_each(|c| c.is_not_valid = false);
        }
        Ok(())
    }

    fn drop_constraint(
        &mut self,
        name: &str,
        if_exists: bool,
        cascades: bool,
    ) -> Result<(), Error> {
        let id = self.id;
        let relation = self.relation()?.clone();
        let found = relation.constraint(name);
        let is_constraint = |kind: &ConstraintKind| {
            !matches!(
                kind,
                ConstraintKind::Index { .. } | ConstraintKind::Unique { is_index: true, .. }
            )
        };
        let Some(constraint) = found.filter(|constraint| is_constraint(&constraint.kind)) else {
            let table = &relation.name;
            let message = format!("constraint \"{name}\" of relation \"{table}\" does not exist");
            if if_exists {
                self.notices.push(notice(format!("{message}, skipping")));
                return Ok(());
            }
            return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
        };
        let unique = match &constraint.kind {
            ConstraintKind::PrimaryKey => Some(relation.key().to_vec()),
            ConstraintKind::Unique { columns, .. } => Some(columns.clone()),
            _ => None,
        };
        if let Some(columns) = unique {
            self.drop_references(&relation, name, &columns, cascades)?;
        }
        let is_key = constraint.kind == ConstraintKind::PrimaryKey;
        self.locked.push(id);
        self.relation()?.constraints.retain(|constraint| constraint.name != name);
        if is_key {
            self.rewrite()?;
            self.relation()?.kind = RelationKind::Table { key: vec![] };
        }
        Ok(())
    }

    /// Foreign keys that refer to a key that goes must go, too.
    fn drop_references(
        &mut self,
        relation: &Relation,
        name: &str,
        columns: &[usize],
        cascades: bool,
    ) -> Result<(), Error> {
        let needs = super::drop::referring(&self.catalog, relation, columns);
        if needs.is_empty() {
            return Ok(());
        }
        let table = &relation.name;
        let shown = |(child, key): &(RelationId, String)| {
            format!("constraint {key} on table {}", self.catalog.relations[child].name)
        };
        if !cascades {
            let subject = format!("constraint {name} on table {table}");
            let lines = needs.iter().map(|need| format!("{} depends on index {name}", shown(need)));
            let detail = lines.collect::<Vec<_>>().join("\n");
            let message = format!("cannot drop {subject} because other objects depend on it");
            return Err(Error::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
                .with_detail(detail)
                .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        let told: Vec<_> =
            needs.iter().map(|need| notice(format!("drop cascades to {}", shown(need)))).collect();
        self.notices.extend(told);
        for (child, key) in needs {
            if let Some(child) = self.catalog.relations.get_mut(&child) {
                child.constraints.retain(|constraint| constraint.name != key);
            }
        }
        Ok(())
    }

    fn rename_constraint(&mut self, old: &str, new: &str) -> Result<(), Error> {
        let relation = self.relation()?;
        let table = relation.name.clone();
        if relation.constraint(new).is_some() {
            let message = format!("constraint \"{new}\" for relation \"{table}\" already exists");
            return Err(Error::new(SqlState::DUPLICATE_OBJECT, message));
        }
        match relation.constraints.iter_mut().find(|constraint| constraint.name == old) {
            Some(constraint) => {
                new.clone_into(&mut constraint.name);
                Ok(())
            }
            None => {
                let message = format!("constraint \"{old}\" for table \"{table}\" does not exist");
                Err(Error::new(SqlState::UNDEFINED_OBJECT, message))
            }
        }
    }

    fn alter_column(
        &mut self,
        name: &Ident,
        operation: &AlterColumnOperation,
    ) -> Result<(), Error> {
        let (context, id) = (self.context, self.id);
        let name = names::fold(name);
        let relation = self.relation()?;
        let place = relation.columns.iter().position(|column| column.name == name);
        let place = place.ok_or_else(|| {
            let table = &relation.name;
            let message = format!("column \"{name}\" of relation \"{table}\" does not exist");
            Error::new(SqlState::UNDEFINED_COLUMN, message)
        })?;
        if let AlterColumnOperation::SetDataType { data_type, using, .. } = operation {
            return self.alter_type(place, data_type, using.as_ref());
        }
        let is_key = relation.key().contains(&place);
        let table = relation.clone();
        let column = &mut relation.columns[place];
        match operation {
            AlterColumnOperation::SetDefault { .. } | AlterColumnOperation::DropDefault
                if matches!(column.generated, Some(Generated::Stored { .. })) =>
            {
                let message = format!(
                    "column \"{name}\" of relation \"{}\" is a generated column",
                    table.name
                );
                return Err(Error::new(SqlState::SYNTAX_ERROR, message));
            }
            AlterColumnOperation::SetDefault { value } => {
                column.default = default::text(context, column, value)?;
            }
            AlterColumnOperation::DropDefault => column.default = None,
            AlterColumnOperation::SetNotNull => {
                if !column.not_null {
                    column.not_null = true;
                    self.locked.push(id);
                    // Rows that are written anew are looked at then.
                    if self.sources.is_none() {
                        self.checks.push(RowCheck::not_null(&table, &name));
                    }
                }
            }
            AlterColumnOperation::DropNotNull if is_key => {
                let message = format!("column \"{name}\" is in a primary key");
                return Err(Error::new(SqlState::INVALID_TABLE_DEFINITION, message));
            }
            AlterColumnOperation::DropNotNull => column.not_null = false,
            other => {
                return Err(Error::unsupported(format!("ALTER COLUMN ... {other}")));
            }
        }
        Ok(())
    }
}
