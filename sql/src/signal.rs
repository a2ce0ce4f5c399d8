//! LISTEN and NOTIFY: what transactions tell each other when they commit.
//!
//! ```text
//! NOTIFY, pg_notify -> the session's outbox -- commit --> the inboxes of those who listen
//! LISTEN, UNLISTEN  -> the session's outbox -- commit --> the list of listeners
//! ```
//!
//! A rollback empties the outbox, and a rollback to a savepoint what came after it. Inboxes are
//! bounded: who doesn't read makes the NOTIFY of others fail, never the server grow.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Notify;

use crate::{Error, SqlState};

/// How long a channel's name and a payload may be, as in PostgreSQL.
const CHANNEL_BYTES_MAX: usize = 63;
const PAYLOAD_BYTES_MAX: usize = 7999;
/// How much may wait for one session.
const INBOX_BYTES_MAX: usize = 64 << 20;
/// What a notification costs beside its text.
const NOTIFICATION_BYTES: usize = 64;

/// What a session is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Notification {
    /// What stands for the number of the process that has sent it.
    pub process: i32,
    /// The channel.
    pub channel: String,
    /// The text with it.
    pub payload: String,
}

impl Notification {
    fn bytes(&self) -> usize {
        self.channel.len() + self.payload.len() + NOTIFICATION_BYTES
    }
}

/// What a transaction wants to happen when it commits, in order.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    wishes: Vec<Wish>,
    /// The notifications among them: PostgreSQL sends each once.
    sent: HashSet<(String, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Wish {
    Notify { channel: String, payload: String },
    Listen(String),
    Unlisten(String),
    UnlistenAll,
}

impl Outbox {
    /// NOTIFY.
    ///
    /// # Errors
    ///
    /// 22023 if there is no channel, or one of both is too long.
    pub(crate) fn notify(&mut self, channel: &str, payload: &str) -> Result<(), Error> {
        check_channel(channel)?;
        if payload.len() > PAYLOAD_BYTES_MAX {
            return Err(invalid("payload string too long"));
        }
        let told = (channel.to_owned(), payload.to_owned());
        if self.sent.insert(told.clone()) {
            let (channel, payload) = told;
            self.wishes.push(Wish::Notify { channel, payload });
        }
        Ok(())
    }

    pub(crate) fn listen(&mut self, channel: &str) {
        self.wishes.push(Wish::Listen(channel.to_owned()));
    }

    pub(crate) fn unlisten(&mut self, channel: Option<&str>) {
        self.wishes.push(match channel {
            Some(channel) => Wish::Unlisten(channel.to_owned()),
            None => Wish::UnlistenAll,
        });
    }

    /// How much there is, to go back to.
    pub(crate) fn len(&self) -> usize {
        self.wishes.len()
    }

    /// Forgets what came after.
    pub(crate) fn truncate(&mut self, length: usize) {
        for wish in self.wishes.drain(length.min(self.wishes.len())..) {
            if let Wish::Notify { channel, payload } = wish {
                self.sent.remove(&(channel, payload));
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        self.truncate(0);
    }
}

fn check_channel(channel: &str) -> Result<(), Error> {
    if channel.is_empty() {
        return Err(invalid("channel name cannot be empty"));
    }
    if channel.len() > CHANNEL_BYTES_MAX {
        return Err(invalid("channel name too long"));
    }
    Ok(())
}

fn invalid(message: &str) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// Who listens to which channel.
#[derive(Debug, Default)]
pub(crate) struct Channels(Mutex<HashMap<String, Vec<Weak<Inbox>>>>);

/// What waits for a session that listens.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    waiting: Mutex<Waiting>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    channels: Vec<String>,
    notifications: VecDeque<Notification>,
    bytes: usize,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The channels that the session listens to.
    pub(crate) fn channels(&self) -> Vec<String> {
        self.lock().channels.clone()
    }

    /// Takes what has come.
    pub(crate) fn take(&self) -> Vec<Notification> {
        let mut waiting = self.lock();
        waiting.bytes = 0;
        std::mem::take(&mut waiting.notifications).into()
    }

    /// Ends when something has come, which may have been taken already.
    pub(crate) async fn arrived(&self) {
        self.arrived.notified().await;
    }
}

impl Channels {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<Weak<Inbox>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether what is in an outbox can be told.
    ///
    /// # Errors
    ///
    /// 54000 if somebody who should hear it has too much waiting.
    pub(crate) fn check(&self, outbox: &Outbox) -> Result<(), Error> {
        let channels = self.lock();
        for wish in &outbox.wishes {
            let Wish::Notify { channel, .. } = wish else { continue };
            let mut listeners = channels.get(channel).into_iter().flatten();
            if listeners
                .any(|inbox| inbox.upgrade().is_some_and(|i| i.lock().bytes > INBOX_BYTES_MAX))
            {
                let message = "too many notifications in the NOTIFY queue";
                return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).with_detail(
                    "A session that listens doesn't end its transaction, or doesn't read.",
                ));
            }
        }
        Ok(())
    }

    /// Lets happen what a transaction has wished for, now that it has committed.
    pub(crate) fn publish(&self, outbox: &mut Outbox, process: i32, own: &Arc<Inbox>) {
        let mut channels = self.lock();
        outbox.sent.clear();
        for wish in std::mem::take(&mut outbox.wishes) {
            match wish {
                Wish::Notify { channel, payload } => {
                    let told = Notification { process, channel, payload };
                    tell(&mut channels, &told);
                }
                Wish::Listen(channel) => {
                    let mut waiting = own.lock();
                    if !waiting.channels.contains(&channel) {
                        channels.entry(channel.clone()).or_default().push(Arc::downgrade(own));
                        waiting.channels.push(channel);
                    }
                }
                Wish::Unlisten(channel) => {
                    own.lock().channels.retain(|known| *known != channel);
                    leave(&mut channels, &channel, own);
                }
                Wish::UnlistenAll => {
                    let left = std::mem::take(&mut own.lock().channels);
                    left.iter().for_each(|channel| leave(&mut channels, channel, own));
                }
            }
        }
    }

    /// The session has ended.
    pub(crate) fn forget(&self, own: &Arc<Inbox>) {
        let left = std::mem::take(&mut own.lock().channels);
        if !left.is_empty() {
            let mut channels = self.lock();
            left.iter().for_each(|channel| leave(&mut channels, channel, own));
        }
    }
}

