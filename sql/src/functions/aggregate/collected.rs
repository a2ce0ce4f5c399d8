//! `array_agg`: DataFusion's, which tells the SQL type of the elements.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature,
};

use crate::{Error, Type};

pub(super) fn array_agg() -> Arc<AggregateUDF> {
    let function = AggregateUDF::new_from_impl(Collected { standard: array_agg_udaf() });
    // What collects JSON is an `array_agg` by the time it is planned.
    let names = ["json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg"];
    Arc::new(function.with_aliases(names))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Collected {
    standard: Arc<AggregateUDF>,
}

impl AggregateUDFImpl for Collected {
    fn name(&self) -> &str {
        self.standard.name()
    }

    fn signature(&self) -> &Signature {
        self.standard.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.standard.return_type(arguments)
    }

    fn return_field(&self, arguments: &[FieldRef]) -> Result<FieldRef> {
        if arguments.first().is_some_and(|field| matches!(Type::of(field), Some(Type::Array(_)))) {
            return Err(Error::unsupported("array_agg of arrays").into());
        }
        let field = self.standard.return_field(arguments)?;
        let element = arguments.first().and_then(|argument| Type::of(argument));
        let Some(kind) = element.map(|element| Type::Array(Box::new(element))) else {
            return Ok(field);
        };
        let metadata = kind.field(field.name(), true).metadata().clone();
        Ok(Arc::new(field.as_ref().clone().with_metadata(metadata)))
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.standard.state_fields(arguments)
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.standard.accumulator(arguments)
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs<'_>) -> bool {
        self.standard.groups_accumulator_supported(arguments)
    }

    fn create_groups_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        self.standard.create_groups_accumulator(arguments)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.standard.order_sensitivity()
    }

    fn with_beneficial_ordering(
        self: Arc<Self>,
        is_ordered: bool,
    ) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        let standard = AggregateUDF::clone(&self.standard).with_beneficial_ordering(is_ordered)?;
        Ok(standard.map(|standard| {
            Arc::new(Self { standard: Arc::new(standard) }) as Arc<dyn AggregateUDFImpl>
        }))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Reversed(array_agg())
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.standard.inner().supports_null_handling_clause()
    }
}
