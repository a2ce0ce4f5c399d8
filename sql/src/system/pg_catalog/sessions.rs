//! `pg_prepared_statements` and `pg_cursors`: what the session that asks has; and what all clients'
//! sessions do.

use crate::activity::Activity;
use crate::ddl::is_superuser;
use crate::query::QueryContext;
use crate::system::table::Cell;

/// The statements that are kept under a name.
pub(super) fn prepared_statements(context: &QueryContext) -> Vec<Vec<Cell>> {
    let row = |name: &str, fact: &crate::facts::Statement| {
        let types = fact.types.iter().map(|kind| i64::from(kind.oid())).collect();
        vec![
            name.into(),
            fact.text.as_str().into(),
            Cell::Time(fact.since_us),
            Cell::List(types),
            fact.is_from_sql.into(),
            0.into(),
            0.into(),
        ]
    };
    context.settings.facts().statements(row)
}

/// `pg_stat_activity`: a row for each client. As in PostgreSQL, what others do is for superusers.
pub(super) fn activities(context: &QueryContext) -> Vec<Vec<Cell>> {
    let time = |moment: Option<i64>| moment.map_or(Cell::Null, Cell::Time);
    let sees_all = is_superuser(context);
    let row = |(process, mut activity): (i32, Activity)| {
        let is_seen = sees_all || activity.user == context.settings.user();
        if !is_seen {
            activity.text = "<insufficient privilege>".to_owned();
            activity.client = None;
            activity.transaction_since_us = None;
            activity.statement_since_us = None;
        }
        let state = if is_seen { activity.state.name().into() } else { Cell::Null };
        let client = activity.client;
        vec![
            super::DATABASE_OID.into(),
            crate::DATABASE_NAME.into(),
            i64::from(process).into(),
            Cell::Null, // leader_pid
            super::role_oid(&context.catalog, &activity.user).map_or(Cell::Null, Cell::from),
            activity.user.as_str().into(),
            activity.application.as_str().into(),
            client.map_or(Cell::Null, |client| client.ip().to_string().into()),
            Cell::Null, // client_hostname
            client.map_or(Cell::Null, |client| i64::from(client.port()).into()),
            Cell::Time(activity.since_us),
            time(activity.transaction_since_us),
            time(activity.statement_since_us),
            Cell::Time(activity.state_since_us),
            Cell::Null, // wait_event_type
            Cell::Null, // wait_event
            state,
            Cell::Null, // backend_xid
            Cell::Null, // backend_xmin
            Cell::Null, // query_id
            activity.text.as_str().into(),
            "client backend".into(),
        ]
    };
    context.frame.database().activities.all().into_iter().map(row).collect()
}

/// The cursors that are open.
pub(super) fn cursors(context: &QueryContext) -> Vec<Vec<Cell>> {
    let row = |name: &str, fact: &crate::facts::Cursor| {
        vec![
            name.into(),
            fact.text.as_str().into(),
            fact.is_held.into(),
            false.into(),
            fact.goes_back.into(),
            Cell::Time(fact.since_us),
        ]
    };
    context.settings.facts().cursors(row)
}
