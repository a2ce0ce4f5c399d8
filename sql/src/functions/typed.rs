//! A scalar function that is settled by the SQL types of its arguments.
//!
//! Several SQL types have one carrier (`jsonb`, `uuid` and `text` are strings alike), and a host sees
//! nothing but the carrier. So what such a function must know of a type is in its name, or it is an
//! argument of its own.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::resolve::{Purpose, common};
use super::scalar::no_match;
use crate::{Error, Type};

/// What a function makes of its arguments' types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settled {
    /// How it wants its arguments.
    pub arguments: Vec<Wanted>,
    /// The type that comes out of those.
    pub returns: Type,
}

/// How a function wants an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Cast to a type.
    As(Type),
    /// As the text that a client is shown: a `char(n)` with its blanks.
    Shown,
    /// As what `to_jsonb` makes of it.
    Jsonb,
    /// As what `to_json` makes of it.
    Json,
    /// The session's zone, which is added behind the others.
    Zone,
}

impl Settled {
    /// Arguments that are cast to types.
    pub(super) fn new(arguments: impl IntoIterator<Item = Type>, returns: Type) -> Self {
        let arguments = arguments.into_iter().map(Wanted::As).collect();
        Self { arguments, returns }
    }
}

/// What makes a [`Typed`].
pub(super) struct Typed {
    /// Its name: all that travels.
    pub name: &'static str,
    /// Settles the types; `Unknown` is what may yet become any. To settle what is settled must give
    /// the same.
    pub settle: fn(&[Type]) -> Option<Settled>,
    /// Computes values of the settled types' carriers.
    pub invoke: fn(&ScalarFunctionArgs) -> Result<ColumnarValue>,
}

impl Typed {
    pub(super) fn udf(&'static self) -> Arc<ScalarUDF> {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(TypedFunction { definition: self, signature }))
    }
}

/// A function of PostgreSQL.
#[derive(Clone)]
pub(super) struct TypedFunction {
    definition: &'static Typed,
    signature: Signature,
}

impl TypedFunction {
    pub(super) fn name(&self) -> &'static str {
        self.definition.name
    }

    /// Settles the types, or says that there is no such function.
    pub(super) fn settle(&self, kinds: &[Type]) -> Result<Settled, Error> {
        (self.definition.settle)(kinds).ok_or_else(|| no_typed(self.definition.name, kinds))
    }
}

/// 42883 for a function or an operator.
pub(super) fn no_typed(name: &str, kinds: &[Type]) -> Error {
    let names: Vec<_> = kinds.iter().map(bare_name).collect();
    match (name.strip_prefix("operator "), names.as_slice()) {
        (Some(operator), [left, right]) => {
            no_match("operator", &format!("{left} {operator} {right}"))
        }
        _ => no_match("function", &format!("{name}({})", names.join(", "))),
    }
}

/// The name of a type without its modifier.
pub(super) fn bare_name(kind: &Type) -> String {
    match kind {
        Type::Numeric(_) => "numeric".to_owned(),
        Type::Varchar(_) => "character varying".to_owned(),
        Type::Char(_) => "character".to_owned(),
        Type::Array(element) => format!("{}[]", bare_name(element)),
        other => other.to_string(),
    }
}

/// The type of an argument, of which perhaps nothing is known yet.
pub(super) fn kind_of(field: &Field) -> Type {
    match field.data_type() {
        DataType::Null => Type::Unknown,
        _ => Type::of(field).unwrap_or(Type::Unknown),
    }
}

