//! Which columns constraints are about, and what refers to what.

use super::{Row, named, of_constraint, yes_or_no};
use crate::system::functions::expression;
use crate::system::pg_catalog;
use crate::system::table::Cell;
use crate::{Action, Catalog, Constraint, ConstraintKind, DATABASE_NAME, Relation, Sequence};

/// `key_column_usage`.
pub(super) fn key_columns(catalog: &Catalog) -> Vec<Row> {
    let rows = pg_catalog::all_constraints(catalog).flat_map(|(relation, constraint)| {
        let parent = match &constraint.kind {
            ConstraintKind::ForeignKey { parent, parent_columns, .. } => {
                catalog.relations.get(parent).map(|parent| (parent, parent_columns))
            }
            _ => None,
        };
        let columns = columns(relation, constraint).iter().enumerate();
        columns.map(move |(place, column)| {
            let mut row = of_constraint(relation, constraint.name.clone());
            row.extend(named(relation));
            row.push(("column_name", relation.columns[*column].name.as_str().into()));
            row.push(("ordinal_position", Cell::Integer(place as i64 + 1)));
            if let Some((parent, parent_columns)) = parent {
                let key = key_of(parent, parent_columns);
                let meant = parent_columns
                    .get(place)
                    .and_then(|column| key.iter().position(|known| known == column));
                row.push((
                    "position_in_unique_constraint",
                    meant.map(|place| place as i64 + 1).into(),
                ));
            }
            row
        })
    });
    rows.collect()
}

/// `constraint_column_usage`: what a foreign key is about are the columns of its parent.
pub(super) fn used_columns(catalog: &Catalog) -> Vec<Row> {
    let rows = pg_catalog::all_constraints(catalog).flat_map(|(relation, constraint)| {
        let (about, places) = match &constraint.kind {
            ConstraintKind::ForeignKey { parent, parent_columns, .. } => {
                (catalog.relations.get(parent), parent_columns.clone())
            }
            ConstraintKind::Check { expression } => {
                (Some(relation), expression::columns(expression, relation))
            }
            _ => (Some(relation), columns(relation, constraint).to_vec()),
        };
        let rows = about.into_iter().flat_map(move |about| {
            places.clone().into_iter().map(move |place| {
                let mut row = of_constraint(relation, constraint.name.clone());
                row.extend(named(about));
                row.push(("column_name", about.columns[place].name.as_str().into()));
                row
            })
        });
        rows.collect::<Vec<_>>()
    });
    rows.collect()
}

/// `referential_constraints`.
pub(super) fn references(catalog: &Catalog) -> Vec<Row> {
    let rows = pg_catalog::all_constraints(catalog).filter_map(|(relation, constraint)| {
        let ConstraintKind::ForeignKey { parent, parent_columns, on_delete, on_update, .. } =
            &constraint.kind
        else {
            return None;
        };
        let parent = catalog.relations.get(parent)?;
        let unique = parent.constraints.iter().find(|found| match &found.kind {
            ConstraintKind::PrimaryKey => same(parent.key(), parent_columns),
            ConstraintKind::Unique { columns, .. } => same(columns, parent_columns),
            _ => false,
        });
        let mut row = of_constraint(relation, constraint.name.clone());
        row.extend([
            ("unique_constraint_catalog", DATABASE_NAME.into()),
            ("unique_constraint_schema", parent.schema.as_str().into()),
            ("unique_constraint_name", unique.map(|found| found.name.as_str()).into()),
            ("match_option", "NONE".into()),
            ("update_rule", rule(*on_update).into()),
            ("delete_rule", rule(*on_delete).into()),
        ]);
        Some(row)
    });
    rows.collect()
}

/// `sequences`.
pub(super) fn sequences(catalog: &Catalog) -> Vec<Row> {
    let row = |sequence: &Sequence| {
        let bits = match sequence.kind {
            crate::Type::SmallInt => 16,
            crate::Type::Integer => 32,
            _ => 64,
        };
        vec![
            ("sequence_catalog", DATABASE_NAME.into()),
            ("sequence_schema", sequence.schema.as_str().into()),
            ("sequence_name", sequence.name.as_str().into()),
            ("data_type", sequence.kind.to_string().into()),
            ("numeric_precision", Cell::Integer(bits)),
            ("numeric_precision_radix", Cell::Integer(2)),
            ("numeric_scale", Cell::Integer(0)),
            ("start_value", sequence.start.to_string().into()),
            ("minimum_value", sequence.min.to_string().into()),
            ("maximum_value", sequence.max.to_string().into()),
            ("increment", sequence.increment.to_string().into()),
            ("cycle_option", yes_or_no(sequence.cycle)),
        ]
    };
    catalog.sequences.values().map(row).collect()
}

fn columns<'a>(relation: &'a Relation, constraint: &'a Constraint) -> &'a [usize] {
    match &constraint.kind {
        ConstraintKind::PrimaryKey => relation.key(),
        ConstraintKind::Unique { columns, .. } | ConstraintKind::ForeignKey { columns, .. } => {
            columns
        }
        ConstraintKind::Check { .. } | ConstraintKind::Index { .. } => &[],
    }
}

/// The key of a parent that a foreign key means, in its own order.
fn key_of<'a>(parent: &'a Relation, columns: &[usize]) -> &'a [usize] {
    let uniques = parent.constraints.iter().filter_map(|constraint| match &constraint.kind {
        ConstraintKind::Unique { columns, .. } => Some(columns.as_slice()),
        _ => None,
    });
    let mut keys = std::iter::once(parent.key()).chain(uniques);
    keys.find(|key| same(key, columns)).unwrap_or_default()
}

fn same(left: &[usize], right: &[usize]) -> bool {
    left.len() == right.len() && left.iter().all(|place| right.contains(place))
}

fn rule(action: Action) -> &'static str {
    match action {
        Action::NoAction => "NO ACTION",
        Action::Restrict => "RESTRICT",
        Action::Cascade => "CASCADE",
        Action::SetNull => "SET NULL",
        Action::SetDefault => "SET DEFAULT",
    }
}
