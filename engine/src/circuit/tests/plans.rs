//! Plans, written briefly.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use stillframe_protocol::{
    Aggregate, AggregateFunction, BinaryOperator, Expression, JoinKey, Literal, Plan, RelationId,
};

pub(super) fn schema(types: &[DataType]) -> SchemaRef {
    let field = |(place, data_type): (usize, &DataType)| {
        Field::new(format!("c{place}"), data_type.clone(), true)
    };
    Arc::new(Schema::new(types.iter().enumerate().map(field).collect::<Vec<_>>()))
}

pub(super) fn column(index: usize) -> Expression {
    Expression::Column(index)
}

pub(super) fn integer(value: i32) -> Expression {
    Expression::Literal(Literal::Int32(value))
}

pub(super) fn bigint(value: i64) -> Expression {
    Expression::Literal(Literal::Int64(value))
}

pub(super) fn text(value: &str) -> Expression {
    Expression::Literal(Literal::Utf8(value.to_owned()))
}

pub(super) fn binary(left: Expression, operator: BinaryOperator, right: Expression) -> Expression {
    Expression::Binary { operator, left: Box::new(left), right: Box::new(right) }
}

pub(super) fn and(left: Expression, right: Expression) -> Expression {
    binary(left, BinaryOperator::And, right)
}

pub(super) fn cast(operand: Expression, to: DataType) -> Expression {
    Expression::Cast { operand: Box::new(operand), to, null_on_error: false }
}

pub(super) fn call(function: &str, arguments: Vec<Expression>, returns: DataType) -> Expression {
    Expression::Call { function: function.to_owned(), arguments, returns }
}

/// Lists of a type.
pub(super) fn list(element: DataType) -> DataType {
    DataType::new_list(element, true)
}

/// Keys of a join where NULL equals nothing.
pub(super) fn keys(on: &[(usize, usize)]) -> Vec<JoinKey> {
    on.iter().map(|(left, right)| JoinKey::new(*left, *right)).collect()
}

/// A plan and how to go on from it.
#[derive(Clone)]
pub(super) struct Rows(pub(super) Arc<Plan>);

pub(super) fn scan(id: RelationId, schema: &SchemaRef) -> Rows {
    Rows(Arc::new(Plan::Relation { id, schema: Arc::clone(schema) }))
}

pub(super) fn values(types: &[DataType], rows: Vec<Vec<Literal>>) -> Rows {
    Rows(Arc::new(Plan::Values { schema: schema(types), rows }))
}

pub(super) fn union(inputs: &[&Rows]) -> Rows {
    let schema = inputs[0].0.schema();
    let inputs = inputs.iter().map(|rows| Arc::clone(&rows.0)).collect();
    Rows(Arc::new(Plan::UnionAll { inputs, schema }))
}

impl Rows {
    pub(super) fn types(&self) -> Vec<DataType> {
        self.0.schema().fields().iter().map(|field| field.data_type().clone()).collect()
    }

    pub(super) fn filter(&self, predicate: Expression) -> Self {
        Self(Arc::new(Plan::Filter { input: Arc::clone(&self.0), predicate }))
    }

    pub(super) fn project(&self, columns: Vec<(Expression, DataType)>) -> Self {
        let (expressions, types): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        let input = Arc::clone(&self.0);
        Self(Arc::new(Plan::Project { input, expressions, schema: schema(&types) }))
    }

    /// Only some columns.
    pub(super) fn select(&self, columns: &[usize]) -> Self {
        let types = self.types();
        self.project(columns.iter().map(|index| (column(*index), types[*index].clone())).collect())
    }

    pub(super) fn join(
        &self,
        right: &Self,
        on: &[(usize, usize)],
        residual: Option<Expression>,
    ) -> Self {
        let types = [self.types(), right.types()].concat();
        Self(Arc::new(Plan::Join {
            left: Arc::clone(&self.0),
            right: Arc::clone(&right.0),
            on: keys(on),
            residual,
            schema: schema(&types),
        }))
    }

