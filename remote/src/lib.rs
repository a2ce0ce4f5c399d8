//! Hosts as processes: [`Host`](stillframe_protocol::Host) over a socket, and how a host's process
//! comes to be part of a cluster.
//!
//! ```text
//! process of a host                          process of the coordinator
//!   member    checks whose it is, hears        registrations   takes them in, keeps one way to
//!             that it retires                                  each process
//!   join      registers once a second  ---->   places          which process has which place, for
//!   serve     answers with a Host      <----                   front ends
//!                                              RemoteHost      a Host that asks a process
//! ```
//!
//! Everything is a request with one answer, but for a scan, which is answered by batches and then an
//! explicit end or error. All are idempotent: whoever has lost an answer asks again. Nothing here
//! knows what is asked or why.

mod batches;
mod join;
mod member;
mod message;
mod places;
mod registrations;
mod remote_host;
mod serve;
#[cfg(test)]
mod tests;
mod wire;

pub use join::{End, join};
pub use member::Member;
pub use message::Identity;
pub use places::Places;
pub use registrations::serve_registrations;
pub use remote_host::RemoteHost;
pub use serve::serve;
