//! What is known of a program: where its threads are to be, and where they were before they were
//! bound.
//!
//! *Letting go.* A thread that may run anywhere again stays where it is until the kernel has a
//! reason to move it. Threads that were divided evenly give it none. A trial that only took the
//! masks back would compare groups with what is left of them. A program that is slower in groups
//! would then stay in them. A thread that is let go is therefore first bound to the socket where it
//! was when it was bound ([`Tracked::let_go`]). It may run anywhere a moment later
//! ([`Tracked::part`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use cosched_core::{CpuSet, MaskOwner, Nanos, Plan, Thread, ThreadId, ThreadRule, Why};

use super::Homes;
use super::round::{Heard, socket_of};

/// What is known of a program.
#[derive(Debug)]
pub(super) struct Tracked {
    /// What was seen of its threads since the last decision, and when that was.
    pub(super) heard: BTreeMap<ThreadId, Heard>,
    pub(super) since: Nanos,
    /// Where its threads are to be.
    pub(super) homes: Homes,
    /// Where its pages lie.
    pub(super) pages: Homes,
    /// Where its threads were when none was bound.
    pub(super) origins: Homes,
    /// The CPUs that each was given in the end; whether that is what is wanted.
    given: BTreeMap<ThreadId, CpuSet>,
    is_settled: bool,
    /// Whether they are on their way to where they were, to be let go there.
    is_parting: bool,
    /// Intervals in a row without contention.
    pub(super) calm: u32,
    /// What the guard may try, and why; the share of time at locks of the phase that it is for.
    pub(super) proposed: Option<(Arc<Homes>, Why)>,
    pub(super) phase: Option<f64>,
    /// Whether groups have helped, as far as that was tried.
    pub(super) helped: Option<bool>,
}

impl Tracked {
    pub(super) fn new(now: Nanos) -> Tracked {
        Tracked {
            heard: BTreeMap::new(),
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
    pub(super) fn begin(&mut self, now: Nanos) -> (BTreeMap<ThreadId, Heard>, Nanos) {
        let length = now.since(std::mem::replace(&mut self.since, now));
        (std::mem::take(&mut self.heard), length)
    }

    /// Takes note of who is there, and where.
    pub(super) fn meet(&mut self, threads: &[Thread], sockets: &[CpuSet]) {
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

    /// Wants the threads there; nowhere: where the kernel likes, at once.
    pub(super) fn house(&mut self, homes: Homes) {
        (self.homes, self.is_settled, self.is_parting) = (homes, false, false);
    }

    /// Wants the threads to be as if they had never been bound, in two steps: this is the first.
    pub(super) fn let_go(&mut self) {
        let is_bound = |id: &ThreadId| self.homes.contains_key(id);
        let origins = self.origins.iter().filter(|(id, _)| is_bound(id));
        let homes = origins.map(|(id, socket)| (*id, *socket)).collect();
        self.house(homes);
        self.is_parting = true;
    }

    /// The second step, where the first was taken.
    pub(super) fn part(&mut self) {
        if self.is_parting {
            self.house(Homes::new());
        }
    }

    /// Tells each thread of ours its CPUs, if it has others.
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
