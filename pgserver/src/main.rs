//! stillframe
fn main() {}
