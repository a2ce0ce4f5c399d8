//! How the workers of one host reach those of the others.
//!
//! dbsp's own exchange is plain TCP without authentication and deserialises what it reads
//! unchecked, so its port is never shown to anyone: it is bound to the loopback interface, and
//! every byte between two hosts goes through a tunnel of ours.
//!
//! ```text
//!  host A                                    |  host B
//!  dbsp's client -> forwarder (one per peer) ==> acceptor -> dbsp's listener
//!                   "epoch 3, circuit 7,     |   the same? then "welcome"
//!                    which computes this,    |
//!                    from A to B"            |
//! ```
//!
//! Where certificates are given, both ends show theirs before a word is said ([`Secure`]).
//!
//! Each circuit has a tunnel with ports of its own. The acceptor of the *next* circuit is bound
//! before anybody can want it ([`NextExchange`]) and its address goes into every report, so that a
//! replacement needs no round trip to agree on addresses, and no connection is ever refused and
//! retried (dbsp waits a whole second before it does).
//!
//! What dbsp leaves behind when a circuit ends, and what is done about it here:
//!
//! - Its clients try to connect for ever, and its listener is never closed. Both are ended where the
//!   program lets us see what they log ([`lost_tasks`]). The rest is for where it doesn't:
//! - A client's port may belong to somebody else by then, so each is told before its connection is
//!   closed that everything it has sent was received: a client that waits for nothing sends nothing
//!   ([`tunnel`]). A forwarder dials its peer only when there is something to send.
//! - All circuits of a host use the same two descriptors for listeners in turn ([`descriptors`]).

mod descriptors;
mod handshake;
mod lost_tasks;
mod options;
mod tunnel;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use stillframe_protocol::{Epoch, Fingerprint, Generation, HostId};

pub(crate) use descriptors::{Descriptors, Lent};
pub use lost_tasks::LostTasks;
pub use options::{Duplex, ExchangeOptions, Secure};
pub(crate) use tunnel::{Lost, Tunnel};

/// Where the other hosts will reach this host's part of its next circuit: bound, and listening.
#[derive(Debug)]
pub(crate) struct NextExchange {
    generation: Generation,
    acceptor: TcpListener,
    address: SocketAddr,
    secure: Option<Arc<dyn Secure>>,
}

impl NextExchange {
    /// Binds the next circuit's acceptor.
    pub(crate) fn bind(options: &ExchangeOptions, generation: Generation) -> io::Result<Self> {
        let acceptor = options.bind(generation)?;
        let mut address = acceptor.local_addr()?;
        if let Some(ip) = options.advertise {
            address.set_ip(ip);
        }
        Ok(Self { generation, acceptor, address, secure: options.secure.clone() })
    }

    /// What a report says of it.
    pub(crate) fn reported(&self) -> (Generation, SocketAddr) {
        (self.generation, self.address)
    }
}

/// One circuit's place among its peers.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The epoch of the circuit.
    pub(crate) epoch: Epoch,
    /// Which of its circuits.
    pub(crate) generation: Generation,
    /// What it computes.
    pub(crate) circuit: Fingerprint,
    /// This host.
    pub(crate) host: HostId,
    /// Where each host's acceptor is, by place.
    pub(crate) acceptors: Vec<SocketAddr>,
}
