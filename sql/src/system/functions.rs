//! The functions that answer from the catalog and the session, not from their arguments alone.
//!
//! They belong to one statement: a maintained view can't use them.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use stillframe_protocol::{RelationId, Step};

use super::{OWNER, pg_catalog};
use crate::settings::Settings;
use crate::{Catalog, DATABASE_NAME, Frame, Relation, RelationKind, Type, names};

/// What the functions answer from.
struct Scope {
    step: Step,
    catalog: Arc<Catalog>,
    settings: Settings,
}

/// Name, type of the answer, and the answer to one row's arguments.
type Definition = (&'static str, Type, fn(&Scope, &[ScalarValue]) -> Option<ScalarValue>);

static DEFINITIONS: &[Definition] = &[
    ("pg_table_is_visible", Type::Boolean, |scope, a| {
        let relation = scope.relation(a)?;
        Some(scope.settings.search_path().contains(&relation.schema).into())
    }),
    ("pg_type_is_visible", Type::Boolean, |_, _| Some(true.into())),
    ("pg_function_is_visible", Type::Boolean, |_, _| Some(true.into())),
    ("pg_relation_is_publishable", Type::Boolean, |_, _| Some(false.into())),
    ("has_table_privilege", Type::Boolean, |_, _| Some(true.into())),
    ("has_schema_privilege", Type::Boolean, |_, _| Some(true.into())),
    ("has_database_privilege", Type::Boolean, |_, _| Some(true.into())),
    ("has_column_privilege", Type::Boolean, |_, _| Some(true.into())),
    ("pg_get_userbyid", Type::Name, |_, a| {
        let known = integer(a.first()?)? == i64::from(super::OWNER_OID);
        Some(if known { OWNER.into() } else { format!("unknown (OID={})", a[0]).as_str().into() })
    }),
    ("format_type", Type::Text, |_, a| {
        let modifier = a.get(1).and_then(integer).unwrap_or(-1);
        Some(format_type(integer(a.first()?)?, modifier).as_str().into())
    }),
    ("pg_get_expr", Type::Text, |_, _| None),
    ("pg_get_viewdef", Type::Text, |scope, a| match &scope.relation(a)?.kind {
        RelationKind::View { query, .. } | RelationKind::MaterializedView { query, .. } => {
            Some(format!(" {query};").as_str().into())
        }
        RelationKind::Table { .. } => None,
    }),
    ("pg_get_indexdef", Type::Text, |scope, a| {
        let (relation, key) = pg_catalog::index_of(&scope.catalog, oid(a.first()?)?)?;
        match a.get(1).and_then(integer) {
            None | Some(0) => Some(pg_catalog::index_definition(relation, key).as_str().into()),
            Some(place) => {
                let column = *key.get(usize::try_from(place - 1).ok()?)?;
                Some(names::quote(&relation.columns[column].name).as_str().into())
            }
        }
    }),
    ("pg_get_constraintdef", Type::Text, |scope, a| {
        let (relation, key) = pg_catalog::constraint_of(&scope.catalog, oid(a.first()?)?)?;
        let columns = pg_catalog::key_columns(relation, key);
        Some(format!("PRIMARY KEY ({columns})").as_str().into())
    }),
    ("pg_get_statisticsobjdef_columns", Type::Text, |_, _| None),
    ("pg_encoding_to_char", Type::Name, |_, a| {
        Some(if integer(a.first()?)? == 6 { "UTF8" } else { "" }.into())
    }),
    ("obj_description", Type::Text, |_, _| None),
    ("col_description", Type::Text, |_, _| None),
    ("shobj_description", Type::Text, |_, _| None),
    ("current_schema", Type::Name, |scope, _| {
        let path = scope.settings.search_path();
        let first = path.into_iter().find(|name| scope.catalog.schemas.contains_key(name))?;
        Some(first.as_str().into())
    }),
    ("current_database", Type::Name, |_, _| Some(DATABASE_NAME.into())),
    ("current_catalog", Type::Name, |_, _| Some(DATABASE_NAME.into())),
    ("current_user", Type::Name, |scope, _| Some(scope.settings.user().into())),
    ("session_user", Type::Name, |scope, _| Some(scope.settings.user().into())),
    ("user", Type::Name, |scope, _| Some(scope.settings.user().into())),
    ("version", Type::Text, |_, _| {
        Some(format!("PostgreSQL {} on Stillframe", crate::SERVER_VERSION).as_str().into())
    }),
    ("stillframe.current_step", Type::BigInt, |scope, _| {
        Some(i64::try_from(scope.step.0).ok()?.into())
    }),
    ("to_regclass", Type::Regclass, |scope, a| {
        let ScalarValue::Utf8(Some(name)) = a.first()? else { return None };
        let relation = scope.named(name)?;
        Some(i64::from(relation.id.0).into())
    }),
];

impl Scope {
    /// The relation whose OID is the first argument.
    fn relation(&self, arguments: &[ScalarValue]) -> Option<&Relation> {
        self.catalog.relations.get(&RelationId(oid(arguments.first()?)?))
    }

    /// The relation that a name means, as text.
    fn named(&self, name: &str) -> Option<&Relation> {
        match name.split_once('.') {
            Some((schema, name)) => self.catalog.find(schema, name),
            None => {
                let path = self.settings.search_path();
                path.iter().find_map(|schema| self.catalog.find(schema, name))
            }
        }
    }
}

fn integer(value: &ScalarValue) -> Option<i64> {
    match value.cast_to(&DataType::Int64).ok()? {
        ScalarValue::Int64(value) => value,
        _ => None,
    }
}

fn oid(value: &ScalarValue) -> Option<u32> {
    integer(value)?.try_into().ok()
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
        // PostgreSQL's bpchar.
        (Type::Char(_), Some(length)) => format!("character({length})"),
        (kind, _) if oid == 1042 => match kind {
            Type::Text => length.map_or("bpchar".to_owned(), |n| format!("character({n})")),
            kind => kind.to_string(),
        },
        (kind, _) => kind.to_string(),
    }
}

