//! CREATE SEQUENCE, ALTER SEQUENCE, DROP SEQUENCE, and the sequences that columns have.

mod alter;

use datafusion::sql::sqlparser::ast::{
    self, DataType, Expr, ObjectName, SequenceOptions, UnaryOperator, Value,
};
use stillframe_protocol::RelationId;

pub(super) use alter::{alter, restart};

use super::constraint::{is_relation_name, object_name};
use super::{Edit, already_exists, skipped, target};
use crate::query::QueryContext;
use crate::session::Notice;
use crate::{Catalog, Error, Relation, Sequence, SqlState, Type, names};

/// Adds a sequence.
pub(super) fn create(context: &QueryContext, statement: &ast::Statement) -> Result<Edit, Error> {
    let ast::Statement::CreateSequence {
        temporary,
        if_not_exists,
        name,
        data_type,
        sequence_options,
        owned_by,
    } = statement
    else {
        return Err(Error::unsupported(statement));
    };
    if *temporary {
        return Err(Error::unsupported("CREATE TEMPORARY SEQUENCE"));
    }
    let catalog = &context.catalog;
    let (schema, name) = target(catalog, &context.settings, name)?;
    if is_relation_name(catalog, &schema, &name) {
        return match if_not_exists {
            true => Ok(Edit::Nothing(skipped(&name))),
            false => Err(already_exists(&name)),
        };
    }
    let mut sequence = defined(schema, name, data_type.as_ref(), sequence_options)?;
    sequence.owner = owned_by.as_ref().map(|column| owner(context, column)).transpose()?.flatten();
    let mut catalog = (**catalog).clone();
    let oid = catalog.allocate();
    catalog.sequences.insert(oid, sequence);
    Ok(Edit::changed(catalog))
}

/// The column that OWNED BY names; none for NONE.
fn owner(context: &QueryContext, name: &ObjectName) -> Result<Option<(RelationId, usize)>, Error> {
    let mut parts = name.0.clone();
    let Some(column) = parts.pop().and_then(|part| part.as_ident().map(names::fold)) else {
        return Err(Error::unsupported(name));
    };
    if parts.is_empty() && column == "none" {
        return Ok(None);
    }
    if parts.is_empty() {
        let message = "invalid OWNED BY option";
        return Err(Error::new(SqlState::SYNTAX_ERROR, message)
            .with_hint("Specify OWNED BY table.column or OWNED BY NONE."));
    }
    let relation = context.relation(&ObjectName(parts))?;
    let place = relation.columns.iter().position(|found| found.name == column);
    let place = place.ok_or_else(|| {
        let table = &relation.name;
        let message = format!("column \"{column}\" of relation \"{table}\" does not exist");
        Error::new(SqlState::UNDEFINED_COLUMN, message)
    })?;
    Ok(Some((relation.id, place)))
}

/// A sequence as its options have it.
fn defined(
    schema: String,
    name: String,
    data_type: Option<&DataType>,
    options: &[SequenceOptions],
) -> Result<Sequence, Error> {
    let kind = match data_type {
        None => Type::BigInt,
        Some(data_type) => Type::of_column(data_type)?,
    };
    of_type(schema, name, kind, options)
}

fn of_type(
    schema: String,
    name: String,
    kind: Type,
    options: &[SequenceOptions],
) -> Result<Sequence, Error> {
    let (least, greatest) = match kind {
        Type::SmallInt => (i64::from(i16::MIN), i64::from(i16::MAX)),
        Type::Integer => (i64::from(i32::MIN), i64::from(i32::MAX)),
        Type::BigInt => (i64::MIN, i64::MAX),
        _ => {
            return Err(invalid("sequence type must be smallint, integer, or bigint"));
        }
    };
    let (mut increment, mut min, mut max, mut start) = (1, None, None, None);
    let (mut cache, mut cycle) = (1, false);
    for option in options {
        match option {
            SequenceOptions::IncrementBy(value, _) => increment = number(value)?,
            SequenceOptions::MinValue(value) => min = value.as_ref().map(number).transpose()?,
            SequenceOptions::MaxValue(value) => max = value.as_ref().map(number).transpose()?,
            SequenceOptions::StartWith(value, _) => start = Some(number(value)?),
            SequenceOptions::Cache(value) => cache = number(value)?,
            // The parser's flag is set for NO CYCLE.
            SequenceOptions::Cycle(is_off) => cycle = !*is_off,
        }
    }
    if increment == 0 {
        return Err(invalid("INCREMENT must not be zero"));
    }
    let ascends = increment > 0;
    let min = min.unwrap_or(if ascends { 1 } else { least });
    let max = max.unwrap_or(if ascends { greatest } else { -1 });
    for (label, value) in [("MAXVALUE", max), ("MINVALUE", min)] {
        if !(least..=greatest).contains(&value) {
            let message =
                format!("{label} ({value}) is out of range for sequence data type {kind}");
            return Err(invalid(&message));
        }
    }
    if min >= max {
        return Err(invalid(&format!("MINVALUE ({min}) must be less than MAXVALUE ({max})")));
    }
    let start = start.unwrap_or(if ascends { min } else { max });
    if start < min {
        return Err(invalid(&format!(
            "START value ({start}) cannot be less than MINVALUE ({min})"
        )));
    }
    if start > max {
        let message = format!("START value ({start}) cannot be greater than MAXVALUE ({max})");
        return Err(invalid(&message));
    }
    if cache < 1 {
        return Err(invalid(&format!("CACHE ({cache}) must be greater than zero")));
    }
    Ok(Sequence { schema, name, kind, start, increment, min, max, cache, cycle, owner: None })
}

