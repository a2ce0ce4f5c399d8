//! SELECT: its clauses in the order in which they see names.

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Distinct, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, GroupByExpr, NamedWindowDefinition, ObjectName, OrderBy, OrderByKind,
    Select, SelectItem, SelectItemQualifiedWildcardKind, Value, WildcardAdditionalOptions,
};

use super::expressions::Place;
use super::grouping::Groups;
use super::grouping_sets;
use super::scope::{Scope, Source};
use super::{OutputName, Resolver, columns, number, resolved};
use crate::{Error, SqlState, names};

/// A column of the select list.
struct Output {
    expr: Expr,
    name: String,
    origin: Option<(stillframe_protocol::RelationId, i16)>,
}

impl Resolver<'_> {
    /// Resolves a SELECT with the ORDER BY that follows it.
    pub(super) fn select(
        &mut self,
        select: &mut Select,
        order_by: Option<&mut OrderBy>,
        parent: Option<&Scope<'_>>,
    ) -> Result<Vec<OutputName>, Error> {
        refuse(select)?;
        let scope = self.from(&mut select.from, parent)?;
        if let Some(condition) = &mut select.selection {
            self.expression(condition, &scope, Place::Where)?;
        }
        group_by_nothing(select);
        let windows = std::mem::take(&mut select.named_window);
        self.check_windows(&windows)?;
        let mut has_aggregate = false;
        let mut outputs = vec![];
        for item in std::mem::take(&mut select.projection) {
            has_aggregate |= self.output(item, &scope, &windows, &mut outputs)?;
        }
        let mut names = unique_names(&outputs, &HashSet::new());
        self.group_by(select, &outputs, &names, &scope)?;
        if let Some(having) = &mut select.having {
            has_aggregate |= self.expression(having, &scope, Place::Having)?.has_aggregate;
        }
        has_aggregate |= self.distinct(select, &outputs, &names, &scope)?;
        let mut orders = vec![];
        if let Some(order_by) = order_by {
            let OrderByKind::Expressions(expressions) = &mut order_by.kind else {
                return Err(Error::unsupported("ORDER BY ALL"));
            };
            for order in expressions {
                has_aggregate |=
                    self.order(&mut order.expr, select, &outputs, &names, &scope, &windows)?;
                orders.push(order.expr.clone());
            }
        }
        let checked = outputs.iter().map(|output| &output.expr).chain(&orders);
        Groups::check(self, select, &scope, has_aggregate, &checked.collect::<Vec<_>>())?;
        make_grouped(select, has_aggregate);
        if !orders.iter().all(is_place) && !matches!(select.distinct, Some(Distinct::On(_))) {
            // DataFusion looks for what is ordered by among the results too.
            let sources = scope.own_sources().flat_map(|source| &source.columns);
            names = unique_names(&outputs, &sources.map(|c| c.internal.as_str()).collect());
        }

        select.projection = outputs
            .into_iter()
            .zip(&names)
            .map(|(output, name)| SelectItem::ExprWithAlias {
                expr: output.expr,
                alias: resolved(&name.internal),
            })
            .collect();
        Ok(names)
    }

    fn check_windows(&self, windows: &[NamedWindowDefinition]) -> Result<(), Error> {
        let mut seen = HashSet::new();
        for NamedWindowDefinition(name, _) in windows {
            if !seen.insert(names::fold(name)) {
                let message = format!("window \"{}\" is already defined", names::fold(name));
                return Err(self.locate(Error::new(SqlState::WINDOWING_ERROR, message), name.span));
            }
        }
        Ok(())
    }

    /// Adds what one item of the select list stands for; tells whether it has an aggregate.
    fn output(
        &mut self,
        item: SelectItem,
        scope: &Scope<'_>,
        windows: &[NamedWindowDefinition],
        outputs: &mut Vec<Output>,
    ) -> Result<bool, Error> {
        let (mut expr, name) = match item {
            SelectItem::UnnamedExpr(expr) => {
                let name = columns::name(&expr);
                (expr, name)
            }
            SelectItem::ExprWithAlias { expr, alias } => (expr, names::fold(&alias)),
            SelectItem::Wildcard(options) => {
                refuse_options(&options)?;
                if scope.items.is_empty() {
                    let message = "SELECT * with no tables specified is not valid";
                    return Err(Error::new(SqlState::SYNTAX_ERROR, message));
                }
                let visible = scope.items.iter().flat_map(|item| &item.columns);
                outputs.extend(visible.map(|column| Output {
                    expr: column.expr.clone(),
                    name: column.name.clone(),
                    origin: column.origin,
                }));
                return Ok(false);
            }
            SelectItem::QualifiedWildcard(kind, options) => {
                refuse_options(&options)?;
                let SelectItemQualifiedWildcardKind::ObjectName(name) = kind else {
                    return Err(Error::unsupported("the fields of a value as columns"));
                };
                let source = self.wildcard(&name, scope)?;
                outputs.extend((0..source.columns.len()).map(|place| Output {
                    expr: source.column(place),
                    name: source.columns[place].name.clone(),
                    origin: source.columns[place].origin,
                }));
                return Ok(false);
            }
            SelectItem::ExprWithAliases { .. } => {
                return Err(Error::unsupported("several aliases of one expression"));
            }
        };
        let traits = self.expression_with_windows(&mut expr, scope, Place::Select, windows)?;
        let origin = origin(&expr, scope);
        outputs.push(Output { expr, name, origin });
        Ok(traits.has_aggregate)
    }

    fn wildcard<'s>(&self, name: &ObjectName, scope: &'s Scope<'_>) -> Result<&'s Source, Error> {
        let (schema, alias) = names::relation(name)?;
        match scope.source(schema.as_deref(), &alias) {
            Some((source, _)) => Ok(source),
            None => {
                let message = format!("missing FROM-clause entry for table \"{alias}\"");
                let error = Error::new(SqlState::UNDEFINED_TABLE, message);
                Err(self.locate(error, names::span(name)))
            }
        }
    }

    /// In GROUP BY a bare name is a column of FROM first, and a result column second.
    fn group_by(
        &mut self,
        select: &mut Select,
        outputs: &[Output],
        names: &[OutputName],
        scope: &Scope<'_>,
    ) -> Result<(), Error> {
        let GroupByExpr::Expressions(groups, modifiers) = &mut select.group_by else {
            return Err(Error::unsupported("GROUP BY ALL"));
        };
        if !modifiers.is_empty() {
            return Err(Error::unsupported("a modifier of GROUP BY"));
        }
        for group in groups {
            grouping_sets::spell_out(group);
            self.group(group, outputs, names, scope)?;
        }
        Ok(())
    }

    fn group(
        &mut self,
        group: &mut Expr,
        outputs: &[Output],
        names: &[OutputName],
        scope: &Scope<'_>,
    ) -> Result<(), Error> {
        match group {
            Expr::GroupingSets(sets) | Expr::Cube(sets) | Expr::Rollup(sets) => {
                for group in sets.iter_mut().flatten() {
                    self.group(group, outputs, names, scope)?;
                }
                return Ok(());
            }
            Expr::Tuple(items) => {
                for group in items {
                    self.group(group, outputs, names, scope)?;
                }
                return Ok(());
            }
            _ => {}
        }
        let is_input = match &*group {
            Expr::Identifier(name) => own_column(scope, &names::fold(name)),
            _ => false,
        };
        if !is_input
            && let Some(place) = self.output_place(group, names, "GROUP BY", same(outputs))?
        {
            let output = &outputs[place].expr;
            *group = output.clone();
            // What it may not have is told as for the expression itself.
            self.expression(group, scope, Place::GroupBy)?;
            return Ok(());
        }
        self.expression(group, scope, Place::GroupBy)?;
        Ok(())
    }

    fn distinct(
        &mut self,
        select: &mut Select,
        outputs: &[Output],
        names: &[OutputName],
        scope: &Scope<'_>,
    ) -> Result<bool, Error> {
        let mut has_aggregate = false;
        match &mut select.distinct {
            Some(Distinct::On(expressions)) => {
                for expr in expressions {
                    match self.output_place(expr, names, "DISTINCT ON", same(outputs))? {
                        Some(place) => *expr = outputs[place].expr.clone(),
                        None => {
                            let traits = self.expression(expr, scope, Place::DistinctOn)?;
                            has_aggregate |= traits.has_aggregate;
                        }
                    }
                }
            }
            Some(Distinct::All) => select.distinct = None,
            Some(Distinct::Distinct) | None => {}
        }
        Ok(has_aggregate)
    }

    /// In ORDER BY a bare name is a result column first, and a column of FROM second.
    fn order(
        &mut self,
        order: &mut Expr,
        select: &Select,
        outputs: &[Output],
        names: &[OutputName],
        scope: &Scope<'_>,
        windows: &[NamedWindowDefinition],
    ) -> Result<bool, Error> {
        let mut has_aggregate = false;
        let place = match self.output_place(order, names, "ORDER BY", same(outputs))? {
            Some(place) => Some(place),
            None => {
                let traits = self.expression_with_windows(order, scope, Place::OrderBy, windows)?;
                has_aggregate = traits.has_aggregate;
                outputs.iter().position(|output| output.expr == *order)
            }
        };
        match (place, &select.distinct) {
            // DataFusion compares what is distinct and what is ordered by as expressions.
            (Some(place), Some(Distinct::On(_))) => *order = outputs[place].expr.clone(),
            (Some(place), _) => *order = number(place + 1),
            (None, Some(Distinct::Distinct)) => {
                let message =
                    "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
                return Err(Error::new(SqlState::INVALID_COLUMN_REFERENCE, message));
            }
            (None, _) => {}
        }
        Ok(has_aggregate)
    }
}

