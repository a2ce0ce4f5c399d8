//! flights
