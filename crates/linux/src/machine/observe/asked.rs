//! The engine's requests: to begin to measure, to stop, and to report measurements.

use std::collections::BTreeSet;

use cosched_core::format::count;
use cosched_core::{Arena, Measure, Nanos, Observe, ProgramId, ThreadId};

use super::{Unseen, threads};
use crate::kernel::files::FileError;
use crate::machine::{Linux, MachineError, each_process};
use crate::observe::counters::{Counters, Events};
use crate::observe::monitor::ROOM;

/// Reported once where it cannot be seen what threads sleep for.
const UNSEEN_WAITS: &str = "has threads with lock times that are not known, because this user may \
                            not read their system calls (remedy: root; or start the program with \
                            cosched, where kernel.yama.ptrace_scope is 1)";

/// Reported once where there are more threads than counters may be open.
const UNCOUNTED_MISSES: &str = "has threads with cache misses that are not counted, because each \
                                takes an open file; these threads stay where they are (remedy: a \
                                higher `ulimit -Hn`)";

/// Reported once where there are more threads than can be observed.
fn too_many(lost: u64) -> String {
    format!(
        "too many threads: {ROOM} can be watched at once, so of all programs {} left out",
        count(lost as usize, "thread is", "threads are")
    )
}

impl Linux {
    pub(in crate::machine) fn observe(&mut self, observe: Observe) -> Result<(), FileError> {
        let Some(id) = observe.program else { return Ok(()) };
        if observe.period == Nanos::ZERO {
            if let Some(measures) = self.observer.requested.get_mut(&id) {
                measures.remove(&observe.measure);
            }
            self.observer.set_ticks();
            return Ok(());
        }
        self.observer.requested.entry(id).or_default().insert(observe.measure);
        self.count_if_requested(id);
        self.observer.set_ticks();
        self.observer.set_locks();
        let running = self.live.get(&id).filter(|_| !self.observer.programs.contains_key(&id));
        let Some(live) = running else { return Ok(()) };
        let result = each_process(&live.tree, &self.proc, |process| {
            self.observer.begin(id, process, false, &self.clock)
        });
        if let Some(observed) = self.observer.programs.get_mut(&id) {
            // CPU time from before does not count.
            let members = live.tree.members(&self.proc);
            observed.clocks.next(&members);
            observed.delays.next(&members, &self.proc);
        }
        result
    }

    /// Counts a running program from now on, if that is requested and it was not counted from its
    /// start.
    pub(in crate::machine) fn count_if_requested(&mut self, id: ProgramId) {
        if !self.observer.is_requested(id, Measure::Counters) {
            return;
        }
        let Some(live) = self.live.get_mut(&id).filter(|live| live.counters.is_none()) else {
            return;
        };
        let members = live.tree.members(&self.proc);
        // A thread that ends meanwhile has nothing to count.
        let threads: Vec<i32> = threads(&members, &self.proc).into_iter().collect();
        let events = self.config.count.unwrap_or(Events::HARDWARE);
        live.counters = Some(Counters::of(&threads, events));
    }

    pub(in crate::machine) fn sample(
        &mut self,
        what: &[Observe],
        into: &mut Arena,
    ) -> Result<(), MachineError> {
        let due: BTreeSet<ProgramId> = what.iter().filter_map(|observe| observe.program).collect();
        let stays = |id: ProgramId| self.live.contains_key(&id) && !due.contains(&id);
        into.samples.retain(|sample| stays(sample.program));
        into.threads.retain(|thread| stays(thread.program));
        into.ips.retain(|bin| stays(bin.program));
        let owner = |id: ThreadId| self.observer.named(id).map(|named| named.program);
        into.locks.retain(|share| owner(share.thread).is_some_and(stays));
        for id in due {
            let Some(live) = self.live.get_mut(&id) else { continue };
            match self.observer.read(id, live, &self.clock, &mut self.log, into)? {
                Some(Unseen::Waits(id)) => self.note(id, UNSEEN_WAITS),
                Some(Unseen::Threads(lost)) => self.note(id, too_many(lost)),
                Some(Unseen::Misses(id)) => self.note(id, UNCOUNTED_MISSES),
                None => {}
            }
            if std::mem::take(&mut self.observer.has_newcomers) {
                self.schedule_newcomers(id)?;
            }
        }
        self.tell_of_lost_samples();
        into.samples.sort_by_key(|sample| (sample.program, sample.thread));
        into.threads.sort_by_key(|thread| (thread.program, thread.id));
        into.ips.sort_by_key(|bin| (bin.program, bin.block));
        into.locks.sort_by_key(|share| (share.thread, share.lock));
        Ok(())
    }
}
