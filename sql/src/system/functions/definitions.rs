//! What each function answers.

use std::sync::LazyLock;

use datafusion::common::ScalarValue;

use super::Answer::{Of, Try};
use super::names::{self, is_visible};
use super::viewdef;
use super::{Definition, Scope, integer, oid, text};
use crate::system::pg_catalog;
use crate::{DATABASE_NAME, Error, RelationKind, SqlState, Type};

/// All functions.
pub(super) fn all() -> &'static [Definition] {
    static ALL: LazyLock<Vec<Definition>> = LazyLock::new(|| {
        let mut all = objects();
        all.extend(session());
        all.extend(names_and_oids());
        all.extend(sizes());
        all.push(of("clock_timestamp", Type::Timestamptz, |_, _| Some(clock())));
        all.push(of("timeofday", Type::Text, |_, _| texted(time_of_day())));
        all.extend(NOW.iter().map(|name| of(name, Type::Timestamptz, now)));
        all.push(of("statement_timestamp", Type::Timestamptz, |scope, _| moment(scope.statement)));
        let privileges = PRIVILEGES.iter();
        all.extend(privileges.map(|name| of(name, Type::Boolean, |_, _| Some(true.into()))));
        let visible = VISIBLE.iter();
        all.extend(visible.map(|name| of(name, Type::Boolean, |_, _| Some(true.into()))));
        all.extend(UNKNOWN_TEXTS.iter().map(|name| of(name, Type::Text, |_, _| None)));
        all
    });
    &ALL
}

/// When the transaction began; `statement_timestamp` is the statement's.
const NOW: &[&str] = &["now", "transaction_timestamp", "current_timestamp"];

fn now(scope: &Scope, _: &[ScalarValue]) -> Option<ScalarValue> {
    moment(scope.now)
}

fn moment(us: i64) -> Option<ScalarValue> {
    Some(ScalarValue::TimestampMicrosecond(Some(us), Some("+00:00".into())))
}

/// What the clock shows.
fn clock() -> ScalarValue {
    let now = chrono::Utc::now().timestamp_micros();
    ScalarValue::TimestampMicrosecond(Some(now), Some("+00:00".into()))
}

fn time_of_day() -> String {
    chrono::Utc::now().format("%a %b %d %H:%M:%S%.6f %Y UTC").to_string()
}

/// Everybody may do everything.
const PRIVILEGES: &[&str] = &[
    "has_any_column_privilege",
    "has_column_privilege",
    "has_database_privilege",
    "has_function_privilege",
    "has_language_privilege",
    "has_schema_privilege",
    "has_sequence_privilege",
    "has_server_privilege",
    "has_table_privilege",
    "has_tablespace_privilege",
    "has_type_privilege",
    "pg_has_role",
];

/// There is only one object of each such name.
const VISIBLE: &[&str] = &[
    "pg_collation_is_visible",
    "pg_conversion_is_visible",
    "pg_function_is_visible",
    "pg_opclass_is_visible",
    "pg_operator_is_visible",
    "pg_opfamily_is_visible",
    "pg_statistics_obj_is_visible",
    "pg_ts_config_is_visible",
    "pg_ts_dict_is_visible",
    "pg_type_is_visible",
];

/// What they would describe can't be created.
const UNKNOWN_TEXTS: &[&str] = &[
    "pg_get_function_arguments",
    "pg_get_function_identity_arguments",
    "pg_get_function_result",
    "pg_get_functiondef",
    "pg_get_partition_constraintdef",
    "pg_get_partkeydef",
    "pg_get_ruledef",
    "pg_get_statisticsobjdef",
    "pg_get_statisticsobjdef_columns",
    "pg_get_triggerdef",
    "pg_tablespace_location",
    "shobj_description",
];

fn of(
    name: &'static str,
    returns: Type,
    answer: fn(&Scope, &[ScalarValue]) -> Option<ScalarValue>,
) -> Definition {
    Definition { name, returns, answer: Of(answer) }
}

