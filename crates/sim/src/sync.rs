//! What the threads of one program wait at: barriers, locks, bounded queues, and the beginnings of
//! parallel regions.

use std::collections::VecDeque;

use crate::model::Model;
use crate::thread::Tid;

/// All of one program's, by the numbers that its script uses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sync {
    pub(crate) barriers: Vec<Barrier>,
    pub(crate) locks: Vec<Lock>,
    pub(crate) queues: Vec<Channel>,
    pub(crate) team: Team,
}

/// Which barrier.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gate {
    /// One of all threads, by its number in the script.
    Numbered(u16),
    /// That of the threads of a region.
    OfTheTeam,
}

/// The threads that a malleable program has in its parallel region, or had in the last one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Team {
    /// How many, from 1.
    pub(crate) threads: u16,
    /// How many were asked for last; 0: none yet.
    pub(crate) asked: u16,
    /// Whether the answer is waited for.
    pub(crate) waits: bool,
    /// Where all threads come together at the beginning of a region.
    pub(crate) entry: Barrier,
    /// Where those in it do.
    pub(crate) meeting: Barrier,
}

/// A barrier.
#[derive(Clone, Debug, Default)]
pub(crate) struct Barrier {
    /// How often it has opened.
    pub(crate) round: u64,
    /// Who has arrived since.
    pub(crate) waiters: Vec<Tid>,
    /// When the first of them did, nanoseconds.
    pub(crate) began: u64,
}

impl Barrier {
    /// With room for so many.
    fn of(threads: usize) -> Barrier {
        Barrier { round: 0, waiters: Vec::with_capacity(threads), began: 0 }
    }
}

/// A mutex.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lock {
    pub(crate) holder: Option<Tid>,
    /// In order of arrival.
    pub(crate) waiters: VecDeque<Tid>,
    /// How long each thread of the program has slept for it, nanoseconds.
    pub(crate) waited: Vec<u64>,
    /// Who gave it back last, and on which CPU.
    pub(crate) given_back: Option<(Tid, u16)>,
}

/// A queue of items between two stages of a pipeline.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    pub(crate) items: u32,
    pub(crate) capacity: u32,
    /// The threads that wait for an item, and the threads that wait for room. Both can be there at
    /// once: a thread that has been woken has not yet taken what it was woken for.
    pub(crate) takers: VecDeque<Tid>,
    pub(crate) givers: VecDeque<Tid>,
}

impl Sync {
    /// What a model names.
    pub(crate) fn new(model: &Model) -> Sync {
        let threads = usize::from(model.threads);
        let waiters = || VecDeque::with_capacity(threads);
        let channel = |capacity: &u32| Channel {
            items: 0,
            capacity: *capacity,
            takers: waiters(),
            givers: waiters(),
        };
        // Filled one by one: a clone would not keep the room that was made.
        Sync {
            barriers: (0..model.barriers).map(|_| Barrier::of(threads)).collect(),
            locks: (0..model.locks)
                .map(|_| Lock { waiters: waiters(), waited: vec![0; threads], ..Lock::default() })
                .collect(),
            queues: model.queues.iter().map(channel).collect(),
            team: Team {
                threads: model.threads,
                asked: 0,
                waits: false,
                entry: Barrier::of(threads),
                meeting: Barrier::of(threads),
            },
        }
    }

    /// How often all threads have met, or begun a region together.
    pub(crate) fn passages(&self) -> u64 {
        let met: u64 = self.barriers.iter().map(|barrier| barrier.round).sum();
        met + self.team.entry.round + self.team.meeting.round
    }

    pub(crate) fn barrier(&mut self, gate: Gate) -> &mut Barrier {
        match gate {
            Gate::Numbered(number) => &mut self.barriers[usize::from(number)],
            Gate::OfTheTeam => &mut self.team.meeting,
        }
    }
}
