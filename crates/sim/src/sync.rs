//! What the threads of one program wait at: barriers, locks and bounded queues.

use std::collections::VecDeque;

use crate::thread::Tid;

/// All of one program's, by the numbers that its script uses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sync {
    pub(crate) barriers: Vec<Barrier>,
    pub(crate) locks: Vec<Lock>,
    pub(crate) queues: Vec<Channel>,
}

/// A barrier for all threads of the program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Barrier {
    /// How often it has opened.
    pub(crate) round: u64,
    /// Who has arrived since.
    pub(crate) waiters: Vec<Tid>,
}

/// A mutex.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lock {
    pub(crate) holder: Option<Tid>,
    /// In order of arrival.
    pub(crate) waiters: VecDeque<Tid>,
    /// How often it was taken.
    pub(crate) taken: u64,
}

/// A queue of items between two stages of a pipeline.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    pub(crate) items: u32,
    pub(crate) capacity: u32,
    /// Those who wait for an item, or for room; never both at once.
    pub(crate) waiters: VecDeque<Tid>,
}

impl Sync {
    pub(crate) fn new(barriers: usize, locks: usize, capacities: &[u32]) -> Sync {
        let channel =
            |capacity: &u32| Channel { items: 0, capacity: *capacity, waiters: VecDeque::new() };
        Sync {
            barriers: vec![Barrier::default(); barriers],
            locks: vec![Lock::default(); locks],
            queues: capacities.iter().map(channel).collect(),
        }
    }
}
