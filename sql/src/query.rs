//! Plans and runs what reads: a query under one frame.
//!
//! [`QueryContext`] is the seam for everything in this crate that evaluates SQL expressions or
//! queries: whoever writes plans the affected rows as a query here.

mod apply;
mod failure;
mod given;
mod kept;
mod overlaid;
mod parameters;
mod provider;
mod state;
mod threads;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::catalog::Session as _;
use datafusion::common::ScalarValue;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::planner::{PlannerContext, SqlToRel};
use datafusion::sql::sqlparser::ast;
use futures::stream::BoxStream;
use stillframe_protocol::RelationId;

pub(crate) use apply::{Apply, Kind, with_applies};
pub(crate) use failure::classify;
pub(crate) use given::Given;
use kept::Way;
pub(crate) use kept::{Plans, Ready};
use state::Running;
pub(crate) use state::{BATCH_ROWS, frame_of, session_state};
use threads::Operators;

use crate::parser::{self, Source, Statement, Tree};
use crate::resolve::{self, resolve};
use crate::settings::Settings;
use crate::{Catalog, Error, Frame, OutputColumn, Relation, SqlState, Type, functions, names};

/// What a statement is planned and run in: one frame and the session's settings.
#[derive(Clone, Debug)]
pub(crate) struct QueryContext {
    pub(crate) frame: Arc<Frame>,
    /// The relations that names mean: the frame's, but for a statement that changes the catalog.
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) settings: Settings,
    /// Made when something is planned: what is kept is run without it.
    state: Arc<OnceLock<SessionState>>,
    /// The text that the statement comes from, if its errors are to tell places in it.
    pub(crate) source: Option<Arc<Source>>,
    /// Rows that can be named beside relations.
    given: Arc<[Given]>,
    /// What queries are planned for.
    pub(crate) purpose: Purpose,
    /// What the statement has planned before; none if it isn't one to be run again.
    plans: Option<Plans>,
}

/// What a query is planned for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To be run by DataFusion.
    Run,
    /// To be compiled: what DataFusion would get wrong is left as it is written.
    Compile,
}

/// A query that can be run under the frame it was planned under.
#[derive(Clone, Debug)]
pub(crate) struct PlannedQuery {
    pub(crate) plan: LogicalPlan,
    /// The columns that come out, as PostgreSQL names them.
    pub(crate) columns: Vec<OutputColumn>,
    /// By number from `$1`; what nothing settles is `Unknown`.
    pub(crate) parameters: Vec<Type>,
    /// The query with every name qualified.
    pub(crate) text: String,
    /// The relations that it names.
    pub(crate) reads: BTreeSet<RelationId>,
}

impl QueryContext {
    /// A context for one statement.
    pub(crate) fn new(frame: Arc<Frame>, settings: Settings) -> Self {
        let catalog = Arc::clone(frame.catalog());
        Self {
            frame,
            catalog,
            settings,
            state: Arc::default(),
            source: None,
            given: Arc::new([]),
            purpose: Purpose::Run,
            plans: None,
        }
    }

    /// DataFusion's session for it.
    pub(crate) fn state(&self) -> &SessionState {
        self.state.get_or_init(|| session_state(&self.frame, &self.settings))
    }

    /// The same context for a statement that has planned before.
    pub(crate) fn keeping(self, plans: &Plans) -> Self {
        Self { plans: Some(plans.clone()), ..self }
    }

    /// A context for a definition, which is made from the newest catalog and reads nothing.
    pub(crate) fn of_catalog(
        frame: Arc<Frame>,
        catalog: Arc<Catalog>,
        settings: &Settings,
    ) -> Self {
        Self { catalog, ..Self::new(frame, settings.clone()) }
    }

    /// The same context for a query that is to be compiled.
    pub(crate) fn for_view(&self) -> Self {
        Self { purpose: Purpose::Compile, ..self.clone() }
    }

    /// Plans a query. `parameters` are the types that the client has declared.
    pub(crate) fn plan(
        &self,
        query: &ast::Query,
        parameters: &[Option<Type>],
    ) -> Result<PlannedQuery, Error> {
        let resolved = resolve(self, query)?;
        let (plan, parameters) = self.plan_parameters(&resolved.query, parameters)?;
        let columns = plan.schema().fields().iter().zip(&resolved.columns).map(|(field, name)| {
            let kind = Type::of(field).ok_or_else(|| unknown_type(field))?;
            let origin = name.origin.map(|(relation, place)| (relation.0, place));
            Ok(OutputColumn { name: name.name.clone(), kind, origin })
        });
        let columns = columns.collect::<Result<_, Error>>()?;
        let text = resolved.query.to_string();
        Ok(PlannedQuery { plan, columns, parameters, text, reads: resolved.reads })
    }

