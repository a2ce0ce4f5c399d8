//! The names inside an expression.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, AccessExpr, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, Ident, NamedWindowDefinition, NamedWindowExpr,
    ObjectName, Query, SelectItem, SetExpr, UnaryOperator, Value, Visit, VisitMut, Visitor,
    VisitorMut, WindowFrameBound, WindowFrameUnits, WindowSpec, WindowType,
};
use datafusion::sql::sqlparser::tokenizer::{Location, Span};

use super::from::call;
use super::scope::{Found, Scope, Unknown};
use super::{Resolver, resolved};
use crate::query::QueryContext;
use crate::{Error, SqlState, functions, names};

/// The place of names that are resolved already: one where no text is.
pub(super) const RESOLVED: Span = Span {
    start: Location { line: 0, column: u64::MAX },
    end: Location { line: 0, column: u64::MAX },
};

/// Where an expression stands, which says what it can't have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Select,
    Where,
    JoinOn,
    GroupBy,
    Having,
    OrderBy,
    DistinctOn,
    Limit,
    Values,
    FunctionInFrom,
}

impl Place {
    /// As in PostgreSQL's messages.
    fn name(self) -> &'static str {
        match self {
            Self::Select => "SELECT",
            Self::Where => "WHERE",
            Self::JoinOn => "JOIN conditions",
            Self::GroupBy => "GROUP BY",
            Self::Having => "HAVING",
            Self::OrderBy => "ORDER BY",
            Self::DistinctOn => "DISTINCT ON",
            Self::Limit => "LIMIT",
            Self::Values => "VALUES",
            Self::FunctionInFrom => "functions in FROM",
        }
    }

    fn has_aggregates(self) -> bool {
        matches!(self, Self::Select | Self::Having | Self::OrderBy | Self::DistinctOn)
    }

    fn has_windows(self) -> bool {
        matches!(self, Self::Select | Self::OrderBy | Self::DistinctOn)
    }
}

/// What an expression turned out to have.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traits {
    pub(super) has_aggregate: bool,
}

impl Resolver<'_> {
    /// Resolves an expression in place.
    pub(super) fn expression(
        &mut self,
        expr: &mut Expr,
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Traits, Error> {
        self.expression_with_windows(expr, scope, place, &[])
    }

    /// Resolves an expression that may name windows.
    pub(super) fn expression_with_windows(
        &mut self,
        expr: &mut Expr,
        scope: &Scope<'_>,
        place: Place,
        windows: &[NamedWindowDefinition],
    ) -> Result<Traits, Error> {
        let mut walk = Walk {
            resolver: self,
            scope,
            place,
            windows,
            queries: 0,
            aggregates: vec![],
            windowed: 0,
            traits: Traits::default(),
        };
        match expr.visit(&mut walk) {
            ControlFlow::Continue(()) => Ok(walk.traits),
            ControlFlow::Break(error) => Err(error),
        }
    }
}

/// Refuses aggregates and windows in an expression of a clause that can't have them.
pub(crate) fn refuse_grouped(
    context: &QueryContext,
    expr: &Expr,
    clause: &str,
) -> Result<(), Error> {
    struct Finder<'a> {
        context: &'a QueryContext,
        clause: &'a str,
        queries: usize,
    }
    impl Visitor for Finder<'_> {
        type Break = Error;

        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<Error> {
            self.queries += 1;
            ControlFlow::Continue(())
        }

        fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Error> {
            self.queries -= 1;
            ControlFlow::Continue(())
        }

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Error> {
            let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
            let (kind, state) = match &function.over {
                _ if self.queries > 0 => return ControlFlow::Continue(()),
                Some(_) => ("window", SqlState::WINDOWING_ERROR),
                None if self.context.is_aggregate(&names::function(&function.name)) => {
                    ("aggregate", SqlState::GROUPING_ERROR)
                }
                None => return ControlFlow::Continue(()),
            };
            let message = format!("{kind} functions are not allowed in {}", self.clause);
            let error = Error::new(state, message);
            ControlFlow::Break(match &self.context.source {
                Some(source) => source.locate(error, names::span(&function.name)),
                None => error,
            })
        }
    }
    match expr.visit(&mut Finder { context, clause, queries: 0 }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Walk<'w, 'r, 's> {
    resolver: &'w mut Resolver<'r>,
    scope: &'w Scope<'s>,
    place: Place,
    windows: &'w [NamedWindowDefinition],
    /// How many queries around the current place are resolved already.
    queries: usize,
    /// The aggregate calls around the current place: the levels of the columns inside.
    aggregates: Vec<Vec<usize>>,
    /// How many window calls are around the current place.
    windowed: usize,
    traits: Traits,
}