fn is_true(value: Option<&ScalarValue>) -> bool {
    value == Some(&ScalarValue::Boolean(Some(true)))
}

/// The text without the parentheses around all of it.
fn without_parentheses(text: &str) -> &str {
    let Some(inner) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) else {
        return text;
    };
    let mut depth = 0;
    for character in inner.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return text;
        }
    }
    inner
}

fn texted(text: impl Into<String>) -> Option<ScalarValue> {
    Some(ScalarValue::Utf8(Some(text.into())))
}

fn objects() -> Vec<Definition> {
    vec![
        of("pg_table_is_visible", Type::Boolean, |scope, a| {
            Some(is_visible(scope, oid(a.first()?)?)?.into())
        }),
        of("pg_relation_is_publishable", Type::Boolean, |_, _| Some(false.into())),
        of("pg_is_other_temp_schema", Type::Boolean, |_, _| Some(false.into())),
        of("pg_get_userbyid", Type::Name, |scope, a| {
            let owner = oid(a.first()?)?;
            let name = pg_catalog::role_name(&scope.catalog, owner);
            texted(name.unwrap_or_else(|| format!("unknown (OID={owner})")))
        }),
        of("format_type", Type::Text, |_, a| {
            let modifier = a.get(1).and_then(integer).unwrap_or(-1);
            texted(format_type(integer(a.first()?)?, modifier))
        }),
        of("pg_get_viewdef", Type::Text, |scope, a| {
            let relation = scope.relation(a)?;
            match &relation.kind {
                RelationKind::View { query, .. } | RelationKind::MaterializedView { query, .. } => {
                    texted(viewdef::definition(query, &relation.columns))
                }
                RelationKind::Table { .. } => None,
            }
        }),
        of("pg_get_indexdef", Type::Text, |scope, a| {
            let index = pg_catalog::index_of(&scope.catalog, oid(a.first()?)?)?;
            match a.get(1).and_then(integer) {
                None | Some(0) => texted(index.definition()),
                Some(place) => {
                    let column = *index.columns.get(usize::try_from(place - 1).ok()?)?;
                    texted(crate::names::quote(&index.relation.columns[column].name))
                }
            }
        }),
        // Expressions are kept as the text that they are shown as.
        of("pg_get_expr", Type::Text, |_, a| {
            let text = text(a.first()?)?;
            texted(if is_true(a.get(2)) { without_parentheses(text) } else { text })
        }),
        // Nothing is partitioned, and this names no relation.
        of("pg_partition_ancestors", Type::Regclass, |_, _| None),
        Definition {
            name: "pg_get_serial_sequence",
            returns: Type::Text,
            answer: Try(|scope, a| {
                let (Some(table), Some(column)) =
                    (a.first().and_then(text), a.get(1).and_then(text))
                else {
                    return Ok(None);
                };
                names::serial_sequence(scope, table, column).map(|name| name.and_then(texted))
            }),
        },
        of("obj_description", Type::Text, |scope, a| {
            let oid = oid(a.first()?)?;
            let schema = scope.catalog.schemas.values().find(|schema| schema.oid == oid);
            match a.get(1).map(text) {
                Some(Some("pg_class")) => texted(scope.relation(a)?.comment.clone()?),
                Some(Some("pg_namespace")) => texted(schema?.comment.clone()?),
                Some(_) => None,
                None => texted(match scope.relation(a) {
                    Some(relation) => relation.comment.clone()?,
                    None => schema?.comment.clone()?,
                }),
            }
        }),
        of("col_description", Type::Text, |scope, a| {
            let place = usize::try_from(integer(a.get(1)?)? - 1).ok()?;
            texted(scope.relation(a)?.columns.get(place)?.comment.clone()?)
        }),
        of("pg_get_constraintdef", Type::Text, |scope, a| {
            let catalog = &scope.catalog;
            let (relation, constraint) = pg_catalog::constraint_of(catalog, oid(a.first()?)?)?;
            let is_pretty = is_true(a.get(1));
            texted(pg_catalog::constraint_definition(catalog, relation, constraint, is_pretty)?)
        }),
        of("pg_encoding_to_char", Type::Name, |_, a| {
            texted(if integer(a.first()?)? == pg_catalog::UTF8 { "UTF8" } else { "" })
        }),
        of("pg_char_to_encoding", Type::Integer, |_, a| {
            let is_utf8 = text(a.first()?)?.to_ascii_uppercase().replace('-', "") == "UTF8";
            Some(ScalarValue::Int32(Some(if is_utf8 { pg_catalog::UTF8 as i32 } else { -1 })))
        }),
    ]
}

