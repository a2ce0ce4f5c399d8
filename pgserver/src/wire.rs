//! The PostgreSQL wire: one connection from its first byte to its last.
//!
//! ```text
//! startup      TLS where there is some, cancel requests served, the client told who we are
//! authentication  it shows who it is
//! connection   one message after the other, until the client leaves or must leave
//!   simple       Query: each statement runs and is answered before the next
//!   extended     Parse, Bind, Describe, Execute, Close, Sync: statements and portals
//!   copy         the client sends the data of a COPY
//! incoming     frames of bytes; what interrupts work: cancel, timeout, a client that is gone
//! outgoing     messages to bytes, sent in pieces so that nothing is held whole
//! ```
//!
//! Knows SQL by `Backend` only: text goes in, typed batches come out. Invariants:
//!
//! - Whatever waits for the engine, the client's rows or the client itself is interruptible
//!   (`Incoming::attend`): no statement outlives the wish of its client, nor the client.
//! - A result is never held whole: at most one batch and `PIECE_BYTES` of messages.
//! - Every error is sent with a SQLSTATE of its own; a panic ends its own connection only.

mod authentication;
mod backend;
mod cancel;
mod channel;
mod connection;
mod copy;
mod extended;
mod frontend;
mod incoming;
mod outgoing;
mod parameters;
mod rows;
mod simple;
mod startup;

#[cfg(test)]
mod tests;

pub(crate) use cancel::CancelKeys;
pub(crate) use connection::{Admitted, Entrance, serve};
pub(crate) use startup::refuse;
