//! PostgreSQL's binary format of values: out of Arrow arrays, and of parameters into text.
//!
//! Types without a binary form here are refused with 0A000; never sent in another form.

mod moment;
mod numeric;
mod parameter;
mod value;

pub(super) use parameter::read;
pub(super) use value::write;
