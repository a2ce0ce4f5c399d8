//! Ends the tasks that dbsp's exchange would leave behind with each circuit.
//!
//! Two kinds of tasks outlive a circuit with several hosts. A client connects to its peer for ever,
//! once a second. The task that accepts connections holds all exchanges of the circuit, whose
//! mailboxes grow with the square of the workers, and is itself held by them. dbsp keeps no handle
//! to either, so nobody can abort them, and there is no code of ours on their way: but for what they
//! log. Both log something each time before they try again, and that is where they are ended: an
//! unwinding task is dropped by tokio with all it holds. It is no panic that anybody would see.
//!
//! Only who makes the program can see what is logged: it adds [`LostTasks`] to its subscriber.
//! Without it the tasks stay, harmless but for the memory.

use std::collections::HashSet;
use std::fmt::{self, Write as _};
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, Filter};
use tracing_subscriber::registry::LookupSpan;

/// The module of dbsp that logs.
const TARGET: &str = "dbsp::operator::communication::exchange";
/// What it logs of a listener that was shut down. No listener that lives has that error.
const SHUT_DOWN: &str = "Error accepting connection: Invalid argument (os error 22)";
/// What it logs of a connection that is lost or was never made starts so, and goes on with the
/// address.
const DISCONNECTED: &str = "connection to ";
/// A task that is woken logs at once.
const PATIENCE: Duration = Duration::from_secs(1);

/// A layer of the program's subscriber that ends tasks of circuits that are over.
#[derive(Debug)]
pub struct LostTasks;

static IS_INSTALLED: AtomicBool = AtomicBool::new(false);
static OVER: Mutex<Over> = Mutex::new(Over { peers: None, listener: Listener::None });
static CHANGED: Condvar = Condvar::new();

/// What is over.
struct Over {
    /// Where clients of circuits that are over try to connect to.
    peers: Option<HashSet<SocketAddr>>,
    listener: Listener,
}

/// The one listener that is being ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listener {
    None,
    ShutDown,
    Ended,
}

fn over() -> MutexGuard<'static, Over> {
    OVER.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LostTasks {
    /// The layer. It must be seen by the default subscriber of the whole process.
    pub fn layer<S: Subscriber + for<'a> LookupSpan<'a>>() -> impl Layer<S> {
        IS_INSTALLED.store(true, Ordering::Relaxed);
        Self.with_filter(OfExchange)
    }
}

/// Clients of these addresses are over from now on: to be called before their connections are
/// closed.
pub(super) fn end_clients(peers: impl IntoIterator<Item = SocketAddr>) {
    if IS_INSTALLED.load(Ordering::Relaxed) {
        over().peers.get_or_insert_default().extend(peers);
    }
}

/// An address is somebody else's from now on.
pub(super) fn begin_client(peer: SocketAddr) {
    if let Some(peers) = &mut over().peers {
        peers.remove(&peer);
    }
}

/// Ends the task that accepts connections of a listener, which closes its descriptor. False if that
/// can't be done: then both stay.
pub(super) fn end_listener(number: RawFd) -> bool {
    /// One at a time: what is logged doesn't say which one it is.
    static ENDING: Mutex<()> = Mutex::new(());
    if !IS_INSTALLED.load(Ordering::Relaxed) {
        return false;
    }
    let _alone = ENDING.lock().unwrap_or_else(PoisonError::into_inner);
    over().listener = Listener::ShutDown;
    // SAFETY: a plain system call. It wakes the task, which finds that it can't accept any more.
    unsafe { libc::shutdown(number, libc::SHUT_RDWR) };
    let waiting = |over: &mut Over| over.listener == Listener::ShutDown;
    let (mut over, _) = CHANGED
        .wait_timeout_while(over(), PATIENCE, waiting)
        .unwrap_or_else(PoisonError::into_inner);
    // From here on the task may not end any more: its descriptor will be used again.
    std::mem::replace(&mut over.listener, Listener::None) == Listener::Ended
}

/// What the layer wants to see.
struct OfExchange;

impl OfExchange {
    fn wants(metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO && metadata.target() == TARGET
    }
}

impl<S> Filter<S> for OfExchange {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        Self::wants(metadata)
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        if Self::wants(metadata) { Interest::always() } else { Interest::never() }
    }

    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        Some(tracing::level_filters::LevelFilter::INFO)
    }
}

impl<S: Subscriber> Layer<S> for LostTasks {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut message = Message::default();
        event.record(&mut message);
        if is_over(&message.0, &mut over()) {
            CHANGED.notify_all();
            resume_unwind(Box::new("the circuit is over"));
        }
    }
}

/// Whether what logs this is a task that is over.
fn is_over(message: &str, over: &mut Over) -> bool {
    if message == SHUT_DOWN {
        let ends = over.listener == Listener::ShutDown;
        if ends {
            over.listener = Listener::Ended;
        }
        return ends;
    }
    // One that was made after some failures is not lost.
    let failed = message.contains(" failed (") || message.contains(" dropped (");
    let peer = message.strip_prefix(DISCONNECTED).and_then(|rest| rest.split(' ').next());
    let peer = peer.and_then(|peer| peer.parse().ok());
    failed
        && peer.is_some_and(|peer| over.peers.as_ref().is_some_and(|peers| peers.contains(&peer)))
}

/// An event's text.
#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            // Writing to a string doesn't fail.
            let _ = write!(self.0, "{value:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[test]
    fn only_what_is_over_ends() {
        let mut over = Over { peers: Some([address(7)].into()), listener: Listener::None };
        let peers = |peer| format!("connection to {peer} for exchange with workers 0..2");
        for (message, ends) in [
            (format!("{} failed (refused), waiting to retry", peers(address(7))), true),
            (format!("{} dropped (early eof), waiting to retry", peers(address(7))), true),
            (format!("{} failed (refused), waiting to retry", peers(address(8))), false),
            (format!("connected to {} after 2 failures", peers(address(7))), false),
            ("listening on 127.0.0.1:7".to_owned(), false),
            (SHUT_DOWN.to_owned(), false),
        ] {
            assert_eq!(is_over(&message, &mut over), ends, "{message}");
        }
        over.listener = Listener::ShutDown;
        assert!(!is_over("Error accepting connection: Too many open files", &mut over));
        assert!(is_over(SHUT_DOWN, &mut over));
        assert!(!is_over(SHUT_DOWN, &mut over), "it ends once");
    }
}
