//! GROUP BY's rule: what isn't grouped can only be seen through aggregates.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, GroupByExpr, Ident, Select, Visit, Visitor};

use super::Resolver;
use super::scope::Scope;
use crate::{Error, SqlState, names};

/// The groups of a SELECT.
pub(super) struct Groups<'a, 's> {
    resolver: &'a Resolver<'a>,
    scope: &'a Scope<'s>,
    groups: Vec<Expr>,
}

impl<'a, 's> Groups<'a, 's> {
    /// Checks the expressions of a grouped SELECT. Columns that the primary key determines are
    /// added to the groups.
    pub(super) fn check(
        resolver: &'a Resolver<'a>,
        select: &mut Select,
        scope: &'a Scope<'s>,
        has_aggregate: bool,
        checked: &[&Expr],
    ) -> Result<(), Error> {
        let having = select.having.clone();
        let GroupByExpr::Expressions(written, _) = &mut select.group_by else { return Ok(()) };
        if written.is_empty() && !has_aggregate && having.is_none() {
            return Ok(());
        }
        let is_plain = !written.iter().any(is_set);
        let mut flat = vec![];
        written.iter().for_each(|group| flatten(group, &mut flat));
        let groups = Self { resolver, scope, groups: flat };
        let mut determined = BTreeSet::new();
        for expr in checked.iter().copied().chain(having.as_ref()) {
            groups.expression(expr, is_plain, &mut determined)?;
        }
        for (source, column) in determined {
            let parts = [source, column].map(|part| super::resolved(&part));
            written.push(Expr::CompoundIdentifier(parts.into()));
        }
        Ok(())
    }

    fn expression(
        &self,
        expr: &Expr,
        is_plain: bool,
        determined: &mut BTreeSet<(String, String)>,
    ) -> Result<(), Error> {
        let mut walk = Walk { groups: self, is_plain, covered: 0, determined };
        match expr.visit(&mut walk) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        }
    }

    /// Whether the primary key of a column's table is grouped by, and so the column with it.
    fn determines(&self, alias: &str) -> bool {
        let mut sources = self.scope.own_sources();
        let Some(source) = sources.find(|source| source.internal == alias) else { return false };
        !source.key.is_empty()
            && source.key.iter().all(|place| self.groups.contains(&source.column(*place)))
    }
}

fn is_set(group: &Expr) -> bool {
    matches!(group, Expr::GroupingSets(_) | Expr::Cube(_) | Expr::Rollup(_))
}

fn flatten(group: &Expr, flat: &mut Vec<Expr>) {
    match group {
        Expr::GroupingSets(sets) | Expr::Cube(sets) | Expr::Rollup(sets) => {
            sets.iter().flatten().for_each(|group| flatten(group, flat));
        }
        Expr::Tuple(items) => items.iter().for_each(|group| flatten(group, flat)),
        Expr::Nested(inner) => {
            flat.push(group.clone());
            flatten(inner, flat);
        }
        other => flat.push(other.clone()),
    }
}

struct Walk<'w, 'a, 's> {
    groups: &'w Groups<'a, 's>,
    is_plain: bool,
    /// How many groups or aggregate calls are around the current place.
    covered: usize,
    determined: &'w mut BTreeSet<(String, String)>,
}

impl Walk<'_, '_, '_> {
    fn covers(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Function(function) if function.over.is_none() => {
                let name = names::function(&function.name);
                self.groups.resolver.context.is_aggregate(&name)
                    || name == "grouping"
                    || !function.within_group.is_empty()
                    || self.groups.groups.contains(expr)
            }
            _ => self.groups.groups.contains(expr),
        }
    }

    fn column(&mut self, alias: &Ident, name: &Ident) -> ControlFlow<Error> {
        let mut sources = self.groups.scope.own_sources();
        let Some(source) = sources.find(|source| source.internal == alias.value) else {
            return ControlFlow::Continue(());
        };
        if self.is_plain && self.groups.determines(&alias.value) {
            self.determined.insert((alias.value.clone(), name.value.clone()));
            return ControlFlow::Continue(());
        }
        let column = source.columns.iter().find(|column| column.internal == name.value);
        let column = column.map_or(&name.value, |column| &column.name);
        let message = format!(
            "column \"{}.{column}\" must appear in the GROUP BY clause or be used in an aggregate \
             function",
            source.alias
        );
        ControlFlow::Break(Error::new(SqlState::GROUPING_ERROR, message))
    }
}

impl Visitor for Walk<'_, '_, '_> {
    type Break = Error;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Error> {
        if self.covers(expr) {
            self.covered += 1;
            return ControlFlow::Continue(());
        }
        match expr {
            Expr::CompoundIdentifier(parts) if self.covered == 0 => match parts.as_slice() {
                [alias, name] => self.column(alias, name),
                _ => ControlFlow::Continue(()),
            },
            _ => ControlFlow::Continue(()),
        }
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Error> {
        self.covered -= usize::from(self.covers(expr));
        ControlFlow::Continue(())
    }
}
