//! Makes plan nodes, and leaves out those that do nothing.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::DFSchema;
use stillframe_protocol::{Expression, Literal, Plan};

use super::refused;
use crate::expression::is_storable;
use crate::{Error, Type};

/// A column that a projection computes.
pub(super) struct Column {
    name: String,
    expression: Expression,
    data_type: DataType,
}

impl Column {
    pub(super) fn new(name: &str, expression: Expression, data_type: DataType) -> Self {
        Self { name: name.to_owned(), expression, data_type }
    }

    /// A column for where a plan would have none.
    pub(super) fn nothing() -> Self {
        let null = Expression::Literal(Literal::Null(DataType::Boolean));
        Self::new("nothing", null, DataType::Boolean)
    }

    /// The same column after some more.
    pub(super) fn moved(self, by: usize) -> Self {
        let mut expression = self.expression;
        replace_columns(&mut expression, &|place| Expression::Column(place + by));
        Self { expression, ..self }
    }

    /// NULL in the place of the column.
    pub(super) fn null(self) -> Self {
        Self { expression: Expression::Literal(Literal::Null(self.data_type.clone())), ..self }
    }

    pub(super) fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// A column in the Arrow type that its SQL type has: DataFusion's kernels know more.
    pub(super) fn checked(
        name: &str,
        expression: Expression,
        data_type: &DataType,
    ) -> Result<Self, Error> {
        let stored = stored_type(data_type)?;
        let expression = cast(expression, data_type, &stored);
        Ok(Self::new(name, expression, stored))
    }
}

/// The type in which values of this type are stored.
pub(super) fn stored_type(data_type: &DataType) -> Result<DataType, Error> {
    let stored = match data_type {
        // A NULL that nothing has given a type is text, as in PostgreSQL.
        DataType::Null => Some(DataType::Utf8),
        DataType::Decimal128(..) => Some(data_type.clone()),
        other => Type::from_arrow(other).map(|kind| kind.arrow()),
    };
    match stored {
        Some(stored) if is_storable(&stored) => Ok(stored),
        _ => Err(refused(format!("a value of type {data_type}"))),
    }
}

/// The expression in another type.
pub(super) fn cast(expression: Expression, from: &DataType, to: &DataType) -> Expression {
    if from == to {
        return expression;
    }
    Expression::Cast { operand: Box::new(expression), to: to.clone(), null_on_error: false }
}