fn session() -> Vec<Definition> {
    let schemas = Type::Array(Box::new(Type::Name));
    vec![
        of("current_schema", Type::Name, |scope, _| {
            let path = scope.settings.search_path();
            texted(path.into_iter().find(|name| scope.catalog.schemas.contains_key(name))?)
        }),
        of("current_schemas", schemas, |scope, a| {
            let is_full = a.first().is_some_and(|full| full == &ScalarValue::Boolean(Some(true)));
            let implicit = is_full.then(|| "pg_catalog".to_owned());
            let path = scope.settings.search_path().into_iter();
            let path = path.filter(|name| scope.catalog.schemas.contains_key(name));
            let path: Vec<_> = implicit
                .into_iter()
                .chain(path)
                .map(|name| ScalarValue::Utf8(Some(name)))
                .collect();
            let data_type = Type::Name.arrow();
            Some(ScalarValue::List(ScalarValue::new_list_nullable(&path, &data_type)))
        }),
        of("current_database", Type::Name, |_, _| texted(DATABASE_NAME)),
        of("current_catalog", Type::Name, |_, _| texted(DATABASE_NAME)),
        of("current_user", Type::Name, |scope, _| texted(scope.settings.user())),
        of("current_role", Type::Name, |scope, _| texted(scope.settings.user())),
        of("session_user", Type::Name, |scope, _| texted(scope.settings.user())),
        of("user", Type::Name, |scope, _| texted(scope.settings.user())),
        of("version", Type::Text, |_, _| {
            texted(format!("PostgreSQL {} on Stillframe", crate::SERVER_VERSION))
        }),
        Definition {
            name: "current_setting",
            returns: Type::Text,
            answer: Try(|scope, a| {
                let Some(name) = a.first().and_then(text) else { return Ok(None) };
                let may_miss = a.get(1) == Some(&ScalarValue::Boolean(Some(true)));
                match scope.settings.get(name) {
                    Ok(value) => Ok(texted(value)),
                    Err(error) if may_miss && error.state == SqlState::UNDEFINED_OBJECT => Ok(None),
                    Err(error) => Err(error),
                }
            }),
        },
        of("stillframe.current_step", Type::BigInt, |scope, _| {
            Some(i64::try_from(scope.step.0).ok()?.into())
        }),
        of("pg_client_encoding", Type::Name, |_, _| texted("UTF8")),
        of("pg_backend_pid", Type::Integer, |scope, _| {
            // Connections have no process of their own, but a number that stands for it.
            Some(ScalarValue::Int32(Some(scope.settings.facts().process())))
        }),
        of("pg_notification_queue_usage", Type::Double, |_, _| Some(0.0_f64.into())),
        of("pg_is_in_recovery", Type::Boolean, |_, _| Some(false.into())),
        of("pg_my_temp_schema", Type::Oid, |_, _| Some(0i64.into())),
        of("inet_server_addr", Type::Text, |_, _| None),
        of("inet_server_port", Type::Integer, |_, _| None),
        of("inet_client_addr", Type::Text, |_, _| None),
        of("inet_client_port", Type::Integer, |_, _| None),
    ]
}