    /// Plans a query whose names are resolved, and settles the types of its parameters.
    fn plan_parameters(
        &self,
        query: &ast::Query,
        declared: &[Option<Type>],
    ) -> Result<(LogicalPlan, Vec<Type>), Error> {
        let used = parameters::used(query)?;
        let Some(count) = used.last().copied() else {
            return Ok((self.plan_resolved(query, &[])?, vec![]));
        };
        let mut types: Vec<_> = declared.iter().take(count).cloned().collect();
        types.resize(count, None);
        let mut plan = self.plan_resolved(query, &types)?;
        if types.iter().any(Option::is_none) {
            parameters::infer(&plan, &used, &mut types)?;
            plan = self.plan_resolved(query, &types)?;
        }
        let types = types.into_iter().map(|kind| kind.unwrap_or(Type::Unknown)).collect();
        Ok((plan, types))
    }

    /// Plans the query that a view stores.
    fn plan_view(&self, view: &Relation, text: &str) -> Result<LogicalPlan, Error> {
        self.plan_stored(view, text, |_| Ok(()))
    }

    /// Plans the query of a materialized view, over what the transaction has changed itself.
    fn plan_changed_view(&self, view: &Relation, text: &str) -> Result<LogicalPlan, Error> {
        self.plan_stored(view, text, |query| overlaid::check(view, query))
    }

    fn plan_stored(
        &self,
        view: &Relation,
        text: &str,
        check: impl Fn(&ast::Query) -> Result<(), Error>,
    ) -> Result<LogicalPlan, Error> {
        let broken = || Error::internal(format!("the stored query of {} is broken", view.name));
        let mut statements = parser::parse(text).map_err(|_| broken())?;
        let Some(Statement { tree: Tree::Sql(tree), .. }) = statements.pop() else {
            return Err(broken());
        };
        let ast::Statement::Query(query) = tree.as_ref() else { return Err(broken()) };
        check(query)?;
        let plan = self.plan_resolved(query, &[])?;
        let columns = plan.schema().columns().into_iter().zip(&view.columns);
        let columns = columns.map(|(found, column)| Expr::Column(found).alias(column.name.clone()));
        let columns: Vec<_> = columns.collect();
        LogicalPlanBuilder::from(plan)
            .project(columns)
            .and_then(|plan| plan.build())
            .map_err(classify)
    }

    /// Plans a query whose names are resolved.
    fn plan_resolved(
        &self,
        query: &ast::Query,
        parameters: &[Option<Type>],
    ) -> Result<LogicalPlan, Error> {
        let provider = provider::FrameProvider { context: self };
        // A parameter of no type is what a literal of no type is: `Coercion` settles it.
        let declared = parameters.iter().map(|kind| kind.as_ref().unwrap_or(&Type::Unknown));
        let declared = declared.map(|kind| Some(Arc::new(kind.field("", true))));
        let mut planner = PlannerContext::new().with_prepare_param_data_types(declared.collect());
        let mut statement = ast::Statement::Query(Box::new(query.clone()));
        functions::rewrite(&mut statement)?;
        let plan = SqlToRel::new(&provider)
            .sql_statement_to_plan_with_context(statement, &mut planner)
            .map_err(classify)?;
        functions::analyze(self.state(), plan, self.purpose).map_err(classify)
    }

    /// Whether a function of this name computes one value of many rows.
    pub(crate) fn is_aggregate(&self, name: &str) -> bool {
        self.state().aggregate_functions().contains_key(name)
    }

    /// Whether a function of this name may differ from call to call.
    pub(crate) fn is_volatile(&self, name: &str) -> bool {
        let function = self.state().scalar_functions().get(name);
        function.is_some_and(|f| {
            f.signature().volatility == datafusion::logical_expr::Volatility::Volatile
        })
    }

    /// Whether a function of this name depends on its arguments alone.
    pub(crate) fn is_immutable(&self, name: &str) -> bool {
        let function = self.state().scalar_functions().get(name);
        function.is_none_or(|f| {
            f.signature().volatility == datafusion::logical_expr::Volatility::Immutable
        })
    }

