//! `information_schema._pg_expandarray`: the elements of an array with their subscripts, which
//! drivers ask for. Its rows are an array of composite values here.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, ListArray, StructArray};
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::Error;
use crate::functions::no_function;

/// The function.
pub(super) fn expand_array() -> Arc<ScalarUDF> {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(ExpandArray { signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ExpandArray {
    signature: Signature,
}

fn fields(element: &DataType) -> Fields {
    let fields = [Field::new("x", element.clone(), true), Field::new("n", DataType::Int32, true)];
    Fields::from_iter(fields)
}

fn item(element: &DataType) -> FieldRef {
    Arc::new(Field::new_list_field(DataType::Struct(fields(element)), true))
}

impl ScalarUDFImpl for ExpandArray {
    fn name(&self) -> &str {
        "information_schema._pg_expandarray"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [DataType::List(element)] => Ok(DataType::List(item(element.data_type()))),
            other => Err(no_function(self.name(), other).into()),
        }
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types = arguments.arg_fields.iter().map(|field| field.data_type().clone());
        let data_type = self.return_type(&types.collect::<Vec<_>>())?;
        Ok(Arc::new(Field::new(self.name(), data_type, true)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let lists = arrays[0].as_list::<i32>();
        let DataType::List(element) = lists.data_type() else {
            return Err(Error::internal("an array that is none").into());
        };
        // NULL rows have elements that nobody sees, so the offsets stay.
        let offsets = lists.value_offsets();
        let mut subscripts = vec![0; lists.values().len()];
        for bounds in offsets.windows(2) {
            let places = bounds[0] as usize..bounds[1] as usize;
            subscripts[places].iter_mut().zip(1..).for_each(|(place, number)| *place = number);
        }
        let subscripts: ArrayRef = Arc::new(Int32Array::from(subscripts));
        let columns = vec![Arc::clone(lists.values()), subscripts];
        let values = StructArray::try_new(fields(element.data_type()), columns, None)?;
        let rows = ListArray::try_new(
            item(element.data_type()),
            lists.offsets().clone(),
            Arc::new(values),
            lists.nulls().cloned(),
        )?;
        Ok(ColumnarValue::Array(Arc::new(rows)))
    }
}
