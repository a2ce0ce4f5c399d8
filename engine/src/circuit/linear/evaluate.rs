//! Expressions over a chunk of rows.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, new_null_array};
use arrow::compute::{cast, concat, filter, prep_null_mask_filter};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::DataFusionError;
use datafusion::physical_expr::PhysicalExpr;
use dbsp::ZWeight;
use stillframe_protocol::{Expression, RowError};

use crate::EngineError;
use crate::circuit::relation::{Relation, Step};
use crate::expression::{Functions, can_fail, compile, row_error};
use crate::row::Codec;

/// Some rows with their weights, and what was computed of them.
pub(crate) struct Chunk<'a> {
    rows: Vec<&'a [u8]>,
    weights: Vec<ZWeight>,
    /// By register, those that were decoded or computed.
    values: Vec<Option<ArrayRef>>,
}

impl<'a> Chunk<'a> {
    pub(super) fn new(rows: Vec<&'a [u8]>, weights: Vec<ZWeight>) -> Self {
        Self { rows, weights, values: vec![] }
    }

    /// The stored bytes of the rows.
    pub(crate) fn rows(&self) -> &[&'a [u8]] {
        &self.rows
    }

    /// By row.
    pub(crate) fn weights(&self) -> &[ZWeight] {
        &self.weights
    }

    /// What was computed into a register.
    pub(crate) fn computed(&self, register: usize) -> &ArrayRef {
        self.values[register].as_ref().expect("a register is computed before it is read")
    }

    /// Gives the vector of weights back for the next chunk.
    pub(super) fn into_weights(self) -> Vec<ZWeight> {
        self.weights
    }

    /// Goes on with some of the rows only.
    fn retain(&mut self, keep: &BooleanArray) {
        if keep.true_count() == self.rows.len() {
            return;
        }
        let mut kept = keep.values().iter();
        self.rows.retain(|_| kept.next().unwrap_or(false));
        let mut kept = keep.values().iter();
        self.weights.retain(|_| kept.next().unwrap_or(false));
        for value in self.values.iter_mut().flatten() {
            *value = filter(value, keep).expect("a mask of the values' length filters them");
        }
    }
}

/// The steps of a relation, compiled.
pub(crate) struct Evaluation {
    codec: Arc<Codec>,
    steps: Vec<Compiled>,
    registers: usize,
    can_fail: bool,
}

enum Compiled {
    Filter(Evaluator),
    Compute(usize, Evaluator),
}

impl Compiled {
    fn evaluator(&self) -> &Evaluator {
        match self {
            Self::Filter(evaluator) | Self::Compute(_, evaluator) => evaluator,
        }
    }
}

/// An expression over some registers.
struct Evaluator {
    expression: Arc<dyn PhysicalExpr>,
    registers: Vec<usize>,
    schema: SchemaRef,
    returns: DataType,
}

impl Evaluation {
    /// Compiles the steps of a relation.
    ///
    /// # Errors
    ///
    /// [`EngineError::InvalidPlan`] if an expression doesn't make sense or has another type than
    /// the plan says.
    pub(crate) fn compile(relation: &Relation, functions: &Functions) -> Result<Self, EngineError> {
        let codec = Arc::clone(&relation.source.codec);
        let mut register = codec.schema().fields().len();
        let mut evaluation =
            Self { codec, steps: vec![], registers: relation.types.len(), can_fail: false };
        for step in &relation.steps {
            let compiler = |expression, returns| {
                Evaluator::compile(expression, &relation.types, returns, functions)
            };
            let (expression, compiled) = match step {
                Step::Filter(predicate) => {
                    (predicate, Compiled::Filter(compiler(predicate, &DataType::Boolean)?))
                }
                Step::Compute(expression) => {
                    let evaluator = compiler(expression, &relation.types[register])?;
                    register += 1;
                    (expression, Compiled::Compute(register - 1, evaluator))
                }
            };
            if can_fail(expression, &registers_schema(&relation.types)) {
                evaluation.can_fail = true;
            } else {
                compiled.evaluator().probe()?;
            }
            evaluation.steps.push(compiled);
        }
        Ok(evaluation)
    }

    /// Whether a row can make it fail.
    pub(crate) fn can_fail(&self) -> bool {
        self.can_fail
    }

    /// Evaluates all steps; returns the rows that came through, and the errors of those that
    /// failed with their weights.
    pub(super) fn run<'a>(&self, mut chunk: Chunk<'a>) -> (Chunk<'a>, Vec<(RowError, ZWeight)>) {
        chunk.values.resize(self.registers, None);
        let mut errors = vec![];
        for step in &self.steps {
            let evaluator = step.evaluator();
            let batch = evaluator.batch(&self.codec, &mut chunk);
            let mut good = Good::default();
            evaluator.search(&batch, 0, &mut good);
            if !good.errors.is_empty() {
                let mut keep = vec![true; chunk.rows.len()];
                for (row, error) in good.errors {
                    keep[row] = false;
                    errors.push((error, chunk.weights[row]));
                }
                chunk.retain(&BooleanArray::from(keep));
            }
            let value = evaluator.joined(&good.values);
            match step {
                Compiled::Filter(_) => {
                    let passes = value.as_boolean();
                    if passes.null_count() > 0 {
                        chunk.retain(&prep_null_mask_filter(passes));
                    } else {
                        chunk.retain(passes);
                    }
                }
                Compiled::Compute(register, _) => chunk.values[*register] = Some(value),
            }
        }
        (chunk, errors)
    }
}

