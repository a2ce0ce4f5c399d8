//! The coordinator: who is part of the cluster, what steps it makes, which frames must be kept,
//! who may write what, and which catalog is the newest.
//!
//! - [`machine`] decides: a pure state machine without clock, I/O or randomness;
//! - [`driver`] does: one task that feeds the machine with what happens and carries out what it
//!   wants. [`start`] runs one over a set of hosts.
//!
//! Nothing here knows SQL, the engine, or the wire.

pub mod driver;
pub mod machine;

pub use driver::{Options, start};

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod testscripts;
