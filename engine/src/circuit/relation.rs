//! What is to be done with each row of a stream, before it is known who wants the result.
//!
//! Filters and projections aren't operators of their own: they wait until a join, an aggregate or a
//! view reads them, and are then evaluated together with what that reader needs. No stream lies
//! between.

use arrow::datatypes::{DataType, Field, Schema};
use stillframe_protocol::{BinaryOperator, Expression, Fingerprint, Plan};

use super::source::{Placement, Source};
use crate::EngineError;

/// Rows of a stream and steps that turn each into at most one row of a plan.
///
/// Values live in registers: first the stored fields of the source, then one for each
/// [`Step::Compute`].
#[derive(Clone)]
pub(crate) struct Relation {
    /// Of the plan.
    pub(crate) fingerprint: Fingerprint,
    /// Where rows come from.
    pub(crate) source: Source,
    /// What is done with each, in order.
    pub(crate) steps: Vec<Step>,
    /// The types of all registers.
    pub(crate) types: Vec<DataType>,
    /// The register of each of the plan's columns.
    pub(crate) columns: Vec<usize>,
}

/// A step of a [`Relation`]; its expression's columns are registers.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Goes on with the rows for which the expression is true.
    Filter(Expression),
    /// Makes the next register.
    Compute(Expression),
}

impl Relation {
    /// The rows of a source as they are; `columns` are the fields that are the plan's columns.
    pub(crate) fn stored(fingerprint: Fingerprint, source: Source, columns: Vec<usize>) -> Self {
        let types = source.types();
        Self { fingerprint, source, steps: vec![], types, columns }
    }

    /// The rows for which a predicate over the columns is true.
    ///
    /// A conjunction becomes one step per part: like PostgreSQL, a part isn't asked about rows that
    /// an earlier one has dropped, so that `x <> 0 AND 1 / x > 2` doesn't divide by zero.
    pub(crate) fn filter(mut self, predicate: &Expression) -> Result<Self, EngineError> {
        let mut parts = vec![predicate];
        while let Some(part) = parts.pop() {
            match part {
                Expression::Binary { operator: BinaryOperator::And, left, right } => {
                    parts.extend([&**right, &**left]);
                }
                part => self.steps.push(Step::Filter(self.over_registers(part)?)),
            }
        }
        Ok(self)
    }

    /// Computes new columns from the columns.
    pub(crate) fn project(
        mut self,
        expressions: &[Expression],
        schema: &Schema,
    ) -> Result<Self, EngineError> {
        if expressions.len() != schema.fields().len() {
            let message = "a projection has as many expressions as columns".to_owned();
            return Err(EngineError::InvalidPlan(message));
        }
        let mut columns = Vec::with_capacity(expressions.len());
        for (expression, field) in expressions.iter().zip(schema.fields()) {
            columns.push(match expression {
                Expression::Column(column) => self.column(*column)?,
                expression => self.compute(expression, field.data_type())?,
            });
        }
        self.columns = columns;
        Ok(self)
    }

    /// Computes an expression over the columns into a register.
    pub(crate) fn compute(
        &mut self,
        expression: &Expression,
        data_type: &DataType,
    ) -> Result<usize, EngineError> {
        self.steps.push(Step::Compute(self.over_registers(expression)?));
        self.types.push(data_type.clone());
        Ok(self.types.len() - 1)
    }

    /// An expression over the columns as one over registers.
    fn over_registers(&self, expression: &Expression) -> Result<Expression, EngineError> {
        let mut missing = None;
        expression.columns(&mut |column| {
            if column >= self.columns.len() {
                missing = Some(column);
            }
        });
        match missing {
            None => Ok(expression.map_columns(&|column| self.columns[column])),
            Some(column) => Err(EngineError::InvalidPlan(format!("no column {column}"))),
        }
    }

    /// The register of a column.
    pub(crate) fn column(&self, column: usize) -> Result<usize, EngineError> {
        let missing = || EngineError::InvalidPlan(format!("no column {column}"));
        self.columns.get(column).copied().ok_or_else(missing)
    }

    /// The type of a column.
    pub(crate) fn column_type(&self, column: usize) -> Result<&DataType, EngineError> {
        Ok(&self.types[self.column(column)?])
    }

    /// The types of the columns.
    pub(crate) fn column_types(&self) -> Vec<DataType> {
        self.columns.iter().map(|register| self.types[*register].clone()).collect()
    }

    /// Whether the stored rows are the plan's rows, byte by byte.
    pub(crate) fn is_stored(&self) -> bool {
        self.steps.is_empty()
            && !self.source.carries_errors
            && self.columns.len() == self.source.codec.schema().fields().len()
            && self.columns.iter().enumerate().all(|(column, register)| column == *register)
    }

    /// Whether the source's rows are on the worker that owns this key. `registers` are the key's
    /// parts in their order.
    pub(crate) fn is_placed_by(&self, registers: &[usize]) -> bool {
        matches!(&self.source.placement, Placement::By(fields) if fields == registers)
    }

    /// Where the rows are, told by what becomes of the source's fields: `fields` are the registers
    /// that are the new fields.
    pub(crate) fn placement_of(&self, fields: &[usize]) -> Placement {
        match &self.source.placement {
            Placement::By(by) => {
                let place = |register: &usize| fields.iter().position(|field| field == register);
                by.iter()
                    .map(place)
                    .collect::<Option<_>>()
                    .map_or(Placement::Derived, Placement::By)
            }
            other => other.clone(),
        }
    }

    /// Checks that a plan says of its columns what they are.
    pub(crate) fn check_schema(&self, plan: &Plan) -> Result<(), EngineError> {
        let said = plan.schema();
        let said = said.fields().iter().map(|field| field.data_type());
        let are = self.column_types();
        if said.clone().ne(are.iter()) {
            let said: Vec<_> = said.collect();
            let message = format!("columns are {are:?}, the plan says {said:?}");
            return Err(EngineError::InvalidPlan(message));
        }
        Ok(())
    }
}

/// Columns of some types.
pub(crate) fn schema_of(types: &[DataType]) -> Schema {
    let field = |(place, data_type): (usize, &DataType)| {
        Field::new(format!("c{place}"), data_type.clone(), true)
    };
    Schema::new(types.iter().enumerate().map(field).collect::<Vec<_>>())
}
