//! A client that changes the catalog.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_schema::Schema;
use stillframe_protocol::{
    CatalogSnapshot, Change, Committed, CoordinatorError, Mode, Plan, Program, RelationId, View,
};

use super::super::bank::{ACCOUNTS, whole};
use super::super::session::{Over, Session};
use crate::machine::{Reply, Request};

/// What the simulated catalog holds: views, which are part of the program, and comments, which
/// aren't.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Definitions {
    pub(in super::super) views: BTreeSet<u32>,
    pub(in super::super) comments: BTreeSet<u32>,
}

impl Definitions {
    pub(in super::super) fn parse(catalog: &CatalogSnapshot) -> Self {
        let text = String::from_utf8(catalog.bytes.to_vec()).expect("definers write text");
        let (views, comments) = text.split_once(';').unwrap_or_default();
        let numbers = |text: &str| text.split(',').filter_map(|item| item.parse().ok()).collect();
        Self { views: numbers(views), comments: numbers(comments) }
    }

    fn bytes(&self) -> Arc<[u8]> {
        let list =
            |items: &BTreeSet<u32>| items.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        format!("{};{}", list(&self.views), list(&self.comments)).into_bytes().into()
    }

    fn program(&self) -> Program {
        let views = self.views.iter().map(|view| View {
            id: RelationId(*view),
            plan: Arc::new(Plan::Values { schema: Arc::new(Schema::empty()), rows: vec![] }),
        });
        Program { tables: vec![], views: views.collect() }
    }
}

/// Adds a view or a comment, and takes it away again.
pub(super) async fn define(session: &Session) -> Result<(), Over> {
    let item = session.number() as u32;
    let is_view = session.once_in(2);
    for present in [true, false] {
        session.think(40).await;
        change(session, item, present, |definitions| {
            let kind = if is_view { &mut definitions.views } else { &mut definitions.comments };
            if present {
                kind.insert(item)
            } else {
                kind.remove(&item)
            };
        })
        .await?;
    }
    Ok(())
}

async fn change(
    session: &Session,
    item: u32,
    present: bool,
    edit: impl Fn(&mut Definitions),
) -> Result<(), Over> {
    let transaction = session.begin();
    session.checker.borrow_mut().defines(item);
    if session.once_in(4) {
        let all = vec![whole(ACCOUNTS, Mode::Exclusive)];
        if session.reserve(transaction, None, all, None).await?.is_err() {
            session.abort(transaction);
            return Ok(());
        }
    }
    loop {
        let head = match session.ask(Request::CatalogHead).await {
            Ok(Reply::Head(head)) => head,
            other => return Err(session.over(other)),
        };
        session.think(2).await;
        let mut definitions = Definitions::parse(&head);
        edit(&mut definitions);
        let change = Change {
            transaction,
            base: head.version,
            bytes: definitions.bytes(),
            program: definitions.program(),
            staged_on: BTreeSet::new(),
        };
        match session.ask(Request::Change(change)).await {
            Ok(Reply::Committed(Committed { step })) => {
                *session.open.borrow_mut() = None;
                session.checker.borrow_mut().defined(head.version, item, present, step);
                return Ok(());
            }
            Err(CoordinatorError::CatalogChanged) => {}
            other => return Err(session.over(other)),
        }
    }
}
