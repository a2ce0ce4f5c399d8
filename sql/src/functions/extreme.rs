//! `greatest` and `least` of values that are compared by keys, which stand behind each of them.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, AsArray, new_null_array};
use arrow::compute::interleave;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use crate::Type;
use crate::functions::row::{arrays, shaped};
use crate::functions::typed::{Settled, Typed};

/// Both of them.
pub(super) static DEFINITIONS: [Typed; 2] = [
    Typed { name: "greatest by keys", settle, invoke: |a| choose(a, Ordering::Greater) },
    Typed { name: "least by keys", settle, invoke: |a| choose(a, Ordering::Less) },
];

fn settle(kinds: &[Type]) -> Option<Settled> {
    let returns = kinds.first()?;
    let is_pair = |pair: &[Type]| matches!(pair, [kind, Type::Bytea] if kind == returns);
    kinds.chunks(2).all(is_pair).then(|| Settled::new(kinds.to_vec(), returns.clone()))
}

/// The first of the values that no other exceeds in a direction; NULLs are passed over.
fn choose(arguments: &ScalarFunctionArgs, direction: Ordering) -> Result<ColumnarValue> {
    let (arrays, is_scalar) = arrays(arguments)?;
    let rows = arrays.first().map_or(0, |array| array.len());
    let nothing = new_null_array(arguments.return_type(), 1);
    let mut choices = vec![(0, 0); rows];
    for (row, choice) in choices.iter_mut().enumerate() {
        let mut chosen: Option<&[u8]> = None;
        for (place, pair) in arrays.chunks(2).enumerate() {
            let keys = pair[1].as_binary::<i32>();
            if keys.is_null(row) {
                continue;
            }
            let key = keys.value(row);
            if chosen.is_none_or(|chosen| key.cmp(chosen) == direction) {
                (chosen, *choice) = (Some(key), (place + 1, row));
            }
        }
    }
    let values = arrays.iter().step_by(2).map(ArrayRef::as_ref);
    let values: Vec<&dyn Array> = std::iter::once(nothing.as_ref()).chain(values).collect();
    shaped(interleave(&values, &choices)?, is_scalar)
}
