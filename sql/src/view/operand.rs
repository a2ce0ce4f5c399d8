//! Operands of what is computed of partitions: columns of a projection below, and constants.

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::{Expr, ExprSchemable};
use std::sync::Arc;
use stillframe_protocol::{Expression, Literal, Plan, SortKey};

use super::build;
use crate::Error;
use crate::expression::{convert, literal};

/// The columns of a projection that is being made, each once.
#[derive(Default)]
pub(super) struct Columns {
    columns: Vec<(Expression, DataType)>,
}

impl Columns {
    /// All columns of a plan, in order.
    pub(super) fn all(plan: &Plan) -> Self {
        let schema = plan.schema();
        let fields = schema.fields().iter().enumerate();
        let columns =
            fields.map(|(place, field)| (Expression::Column(place), field.data_type().clone()));
        Self { columns: columns.collect() }
    }

    pub(super) fn place(&mut self, expression: Expression, data_type: DataType) -> usize {
        let column = (expression, data_type);
        match self.columns.iter().position(|known| *known == column) {
            Some(place) => place,
            None => {
                self.columns.push(column);
                self.columns.len() - 1
            }
        }
    }

    /// The column that has the value of an expression over `below`, in the type that stores it;
    /// and the type it has in the query.
    pub(super) fn value(
        &mut self,
        expr: &Expr,
        below: &DFSchema,
    ) -> Result<(usize, DataType), Error> {
        let found = expr.get_type(below).map_err(crate::query::classify)?;
        let stored = build::stored_type(&found)?;
        let expression = build::cast(convert(expr, below)?, &found, &stored);
        Ok((self.place(expression, stored), found))
    }

    /// An argument: a constant, or a column in the type that the function takes.
    pub(super) fn operand(&mut self, expr: &Expr, below: &DFSchema) -> Result<Expression, Error> {
        let mut expr = expr;
        while let Expr::Alias(alias) = expr {
            expr = &alias.expr;
        }
        if let Expr::Literal(value, _) = expr {
            return Ok(Expression::Literal(literal(value)?));
        }
        let (place, found) = self.value(expr, below)?;
        let stored = build::stored_type(&found)?;
        Ok(build::cast(Expression::Column(place), &stored, &found))
    }

    /// All of a function's arguments.
    pub(super) fn operands(
        &mut self,
        exprs: &[Expr],
        below: &DFSchema,
    ) -> Result<Vec<Expression>, Error> {
        exprs.iter().map(|expr| self.operand(expr, below)).collect()
    }

    /// The condition of a FILTER.
    pub(super) fn filter(
        &mut self,
        filter: Option<&Expr>,
        below: &DFSchema,
    ) -> Result<Option<Expression>, Error> {
        filter.map(|filter| self.operand(filter, below)).transpose()
    }

    /// An ORDER BY.
    pub(super) fn order(
        &mut self,
        order: &[Sort],
        below: &DFSchema,
    ) -> Result<Vec<SortKey>, Error> {
        let key = |sort: &Sort| {
            let (column, _) = self.value(&sort.expr, below)?;
            Ok(SortKey { column, descending: !sort.asc, nulls_first: sort.nulls_first })
        };
        order.iter().map(key).collect()
    }

    /// The projection. It has a column even where nothing is read.
    pub(super) fn over(mut self, input: Arc<Plan>) -> Arc<Plan> {
        if self.columns.is_empty() {
            let null = Expression::Literal(Literal::Null(DataType::Boolean));
            self.place(null, DataType::Boolean);
        }
        let columns = self
            .columns
            .into_iter()
            .map(|(expression, data_type)| build::Column::new("c", expression, data_type));
        build::project(input, columns.collect())
    }
}
