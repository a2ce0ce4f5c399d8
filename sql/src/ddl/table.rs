//! CREATE TABLE.

use std::collections::BTreeSet;

use datafusion::sql::sqlparser::ast::{
    ColumnDef, ColumnOption, CreateTable, CreateTableOptions, Expr, HiveDistributionStyle,
    IndexColumn, TableConstraint,
};
use stillframe_protocol::RelationId;

use super::{Edit, already_exists, default, skipped, target};
use crate::query::QueryContext;
use crate::{Column, Error, Relation, RelationKind, SqlState, Type, names};

/// How many columns a relation may have, as in PostgreSQL.
pub(super) const COLUMNS_MAX: usize = 1600;

/// Adds a table.
pub(super) fn create(context: &QueryContext, create: &CreateTable) -> Result<Edit, Error> {
    refuse(create)?;
    let catalog = &context.catalog;
    let (schema, name) = target(catalog, &context.settings, &create.name)?;
    if catalog.find(&schema, &name).is_some() {
        return match create.if_not_exists {
            true => Ok(Edit::Nothing(skipped(&name))),
            false => Err(already_exists(&name)),
        };
    }
    let (columns, key) = columns(context, &name, create)?;
    let mut catalog = (**catalog).clone();
    let id = RelationId(catalog.allocate());
    let kind = RelationKind::Table { key };
    catalog.relations.insert(id, Relation { id, schema, name, columns, kind, comment: None });
    Ok(Edit::changed(catalog))
}

/// What we don't have is refused by name; nothing is passed over silently.
fn refuse(create: &CreateTable) -> Result<(), Error> {
    let refused = [
        (create.temporary, "CREATE TEMPORARY TABLE"),
        (create.external, "CREATE EXTERNAL TABLE"),
        (create.or_replace, "CREATE OR REPLACE TABLE"),
        (create.query.is_some(), "CREATE TABLE AS"),
        (create.like.is_some(), "CREATE TABLE ... LIKE"),
        (create.inherits.is_some(), "INHERITS"),
        (create.partition_by.is_some() || create.partition_of.is_some(), "partitioning"),
        (create.on_commit.is_some(), "ON COMMIT"),
        (create.table_options != CreateTableOptions::None, "a storage parameter"),
        (
            create.dynamic
                || create.global.is_some()
                || create.transient
                || create.volatile
                || create.iceberg
                || create.snapshot
                || create.hive_distribution != HiveDistributionStyle::NONE
                || create.file_format.is_some()
                || create.location.is_some()
                || create.without_rowid
                || create.clone.is_some()
                || create.comment.is_some()
                || create.on_cluster.is_some()
                || create.primary_key.is_some()
                || create.order_by.is_some()
                || create.cluster_by.is_some()
                || create.clustered_by.is_some()
                || create.strict,
            "this form of CREATE TABLE",
        ),
    ];
    match refused.into_iter().find(|(present, _)| *present) {
        Some((_, what)) => Err(Error::unsupported(what)),
        None => Ok(()),
    }
}