fn tell(channels: &mut HashMap<String, Vec<Weak<Inbox>>>, told: &Notification) {
    for inbox in channels.get(&told.channel).into_iter().flatten().filter_map(Weak::upgrade) {
        let mut waiting = inbox.lock();
        waiting.bytes += told.bytes();
        waiting.notifications.push_back(told.clone());
        inbox.arrived.notify_one();
    }
}

fn leave(channels: &mut HashMap<String, Vec<Weak<Inbox>>>, channel: &str, own: &Arc<Inbox>) {
    if let Some(listeners) = channels.get_mut(channel) {
        listeners.retain(|inbox| !std::ptr::eq(inbox.as_ptr(), Arc::as_ptr(own)));
        if listeners.is_empty() {
            channels.remove(channel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(inbox: &Inbox) -> Vec<String> {
        inbox.take().into_iter().map(|told| told.payload).collect()
    }

    #[test]
    fn what_is_told_is_told_once_in_order_to_those_who_listen() {
        let (channels, one, two) = (Channels::default(), Arc::default(), Arc::default());
        let mut outbox = Outbox::default();
        outbox.notify("c", "too early").unwrap();
        outbox.listen("c");
        for payload in ["a", "b", "a"] {
            outbox.notify("c", payload).unwrap();
        }
        channels.publish(&mut outbox, 7, &one);
        assert_eq!(texts(&one), ["a", "b"]);
        assert_eq!(texts(&two), [""; 0]);
        outbox.unlisten(None);
        outbox.notify("c", "c").unwrap();
        channels.publish(&mut outbox, 7, &one);
        assert_eq!(texts(&one), [""; 0]);
        assert!(channels.lock().is_empty());
    }

    #[test]
    fn what_came_after_a_savepoint_can_be_told_again() {
        let (channels, one) = (Channels::default(), Arc::default());
        let mut outbox = Outbox::default();
        outbox.listen("c");
        let length = outbox.len();
        outbox.notify("c", "x").unwrap();
        outbox.truncate(length);
        outbox.notify("c", "x").unwrap();
        channels.publish(&mut outbox, 7, &one);
        assert_eq!(texts(&one), ["x"]);
        channels.forget(&one);
        assert!(channels.lock().is_empty());
    }

    #[test]
    fn who_does_not_read_has_an_end() {
        let (channels, one) = (Channels::default(), Arc::default());
        let mut outbox = Outbox::default();
        outbox.listen("c");
        let payload = "x".repeat(PAYLOAD_BYTES_MAX);
        let mut told = 0;
        let error = loop {
            outbox.notify("c", &payload).unwrap();
            match channels.check(&outbox) {
                Ok(()) => channels.publish(&mut outbox, 7, &one),
                Err(error) => break error,
            }
            told += 1;
        };
        assert_eq!(error.state, SqlState::PROGRAM_LIMIT_EXCEEDED);
        assert!(told > 8000, "{told}");
        one.take();
        channels.check(&outbox).unwrap();
    }
}
