//! stillframe-coordinator