impl VisitorMut for Walk<'_, '_, '_> {
    type Break = Error;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        // Whoever holds a query in an expression has resolved it before it is visited.
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if self.queries > 0 {
            return ControlFlow::Continue(());
        }
        match self.enter(expr) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if self.queries > 0 {
            return ControlFlow::Continue(());
        }
        match self.leave(expr) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

impl Walk<'_, '_, '_> {
    fn enter(&mut self, expr: &mut Expr) -> Result<(), Error> {
        match expr {
            Expr::Identifier(identifier) if identifier.span != RESOLVED => {
                *expr = self.bare(identifier)?;
            }
            Expr::CompoundIdentifier(parts)
                if parts.first().is_some_and(|part| part.span != RESOLVED) =>
            {
                *expr = self.qualified(parts)?;
            }
            Expr::CompoundFieldAccess { root, access_chain } => {
                *expr = self.access(root, access_chain)?;
            }
            Expr::BinaryOp { left, right, .. }
            | Expr::AnyOp { left, right, .. }
            | Expr::AllOp { left, right, .. }
                if width(left) != 1 =>
            {
                if let Expr::Subquery(query) = right.as_mut() {
                    self.of_width(query, width(left))?;
                }
            }
            // Beside a row it has been resolved.
            Expr::Subquery(query) if !is_resolved(query) => {
                let columns = self.resolver.query(query, Some(self.scope))?;
                if columns.len() != 1 {
                    let message = "subquery must return only one column";
                    return Err(Error::new(SqlState::SYNTAX_ERROR, message));
                }
            }
            Expr::Exists { subquery, .. } => {
                self.resolver.query(subquery, Some(self.scope))?;
            }
            Expr::InSubquery { expr: operand, subquery, .. } => {
                self.of_width(subquery, width(operand))?;
            }
            Expr::Function(function) => self.enter_function(function)?,
            Expr::QualifiedWildcard(..) | Expr::Wildcard(_) => {
                return Err(Error::unsupported("* as a value"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Resolves a subquery that must have as many columns as a row has fields.
    fn of_width(&mut self, subquery: &mut Query, width: usize) -> Result<(), Error> {
        let columns = self.resolver.query(subquery, Some(self.scope))?;
        if columns.len() == width {
            return Ok(());
        }
        let which = if columns.len() > width { "many" } else { "few" };
        let message = format!("subquery has too {which} columns");
        Err(Error::new(SqlState::SYNTAX_ERROR, message))
    }

    fn leave(&mut self, expr: &mut Expr) -> Result<(), Error> {
        let Expr::Function(function) = expr else { return Ok(()) };
        if self.is_aggregate(function) {
            let levels = self.aggregates.pop().unwrap_or_default();
            // PostgreSQL computes such an aggregate in the query around.
            if levels.iter().min().is_some_and(|level| *level > 0) {
                return Err(Error::unsupported("an aggregate of columns of an outer query"));
            }
            if let Some(outer) = self.aggregates.last_mut() {
                outer.extend(levels);
            }
        } else if function.over.is_some() {
            self.windowed -= 1;
        }
        Ok(())
    }

    fn is_aggregate(&self, function: &Function) -> bool {
        let name = names::function(&function.name);
        function.over.is_none()
            && (self.resolver.context.is_aggregate(&name) || !function.within_group.is_empty())
    }

    fn enter_function(&mut self, function: &mut Function) -> Result<(), Error> {
        let span = names::span(&function.name);
        let name = names::function(&function.name);
        let at = |error| self.resolver.locate(error, span);
        if name == "make_interval" {
            functions::unname(function)?;
        }
        if function.over.is_none() && self.is_aggregate(function) {
            if !self.place.has_aggregates() {
                let message =
                    format!("aggregate functions are not allowed in {}", self.place.name());
                return Err(at(Error::new(SqlState::GROUPING_ERROR, message)));
            }
            if !self.aggregates.is_empty() {
                let message = "aggregate function calls cannot be nested";
                return Err(at(Error::new(SqlState::GROUPING_ERROR, message)));
            }
            self.traits.has_aggregate |= self.windowed == 0 || self.aggregates.is_empty();
            self.aggregates.push(vec![]);
        } else if function.over.is_some() {
            if !self.place.has_windows() {
                let message = format!("window functions are not allowed in {}", self.place.name());
                return Err(at(Error::new(SqlState::WINDOWING_ERROR, message)));
            }
            if !self.aggregates.is_empty() {
                let message = "aggregate function calls cannot contain window function calls";
                return Err(at(Error::new(SqlState::GROUPING_ERROR, message)));
            }
            if self.windowed > 0 {
                let message = "window function calls cannot be nested";
                return Err(at(Error::new(SqlState::WINDOWING_ERROR, message)));
            }
            self.windowed += 1;
            self.window(function)?;
            refuse_in_window(&name, function)?;
        }
        if !self.resolver.context.has_function(&name) {
            let message = format!("function {name} does not exist");
            return Err(at(Error::new(SqlState::UNDEFINED_FUNCTION, message)).with_hint(
                "No function matches the given name and argument types. You might need to add \
                 explicit type casts.",
            ));
        }
        // DataFusion finds functions by one name.
        if function.name.0.len() > 1 || span != RESOLVED {
            function.name = ObjectName::from(vec![resolved(&name)]);
        }
        // Read again it would be no ARRAY of a query in quotes.
        if matches!(function.args, FunctionArguments::Subquery(_)) {
            function.name = ObjectName::from(vec![Ident { quote_style: None, ..resolved(&name) }]);
        }
        if matches!(function.args, FunctionArguments::None) {
            // Its name alone, once it is quoted, would be that of a column.
            function.args = FunctionArguments::List(FunctionArgumentList {
                duplicate_treatment: None,
                args: vec![],
                clauses: vec![],
            });
        }
        if let FunctionArguments::Subquery(query) = &mut function.args {
            let columns = self.resolver.query(query, Some(self.scope))?;
            if columns.len() != 1 {
                let message = "subquery must return only one column";
                return Err(Error::new(SqlState::SYNTAX_ERROR, message));
            }
        }
        if let FunctionArguments::List(list) = &function.args
            && list.args.iter().any(|argument| {
                matches!(argument, FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(_)))
            })
        {
            return Err(Error::unsupported("a whole row as an argument"));
        }
        Ok(())
    }

    /// Puts a window's definition where its name is.
    fn window(&self, function: &mut Function) -> Result<(), Error> {
        let spec = match &function.over {
            Some(WindowType::NamedWindow(name)) => self.named_window(name, self.windows.len())?,
            Some(WindowType::WindowSpec(spec)) => self.extended(spec, self.windows.len())?,
            None => return Ok(()),
        };
        check_frame(&spec)?;
        function.over = Some(WindowType::WindowSpec(spec));
        Ok(())
    }

    /// A window may only name those defined before it.
    fn named_window(&self, name: &Ident, before: usize) -> Result<WindowSpec, Error> {
        let wanted = names::fold(name);
        let known = self.windows[..before].iter().enumerate();
        let found = known.rev().find(|(_, definition)| names::fold(&definition.0) == wanted);
        let Some((place, NamedWindowDefinition(_, definition))) = found else {
            let message = format!("window \"{wanted}\" does not exist");
            let error = Error::new(SqlState::UNDEFINED_OBJECT, message);
            return Err(self.resolver.locate(error, name.span));
        };
        match definition {
            NamedWindowExpr::NamedWindow(other) => self.named_window(other, place),
            NamedWindowExpr::WindowSpec(spec) => self.extended(spec, place),
        }
    }

    /// A window that builds on another.
    fn extended(&self, spec: &WindowSpec, before: usize) -> Result<WindowSpec, Error> {
        let Some(base_name) = &spec.window_name else { return Ok(spec.clone()) };
        let base = self.named_window(base_name, before)?;
        let refused = |what: &str| {
            let message = format!("cannot {what} of window \"{}\"", names::fold(base_name));
            let error = Error::new(SqlState::WINDOWING_ERROR, message);
            Err(self.resolver.locate(error, base_name.span))
        };
        if !spec.partition_by.is_empty() {
            return refused("override PARTITION BY clause");
        }
        if !spec.order_by.is_empty() && !base.order_by.is_empty() {
            return refused("override ORDER BY clause");
        }
        if base.window_frame.is_some() {
            return refused("copy frame clause");
        }
        let own_order = !spec.order_by.is_empty();
        Ok(WindowSpec {
            window_name: None,
            partition_by: base.partition_by,
            order_by: if own_order { spec.order_by.clone() } else { base.order_by },
            window_frame: spec.window_frame.clone(),
        })
    }

    /// `a.b[1]` is an element of the column `a.b`; the rest are fields of values, which we don't
    /// have.
    fn access(&mut self, root: &Expr, chain: &[AccessExpr]) -> Result<Expr, Error> {
        if let (Expr::Nested(value), [AccessExpr::Dot(Expr::Identifier(field))]) = (root, chain) {
            let field = Value::SingleQuotedString(names::fold(field));
            return Ok(call("get_field", vec![value.as_ref().clone(), Expr::value(field)]));
        }
        let mut parts = match root {
            Expr::Identifier(identifier) => vec![identifier.clone()],
            Expr::CompoundIdentifier(parts) => parts.clone(),
            _ => vec![],
        };
        let dots = chain.iter().take_while(|access| matches!(access, AccessExpr::Dot(_))).count();
        let mut root = root.clone();
        if dots > 0 {
            for access in &chain[..dots] {
                match access {
                    AccessExpr::Dot(Expr::Identifier(part)) if !parts.is_empty() => {
                        parts.push(part.clone());
                    }
                    _ => return Err(Error::unsupported("a field of a composite value")),
                }
            }
            root = Expr::CompoundIdentifier(parts);
        }
        let rest = chain[dots..].to_vec();
        if rest.iter().any(|access| matches!(access, AccessExpr::Dot(_))) {
            return Err(Error::unsupported("a field of a composite value"));
        }
        // The column is resolved when it is visited.
        Ok(match rest.is_empty() {
            true => match root {
                Expr::CompoundIdentifier(parts) => self.qualified(&parts)?,
                other => other,
            },
            false => Expr::CompoundFieldAccess { root: Box::new(root), access_chain: rest },
        })
    }

    fn bare(&mut self, identifier: &Ident) -> Result<Expr, Error> {
        let name = names::fold(identifier);
        match self.scope.column(&name) {
            Ok(found) => self.note(found, identifier.span),
            Err(Unknown::Ambiguous) => Err(self.ambiguous(&name, identifier.span)),
            Err(_) => {
                if let Some(call) = value_function(identifier) {
                    return Ok(call);
                }
                if identifier.quote_style.is_none() && name == "default" {
                    let message = "DEFAULT is not allowed in this context";
                    let error = Error::new(SqlState::SYNTAX_ERROR, message);
                    return Err(self.resolver.locate(error, identifier.span));
                }
                if let Some((source, level)) = self.scope.source(None, &name) {
                    if source.is_scalar {
                        let expr = source.column(0);
                        return self.note(Found { expr, level }, identifier.span);
                    }
                    return Err(Error::unsupported("a whole row as a value"));
                }
                let message = format!("column \"{name}\" does not exist");
                let error = Error::new(SqlState::UNDEFINED_COLUMN, message);
                Err(self.resolver.locate(error, identifier.span))
            }
        }
    }

    fn qualified(&mut self, parts: &[Ident]) -> Result<Expr, Error> {
        let span = parts.first().map_or(Span::empty(), |part| part.span);
        let folded: Vec<_> = parts.iter().map(names::fold).collect();
        let (schema, alias, name) = match folded.as_slice() {
            [alias, name] => (None, alias, name),
            [schema, alias, name] => (Some(schema.as_str()), alias, name),
            [database, schema, alias, name] if crate::database::is_name(database) => {
                (Some(schema.as_str()), alias, name)
            }
            _ => {
                let message = format!(
                    "improper qualified name (too many dotted names): {}",
                    folded.join(".")
                );
                return Err(self
                    .resolver
                    .locate(Error::new(SqlState::SYNTAX_ERROR, message), span));
            }
        };
        match self.scope.qualified(schema, alias, name) {
            Ok(found) => self.note(found, span),
            Err(Unknown::Ambiguous) => Err(self.ambiguous(name, span)),
            Err(Unknown::Column) => {
                let message = format!("column {alias}.{name} does not exist");
                let error = Error::new(SqlState::UNDEFINED_COLUMN, message);
                Err(self.resolver.locate(error, span))
            }
            Err(Unknown::Relation) => {
                let message = format!("missing FROM-clause entry for table \"{alias}\"");
                let error = Error::new(SqlState::UNDEFINED_TABLE, message);
                Err(self.resolver.locate(error, span))
            }
        }
    }

    fn ambiguous(&self, name: &str, span: Span) -> Error {
        let message = format!("column reference \"{name}\" is ambiguous");
        self.resolver.locate(Error::new(SqlState::AMBIGUOUS_COLUMN, message), span)
    }

    /// A column was found.
    fn note(&mut self, found: Found, span: Span) -> Result<Expr, Error> {
        if self.place == Place::Limit && found.level == 0 {
            let message = "argument of LIMIT must not contain variables";
            let error = Error::new(SqlState::INVALID_COLUMN_REFERENCE, message);
            return Err(self.resolver.locate(error, span));
        }
        if let Some(levels) = self.aggregates.last_mut() {
            levels.push(found.level);
        }
        let _ = ast::visit_expressions(&found.expr, |expr| {
            if let Expr::CompoundIdentifier(parts) = expr
                && let [relation, _] = parts.as_slice()
                && self.scope.has_column_within(found.level, &relation.value)
            {
                self.resolver.clashes.insert(relation.value.clone());
            }
            ControlFlow::<()>::Continue(())
        });
        Ok(found.expr)
    }
}

/// What PostgreSQL refuses of a function with OVER.
fn refuse_in_window(name: &str, function: &Function) -> Result<(), Error> {
    let FunctionArguments::List(list) = &function.args else { return Ok(()) };
    if list.duplicate_treatment == Some(DuplicateTreatment::Distinct) {
        let message = "DISTINCT is not implemented for window functions";
        return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    if name == "nth_value"
        && let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(place))) = list.args.get(1)
        && place.to_string().parse::<i64>().is_ok_and(|place| place <= 0)
    {
        let message = "argument of nth_value must be greater than zero";
        return Err(Error::new(SqlState::INVALID_ARGUMENT_FOR_NTH_VALUE, message));
    }
    Ok(())
}

/// Whether a distance is a smaller number than another.
fn is_less(left: &Expr, right: &Expr) -> bool {
    let number = |expr: &Expr| expr.to_string().parse::<f64>().ok();
    matches!((number(left), number(right)), (Some(left), Some(right)) if left < right)
}

/// How many fields a value has: more than one if it is a row.
fn width(expr: &Expr) -> usize {
    match expr {
        Expr::Tuple(fields) => fields.len(),
        Expr::Function(Function { name, args: FunctionArguments::List(list), .. })
            if names::function(name) == "row" =>
        {
            list.args.len()
        }
        _ => 1,
    }
}

/// Whether the names of a subquery's results are resolved already.
fn is_resolved(query: &Query) -> bool {
    let mut body = query.body.as_ref();
    while let SetExpr::SetOperation { left, .. } = body {
        body = left;
    }
    match body {
        SetExpr::Select(select) => matches!(select.projection.first(),
            Some(SelectItem::ExprWithAlias { alias, .. }) if alias.span == RESOLVED),
        SetExpr::Query(query) => is_resolved(query),
        _ => false,
    }
}

/// What a frame can't be.
fn check_frame(spec: &WindowSpec) -> Result<(), Error> {
    let Some(frame) = &spec.window_frame else { return Ok(()) };
    let refused = |message: &str| Err(Error::new(SqlState::WINDOWING_ERROR, message));
    let end = frame.end_bound.as_ref().unwrap_or(&WindowFrameBound::CurrentRow);
    let mut distances = vec![];
    for bound in [&frame.start_bound, end] {
        if let WindowFrameBound::Preceding(Some(distance))
        | WindowFrameBound::Following(Some(distance)) = bound
        {
            distances.push(distance.as_ref());
        }
    }
    match (&frame.start_bound, end) {
        (WindowFrameBound::Following(None), _) => {
            return refused("frame start cannot be UNBOUNDED FOLLOWING");
        }
        (_, WindowFrameBound::Preceding(None)) => {
            return refused("frame end cannot be UNBOUNDED PRECEDING");
        }
        (WindowFrameBound::CurrentRow, WindowFrameBound::Preceding(_)) => {
            return refused("frame starting from current row cannot have preceding rows");
        }
        (WindowFrameBound::Following(_), WindowFrameBound::CurrentRow) => {
            return refused("frame starting from following row cannot end with current row");
        }
        (WindowFrameBound::Following(_), WindowFrameBound::Preceding(_)) => {
            return refused("frame starting from following row cannot have preceding rows");
        }
        _ => {}
    }
    let is_reversed = match (&frame.start_bound, end) {
        (WindowFrameBound::Preceding(Some(start)), WindowFrameBound::Preceding(Some(end))) => {
            is_less(start, end)
        }
        (WindowFrameBound::Following(Some(start)), WindowFrameBound::Following(Some(end))) => {
            is_less(end, start)
        }
        _ => false,
    };
    if is_reversed {
        return Err(Error::unsupported("a window frame that ends before it starts"));
    }
    if frame.units == WindowFrameUnits::Groups && spec.order_by.is_empty() {
        return refused("GROUPS mode requires an ORDER BY clause");
    }
    if frame.units == WindowFrameUnits::Range && !distances.is_empty() && spec.order_by.len() != 1 {
        return refused(
            "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column",
        );
    }
    if distances.iter().any(|distance| is_negative(distance)) {
        let message = "frame starting offset must not be negative";
        return Err(Error::new(SqlState::INVALID_PRECEDING_OR_FOLLOWING_SIZE, message));
    }
    Ok(())
}

fn is_negative(distance: &Expr) -> bool {
    match distance {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => matches!(expr.as_ref(), Expr::Value(_)),
        Expr::Nested(inner) => is_negative(inner),
        _ => false,
    }
}

/// The functions that are called without parentheses, where the parser takes them for names.
fn value_function(identifier: &Ident) -> Option<Expr> {
    let name = names::fold(identifier);
    let is_one = ["current_schema", "current_role", "current_catalog", "session_user", "user"]
        .contains(&name.as_str());
    (is_one && identifier.quote_style.is_none()).then(|| {
        Expr::Function(Function {
            name: ObjectName::from(vec![identifier.clone()]),
            uses_odbc_syntax: false,
            parameters: FunctionArguments::None,
            args: FunctionArguments::List(FunctionArgumentList {
                duplicate_treatment: None,
                args: vec![],
                clauses: vec![],
            }),
            filter: None,
            null_treatment: None,
            over: None,
            within_group: vec![],
        })
    })
}
