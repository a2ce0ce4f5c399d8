//! What of a query's filters the hosts do: conditions that can't fail, and lookups by key.
//!
//! A condition that may fail (a division, a cast) stays where the query has it: elsewhere it would
//! meet rows that another condition keeps from it.

use std::collections::HashSet;

use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{InList, Placeholder};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use std::sync::Arc;
use stillframe_protocol::{BinaryOperator, Expression, UnaryOperator};

use crate::{Relation, RelationKind, expression};

/// At most so many keys are looked up; with more, all rows are read.
const KEYS_MAX: usize = 10_000;

/// The condition over the relation's stored columns, if hosts can do it.
pub(super) fn condition(filter: &Expr, relation: &Relation) -> Option<Expression> {
    let schema = DFSchema::try_from(relation.defined_schema()).ok()?;
    let mut condition = expression::convert(&unqualified(filter).ok()?, &schema).ok()?;
    if !cannot_fail(&condition) {
        return None;
    }
    let order = relation.stored_order();
    store(&mut condition, &order);
    Some(condition)
}

/// The condition of a filter whose parameters have no values yet, if hosts can do it whatever those
/// are.
pub(super) fn condition_once_bound(filter: &Expr, relation: &Relation) -> Option<Expression> {
    let bound = filter.clone().transform(|expr| {
        let Expr::Placeholder(Placeholder { field: Some(field), .. }) = &expr else {
            return Ok(Transformed::no(expr));
        };
        let value = ScalarValue::new_default(field.data_type())?;
        Ok(Transformed::yes(Expr::Literal(value, None)))
    });
    condition(&folded(&bound.ok()?.data).ok()?, relation)
}

/// A filter without the casts by which the values of parameters became wider integers. Everything else
/// that is constant the optimizer has computed: see [`is_lasting`](crate::query).
pub(super) fn folded(filter: &Expr) -> Result<Expr> {
    let folded = filter.clone().transform_up(|expr| match &expr {
        Expr::Cast(cast) if is_widening(&expr) => match cast.expr.as_ref() {
            Expr::Literal(value, _) => {
                let value = value.cast_to(cast.field.data_type())?;
                Ok(Transformed::yes(Expr::Literal(value, None)))
            }
            _ => Ok(Transformed::no(expr)),
        },
        _ => Ok(Transformed::no(expr)),
    });
    folded.data()
}

/// Whether an expression only makes an integer wider that is a parameter or a literal.
pub(crate) fn is_widening(expr: &Expr) -> bool {
    let bits = |kind: &DataType| match kind {
        DataType::Int16 => Some(16),
        DataType::Int32 => Some(32),
        DataType::Int64 => Some(64),
        _ => None,
    };
    let Expr::Cast(cast) = expr else { return false };
    let from = match cast.expr.as_ref() {
        Expr::Placeholder(Placeholder { field: Some(field), .. }) => bits(field.data_type()),
        Expr::Literal(value, _) => bits(&value.data_type()),
        _ => None,
    };
    from.is_some_and(|from| bits(cast.field.data_type()).is_some_and(|to| from < to))
}

/// The keys that rows must have to pass the filters: leading columns of the primary key.
pub(super) fn keys(filters: &[Expr], relation: &Relation) -> Option<RecordBatch> {
    let RelationKind::Table { key } = &relation.kind else { return None };
    let filters: Vec<_> = filters.iter().filter_map(|f| unqualified(f).ok()).collect();
    let mut fields: Vec<Field> = vec![];
    let mut keys: Vec<Vec<ScalarValue>> = vec![vec![]];
    for place in key {
        let field = relation.columns[*place].field();
        let Some(values) = filters.iter().find_map(|filter| values(filter, &field)) else { break };
        if keys.len().saturating_mul(values.len()) > KEYS_MAX {
            break;
        }
        let product = keys.iter().flat_map(|key| {
            values.iter().map(move |value| key.iter().chain([value]).cloned().collect())
        });
        keys = product.collect();
        fields.push(field.with_nullable(true));
    }
    if fields.is_empty() || keys.is_empty() {
        return None;
    }
    let columns = (0..fields.len())
        .map(|place| ScalarValue::iter_to_array(keys.iter().map(|key| key[place].clone())));
    let columns = columns.collect::<Result<Vec<_>>>().ok()?;
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).ok()
}

/// The values that a column must have one of, each once.
fn values(filter: &Expr, field: &Field) -> Option<Vec<ScalarValue>> {
    let mut seen = HashSet::new();
    let mut found = alternatives(filter, field)?;
    found.retain(|value| seen.insert(value.clone()));
    Some(found)
}

fn alternatives(filter: &Expr, field: &Field) -> Option<Vec<ScalarValue>> {
    let is_column = |expr: &Expr| matches!(expr, Expr::Column(c) if c.name == *field.name());
    let constant = |expr: &Expr| match expr {
        Expr::Literal(value, _) if value.data_type() == *field.data_type() => Some(value.clone()),
        _ => None,
    };
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            let other = if is_column(left) {
                right
            } else if is_column(right) {
                left
            } else {
                return None;
            };
            Some(vec![constant(other)?])
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let mut all = alternatives(left, field)?;
            all.extend(alternatives(right, field)?);
            Some(all)
        }
        Expr::InList(InList { expr, list, negated: false }) if is_column(expr) => {
            list.iter().map(constant).collect()
        }
        _ => None,
    }
}

