//! Circuits on several hosts and workers in one process, against a plain model of their tables.

mod cluster;
mod differential;
mod errors;
mod model;
mod partitions;
mod plans;
mod recursions;
mod reference;
mod restore;
mod tables;
