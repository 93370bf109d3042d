//! Undoing every change, whatever happens to cosched and which processes are left alone.

pub mod attachable;
pub(crate) mod heartbeat;
pub mod refuge;
pub mod sentinel;
pub mod undo;
