//! A statement with a WITH that writes. All its parts see one frame, so none sees what another has
//! written, but what that returns.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::new_empty_array;
use datafusion::sql::sqlparser::ast::{self, Cte, SetExpr};

use super::read::{self, Arguments};
use super::{Statement, read::answer_in, returning};
use crate::query::Given;
use crate::session::is_write;
use crate::settings::Settings;
use crate::write::{Proposal, Returned, Write};
use crate::{Error, Frame, OutputColumn, SqlState, Type, names};

/// A statement with a WITH that writes.
#[derive(Debug)]
pub(crate) struct Compound<'a> {
    query: &'a ast::Query,
    settings: &'a Settings,
    arguments: Arguments<'a>,
    /// What the writing queries of WITH have returned, as they were evaluated last.
    returned: Mutex<Vec<Given>>,
}

/// A writing query of a WITH, behind what stands before it.
struct Part {
    name: String,
    /// The query, with that.
    tree: ast::Statement,
}

impl<'a> Compound<'a> {
    /// The statement, if the tree is one.
    pub(crate) fn new(
        tree: &'a ast::Statement,
        settings: &'a Settings,
        arguments: Arguments<'a>,
    ) -> Option<Self> {
        let ast::Statement::Query(query) = tree else { return None };
        let with = query.with.as_ref()?;
        let writes = with.cte_tables.iter().any(|cte| is_write(&cte.query));
        writes.then(|| Self { query, settings, arguments, returned: Mutex::default() })
    }

    /// The command tag without the number of rows.
    pub(crate) fn tag_of_rows(&self) -> &'static str {
        match self.query.body.as_ref() {
            SetExpr::Insert(_) => "INSERT 0",
            SetExpr::Update(_) => "UPDATE",
            SetExpr::Delete(_) => "DELETE",
            SetExpr::Merge(_) => "MERGE",
            _ => "SELECT",
        }
    }

    /// Whether it only reads beside its WITH.
    pub(crate) fn selects(&self) -> bool {
        !matches!(
            self.query.body.as_ref(),
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_)
        )
    }

    /// The name of its kind, as in messages.
    pub(crate) fn command(&self) -> &'static str {
        let with = self.query.with.iter().flat_map(|with| &with.cte_tables);
        let bodies = with.map(|cte| cte.query.body.as_ref()).chain([self.query.body.as_ref()]);
        let mut commands = bodies.filter_map(|body| match body {
            SetExpr::Insert(_) => Some("INSERT"),
            SetExpr::Update(_) => Some("UPDATE"),
            SetExpr::Delete(_) => Some("DELETE"),
            SetExpr::Merge(_) => Some("MERGE"),
            _ => None,
        });
        commands.next().unwrap_or("SELECT")
    }

    /// The types of its parameters, and the columns that it returns if it does.
    pub(crate) fn describe(
        &self,
        frame: &Arc<Frame>,
        declared: &[Option<Type>],
    ) -> Result<(Vec<Type>, Option<Vec<OutputColumn>>), Error> {
        let mut types: Vec<Option<Type>> = declared.to_vec();
        let mut given = vec![];
        for place in 0..self.parts() {
            let Some(part) = self.part(place, &given)? else { continue };
            let statement = self.statement(&part.tree, &given)?;
            let (found, columns) = statement.describe(frame, &types)?;
            types = merged(types, found);
            given.push(none_of(&part.name, &columns.unwrap_or_default())?);
        }
        let tree = self.main(&given)?;
        if !self.selects() {
            let (found, columns) = self.statement(&tree, &given)?.describe(frame, &types)?;
            return Ok((known(merged(types, found)), columns));
        }
        let ast::Statement::Query(query) = &tree else { return Err(Error::unsupported(tree)) };
        let mut found = read::Parameters::new(self.settings, &types);
        let context = crate::query::QueryContext::new(Arc::clone(frame), self.settings.clone());
        let columns = found.plan_in(&context.with_given(given), query)?;
        Ok((found.types(), Some(columns)))
    }

    fn parts(&self) -> usize {
        self.query.with.as_ref().map_or(0, |with| with.cte_tables.len())
    }

    /// The query of WITH at a place, if it writes.
    fn part(&self, place: usize, given: &[Given]) -> Result<Option<Part>, Error> {
        let Some(with) = &self.query.with else { return Ok(None) };
        let Some(cte) = with.cte_tables.get(place).filter(|cte| is_write(&cte.query)) else {
            return Ok(None);
        };
        if with.recursive {
            return Err(Error::unsupported("WITH RECURSIVE of queries that write"));
        }
        let mut query = (*cte.query).clone();
        let before = self.readable(&with.cte_tables[..place], given)?;
        let own = query.with.take().map(|with| with.cte_tables).unwrap_or_default();
        let cte_tables: Vec<_> = before.into_iter().chain(own).collect();
        if !cte_tables.is_empty() {
            query.with = Some(ast::With { cte_tables, ..with.clone() });
        }
        let name = names::fold(&cte.alias.name);
        Ok(Some(Part { name, tree: ast::Statement::Query(Box::new(query)) }))
    }

    /// The statement itself.
    fn main(&self, given: &[Given]) -> Result<ast::Statement, Error> {
        let mut query = self.query.clone();
        if let Some(with) = &self.query.with {
            let cte_tables = self.readable(&with.cte_tables, given)?;
            let with = ast::With { cte_tables, ..with.clone() };
            query.with = Some(with).filter(|with| !with.cte_tables.is_empty());
        }
        Ok(ast::Statement::Query(Box::new(query)))
    }

    /// Queries of WITH, those that write in the form of what they have returned. One that returns
    /// nothing can't be named.
    fn readable(&self, tables: &[Cte], given: &[Given]) -> Result<Vec<Cte>, Error> {
        let mut readable = vec![];
        for cte in tables {
            if !is_write(&cte.query) {
                readable.push(cte.clone());
                continue;
            }
            let name = names::fold(&cte.alias.name);
            let Some(given) = given.iter().find(|given| given.name() == name) else { continue };
            if given.columns().is_empty() {
                continue;
            }
            let columns = given.columns().iter().map(|(column, _)| given.column(column));
            let columns = columns.zip(given.columns()).map(|(expr, (name, _))| {
                ast::SelectItem::ExprWithAlias { expr, alias: names::exact(name) }
            });
            let mut query = read::parse("SELECT 1")?;
            if let SetExpr::Select(select) = query.body.as_mut() {
                select.projection = columns.collect();
                select.from = vec![given.table()];
            }
            readable.push(Cte { query, ..cte.clone() });
        }
        Ok(readable)
    }

    fn statement<'b>(
        &'b self,
        tree: &'b ast::Statement,
        given: &'b [Given],
    ) -> Result<Statement<'b>, Error> {
        let statement = Statement::new(tree, self.settings, self.arguments);
        let statement = statement.ok_or_else(|| {
            let message =
                "WITH clause containing a data-modifying statement must be at the top level";
            Error::new(SqlState::FEATURE_NOT_SUPPORTED, message)
        })?;
        Ok(statement.beside(given))
    }
}

