//! FROM: relations, subqueries, functions and joins.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments,
    Join, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, TableAlias,
    TableAliasColumnDef, TableFactor, TableWithJoins, visit_expressions,
};

use super::expressions::Place;
use super::scope::{Item, Scope, Source, Visible};
use super::{OutputName, Resolver, internal_alias, resolved};
use crate::functions::json_rows;
use crate::{Error, RelationKind, SqlState, names, system};

/// Which side of a join can have no partner.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outer {
    None,
    Left,
    Right,
    Full,
}

impl Resolver<'_> {
    /// Resolves FROM; returns what can be named after it.
    pub(super) fn from<'s>(
        &mut self,
        from: &mut [TableWithJoins],
        parent: Option<&'s Scope<'s>>,
    ) -> Result<Scope<'s>, Error> {
        let mut scope = Scope::empty(parent);
        for tree in from {
            let item = self.tree(tree, &scope)?;
            self.check_aliases(&scope, &item)?;
            scope.items.push(item);
        }
        Ok(scope)
    }

    /// Two relations of one FROM need different names.
    fn check_aliases(&self, scope: &Scope<'_>, item: &Item) -> Result<(), Error> {
        let known = scope.own_sources();
        let mut seen: Vec<_> = known.map(|source| (&source.schema, &source.alias)).collect();
        for source in &item.relations {
            let name = (&source.schema, &source.alias);
            if seen.contains(&name) {
                let message = format!("table name \"{}\" specified more than once", source.alias);
                return Err(Error::new(SqlState::DUPLICATE_ALIAS, message));
            }
            seen.push(name);
        }
        Ok(())
    }

    /// A relation with its joins. `before` are the items before it, for LATERAL.
    fn tree(&mut self, tree: &mut TableWithJoins, before: &Scope<'_>) -> Result<Item, Error> {
        let mut item = self.factor(&mut tree.relation, before, &Item::default())?;
        for join in &mut tree.joins {
            item = self.join(item, join, before)?;
        }
        Ok(item)
    }

    fn join(&mut self, left: Item, join: &mut Join, before: &Scope<'_>) -> Result<Item, Error> {
        if join.global {
            return Err(Error::unsupported("GLOBAL JOIN"));
        }
        let right = self.factor(&mut join.relation, before, &left)?;
        self.check_aliases(&Scope::new(vec![left.clone()], None), &right)?;
        let (outer, constraint) = match &mut join.join_operator {
            JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => {
                (Outer::None, constraint)
            }
            JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
                (Outer::Left, constraint)
            }
            JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
                (Outer::Right, constraint)
            }
            JoinOperator::FullOuter(constraint) => (Outer::Full, constraint),
            JoinOperator::CrossJoin(JoinConstraint::None) => return Ok(both(left, right)),
            _ => return Err(Error::unsupported("this kind of join")),
        };
        match constraint {
            JoinConstraint::On(condition) => {
                let item = both(left, right);
                let scope = Scope::new(vec![item], before.parent);
                self.expression(condition, &scope, Place::JoinOn)?;
                let [item] = <[Item; 1]>::try_from(scope.items)
                    .map_err(|_| Error::internal("a scope has lost its item"))?;
                Ok(item)
            }
            JoinConstraint::Using(columns) => {
                let columns = columns.iter().map(single_name).collect::<Result<Vec<_>, _>>()?;
                let (item, condition) = merge(left, right, &columns, outer)?;
                *constraint = JoinConstraint::On(condition);
                Ok(item)
            }
            JoinConstraint::Natural => {
                let common = left.columns.iter().map(|column| column.name.clone());
                let common = common.filter(|name| right.columns.iter().any(|c| c.name == *name));
                let common: Vec<_> = common.collect();
                if common.is_empty() {
                    *constraint = JoinConstraint::On(Expr::value(
                        datafusion::sql::sqlparser::ast::Value::Boolean(true),
                    ));
                    return Ok(both(left, right));
                }
                let (item, condition) = merge(left, right, &common, outer)?;
                *constraint = JoinConstraint::On(condition);
                Ok(item)
            }
            JoinConstraint::None => {
                Err(Error::new(SqlState::SYNTAX_ERROR, "a join needs ON, USING or CROSS"))
            }
        }
    }

    /// One relation. `beside` is what stands to its left in the same join.
    fn factor(
        &mut self,
        factor: &mut TableFactor,
        before: &Scope<'_>,
        beside: &Item,
    ) -> Result<Item, Error> {
        self.pairs(factor);
        match factor {
            TableFactor::Table {
                name,
                alias,
                args: None,
                with_hints,
                version: None,
                with_ordinality: false,
                partitions,
                json_path: None,
                sample: None,
                index_hints,
            } if with_hints.is_empty() && partitions.is_empty() && index_hints.is_empty() => {
                let source = self.named(name, alias, before, beside)?;
                Ok(source.into_item())
            }
            TableFactor::Table { sample: Some(_), .. } => Err(Error::unsupported("TABLESAMPLE")),
            TableFactor::Table { with_ordinality: true, .. }
            | TableFactor::Function { with_ordinality: true, .. }
            | TableFactor::UNNEST { with_ordinality: true, .. } => {
                Err(Error::unsupported("WITH ORDINALITY"))
            }
            TableFactor::Derived { lateral, subquery, alias, sample: None } => {
                let columns = if *lateral {
                    let mut items = before.items.clone();
                    items.push(beside.clone());
                    let around = Scope::new(items, before.parent);
                    self.query(subquery, Some(&around))?
                } else {
                    self.query(subquery, before.parent)?
                };
                let given = alias.take().unwrap_or_else(|| internal_alias("unnamed_subquery"));
                let name = names::fold(&given.name);
                let columns = self.renamed(columns, &given, &name)?;
                let internal = unlike(&name, before, beside);
                *alias = Some(internal_alias(&internal));
                let source = Source { alias: name, schema: None, internal, columns, key: vec![] };
                Ok(source.into_item())
            }
            TableFactor::Table { name, args: Some(arguments), alias, .. } => {
                if arguments.settings.is_some() {
                    return Err(Error::unsupported("SETTINGS"));
                }
                let (name, mut arguments) = (name.clone(), arguments.args.clone());
                let mut alias = alias.take();
                if let Some(array) = self.array(&name, &arguments, before)? {
                    *factor = of_array(&name, array, alias);
                    return self.factor(factor, before, beside);
                }
                let item = self.function(&name, &mut arguments, &mut alias, before, beside)?;
                *factor = TableFactor::Function {
                    lateral: false,
                    name,
                    args: arguments,
                    with_ordinality: false,
                    alias,
                };
                self.plain_function(factor);
                Ok(item)
            }
            TableFactor::Function { name, args, alias, .. } => {
                let name = name.clone();
                if let Some(array) = self.array(&name, args, before)? {
                    *factor = of_array(&name, array, alias.take());
                    return self.factor(factor, before, beside);
                }
                let item = self.function(&name, args, alias, before, beside)?;
                self.plain_function(factor);
                Ok(item)
            }
            TableFactor::UNNEST { alias, array_exprs, with_offset: false, .. } => {
                let scope = Scope::empty(before.parent);
                for array in array_exprs.iter_mut() {
                    let mut around = array.clone();
                    if let Err(error) = self.expression(array, &scope, Place::FunctionInFrom) {
                        let mut items = before.items.clone();
                        items.push(beside.clone());
                        let beside = Scope::new(items, before.parent);
                        return Err(
                            match self.expression(&mut around, &beside, Place::FunctionInFrom) {
                                Ok(_) => Error::unsupported("unnest of columns beside it in FROM")
                                    .with_hint("Put it into the select list of a subquery."),
                                Err(_) => error,
                            },
                        );
                    }
                }
                let width = array_exprs.len();
                let mut source = self.of_function("unnest", width, alias, before, beside)?;
                if let [keys, _] = array_exprs.as_slice()
                    && json_rows::is_pairs(keys)
                {
                    for (column, name) in source.columns.iter_mut().zip(["key", "value"]) {
                        if column.name == source.alias {
                            column.name = name.to_owned();
                        }
                    }
                }
                Ok(source.into_item())
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                let mut items = before.items.clone();
                items.push(beside.clone());
                let scope = Scope::new(items, before.parent);
                self.tree(table_with_joins, &scope)
            }
            TableFactor::NestedJoin { .. } => Err(Error::unsupported("an alias of a join")),
            other => Err(Error::unsupported(format!("{other} in FROM"))),
        }
    }

    /// A relation by its name: a WITH query, or one of the catalog.
    fn named(
        &mut self,
        name: &mut ObjectName,
        alias: &mut Option<TableAlias>,
        before: &Scope<'_>,
        beside: &Item,
    ) -> Result<Source, Error> {
        let span = names::span(name);
        let (schema, relation) = names::relation(name).map_err(|e| self.locate(e, span))?;
        let visible = alias.as_ref().map(|alias| names::fold(&alias.name));
        let cte = self.ctes.iter().rev().find(|(known, _)| schema.is_none() && *known == relation);
        let (columns, key, schema) = match cte {
            Some((known, columns)) => {
                *name = ObjectName::from(vec![resolved(known)]);
                (columns.clone(), vec![], None)
            }
            None => self.of_catalog(name, schema, &relation, span)?,
        };
        let schema = schema.filter(|_| visible.is_none());
        let visible = visible.unwrap_or(relation);
        let columns = match alias {
            Some(alias) => self.renamed(columns, alias, &visible)?,
            None => columns,
        };
        let internal = unlike(&visible, before, beside);
        *alias = Some(internal_alias(&internal));
        Ok(Source { alias: visible, schema, internal, columns, key })
    }

    fn of_catalog(
        &mut self,
        name: &mut ObjectName,
        schema: Option<String>,
        relation: &str,
        span: datafusion::sql::sqlparser::tokenizer::Span,
    ) -> Result<(Vec<OutputName>, Vec<usize>, Option<String>), Error> {
        let schemas = match schema {
            Some(schema) => vec![schema],
            None => self.context.settings.search_path(),
        };
        for schema in schemas {
            if let Some(given) = self.context.given(&schema, relation) {
                let columns = given.origins().map(|(name, origin)| OutputName {
                    origin,
                    ..OutputName::new(name.to_owned())
                });
                return Ok((columns.collect(), vec![], None));
            }
            if let Some(found) = self.context.catalog.find(&schema, relation) {
                self.reads.insert(found.id);
                *name = ObjectName::from(vec![resolved(&schema), resolved(relation)]);
                let columns = found.columns.iter().zip(1..).map(|(column, place)| OutputName {
                    origin: Some((found.id, place)),
                    ..OutputName::new(column.name.clone())
                });
                let key = match &found.kind {
                    RelationKind::Table { key } => key.clone(),
                    RelationKind::View { .. } | RelationKind::MaterializedView { .. } => vec![],
                };
                return Ok((columns.collect(), key, Some(schema)));
            }
            if let Some(found) = system::table(self.context, &schema, relation) {
                *name = ObjectName::from(vec![resolved(&schema), resolved(relation)]);
                let fields = found.schema();
                let columns = fields.fields().iter().map(|f| OutputName::new(f.name().clone()));
                return Ok((columns.collect(), vec![], Some(schema)));
            }
        }
        let message = format!("relation \"{}\" does not exist", names::unquoted(name));
        Err(self.locate(Error::new(SqlState::UNDEFINED_TABLE, message), span))
    }

    /// The keys and values that a function in FROM returns, as the arrays that `unnest` takes.
    fn pairs(&mut self, factor: &mut TableFactor) {
        let (name, arguments, alias) = match factor {
            TableFactor::Table { name, args: Some(arguments), alias, .. } => {
                (name, &arguments.args, alias)
            }
            TableFactor::Function { name, args, alias, .. } => (name, &*args, alias),
            _ => return,
        };
        let function = names::function(name);
        let [FunctionArg::Unnamed(FunctionArgExpr::Expr(value))] = arguments.as_slice() else {
            return;
        };
        if !json_rows::RETURNS_PAIRS.contains(&function.as_str()) {
            return;
        }
        let arrays = json_rows::pair_names(&function).map(|name| call(&name, vec![value.clone()]));
        *factor = TableFactor::UNNEST {
            alias: Some(alias.take().unwrap_or_else(|| internal_alias(&function))),
            array_exprs: arrays.into(),
            with_offset: false,
            with_offset_alias: None,
            with_ordinality: false,
        };
    }

    /// A function that returns rows.
    fn function(
        &mut self,
        name: &ObjectName,
        arguments: &mut [FunctionArg],
        alias: &mut Option<TableAlias>,
        before: &Scope<'_>,
        beside: &Item,
    ) -> Result<Item, Error> {
        let scope = Scope::empty(before.parent);
        for argument in arguments.iter_mut() {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) = argument else {
                return Err(Error::unsupported("a named argument of a function in FROM"));
            };
            let mut around = argument.clone();
            if let Err(error) = self.expression(argument, &scope, Place::FunctionInFrom) {
                let mut items = before.items.clone();
                items.push(beside.clone());
                let beside = Scope::new(items, before.parent);
                return Err(match self.expression(&mut around, &beside, Place::FunctionInFrom) {
                    Ok(_) => Error::unsupported("a function of columns beside it in FROM"),
                    Err(_) => error,
                });
            }
        }
        let function = names::function(name);
        let schema = self.context.function_schema(&function, arguments)?;
        let fields = schema.fields();
        let mut source = self.of_function(&function, fields.len(), alias, before, beside)?;
        if fields.len() > 1 {
            // The columns of a row have names of their own.
            for (column, field) in source.columns.iter_mut().zip(fields) {
                if column.name == source.alias {
                    column.name = field.name().clone();
                }
            }
        }
        Ok(source.into_item())
    }

    /// The array whose elements a function in FROM returns: that of `unnest`, and one for a
    /// `generate_series` that differs with the row of the query around.
    fn array(
        &mut self,
        name: &ObjectName,
        arguments: &[FunctionArg],
        before: &Scope<'_>,
    ) -> Result<Option<Expr>, Error> {
        let values = arguments.iter().map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
            _ => None,
        });
        let Some(mut values) = values.collect::<Option<Vec<_>>>() else { return Ok(None) };
        match (names::function(name).as_str(), values.len()) {
            ("unnest", 1) => Ok(values.pop()),
            (function, 1) if json_rows::RETURNS_ROWS.contains(&function) => {
                Ok(Some(call(&json_rows::list_name(function), values)))
            }
            ("generate_series", _) => {
                let scope = Scope::empty(before.parent);
                let mut has_columns = false;
                for value in &mut values {
                    if self.expression(value, &scope, Place::FunctionInFrom).is_err() {
                        // Whoever resolves the function says why.
                        return Ok(None);
                    }
                    has_columns |= names_columns(value);
                }
                Ok(has_columns.then(|| call("generate_series", values)))
            }
            _ => Ok(None),
        }
    }

    /// The rows of a function under an alias, which names all their columns.
    fn of_function(
        &mut self,
        function: &str,
        width: usize,
        alias: &mut Option<TableAlias>,
        before: &Scope<'_>,
        beside: &Item,
    ) -> Result<Source, Error> {
        let given = alias.take().unwrap_or_else(|| internal_alias(function));
        let name = names::fold(&given.name);
        // A function that returns plain values has one column of the alias's name.
        let columns = (1..=width).map(|place| OutputName {
            internal: format!("c{place}"),
            ..OutputName::new(name.clone())
        });
        let columns = self.renamed(columns.collect(), &given, &name)?;
        let internal = unlike(&name, before, beside);
        let mut written = internal_alias(&internal);
        written.columns = columns
            .iter()
            .map(|c| TableAliasColumnDef { name: resolved(&c.internal), data_type: None })
            .collect();
        *alias = Some(written);
        Ok(Source { alias: name, schema: None, internal, columns, key: vec![] })
    }

    /// The form of a function in FROM that DataFusion plans.
    fn plain_function(&self, factor: &mut TableFactor) {
        if let TableFactor::Function { name, args, alias, .. } = factor {
            let function = names::function(name);
            *factor = TableFactor::Table {
                name: ObjectName(vec![ObjectNamePart::Identifier(resolved(&function))]),
                alias: alias.take(),
                args: Some(datafusion::sql::sqlparser::ast::TableFunctionArgs {
                    args: std::mem::take(args),
                    settings: None,
                }),
                with_hints: vec![],
                version: None,
                with_ordinality: false,
                partitions: vec![],
                json_path: None,
                sample: None,
                index_hints: vec![],
            };
        }
    }
}

