//! Constant rows.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::logical_expr::{EmptyRelation, Expr, ExprSchemable, Values};
use stillframe_protocol::{Literal, Plan};

use super::{Compiler, Rows, build};
use crate::Error;
use crate::expression;
use crate::query::classify;

/// One row of nothing, or none.
pub(super) fn empty(empty: &EmptyRelation) -> Result<Rows, Error> {
    let schema = build::logical_schema(&empty.schema)?;
    let row = schema.fields().iter().map(|field| Literal::Null(field.data_type().clone()));
    let rows = if empty.produce_one_row { vec![row.collect()] } else { vec![] };
    let width = empty.schema.fields().len();
    Ok(Rows { plan: Arc::new(Plan::Values { schema, rows }), width, depends: false })
}

impl Compiler<'_> {
    /// Rows of constants; those with anything else are computed of one row of nothing each.
    pub(super) fn values(&self, values: &Values) -> Result<Rows, Error> {
        let schema = build::logical_schema(&values.schema)?;
        let width = values.schema.fields().len();
        let mut rows = vec![];
        let mut computed = vec![];
        for row in &values.values {
            let literals = row.iter().zip(schema.fields());
            let literals = literals.map(|(value, field)| constant(value, field.data_type()));
            match literals.collect::<Result<Option<Vec<_>>, Error>>()? {
                Some(row) => rows.push(row),
                None => computed.push(self.computed_row(row, &values.schema)?),
            }
        }
        let constants =
            Rows { plan: Arc::new(Plan::Values { schema, rows }), width, depends: false };
        if computed.is_empty() {
            return Ok(constants);
        }
        let depends = computed.iter().any(|row| row.depends);
        let all = std::iter::once(constants).chain(computed);
        let inputs = all.map(|rows| match depends {
            true => Ok(self.depending(rows)?.plan),
            false => Ok(rows.plan),
        });
        let inputs = inputs.collect::<Result<Vec<_>, Error>>()?;
        let schema = inputs[0].schema();
        Ok(Rows { plan: Arc::new(Plan::UnionAll { inputs, schema }), width, depends })
    }

    fn computed_row(&self, row: &[Expr], schema: &DFSchema) -> Result<Rows, Error> {
        let nothing = DFSchema::empty();
        let one = EmptyRelation { produce_one_row: true, schema: Arc::new(nothing.clone()) };
        let mut input = empty(&one)?;
        if row.iter().any(|value| self.around.is_read_by(value)) {
            input = self.depending(input)?;
        }
        let columns = row.iter().zip(schema.fields()).map(|(value, field)| {
            let found = value.get_type(&nothing).map_err(classify)?;
            let wanted = build::stored_type(field.data_type())?;
            let expression = self.convert(value, &nothing, &input)?;
            Ok(build::Column::new(field.name(), build::cast(expression, &found, &wanted), wanted))
        });
        let mut columns = columns.collect::<Result<Vec<_>, Error>>()?;
        let width = columns.len();
        columns.extend(self.values_from_around(&input));
        Ok(Rows { plan: build::project(input.plan, columns), width, depends: input.depends })
    }
}

/// A value that the optimizer has reduced to a constant.
fn constant(value: &Expr, kind: &DataType) -> Result<Option<Literal>, Error> {
    let mut value = value;
    while let Expr::Alias(alias) = value {
        value = &alias.expr;
    }
    let Expr::Literal(value, _) = value else { return Ok(None) };
    let value = value.cast_to(kind).map_err(classify)?;
    Ok(Some(expression::literal(&value)?))
}