/// What came of the search for the rows of a batch that fail.
#[derive(Default)]
struct Good {
    /// The values of the others, in order.
    values: Vec<ArrayRef>,
    errors: Vec<(usize, RowError)>,
}

impl Evaluator {
    fn compile(
        expression: &Expression,
        types: &[DataType],
        returns: &DataType,
        functions: &Functions,
    ) -> Result<Self, EngineError> {
        let mut registers = vec![];
        expression.columns(&mut |register| registers.push(register));
        registers.sort_unstable();
        registers.dedup();
        let read: Vec<DataType> =
            registers.iter().map(|register| types[*register].clone()).collect();
        let schema = Arc::new(registers_schema(&read));
        let place = |register: usize| {
            registers.binary_search(&register).expect("all registers were collected")
        };
        let expression = compile(&expression.map_columns(&place), &schema, functions)?;
        let computes = expression.data_type(&schema)?;
        if !fits(&computes, returns) {
            let message = format!("{expression} is of type {computes}, the plan says {returns}");
            return Err(EngineError::InvalidPlan(message));
        }
        Ok(Self { expression, registers, schema, returns: returns.clone() })
    }

    /// Evaluates a row of NULLs: an expression that no row makes fail fails here if its operators
    /// don't take their operands.
    fn probe(&self) -> Result<(), EngineError> {
        let column = |field: &Arc<Field>| new_null_array(field.data_type(), 1);
        let columns = self.schema.fields().iter().map(column).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        match self.evaluate(&batch) {
            Ok(_) => Ok(()),
            Err(error) => Err(EngineError::InvalidPlan(error.strip_backtrace())),
        }
    }

    /// The registers that the expression reads.
    fn batch(&self, codec: &Codec, chunk: &mut Chunk<'_>) -> RecordBatch {
        let missing: Vec<usize> = self
            .registers
            .iter()
            .copied()
            .filter(|register| chunk.values[*register].is_none())
            .collect();
        let decoded = codec.decode(&chunk.rows, &missing).expect("stored rows are intact");
        for (register, column) in missing.into_iter().zip(decoded) {
            chunk.values[register] = Some(column);
        }
        let columns = self.registers.iter().map(|register| Arc::clone(chunk.computed(*register)));
        let options = RecordBatchOptions::new().with_row_count(Some(chunk.rows.len()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns.collect(), &options)
            .expect("registers have their types")
    }

    /// Evaluates the batch; if it fails, evaluates its halves, down to the rows that fail.
    fn search(&self, batch: &RecordBatch, first: usize, good: &mut Good) {
        let rows = batch.num_rows();
        if rows == 0 {
            return;
        }
        match self.evaluate(batch) {
            Ok(value) => good.values.push(value),
            Err(error) if rows == 1 => good.errors.push((first, row_error(&error))),
            Err(_) => {
                let half = rows / 2;
                self.search(&batch.slice(0, half), first, good);
                self.search(&batch.slice(half, rows - half), first + half, good);
            }
        }
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef, DataFusionError> {
        let value = self.expression.evaluate(batch)?.into_array(batch.num_rows())?;
        if value.data_type() == &self.returns {
            Ok(value)
        } else {
            Ok(cast(&value, &self.returns)?)
        }
    }

    fn joined(&self, values: &[ArrayRef]) -> ArrayRef {
        match values {
            [] => new_null_array(&self.returns, 0),
            [value] => Arc::clone(value),
            values => {
                let values: Vec<&dyn Array> = values.iter().map(AsRef::as_ref).collect();
                concat(&values).expect("values of one expression have one type")
            }
        }
    }
}

/// Whether a computed type is the wanted one, or the same in another of Arrow's layouts.
fn fits(computed: &DataType, wanted: &DataType) -> bool {
    use DataType::{Binary, BinaryView, LargeBinary, LargeUtf8, Null, Utf8, Utf8View};
    computed == wanted
        || matches!(
            (computed, wanted),
            (LargeUtf8 | Utf8View, Utf8) | (LargeBinary | BinaryView, Binary) | (Null, _)
        )
}

fn registers_schema(types: &[DataType]) -> Schema {
    let field = |(register, data_type): (usize, &DataType)| {
        Field::new(format!("r{register}"), data_type.clone(), true)
    };
    Schema::new(types.iter().enumerate().map(field).collect::<Vec<_>>())
}
