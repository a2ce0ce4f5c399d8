//! bank