    /// Joins on columns where NULL equals NULL.
    pub(super) fn join_with_nulls(&self, right: &Self, on: &[JoinKey]) -> Self {
        let types = [self.types(), right.types()].concat();
        Self(Arc::new(Plan::Join {
            left: Arc::clone(&self.0),
            right: Arc::clone(&right.0),
            on: on.to_vec(),
            residual: None,
            schema: schema(&types),
        }))
    }

    pub(super) fn semijoin(&self, right: &Self, on: &[JoinKey], negated: bool) -> Self {
        Self(Arc::new(Plan::Semijoin {
            left: Arc::clone(&self.0),
            right: Arc::clone(&right.0),
            on: on.to_vec(),
            negated,
        }))
    }

    /// A row for each element of lists.
    pub(super) fn unnest(&self, lists: Vec<(Expression, DataType)>) -> Self {
        let elements = lists.iter().map(|(_, list)| match list {
            DataType::List(field) => field.data_type().clone(),
            other => panic!("{other} is no list"),
        });
        let types: Vec<DataType> = self.types().into_iter().chain(elements).collect();
        let input = Arc::clone(&self.0);
        Self(Arc::new(Plan::Unnest { input, lists, schema: schema(&types) }))
    }

    /// The results have the types that the protocol says.
    pub(super) fn aggregate(
        &self,
        groups: &[usize],
        aggregates: &[(AggregateFunction, Option<usize>)],
    ) -> Self {
        let types = self.types();
        let result = |(function, argument): &(AggregateFunction, Option<usize>)| {
            let argument = argument.map(|argument| types[argument].clone());
            result_type(*function, argument)
        };
        let results: Vec<DataType> = aggregates.iter().map(result).collect();
        let groups_types: Vec<DataType> =
            groups.iter().map(|group| types[*group].clone()).collect();
        let aggregate = |(function, argument): &(AggregateFunction, Option<usize>)| Aggregate {
            function: *function,
            argument: *argument,
        };
        Self(Arc::new(Plan::Aggregate {
            input: Arc::clone(&self.0),
            groups: groups.to_vec(),
            aggregates: aggregates.iter().map(aggregate).collect(),
            schema: schema(&[groups_types, results].concat()),
        }))
    }

    /// A recursion from these rows. The term gets the last iteration's rows and what is given.
    pub(super) fn recursion(
        &self,
        distinct: bool,
        given: &[&Self],
        term: impl Fn(&[Self]) -> Self,
    ) -> Self {
        let place = |(place, rows): (usize, &Self)| {
            Self(Arc::new(Plan::Given { place, schema: schema(&rows.types()) }))
        };
        let inputs: Vec<Self> =
            [self].into_iter().chain(given.iter().copied()).enumerate().map(place).collect();
        Self(Arc::new(Plan::Recursion {
            base: Arc::clone(&self.0),
            term: term(&inputs).0,
            given: given.iter().map(|rows| Arc::clone(&rows.0)).collect(),
            distinct,
            schema: schema(&self.types()),
        }))
    }

    pub(super) fn distinct(&self) -> Self {
        Self(Arc::new(Plan::Distinct { input: Arc::clone(&self.0) }))
    }
}

fn result_type(function: AggregateFunction, argument: Option<DataType>) -> DataType {
    use DataType::{Decimal128, Float32, Float64, Int16, Int32, Int64, LargeBinary};
    match (function, argument) {
        (AggregateFunction::Count, _) => Int64,
        (AggregateFunction::Sum, Some(Int16 | Int32)) => Int64,
        (AggregateFunction::Sum, Some(Int64)) => Decimal128(38, 0),
        (AggregateFunction::Sum, Some(Decimal128(..=19, scale))) => Decimal128(38, scale),
        (AggregateFunction::Sum, Some(Decimal128(..))) => LargeBinary,
        (AggregateFunction::Avg, Some(Int16 | Int32 | Int64 | Decimal128(..))) => LargeBinary,
        (AggregateFunction::Avg, Some(Float32 | Float64)) => Float64,
        (_, Some(argument)) => argument,
        (function, None) => panic!("{function:?} has no argument"),
    }
}
