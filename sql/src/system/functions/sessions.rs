//! Functions that do something to the session that calls them: `pg_notify` and `set_config`.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::StringArray;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignature, Volatility,
};

use super::{Scope, text};
use crate::facts::Facts;
use crate::functions::no_function;
use crate::system::table::{Cell, SystemTable};
use crate::{Error, SqlState, Type};

/// `pg_listening_channels()`.
#[derive(Debug)]
pub(super) struct ListeningChannels {
    pub(super) facts: Facts,
}

impl TableFunctionImpl for ListeningChannels {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        if !args.exprs().is_empty() {
            return Err(no_function("pg_listening_channels", &[]).into());
        }
        let rows = self.facts.inbox().channels().into_iter();
        let rows = rows.map(|channel| vec![Cell::Text(channel)]).collect();
        let columns = vec![("pg_listening_channels", Type::Text)];
        Ok(SystemTable { columns, rows }.provider())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Notify,
    SetConfig,
}

/// The functions, for one statement.
pub(super) fn all(scope: &Arc<Scope>) -> impl Iterator<Item = ScalarUDF> {
    [Kind::Notify, Kind::SetConfig].into_iter().map(move |kind| {
        let any = vec![TypeSignature::Nullary, TypeSignature::VariadicAny];
        let signature = Signature::one_of(any, Volatility::Volatile);
        let function = SessionFunction { kind, signature, scope: Arc::clone(scope) };
        ScalarUDF::new_from_impl(function)
    })
}

struct SessionFunction {
    kind: Kind,
    signature: Signature,
    scope: Arc<Scope>,
}

impl fmt::Debug for SessionFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionFunction({:?})", self.kind)
    }
}

impl PartialEq for SessionFunction {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && Arc::ptr_eq(&self.scope, &other.scope)
    }
}

impl Eq for SessionFunction {}

impl Hash for SessionFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
    }
}

impl SessionFunction {
    fn answer(&self, arguments: &[ScalarValue]) -> std::result::Result<Option<String>, Error> {
        let facts = self.scope.settings.facts();
        match (self.kind, arguments) {
            (Kind::Notify, [channel, payload]) => {
                let (channel, payload) = (text(channel), text(payload));
                facts.with_outbox(|outbox| {
                    outbox.notify(channel.unwrap_or_default(), payload.unwrap_or_default())
                })?;
                Ok(Some(String::new()))
            }
            (Kind::SetConfig, [name, value, local]) => {
                let Some(name) = text(name) else {
                    let message = "SET requires parameter name";
                    return Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
                };
                let local = *local == ScalarValue::Boolean(Some(true));
                let value = text(value).map(str::to_owned);
                let mut settings = self.scope.settings.clone();
                settings.set(name, value.as_deref())?;
                facts.assign(crate::facts::Assignment { name: name.to_owned(), value, local });
                Ok(Some(settings.get(name)?.to_owned()))
            }
            (kind, _) => {
                let name = kind.name();
                let message = format!("function {name} does not exist with these arguments");
                Err(Error::new(SqlState::UNDEFINED_FUNCTION, message))
            }
        }
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Notify => "pg_notify",
            Self::SetConfig => "set_config",
        }
    }

    fn returns(self) -> Type {
        match self {
            Self::Notify => Type::Void,
            Self::SetConfig => Type::Text,
        }
    }
}

impl ScalarUDFImpl for SessionFunction {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.kind.returns().arrow())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(self.kind.returns().field(self.name(), true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        // For each row, also where all arguments are constant.
        let rows = args.number_rows;
        let arrays = args.args.iter().map(|argument| argument.to_array(rows));
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        let mut answers = Vec::with_capacity(rows);
        for row in 0..rows {
            let arguments = arrays.iter().map(|array| ScalarValue::try_from_array(array, row));
            answers.push(self.answer(&arguments.collect::<Result<Vec<_>>>()?)?);
        }
        Ok(ColumnarValue::Array(Arc::new(StringArray::from(answers))))
    }
}
