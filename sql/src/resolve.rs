//! Resolves the names of a query as PostgreSQL does, and writes the query so that nobody else has to:
//! every relation with its schema, every column with its relation, `*` spelled out, each result
//! column under a name of its own.
//!
//! DataFusion's rules for names differ in what a name in ORDER BY, GROUP BY or HAVING means, in
//! which names may be equal, and in what the results are called. A resolved query means the same
//! under both. It is also what a view stores: later settings and relations can't change it.

mod calls;
mod columns;
mod expressions;
mod from;
mod grouping;
mod grouping_sets;
mod recursion;
mod scope;
mod select;
mod whole_table;

use std::collections::BTreeSet;

use datafusion::sql::sqlparser::ast::{
    self, Cte, Expr, Fetch, LimitClause, Offset, OffsetRows, OrderBy, OrderByKind, Query, SetExpr,
    SetOperator, TableAlias, Value, With,
};
use datafusion::sql::sqlparser::tokenizer::Span;
use stillframe_protocol::RelationId;

use crate::query::QueryContext;
use crate::{Error, SqlState, names};
use expressions::Place;
pub(crate) use expressions::refuse_grouped;
pub(crate) use recursion::references;
use scope::Scope;

/// A resolved query.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) query: Query,
    pub(crate) columns: Vec<OutputName>,
    /// The relations that the query names.
    pub(crate) reads: BTreeSet<RelationId>,
}

/// A column of a query's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OutputName {
    /// What PostgreSQL calls it.
    pub(crate) name: String,
    /// What the resolved query calls it: unlike every other column.
    internal: String,
    /// The relation's column that it is, if it is nothing more, by place from 1.
    pub(crate) origin: Option<(RelationId, i16)>,
}

/// Resolves a query.
pub(crate) fn resolve(context: &QueryContext, query: &Query) -> Result<Resolved, Error> {
    let mut avoided = BTreeSet::new();
    loop {
        let mut query = query.clone();
        let (ctes, reads, clashes) = (vec![], BTreeSet::new(), BTreeSet::new());
        let mut resolver = Resolver { context, ctes, reads, avoided, clashes };
        let columns = resolver.query(&mut query, None)?;
        if resolver.clashes.is_empty() {
            return Ok(Resolved { query, columns, reads: resolver.reads });
        }
        avoided = resolver.avoided;
        avoided.append(&mut resolver.clashes);
    }
}

/// SELECT * FROM a relation without a name, which the caller gives.
pub(crate) fn select_all() -> Query {
    whole_table::table(&ast::Table { table_name: None, schema_name: None })
}

/// A query of WITH.
struct NamedQuery {
    name: String,
    /// What the resolved query calls it: unlike every other that can be named there.
    internal: String,
    columns: Vec<OutputName>,
}

struct Resolver<'a> {
    context: &'a QueryContext,
    /// The WITH queries that can be named now, the innermost last.
    ctes: Vec<NamedQuery>,
    reads: BTreeSet<RelationId>,
    /// What no relation may be called.
    avoided: BTreeSet<String>,
    /// The internal names of relations that a subquery with a column of that name refers to:
    /// DataFusion would look for a field of the column.
    clashes: BTreeSet<String>,
}

