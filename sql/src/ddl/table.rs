//! CREATE TABLE.

use std::collections::BTreeSet;

use datafusion::sql::sqlparser::ast::{
    ColumnDef, ColumnOption, ColumnOptionDef, CreateTable, CreateTableOptions, GeneratedAs,
    HiveDistributionStyle,
};
use stillframe_protocol::RelationId;

use super::constraint::{Definer, generated, is_relation_name};
use super::{Edit, already_exists, default, sequence, skipped, storage, target};
use crate::query::QueryContext;
use crate::types::second_digits;
use crate::{
    Column, ConstraintKind, Error, Generated, Relation, RelationKind, SqlState, Type, names,
};

/// How many columns a relation may have, as in PostgreSQL.
pub(super) const COLUMNS_MAX: usize = 1600;

/// Adds a table.
pub(super) fn create(context: &QueryContext, create: &CreateTable) -> Result<Edit, Error> {
    refuse(create)?;
    let catalog = &context.catalog;
    let (schema, name) = target(catalog, &context.settings, &create.name)?;
    if is_relation_name(catalog, &schema, &name) {
        return match create.if_not_exists {
            true => Ok(Edit::Nothing(skipped(&name))),
            false => Err(already_exists(&name)),
        };
    }
    let mut catalog = (**catalog).clone();
    let id = RelationId(catalog.allocate());
    let kind = RelationKind::Table { key: vec![] };
    let columns = columns(context, create)?;
    let relation = Relation {
        id,
        schema,
        name,
        columns,
        kind,
        storage: None,
        constraints: vec![],
        comment: None,
    };
    let mut definer = Definer { context, catalog: &mut catalog, relation };
    for (place, definition) in create.columns.iter().enumerate() {
        sequence_of(&mut definer, place, definition)?;
        constraints_of(&mut definer, place, definition)?;
    }
    for constraint in &create.constraints {
        definer.add(constraint)?;
    }
    let relation = definer.relation;
    let parents = parents(&relation);
    catalog.relations.insert(id, relation);
    Ok(Edit::Changed {
        catalog,
        locked: parents,
        notices: vec![],
        rewrites: vec![],
        checks: vec![],
    })
}

/// The tables whose rows those of a table refer to. Who writes them must know of it.
pub(super) fn parents(relation: &Relation) -> Vec<RelationId> {
    let parents = relation.constraints.iter().filter_map(|constraint| match &constraint.kind {
        ConstraintKind::ForeignKey { parent, .. } if *parent != relation.id => Some(*parent),
        _ => None,
    });
    parents.collect()
}

