//! The functions that answer from the catalog and the session, not from their arguments alone.
//!
//! They belong to one statement: a maintained view can't use them.

mod advisory;
mod composite;
mod definitions;
pub(super) mod expression;
mod names;
mod sequences;
mod sessions;
pub(super) mod viewdef;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignature, Volatility,
};
use stillframe_protocol::{Epoch, RelationId, Step};

use crate::settings::Settings;
use crate::{Catalog, Database, Error, Frame, Relation, Type};

/// What the functions answer from.
struct Scope {
    step: Step,
    /// When the transaction began, in microseconds since 1970-01-01 UTC.
    now: i64,
    /// When the statement began.
    statement: i64,
    catalog: Arc<Catalog>,
    settings: Settings,
    database: Arc<Database>,
    epoch: Epoch,
}

/// What a function answers to one row's arguments; nothing is NULL.
#[derive(Clone, Copy)]
enum Answer {
    /// It always can.
    Of(fn(&Scope, &[ScalarValue]) -> Option<ScalarValue>),
    /// It may refuse.
    Try(fn(&Scope, &[ScalarValue]) -> std::result::Result<Option<ScalarValue>, Error>),
}

/// A function.
struct Definition {
    name: &'static str,
    returns: Type,
    answer: Answer,
}

impl Scope {
    /// The relation whose OID is the first argument.
    fn relation(&self, arguments: &[ScalarValue]) -> Option<&Relation> {
        let oid = self.relation_oid(arguments.first()?)?;
        self.catalog.relations.get(&RelationId(oid))
    }

    /// The OID of a relation that is given by its OID or its name.
    fn relation_oid(&self, value: &ScalarValue) -> Option<u32> {
        match oid(value) {
            Some(oid) => Some(oid),
            None => names::relation(self, text(value)?),
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

fn text(value: &ScalarValue) -> Option<&str> {
    value.try_as_str().flatten()
}

/// The functions that change something: they are computed for each row.
fn all_that_change(scope: &Arc<Scope>) -> impl Iterator<Item = ScalarUDF> {
    sequences::all(scope).chain(sessions::all(scope)).chain(advisory::all(scope))
}

/// Adds the functions to one statement's state.
pub(crate) fn register(state: &mut SessionState, frame: &Arc<Frame>, settings: &Settings) {
    let scope = Arc::new(Scope {
        step: frame.step(),
        now: settings.began().timestamp_micros(),
        statement: chrono::Utc::now().timestamp_micros(),
        catalog: Arc::clone(frame.catalog()),
        settings: settings.clone(),
        database: Arc::clone(frame.database()),
        epoch: frame.epoch(),
    });
    let any = vec![TypeSignature::Nullary, TypeSignature::VariadicAny];
    let signature = Signature::one_of(any, Volatility::Stable);
    state.register_udtf("pg_get_keywords", Arc::new(super::keywords::Keywords));
    let facts = settings.facts().clone();
    let listening = sessions::ListeningChannels { facts };
    state.register_udtf("pg_listening_channels", Arc::new(listening));
    state.register_udf(composite::expand_array()).expect("a state in memory takes every function");
    for function in all_that_change(&scope) {
        let function = Arc::new(function);
        state.register_udf(function).expect("a state in memory takes every function");
    }
    for definition in definitions::all() {
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
        write!(f, "CatalogFunction({})", self.definition.name)
    }
}

impl PartialEq for CatalogFunction {
    fn eq(&self, other: &Self) -> bool {
        self.definition.name == other.definition.name && Arc::ptr_eq(&self.scope, &other.scope)
    }
}

impl Eq for CatalogFunction {}

impl Hash for CatalogFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.definition.name.hash(state);
    }
}

impl CatalogFunction {
    fn answer(&self, arguments: &[ScalarValue], none: &ScalarValue) -> Result<ScalarValue> {
        let answer = match self.definition.answer {
            Answer::Of(answer) => answer(&self.scope, arguments),
            Answer::Try(answer) => answer(&self.scope, arguments)?,
        };
        Ok(answer.unwrap_or_else(|| none.clone()))
    }
}

impl ScalarUDFImpl for CatalogFunction {
    fn name(&self) -> &str {
        self.definition.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.definition.returns.arrow())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(self.definition.returns.field(self.name(), true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let data_type = self.definition.returns.arrow();
        let none = ScalarValue::try_from(&data_type)?;
        if args.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_))) {
            let arguments = args.args.into_iter().filter_map(|argument| match argument {
                ColumnarValue::Scalar(value) => Some(value),
                ColumnarValue::Array(_) => None,
            });
            let answer = self.answer(&arguments.collect::<Vec<_>>(), &none)?;
            return Ok(ColumnarValue::Scalar(answer));
        }
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let mut answers = Vec::with_capacity(args.number_rows);
        for row in 0..args.number_rows {
            let arguments = arrays.iter().map(|array| ScalarValue::try_from_array(array, row));
            answers.push(self.answer(&arguments.collect::<Result<Vec<_>>>()?, &none)?);
        }
        if answers.is_empty() {
            return Ok(ColumnarValue::Array(arrow::array::new_empty_array(&data_type)));
        }
        Ok(ColumnarValue::Array(ScalarValue::iter_to_array(answers)?))
    }
}
