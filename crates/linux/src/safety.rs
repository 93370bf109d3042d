//! Undoing every change, whatever happens to cosched.

pub(crate) mod heartbeat;
pub mod sentinel;
pub mod undo;