fn invalid(message: &str) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn number(expr: &Expr) -> Result<i64, Error> {
    let wrong = || Error::new(SqlState::SYNTAX_ERROR, format!("{expr} is no integer"));
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.parse().map_err(|_| wrong()),
            _ => Err(wrong()),
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr: operand } => match operand.as_ref() {
            Expr::Value(value) => match &value.value {
                Value::Number(digits, _) => format!("-{digits}").parse().map_err(|_| wrong()),
                _ => Err(wrong()),
            },
            _ => Err(wrong()),
        },
        Expr::Nested(expr) => number(expr),
        _ => Err(wrong()),
    }
}

/// Adds the sequence of a column; returns its OID.
pub(super) fn of_column(
    catalog: &mut Catalog,
    relation: &Relation,
    place: usize,
    options: &[SequenceOptions],
) -> Result<u32, Error> {
    let column = &relation.columns[place];
    let schema = relation.schema.clone();
    let mut number = 0;
    let name = loop {
        let label = match number {
            0 => "seq".to_owned(),
            number => format!("seq{number}"),
        };
        let name = object_name(&relation.name, &column.name, &label);
        if !is_relation_name(catalog, &schema, &name) && name != relation.name {
            break name;
        }
        number += 1;
    };
    let sequence = of_type(schema, name, column.kind.clone(), options)?;
    let oid = catalog.allocate();
    catalog.sequences.insert(oid, Sequence { owner: Some((relation.id, place)), ..sequence });
    Ok(oid)
}

/// What a serial type makes of a column; none for another type.
pub(super) fn serial(data_type: &DataType) -> Option<Type> {
    let DataType::Custom(name, arguments) = data_type else { return None };
    if !arguments.is_empty() {
        return None;
    }
    match names::unquoted(name).as_str() {
        "serial" | "serial4" => Some(Type::Integer),
        "bigserial" | "serial8" => Some(Type::BigInt),
        "smallserial" | "serial2" => Some(Type::SmallInt),
        _ => None,
    }
}

/// Removes sequences.
pub(super) fn drop(context: &QueryContext, statement: &ast::Statement) -> Result<Edit, Error> {
    let ast::Statement::Drop { if_exists, names: listed, cascade, .. } = statement else {
        return Err(Error::unsupported(statement));
    };
    let mut catalog = (*context.catalog).clone();
    let mut notices = vec![];
    let mut removed = 0;
    for name in listed {
        let (schema, sequence) = names::relation(name)?;
        let schemas = match schema {
            Some(schema) => vec![schema],
            None => context.settings.search_path(),
        };
        let found = schemas.iter().find_map(|schema| catalog.find_sequence(schema, &sequence));
        let Some((oid, found)) = found else {
            if let Ok(relation) = context.relation(name) {
                let message = format!("\"{}\" is not a sequence", relation.name);
                return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
            }
            let message = format!("sequence \"{}\" does not exist", names::unquoted(name));
            if !if_exists {
                return Err(Error::new(SqlState::UNDEFINED_TABLE, message));
            }
            let message = format!("{message}, skipping");
            notices.push(Notice::of(Error::new(SqlState::SUCCESSFUL_COMPLETION, message)));
            continue;
        };
        let found = found.clone();
        let users = users(&catalog, oid);
        if let Some((id, place)) = users.first() {
            let (table, column) = (&catalog.relations[id], &catalog.relations[id].columns[*place]);
            let is_identity = column.generated.is_some();
            let what = format!("column {} of table {}", column.name, table.name);
            if is_identity {
                let message =
                    format!("cannot drop sequence {} because {what} requires it", found.name);
                return Err(Error::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
                    .with_hint(format!("You can drop {what} instead.")));
            }
            if !cascade {
                let message = format!(
                    "cannot drop sequence {} because other objects depend on it",
                    found.name
                );
                let detail = format!("default value for {what} depends on sequence {}", found.name);
                return Err(Error::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
                    .with_detail(detail)
                    .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
            }
            let message = format!("drop cascades to default value for {what}");
            notices.push(Notice::of(Error::new(SqlState::SUCCESSFUL_COMPLETION, message)));
        }
        for (id, place) in users {
            if let Some(relation) = catalog.relations.get_mut(&id) {
                relation.columns[place].default = None;
            }
        }
        catalog.sequences.remove(&oid);
        removed += 1;
    }
    if removed == 0
        && let Some(first) = notices.pop()
    {
        return Ok(Edit::Nothing(first));
    }
    Ok(Edit::Changed { catalog, locked: vec![], notices, rewrites: vec![], checks: vec![] })
}

/// The columns that take their values from a sequence.
fn users(catalog: &Catalog, oid: u32) -> Vec<(RelationId, usize)> {
    let text = super::default::nextval(oid);
    let columns = catalog.relations.values().flat_map(|relation| {
        relation.columns.iter().enumerate().map(move |(place, column)| (relation.id, place, column))
    });
    let uses = columns.filter(|(_, _, column)| {
        let is_identity = matches!(&column.generated,
            Some(crate::Generated::Identity { sequence, .. }) if *sequence == oid);
        is_identity || column.default.as_ref().is_some_and(|default| default.contains(&text))
    });
    uses.map(|(id, place, _)| (id, place)).collect()
}
