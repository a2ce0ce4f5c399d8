//! What a subquery takes from the rows around it.
//!
//! A subquery is compiled once for all rows around it: its rows are computed for each distinct list
//! of values that they have in the columns it takes, and carry that list in columns of their own
//! (after Neumann and Kemper, "Unnesting Arbitrary Queries", 2015). What doesn't read the values is
//! compiled as if it stood alone.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, TableReference};
use datafusion::logical_expr::{Expr, LogicalPlan};
use stillframe_protocol::{Expression, Plan};

use super::{Compiler, Rows, build};
use crate::Error;
use crate::expression::convert;
use crate::query::{Apply, classify};

/// The qualifier of the values as columns.
const AROUND: &str = "stillframe around";

/// The columns that a subquery takes, and the values there are.
pub(super) struct Around {
    pub(super) columns: Vec<Column>,
    /// Each distinct list of values once; none where nothing is taken.
    pub(super) domain: Option<Arc<Plan>>,
}

impl Around {
    /// That of a query that stands alone.
    pub(super) fn nothing() -> Self {
        Self { columns: vec![], domain: None }
    }

    fn place(&self, column: &Column) -> Option<usize> {
        self.columns.iter().position(|known| known == column)
    }

    /// Whether an expression reads one of the values.
    pub(super) fn is_read_by(&self, expr: &Expr) -> bool {
        let is_read = expr.exists(|expr| {
            Ok(match expr {
                Expr::OuterReferenceColumn(_, column) => self.place(column).is_some(),
                _ => false,
            })
        });
        is_read.unwrap_or(true)
    }

    /// Whether a plan or a subquery in it reads one of the values.
    pub(super) fn is_read_in(&self, plan: &LogicalPlan) -> Result<bool, Error> {
        let mut is_read = false;
        plan.apply_with_subqueries(|node| {
            node.apply_expressions(|expr| {
                is_read |= self.is_read_by(expr);
                Ok(TreeNodeRecursion::Continue)
            })?;
            if let LogicalPlan::Extension(extension) = node
                && let Some(apply) = extension.node.as_any().downcast_ref::<Apply>()
            {
                is_read |= self.is_read_in(&apply.subquery)?;
            }
            Ok(if is_read { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
        .map_err(classify)?;
        Ok(is_read)
    }

    /// An expression over the columns of `schema`, and over the values, whose places `place` tells.
    pub(super) fn convert(
        &self,
        expr: &Expr,
        schema: &DFSchema,
        place: &dyn Fn(usize) -> usize,
    ) -> Result<Expression, Error> {
        if !self.is_read_by(expr) {
            return Ok(convert(expr, schema)?);
        }
        let width = schema.fields().len();
        let mut read: Vec<(usize, FieldRef)> = vec![];
        let expr = expr.clone().transform_up(|expr| {
            let Expr::OuterReferenceColumn(field, column) = &expr else {
                return Ok(Transformed::no(expr));
            };
            let Some(place) = self.place(column) else { return Ok(Transformed::no(expr)) };
            if !read.iter().any(|(known, _)| *known == place) {
                read.push((place, Arc::clone(field)));
            }
            let column = Column::new(Some(TableReference::bare(AROUND)), place.to_string());
            Ok(Transformed::yes(Expr::Column(column)))
        });
        let expr = expr.map_err(classify)?.data;
        let own = schema.iter().map(|(qualifier, field)| (qualifier.cloned(), Arc::clone(field)));
        let values = read.iter().map(|(place, field)| {
            let field = field.as_ref().clone().with_name(place.to_string());
            (Some(TableReference::bare(AROUND)), Arc::new(field))
        });
        let fields = own.chain(values).collect();
        let extended = DFSchema::new_with_metadata(fields, schema.as_arrow().metadata().clone());
        let mut converted = convert(&expr, &extended.map_err(classify)?)?;
        build::replace_columns(&mut converted, &|column| {
            Expression::Column(match column.checked_sub(width) {
                None => column,
                Some(value) => place(read[value].0),
            })
        });
        Ok(converted)
    }
}

/// What an expression over rows may read: the columns of the logical plan below, and the values from
/// around, which stand after them.
pub(super) struct Below<'a> {
    pub(super) schema: &'a DFSchema,
    pub(super) around: &'a Around,
    pub(super) width: usize,
    /// How many values; none where rows don't depend on them.
    pub(super) values: usize,
}

impl Below<'_> {
    pub(super) fn convert(&self, expr: &Expr) -> Result<Expression, Error> {
        self.around.convert(expr, self.schema, &|place| self.width + place)
    }

    /// Where the values from around are.
    pub(super) fn values(&self) -> std::ops::Range<usize> {
        self.width..self.width + self.values
    }

    /// The same for rows that are as many others and don't depend on anything.
    pub(super) fn alone(&self) -> Self {
        Self { values: 0, ..*self }
    }
}

impl Compiler<'_> {
    /// The values from around as columns of a projection over rows; none if rows have none.
    pub(super) fn values_from_around(&self, rows: &Rows) -> Vec<build::Column> {
        if !rows.depends {
            return vec![];
        }
        let schema = rows.plan.schema();
        let places = rows.width..rows.width + self.around.columns.len();
        let column = |place| {
            let data_type: DataType = schema.field(place).data_type().clone();
            build::Column::new("around", Expression::Column(place), data_type)
        };
        places.map(column).collect()
    }

    /// The rows for each list of values from around.
    pub(super) fn depending(&self, rows: Rows) -> Result<Rows, Error> {
        match &self.around.domain {
            Some(_) if !rows.depends => self.depending_where(rows, vec![], None),
            _ => Ok(rows),
        }
    }
}
