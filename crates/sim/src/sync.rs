//! The barriers, locks, bounded queues and beginnings of parallel regions where the threads of one
//! program wait.

use std::collections::VecDeque;

use crate::model::Model;
use crate::tid::Tid;

/// All of one program's, by the numbers in its script.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sync {
    pub(crate) barriers: Vec<BarrierState>,
    pub(crate) locks: Vec<Lock>,
    pub(crate) queues: Vec<Channel>,
    pub(crate) team: ThreadTeam,
}

/// A barrier's identity.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gate {
    /// A barrier of all threads, by its number in the script.
    Numbered(u16),
    /// The barrier of the threads of a region.
    OfTheTeam,
}

/// The threads of a malleable program in its present or last parallel region.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThreadTeam {
    /// How many, from 1.
    pub(crate) threads: u16,
    /// How many were requested last; 0: none yet.
    pub(crate) requested: u16,
    /// Whether the answer is waited for.
    pub(crate) waits: bool,
    /// The barrier of all threads at the beginning of a region.
    pub(crate) entry: BarrierState,
    /// The barrier of the threads in the region.
    pub(crate) region: BarrierState,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct BarrierState {
    /// How often it has opened.
    pub(crate) round: u64,
    /// The threads that have arrived since.
    pub(crate) waiters: Vec<Tid>,
    /// The time of the first arrival, nanoseconds.
    pub(crate) began: u64,
}

impl BarrierState {
    /// A barrier with room for this many threads.
    fn of(threads: usize) -> BarrierState {
        BarrierState { round: 0, waiters: Vec::with_capacity(threads), began: 0 }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Lock {
    pub(crate) holder: Option<Tid>,
    /// The threads that wait, in order of arrival.
    pub(crate) waiters: VecDeque<Tid>,
    /// How long each thread of the program has slept for it, nanoseconds.
    pub(crate) waited: Vec<u64>,
    /// The thread that released it last, and its CPU.
    pub(crate) given_back: Option<(Tid, u16)>,
}

/// A queue of items between two stages of a pipeline.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    pub(crate) items: u32,
    pub(crate) capacity: u32,
    /// The threads that wait for an item, and the threads that wait for room. There can be both at
    /// once: a thread that has been woken has not yet taken its item or room.
    pub(crate) takers: VecDeque<Tid>,
    pub(crate) givers: VecDeque<Tid>,
}

impl Sync {
    /// The objects that a model names.
    pub(crate) fn new(model: &Model) -> Sync {
        let threads = usize::from(model.threads);
        let waiters = || VecDeque::with_capacity(threads);
        let channel = |capacity: &u32| Channel {
            items: 0,
            capacity: *capacity,
            takers: waiters(),
            givers: waiters(),
        };
        // Filled one by one: a clone would not keep the reserved room.
        Sync {
            barriers: (0..model.barriers).map(|_| BarrierState::of(threads)).collect(),
            locks: (0..model.locks)
                .map(|_| Lock { waiters: waiters(), waited: vec![0; threads], ..Lock::default() })
                .collect(),
            queues: model.queues.iter().map(channel).collect(),
            team: ThreadTeam {
                threads: model.threads,
                requested: 0,
                waits: false,
                entry: BarrierState::of(threads),
                region: BarrierState::of(threads),
            },
        }
    }

    /// How often all threads have passed a barrier, or begun a region together.
    pub(crate) fn passages(&self) -> u64 {
        let rounds: u64 = self.barriers.iter().map(|barrier| barrier.round).sum();
        rounds + self.team.entry.round + self.team.region.round
    }

    pub(crate) fn barrier(&mut self, gate: Gate) -> &mut BarrierState {
        match gate {
            Gate::Numbered(number) => &mut self.barriers[usize::from(number)],
            Gate::OfTheTeam => &mut self.team.region,
        }
    }
}
