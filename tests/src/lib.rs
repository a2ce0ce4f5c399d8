//! stillframe-tests