/// Adds the functions to one statement's state.
pub(crate) fn register(state: &mut SessionState, frame: &Arc<Frame>, settings: &Settings) {
    let scope = Arc::new(Scope {
        step: frame.step(),
        catalog: Arc::clone(frame.catalog()),
        settings: settings.clone(),
    });
    let any = vec![TypeSignature::Nullary, TypeSignature::VariadicAny];
    let signature = Signature::one_of(any, Volatility::Stable);
    for definition in DEFINITIONS {
        let scope = Arc::clone(&scope);
        let function = CatalogFunction { definition, signature: signature.clone(), scope };
        state
            .register_udf(Arc::new(ScalarUDF::new_from_impl(function)))
            .expect("a state in memory takes every function");
    }
}

/// One of the functions, for one statement.
struct CatalogFunction {
    definition: &'static Definition,
    signature: Signature,
    scope: Arc<Scope>,
}

impl fmt::Debug for CatalogFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CatalogFunction({})", self.definition.0)
    }
}

impl PartialEq for CatalogFunction {
    fn eq(&self, other: &Self) -> bool {
        self.definition.0 == other.definition.0 && Arc::ptr_eq(&self.scope, &other.scope)
    }
}

impl Eq for CatalogFunction {}

impl Hash for CatalogFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.definition.0.hash(state);
    }
}

impl ScalarUDFImpl for CatalogFunction {
    fn name(&self) -> &str {
        self.definition.0
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.definition.1.arrow())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let data_type = self.definition.1.arrow();
        let none = ScalarValue::try_from(&data_type)?;
        let answer = |arguments: &[ScalarValue]| {
            (self.definition.2)(&self.scope, arguments).unwrap_or_else(|| none.clone())
        };
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        if arrays.is_empty() || args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_))) {
            let arguments = args.args.iter().filter_map(|argument| match argument {
                ColumnarValue::Scalar(value) => Some(value.clone()),
                ColumnarValue::Array(_) => None,
            });
            return Ok(ColumnarValue::Scalar(answer(&arguments.collect::<Vec<_>>())));
        }
        let mut answers = Vec::with_capacity(args.number_rows);
        for row in 0..args.number_rows {
            let arguments = arrays.iter().map(|array| ScalarValue::try_from_array(array, row));
            answers.push(answer(&arguments.collect::<Result<Vec<_>>>()?));
        }
        if answers.is_empty() {
            return Ok(ColumnarValue::Array(arrow::array::new_empty_array(&data_type)));
        }
        Ok(ColumnarValue::Array(ScalarValue::iter_to_array(answers)?))
    }
}
