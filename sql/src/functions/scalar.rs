//! A scalar function that is its name and its arguments' types, and nothing else: hosts build it
//! again from its name.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::functions::numeric::is_carried;
use crate::{Error, SqlState, Type};

/// What a function makes of its arguments' types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resolved {
    /// The types that the arguments are cast to.
    pub arguments: Vec<DataType>,
    /// The type that comes out of those.
    pub returns: Type,
}

impl Resolved {
    pub(super) fn new(arguments: Vec<DataType>, returns: Type) -> Self {
        Self { arguments, returns }
    }
}

/// What makes a [`Function`].
pub(super) struct Definition {
    /// Its name: all that travels.
    pub name: &'static str,
    /// Settles the types. To resolve the resolved arguments again must give the same.
    pub resolve: fn(&[DataType]) -> Result<Resolved, Error>,
    /// Computes values of the resolved types.
    pub invoke: fn(&ScalarFunctionArgs) -> Result<ColumnarValue>,
}

/// A function of PostgreSQL.
#[derive(Clone)]
pub(super) struct Function {
    definition: &'static Definition,
    signature: Signature,
}

impl Function {
    pub(super) fn udf(definition: &'static Definition) -> Arc<ScalarUDF> {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(Self { definition, signature }))
    }

    pub(super) fn name(&self) -> &'static str {
        self.definition.name
    }

    /// Settles the types, or says why not.
    pub(super) fn resolve(&self, arguments: &[DataType]) -> Result<Resolved, Error> {
        let resolved = (self.definition.resolve)(arguments)?;
        debug_assert_eq!(
            (self.definition.resolve)(&resolved.arguments).as_ref(),
            Ok(&resolved),
            "what is resolved stays as it is: {}",
            self.definition.name,
        );
        Ok(resolved)
    }

    /// `a + b` for an operator.
    fn shown(&self, arguments: &[String]) -> String {
        match (self.definition.name.strip_prefix("operator "), arguments) {
            (Some(operator), [left, right, ..]) => format!("{left} {operator} {right}"),
            (Some(operator), [operand]) => format!("({operator} {operand})"),
            _ => format!("{}({})", self.definition.name, arguments.join(",")),
        }
    }
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Function").field(&self.definition.name).finish()
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.definition.name == other.definition.name
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.definition.name.hash(state);
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.definition.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        let names: Vec<_> =
            arguments.iter().map(|argument| argument.schema_name().to_string()).collect();
        Ok(self.shown(&names))
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(self.resolve(arguments).map_or(DataType::Null, |resolved| resolved.returns.arrow()))
    }

    // Types are final only when the plan is analysed; until then what can't be resolved may yet be.
    // `Coercion` asks again, and raises the error then.
    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<_> =
            arguments.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable = true;
        Ok(Arc::new(match self.resolve(&types) {
            Ok(resolved) => resolved.returns.field(self.name(), nullable),
            Err(_) => Field::new(self.name(), DataType::Null, nullable),
        }))
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let Ok(resolved) = self.resolve(arguments) else { return Ok(arguments.to_vec()) };
        // DataFusion knows no casts to numerics and back. `Coercion` makes them.
        let mut pairs = arguments.iter().zip(&resolved.arguments);
        if pairs.any(|(from, to)| from != to && (is_carried(from) || is_carried(to))) {
            return Ok(arguments.to_vec());
        }
        Ok(resolved.arguments)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        (self.definition.invoke)(&arguments)
    }
}

/// 42883 for an operator.
pub(super) fn no_operator(operator: &str, arguments: &[DataType]) -> Error {
    let names: Vec<_> = arguments.iter().map(type_name).collect();
    let shown = match names.as_slice() {
        [operand] => format!("{operator} {operand}"),
        [left, right, ..] => format!("{left} {operator} {right}"),
        [] => operator.to_owned(),
    };
    no_match("operator", &shown)
}

/// 42883 for a function.
pub(crate) fn no_function(name: &str, arguments: &[DataType]) -> Error {
    let names: Vec<_> = arguments.iter().map(type_name).collect();
    no_match("function", &format!("{name}({})", names.join(", ")))
}

pub(super) fn no_match(what: &str, shown: &str) -> Error {
    let message = format!("{what} does not exist: {shown}");
    let message =
        if what == "function" { format!("function {shown} does not exist") } else { message };
    Error::new(SqlState::UNDEFINED_FUNCTION, message).with_hint(format!(
        "No {what} matches the given name and argument types. You might need to add explicit type \
         casts."
    ))
}

/// The name of a type without its modifier, as in errors.
pub(super) fn type_name(data_type: &DataType) -> String {
    match Type::from_arrow(data_type) {
        _ if data_type.is_null() => "unknown".to_owned(),
        Some(Type::Numeric(_)) => "numeric".to_owned(),
        Some(kind) => kind.to_string(),
        None => data_type.to_string(),
    }
}
