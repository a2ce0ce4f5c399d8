//! stillframe