/// A schema of nullable columns.
pub(super) fn schema<'a>(columns: impl Iterator<Item = (&'a str, DataType)>) -> SchemaRef {
    let fields = columns.map(|(name, data_type)| Field::new(name, data_type, true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The columns of a logical plan; one that nobody reads if it has none.
pub(super) fn logical_schema(schema: &DFSchema) -> Result<SchemaRef, Error> {
    let fields = schema.fields().iter();
    let fields = fields.map(|f| Ok(Field::new(f.name(), stored_type(f.data_type())?, true)));
    let mut fields = fields.collect::<Result<Vec<_>, Error>>()?;
    if fields.is_empty() {
        fields.push(Field::new("nothing", DataType::Boolean, true));
    }
    Ok(Arc::new(Schema::new(fields)))
}

/// A projection; the input itself if nothing changes, and one projection instead of two where the
/// lower one only moves columns.
pub(super) fn project(input: Arc<Plan>, columns: Vec<Column>) -> Arc<Plan> {
    let own = input.schema();
    let is_identity = columns.len() == own.fields().len()
        && columns.iter().enumerate().all(|(place, column)| {
            column.expression == Expression::Column(place)
                && column.data_type == *own.field(place).data_type()
        });
    let schema =
        schema(columns.iter().map(|column| (column.name.as_str(), column.data_type.clone())));
    let expressions: Vec<_> = columns.into_iter().map(|column| column.expression).collect();
    if let Plan::Project { input: lower, expressions: below, .. } = input.as_ref()
        && below.iter().all(is_cheap)
    {
        let expressions: Vec<_> = expressions.iter().map(|e| substitute(e, below)).collect();
        let moves_nothing = expressions.len() == lower.schema().fields().len()
            && expressions.iter().enumerate().all(|(place, e)| *e == Expression::Column(place));
        if moves_nothing {
            return Arc::clone(lower);
        }
        return Arc::new(Plan::Project { input: Arc::clone(lower), expressions, schema });
    }
    if is_identity {
        return input;
    }
    Arc::new(Plan::Project { input, expressions, schema })
}

/// Neighbouring columns of a plan as they are.
pub(super) fn columns(
    input: &Plan,
    places: std::ops::Range<usize>,
) -> impl Iterator<Item = Column> + use<> {
    let schema = input.schema();
    places.map(move |place| {
        let field = schema.field(place);
        Column::new(field.name(), Expression::Column(place), field.data_type().clone())
    })
}

/// The first columns of a plan in the types and with the names of others.
pub(super) fn like(input: &Plan, others: &Schema, width: usize) -> Vec<Column> {
    let own = input.schema();
    let columns = own.fields().iter().zip(others.fields()).enumerate().take(width);
    let columns = columns.map(|(place, (from, to))| {
        let column = cast(Expression::Column(place), from.data_type(), to.data_type());
        Column::new(to.name(), column, to.data_type().clone())
    });
    columns.collect()
}

/// Some columns of a plan.
pub(super) fn pick(input: Arc<Plan>, places: &[usize]) -> Arc<Plan> {
    let schema = input.schema();
    let columns = places.iter().map(|place| {
        let field = schema.field(*place);
        Column::new(field.name(), Expression::Column(*place), field.data_type().clone())
    });
    project(input, columns.collect())
}

fn is_cheap(expression: &Expression) -> bool {
    matches!(expression, Expression::Column(_) | Expression::Literal(_))
}

/// The expression with each column replaced by what computes it.
fn substitute(expression: &Expression, columns: &[Expression]) -> Expression {
    let mut expression = expression.clone();
    replace_columns(&mut expression, &|place| columns[place].clone());
    expression
}

/// Replaces every column of an expression.
pub(super) fn replace_columns(expression: &mut Expression, by: &impl Fn(usize) -> Expression) {
    let mut recurse = |child: &mut Expression| replace_columns(child, by);
    match expression {
        Expression::Column(place) => *expression = by(*place),
        Expression::Literal(_) => {}
        Expression::Unary { operand, .. } | Expression::Cast { operand, .. } => recurse(operand),
        Expression::Binary { left, right, .. } => {
            recurse(left);
            recurse(right);
        }
        Expression::Case { operand, branches, otherwise } => {
            operand.as_deref_mut().into_iter().for_each(&mut recurse);
            for (when, then) in branches {
                recurse(when);
                recurse(then);
            }
            otherwise.as_deref_mut().into_iter().for_each(recurse);
        }
        Expression::Like { operand, pattern, .. } => {
            recurse(operand);
            recurse(pattern);
        }
        Expression::InList { operand, list, .. } => {
            recurse(operand);
            list.iter_mut().for_each(recurse);
        }
        Expression::Call { arguments, .. } => arguments.iter_mut().for_each(recurse),
    }
}

/// Checks that equal values of some columns have equal bytes, as keys must.
pub(super) fn keys(
    input: &Plan,
    places: impl IntoIterator<Item = usize>,
    construct: &str,
) -> Result<(), Error> {
    let schema = input.schema();
    for place in places {
        // One month equals 30 days, and 1.0 equals 1.00, in other bytes.
        match schema.field(place).data_type() {
            DataType::Interval(_) => {
                return Err(refused(format!("{construct} on a value of type interval")));
            }
            DataType::LargeBinary => {
                return Err(refused(format!("{construct} on a value of type numeric")));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Each row as often as an expression says, with a number as one more column.
pub(super) fn repeated(input: Arc<Plan>, times: Expression) -> Arc<Plan> {
    let numbers = DataType::new_list(DataType::Int64, true);
    let series = Expression::Call {
        function: "generate_series".to_owned(),
        arguments: vec![Expression::Literal(Literal::Int64(1)), times],
        returns: numbers.clone(),
    };
    let own = input.schema();
    let columns = own.fields().iter().map(|f| (f.name().as_str(), f.data_type().clone()));
    let schema = schema(columns.chain([("number", DataType::Int64)]));
    Arc::new(Plan::Unnest { input, lists: vec![(series, numbers)], schema })
}
