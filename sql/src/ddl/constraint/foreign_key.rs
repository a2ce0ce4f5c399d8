//! FOREIGN KEY: which table's which key it refers to.

use datafusion::sql::sqlparser::ast::{
    ConstraintReferenceMatchKind, ForeignKeyConstraint, ReferentialAction,
};

use super::{Definer, same_columns};
use crate::{Action, ConstraintKind, Error, Relation, RelationKind, SqlState, Type, names};

/// What a foreign key of some columns says.
pub(super) fn kind(
    definer: &Definer<'_>,
    columns: Vec<usize>,
    key: &ForeignKeyConstraint,
) -> Result<ConstraintKind, Error> {
    match key.match_kind {
        None | Some(ConstraintReferenceMatchKind::Simple) => {}
        Some(ConstraintReferenceMatchKind::Full) if columns.len() == 1 => {}
        Some(ConstraintReferenceMatchKind::Full) => {
            return Err(Error::unsupported("MATCH FULL of several columns"));
        }
        Some(ConstraintReferenceMatchKind::Partial) => {
            return Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "MATCH PARTIAL not yet implemented",
            ));
        }
    }
    let own = &definer.relation;
    let (schema, name) = names::relation(&key.foreign_table)?;
    let is_own = name == own.name && schema.as_ref().is_none_or(|schema| *schema == own.schema);
    let parent = if is_own { own } else { definer.context.relation(&key.foreign_table)? };
    let RelationKind::Table { key: primary } = &parent.kind else {
        let message = format!("referenced relation \"{}\" is not a table", parent.name);
        return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
    };
    let parent_columns = match key.referred_columns.as_slice() {
        [] if primary.is_empty() => {
            let message =
                format!("there is no primary key for referenced table \"{}\"", parent.name);
            return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
        }
        [] => primary.clone(),
        named => {
            let place = |name: &String| {
                parent.columns.iter().position(|column| column.name == *name).ok_or_else(|| {
                    let message = format!(
                        "column \"{name}\" referenced in foreign key constraint does not exist"
                    );
                    Error::new(SqlState::UNDEFINED_COLUMN, message)
                })
            };
            let named: Vec<_> = named.iter().map(names::fold).collect();
            let places = named.iter().map(place).collect::<Result<Vec<_>, _>>()?;
            check_key(parent, primary, &places)?;
            places
        }
    };
    if parent_columns.len() != columns.len() {
        let message = "number of referencing and referenced columns for foreign key disagree";
        return Err(Error::new(SqlState::INVALID_FOREIGN_KEY, message));
    }
    check_types(definer, key, parent, &columns, &parent_columns)?;
    Ok(ConstraintKind::ForeignKey {
        columns,
        parent: parent.id,
        parent_columns,
        on_delete: action(key.on_delete),
        on_update: action(key.on_update),
    })
}

fn action(action: Option<ReferentialAction>) -> Action {
    match action {
        None | Some(ReferentialAction::NoAction) => Action::NoAction,
        Some(ReferentialAction::Restrict) => Action::Restrict,
        Some(ReferentialAction::Cascade) => Action::Cascade,
        Some(ReferentialAction::SetNull) => Action::SetNull,
        Some(ReferentialAction::SetDefault) => Action::SetDefault,
    }
}

/// The columns must be a key of the parent.
fn check_key(parent: &Relation, primary: &[usize], columns: &[usize]) -> Result<(), Error> {
    let is_unique = parent.constraints.iter().any(|constraint| match &constraint.kind {
        ConstraintKind::Unique { columns: unique, .. } => same_columns(unique, columns),
        _ => false,
    });
    if is_unique || same_columns(primary, columns) {
        return Ok(());
    }
    let message = format!(
        "there is no unique constraint matching given keys for referenced table \"{}\"",
        parent.name
    );
    Err(Error::new(SqlState::INVALID_FOREIGN_KEY, message))
}

/// Values of the columns must be comparable, so that equal ones are the same bytes once they are of
/// one type.
fn check_types(
    definer: &Definer<'_>,
    key: &ForeignKeyConstraint,
    parent: &Relation,
    columns: &[usize],
    parent_columns: &[usize],
) -> Result<(), Error> {
    let is_integer = |kind: &Type| matches!(kind, Type::SmallInt | Type::Integer | Type::BigInt);
    let is_text = |kind: &Type| matches!(kind, Type::Text | Type::Varchar(_));
    for (place, parent_place) in columns.iter().zip(parent_columns) {
        let (own, other) = (&definer.relation.columns[*place], &parent.columns[*parent_place]);
        let (left, right) = (&own.kind, &other.kind);
        let fits = left == right
            || (is_integer(left) && is_integer(right))
            || (is_text(left) && is_text(right));
        if fits {
            continue;
        }
        let name = definer.constraint_name(key.name.as_ref(), columns, "fkey")?;
        let are_numbers = |kind: &Type| {
            is_integer(kind) || matches!(kind, Type::Numeric(_) | Type::Real | Type::Double)
        };
        if are_numbers(left) && are_numbers(right) {
            return Err(Error::unsupported(format!(
                "a foreign key between the types {left} and {right}"
            )));
        }
        let message = format!("foreign key constraint \"{name}\" cannot be implemented");
        let detail = format!(
            "Key columns \"{}\" and \"{}\" are of incompatible types: {left} and {right}.",
            own.name, other.name
        );
        return Err(Error::new(SqlState::DATATYPE_MISMATCH, message).with_detail(detail));
    }
    Ok(())
}
