//! stillframe-sql