/// The same with plain column names: the relation's are unique.
fn unqualified(filter: &Expr) -> Result<Expr> {
    let plain = filter.clone().transform(|expr| {
        Ok(match expr {
            Expr::Column(column) if column.relation.is_some() => {
                Transformed::yes(Expr::Column(Column::new_unqualified(column.name)))
            }
            other => Transformed::no(other),
        })
    })?;
    Ok(plain.data)
}

fn cannot_fail(condition: &Expression) -> bool {
    let itself = match condition {
        Expression::Column(_) | Expression::Literal(_) | Expression::InList { .. } => true,
        Expression::Unary { operator, .. } => *operator != UnaryOperator::Negative,
        Expression::Binary { operator, .. } => matches!(
            operator,
            BinaryOperator::Equal
                | BinaryOperator::NotEqual
                | BinaryOperator::Less
                | BinaryOperator::LessOrEqual
                | BinaryOperator::Greater
                | BinaryOperator::GreaterOrEqual
                | BinaryOperator::IsDistinctFrom
                | BinaryOperator::IsNotDistinctFrom
                | BinaryOperator::And
                | BinaryOperator::Or
        ),
        Expression::Cast { .. }
        | Expression::Case { .. }
        | Expression::Like { .. }
        | Expression::Call { .. } => false,
    };
    let mut all = itself;
    condition.children(&mut |child| all &= cannot_fail(child));
    all
}

/// Puts stored places in the place of defined ones, in a condition that can't fail.
fn store(condition: &mut Expression, order: &[usize]) {
    match condition {
        Expression::Column(defined) => {
            *defined = order
                .iter()
                .position(|place| place == defined)
                .expect("every column of the definition is stored");
        }
        Expression::Unary { operand, .. } => store(operand, order),
        Expression::Binary { left, right, .. } => {
            store(left, order);
            store(right, order);
        }
        Expression::InList { operand, list, .. } => {
            store(operand, order);
            list.iter_mut().for_each(|value| store(value, order));
        }
        Expression::Literal(_)
        | Expression::Cast { .. }
        | Expression::Case { .. }
        | Expression::Like { .. }
        | Expression::Call { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use arrow::array::{AsArray, Int32Array};
    use arrow::datatypes::Int32Type;
    use datafusion::prelude::{col, lit};
    use stillframe_protocol::{Literal, RelationId};

    use super::*;
    use crate::{Column as Defined, Type};

    /// A table (v text, b int, a int, primary key (a, b)).
    fn relation() -> Relation {
        let column = |name: &str, kind| Defined::new(name.to_owned(), kind);
        Relation {
            id: RelationId(1),
            schema: "public".to_owned(),
            name: "t".to_owned(),
            columns: vec![
                column("v", Type::Text),
                column("b", Type::Integer),
                column("a", Type::Integer),
            ],
            kind: RelationKind::Table { key: vec![2, 1] },
            constraints: vec![],
            storage: None,
            comment: None,
        }
    }

    fn looked_up(filters: &[Expr]) -> Option<Vec<Vec<i32>>> {
        let keys = keys(filters, &relation())?;
        let columns = keys.columns().iter();
        let columns: Vec<&Int32Array> = columns.map(|c| c.as_primitive::<Int32Type>()).collect();
        let row = |row| columns.iter().map(|column| column.value(row)).collect();
        Some((0..keys.num_rows()).map(row).collect())
    }

    #[test]
    fn keys_are_leading_columns_of_the_primary_key() {
        let (a, b) = (|| col("t.a"), || col("t.b"));
        assert_eq!(looked_up(&[a().eq(lit(1))]), Some(vec![vec![1]]));
        assert_eq!(looked_up(&[lit(1).eq(a())]), Some(vec![vec![1]]));
        assert_eq!(looked_up(&[b().eq(lit(2)), a().eq(lit(1))]), Some(vec![vec![1, 2]]));
        assert_eq!(looked_up(&[b().eq(lit(2))]), None, "not the first column");
        assert_eq!(looked_up(&[a().gt(lit(1))]), None, "no equality");
        assert_eq!(looked_up(&[a().eq(lit(1_i64))]), None, "another type");
        assert_eq!(
            looked_up(&[a().eq(lit(1)).or(a().eq(lit(3))).or(a().eq(lit(1)))]),
            Some(vec![vec![1], vec![3]]),
            "each key once"
        );
        assert_eq!(looked_up(&[a().eq(lit(1)).or(b().eq(lit(3)))]), None, "either column");
        assert_eq!(
            looked_up(&[a().in_list(vec![lit(1), lit(2)], false), b().eq(lit(5))]),
            Some(vec![vec![1, 5], vec![2, 5]])
        );
        assert_eq!(looked_up(&[a().in_list(vec![lit(1)], true)]), None, "NOT IN");
    }

    #[test]
    fn conditions_read_stored_columns() {
        // Stored: a, b, v.
        let found = condition(&col("t.v").eq(lit("x")).and(col("t.a").is_null()), &relation());
        let mut columns = BTreeSet::new();
        found.expect("hosts can compare").columns(&mut |column| {
            columns.insert(column);
        });
        assert_eq!(columns, BTreeSet::from([0, 2]));
        let found = condition(&col("t.b").lt(lit(7)), &relation());
        assert_eq!(
            found,
            Some(Expression::Binary {
                operator: BinaryOperator::Less,
                left: Box::new(Expression::Column(1)),
                right: Box::new(Expression::Literal(Literal::Int32(7))),
            })
        );
    }

    #[test]
    fn what_may_fail_stays_in_the_query() {
        assert_eq!(condition(&(lit(1) / col("t.b")).gt(lit(0)), &relation()), None);
        assert_eq!(condition(&(-col("t.b")).gt(lit(0)), &relation()), None);
    }
}
