//! ADD COLUMN, and ALTER COLUMN ... TYPE.

use datafusion::sql::sqlparser::ast::{ColumnDef, DataType, Expr};
use stillframe_protocol::RelationId;

use super::super::check_rows::RowCheck;
use super::super::constraint::columns_of;
use super::super::rewrite::Source;
use super::super::table;
use super::{Change, notice};
use crate::types::second_digits;
use crate::{Column, ConstraintKind, Error, Generated, SqlState, Type, dml, names, system};

impl Change<'_> {
    /// Has all rows written anew: what their columns come from, by place, to be changed with the
    /// columns.
    pub(super) fn rewrite(&mut self) -> Result<&mut Vec<Source>, Error> {
        if self.sources.is_none() {
            let storage = RelationId(self.catalog.allocate());
            let id = self.id;
            let relation = self.relation()?;
            relation.storage = Some(storage);
            let columns = relation.columns.len();
            self.sources = Some((0..columns).map(Source::Kept).collect());
            self.locked.push(id);
        }
        self.sources.as_mut().ok_or_else(|| Error::internal("nothing is written anew"))
    }

    pub(super) fn add_column(
        &mut self,
        definition: &ColumnDef,
        if_not_exists: bool,
    ) -> Result<(), Error> {
        let name = names::fold(&definition.name);
        let context = self.context;
        let relation = self.relation()?;
        let place = relation.columns.len();
        if relation.columns.iter().any(|column| column.name == name) {
            let table = &relation.name;
            let message = format!("column \"{name}\" of relation \"{table}\" already exists");
            if if_not_exists {
                self.notices.push(notice(format!("{message}, skipping")));
                return Ok(());
            }
            return Err(Error::new(SqlState::DUPLICATE_COLUMN, message));
        }
        if place == table::COLUMNS_MAX {
            let message = format!("tables can have at most {} columns", table::COLUMNS_MAX);
            return Err(Error::new(SqlState::TOO_MANY_COLUMNS, message));
        }
        let column = table::column(context, definition)?;
        self.rewrite()?.push(Source::Default);
        self.relation()?.columns.push(column);
        self.define(|definer| {
            table::sequence_of(definer, place, definition)?;
            table::constraints_of(definer, place, definition)
        })
    }

    /// Changes a column's type, and with it all values.
    pub(super) fn alter_type(
        &mut self,
        place: usize,
        data_type: &DataType,
        using: Option<&Expr>,
    ) -> Result<(), Error> {
        let kind = Type::of_column(data_type)?;
        let table = self.relation()?.clone();
        let old = &table.columns[place];
        let name = &old.name;
        let digits = second_digits(data_type);
        if old.kind == kind && old.second_digits == digits && using.is_none() {
            return Ok(());
        }
        self.refuse_readers_of_type(place)?;
        let column = Column { kind: kind.clone(), second_digits: digits, ..old.clone() };
        let mismatch = |message: String, hint: String| {
            Error::new(SqlState::DATATYPE_MISMATCH, message).with_hint(hint)
        };
        let source = match using {
            None => {
                if dml::check_assignable(&old.kind, &column, "expression").is_err() {
                    return Err(mismatch(
                        format!("column \"{name}\" cannot be cast automatically to type {kind}"),
                        format!(
                            "You might need to specify \"USING {}::{kind}\".",
                            names::quote(name)
                        ),
                    ));
                }
                None
            }
            Some(expr) => {
                let found = super::super::constraint::kind_of(self.context, &table, expr)?;
                if dml::check_assignable(&found, &column, "expression").is_err() {
                    return Err(mismatch(
                        format!(
                            "result of USING clause for column \"{name}\" cannot be cast \
                             automatically to type {kind}"
                        ),
                        "You might need to add an explicit cast.".to_owned(),
                    ));
                }
                Some(Source::Computed(expr.to_string()))
            }
        };
        if dml::check_default(self.context, &column).is_err() {
            let message = format!(
                "default for column \"{name}\" cannot be cast automatically to type {kind}"
            );
            return Err(Error::new(SqlState::DATATYPE_MISMATCH, message));
        }
        self.checks_of_type(place);
        let sources = self.rewrite()?;
        match (source, &sources[place]) {
            (None, _) => {}
            (Some(source), Source::Kept(_)) => sources[place] = source,
            (Some(_), _) => {
                return Err(Error::unsupported("to change a column twice in one ALTER TABLE"));
            }
        }
        let column = &mut self.relation()?.columns[place];
        (column.kind, column.second_digits) = (kind, digits);
        Ok(())
    }

    /// What reads a column stands in the way of its type.
    fn refuse_readers_of_type(&mut self, place: usize) -> Result<(), Error> {
        let id = self.id;
        let table = self.relation()?.clone();
        let name = &table.columns[place].name;
        let refused = |message: &str, detail: String| {
            Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message).with_detail(detail))
        };
        let reads = (id, place as u32 + 1);
        let mut views = self.catalog.relations.values();
        if let Some(view) = views.find(|v| system::read_by(&self.catalog, v).contains(&reads)) {
            let view = super::super::drop::describe(&self.catalog, view.id);
            return refused(
                "cannot alter type of a column used by a view or rule",
                format!("rule _RETURN on {view} depends on column \"{name}\""),
            );
        }
        for column in &table.columns {
            if let Some(Generated::Stored { expression }) = &column.generated
                && columns_of(&table, expression).contains(&place)
                && column.name != *name
            {
                return refused(
                    "cannot alter type of a column used by a generated column",
                    format!("Column \"{name}\" is used by generated column \"{}\".", column.name),
                );
            }
        }
        let own = table.constraints.iter().any(|constraint| {
            matches!(&constraint.kind, ConstraintKind::ForeignKey { columns, .. }
                if columns.contains(&place))
        });
        let others = self.catalog.children(id).any(|(_, constraint)| {
            matches!(&constraint.kind, ConstraintKind::ForeignKey { parent_columns, .. }
                if parent_columns.contains(&place))
        });
        if own || others {
            return Err(Error::unsupported("to alter the type of a column of a foreign key")
                .with_hint("Drop the foreign key before, and add it again."));
        }
        Ok(())
    }

    /// What must be true of the changed values.
    fn checks_of_type(&mut self, place: usize) {
        let Some(table) = self.catalog.relations.get(&self.id) else { return };
        for constraint in &table.constraints {
            let name = &constraint.name;
            match &constraint.kind {
                ConstraintKind::PrimaryKey if table.key().contains(&place) => {
                    self.checks.push(RowCheck::unique(table, name, table.key()));
                }
                ConstraintKind::Unique { columns, .. } if columns.contains(&place) => {
                    self.checks.push(RowCheck::unique(table, name, columns));
                }
                ConstraintKind::Check { expression }
                    if columns_of(table, expression).contains(&place) =>
                {
                    self.checks.push(RowCheck::check(table, name, expression));
                }
                _ => {}
            }
        }
    }
}
