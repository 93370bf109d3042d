//! Threads by number.

/// The position of a thread in the world's list.
pub(crate) type Tid = u32;
