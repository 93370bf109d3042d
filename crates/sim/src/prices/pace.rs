//! How fast a thread is at a price.

/// A thread's speed at the present price.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThreadSpeed {
    /// Instructions per nanosecond.
    pub(crate) rate: f64,
    /// Last-level misses per instruction, at the present share of the cache.
    pub(crate) misses: f64,
    /// Last-level references per instruction.
    pub(crate) references: f64,
    /// Bytes of the cache per instruction that it uses: those that are not there are brought in.
    pub(crate) uses: f64,
    /// While it [refills](crate::eviction), bytes per instruction that come back; and the most that
    /// can come back in all.
    pub(crate) regains: f64,
    pub(crate) holds: f64,
}
