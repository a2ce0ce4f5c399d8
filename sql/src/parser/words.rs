//! Reserved words where PostgreSQL takes a name only; the parser library lets most of them pass.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AssignmentTarget, Expr, Ident, ObjectName, Query, Statement, TableAlias, TableFactor,
    TableObject, Visit, Visitor,
};

use super::Source;
use crate::{Error, SqlState, names};

/// 42601 for the first reserved word that stands bare as a name.
pub(super) fn check(source: &Source, statement: &Statement) -> Result<(), Error> {
    let mut words = Words { source };
    words.statement(statement).and_then(|()| match statement.visit(&mut words) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    })
}

/// Words that are calls of functions, or a value of its own kind, where an expression stands.
const VALUES: &[&str] = &[
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "default",
    "localtime",
    "localtimestamp",
    "session_user",
    "user",
];

struct Words<'a> {
    source: &'a Source,
}

impl Words<'_> {
    fn name(&self, name: &Ident) -> Result<(), Error> {
        if name.quote_style.is_some() || !names::is_reserved(&names::fold(name)) {
            return Ok(());
        }
        let message = format!("syntax error at or near \"{}\"", name.value);
        Err(self.source.locate(Error::new(SqlState::SYNTAX_ERROR, message), name.span))
    }

    fn object(&self, name: &ObjectName) -> Result<(), Error> {
        match name.0.first().and_then(|part| part.as_ident()) {
            Some(first) => self.name(first),
            None => Ok(()),
        }
    }

    fn alias(&self, alias: &TableAlias) -> Result<(), Error> {
        self.name(&alias.name)?;
        alias.columns.iter().try_for_each(|column| self.name(&column.name))
    }

    /// The names that only a statement of a kind has.
    fn statement(&self, statement: &Statement) -> Result<(), Error> {
        match statement {
            Statement::CreateTable(create) => {
                self.object(&create.name)?;
                create.columns.iter().try_for_each(|column| self.name(&column.name))
            }
            Statement::CreateView(create) => {
                self.object(&create.name)?;
                create.columns.iter().try_for_each(|column| self.name(&column.name))
            }
            Statement::Insert(insert) => {
                if let TableObject::TableName(name) = &insert.table {
                    self.object(name)?;
                }
                insert.columns.iter().try_for_each(|column| self.object(column))
            }
            Statement::Update(update) => {
                update.assignments.iter().try_for_each(|assignment| match &assignment.target {
                    AssignmentTarget::ColumnName(name) => self.object(name),
                    AssignmentTarget::Tuple(names) => {
                        names.iter().try_for_each(|name| self.object(name))
                    }
                })
            }
            Statement::Drop { names, .. } => names.iter().try_for_each(|name| self.object(name)),
            _ => Ok(()),
        }
    }

    fn query(&self, query: &Query) -> Result<(), Error> {
        let Some(with) = &query.with else { return Ok(()) };
        with.cte_tables.iter().try_for_each(|cte| self.alias(&cte.alias))
    }

    fn table(&self, table: &TableFactor) -> Result<(), Error> {
        match table {
            TableFactor::Table { name, alias, args, .. } => {
                // Some reserved words are names of functions.
                if args.is_none() {
                    self.object(name)?;
                }
                alias.iter().try_for_each(|alias| self.alias(alias))
            }
            TableFactor::Derived { alias, .. }
            | TableFactor::Function { alias, .. }
            | TableFactor::UNNEST { alias, .. }
            | TableFactor::NestedJoin { alias, .. } => {
                alias.iter().try_for_each(|alias| self.alias(alias))
            }
            _ => Ok(()),
        }
    }

    fn expression(&self, expr: &Expr) -> Result<(), Error> {
        match expr {
            Expr::Identifier(name) if !VALUES.contains(&names::fold(name).as_str()) => {
                self.name(name)
            }
            Expr::CompoundIdentifier(parts) => {
                parts.first().map_or(Ok(()), |first| self.name(first))
            }
            _ => Ok(()),
        }
    }
}

fn flow(result: Result<(), Error>) -> ControlFlow<Error> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

impl Visitor for Words<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        flow(self.query(query))
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<Error> {
        flow(self.table(table))
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Error> {
        flow(self.expression(expr))
    }
}
