//! stillframe-engine
