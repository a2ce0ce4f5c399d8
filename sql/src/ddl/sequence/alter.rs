//! ALTER SEQUENCE. Where the sequence stands changes at once, and stays changed after a rollback, as
//! everything about its numbers.

use super::{invalid, owner, users};
use crate::ddl::constraint::is_relation_name;
use crate::ddl::{Edit, already_exists};
use crate::parser::{AlterSequence, SequenceChange};
use crate::query::QueryContext;
use crate::sequences::Standing;
use crate::session::Notice;
use crate::{Error, Frame, Sequence, SqlState, Type, names, settings::Settings};

/// Changes a sequence.
pub(in crate::ddl) fn alter(context: &QueryContext, alter: &AlterSequence) -> Result<Edit, Error> {
    let Some((oid, old)) = find(&context.frame, &context.settings, alter) else {
        return missing(context, alter);
    };
    let (database, epoch) = (context.frame.database(), context.frame.epoch());
    let standing = database.sequences.standing(epoch, oid, &old);
    // One that was never asked would begin where the new definition does.
    database.sequences.set(epoch, oid, &old, standing)?;
    let mut new = old.clone();
    let (least, greatest) = bounds(&old.kind)?;
    let mut last = standing.last;
    for change in &alter.changes {
        match change {
            SequenceChange::Type(data_type) => {
                let kind = Type::of_column(data_type)?;
                let (new_least, new_greatest) = bounds(&kind)?;
                // A bound that was the type's is the new type's.
                if new.max == greatest {
                    new.max = new_greatest;
                }
                if new.min == least {
                    new.min = new_least;
                }
                new.kind = kind;
            }
            SequenceChange::Increment(0) => return Err(invalid("INCREMENT must not be zero")),
            SequenceChange::Increment(value) => new.increment = *value,
            SequenceChange::Min(value) => {
                let unset = if new.increment > 0 { 1 } else { bounds(&new.kind)?.0 };
                new.min = value.unwrap_or(unset);
            }
            SequenceChange::Max(value) => {
                let unset = if new.increment > 0 { bounds(&new.kind)?.1 } else { -1 };
                new.max = value.unwrap_or(unset);
            }
            SequenceChange::Start(value) => new.start = *value,
            SequenceChange::Restart(value) => last = value.unwrap_or(new.start),
            SequenceChange::Cache(value) if *value < 1 => {
                return Err(invalid(&format!("CACHE ({value}) must be greater than zero")));
            }
            SequenceChange::Cache(value) => new.cache = *value,
            SequenceChange::Cycle(value) => new.cycle = *value,
            SequenceChange::OwnedBy(column) => {
                let catalog = &context.catalog;
                let is_identity = users(catalog, oid)
                    .iter()
                    .any(|(id, place)| catalog.relations[id].columns[*place].generated.is_some());
                if is_identity {
                    let message = "cannot change ownership of identity sequence";
                    return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
                }
                new.owner = owner(context, column)?;
            }
            SequenceChange::Rename(name) => {
                if is_relation_name(&context.catalog, &old.schema, name) {
                    return Err(already_exists(name));
                }
                new.name.clone_from(name);
            }
        }
    }
    check(&new, last)?;
    let mut catalog = (*context.catalog).clone();
    catalog.sequences.insert(oid, new);
    Ok(Edit::changed(catalog))
}

/// Lets the sequence go on elsewhere, if the statement says so.
pub(in crate::ddl) fn restart(
    frame: &Frame,
    settings: &Settings,
    alter: &AlterSequence,
) -> Result<(), Error> {
    let mut restarts = alter.changes.iter().filter_map(|change| match change {
        SequenceChange::Restart(value) => Some(*value),
        _ => None,
    });
    let Some((value, (oid, sequence))) = restarts.next_back().zip(find(frame, settings, alter))
    else {
        return Ok(());
    };
    let last = value.unwrap_or(sequence.start);
    let standing = Standing { last, is_called: false };
    frame.database().sequences.set(frame.epoch(), oid, &sequence, standing)
}

fn find(frame: &Frame, settings: &Settings, alter: &AlterSequence) -> Option<(u32, Sequence)> {
    let (schema, name) = names::relation(&alter.name).ok()?;
    let schemas = schema.map_or_else(|| settings.search_path(), |schema| vec![schema]);
    let catalog = frame.catalog();
    let found = schemas.iter().find_map(|schema| catalog.find_sequence(schema, &name));
    found.map(|(oid, sequence)| (oid, sequence.clone()))
}

fn missing(context: &QueryContext, alter: &AlterSequence) -> Result<Edit, Error> {
    if let Ok(relation) = context.relation(&alter.name) {
        let message = format!("\"{}\" is not a sequence", relation.name);
        return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
    }
    let message = format!("relation \"{}\" does not exist", names::unquoted(&alter.name));
    if !alter.if_exists {
        return Err(Error::new(SqlState::UNDEFINED_TABLE, message));
    }
    let message = format!("{message}, skipping");
    Ok(Edit::Nothing(Notice::of(Error::new(SqlState::SUCCESSFUL_COMPLETION, message))))
}

fn bounds(kind: &Type) -> Result<(i64, i64), Error> {
    match kind {
        Type::SmallInt => Ok((i16::MIN.into(), i16::MAX.into())),
        Type::Integer => Ok((i32::MIN.into(), i32::MAX.into())),
        Type::BigInt => Ok((i64::MIN, i64::MAX)),
        _ => Err(invalid("sequence type must be smallint, integer, or bigint")),
    }
}

fn check(new: &Sequence, last: i64) -> Result<(), Error> {
    let (least, greatest) = bounds(&new.kind)?;
    let Sequence { kind, start, min, max, .. } = new;
    for (label, value) in [("MAXVALUE", max), ("MINVALUE", min)] {
        if !(least..=greatest).contains(value) {
            let message =
                format!("{label} ({value}) is out of range for sequence data type {kind}");
            return Err(invalid(&message));
        }
    }
    if min >= max {
        return Err(invalid(&format!("MINVALUE ({min}) must be less than MAXVALUE ({max})")));
    }
    for (label, value) in [("START", start), ("RESTART", &last)] {
        if value < min {
            let message = format!("{label} value ({value}) cannot be less than MINVALUE ({min})");
            return Err(invalid(&message));
        }
        if value > max {
            let message =
                format!("{label} value ({value}) cannot be greater than MAXVALUE ({max})");
            return Err(invalid(&message));
        }
    }
    Ok(())
}
