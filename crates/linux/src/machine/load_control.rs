//! Load control: how many waiting threads may sleep, so that the machine has no surplus threads.
//!
//! *Source.* Johnson, Stoica, Ailamaki and Mowry, "Decoupling contention management from
//! scheduling" (ASPLOS 2010), as the paper on faithful scheduling has it, its rival
//! (sections I and VI): blocking controls the number of runnable threads, spinning answers
//! contention, and the load is looked at every 7 ms. It exists to be compared with.
//!
//! *Load.* The fourth field of `/proc/loadavg` says how many threads of the machine run or are
//! ready, at this moment and without the cost of a walk over threads. The paper's objections hold
//! here as well: a short spike of load counts until the next look.
//!
//! *Idea.* Each look corrects the number of sleepers by the surplus that it finds
//! ([`sleep_slots`]). Each process is told its slots on its [page](cosched_page::Page), where its
//! waiters claim them.

use cosched_core::{Nanos, sleep_slots};
use cosched_page::{LOAD_UPDATE, Page};

use super::Linux;
use crate::hook::HookServer;

impl Linux {
    /// When the load has to be looked at.
    pub(super) fn next_load(&self) -> Nanos {
        match self.load_pages().next() {
            Some(_) => self.last_load + Nanos(LOAD_UPDATE),
            None => Nanos::NEVER,
        }
    }

    /// Looks at the load, if it is time, and hands out sleep slots.
    pub(super) fn control_load(&mut self) {
        let now = self.clock.now();
        if now < self.next_load() {
            return;
        }
        self.last_load = now;
        // Without the kernel's answer the slots stay as they are.
        let Some(runnable) = self.proc.running_threads() else { return };
        // cosched itself runs at this moment.
        let runnable = runnable.saturating_sub(1);
        let pages: Vec<&Page> = self.load_pages().collect();
        let sleepers: Vec<u64> = pages.iter().map(|page| page.sleepers()).collect();
        let (cpus, look) = (self.cpus.len() as u64, now.0 / LOAD_UPDATE);
        let slots = sleep_slots(runnable, cpus, sleepers, look);
        pages.iter().zip(slots).for_each(|(page, slots)| page.set_slots(slots));
    }

    /// The pages of the processes that wait by the load.
    fn load_pages(&self) -> impl Iterator<Item = &Page> {
        let servers = self.live.values().filter_map(|live| live.hook_server.as_ref());
        servers.filter(|server| server.uses().load).flat_map(HookServer::pages)
    }
}