/// Adds the sequence that a serial or identity column has.
pub(super) fn sequence_of(
    definer: &mut Definer<'_>,
    place: usize,
    definition: &ColumnDef,
) -> Result<(), Error> {
    let is_serial = sequence::serial(&definition.data_type).is_some();
    let identity = definition.options.iter().find_map(|option| match &option.option {
        ColumnOption::Generated {
            generated_as, generation_expr: None, sequence_options, ..
        } => Some((*generated_as == GeneratedAs::Always, sequence_options)),
        _ => None,
    });
    let column = definer.relation.columns[place].clone();
    let (table, name) = (definer.relation.name.clone(), &column.name);
    if is_serial && column.default.is_some() {
        let message =
            format!("multiple default values specified for column \"{name}\" of table \"{table}\"");
        return Err(Error::new(SqlState::SYNTAX_ERROR, message));
    }
    if is_serial {
        let oid = sequence::of_column(definer.catalog, &definer.relation, place, &[])?;
        definer.relation.columns[place].default = Some(default::nextval(oid));
    }
    let Some((always, options)) = identity else { return Ok(()) };
    if definer.relation.columns[place].default.is_some() {
        let message = format!(
            "both default and identity specified for column \"{name}\" of table \"{table}\""
        );
        return Err(Error::new(SqlState::SYNTAX_ERROR, message));
    }
    if !matches!(column.kind, Type::SmallInt | Type::Integer | Type::BigInt) {
        let message = "identity column type must be smallint, integer, or bigint";
        return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    let options = options.as_deref().unwrap_or_default();
    let oid = sequence::of_column(definer.catalog, &definer.relation, place, options)?;
    definer.relation.columns[place].generated = Some(Generated::Identity { sequence: oid, always });
    Ok(())
}

/// Adds the constraints that a column's definition has.
pub(super) fn constraints_of(
    definer: &mut Definer<'_>,
    place: usize,
    definition: &ColumnDef,
) -> Result<(), Error> {
    for ColumnOptionDef { name, option } in &definition.options {
        let name = name.as_ref();
        match option {
            ColumnOption::PrimaryKey(_) => definer.primary_key(name, vec![place])?,
            ColumnOption::Unique(_) => definer.unique(name, vec![place], false)?,
            ColumnOption::ForeignKey(key) => definer.foreign_key(name, vec![place], key)?,
            ColumnOption::Check(check) => definer.check(name, check, Some(place))?,
            ColumnOption::Generated {
                generated_as: GeneratedAs::ExpStored | GeneratedAs::Always,
                generation_expr: Some(expr),
                ..
            } => {
                let (relation, context) = (&definer.relation, definer.context);
                let expression = generated(context, relation, &relation.columns[place], expr)?;
                let column = &mut definer.relation.columns[place];
                if column.default.is_some() {
                    let table = &definer.relation.name;
                    let message = format!(
                        "both default and generation expression specified for column \"{}\" of table \"{table}\"",
                        column.name
                    );
                    return Err(Error::new(SqlState::SYNTAX_ERROR, message));
                }
                column.generated = Some(Generated::Stored { expression });
            }
            _ => {}
        }
    }
    Ok(())
}

/// What we don't have is refused by name; nothing is passed over silently.
pub(super) fn refuse(create: &CreateTable) -> Result<(), Error> {
    let refused = [
        (create.temporary, "CREATE TEMPORARY TABLE"),
        (create.external, "CREATE EXTERNAL TABLE"),
        (create.or_replace, "CREATE OR REPLACE TABLE"),
        (create.like.is_some(), "CREATE TABLE ... LIKE"),
        (create.inherits.is_some(), "INHERITS"),
        (create.partition_by.is_some() || create.partition_of.is_some(), "partitioning"),
        (create.on_commit.is_some(), "ON COMMIT"),
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
        None => match &create.table_options {
            CreateTableOptions::None => Ok(()),
            CreateTableOptions::With(options) => storage::check(options),
            _ => Err(Error::unsupported("this form of CREATE TABLE")),
        },
    }
}

/// The columns.
fn columns(context: &QueryContext, create: &CreateTable) -> Result<Vec<Column>, Error> {
    let mut columns: Vec<Column> = vec![];
    let mut seen = BTreeSet::new();
    for definition in &create.columns {
        let column = column(context, definition)?;
        if !seen.insert(column.name.clone()) {
            let message = format!("column \"{}\" specified more than once", column.name);
            return Err(Error::new(SqlState::DUPLICATE_COLUMN, message));
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
    Ok(columns)
}

/// A column, without its constraints.
pub(super) fn column(context: &QueryContext, definition: &ColumnDef) -> Result<Column, Error> {
    let serial = sequence::serial(&definition.data_type);
    let is_serial = serial.is_some();
    let kind = match serial {
        Some(kind) => kind,
        None => Type::of_column(&definition.data_type)?,
    };
    let mut column = Column::new(names::fold(&definition.name), kind);
    column.not_null = is_serial;
    column.second_digits = second_digits(&definition.data_type);
    let mut is_key = false;
    let mut is_null = false;
    for option in &definition.options {
        match &option.option {
            ColumnOption::Null => is_null = true,
            ColumnOption::NotNull => column.not_null = true,
            ColumnOption::PrimaryKey(_) => is_key = true,
            ColumnOption::Unique(_)
            | ColumnOption::ForeignKey(_)
            | ColumnOption::Check(_)
            | ColumnOption::Generated { generation_expr: Some(_), .. } => {}
            ColumnOption::Default(_) if column.default.is_some() => {
                let message =
                    format!("multiple default values specified for column \"{}\"", column.name);
                return Err(Error::new(SqlState::SYNTAX_ERROR, message));
            }
            ColumnOption::Default(expr) => {
                column.default = default::text(context, &column, expr)?;
            }
            ColumnOption::Generated { .. } => column.not_null = true,
            ColumnOption::Collation(_) => return Err(Error::unsupported("COLLATE")),
            other => return Err(Error::unsupported(format!("the column option {other}"))),
        }
    }
    if is_null && (column.not_null || is_key) {
        let message =
            format!("conflicting NULL/NOT NULL declarations for column \"{}\"", column.name);
        return Err(Error::new(SqlState::SYNTAX_ERROR, message));
    }
    Ok(column)
}
