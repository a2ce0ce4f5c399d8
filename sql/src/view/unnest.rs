//! Functions that return rows: `unnest`, and `generate_series` as an array that is unnested.

use std::sync::Arc;

use arrow::array::Array;
use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Unnest};
use stillframe_protocol::{Expression, Literal, Plan};

use super::{Compiler, Rows, build, refused};
use crate::Error;
use crate::expression::literal;
use crate::query::classify;

impl Compiler<'_> {
    /// A row for each element of lists. Lists aren't stored: they are computed where they are cut.
    pub(super) fn unnest(&self, unnest: &Unnest) -> Result<Rows, Error> {
        if !unnest.struct_type_columns.is_empty()
            || unnest.list_type_columns.iter().any(|(_, list)| list.depth != 1)
        {
            return Err(refused("unnest of arrays in arrays"));
        }
        let mut below = unnest.input.as_ref();
        while let LogicalPlan::SubqueryAlias(alias) = below {
            below = &alias.input;
        }
        let LogicalPlan::Projection(projection) = below else {
            return Err(refused("unnest of a stored array"));
        };
        let mut input = self.rows(&projection.input)?;
        if projection.expr.iter().any(|expr| self.around.is_read_by(expr)) {
            input = self.depending(input)?;
        }
        let schema = projection.input.schema();
        let is_list = |place: usize| unnest.list_type_columns.iter().any(|(of, _)| *of == place);

        let mut lists = vec![];
        for (place, _) in &unnest.list_type_columns {
            lists.push((*place, self.list(&projection.expr[*place], schema, &input)?));
        }
        let own = input.plan.schema();
        let first_element = own.fields().len();
        let mut fields: Vec<_> =
            own.fields().iter().map(|f| (f.name().clone(), f.data_type().clone())).collect();
        for (_, (_, data_type)) in &lists {
            let DataType::List(element) = data_type else {
                return Err(refused(format!("unnest of a value of type {data_type}")));
            };
            build::stored_type(element.data_type())?;
            fields.push(("element".to_owned(), element.data_type().clone()));
        }
        let places: Vec<_> = lists.iter().map(|(place, _)| *place).collect();
        let unnested = Arc::new(Plan::Unnest {
            input: Arc::clone(&input.plan),
            lists: lists.into_iter().map(|(_, list)| list).collect(),
            schema: build::schema(fields.iter().map(|(n, t)| (n.as_str(), t.clone()))),
        });

        // An output column is a column of the input, or an element of one.
        let columns = unnest.dependency_indices.iter().zip(unnest.schema.fields());
        let columns = columns.map(|(from, field)| {
            if !is_list(*from) {
                let expression = self.convert(&projection.expr[*from], schema, &input)?;
                return build::Column::checked(field.name(), expression, field.data_type());
            }
            let number = places.iter().position(|place| place == from).expect("it is a list");
            let place = first_element + number;
            let stored = build::stored_type(field.data_type())?;
            let element = build::cast(Expression::Column(place), &fields[place].1, &stored);
            Ok(build::Column::new(field.name(), element, stored))
        });
        let mut columns = columns.collect::<Result<Vec<_>, Error>>()?;
        let width = columns.len();
        columns.extend(self.values_from_around(&input));
        Ok(Rows { plan: build::project(unnested, columns), width, depends: input.depends })
    }

    fn list(
        &self,
        expr: &Expr,
        schema: &DFSchema,
        input: &Rows,
    ) -> Result<(Expression, DataType), Error> {
        let mut expr = expr;
        while let Expr::Alias(alias) = expr {
            expr = &alias.expr;
        }
        let data_type = expr.get_type(schema).map_err(classify)?;
        let Expr::Literal(ScalarValue::List(list), _) = expr else {
            return Ok((self.convert(expr, schema, input)?, data_type));
        };
        if list.is_null(0) || list.value(0).is_empty() {
            return Ok((Expression::Literal(Literal::Null(data_type.clone())), data_type));
        }
        let elements = list.value(0);
        let element = |place| {
            let value = ScalarValue::try_from_array(&elements, place).map_err(classify)?;
            Ok(Expression::Literal(literal(&value)?))
        };
        let arguments = (0..elements.len()).map(element).collect::<Result<Vec<_>, Error>>()?;
        let function = "make_array".to_owned();
        Ok((Expression::Call { function, arguments, returns: data_type.clone() }, data_type))
    }
}
