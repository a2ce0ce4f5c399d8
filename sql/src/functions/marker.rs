//! Functions that only mark something until the types are settled: `Coercion` takes them away.

use std::hash::Hash;
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};

use crate::Error;

/// Marks a condition, with the words by which a message calls it.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Condition {
    name: String,
    pub(super) of: &'static str,
    signature: Signature,
}

/// What conditions belong to.
const CLAUSES: &[&str] = &[
    "WHERE",
    "HAVING",
    "JOIN/ON",
    "FILTER",
    "NOT",
    "IS TRUE",
    "IS NOT TRUE",
    "IS FALSE",
    "IS NOT FALSE",
    "IS UNKNOWN",
    "IS NOT UNKNOWN",
];

/// The name of the function that marks the conditions of a clause.
pub(super) fn condition(of: &str) -> String {
    format!("argument of {of}")
}

/// Stands for IS DISTINCT FROM, which DataFusion refuses at once of what it can't bring together.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Distinctness {
    pub(super) operator: Operator,
    signature: Signature,
}

/// The name of [`Distinctness`].
pub(super) const DISTINCT: &str = "is distinct from";
/// The name of its opposite.
pub(super) const NOT_DISTINCT: &str = "is not distinct from";

/// Marks a cast by the name of its type: DataFusion's name of a cast is that of its operand alone.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Typed {
    signature: Signature,
}

/// The name of [`Typed`].
pub(super) const TYPED: &str = "typed";

/// Marks a column of the part of a recursive query that names it: DataFusion casts it to the type
/// of the other part, which PostgreSQL doesn't.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Recursive {
    signature: Signature,
}

/// The name of [`Recursive`].
pub(super) const RECURSIVE: &str = "recursive column";

/// Marks the number of rows of FETCH FIRST ... WITH TIES.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct WithTies {
    signature: Signature,
}

/// The name of [`WithTies`].
pub(super) const WITH_TIES: &str = "with ties";

/// All of these functions.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let signature = || Signature::any(1, Volatility::Immutable);
    let conditions = CLAUSES.iter().map(|of| {
        let name = condition(of);
        Arc::new(ScalarUDF::new_from_impl(Condition { name, of, signature: signature() }))
    });
    let typed = Typed { signature: Signature::any(2, Volatility::Immutable) };
    let recursive = Recursive { signature: signature() };
    let with_ties = WithTies { signature: signature() };
    let distinctness = |operator| {
        let signature = Signature::any(2, Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(Distinctness { operator, signature }))
    };
    conditions
        .chain([Operator::IsDistinctFrom, Operator::IsNotDistinctFrom].map(distinctness))
        .chain([
            Arc::new(ScalarUDF::new_from_impl(typed)),
            Arc::new(ScalarUDF::new_from_impl(recursive)),
            Arc::new(ScalarUDF::new_from_impl(with_ties)),
        ])
        .collect()
}

impl ScalarUDFImpl for Condition {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(Error::internal(format!("an {} is left", self.name)).into())
    }
}

impl ScalarUDFImpl for Distinctness {
    fn name(&self) -> &str {
        match self.operator {
            Operator::IsDistinctFrom => DISTINCT,
            _ => NOT_DISTINCT,
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(Error::internal("a comparison that nothing has settled is left").into())
    }
}

impl ScalarUDFImpl for Typed {
    fn name(&self) -> &str {
        TYPED
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments.first().cloned().unwrap_or(DataType::Null))
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = arguments.arg_fields.first().cloned();
        Ok(field.ok_or_else(|| Error::internal("a marked cast without its operand"))?)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(Error::internal("a marked cast is left").into())
    }
}

impl ScalarUDFImpl for Recursive {
    fn name(&self) -> &str {
        RECURSIVE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments.first().cloned().unwrap_or(DataType::Null))
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = arguments.arg_fields.first().cloned();
        Ok(field.ok_or_else(|| Error::internal("a marked column without its operand"))?)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(Error::internal("a marked column is left").into())
    }
}

impl ScalarUDFImpl for WithTies {
    fn name(&self) -> &str {
        WITH_TIES
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(Error::internal("a marked FETCH FIRST is left").into())
    }
}
