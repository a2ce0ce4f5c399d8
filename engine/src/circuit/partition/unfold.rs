//! From sheets to rows.

use std::borrow::Cow;
use std::mem::take;
use std::sync::Arc;

use dbsp::circuit::operator_traits::{Operator, UnaryOperator};
use dbsp::circuit::{GlobalNodeId, Scope};
use dbsp::storage::backend::StoragePath;
use dbsp::utils::Tup2;
use dbsp::{OrdIndexedZSet, OrdZSet, ZWeight};
use feldera_storage::FileCommitter;

use super::sheet::entries;
use crate::circuit::error_entry::parse_error;
use crate::circuit::linear::{Changes, ErrorBook};
use crate::row::Row;

/// Makes rows of the changes of partitions' sheets, and books those that are errors.
pub(super) struct Unfold {
    node: GlobalNodeId,
    book: ErrorBook,
    rows: Vec<Tup2<Row, ZWeight>>,
}

impl Unfold {
    pub(super) fn new(book: ErrorBook) -> Self {
        Self { node: GlobalNodeId::root(), book, rows: vec![] }
    }

    fn sheet(&mut self, key: &[u8], sheet: &[u8], weight: ZWeight) {
        for (count, row) in entries(sheet) {
            let row = Row::concatenate([key, row]);
            self.rows.push(Tup2(row, weight * ZWeight::from(count)));
        }
    }

    /// The difference between two sheets, without the rows that they have in common in their order.
    fn difference(&mut self, key: &[u8], from: &[u8], to: &[u8]) {
        let (mut old, mut new) = (entries(from).peekable(), entries(to).peekable());
        loop {
            let (row, weight) = match (old.peek(), new.peek()) {
                (None, None) => return,
                (Some(a), Some(b)) if a == b => {
                    old.next();
                    new.next();
                    continue;
                }
                // Both sheets are in order; where they aren't, what is emitted twice adds up.
                (Some((count, row)), Some((_, other))) if row <= other => {
                    let entry = (*row, -ZWeight::from(*count));
                    old.next();
                    entry
                }
                (Some((count, row)), None) => {
                    let entry = (*row, -ZWeight::from(*count));
                    old.next();
                    entry
                }
                (_, Some((count, row))) => {
                    let entry = (*row, ZWeight::from(*count));
                    new.next();
                    entry
                }
            };
            self.rows.push(Tup2(Row::concatenate([key, row]), weight));
        }
    }
}

impl Operator for Unfold {
    fn name(&self) -> Cow<'static, str> {
        "Unfold".into()
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
        self.book.checkpoint(base, id, &self.node, files)
    }

    fn restore(&mut self, base: &StoragePath, id: Option<&str>) -> Result<(), dbsp::Error> {
        self.book.restore(base, id, &self.node)
    }

    fn clear_state(&mut self) -> Result<(), dbsp::Error> {
        self.book.clear();
        Ok(())
    }

    fn swap_state(&mut self, other: &mut Self) -> Result<(), dbsp::Error> {
        self.book.swap(&mut other.book);
        Ok(())
    }
}

impl UnaryOperator<OrdIndexedZSet<Row, Row>, OrdZSet<Row>> for Unfold {
    async fn eval(&mut self, changes: &OrdIndexedZSet<Row, Row>) -> OrdZSet<Row> {
        // Most partitions have an old sheet and a new one, side by side.
        let mut held: Option<(Row, Row, ZWeight)> = None;
        changes.for_each(&mut |key, sheet, weight| {
            if let Some(error) = parse_error(sheet) {
                self.book.add(error, weight);
                return;
            }
            match held.take() {
                Some((old_key, old, old_weight))
                    if old_key.as_bytes() == key
                        && old_weight + weight == 0
                        && weight.abs() == 1 =>
                {
                    if weight > 0 {
                        self.difference(key, old.as_bytes(), sheet);
                    } else {
                        self.difference(key, sheet, old.as_bytes());
                    }
                }
                before => {
                    if let Some((key, sheet, weight)) = before {
                        self.sheet(key.as_bytes(), sheet.as_bytes(), weight);
                    }
                    held = Some((Row::new(key), Row::new(sheet), weight));
                }
            }
        });
        if let Some((key, sheet, weight)) = held {
            self.sheet(key.as_bytes(), sheet.as_bytes(), weight);
        }
        self.book.publish();
        OrdZSet::from_keys((), take(&mut self.rows))
    }
}
