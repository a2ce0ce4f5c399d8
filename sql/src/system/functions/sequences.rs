//! `nextval` and its relatives. They are computed for each row, and change what they read.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::Int64Array;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignature, Volatility,
};

use super::{Scope, integer, oid, text};
use crate::sequences::Standing;
use crate::{Error, Sequence, SqlState, Type};

/// All of them.
const KINDS: [Kind; 4] = [Kind::Next, Kind::Current, Kind::Last, Kind::Set];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Next,
    Current,
    Last,
    Set,
}

/// The functions, for one statement.
pub(super) fn all(scope: &Arc<Scope>) -> impl Iterator<Item = ScalarUDF> {
    KINDS.into_iter().map(move |kind| {
        let any = vec![TypeSignature::Nullary, TypeSignature::VariadicAny];
        let signature = Signature::one_of(any, Volatility::Volatile);
        let function = SequenceFunction { kind, signature, scope: Arc::clone(scope) };
        ScalarUDF::new_from_impl(function)
    })
}

struct SequenceFunction {
    kind: Kind,
    signature: Signature,
    scope: Arc<Scope>,
}

impl fmt::Debug for SequenceFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SequenceFunction({:?})", self.kind)
    }
}

impl PartialEq for SequenceFunction {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && Arc::ptr_eq(&self.scope, &other.scope)
    }
}

impl Eq for SequenceFunction {}

impl Hash for SequenceFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
    }
}

impl SequenceFunction {
    fn answer(&self, arguments: &[ScalarValue]) -> std::result::Result<Option<i64>, Error> {
        let scope = &*self.scope;
        let (database, epoch) = (&scope.database, scope.epoch);
        let given = scope.settings.sequences();
        if self.kind == Kind::Last {
            let Some((_, number)) = given.last() else {
                let message = "lastval is not yet defined in this session";
                return Err(Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
            };
            return Ok(Some(number));
        }
        let Some(first) = arguments.first().filter(|value| !value.is_null()) else {
            return Ok(None);
        };
        let (oid, sequence) = sequence(scope, first)?;
        match self.kind {
            Kind::Next => {
                let number = database.sequences.next(epoch, oid, sequence)?;
                given.remember(oid, number);
                Ok(Some(number))
            }
            Kind::Set => {
                let Some(number) = arguments.get(1).and_then(integer) else { return Ok(None) };
                let is_called = match arguments.get(2) {
                    None => true,
                    Some(ScalarValue::Boolean(Some(is_called))) => *is_called,
                    Some(_) => return Ok(None),
                };
                let to = Standing { last: number, is_called };
                database.sequences.set(epoch, oid, sequence, to)?;
                if is_called {
                    given.remember(oid, number);
                }
                Ok(Some(number))
            }
            Kind::Current | Kind::Last => match given.of(oid) {
                Some(number) => Ok(Some(number)),
                None => {
                    let message = format!(
                        "currval of sequence \"{}\" is not yet defined in this session",
                        sequence.name
                    );
                    Err(Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message))
                }
            },
        }
    }
}

/// The sequence that an argument means.
fn sequence<'a>(
    scope: &'a Scope,
    argument: &ScalarValue,
) -> std::result::Result<(u32, &'a Sequence), Error> {
    let found = scope.relation_oid(argument);
    if let Some(found) = found {
        if let Some(sequence) = scope.catalog.sequences.get(&found) {
            return Ok((found, sequence));
        }
        if let Some(relation) = scope.catalog.relations.get(&stillframe_protocol::RelationId(found))
        {
            let message = format!("\"{}\" is not a sequence", relation.name);
            return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
    }
    let name = match (text(argument), oid(argument)) {
        (Some(name), _) => format!("relation \"{name}\" does not exist"),
        (None, oid) => format!("could not open relation with OID {}", oid.unwrap_or(0)),
    };
    Err(Error::new(SqlState::UNDEFINED_TABLE, name))
}

impl ScalarUDFImpl for SequenceFunction {
    fn name(&self) -> &str {
        match self.kind {
            Kind::Next => "nextval",
            Kind::Current => "currval",
            Kind::Last => "lastval",
            Kind::Set => "setval",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(Type::BigInt.arrow())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(Type::BigInt.field(self.name(), true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let mut answers = Vec::with_capacity(args.number_rows);
        for row in 0..args.number_rows {
            let place = |array: &arrow::array::ArrayRef| row.min(array.len().saturating_sub(1));
            let arguments =
                arrays.iter().map(|array| ScalarValue::try_from_array(array, place(array)));
            answers.push(self.answer(&arguments.collect::<Result<Vec<_>>>()?)?);
        }
        Ok(ColumnarValue::Array(Arc::new(Int64Array::from(answers))))
    }
}
