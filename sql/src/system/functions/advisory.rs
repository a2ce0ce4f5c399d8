//! `pg_advisory_lock` and its relatives.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, StringArray};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignature, Volatility,
};

use super::{Scope, integer};
use crate::advisory::{Key, Mode, Span};
use crate::functions::no_function;
use crate::{Error, SqlState, Type};

/// What a function does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Act {
    /// Takes a lock, and waits for it.
    Take(Mode, Span),
    /// Takes a lock if that is possible now.
    Try(Mode, Span),
    GiveBack(Mode),
    GiveAllBack,
}

const FUNCTIONS: [(&str, Act); 11] = [
    ("pg_advisory_lock", Act::Take(Mode::Exclusive, Span::Session)),
    ("pg_advisory_lock_shared", Act::Take(Mode::Shared, Span::Session)),
    ("pg_advisory_xact_lock", Act::Take(Mode::Exclusive, Span::Transaction)),
    ("pg_advisory_xact_lock_shared", Act::Take(Mode::Shared, Span::Transaction)),
    ("pg_try_advisory_lock", Act::Try(Mode::Exclusive, Span::Session)),
    ("pg_try_advisory_lock_shared", Act::Try(Mode::Shared, Span::Session)),
    ("pg_try_advisory_xact_lock", Act::Try(Mode::Exclusive, Span::Transaction)),
    ("pg_try_advisory_xact_lock_shared", Act::Try(Mode::Shared, Span::Transaction)),
    ("pg_advisory_unlock", Act::GiveBack(Mode::Exclusive)),
    ("pg_advisory_unlock_shared", Act::GiveBack(Mode::Shared)),
    ("pg_advisory_unlock_all", Act::GiveAllBack),
];

/// The functions, for one statement.
pub(super) fn all(scope: &Arc<Scope>) -> impl Iterator<Item = ScalarUDF> {
    FUNCTIONS.into_iter().map(move |(name, act)| {
        let any = vec![TypeSignature::Nullary, TypeSignature::VariadicAny];
        let signature = Signature::one_of(any, Volatility::Volatile);
        ScalarUDF::new_from_impl(AdvisoryFunction {
            name,
            act,
            signature,
            scope: Arc::clone(scope),
        })
    })
}

struct AdvisoryFunction {
    name: &'static str,
    act: Act,
    signature: Signature,
    scope: Arc<Scope>,
}

impl fmt::Debug for AdvisoryFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AdvisoryFunction({})", self.name)
    }
}

impl PartialEq for AdvisoryFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.scope, &other.scope)
    }
}

impl Eq for AdvisoryFunction {}

impl Hash for AdvisoryFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl AdvisoryFunction {
    /// Whether it was done; none where an argument is NULL.
    fn answer(&self, arguments: &[ScalarValue]) -> std::result::Result<Option<bool>, Error> {
        let facts = self.scope.settings.facts();
        let (locks, holder) = (&self.scope.database.advisory, facts.holder());
        if self.act == Act::GiveAllBack && arguments.is_empty() {
            locks.give_all_back(holder, Some(Span::Session));
            return Ok(Some(true));
        }
        if arguments.iter().any(ScalarValue::is_null) {
            return Ok(None);
        }
        let numbers: Option<Vec<_>> = arguments.iter().map(integer).collect();
        let half = |number: i64| i32::try_from(number).ok();
        let key = match (self.act, numbers.as_deref()) {
            (Act::GiveAllBack, _) => None,
            (_, Some([one])) => Some(Key::One(*one)),
            (_, Some([one, two])) => {
                half(*one).zip(half(*two)).map(|(one, two)| Key::Two(one, two))
            }
            _ => None,
        };
        let types = || arguments.iter().map(ScalarValue::data_type).collect::<Vec<_>>();
        let key = key.ok_or_else(|| no_function(self.name, &types()))?;
        Ok(Some(match self.act {
            Act::Try(mode, span) => locks.try_take(holder, key, mode, span),
            Act::Take(mode, span) => {
                if !locks.try_take(holder, key, mode, span) {
                    // Whoever runs the query waits, and runs it again.
                    facts.set_is_blocked();
                    let message = "an advisory lock is held by another session";
                    return Err(Error::new(SqlState::LOCK_NOT_AVAILABLE, message));
                }
                true
            }
            Act::GiveBack(mode) => locks.give_back(holder, key, mode),
            Act::GiveAllBack => true,
        }))
    }

    fn returns(&self) -> Type {
        match self.act {
            Act::Take(..) | Act::GiveAllBack => Type::Void,
            Act::Try(..) | Act::GiveBack(_) => Type::Boolean,
        }
    }
}

impl ScalarUDFImpl for AdvisoryFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.returns().arrow())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(self.returns().field(self.name, true)))
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
        let array: ArrayRef = match self.returns() {
            Type::Void => {
                let nothing = answers.iter().map(|answer| answer.map(|_| ""));
                Arc::new(nothing.collect::<StringArray>())
            }
            _ => Arc::new(BooleanArray::from(answers)),
        };
        Ok(ColumnarValue::Array(array))
    }
}
