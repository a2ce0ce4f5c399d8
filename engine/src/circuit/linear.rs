//! Linear operators: what they do with a row doesn't depend on any other row.
//!
//! One operator evaluates all steps of a [`Relation`](super::relation::Relation), a batch at a
//! time: it decodes the fields that expressions read, and cuts all others out of the stored bytes.
//! Then an [`Emission`] makes of it what the reader needs: rows, keyed rows or weights.
//!
//! A row that makes an expression fail is dropped and booked ([`ErrorBook`]).

mod book;
mod cut;
mod emission;
mod evaluate;

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use dbsp::circuit::operator_traits::{Data, Operator, UnaryOperator};
use dbsp::circuit::{GlobalNodeId, Scope};
use dbsp::dynamic::DowncastTrait;
use dbsp::storage::backend::StoragePath;
use dbsp::trace::{BatchReader as _, Cursor as _};
use dbsp::typed_batch::BatchReader as _;
use dbsp::{OrdIndexedZSet, OrdZSet, ZWeight};
use feldera_storage::FileCommitter;

use super::error_entry::parse_error;
use crate::row::{Row, RowBuffer};

pub(crate) use book::ErrorBook;
pub(crate) use cut::{Cutter, Fields};
pub(crate) use emission::{Emission, KeyedRows, Rows};
pub(crate) use evaluate::{Chunk, Evaluation};

/// Rows of a chunk; what one decodes to should stay in the processor's cache.
const CHUNK_ROWS: usize = 4096;
/// Bytes of a chunk, which keeps columns of long texts far from Arrow's limit of 2 GiB.
const CHUNK_BYTES: usize = 4 << 20;

/// Changes that a linear operator reads.
pub(crate) trait Changes: Data {
    /// Calls `visit` with the two parts and the weight of each row.
    fn for_each(&self, visit: &mut dyn FnMut(&[u8], &[u8], ZWeight));
}

impl Changes for OrdZSet<Row> {
    fn for_each(&self, visit: &mut dyn FnMut(&[u8], &[u8], ZWeight)) {
        let mut cursor = self.inner().cursor();
        while cursor.key_valid() {
            let weight = **cursor.weight();
            // SAFETY: the batch's keys are rows.
            let row: &Row = unsafe { cursor.key().downcast() };
            visit(row.as_bytes(), &[], weight);
            cursor.step_key();
        }
    }
}

impl Changes for OrdIndexedZSet<Row, Row> {
    fn for_each(&self, visit: &mut dyn FnMut(&[u8], &[u8], ZWeight)) {
        let mut cursor = self.inner().cursor();
        while cursor.key_valid() {
            // SAFETY: the batch's keys are rows. Cloned because a stored key isn't kept while its
            // values are read.
            let key = unsafe { cursor.key().downcast::<Row>() }.clone();
            while cursor.val_valid() {
                let weight = **cursor.weight();
                // SAFETY: the batch's values are rows.
                let rest: &Row = unsafe { cursor.val().downcast() };
                visit(key.as_bytes(), rest.as_bytes(), weight);
                cursor.step_val();
            }
            cursor.step_key();
        }
    }
}

/// The operator.
pub(crate) struct Linear<I, O> {
    name: &'static str,
    node: GlobalNodeId,
    evaluation: Arc<Evaluation>,
    emission: Box<dyn Emission<O>>,
    /// Where rows with an error in their place are told from others.
    carries_errors: bool,
    book: Option<ErrorBook>,
    buffer: RowBuffer,
    weights: Vec<ZWeight>,
    reads: PhantomData<fn(&I)>,
}

impl<I, O> Linear<I, O> {
    /// An operator that needs a book if the evaluation can fail or its input carries errors.
    pub(crate) fn new(
        name: &'static str,
        evaluation: Arc<Evaluation>,
        emission: Box<dyn Emission<O>>,
        carries_errors: bool,
        book: Option<ErrorBook>,
    ) -> Self {
        Self {
            name,
            node: GlobalNodeId::root(),
            evaluation,
            emission,
            carries_errors,
            book,
            buffer: RowBuffer::default(),
            weights: vec![],
            reads: PhantomData,
        }
    }

    fn emit_chunk(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        let chunk = Chunk::new(self.buffer.rows(), std::mem::take(&mut self.weights));
        let (chunk, errors) = self.evaluation.run(chunk);
        for (error, weight) in errors {
            let Some(book) = &mut self.book else {
                panic!("an expression that cannot fail has failed: {error} ({})", error.sqlstate);
            };
            book.add(error, weight);
        }
        self.emission.push(&chunk);
        self.weights = chunk.into_weights();
        self.weights.clear();
        self.buffer.clear();
    }
}

impl<I: 'static, O: 'static> Operator for Linear<I, O> {
    fn name(&self) -> Cow<'static, str> {
        self.name.into()
    }

    fn init(&mut self, node: &GlobalNodeId) {
        self.node = node.clone();
    }

    fn fixedpoint(&self, _: Scope) -> bool {
        true
    }

    fn checkpoint(
        &mut self,
        base: &StoragePath,
        id: Option<&str>,
        files: &mut Vec<Arc<dyn FileCommitter>>,
    ) -> Result<(), dbsp::Error> {
        self.book.as_mut().map_or(Ok(()), |book| book.checkpoint(base, id, &self.node, files))
    }

    fn restore(&mut self, base: &StoragePath, id: Option<&str>) -> Result<(), dbsp::Error> {
        self.book.as_mut().map_or(Ok(()), |book| book.restore(base, id, &self.node))
    }

    fn clear_state(&mut self) -> Result<(), dbsp::Error> {
        if let Some(book) = &mut self.book {
            book.clear();
        }
        Ok(())
    }

    fn swap_state(&mut self, other: &mut Self) -> Result<(), dbsp::Error> {
        if let (Some(book), Some(other)) = (&mut self.book, &mut other.book) {
            book.swap(other);
        }
        Ok(())
    }
}

impl<I: Changes, O: Data> UnaryOperator<I, O> for Linear<I, O> {
    async fn eval(&mut self, changes: &I) -> O {
        let mut bytes = 0;
        changes.for_each(&mut |head, tail, weight| {
            if self.carries_errors
                && let Some(error) = parse_error(tail)
            {
                let book = self.book.as_mut().expect("an input that carries errors has a book");
                book.add(error, weight);
                return;
            }
            self.buffer.push(head, tail);
            self.weights.push(weight);
            bytes += head.len() + tail.len();
            if self.buffer.len() >= CHUNK_ROWS || bytes >= CHUNK_BYTES {
                self.emit_chunk();
                bytes = 0;
            }
        });
        self.emit_chunk();
        if let Some(book) = &mut self.book {
            book.publish();
        }
        self.emission.finish()
    }
}