/// A name that no relation has that can be named here.
fn unlike(name: &str, before: &Scope<'_>, beside: &Item) -> String {
    let mut taken = before.internal_names();
    taken.extend(beside.relations.iter().map(|source| source.internal.as_str()));
    if !taken.contains(name) {
        return name.to_owned();
    }
    let numbered = (1..).map(|number| format!("{name}_{number}"));
    let mut free = numbered.filter(|name| !taken.contains(name.as_str()));
    free.next().expect("there are more numbers than names")
}

fn both(left: Item, right: Item) -> Item {
    Item {
        relations: left.relations.into_iter().chain(right.relations).collect(),
        columns: left.columns.into_iter().chain(right.columns).collect(),
    }
}

/// A join in which some columns of both sides become one; returns its condition as well.
fn merge(left: Item, right: Item, merged: &[String], outer: Outer) -> Result<(Item, Expr), Error> {
    let mut columns = vec![];
    let mut condition: Option<Expr> = None;
    for name in merged {
        let of_left = one(&left, name, "left")?;
        let of_right = one(&right, name, "right")?;
        let equal = operation(of_left.expr.clone(), BinaryOperator::Eq, of_right.expr.clone());
        condition = Some(match condition {
            Some(condition) => operation(condition, BinaryOperator::And, equal),
            None => equal,
        });
        let (expr, origin) = match outer {
            Outer::None | Outer::Left => (of_left.expr.clone(), of_left.origin),
            Outer::Right => (of_right.expr.clone(), of_right.origin),
            Outer::Full => (coalesce(of_left.expr.clone(), of_right.expr.clone()), None),
        };
        columns.push(Visible { name: name.clone(), expr, origin });
    }
    let rest = left.columns.iter().chain(&right.columns);
    columns.extend(rest.filter(|column| !merged.contains(&column.name)).cloned());
    let relations = left.relations.into_iter().chain(right.relations).collect();
    let condition = condition.ok_or_else(|| Error::internal("USING without columns"))?;
    Ok((Item { relations, columns }, condition))
}

