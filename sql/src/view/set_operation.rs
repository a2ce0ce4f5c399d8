//! INTERSECT ALL and EXCEPT ALL.
//!
//! DataFusion plans them as semijoins, which they aren't: how often a row comes out depends on how
//! often both sides have it. So they become nodes of their own before any rule sees them. Without
//! ALL the left side is distinct, and the semijoin is right.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchemaRef, Result};
use datafusion::logical_expr::{
    Expr, Extension, JoinType, LogicalPlan, UserDefinedLogicalNodeCore,
};
use stillframe_protocol::{
    Aggregate, AggregateFunction, BinaryOperator, Expression, Literal, Plan,
};

use super::{Compiler, Rows, build};
use crate::Error;
use crate::functions::is_of_all_rows;

/// INTERSECT ALL or EXCEPT ALL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SetOperation {
    left: LogicalPlan,
    right: LogicalPlan,
    is_except: bool,
    schema: DFSchemaRef,
}

/// A plan with nodes in the place of what DataFusion plans wrongly.
pub(super) fn marked(plan: LogicalPlan) -> Result<LogicalPlan> {
    let marked = plan.transform_up(|plan| {
        let LogicalPlan::Join(join) = plan else { return Ok(Transformed::no(plan)) };
        if !is_of_all_rows(&join) {
            return Ok(Transformed::no(LogicalPlan::Join(join)));
        }
        let operation = SetOperation {
            schema: Arc::clone(join.left.schema()),
            left: Arc::unwrap_or_clone(join.left),
            right: Arc::unwrap_or_clone(join.right),
            is_except: join.join_type == JoinType::LeftAnti,
        };
        let node = Arc::new(operation);
        Ok(Transformed::yes(LogicalPlan::Extension(Extension { node })))
    });
    Ok(marked?.data)
}

impl PartialOrd for SetOperation {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match self.left.partial_cmp(&other.left) {
            Some(Ordering::Equal) => self.right.partial_cmp(&other.right),
            different => different,
        }
    }
}

impl UserDefinedLogicalNodeCore for SetOperation {
    fn name(&self) -> &str {
        if self.is_except { "ExceptAll" } else { "IntersectAll" }
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.left, &self.right]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        vec![]
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let [left, right] = <[_; 2]>::try_from(inputs)
            .map_err(|_| Error::internal("a set operation has two inputs"))?;
        Ok(Self { left, right, ..self.clone() })
    }
}

impl Compiler<'_> {
    /// Counts each distinct row on both sides, and repeats it as often as the counts say.
    pub(super) fn set_operation(&self, operation: &SetOperation) -> Result<Rows, Error> {
        let mut left = self.rows(&operation.left)?;
        let mut right = self.rows(&operation.right)?;
        let depends = left.depends || right.depends;
        if depends {
            left = self.depending(left)?;
            right = self.depending(right)?;
        }
        let width = left.width;
        let like = left.plan.schema();
        let columns = like.fields().len();
        build::keys(&left.plan, 0..columns, "INTERSECT or EXCEPT")?;
        let marks = |is_left: bool| {
            let mark = move |is_own: bool| match is_own {
                true => Expression::Literal(Literal::Boolean(true)),
                false => Expression::Literal(Literal::Null(DataType::Boolean)),
            };
            [mark(is_left), mark(!is_left)]
                .map(|mark| build::Column::new("mark", mark, DataType::Boolean))
        };
        let side = |rows: Rows, is_left: bool| {
            let own = rows.plan.schema();
            let columns = own.fields().iter().zip(like.fields()).enumerate();
            let columns = columns.map(|(place, (from, to))| {
                let column = Expression::Column(place);
                let column = build::cast(column, from.data_type(), to.data_type());
                build::Column::new(to.name(), column, to.data_type().clone())
            });
            build::project(rows.plan, columns.chain(marks(is_left)).collect())
        };
        let inputs = vec![side(left, true), side(right, false)];
        let schema = inputs[0].schema();
        let both = Arc::new(Plan::UnionAll { inputs, schema });

        let count =
            |argument| Aggregate { function: AggregateFunction::Count, argument: Some(argument) };
        let counted = like.fields().iter().map(|f| (f.name().as_str(), f.data_type().clone()));
        let counted = counted.chain([("left", DataType::Int64), ("right", DataType::Int64)]);
        let counted = Arc::new(Plan::Aggregate {
            input: both,
            groups: (0..columns).collect(),
            aggregates: vec![count(columns), count(columns + 1)],
            schema: build::schema(counted),
        });
        let [left, right] = [columns, columns + 1].map(Expression::Column);
        let binary = |operator| Expression::Binary {
            operator,
            left: Box::new(left.clone()),
            right: Box::new(right.clone()),
        };
        let times = match operation.is_except {
            true => binary(BinaryOperator::Subtract),
            false => Expression::Case {
                operand: None,
                branches: vec![(binary(BinaryOperator::Less), left.clone())],
                otherwise: Some(Box::new(right.clone())),
            },
        };
        let repeated = build::repeated(counted, times);
        let plan = build::pick(repeated, &(0..columns).collect::<Vec<_>>());
        Ok(Rows { plan, width, depends })
    }
}
