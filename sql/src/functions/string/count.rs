//! `num_nulls` and `num_nonnulls`.

use std::sync::Arc;

use arrow::array::{Array, Int32Array};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use crate::Type;
use crate::functions::row::{arrays, shaped};
use crate::functions::typed::{Settled, Typed, Wanted};

pub(super) static DEFINITIONS: &[Typed] = &[
    Typed { name: "num_nulls", settle: any, invoke: |arguments| count(arguments, true) },
    Typed { name: "num_nonnulls", settle: any, invoke: |arguments| count(arguments, false) },
];

fn any(kinds: &[Type]) -> Option<Settled> {
    let arguments = kinds.iter().map(|kind| match kind {
        Type::Unknown => Wanted::As(Type::Text),
        kind => Wanted::As(kind.clone()),
    });
    let arguments = arguments.collect::<Vec<_>>();
    (!arguments.is_empty()).then_some(Settled { arguments, returns: Type::Integer })
}

fn count(arguments: &ScalarFunctionArgs, nulls: bool) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let rows = arrays.first().map_or(0, |array| array.len());
    let counts = (0..rows)
        .map(|row| arrays.iter().filter(|array| array.is_null(row) == nulls).count() as i32);
    shaped(Arc::new(counts.collect::<Int32Array>()), is_scalar)
}
