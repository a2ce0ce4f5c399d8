//! `coalesce`: DataFusion's, whose arguments are settled when the plan is analysed.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::Type;
use crate::functions::resolve::{Purpose, Rank, common, rank};

/// The function.
pub(super) fn coalesce() -> Arc<ScalarUDF> {
    let standard = datafusion::functions::core::coalesce();
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(Coalesce { standard, signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Coalesce {
    standard: Arc<ScalarUDF>,
    signature: Signature,
}

/// What one of several arguments is taken for until `Coercion` settles them.
pub(super) fn provisional(name: &str, arguments: &ReturnFieldArgs<'_>) -> FieldRef {
    let types = arguments.arg_fields.iter().map(|field| field.data_type().clone());
    let types: Vec<_> = types.collect();
    if types.iter().any(|data_type| rank(data_type) == Some(Rank::Numeric))
        && let Some(common) = common(&types, Purpose::Column)
        && let Some(kind) = Type::from_arrow(&common)
        && types.iter().any(|data_type| *data_type != common)
    {
        return Arc::new(kind.field(name, true));
    }
    // A literal of no type looks like text, and takes the type of what stands beside it.
    let is_open = |place: usize| {
        let literal = arguments.scalar_arguments.get(place).copied().flatten();
        literal.is_some() && arguments.arg_fields[place].metadata().is_empty()
    };
    let fields = arguments.arg_fields.iter().enumerate();
    let known = fields.filter(|(_, field)| !field.data_type().is_null());
    let first = known.clone().find(|(place, _)| !is_open(*place)).or(known.clone().next());
    let nullable = arguments.arg_fields.iter().all(|field| field.is_nullable());
    match first {
        Some((_, field)) => {
            Arc::new(field.as_ref().clone().with_name(name).with_nullable(nullable))
        }
        None => Arc::new(Field::new(name, DataType::Null, true)),
    }
}

impl ScalarUDFImpl for Coalesce {
    fn name(&self) -> &str {
        self.standard.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let known = arguments.iter().find(|data_type| !data_type.is_null());
        Ok(known.cloned().unwrap_or(DataType::Null))
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(provisional(self.name(), &arguments))
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        // What can't be brought together yet, `Coercion` will bring together or refuse.
        Ok(self.standard.coerce_types(arguments).unwrap_or_else(|_| arguments.to_vec()))
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.standard.simplify(args, info)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.standard.invoke_with_args(arguments)
    }

    fn conditional_arguments<'a>(
        &self,
        args: &'a [Expr],
    ) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.standard.conditional_arguments(args)
    }

    fn short_circuits(&self) -> bool {
        self.standard.short_circuits()
    }
}
