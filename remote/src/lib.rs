//! Hosts as processes: [`Host`](stillframe_protocol::Host) over a socket, and how a host's process
//! comes to be part of a cluster.
//!
//! ```text
//! process of a host                          process of the coordinator
//!   member    checks whose it is, hears        registrations   takes them in, keeps one way to
//!             that it retires                                  each process
//!   join      registers once a second  ---->   places          which process has which place, for
//!   control   answers with a Host      <----                   front ends
//!   bulk                                       RemoteHost      a Host that asks a process
//! ```
//!
//! Control is tarpc: requests with one answer each. Rows travel by Arrow Flight: a scan is answered
//! by batches and then an explicit end or error. All are idempotent: whoever has lost an answer asks
//! again. Every connection is secured alike ([`Security`]), and every request means one life of one
//! process ([`Identity`]). Nothing here knows what is asked or why.

mod accept;
mod batches;
mod bulk;
mod certificates;
mod codec;
mod control;
mod join;
mod member;
mod message;
mod places;
mod registrations;
mod remote_host;
mod security;
#[cfg(test)]
mod tests;

pub use bulk::serve_bulk;
pub use certificates::{AUTHORITY_KEY_FILE, CertificatesError, make_certificates};
pub use control::serve_control;
pub use join::{End, join};
pub use member::Member;
pub use message::{Addresses, Identity};
pub use places::Places;
pub use registrations::serve_registrations;
pub use remote_host::RemoteHost;
pub use security::{
    AUTHORITY_FILE, CERTIFICATE_FILE, KEY_FILE, NODE_NAME, Security, SecurityError, Socket,
};