    /// Whether there is a function of this name.
    pub(crate) fn has_function(&self, name: &str) -> bool {
        self.is_aggregate(name)
            || self.state().scalar_functions().contains_key(name)
            || self.state().window_functions().contains_key(name)
            || self.state().higher_order_functions().contains_key(name)
            || SYNTAX.contains(&name)
            || functions::is_spelling(name)
            || functions::set_returning::columns(name).is_some()
    }

    /// The columns that a function in FROM returns.
    pub(crate) fn function_schema(
        &self,
        name: &str,
        arguments: &[ast::FunctionArg],
    ) -> Result<SchemaRef, Error> {
        let mut query = select_from_function(name, arguments);
        functions::rewrite(&mut query)?;
        let provider = provider::FrameProvider { context: self };
        let statement = ast::Statement::Query(Box::new(query));
        let plan = SqlToRel::new(&provider).sql_statement_to_plan(statement).map_err(classify)?;
        Ok(Arc::new(plan.schema().as_arrow().clone()))
    }

    /// Runs a plan. To drop the stream stops it.
    pub(crate) async fn run(
        &self,
        plan: &LogicalPlan,
    ) -> Result<BoxStream<'static, Result<RecordBatch, Error>>, Error> {
        Ok(self.stream(&self.physical(plan).await?))
    }

    /// Runs a query with the values of its parameters. To drop the stream stops it.
    pub(crate) async fn run_ready(
        &self,
        ready: &Ready,
        values: Vec<ScalarValue>,
    ) -> Result<BoxStream<'static, Result<RecordBatch, Error>>, Error> {
        let plan = ready.bind(values)?;
        if ready.way == Way::Optimize {
            return self.run(&plan).await;
        }
        let running = Running::new(&self.frame, &self.settings, ready.way == Way::Plain);
        let plan = apply::operators(&running, &plan).await.map_err(classify)?;
        let kept = Arc::clone(&self.frame);
        if let Some(rows) = threads::compute_here(&plan, &running.task_ctx(), kept) {
            return Ok(rows);
        }
        let operators = Operators::new(plan).map_err(classify)?;
        Ok(operators.compute(running.task_ctx(), Arc::clone(&self.frame)))
    }

    /// The plan as it would be run, before it is cut into DataFusion's operators.
    pub(crate) fn optimize(&self, plan: &LogicalPlan) -> Result<LogicalPlan, Error> {
        apply::optimize(self.state(), plan).map_err(classify)
    }

    /// The operators that run a plan, once.
    pub(crate) async fn physical(&self, plan: &LogicalPlan) -> Result<Operators, Error> {
        let plan = apply::physical(self.state(), plan).await.map_err(classify)?;
        Operators::new(plan).map_err(classify)
    }

    /// Starts operators. The frame lives as long as they run.
    pub(crate) fn stream(
        &self,
        operators: &Operators,
    ) -> BoxStream<'static, Result<RecordBatch, Error>> {
        operators.compute(self.state().task_ctx(), Arc::clone(&self.frame))
    }

    /// The relation that a name means.
    pub(crate) fn relation(&self, name: &ast::ObjectName) -> Result<&Relation, Error> {
        let (schema, relation) = names::relation(name)?;
        let schemas = match schema {
            Some(schema) => vec![schema],
            None => self.settings.search_path(),
        };
        let found = schemas.iter().find_map(|schema| self.catalog.find(schema, &relation));
        found.ok_or_else(|| {
            let message = format!("relation \"{}\" does not exist", names::unquoted(name));
            Error::new(SqlState::UNDEFINED_TABLE, message)
        })
    }
}

/// Functions that the planner knows by their names alone.
const SYNTAX: &[&str] = &["array", "grouping", "unnest", "coalesce", "nullif"];

/// SELECT * FROM a function.
fn select_from_function(name: &str, arguments: &[ast::FunctionArg]) -> ast::Query {
    let mut query = resolve::select_all();
    if let ast::SetExpr::Select(select) = query.body.as_mut()
        && let Some(ast::TableWithJoins {
            relation: ast::TableFactor::Table { name: table, args, .. },
            ..
        }) = select.from.first_mut()
    {
        *table = ast::ObjectName::from(vec![names::exact(name)]);
        *args = Some(ast::TableFunctionArgs { args: arguments.to_vec(), settings: None });
    }
    query
}

fn unknown_type(field: &arrow::datatypes::Field) -> Error {
    let message = format!("values of type {} are not supported", field.data_type());
    Error::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}
