//! FROM: relations, subqueries, functions and joins.

use std::collections::BTreeSet;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments,
    Join, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, TableAlias, TableFactor,
    TableWithJoins,
};

use super::expressions::Place;
use super::scope::{Item, Scope, Source, Visible};
use super::{OutputName, Resolver, internal_alias, resolved};
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
                let internal = unlike(&name, before, beside, &self.avoided);
                *alias = Some(internal_alias(&internal));
                let source = Source {
                    alias: name,
                    schema: None,
                    internal,
                    columns,
                    key: vec![],
                    is_scalar: false,
                };
                Ok(source.into_item())
            }
            TableFactor::Table { args: Some(_), .. }
            | TableFactor::Function { .. }
            | TableFactor::UNNEST { .. } => self.call_in_from(factor, before, beside),
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
        let cte = self.ctes.iter().rev().find(|cte| schema.is_none() && cte.name == relation);
        let (columns, key, schema) = match cte {
            Some(cte) => {
                *name = ObjectName::from(vec![resolved(&cte.internal)]);
                (cte.columns.clone(), vec![], None)
            }
            None => self.of_catalog(name, schema, &relation, span)?,
        };
        let schema = schema.filter(|_| visible.is_none());
        let visible = visible.unwrap_or(relation);
        let columns = match alias {
            Some(alias) => self.renamed(columns, alias, &visible)?,
            None => columns,
        };
        let internal = unlike(&visible, before, beside, &self.avoided);
        *alias = Some(internal_alias(&internal));
        Ok(Source { alias: visible, schema, internal, columns, key, is_scalar: false })
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
}

/// A name that no relation has that can be named here.
pub(super) fn unlike(
    name: &str,
    before: &Scope<'_>,
    beside: &Item,
    avoided: &BTreeSet<String>,
) -> String {
    let mut taken = before.internal_names();
    taken.extend(avoided.iter().map(String::as_str));
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
