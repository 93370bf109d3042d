//! What is known of a program: the sockets of its threads, and where they were before they were
//! bound.
//!
//! *Release.* A thread that is no longer bound stays where it is until the kernel has a reason to
//! move it. Threads that were divided evenly give it none. If a trial only took the masks back, it
//! would compare groups with what is left of them, and a program that is slower in groups would
//! stay in them. A thread is therefore first bound to the socket where it was when it was bound
//! ([`ShuffledProgram::release`]). It is released a moment later ([`ShuffledProgram::part`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use cosched_core::{CpuSet, MaskOwner, Nanos, Plan, Thread, ThreadId, ThreadRule};

use super::Homes;
use super::round::{Shuffle, ThreadTotals, socket_of};

#[derive(Debug)]
pub(super) struct ShuffledProgram {
    /// Samples of its threads since the last decision, and the time of that decision.
    pub(super) totals: BTreeMap<ThreadId, ThreadTotals>,
    pub(super) since: Nanos,
    pub(super) homes: Homes,
    /// Where its pages lie.
    pub(super) pages: Homes,
    /// Where its threads were when none was bound.
    pub(super) origins: Homes,
    /// The CPUs that each thread was last given, and whether they are the wanted ones.
    given: BTreeMap<ThreadId, CpuSet>,
    is_settled: bool,
    /// Whether threads are on their way to where they were, to be released there.
    is_parting: bool,
    /// Intervals in a row without contention.
    pub(super) calm: u32,
    /// The groups that the guard may try, what is to be told of them, and the share of time at
    /// locks in their phase.
    pub(super) proposed: Option<(Arc<Homes>, Shuffle)>,
    pub(super) phase: Option<f64>,
    /// Whether groups have helped, as far as that was tried.
    pub(super) helped: Option<bool>,
}

impl ShuffledProgram {
    pub(super) fn new(now: Nanos) -> ShuffledProgram {
        ShuffledProgram {
            totals: BTreeMap::new(),
            since: now,
            homes: Homes::new(),
            pages: Homes::new(),
            origins: Homes::new(),
            given: BTreeMap::new(),
            is_settled: true,
            is_parting: false,
            calm: 0,
            proposed: None,
            phase: None,
            helped: None,
        }
    }

    /// Another interval begins.
    pub(super) fn begin(&mut self, now: Nanos) -> (BTreeMap<ThreadId, ThreadTotals>, Nanos) {
        let length = now.since(std::mem::replace(&mut self.since, now));
        (std::mem::take(&mut self.totals), length)
    }

    /// Records which threads there are, and where.
    pub(super) fn update(&mut self, threads: &[Thread], sockets: &[CpuSet]) {
        let lives =
            |id: &ThreadId| threads.iter().any(|thread| thread.id == *id && is_ours(thread));
        self.homes.retain(|id, _| lives(id));
        self.given.retain(|id, _| lives(id));
        self.pages.retain(|id, _| lives(id));
        self.origins.retain(|id, _| lives(id));
        if self.homes.is_empty() {
            let here = |thread: &Thread| (thread.id, socket_of(thread, sockets));
            self.origins = threads.iter().filter(|thread| is_ours(thread)).map(here).collect();
        }
    }

    /// Sets the sockets of threads. Threads without one are no longer bound, at once.
    pub(super) fn house(&mut self, homes: Homes) {
        (self.homes, self.is_settled, self.is_parting) = (homes, false, false);
    }

    /// Brings threads back to where they were before they were bound, in two steps: this is the
    /// first.
    pub(super) fn release(&mut self) {
        let is_bound = |id: &ThreadId| self.homes.contains_key(id);
        let origins = self.origins.iter().filter(|(id, _)| is_bound(id));
        let homes = origins.map(|(id, socket)| (*id, *socket)).collect();
        self.house(homes);
        self.is_parting = true;
    }

    /// Takes the second step of a release, if the first was taken.
    pub(super) fn part(&mut self) {
        if self.is_parting {
            self.house(Homes::new());
        }
    }

    /// Sets the CPUs of each thread that cosched may move, if they have changed.
    pub(super) fn settle(&mut self, threads: &[Thread], sockets: &[CpuSet], plan: &mut Plan) {
        if std::mem::replace(&mut self.is_settled, true) {
            return;
        }
        for id in threads.iter().filter(|thread| is_ours(thread)).map(|thread| thread.id) {
            let cpus = self.homes.get(&id).map(|socket| sockets[*socket]);
            let before = match cpus {
                Some(cpus) => self.given.insert(id, cpus),
                None => self.given.remove(&id),
            };
            if before != cpus {
                plan.threads.push((id, ThreadRule { cpus, ..ThreadRule::default() }));
            }
        }
    }
}

fn is_ours(thread: &Thread) -> bool {
    thread.mask_owner == MaskOwner::Cosched
}
