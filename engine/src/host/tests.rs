//! Whole hosts, driven through the protocol alone.

mod frames;
mod online;
mod replacement;
mod requests;
mod scans;
mod views;
mod world;