/// The casts to and from the types of names are functions of these names.
fn names_and_oids() -> Vec<Definition> {
    macro_rules! names {
        ($($kind:ident, $read:literal, $write:literal;)*) => {
            vec![$(
                Definition {
                    name: $read,
                    returns: Type::$kind,
                    answer: Try(|scope, a| read(scope, &Type::$kind, a)),
                },
                of($write, Type::Text, |scope, a| {
                    texted(names::write(scope, &Type::$kind, oid(a.first()?)?))
                }),
            )*]
        };
    }
    let mut all = names! {
        Regclass, "regclass in", "regclass out";
        Regtype, "regtype in", "regtype out";
        Regproc, "regproc in", "regproc out";
        Regnamespace, "regnamespace in", "regnamespace out";
        Regrole, "regrole in", "regrole out";
    };
    all.extend([
        of("to_regclass", Type::Regclass, |scope, a| {
            let oid = names::relation(scope, text(a.first()?)?)?;
            Some(i64::from(oid).into())
        }),
        of("to_regtype", Type::Regtype, |_, a| {
            Some(i64::from(names::type_oid(text(a.first()?)?)?).into())
        }),
        of("to_regnamespace", Type::Regnamespace, |scope, a| {
            let oid = pg_catalog::schema_oid(&scope.catalog, text(a.first()?)?)?;
            Some(i64::from(oid).into())
        }),
    ]);
    all
}

fn read(scope: &Scope, kind: &Type, a: &[ScalarValue]) -> Result<Option<ScalarValue>, Error> {
    let Some(value) = a.first().filter(|value| !value.is_null()) else { return Ok(None) };
    let oid = match text(value) {
        Some(name) => names::read(scope, kind, name)?,
        None => oid(value)
            .ok_or_else(|| Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "OID out of range"))?,
    };
    Ok(Some(i64::from(oid).into()))
}

/// Nothing has a size that PostgreSQL's functions could tell.
fn sizes() -> Vec<Definition> {
    let names = [
        "pg_database_size",
        "pg_indexes_size",
        "pg_relation_size",
        "pg_table_size",
        "pg_tablespace_size",
        "pg_total_relation_size",
        // Nobody counts scans.
        "pg_stat_get_numscans",
    ];
    let mut all: Vec<_> =
        names.into_iter().map(|name| of(name, Type::BigInt, |_, _| Some(0i64.into()))).collect();
    all.push(of("pg_size_pretty", Type::Text, |_, a| {
        let mut size = integer(a.first()?)?;
        let mut units = ["bytes", "kB", "MB", "GB", "TB", "PB"].into_iter();
        let mut unit = units.next()?;
        // A unit is left when there are ten thousand of it.
        while size.unsigned_abs() >= 10 * 1024 {
            let Some(next) = units.next() else { break };
            unit = next;
            size = (size + size.signum() * 512) / 1024;
        }
        texted(format!("{size} {unit}"))
    }));
    all
}

/// A type's name as PostgreSQL shows it, with its modifier.
fn format_type(oid: i64, modifier: i64) -> String {
    let Some(kind) = u32::try_from(oid).ok().and_then(Type::from_oid) else {
        return if oid == 0 { "-" } else { "???" }.to_owned();
    };
    let length = u32::try_from(modifier - 4).ok();
    match (kind, length) {
        (Type::Numeric(_), Some(packed)) => {
            format!("numeric({},{})", packed >> 16, packed & 0x7ff)
        }
        (Type::Varchar(_), Some(length)) => format!("character varying({length})"),
        (Type::Char(_), Some(length)) => format!("character({length})"),
        // `timestamp(3) without time zone`
        (kind @ (Type::Time | Type::Timestamp | Type::Timestamptz), _) if modifier >= 0 => {
            let name = kind.to_string();
            match name.split_once(' ') {
                Some((first, rest)) => format!("{first}({modifier}) {rest}"),
                None => name,
            }
        }
        (kind, _) => kind.to_string(),
    }
}