impl Resolver<'_> {
    /// An error with its place in the statement.
    fn locate(&self, error: Error, span: Span) -> Error {
        match &self.context.source {
            Some(source) => source.locate(error, span),
            None => error,
        }
    }

    fn query(
        &mut self,
        query: &mut Query,
        parent: Option<&Scope<'_>>,
    ) -> Result<Vec<OutputName>, Error> {
        refuse(query)?;
        let known = self.ctes.len();
        if let Some(with) = &mut query.with {
            self.with(with, parent)?;
        }
        let mut order_by = query.order_by.take();
        let columns = match query.body.as_mut() {
            SetExpr::Select(select) => self.select(select, order_by.as_mut(), parent)?,
            body => {
                let columns = self.body(body, parent)?;
                if let Some(order_by) = &mut order_by {
                    self.order_of_set(order_by, &columns, parent)?;
                }
                columns
            }
        };
        query.order_by = order_by;
        self.limit(query, parent)?;
        self.ctes.truncate(known);
        Ok(columns)
    }

    fn body(
        &mut self,
        body: &mut SetExpr,
        parent: Option<&Scope<'_>>,
    ) -> Result<Vec<OutputName>, Error> {
        match body {
            SetExpr::Select(select) => self.select(select, None, parent),
            SetExpr::Query(query) => self.query(query, parent),
            SetExpr::SetOperation { left, right, op, .. } => {
                let columns = self.body(left, parent)?;
                let others = self.body(right, parent)?;
                if columns.len() != others.len() {
                    let message = format!("each {op} query must have the same number of columns");
                    return Err(Error::new(SqlState::SYNTAX_ERROR, message));
                }
                if !matches!(op, SetOperator::Union | SetOperator::Intersect | SetOperator::Except)
                {
                    return Err(Error::unsupported(op));
                }
                let columns = columns.into_iter().map(|c| OutputName { origin: None, ..c });
                let columns: Vec<_> = columns.collect();
                Ok(columns)
            }
            SetExpr::Values(values) => self.values(values, parent),
            SetExpr::Table(table) => {
                let mut query = whole_table::table(table);
                let columns = self.query(&mut query, parent)?;
                *body = SetExpr::Query(Box::new(query));
                Ok(columns)
            }
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                Err(Error::unsupported("a statement that writes inside a query"))
            }
        }
    }

    fn values(
        &mut self,
        values: &mut ast::Values,
        parent: Option<&Scope<'_>>,
    ) -> Result<Vec<OutputName>, Error> {
        let scope = Scope::empty(parent);
        let width = values.rows.first().map_or(0, |row| row.content.len());
        for row in &mut values.rows {
            if row.content.len() != width {
                let message = "VALUES lists must all be the same length";
                return Err(Error::new(SqlState::SYNTAX_ERROR, message));
            }
            for value in &mut row.content {
                self.expression(value, &scope, Place::Values)?;
            }
        }
        Ok((1..=width).map(|place| OutputName::new(format!("column{place}"))).collect())
    }

    /// WITH: each query may name those before it; after WITH RECURSIVE any other, and itself.
    fn with(&mut self, with: &mut With, parent: Option<&Scope<'_>>) -> Result<(), Error> {
        let first = self.ctes.len();
        if with.recursive {
            recursion::order(&mut with.cte_tables)?;
        }
        for cte in &mut with.cte_tables {
            let name = names::fold(&cte.alias.name);
            if self.ctes[first..].iter().any(|known| known.name == name) {
                let message = format!("WITH query name \"{name}\" specified more than once");
                let error = Error::new(SqlState::DUPLICATE_ALIAS, message);
                return Err(self.locate(error, cte.alias.name.span));
            }
            let internal = self.unlike_queries(&name);
            let columns = match with.recursive {
                true => self.recursive(cte, &name, &internal, parent)?,
                false => self.query(&mut cte.query, parent)?,
            };
            let columns = self.renamed(columns, &cte.alias, &name)?;
            cte.alias = TableAlias { explicit: false, ..internal_alias(&internal) };
            cte.materialized = None;
            self.ctes.push(NamedQuery { name, internal, columns });
        }
        Ok(())
    }

    /// A name that no query of WITH has that can be named here.
    fn unlike_queries(&self, name: &str) -> String {
        let is_free = |name: &String| self.ctes.iter().all(|known| known.internal != *name);
        let numbered = (1..).map(|number| format!("{name}_{number}"));
        let mut free = std::iter::once(name.to_owned()).chain(numbered).filter(is_free);
        free.next().expect("there are more numbers than names")
    }

    /// A query that may name itself: by the columns of its first part.
    fn recursive(
        &mut self,
        cte: &mut Cte,
        name: &str,
        internal: &str,
        parent: Option<&Scope<'_>>,
    ) -> Result<Vec<OutputName>, Error> {
        let Query { with: None, body, order_by: None, limit_clause: None, fetch: None, .. } =
            cte.query.as_mut()
        else {
            recursion::check_form(&cte.query, name)?;
            return self.query(&mut cte.query, parent);
        };
        let SetExpr::SetOperation { left, right, op: SetOperator::Union, .. } = body.as_mut()
        else {
            recursion::check_form(&cte.query, name)?;
            return self.query(&mut cte.query, parent);
        };
        self.check_parts(left, right, name)?;
        let columns = self.body(left, parent)?;
        let itself = self.renamed(columns.clone(), &cte.alias, name)?;
        let (name, internal) = (name.to_owned(), internal.to_owned());
        self.ctes.push(NamedQuery { name, internal, columns: itself });
        let others = self.body(right, parent);
        self.ctes.pop();
        if others?.len() != columns.len() {
            let message = "each UNION query must have the same number of columns";
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        }
        Ok(columns.into_iter().map(|c| OutputName { origin: None, ..c }).collect())
    }

    /// The columns under the names that an alias gives the first of them.
    fn renamed(
        &self,
        mut columns: Vec<OutputName>,
        alias: &TableAlias,
        name: &str,
    ) -> Result<Vec<OutputName>, Error> {
        if alias.columns.len() > columns.len() {
            let message = format!(
                "table \"{name}\" has {} columns available but {} columns specified",
                columns.len(),
                alias.columns.len()
            );
            let error = Error::new(SqlState::INVALID_COLUMN_REFERENCE, message);
            return Err(self.locate(error, alias.name.span));
        }
        for (column, given) in columns.iter_mut().zip(&alias.columns) {
            if given.data_type.is_some() {
                return Err(Error::unsupported("a column definition list"));
            }
            column.name = names::fold(&given.name);
        }
        Ok(columns)
    }

    /// ORDER BY after a set operation: only result columns can be named.
    fn order_of_set(
        &mut self,
        order_by: &mut OrderBy,
        columns: &[OutputName],
        parent: Option<&Scope<'_>>,
    ) -> Result<(), Error> {
        let OrderByKind::Expressions(orders) = &mut order_by.kind else {
            return Err(Error::unsupported("ORDER BY ALL"));
        };
        for order in orders {
            // Equal names are ambiguous here, whatever they stand for.
            let place = self.output_place(&order.expr, columns, "ORDER BY", |_, _| false)?;
            let place = match place {
                Some(place) => place,
                None => {
                    // Says first what else is wrong with the expression.
                    let scope = Scope::of_output(columns, parent);
                    self.expression(&mut order.expr, &scope, Place::OrderBy)?;
                    let message = "invalid UNION/INTERSECT/EXCEPT ORDER BY clause";
                    return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                        .with_detail(
                            "Only result column names can be used, not expressions or functions.",
                        )
                        .with_hint(
                            "Add the expression/function to every SELECT, or move the UNION into \
                             a FROM clause.",
                        ));
                }
            };
            order.expr = number(place + 1);
        }
        Ok(())
    }

    /// The result column that a bare name or a number stands for in ORDER BY, GROUP BY or
    /// DISTINCT ON. A name may be that of several if they are the same.
    fn output_place(
        &self,
        expr: &Expr,
        columns: &[OutputName],
        clause: &str,
        is_same: impl Fn(usize, usize) -> bool,
    ) -> Result<Option<usize>, Error> {
        match expr {
            Expr::Value(value) => match &value.value {
                Value::Number(digits, _) => {
                    let place = digits.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
                    match place.filter(|place| *place < columns.len()) {
                        Some(place) => Ok(Some(place)),
                        None if digits.contains(['.', 'e', 'E']) => {
                            let message = format!("non-integer constant in {clause}");
                            let error = Error::new(SqlState::SYNTAX_ERROR, message);
                            Err(self.locate(error, value.span))
                        }
                        None => {
                            let message =
                                format!("{clause} position {digits} is not in select list");
                            let error = Error::new(SqlState::INVALID_COLUMN_REFERENCE, message);
                            Err(self.locate(error, value.span))
                        }
                    }
                }
                Value::SingleQuotedString(_) | Value::Boolean(_) => {
                    let message = format!("non-integer constant in {clause}");
                    let error = Error::new(SqlState::SYNTAX_ERROR, message);
                    Err(self.locate(error, value.span))
                }
                _ => Ok(None),
            },
            Expr::Identifier(identifier) => {
                let name = names::fold(identifier);
                let mut found = (0..columns.len()).filter(|place| columns[*place].name == name);
                let Some(first) = found.next() else { return Ok(None) };
                if found.any(|other| !is_same(first, other)) {
                    let message = format!("{clause} \"{name}\" is ambiguous");
                    let error = Error::new(SqlState::AMBIGUOUS_COLUMN, message);
                    return Err(self.locate(error, identifier.span));
                }
                Ok(Some(first))
            }
            _ => Ok(None),
        }
    }

    fn limit(&mut self, query: &mut Query, parent: Option<&Scope<'_>>) -> Result<(), Error> {
        if let Some(fetch) = query.fetch.take() {
            if fetch.percent {
                return Err(Error::unsupported("FETCH FIRST ... PERCENT"));
            }
            if fetch.with_ties {
                return self.limit_with_ties(query, fetch, parent);
            }
            let limit = Some(fetch.quantity.unwrap_or_else(|| number(1)));
            match &mut query.limit_clause {
                Some(LimitClause::LimitOffset { limit: given @ None, .. }) => *given = limit,
                None => {
                    query.limit_clause =
                        Some(LimitClause::LimitOffset { limit, offset: None, limit_by: vec![] });
                }
                Some(_) => {
                    let message = "multiple LIMIT clauses not allowed";
                    return Err(Error::new(SqlState::SYNTAX_ERROR, message));
                }
            }
        }
        let scope = Scope::empty(parent);
        match &mut query.limit_clause {
            None => Ok(()),
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
                if let Some(limit) = limit {
                    self.expression(limit, &scope, Place::Limit)?;
                }
                if let Some(Offset { value, rows }) = offset {
                    self.expression(value, &scope, Place::Limit)?;
                    *rows = OffsetRows::None;
                }
                Ok(())
            }
            Some(_) => Err(Error::new(SqlState::SYNTAX_ERROR, "LIMIT #,# syntax is not supported")
                .with_hint("Use separate LIMIT and OFFSET clauses.")),
        }
    }

    /// FETCH FIRST ... WITH TIES stays what it is: no LIMIT says it.
    fn limit_with_ties(
        &mut self,
        query: &mut Query,
        mut fetch: Fetch,
        parent: Option<&Scope<'_>>,
    ) -> Result<(), Error> {
        let refused = |message: &str| Err(Error::new(SqlState::SYNTAX_ERROR, message));
        if query.order_by.is_none() {
            return refused("WITH TIES cannot be specified without ORDER BY clause");
        }
        if let Some(LimitClause::LimitOffset { limit: Some(_), .. }) = &query.limit_clause {
            return refused("multiple LIMIT clauses not allowed");
        }
        let mut quantity = fetch.quantity.take().unwrap_or_else(|| number(1));
        self.expression(&mut quantity, &Scope::empty(parent), Place::Limit)?;
        self.limit(query, parent)?;
        query.fetch = Some(Fetch { quantity: Some(quantity), ..fetch });
        Ok(())
    }
}

/// What a query can't have. Nothing is passed over silently.
fn refuse(query: &Query) -> Result<(), Error> {
    let refused = [
        (!query.locks.is_empty(), "FOR UPDATE or FOR SHARE"),
        (query.for_clause.is_some(), "FOR XML, JSON or BROWSE"),
        (query.settings.is_some(), "SETTINGS"),
        (query.format_clause.is_some(), "FORMAT"),
        (!query.pipe_operators.is_empty(), "a pipe operator"),
    ];
    match refused.into_iter().find(|(present, _)| *present) {
        Some((_, what)) => Err(Error::unsupported(what)),
        None => Ok(()),
    }
}

impl OutputName {
    fn new(name: String) -> Self {
        Self { internal: name.clone(), name, origin: None }
    }
}

/// A place in the select list.
fn number(place: usize) -> Expr {
    Expr::value(Value::Number(place.to_string(), false))
}

fn internal_alias(name: &str) -> TableAlias {
    TableAlias { explicit: true, name: resolved(name), columns: vec![], at: None }
}

/// An identifier that is resolved already. The place of all of them is one where no text is.
fn resolved(name: &str) -> ast::Ident {
    ast::Ident { span: expressions::RESOLVED, ..names::exact(name) }
}
