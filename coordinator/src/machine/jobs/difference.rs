//! What a change of the catalog does to the circuit.

use std::collections::BTreeMap;

use stillframe_protocol::{JobKind, Program, RelationId};

/// The relations in which two programs differ.
#[derive(Clone, Debug, Default)]
pub(super) struct Difference {
    added: Vec<RelationId>,
    removed: Vec<RelationId>,
    /// Whether a view is added, which has to be filled. A new table is empty.
    adds_views: bool,
}

impl Difference {
    pub(super) fn new(from: &Program, to: &Program) -> Self {
        let tables = differ(
            from.tables.iter().map(|table| (table.id, table)).collect(),
            to.tables.iter().map(|table| (table.id, table)).collect(),
        );
        let views = differ(
            from.views.iter().map(|view| (view.id, view)).collect(),
            to.views.iter().map(|view| (view.id, view)).collect(),
        );
        let adds_views = !views.0.is_empty();
        let added = tables.0.into_iter().chain(views.0).collect();
        let removed = tables.1.into_iter().chain(views.1).collect();
        Self { added, removed, adds_views }
    }

    pub(super) fn kind(&self) -> JobKind {
        match (self.added.is_empty(), self.removed.is_empty()) {
            (true, true) => JobKind::Describe,
            (false, true) => JobKind::Create,
            (true, false) => JobKind::Drop,
            (false, false) => JobKind::Exchange,
        }
    }

    /// The relations that differ.
    pub(super) fn relations(&self) -> Vec<RelationId> {
        self.added.iter().chain(&self.removed).copied().collect()
    }

    /// Whether there is something to fill, and nothing that goes.
    pub(super) fn only_fills(&self) -> bool {
        self.adds_views && self.removed.is_empty()
    }

    /// Whether nothing goes.
    pub(super) fn keeps_all(&self) -> bool {
        self.removed.is_empty()
    }

    /// Whether nothing comes.
    pub(super) fn adds_nothing(&self) -> bool {
        self.added.is_empty()
    }
}

/// What is new or another, and what is gone or another.
fn differ<T: PartialEq>(
    from: BTreeMap<RelationId, &T>,
    to: BTreeMap<RelationId, &T>,
) -> (Vec<RelationId>, Vec<RelationId>) {
    let lacks = |these: &BTreeMap<RelationId, &T>, id: &RelationId, relation: &T| {
        these.get(id).is_none_or(|other| *other != relation)
    };
    let added = to.iter().filter(|(id, relation)| lacks(&from, id, relation));
    let removed = from.iter().filter(|(id, relation)| lacks(&to, id, relation));
    (added.map(|(id, _)| *id).collect(), removed.map(|(id, _)| *id).collect())
}
