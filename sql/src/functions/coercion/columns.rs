//! Columns whose values come from several places: VALUES and set operations.

use std::sync::Arc;

use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::{
    Distinct, Expr, ExprSchemable, Join, JoinType, LogicalPlan, Projection, Union, Values,
};

use super::casts::Casts;
use super::operands::{Mix, Operands};
use super::{alike, is_untyped};
use crate::Type;
use crate::functions::identity::known_as;
use crate::functions::numeric::{is_carried, key_of};
use crate::functions::typed::kind_of;

impl Operands<'_> {
    /// VALUES whose columns get the types that all their rows have in common.
    pub(super) fn values(&self, mut values: Values) -> Result<Values> {
        let mut fields = vec![];
        for (place, (relation, field)) in values.schema.iter().enumerate() {
            let column = values.values.iter_mut().map(|row| std::mem::take(&mut row[place]));
            let column = self.unify(column.collect(), &Mix::Column("VALUES"))?;
            // What nothing gives a type is text.
            let is_text = |value: &Expr| matches!(value, Expr::Literal(ScalarValue::Utf8(_), _));
            let texts = || column.iter().any(is_text).then_some(Type::Text);
            let kind = self.kind_of_all(&column)?.or_else(texts);
            let field = match &kind {
                Some(kind) => Arc::new(kind.field(field.name(), true)),
                None => Arc::clone(field),
            };
            for (row, value) in values.values.iter_mut().zip(column) {
                let is_null = value.get_type(self.schema)?.is_null();
                row[place] = match &kind {
                    Some(kind) if is_null => self.casts().to(value, kind)?,
                    _ => value,
                };
            }
            fields.push((relation.cloned(), field));
        }
        let metadata = values.schema.metadata().clone();
        values.schema = Arc::new(DFSchema::new_with_metadata(fields, metadata)?);
        Ok(values)
    }

    /// A UNION whose columns get the types that all inputs have in common.
    pub(super) fn union(&self, mut union: Union) -> Result<Union> {
        let mut fields = vec![];
        for (place, (relation, field)) in union.schema.iter().enumerate() {
            let kind =
                self.in_common(&mut union.inputs.iter_mut().collect::<Vec<_>>(), place, "UNION")?;
            let field = match kind {
                Some(kind) => Arc::new(kind.field(field.name(), field.is_nullable())),
                None => Arc::clone(field),
            };
            fields.push((relation.cloned(), field));
        }
        let metadata = union.schema.metadata().clone();
        union.schema = Arc::new(DFSchema::new_with_metadata(fields, metadata)?);
        Ok(union)
    }

    /// Gives a column of several inputs the type that they have in common, if any has one.
    fn in_common(
        &self,
        inputs: &mut [&mut Arc<LogicalPlan>],
        place: usize,
        construct: &str,
    ) -> Result<Option<Type>> {
        let fields = inputs.iter().filter(|input| !is_open(input, place));
        let fields = fields.map(|input| Arc::clone(input.schema().field(place)));
        let fields: Vec<_> = fields.filter(|field| !field.data_type().is_null()).collect();
        let Some(mut kind) = Mix::Column(construct).common(&fields)? else { return Ok(None) };
        let is_numeric = matches!(kind, Type::Numeric(_));
        if is_numeric && inputs.iter().any(|input| is_open(input, place)) {
            kind = Type::Numeric(None);
        }
        for input in inputs {
            if is_open(input, place) {
                **input = Arc::new(self.with_typed(input, place, &kind)?);
            } else if kind_of(input.schema().field(place)) != kind {
                **input = Arc::new(self.with_cast(input, place, &kind)?);
            }
        }
        Ok(Some(kind))
    }

    /// INTERSECT or EXCEPT, whose columns get the types that both sides have in common.
    pub(super) fn set_operation(&self, mut join: Join) -> Result<Join> {
        let construct = match join.join_type {
            JoinType::LeftSemi => "INTERSECT",
            _ => "EXCEPT",
        };
        for place in 0..join.left.schema().fields().len() {
            self.in_common(&mut [&mut join.left, &mut join.right], place, construct)?;
        }
        let mut on = vec![];
        for (left, right) in join.on {
            on.push((
                self.key_in(left, join.left.schema())?,
                self.key_in(right, join.right.schema())?,
            ));
        }
        join.on = on;
        Ok(join)
    }

    /// What a value of one side of a set operation is compared by.
    fn key_in(&self, expr: Expr, schema: &DFSchema) -> Result<Expr> {
        if is_carried(&expr.get_type(schema)?) {
            Ok(key_of(expr))
        } else {
            alike::key(expr, schema)
        }
    }

    /// An input with one column in another type.
    pub(super) fn with_cast(
        &self,
        input: &LogicalPlan,
        place: usize,
        kind: &Type,
    ) -> Result<LogicalPlan> {
        if let LogicalPlan::Distinct(Distinct::All(input)) = input {
            // It must stay what it is.
            let input = self.with_cast(input, place, kind)?;
            return Ok(LogicalPlan::Distinct(Distinct::All(Arc::new(input))));
        }
        let casts = Casts { schema: input.schema(), format: self.format };
        let exprs = input.schema().columns().into_iter().enumerate().map(|(at, column)| {
            if at != place {
                return Ok(Expr::Column(column));
            }
            let (relation, name) = (column.relation.clone(), column.name.clone());
            let cast = casts.to(Expr::Column(column), kind)?;
            Ok(cast.alias_qualified(relation, name))
        });
        let exprs = exprs.collect::<Result<Vec<_>>>()?;
        Ok(LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(input.clone()))?))
    }

    /// An input with the literals of one column in a type.
    fn with_typed(&self, input: &LogicalPlan, place: usize, kind: &Type) -> Result<LogicalPlan> {
        match input {
            LogicalPlan::Projection(projection) => {
                let mut exprs = projection.expr.clone();
                let (relation, name) = exprs[place].qualified_name();
                let literal = unaliased(&exprs[place]).clone();
                let typed = known_as(self.casts().to(literal, &kind.without_limit())?, kind);
                exprs[place] = typed.alias_qualified(relation, name);
                let projection = Projection::try_new(exprs, Arc::clone(&projection.input))?;
                Ok(LogicalPlan::Projection(projection))
            }
            LogicalPlan::Union(union) => {
                let inputs = union.inputs.iter();
                let inputs = inputs.map(|input| self.with_typed(input, place, kind).map(Arc::new));
                let inputs = inputs.collect::<Result<_>>()?;
                let schema = Arc::clone(&union.schema);
                LogicalPlan::Union(Union { inputs, schema }).recompute_schema()
            }
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let input = self.with_typed(input, place, kind)?;
                Ok(LogicalPlan::Distinct(Distinct::All(Arc::new(input))))
            }
            other => Ok(other.clone()),
        }
    }
}

/// Whether nothing settles the type of an input's column.
fn is_open(input: &LogicalPlan, place: usize) -> bool {
    match input {
        LogicalPlan::Projection(projection) => {
            projection.expr.get(place).is_some_and(|expr| is_untyped(unaliased(expr)))
        }
        LogicalPlan::Union(union) => union.inputs.iter().all(|input| is_open(input, place)),
        LogicalPlan::Distinct(Distinct::All(input)) => is_open(input, place),
        _ => false,
    }
}

fn unaliased(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => unaliased(&alias.expr),
        other => other,
    }
}