/// The one type of several, if they can be brought together; `Unknown` gives way to all, and is text
/// if there is nothing else.
pub(super) fn common_kind<'a>(
    kinds: impl IntoIterator<Item = &'a Type>,
    purpose: Purpose,
) -> Option<Type> {
    let known: Vec<_> = kinds.into_iter().filter(|kind| **kind != Type::Unknown).collect();
    let Some(first) = known.first() else { return Some(Type::Text) };
    if known.iter().all(|kind| kind == first) {
        return Some((*first).clone());
    }
    if known.iter().all(|kind| matches!(kind, Type::Text | Type::Varchar(_) | Type::Char(_))) {
        let is_padded = |kind: &&Type| matches!(kind, Type::Char(_));
        return Some(match purpose {
            // Each may become any other, so the first stays.
            Purpose::Column => first.without_limit(),
            Purpose::Comparison if known.iter().any(|kind| **kind == Type::Text) => Type::Text,
            Purpose::Comparison if known.iter().any(is_padded) => Type::Char(None),
            Purpose::Comparison => Type::Varchar(None),
        });
    }
    let elements = known.iter().map(|kind| match kind {
        Type::Array(element) => Some(element.as_ref()),
        _ => None,
    });
    if let Some(elements) = elements.collect::<Option<Vec<_>>>() {
        return common_kind(elements, purpose).map(|element| Type::Array(Box::new(element)));
    }
    // They are carried as texts, and aren't any.
    if known.iter().any(|kind| matches!(kind, Type::Json | Type::Jsonb | Type::Uuid)) {
        return None;
    }
    let carriers: Vec<_> = known.iter().map(|kind| kind.arrow()).collect();
    Type::from_arrow(&common(&carriers, purpose)?)
}

/// Whether it is one of the types that are plain text.
pub(super) fn is_text(kind: &Type) -> bool {
    matches!(
        kind,
        Type::Text
            | Type::Varchar(_)
            | Type::Char(_)
            | Type::Name
            | Type::InternalChar
            | Type::Unknown
    )
}

/// Whether a literal of no type, or a value of a smaller integer type, may stand for an `integer`.
pub(super) fn is_integer(kind: &Type) -> bool {
    matches!(kind, Type::SmallInt | Type::Integer | Type::Unknown)
}

impl std::fmt::Debug for TypedFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("TypedFunction").field(&self.definition.name).finish()
    }
}

impl PartialEq for TypedFunction {
    fn eq(&self, other: &Self) -> bool {
        self.definition.name == other.definition.name
    }
}

impl Eq for TypedFunction {}

impl Hash for TypedFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.definition.name.hash(state);
    }
}

impl ScalarUDFImpl for TypedFunction {
    fn name(&self) -> &str {
        self.definition.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        let names: Vec<_> =
            arguments.iter().map(|argument| argument.schema_name().to_string()).collect();
        Ok(match (self.definition.name.strip_prefix("operator "), names.as_slice()) {
            (Some(operator), [left, right]) => format!("{left} {operator} {right}"),
            _ => format!("{}({})", self.definition.name, names.join(",")),
        })
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let kinds: Vec<_> = arguments
            .iter()
            .map(|data_type| match data_type {
                DataType::Null => Type::Unknown,
                other => Type::from_arrow(other).unwrap_or(Type::Unknown),
            })
            .collect();
        Ok(self.settle(&kinds).map_or(DataType::Null, |settled| settled.returns.arrow()))
    }

    // Types are final only when the plan is analysed; until then what can't be settled may yet be.
    // `Coercion` asks again, and raises the error then.
    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let kinds: Vec<_> = arguments.arg_fields.iter().map(|field| kind_of(field)).collect();
        let found = self.settle(&kinds).or_else(|error| {
            // A literal looks like a text, and so does a CASE of what is carried as texts.
            let open = kinds.iter().map(|kind| match kind {
                Type::Text => Type::Unknown,
                kind => kind.clone(),
            });
            let open: Vec<_> = open.collect();
            if open == kinds { Err(error) } else { self.settle(&open) }
        });
        Ok(Arc::new(match found {
            Ok(settled) => settled.returns.field(self.name(), true),
            Err(_) => Field::new(self.name(), DataType::Null, true),
        }))
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        Ok(arguments.to_vec())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        (self.definition.invoke)(&arguments)
    }
}
