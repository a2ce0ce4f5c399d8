//! Tables and views that are read.

use std::sync::Arc;

use datafusion::common::DFSchema;
use datafusion::datasource::cte_worktable::CteWorkTable;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, TableScan};
use stillframe_protocol::{Expression, Plan};

use super::{Compiler, Rows, build, refused};
use crate::Error;
use crate::query::classify;
use crate::scan::StoredTable;

impl Compiler<'_> {
    pub(super) fn table_scan(&self, scan: &TableScan) -> Result<Rows, Error> {
        let provider = source_as_provider(&scan.source).map_err(classify)?;
        let provider = provider.as_ref() as &dyn std::any::Any;
        if let Some(itself) = provider.downcast_ref::<CteWorkTable>() {
            return self.last_iteration(itself.name(), scan);
        }
        let Some(table) = provider.downcast_ref::<StoredTable>() else {
            return Err(refused(format!("the relation {}", scan.table_name)));
        };
        if scan.fetch.is_some() {
            return Err(refused("LIMIT or OFFSET"));
        }
        let relation = table.relation();
        let schema = relation.stored_schema();
        let stored = relation.stored_order();
        let input =
            Arc::new(Plan::Relation { id: relation.stored_id(), schema: Arc::clone(&schema) });
        let defined = |place: usize| {
            let at = stored.iter().position(|p| *p == place).expect("every column is stored");
            let column = &relation.columns[place];
            build::Column::new(&column.name, Expression::Column(at), column.kind.arrow())
        };
        let kept = scan.projection.clone().unwrap_or_else(|| (0..stored.len()).collect());
        if scan.filters.is_empty() {
            let mut columns: Vec<_> = kept.iter().map(|place| defined(*place)).collect();
            if columns.is_empty() {
                columns.push(build::Column::nothing());
            }
            let plan = build::project(input, columns);
            return Ok(Rows { plan, width: kept.len(), depends: false });
        }
        let names = DFSchema::try_from(relation.defined_schema()).map_err(classify)?;
        let all = build::project(input, (0..stored.len()).map(defined).collect());
        let all = Rows { plan: all, width: stored.len(), depends: false };
        let filters: Vec<_> = scan.filters.iter().map(unqualified).collect();
        let rows = self.filtered(all, &names, &filters.iter().collect::<Vec<_>>())?;
        let around = rows.width..rows.width + self.values_from_around(&rows).len();
        let places: Vec<_> = kept.iter().copied().chain(around).collect();
        let plan = build::pick(rows.plan, &places);
        Ok(Rows { plan, width: kept.len(), depends: rows.depends })
    }
}

/// A filter of a scan, over the bare names of the relation's columns.
fn unqualified(filter: &Expr) -> Expr {
    datafusion::logical_expr::expr_rewriter::unnormalize_col(filter.clone())
}
