//! The two parts of a recursive query have the same columns.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Projection, RecursiveQuery};

use super::is_untyped;
use super::operands::Operands;
use crate::functions::identity;
use crate::functions::numeric::is_carried;
use crate::functions::resolve::{Purpose, Rank, common, decimal, rank};
use crate::functions::scalar::type_name;
use crate::functions::typed::{bare_name, common_kind, kind_of};
use crate::{Error, SqlState, Type};

impl Operands<'_> {
    /// A recursive query whose parts have fields that are the same to the letter, as DataFusion asks.
    pub(super) fn recursion(&self, mut query: RecursiveQuery) -> Result<RecursiveQuery> {
        for place in 0..query.static_term.schema().fields().len() {
            let first = query.static_term.schema().field(place);
            let next = query.recursive_term.schema().field(place);
            let (kind, found) = (kind_of(first), kind_of(next));
            if is_carried(next.data_type()) && !is_carried(first.data_type()) {
                // A cast to numeric has the digits of its operand, what is computed of it hasn't.
                let plan = self.with_cast(&query.static_term, place, &Type::Numeric(None))?;
                query.static_term = Arc::new(plan);
            } else if first.metadata() != next.metadata() && !found.arrow().is_null() {
                if found != kind && found != Type::Unknown {
                    let overall = common_kind([&kind, &found], Purpose::Column);
                    if overall != Some(kind.without_limit()) {
                        return Err(mismatch(&bare_name(&kind), &bare_name(&found)).into());
                    }
                    let plan = self.with_cast(&query.recursive_term, place, &kind)?;
                    query.recursive_term = Arc::new(plan);
                }
                for term in [&mut query.static_term, &mut query.recursive_term] {
                    *term = Arc::new(known(term, place, &kind)?);
                }
            }
        }
        Ok(query)
    }

    /// The part of a recursive query that names it must have the types of the other.
    pub(super) fn check_recursion(&self, operand: &Expr, column: &Field) -> Result<()> {
        let found = operand.get_type(self.schema)?;
        if is_untyped(operand) || found.is_null() {
            return Ok(());
        }
        if rank(column.data_type()) == Some(Rank::Numeric) && rank(&found) == Some(Rank::Numeric) {
            let is_kept = match (column.data_type(), decimal(&found)) {
                (DataType::Decimal128(precision, scale), Some((digits, found))) => {
                    found == *scale && digits <= *precision
                }
                (column, _) => is_carried(column),
            };
            if !is_kept {
                let what = "a recursive query whose numbers may get more digits";
                let hint = "Cast the numbers of both parts to numeric(p, s).";
                return Err(Error::unsupported(what).with_hint(hint).into());
            }
            return Ok(());
        }
        let types = [column.data_type().clone(), found];
        if common(&types, Purpose::Column).as_ref() == Some(&types[0]) {
            return Ok(());
        }
        let [first, other] = types.map(|data_type| type_name(&data_type));
        Err(mismatch(&first, &other).into())
    }
}

/// 42804.
fn mismatch(first: &str, overall: &str) -> Error {
    let message = format!(
        "a column of a recursive query has type {first} in its non-recursive term but type {overall} \
         overall"
    );
    let hint = "Cast the output of the non-recursive term to the correct type.";
    Error::new(SqlState::DATATYPE_MISMATCH, message).with_hint(hint)
}

/// A plan with one column that is said to be of a type in one way: a constant says it in another.
fn known(plan: &Arc<LogicalPlan>, place: usize, kind: &Type) -> Result<LogicalPlan> {
    let columns = plan.schema().columns().into_iter().enumerate().map(|(at, column)| {
        if at != place {
            return Expr::Column(column);
        }
        let (relation, name) = (column.relation.clone(), column.name.clone());
        identity::of(Expr::Column(column), kind).alias_qualified(relation, name)
    });
    Ok(LogicalPlan::Projection(Projection::try_new(columns.collect(), Arc::clone(plan))?))
}
