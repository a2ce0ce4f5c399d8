//! The queries that writing statements are made of.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::{ArrayRef, new_empty_array};
use arrow::compute::concat;
use arrow::record_batch::RecordBatch;
use datafusion::common::ScalarValue;
use datafusion::sql::sqlparser::ast::{
    Expr, Query, SelectItem, SetExpr, Statement, TableWithJoins, Value, ValueWithSpan, Visit,
    Visitor,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use futures::TryStreamExt;

use crate::query::{Given, QueryContext, classify};
use crate::session::Parameter;
use crate::settings::Settings;
use crate::text::{Excess, TextDecoder, TextFormat};
use crate::{Error, Frame, OutputColumn, Type, names};

/// The parameters of a statement, with the types they were given or found to have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arguments<'a> {
    pub(crate) values: &'a [Parameter],
    pub(crate) types: &'a [Type],
}

impl<'a> Arguments<'a> {
    /// The value and type of `$1`, `$2`, ...
    pub(super) fn get(&self, name: &str) -> Option<(&'a Parameter, &'a Type)> {
        let place = number(name)?.checked_sub(1)?;
        Some((self.values.get(place)?, self.types.get(place)?))
    }

    /// The types, for the planner.
    pub(super) fn declared(&self) -> Vec<Option<Type>> {
        let known = |kind: &Type| (*kind != Type::Unknown).then(|| kind.clone());
        self.types.iter().map(known).collect()
    }

    /// The values, for a plan.
    pub(crate) fn scalars(&self, format: &TextFormat) -> Result<Vec<ScalarValue>, Error> {
        let values = self.values.iter().zip(self.types).map(|(value, kind)| {
            let mut decoder = TextDecoder::new(kind, format, Excess::Refuse)?;
            match value {
                Parameter::Null => decoder.append_null(),
                Parameter::Text(text) => decoder.append(text)?,
            }
            ScalarValue::try_from_array(&decoder.finish(), 0).map_err(classify)
        });
        values.collect()
    }
}

/// Whether an expression has parameters.
pub(super) fn has_parameters(expr: &Expr) -> bool {
    struct Finder;
    impl Visitor for Finder {
        type Break = ();

        fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<()> {
            match value.value {
                Value::Placeholder(_) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    expr.visit(&mut Finder).is_break()
}

/// The number of a parameter's name.
pub(super) fn number(name: &str) -> Option<usize> {
    name.strip_prefix('$')?.parse().ok()
}

/// The answer of a query, by column.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) columns: Vec<(Type, ArrayRef)>,
    pub(super) rows: usize,
}

/// Runs a query under a frame and collects its answer.
pub(super) async fn answer(
    statement: &super::Statement<'_>,
    frame: &Arc<Frame>,
    query: &Query,
) -> Result<Answer, Error> {
    Ok(answer_in(statement, &statement.context(frame), query).await?.1)
}

/// Runs a query where given rows can be named, too; returns its columns and their values.
pub(super) async fn answer_in(
    statement: &super::Statement<'_>,
    context: &QueryContext,
    query: &Query,
) -> Result<(Vec<OutputColumn>, Answer), Error> {
    let query = statement.with(query.clone());
    let ready = context.ready(&query, &statement.arguments.declared())?;
    let planned = &ready.planned;
    let values = statement.arguments.scalars(&statement.settings.text_format())?;
    let batches: Vec<RecordBatch> = context.run_ready(&ready, values).await?.try_collect().await?;
    let rows = batches.iter().map(RecordBatch::num_rows).sum();
    let columns = planned.columns.iter().enumerate().map(|(place, column)| {
        let arrays: Vec<_> = batches.iter().map(|batch| batch.column(place).as_ref()).collect();
        let array = match arrays.is_empty() {
            true => new_empty_array(&column.kind.arrow()),
            false => concat(&arrays).map_err(|error| Error::internal(error.to_string()))?,
        };
        Ok((column.kind.clone(), array))
    });
    let columns = columns.collect::<Result<_, Error>>()?;
    Ok((planned.columns.clone(), Answer { columns, rows }))
}

/// The types of a statement's parameters, as they are found.
#[derive(Debug)]
pub(super) struct Parameters<'a> {
    settings: &'a Settings,
    found: Vec<Type>,
    /// What else can be named.
    beside: &'a [Given],
}

impl<'a> Parameters<'a> {
    pub(super) fn new(settings: &'a Settings, declared: &[Option<Type>]) -> Self {
        let found = declared.iter().map(|kind| kind.clone().unwrap_or(Type::Unknown)).collect();
        Self { settings, found, beside: &[] }
    }

    /// The same, where what queries of a WITH have returned can be named.
    pub(super) fn beside(self, beside: &'a [Given]) -> Self {
        Self { beside, ..self }
    }

    /// Learns that an expression goes into a column; false if it isn't just a parameter.
    pub(super) fn assigned(&mut self, expr: &Expr, kind: &Type) -> bool {
        let Expr::Value(value) = expr else { return false };
        let Value::Placeholder(name) = &value.value else { return false };
        let Some(number) = number(name) else { return false };
        self.settle(number, kind);
        true
    }

    /// Learns what a query makes of its parameters; returns how many columns it has.
    pub(super) fn plan(&mut self, frame: &Arc<Frame>, query: &Query) -> Result<usize, Error> {
        let context = QueryContext::new(Arc::clone(frame), self.settings.clone());
        let context = context.with_given(self.beside.to_vec());
        Ok(self.plan_in(&context, query)?.len())
    }

    /// The same where given rows can be named, too; returns the columns.
    pub(super) fn plan_in(
        &mut self,
        context: &QueryContext,
        query: &Query,
    ) -> Result<Vec<OutputColumn>, Error> {
        let known = |kind: &Type| (*kind != Type::Unknown).then(|| kind.clone());
        let known: Vec<_> = self.found.iter().map(known).collect();
        let planned = context.plan(query, &known)?;
        for (place, kind) in planned.parameters.iter().enumerate() {
            self.settle(place + 1, kind);
        }
        Ok(planned.columns)
    }

    /// By number from `$1`.
    pub(super) fn types(self) -> Vec<Type> {
        self.found
    }

    fn settle(&mut self, number: usize, kind: &Type) {
        if number > self.found.len() {
            self.found.resize(number, Type::Unknown);
        }
        if let Some(found) = number.checked_sub(1).and_then(|place| self.found.get_mut(place))
            && *found == Type::Unknown
        {
            *found = kind.clone();
        }
    }
}

/// A SELECT of expressions, each under a name of its own.
pub(super) fn select(
    expressions: impl IntoIterator<Item = Expr>,
    from: Vec<TableWithJoins>,
    selection: Option<Expr>,
) -> Result<Query, Error> {
    let mut query = parse("SELECT 1")?;
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(Error::internal("SELECT is not a SELECT"));
    };
    let named = expressions.into_iter().enumerate().map(|(place, expr)| {
        SelectItem::ExprWithAlias { expr, alias: names::exact(&format!("c{place}")) }
    });
    select.projection = named.collect();
    select.from = from;
    select.selection = selection;
    Ok(*query)
}

/// A query that we have written ourselves.
pub(super) fn parse(text: &str) -> Result<Box<Query>, Error> {
    let parsed = Parser::parse_sql(&PostgreSqlDialect {}, text);
    match parsed.map(|mut statements| statements.pop()) {
        Ok(Some(Statement::Query(query))) => Ok(query),
        other => Err(Error::internal(format!("not a query: {text}: {other:?}"))),
    }
}
