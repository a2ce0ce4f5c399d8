//! The connection loop against a scripted session, by raw messages.

mod client;
mod copy;
mod extended;
mod interruption;
mod scripted;
mod simple;
mod startup;
