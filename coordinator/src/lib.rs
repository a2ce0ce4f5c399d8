//! The coordinator: who is part of the cluster, what steps it makes, which frames must be kept,
//! who may write what, and which catalog is the newest.
//!
//! - [`machine`] decides within an epoch: a pure state machine without clock, I/O or randomness;
//! - [`cluster`] decides, as purely, when an epoch begins and ends, and of whom it consists;
//! - [`driver`] does: one task that feeds them with what happens and carries out what they want.
//!   [`start`] runs one over a set of hosts, [`serve`] one for hosts that register.
//!
//! Nothing here knows SQL, the engine, or the wire.

pub mod cluster;
pub mod driver;
pub mod machine;

pub use driver::{Options, Registrar, serve, start};
pub use machine::Online;

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod testscripts;
