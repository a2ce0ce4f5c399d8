//! Clients that write, each statement by the loop of lease, evaluate, reserve, look again.

use std::collections::BTreeSet;
use std::time::Duration;

use stillframe_protocol::{Entry, Epoch, FrameId, Mode, Reservation, TransactionId};

use super::super::bank::{ACCOUNTS, Contents, NOTES, Write, account, whole};
use super::super::session::{Held, Over, Session};

/// A transaction's isolation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Isolation {
    /// Each statement takes a frame, and a newer one if what it writes has changed.
    ReadCommitted,
    /// One frame for all; gives up if what it writes has changed.
    RepeatableRead,
}

/// A transaction that writes.
struct Writing<'a> {
    session: &'a Session,
    transaction: TransactionId,
    isolation: Isolation,
    timeout: Option<Duration>,
    lease: Option<Held>,
    /// The epoch of its frames.
    epoch: Option<Epoch>,
}

/// Moves money between two accounts in each of up to three statements.
pub(super) async fn transfer(session: &Session) -> Result<(), Over> {
    let mut writing = Writing::begin(session);
    let mut writes = vec![];
    let mut untouched: BTreeSet<u64> = (0..session.accounts).collect();
    for _ in 0..=session.random(3) {
        if untouched.len() < 2 {
            break;
        }
        let [from, to] = [(); 2].map(|()| {
            let nth = session.random(untouched.len() as u64) as usize;
            let key = untouched.iter().copied().nth(nth).expect("it is below the length");
            untouched.remove(&key);
            key
        });
        if session.once_in(4) {
            let glance = vec![account(from, Mode::Shared), account(to, Mode::Shared)];
            if writing.reserve(None, glance).await?.is_none() {
                return Ok(());
            }
        }
        let mut entries = vec![whole(ACCOUNTS, Mode::Shared), account(from, Mode::Exclusive)];
        if session.once_in(4) {
            // One key at a time: two such writers may wait for each other.
            if writing.statement(entries).await?.is_none() {
                return Ok(());
            }
            entries = vec![];
        }
        entries.push(account(to, Mode::Exclusive));
        let Some(contents) = writing.statement(entries).await? else { return Ok(()) };
        let amount = 1 + session.random(9) as i64;
        for (key, change) in [(from, -amount), (to, amount)] {
            let old = contents.accounts[&key];
            writes.push(Write::Balance { key, old, new: old + change });
        }
        session.think(3).await;
    }
    if session.once_in(2) {
        let shared = vec![whole(NOTES, Mode::Shared)];
        if writing.statement(shared).await?.is_none() {
            return Ok(());
        }
        writes.push(Write::Note(session.number()));
    }
    if session.once_in(8) {
        writing.abort();
        return Ok(());
    }
    writing.commit(writes).await
}

/// Takes all notes away: those there are when nobody else may write any.
pub(super) async fn sweep(session: &Session) -> Result<(), Over> {
    session.think(50).await;
    let mut writing = Writing::begin(session);
    let all = vec![whole(NOTES, Mode::Exclusive)];
    let Some(contents) = writing.statement(all).await? else { return Ok(()) };
    let nothing = contents.notes.is_empty();
    writing.commit(if nothing { vec![] } else { vec![Write::Sweep(contents.notes)] }).await
}

/// Gives every account what the next one had.
pub(super) async fn rotate(session: &Session) -> Result<(), Over> {
    session.think(100).await;
    let mut writing = Writing::begin(session);
    let all = vec![whole(ACCOUNTS, Mode::Exclusive)];
    let Some(contents) = writing.statement(all).await? else { return Ok(()) };
    let writes = contents.accounts.iter().map(|(&key, &old)| {
        let new = contents.accounts[&((key + 1) % session.accounts)];
        Write::Balance { key, old, new }
    });
    writing.commit(writes.collect()).await
}

impl<'a> Writing<'a> {
    fn begin(session: &'a Session) -> Self {
        let isolation = match session.random(3) {
            0 => Isolation::RepeatableRead,
            _ => Isolation::ReadCommitted,
        };
        let timeout = match session.random(4) {
            0 => Some(Duration::from_millis(session.random(50))),
            _ => None,
        };
        Self { session, transaction: session.begin(), isolation, timeout, lease: None, epoch: None }
    }

    /// Reserves entries and returns a frame that shows them as they are; none if the transaction
    /// had to be aborted.
    async fn statement(&mut self, entries: Vec<Entry>) -> Result<Option<Contents>, Over> {
        let session = self.session;
        loop {
            let lease = self.frame().await?;
            let frame = lease.frame();
            let Some(contents) = session.read(lease).await? else {
                self.abort();
                return Ok(None);
            };
            session.think(2).await;
            match self.reserve(Some(frame), entries.clone()).await? {
                None => return Ok(None),
                Some(Reservation::Granted) => return Ok(Some(contents)),
                Some(Reservation::Changed(_)) if self.isolation == Isolation::RepeatableRead => {
                    self.abort();
                    return Ok(None);
                }
                Some(Reservation::Changed(_)) => {}
            }
        }
    }

    /// The statement's frame.
    async fn frame(&mut self) -> Result<&Held, Over> {
        let old = self.lease.take();
        let lease = match (old, self.isolation) {
            (Some(lease), Isolation::RepeatableRead) => lease,
            (old, _) => {
                let lease = self.session.lease().await?;
                if let Some(old) = old {
                    self.session.release(&old);
                }
                lease
            }
        };
        let epoch = lease.grant.epoch;
        if *self.epoch.get_or_insert(epoch) != epoch {
            // What it has seen and reserved is gone with its epoch.
            self.session.abort(self.transaction);
            self.session.release(&lease);
            return Err(Over);
        }
        Ok(self.lease.insert(lease))
    }

    /// Reserves; none if the transaction had to be aborted.
    async fn reserve(
        &mut self,
        frame: Option<FrameId>,
        entries: Vec<Entry>,
    ) -> Result<Option<Reservation>, Over> {
        let timeout = self.timeout;
        match self.session.reserve(self.transaction, frame, entries, timeout).await? {
            Ok(reservation) => Ok(Some(reservation)),
            Err(_) => {
                self.abort();
                Ok(None)
            }
        }
    }

    fn abort(&mut self) {
        self.session.abort(self.transaction);
        self.end();
    }

    async fn commit(mut self, writes: Vec<Write>) -> Result<(), Over> {
        let Some(epoch) = self.epoch else { return Ok(()) };
        self.session.commit(self.transaction, epoch, writes).await?;
        self.end();
        Ok(())
    }

    fn end(&mut self) {
        if let Some(lease) = self.lease.take() {
            self.session.release(&lease);
        }
    }
}