/// The columns, and the places of those of the primary key.
fn columns(
    context: &QueryContext,
    table: &str,
    create: &CreateTable,
) -> Result<(Vec<Column>, Vec<usize>), Error> {
    let mut columns: Vec<Column> = vec![];
    let mut seen = BTreeSet::new();
    let mut keys: Vec<Vec<usize>> = vec![];
    for (place, definition) in create.columns.iter().enumerate() {
        let (column, is_key) = column(context, definition)?;
        if !seen.insert(column.name.clone()) {
            let message = format!("column \"{}\" specified more than once", column.name);
            return Err(Error::new(SqlState::DUPLICATE_COLUMN, message));
        }
        if is_key {
            keys.push(vec![place]);
        }
        columns.push(column);
    }
    if columns.len() > COLUMNS_MAX {
        let message = format!("tables can have at most {COLUMNS_MAX} columns");
        return Err(Error::new(SqlState::TOO_MANY_COLUMNS, message));
    }
    if columns.is_empty() {
        return Err(Error::unsupported("a table without columns"));
    }
    for constraint in &create.constraints {
        match constraint {
            TableConstraint::PrimaryKey(key) => keys.push(key_places(&columns, &key.columns)?),
            TableConstraint::Unique(_) => return Err(Error::unsupported("UNIQUE")),
            TableConstraint::ForeignKey(_) => return Err(Error::unsupported("FOREIGN KEY")),
            TableConstraint::Check(_) => return Err(Error::unsupported("CHECK")),
            other => return Err(Error::unsupported(format!("the constraint {other}"))),
        }
    }
    if keys.len() > 1 {
        let message = format!("multiple primary keys for table \"{table}\" are not allowed");
        return Err(Error::new(SqlState::INVALID_TABLE_DEFINITION, message));
    }
    let key = keys.pop().unwrap_or_default();
    for place in &key {
        check_key(&columns[*place].kind)?;
        columns[*place].not_null = true;
    }
    Ok((columns, key))
}

/// Refuses types whose equal values can differ: a key's rows are found by their bytes.
fn check_key(kind: &Type) -> Result<(), Error> {
    match kind {
        Type::Interval | Type::Jsonb => {
            Err(Error::unsupported(format!("a primary key of type {kind}")))
        }
        Type::Json => {
            let message =
                "data type json has no default operator class for access method \"btree\"";
            Err(Error::new(SqlState::UNDEFINED_OBJECT, message))
        }
        _ => Ok(()),
    }
}

/// A column, and whether it is the primary key by itself.
fn column(context: &QueryContext, definition: &ColumnDef) -> Result<(Column, bool), Error> {
    let kind = Type::of_column(&definition.data_type)?;
    let mut column = Column::new(names::fold(&definition.name), kind);
    let mut is_key = false;
    let mut is_null = false;
    for option in &definition.options {
        match &option.option {
            ColumnOption::Null => is_null = true,
            ColumnOption::NotNull => column.not_null = true,
            ColumnOption::PrimaryKey(_) => is_key = true,
            ColumnOption::Unique(_) => return Err(Error::unsupported("UNIQUE")),
            ColumnOption::ForeignKey(_) => return Err(Error::unsupported("FOREIGN KEY")),
            ColumnOption::Check(_) => return Err(Error::unsupported("CHECK")),
            ColumnOption::Default(expr) => {
                column.default = default::text(context, &column, expr)?;
            }
            ColumnOption::Generated { .. } => {
                return Err(Error::unsupported("a generated column"));
            }
            ColumnOption::Collation(_) => return Err(Error::unsupported("COLLATE")),
            other => return Err(Error::unsupported(format!("the column option {other}"))),
        }
    }
    if is_null && (column.not_null || is_key) {
        let message =
            format!("conflicting NULL/NOT NULL declarations for column \"{}\"", column.name);
        return Err(Error::new(SqlState::SYNTAX_ERROR, message));
    }
    Ok((column, is_key))
}

fn key_places(columns: &[Column], key: &[IndexColumn]) -> Result<Vec<usize>, Error> {
    let mut places = vec![];
    for part in key {
        let Expr::Identifier(identifier) = &part.column.expr else {
            return Err(Error::unsupported("an expression in a primary key"));
        };
        let name = names::fold(identifier);
        let place = columns.iter().position(|column| column.name == name).ok_or_else(|| {
            let message = format!("column \"{name}\" named in key does not exist");
            Error::new(SqlState::UNDEFINED_COLUMN, message)
        })?;
        if places.contains(&place) {
            let message = format!("column \"{name}\" appears twice in primary key constraint");
            return Err(Error::new(SqlState::DUPLICATE_COLUMN, message));
        }
        places.push(place);
    }
    Ok(places)
}
