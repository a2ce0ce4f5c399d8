//! Simulated clients: they do what front ends do for statements.

mod definer;
mod reader;
mod writer;

use std::future::Future;
use std::pin::Pin;

pub(super) use self::definer::Definitions;
use super::session::Session;

/// What a client does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Role {
    /// Reads frames, again and again.
    Reader,
    /// Moves money between accounts, a few statements in a transaction.
    Writer,
    /// Takes all notes away.
    Sweeper,
    /// Rewrites all accounts.
    Rotator,
    /// Changes the catalog.
    Definer,
}

/// A client's life.
pub(super) fn live(role: Role, session: Session) -> Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(async move {
        // Who has met the end of an epoch goes on until all goes well once more.
        let mut unlucky = false;
        while !session.stops() || unlucky {
            let over = match role {
                Role::Reader => reader::read(&session).await,
                Role::Writer => writer::transfer(&session).await,
                Role::Sweeper => writer::sweep(&session).await,
                Role::Rotator => writer::rotate(&session).await,
                Role::Definer => definer::define(&session).await,
            };
            unlucky = over.is_err();
            let open = session.open.borrow_mut().take();
            if let (true, Some(transaction)) = (unlucky, open) {
                session.abort(transaction);
            }
            if unlucky && !session.begins_anew {
                return;
            }
            session.think(if unlucky { 50 } else { 5 }).await;
        }
    })
}
