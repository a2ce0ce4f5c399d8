//! Tests of the whole: over the wire, against the real binary, as any client would.
//!
//! The library is the harness and knows no crate of Stillframe: it starts the binary
//! ([`Server`], [`Processes`]), speaks the Postgres protocol to it ([`Client`] with a driver, [`Wire`] byte by
//! byte), runs SQL scripts ([`script`]), trials that share a server ([`suite`]) and the bank that
//! must never lose money ([`bank`]). The tests proper are in `tests/tests`, the scripts in
//! `tests/sqllogictest`.

pub mod bank;
mod binary;
mod client;
pub mod deadline;
mod link;
mod process;
mod processes;
pub mod script;
mod server;
pub mod suite;
pub mod wire;

pub use client::{Answer, Client, Failure};
pub use link::Link;
pub use process::Process;
pub use processes::{Processes, ProcessesOptions, certificates, start_host};
pub use server::{Layout, Server};
pub use wire::Wire;
