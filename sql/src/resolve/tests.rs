//! What names mean.