/// Whether two result columns are the same.
fn same(outputs: &[Output]) -> impl Fn(usize, usize) -> bool {
    |one, other| outputs[one].expr == outputs[other].expr
}

/// Whether FROM has a column of this name, be it ambiguous.
fn own_column(scope: &Scope<'_>, name: &str) -> bool {
    scope.items.iter().flat_map(|item| &item.columns).any(|column| column.name == name)
}

/// The relation's column that an expression is.
fn origin(expr: &Expr, scope: &Scope<'_>) -> Option<(stillframe_protocol::RelationId, i16)> {
    let Expr::CompoundIdentifier(parts) = expr else { return None };
    let [alias, name] = parts.as_slice() else { return None };
    let source = scope.own_sources().find(|source| source.internal == alias.value)?;
    source.columns.iter().find(|column| column.internal == name.value)?.origin
}

/// `GROUP BY ()` is one group of all rows, as HAVING makes it.
fn group_by_nothing(select: &mut Select) {
    let GroupByExpr::Expressions(groups, _) = &mut select.group_by else { return };
    let written = groups.len();
    groups.retain(|group| !matches!(group, Expr::Tuple(items) if items.is_empty()));
    if groups.is_empty() && written > 0 && select.having.is_none() {
        select.having = Some(Expr::value(Value::Boolean(true)));
    }
}

