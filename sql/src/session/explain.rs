//! EXPLAIN: how a query would be run, and how a materialized view is kept.

use std::collections::BTreeSet;

use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::physical_plan::displayable;
use datafusion::sql::sqlparser::ast;
use futures::TryStreamExt;
use stillframe_protocol::{Plan, RelationId};

use super::{OutputColumn, Response, Rows, Session};
use crate::parser::{Explain, ExplainSubject, Tree, Utility};
use crate::query::{PlannedQuery, QueryContext};
use crate::{Error, RelationKind, SqlState, Type, names, view};

/// The one column of the answer.
pub(super) fn columns() -> Vec<OutputColumn> {
    vec![OutputColumn::new("QUERY PLAN", Type::Text)]
}

impl Session {
    pub(super) async fn explain(&mut self, explain: &Explain) -> Result<Response, Error> {
        let context = self.context().await?;
        let lines = match &explain.subject {
            ExplainSubject::MaterializedView(name) => {
                let relation = context.relation(name)?;
                let RelationKind::MaterializedView { plan, .. } = &relation.kind else {
                    let message = format!("\"{}\" is not a materialized view", relation.name);
                    return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
                };
                self.operators(&context, plan)?
            }
            ExplainSubject::Statement(tree) => match tree.as_ref() {
                Tree::Sql(statement) => match statement.as_ref() {
                    ast::Statement::Query(query) => {
                        self.explain_query(&context, query, explain).await?
                    }
                    _ => return Err(Error::unsupported("EXPLAIN of this statement")),
                },
                Tree::Utility(Utility::CreateMaterializedView { create, .. }) => {
                    let (_, plan) = view::compile(&context, &create.query)?;
                    self.operators(&context, &plan)?
                }
                Tree::Utility(_) => return Err(Error::unsupported("EXPLAIN of this statement")),
            },
        };
        let rows = lines.into_iter().map(|line| vec![line]).collect();
        Ok(Response::Rows(Rows::of_text(columns(), rows, "EXPLAIN")))
    }

    async fn explain_query(
        &self,
        context: &QueryContext,
        query: &ast::Query,
        explain: &Explain,
    ) -> Result<Vec<String>, Error> {
        let planned = context.plan(query, &[])?;
        let mut lines = vec![];
        if explain.verbose {
            let logical = context.optimize(&planned.plan)?;
            lines.extend(logical.display_indent().to_string().lines().map(str::to_owned));
            lines.push(String::new());
        }
        let operators = context.physical(&planned.plan).await?;
        let physical = operators.plan();
        let text = if explain.analyze {
            let mut rows = context.stream(&operators);
            while rows.try_next().await?.is_some() {}
            DisplayableExecutionPlan::with_metrics(physical.as_ref()).indent(false).to_string()
        } else {
            displayable(physical.as_ref()).indent(false).to_string()
        };
        lines.extend(text.lines().map(str::to_owned));
        lines.extend(self.explain_views(context, &planned)?);
        Ok(lines)
    }

    /// How the materialized views are kept that a query reads, also through plain views.
    fn explain_views(
        &self,
        context: &QueryContext,
        planned: &PlannedQuery,
    ) -> Result<Vec<String>, Error> {
        let mut views = BTreeSet::new();
        maintained(context, &planned.reads, &mut views);
        let mut lines = vec![];
        for id in views {
            let relation = &context.catalog.relations[&id];
            if let RelationKind::MaterializedView { plan, .. } = &relation.kind {
                let (schema, name) = (names::quote(&relation.schema), names::quote(&relation.name));
                lines.push(String::new());
                lines.push(format!("Materialized view {schema}.{name}"));
                let operators = self.operators(context, plan)?;
                lines.extend(operators.into_iter().map(|line| format!("  {line}")));
            }
        }
        Ok(lines)
    }

    fn operators(&self, context: &QueryContext, plan: &Plan) -> Result<Vec<String>, Error> {
        self.database.explain(plan, &context.catalog.program())
    }
}

fn maintained(
    context: &QueryContext,
    reads: &BTreeSet<RelationId>,
    views: &mut BTreeSet<RelationId>,
) {
    for id in reads {
        match context.catalog.relations.get(id).map(|relation| &relation.kind) {
            Some(RelationKind::MaterializedView { .. }) => {
                views.insert(*id);
            }
            Some(RelationKind::View { reads, .. }) => maintained(context, reads, views),
            Some(RelationKind::Table { .. }) | None => {}
        }
    }
}