impl Write for Compound<'_> {
    async fn propose(&self, frame: &Arc<Frame>) -> Result<Proposal, Error> {
        let mut proposals = vec![];
        let mut given = vec![];
        for place in 0..self.parts() {
            let Some(part) = self.part(place, &given)? else { continue };
            let returned = {
                let statement = self.statement(&part.tree, &given)?;
                let mut proposal = statement.propose(frame).await?;
                let rows = std::mem::take(&mut proposal.given);
                proposals.push(proposal);
                statement.answer(frame, rows).await?
            };
            given.push(match returned {
                Some(returned) => rows_of(&part.name, returned)?,
                None => none_of(&part.name, &[])?,
            });
        }
        let mut rows = 0;
        let mut answered = vec![];
        if !self.selects() {
            let tree = self.main(&given)?;
            let mut proposal = self.statement(&tree, &given)?.propose(frame).await?;
            rows = proposal.rows;
            answered = std::mem::take(&mut proposal.given);
            proposals.push(proposal);
        }
        *self.returned.lock().unwrap_or_else(PoisonError::into_inner) = given;
        let mut whole = Proposal::together(proposals)?;
        whole.rows = rows;
        Ok(whole.giving(answered))
    }

    fn settings(&self) -> &Settings {
        self.settings
    }

    async fn answer(
        &self,
        frame: &Arc<Frame>,
        given: Vec<Given>,
    ) -> Result<Option<Returned>, Error> {
        let returned = self.returned.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let tree = self.main(&returned)?;
        if !self.selects() {
            return self.statement(&tree, &returned)?.answer(frame, given).await;
        }
        let ast::Statement::Query(query) = &tree else { return Err(Error::unsupported(tree)) };
        let context = crate::query::QueryContext::new(Arc::clone(frame), self.settings.clone());
        let context = context.with_given(returned);
        let reading = Statement::reading(self.settings, self.arguments);
        let (columns, answer) = answer_in(&reading, &context, query).await?;
        let batch = returning::batch(&columns, answer)?;
        Ok(Some(Returned { columns, batch }))
    }
}

/// What a query of WITH has returned, under its name.
fn rows_of(name: &str, returned: Returned) -> Result<Given, Error> {
    let columns = returned.columns.into_iter().map(|column| (column.name, column.kind));
    let columns: Vec<_> = columns.collect();
    unique(&columns)?;
    let rows = returned.batch.num_rows();
    Given::new(name, None, columns, returned.batch.columns().to_vec(), rows)
}

/// The same without rows.
fn none_of(name: &str, columns: &[OutputColumn]) -> Result<Given, Error> {
    let columns = columns.iter().map(|column| (column.name.clone(), column.kind.clone()));
    let columns: Vec<_> = columns.collect();
    unique(&columns)?;
    let arrays = columns.iter().map(|(_, kind)| new_empty_array(&kind.arrow())).collect();
    Given::new(name, None, columns, arrays, 0)
}

fn unique(columns: &[(String, Type)]) -> Result<(), Error> {
    let mut seen = HashSet::new();
    match columns.iter().find(|(name, _)| !seen.insert(name)) {
        None => Ok(()),
        Some((name, _)) => Err(Error::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("RETURNING in a WITH has two columns \"{name}\""),
        )
        .with_hint("Give them names of their own.")),
    }
}

fn merged(declared: Vec<Option<Type>>, found: Vec<Type>) -> Vec<Option<Type>> {
    let length = declared.len().max(found.len());
    let mut merged = declared;
    merged.resize(length, None);
    for (known, found) in merged.iter_mut().zip(found) {
        if known.is_none() && found != Type::Unknown {
            *known = Some(found);
        }
    }
    merged
}

fn known(types: Vec<Option<Type>>) -> Vec<Type> {
    types.into_iter().map(|kind| kind.unwrap_or(Type::Unknown)).collect()
}
