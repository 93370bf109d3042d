//! Threads that are priced alike.

use super::LINE;
use crate::model::Mix;

/// Threads that are priced alike: of one program, with one mix, behind one cache.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThreadKind {
    pub(super) cache: u16,
    pub(super) program: u16,
    pub(super) mix: Mix,
    /// It [brings back](crate::eviction) its lines, and misses as without a cache until then.
    pub(super) refills: bool,
    /// Its memory is on another node.
    pub(super) is_remote: bool,
    /// The bytes of cache that one thread can use.
    pub(super) footprint: f64,
    /// The bytes of cache that one thread uses per nanosecond, with all its lines and no traffic of
    /// others.
    pub(super) touches: f64,
    /// The share of the core.
    pub(super) share: f64,
    pub(super) count: f64,
    /// Misses per instruction at its present share of the cache.
    pub(super) misses: f64,
    /// The part of the misses that brings back lines.
    pub(super) back: f64,
    /// The bytes of cache that one thread has.
    pub(super) holds: f64,
    /// Instructions per nanosecond.
    pub(super) rate: f64,
    /// Nanoseconds per instruction without waiting for a bus, and per nanosecond that a miss waits.
    pub(super) base: f64,
    pub(super) slope: f64,
    /// The wait of its misses at all its buses together, nanoseconds.
    pub(super) waits: f64,
}

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

impl ThreadKind {
    /// One thread of a program with this many, that refills its part of a cache or not.
    pub(crate) fn one(
        program: u16,
        threads: u16,
        mix: Mix,
        share: f64,
        refills: bool,
    ) -> ThreadKind {
        let footprint = mix.footprint / f64::from(threads);
        let refills = refills && mix.uses_cache();
        let count = 1.0;
        ThreadKind { program, mix, refills, footprint, share, count, ..ThreadKind::default() }
    }

    /// This kind, with its memory on another node or not.
    pub(crate) fn remote(self, is_remote: bool) -> ThreadKind {
        ThreadKind { is_remote, ..self }
    }

    pub(super) fn is_like(&self, other: &ThreadKind) -> bool {
        (self.cache, self.program, self.share) == (other.cache, other.program, other.share)
            && (self.mix, self.refills) == (other.mix, other.refills)
            && self.is_remote == other.is_remote
    }

    pub(crate) fn pace(&self) -> ThreadSpeed {
        let references = self.mix.misses_without_cache;
        ThreadSpeed {
            rate: self.rate,
            misses: self.misses,
            references,
            uses: if self.footprint > 0.0 { references * LINE } else { 0.0 },
            regains: self.back * LINE,
            holds: self.holds,
        }
    }
}