/// HAVING makes a SELECT a grouped one, but DataFusion wants to see a group or an aggregate.
fn make_grouped(select: &mut Select, has_aggregate: bool) {
    let is_grouped = has_aggregate
        || !matches!(&select.group_by, GroupByExpr::Expressions(groups, _) if groups.is_empty());
    let Some(having) = select.having.as_mut().filter(|_| !is_grouped) else { return };
    let count = Expr::Function(Function {
        name: ObjectName::from(vec![resolved("count")]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: vec![FunctionArg::Unnamed(FunctionArgExpr::Wildcard)],
            clauses: vec![],
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: vec![],
    });
    let written = std::mem::replace(having, Expr::value(Value::Null));
    *having = Expr::BinaryOp {
        left: Box::new(Expr::Nested(Box::new(written))),
        op: BinaryOperator::And,
        right: Box::new(Expr::IsNotNull(Box::new(count))),
    };
}

fn is_place(order: &Expr) -> bool {
    matches!(order, Expr::Value(value) if matches!(value.value, Value::Number(..)))
}

/// Whether an expression is a column of FROM that is called so.
fn is_column(expr: &Expr, name: &str) -> bool {
    matches!(expr, Expr::CompoundIdentifier(parts)
        if parts.last().is_some_and(|last| last.value == name))
}

/// The result columns, each under a name of its own in the resolved query.
/// `avoided` are names of columns of FROM that only a result may have which is that column.
fn unique_names(outputs: &[Output], avoided: &HashSet<&str>) -> Vec<OutputName> {
    let mut taken: HashSet<String> = HashSet::new();
    let given: HashSet<&str> = outputs.iter().map(|output| output.name.as_str()).collect();
    let mut names = vec![];
    for output in outputs {
        let mut internal = output.name.clone();
        let mut number = 1;
        let mut is_free =
            !avoided.contains(internal.as_str()) || is_column(&output.expr, &internal);
        while !is_free || !taken.insert(internal.clone()) {
            is_free = true;
            internal = loop {
                let next = format!("{}_{number}", output.name);
                number += 1;
                if !given.contains(next.as_str()) && !avoided.contains(next.as_str()) {
                    break next;
                }
            };
        }
        names.push(OutputName { name: output.name.clone(), internal, origin: output.origin });
    }
    names
}

/// What a SELECT can't have. Nothing is passed over silently.
fn refuse(select: &Select) -> Result<(), Error> {
    let refused = [
        (select.into.is_some(), "SELECT INTO"),
        (select.top.is_some(), "TOP"),
        (!select.lateral_views.is_empty(), "LATERAL VIEW"),
        (select.qualify.is_some(), "QUALIFY"),
        (select.prewhere.is_some(), "PREWHERE"),
        (select.exclude.is_some(), "EXCLUDE"),
        (!select.connect_by.is_empty(), "CONNECT BY"),
        (
            !select.cluster_by.is_empty()
                || !select.distribute_by.is_empty()
                || !select.sort_by.is_empty()
                || select.value_table_mode.is_some()
                || select.select_modifiers.is_some(),
            "this form of SELECT",
        ),
    ];
    match refused.into_iter().find(|(present, _)| *present) {
        Some((_, what)) => Err(Error::unsupported(what)),
        None => Ok(()),
    }
}

fn refuse_options(options: &WildcardAdditionalOptions) -> Result<(), Error> {
    let is_plain = options.opt_ilike.is_none()
        && options.opt_exclude.is_none()
        && options.opt_except.is_none()
        && options.opt_replace.is_none()
        && options.opt_rename.is_none()
        && options.opt_alias.is_none();
    if is_plain { Ok(()) } else { Err(Error::unsupported("an option of *")) }
}
