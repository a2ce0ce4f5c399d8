//! What the session tells others, and what others tell it.

use super::Session;
use crate::parser::Signal;
use crate::{Error, Notification};

impl Session {
    /// LISTEN, UNLISTEN or NOTIFY: it happens when the transaction commits.
    pub(super) fn signal(&self, signal: &Signal) -> Result<(), Error> {
        self.settings.facts().with_outbox(|outbox| match signal {
            Signal::Listen(channel) => {
                outbox.listen(channel);
                Ok(())
            }
            Signal::Unlisten(channel) => {
                outbox.unlisten(channel.as_deref());
                Ok(())
            }
            Signal::Notify { channel, payload } => outbox.notify(channel, payload),
        })
    }

    /// Whether what the transaction wants to tell can be told.
    pub(super) fn check_signals(&self) -> Result<(), Error> {
        self.settings.facts().with_outbox(|outbox| self.database.channels.check(outbox))
    }

    /// The transaction has committed: what it wants to tell is told.
    pub(super) fn send_signals(&self) {
        let facts = self.settings.facts();
        let (process, inbox) = (facts.process(), facts.inbox());
        facts.with_outbox(|outbox| {
            if outbox.len() > 0 {
                self.database.channels.publish(outbox, process, &inbox);
            }
        });
    }

    /// The transaction was rolled back.
    pub(super) fn drop_signals(&self) {
        self.settings.facts().with_outbox(crate::signal::Outbox::clear);
    }

    /// Takes what others have told the session, outside of transactions: a client hears of it
    /// between them.
    pub fn take_notifications(&mut self) -> Vec<Notification> {
        self.take_assignments();
        if !self.transaction.is_idle() {
            return vec![];
        }
        // What a query has told that was a transaction of its own, now that its rows were sent.
        self.send_signals();
        self.settings.facts().inbox().take()
    }

    /// Ends when there may be something to [take](Session::take_notifications).
    pub fn notified(&self) -> impl Future<Output = ()> + Send + 'static {
        let inbox = self.settings.facts().inbox();
        async move { inbox.arrived().await }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.database.channels.forget(&self.settings.facts().inbox());
        self.database.advisory.give_all_back(self.settings.facts().holder(), None);
    }
}
