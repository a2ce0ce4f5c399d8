//! The words of scripts.

use std::sync::Arc;
use std::time::Duration;

use arrow_schema::Schema;
use goldenscript::ArgumentConsumer;
use stillframe_protocol::{
    Entry, Filling, HostId, LeaseId, Lockable, Mode, Plan, Program, RelationId, TransactionId, View,
};

use super::Parsed;

pub(super) fn positional<'a>(args: &mut ArgumentConsumer<'a>) -> Parsed<&'a str> {
    Ok(args.next_pos().ok_or("something is missing")?)
}

pub(super) fn host(word: &str) -> Parsed<HostId> {
    Ok(HostId(word.parse()?))
}

pub(super) fn lease(word: &str) -> Parsed<LeaseId> {
    Ok(LeaseId(word.strip_prefix('l').ok_or("leases are l1, l2, ..")?.parse()?))
}

pub(super) fn transaction(word: &str) -> Parsed<TransactionId> {
    Ok(TransactionId(word.strip_prefix('t').ok_or("transactions are t1, t2, ..")?.parse()?))
}

pub(super) fn duration(word: &str) -> Parsed<Duration> {
    if let Some(millis) = word.strip_suffix("ms") {
        return Ok(Duration::from_millis(millis.parse()?));
    }
    Ok(Duration::from_secs(word.strip_suffix('s').ok_or("durations end in s or ms")?.parse()?))
}

pub(super) fn entry(word: &str) -> Parsed<Entry> {
    let (what, mode) = word.split_once('/').ok_or("entries are 1/s, 1.7/x, ..")?;
    let lockable = match what.split_once('.') {
        None => Lockable::Relation(RelationId(what.parse()?)),
        Some((relation, hash)) => Lockable::Key {
            relation: RelationId(relation.parse()?),
            constraint: 0,
            hash: hash.parse()?,
        },
    };
    let mode = match mode {
        "s" => Mode::Shared,
        "x" => Mode::Exclusive,
        _ => return Err("modes are s and x".into()),
    };
    Ok(Entry { lockable, mode })
}

pub(super) fn filling(word: &str) -> Parsed<Option<Filling>> {
    let (kind, recorded) = word.split_once('/').unwrap_or((word, "0"));
    let recorded = recorded.parse()?;
    match kind {
        "none" => Ok(None),
        "refused" => Ok(Some(Filling::Refused)),
        "goes" => Ok(Some(Filling::Goes { recorded })),
        "done" => Ok(Some(Filling::Done { recorded })),
        other => Err(format!("what is {other}?").into()),
    }
}

pub(super) fn program(views: &str) -> Parsed<Program> {
    let view = |id: &str| -> Parsed<View> {
        let plan = Plan::Values { schema: Arc::new(Schema::empty()), rows: vec![] };
        Ok(View { id: RelationId(id.parse()?), plan: Arc::new(plan) })
    };
    let views = views.split_terminator('/').map(view).collect::<Parsed<_>>()?;
    Ok(Program { tables: vec![], views })
}