fn one<'a>(item: &'a Item, name: &str, side: &str) -> Result<&'a Visible, Error> {
    let mut found = item.columns.iter().filter(|column| column.name == name);
    match (found.next(), found.next()) {
        (Some(column), None) => Ok(column),
        (Some(_), Some(_)) => {
            let message =
                format!("common column name \"{name}\" appears more than once in {side} table");
            Err(Error::new(SqlState::AMBIGUOUS_COLUMN, message))
        }
        (None, _) => {
            let message = format!(
                "column \"{name}\" specified in USING clause does not exist in {side} table"
            );
            Err(Error::new(SqlState::UNDEFINED_COLUMN, message))
        }
    }
}

fn single_name(name: &ObjectName) -> Result<String, Error> {
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(identifier)] => Ok(names::fold(identifier)),
        _ => Err(Error::new(SqlState::SYNTAX_ERROR, format!("{name} is no column name"))),
    }
}

fn operation(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

/// The elements of an array as rows.
fn of_array(name: &ObjectName, array: Expr, alias: Option<TableAlias>) -> TableFactor {
    TableFactor::UNNEST {
        alias: Some(alias.unwrap_or_else(|| internal_alias(&names::function(name)))),
        array_exprs: vec![array],
        with_offset: false,
        with_offset_alias: None,
        with_ordinality: false,
    }
}

/// Whether a resolved expression names columns of its own.
fn names_columns(expr: &Expr) -> bool {
    let found = visit_expressions(expr, |expr| match expr {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

fn coalesce(left: Expr, right: Expr) -> Expr {
    call("coalesce", vec![left, right])
}

/// A call of a function.
pub(super) fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let arguments =
        arguments.into_iter().map(|expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)));
    Expr::Function(datafusion::sql::sqlparser::ast::Function {
        name: ObjectName::from(vec![resolved(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.collect(),
            clauses: vec![],
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: vec![],
    })
}
