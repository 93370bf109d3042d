//! Options of `shuffling`.

use cosched_core::{Measure, Nanos};

use super::params::{HYSTERESIS, INTERVAL, THRESHOLD};
use super::sockets::Sockets;
use crate::common::unknown::by_name;

/// Options of `shuffling`.
#[derive(Clone, Debug, PartialEq)]
pub struct ShufflingOptions {
    /// How often threads are sampled, and shuffled if necessary.
    pub interval: Nanos,
    /// Above this mean share of their time at locks threads are shuffled; 0 to 1.
    pub threshold: f64,
    /// By how much of their time the threads of a group have to be nearer to each other for new
    /// groups to be made; 0 to 1. `None`: with the guard, the default; without it, new groups are
    /// made at each interval, as in the slides.
    pub hysteresis: Option<f64>,
    /// What counts as a socket.
    pub sockets: Sockets,
    /// What threads are sorted by.
    pub sort: SortBy,
    /// Whether new groups are tried, and put back if they do not help.
    pub guard: bool,
    /// Whether groups are tried again, whatever earlier runs have shown.
    pub relearn: bool,
}

impl Default for ShufflingOptions {
    fn default() -> ShufflingOptions {
        ShufflingOptions {
            interval: INTERVAL,
            threshold: THRESHOLD,
            hysteresis: None,
            sockets: Sockets::Widest,
            sort: SortBy::Lock,
            guard: true,
            relearn: false,
        }
    }
}

impl ShufflingOptions {
    /// Whether threads are held at their pages. Without the guard they are not, as in the slides,
    /// so that the rivals of the slides can be compared.
    pub(super) fn weighs_pages(&self) -> bool {
        self.guard && self.sort.is_for_locks()
    }

    /// The measurements that are needed. The guard reads progress from instructions where they can
    /// be counted.
    pub(super) fn measures(&self) -> Vec<Measure> {
        let locks = (self.sort == SortBy::Lock).then_some(Measure::LockShares);
        let counters = self.guard.then_some(Measure::Counters);
        let misses = (self.needs_misses() || self.weighs_pages()).then_some(Measure::ThreadMisses);
        let always = [Measure::Threads, Measure::LockWait, Measure::CpuTime];
        always.into_iter().chain(locks).chain(counters).chain(misses).collect()
    }

    /// By how much of their time threads have to be nearer to each other in new groups; `None`: new
    /// groups need not be better.
    pub(super) fn hysteresis(&self) -> Option<f64> {
        self.hysteresis.or(self.guard.then_some(HYSTERESIS))
    }

    /// Whether threads cannot be sorted without the misses of each.
    pub fn needs_misses(&self) -> bool {
        self.sort == SortBy::Misses
    }
}

/// The sort key of threads before they are divided into groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortBy {
    /// The lock that they wait for most, where that is known, and how long they wait. Ours: threads
    /// that wait equally long for different locks gain nothing by being together.
    Lock,
    /// How long they wait at locks, as in the slides.
    LockTime,
    /// How often they miss the last-level cache; evened out over the sockets. The slides compare
    /// with this as DINO.
    Misses,
    /// The order in which they were made, fixed for ever: a pool of threads on a pool of CPUs. The
    /// slides compare with this as PSets.
    Birth,
}

impl SortBy {
    /// Whether the key is about locks: otherwise there is no threshold for them.
    pub(super) fn is_for_locks(self) -> bool {
        matches!(self, SortBy::Lock | SortBy::LockTime)
    }
}

by_name!(SortBy, "order", [Lock: "lock", LockTime: "lock-time", Misses: "misses", Birth: "birth"]);
