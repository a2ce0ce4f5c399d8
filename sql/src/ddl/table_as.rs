//! CREATE TABLE AS: a table with the columns of a query, and then its rows.

use datafusion::sql::sqlparser::ast::{self, CreateTable, Query};
use stillframe_protocol::RelationId;

use super::constraint::is_relation_name;
use super::{Definer, Edit, Plan, already_exists, skipped, table, target};
use crate::dml::{Arguments, Statement};
use crate::parser::{self, Tree};
use crate::query::QueryContext;
use crate::session::Notice;
use crate::{Column, Error, Relation, RelationKind, SqlState, Type, names};

impl Definer<'_> {
    /// Makes the table and puts the query's rows into it; returns the tag.
    pub(super) async fn create_table_as(
        &mut self,
        create: &CreateTable,
        query: &Query,
        with_data: bool,
    ) -> Result<(String, Vec<Notice>), Error> {
        let plan: Plan<'_> = Box::new(move |context| of_query(context, create, query));
        let before = self.transaction.overlay().clone();
        let notices = self.change(&plan).await?;
        let is_made = !self.transaction.overlay().has_catalog_of(&before);
        if !with_data || !is_made {
            return Ok(("CREATE TABLE AS".to_owned(), notices));
        }
        let draft = self.transaction.overlay().draft();
        let catalog = draft.map(|draft| &draft.catalog);
        let catalog = catalog.ok_or_else(|| Error::internal("a table was made in no catalog"))?;
        let (schema, name) = target(catalog, self.settings, &create.name)?;
        let mut insert = insert_into(&schema, &name)?;
        if let ast::Statement::Insert(insert) = &mut insert {
            insert.source = Some(Box::new(query.clone()));
        }
        let arguments = Arguments { values: &[], types: &[] };
        let statement = Statement::new(&insert, self.settings, arguments);
        let statement = statement.ok_or_else(|| Error::internal("an INSERT that is none"))?;
        let outcome = self.transaction.run(&statement).await?;
        Ok((format!("SELECT {}", outcome.rows), notices))
    }
}

/// An INSERT into a table, with some query.
fn insert_into(schema: &str, name: &str) -> Result<ast::Statement, Error> {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let text = format!("INSERT INTO {}.{} SELECT 1", quoted(schema), quoted(name));
    match parser::parse(&text)?.pop() {
        Some(parser::Statement { tree: Tree::Sql(tree), .. }) => Ok(*tree),
        _ => Err(Error::internal("an INSERT that is none")),
    }
}

/// Adds the table.
fn of_query(context: &QueryContext, create: &CreateTable, query: &Query) -> Result<Edit, Error> {
    table::refuse(create)?;
    let (schema, name) = target(&context.catalog, &context.settings, &create.name)?;
    if is_relation_name(&context.catalog, &schema, &name) {
        return match create.if_not_exists {
            true => Ok(Edit::Nothing(skipped(&name))),
            false => Err(already_exists(&name)),
        };
    }
    let planned = context.plan(query, &[])?;
    if !planned.parameters.is_empty() {
        return Err(Error::new(SqlState::UNDEFINED_PARAMETER, "there is no parameter $1"));
    }
    if create.columns.len() > planned.columns.len() {
        let message = "too many column names were specified";
        return Err(Error::new(SqlState::SYNTAX_ERROR, message));
    }
    let mut given = create.columns.iter().map(|column| names::fold(&column.name));
    let mut columns: Vec<Column> = vec![];
    for column in &planned.columns {
        let name = given.next().unwrap_or_else(|| column.name.clone());
        if columns.iter().any(|column| column.name == name) {
            let message = format!("column \"{name}\" specified more than once");
            return Err(Error::new(SqlState::DUPLICATE_COLUMN, message));
        }
        let kind = match &column.kind {
            Type::Unknown => Type::Text,
            kind => kind.clone(),
        };
        columns.push(Column::new(name, kind));
    }
    if columns.is_empty() {
        return Err(Error::unsupported("a table without columns"));
    }
    let mut catalog = (*context.catalog).clone();
    let id = RelationId(catalog.allocate());
    let relation = Relation {
        id,
        schema,
        name,
        columns,
        kind: RelationKind::Table { key: vec![] },
        storage: None,
        constraints: vec![],
        comment: None,
    };
    catalog.relations.insert(id, relation);
    Ok(Edit::changed(catalog))
}
