//! A plan's settings for programs and threads, as far as the kernel supports them.
//!
//! A kernel refuses settings that it does not support, and applies the rest. A slice is clamped to
//! the limits of Linux (0.1 to 100 ms); CFS had none. Fixed priorities are those of real-time round
//! robin on Linux (1 to 99, above all other threads). The round robin kernel has any, and Solaris
//! those from 0 to 60, among all others. A nice value is a weight (`sched_prio_to_weight`).

use cosched_core::{Aspect, Class, Happening, Nanos, Refusal, Settings, ThreadId, ThreadRule};

use crate::fair::EnqueueReason;
use crate::kernel::{Order, REAL_TIME_SLICE};
use crate::thread::ThreadState;
use crate::tid::Tid;
use crate::world::SimulatedWorld;

/// The bounds of a slice of Linux' fair class.
const SLICES: (Nanos, Nanos) = (Nanos::from_micros(100), Nanos::from_millis(100));
const NICE: (i8, i8) = (-20, 19);
/// The weights of the nice values, and that of nice value 0.
const WEIGHTS: [f64; 40] = [
    88761.0, 71755.0, 56483.0, 46273.0, 36291.0, 29154.0, 23254.0, 18705.0, 14949.0, 11916.0,
    9548.0, 7620.0, 6100.0, 4904.0, 3906.0, 3121.0, 2501.0, 1991.0, 1586.0, 1277.0, 1024.0, 820.0,
    655.0, 526.0, 423.0, 335.0, 272.0, 215.0, 172.0, 137.0, 110.0, 87.0, 70.0, 56.0, 45.0, 36.0,
    29.0, 23.0, 18.0, 15.0,
];
const WEIGHT_OF_ZERO: f64 = 1024.0;

impl SimulatedWorld {
    /// Settings of a program take effect, as far as this kernel supports them.
    pub(crate) fn obey(&mut self, run: usize, settings: Settings) {
        let rank = self.rank(settings.class);
        let refused = [
            (Aspect::Class, rank.is_none()),
            (Aspect::Nice, settings.nice.is_some_and(|nice| !self.has_nice(nice))),
            (Aspect::CpuGroup, settings.cpu_group.is_some() && !self.kernel.is_fair()),
            (Aspect::Turn, settings.turn.is_some() && !self.has_parts()),
            (Aspect::Threads, settings.thread_limit.is_some_and(|n| self.cannot_have(run, n))),
        ];
        for (aspect, _) in refused.into_iter().filter(|(_, refused)| *refused) {
            self.refuse(run, aspect, Refusal::NotSupported);
        }
        self.refuse_slice(run, settings.slice, rank.unwrap_or(0));
        let is_fair = self.kernel.is_fair();
        let program = &mut self.programs[run];
        let nice = settings.nice.unwrap_or(0).clamp(NICE.0, NICE.1);
        program.nice_weight = WEIGHTS[usize::from((nice - NICE.0) as u8)] / WEIGHT_OF_ZERO;
        program.grouped = is_fair && settings.cpu_group.unwrap_or(self.kernel.groups);
        program.batch = settings.class == Some(Class::Batch);
        program.cpus = settings.cpus;
        program.settings = settings;
        let part = settings.turn.filter(|_| self.has_parts());
        self.give_part(run, part);
        for tid in self.programs[run].tids() {
            self.refit(tid);
        }
        self.answer(run);
    }

    /// Whether a program has another number of threads, and cannot change it.
    fn cannot_have(&self, run: usize, threads: u16) -> bool {
        let model = &self.programs[run].model;
        threads != model.threads && !model.is_malleable()
    }

    /// An exception for one thread takes effect.
    pub(crate) fn obey_rule(&mut self, id: ThreadId, rule: ThreadRule) {
        let tid = id.slot;
        let Some(thread) = self.threads.get_mut(tid as usize) else { return };
        if thread.generation != id.generation || thread.place == ThreadState::Ended {
            return;
        }
        thread.rule = (rule != ThreadRule::default()).then(|| Box::new(rule));
        let (run, rank) = (usize::from(thread.turn.program), thread.turn.rank);
        let all = self.programs[run].cpus;
        let lost = rule.cpus.zip(all).is_some_and(|(own, all)| !own.intersects(&all));
        if lost {
            self.refuse(run, Aspect::Cpus, Refusal::NoCpuLeft);
        }
        self.refuse_slice(run, rule.slice, rank);
        self.refit(tid);
    }

    /// A program is released: its threads have their original settings again.
    pub(crate) fn forget_rules(&mut self, run: usize) {
        for tid in self.programs[run].tids() {
            self.threads[tid as usize].rule = None;
        }
    }

    fn refuse(&mut self, run: usize, aspect: Aspect, why: Refusal) {
        self.tell(Happening::Refused(self.programs[run].id, aspect, why));
    }

    /// The fixed priority of a class: 0 for none. `None`: this kernel has no such class.
    fn rank(&self, class: Option<Class>) -> Option<u8> {
        match class {
            None if self.kernel.order == (Order::Solaris { fixed: true }) => Some(1),
            None | Some(Class::Fair | Class::Batch) => Some(0),
            Some(_) if self.kernel.is_solaris() => match class {
                Some(Class::FixedPriority(priority @ 0..=60)) => Some(priority + 1),
                _ => None,
            },
            Some(Class::RoundRobin(priority)) => Some(priority).filter(|p| (1..=99).contains(p)),
            Some(Class::FixedPriority(priority)) => {
                Some(priority).filter(|_| !self.kernel.is_fair())
            }
        }
    }

    fn has_nice(&self, nice: i8) -> bool {
        self.kernel.is_fair() && (NICE.0..=NICE.1).contains(&nice)
    }

    /// The slice in effect for a requested one.
    fn bounded(&self, requested: Option<Nanos>, rank: u8) -> Option<Nanos> {
        match self.kernel.order {
            Order::RoundRobin { .. } => requested,
            // Time sharing uses its table.
            Order::Solaris { .. } => requested.filter(|_| rank > 0),
            _ if rank > 0 => None,
            Order::Eevdf { .. } => requested.map(|slice| slice.clamp(SLICES.0, SLICES.1)),
            Order::Cfs { .. } => None,
        }
    }

    /// Says so where a slice has no effect, or where another one takes its place.
    fn refuse_slice(&mut self, run: usize, requested: Option<Nanos>, rank: u8) {
        match self.bounded(requested, rank) {
            granted if granted == requested => {}
            None => self.refuse(run, Aspect::Slice, Refusal::NotSupported),
            Some(_) => self.refuse(run, Aspect::Slice, Refusal::OutOfRange),
        }
    }

    /// Applies the settings of a thread's program, and its own, to the thread.
    fn refit(&mut self, tid: Tid) {
        let thread = &self.threads[tid as usize];
        if thread.place == ThreadState::Ended {
            return;
        }
        let rule = thread.rule.as_deref().copied().unwrap_or_default();
        let program = &self.programs[usize::from(thread.turn.program)];
        let rank = self.rank(program.settings.class).unwrap_or(0);
        let effective = self.bounded(rule.slice.or(program.settings.slice), rank);
        let slice = match effective {
            Some(slice) => slice.0 as f64,
            None if self.kernel.is_fair() && rank > 0 => REAL_TIME_SLICE.0 as f64,
            None => self.kernel.slice(self.cpus.len()),
        };
        let mask = rule.cpus.map(|own| match program.cpus {
            Some(all) if own.intersects(&all) => own.intersection(&all),
            Some(all) => all,
            None => own,
        });
        let rank = if self.kernel.is_solaris() { self.joins_class(tid, rank, slice) } else { rank };
        let thread = &self.threads[tid as usize];
        // If its rank changes, it leaves its queue with the old rank, and joins it with the new
        // one.
        let returns = thread.turn.rank != rank
            && matches!(thread.place, ThreadState::Running | ThreadState::Queued);
        let current = self.cpus[usize::from(thread.cpu)].current;
        if let Some(current) = current {
            self.account(current);
        }
        if returns {
            self.take_off(tid, ThreadState::Held);
        }
        let thread = &mut self.threads[tid as usize];
        if thread.turn.rank != rank {
            thread.turn.rank = rank;
            thread.lag = 0.0;
        }
        thread.mask = mask.map(Box::new);
        self.set_turn(tid, slice);
        if returns {
            self.make_runnable(tid, EnqueueReason::Woken);
        }
        self.obey_mask(tid);
    }

    fn set_turn(&mut self, tid: Tid, slice: f64) {
        let weight = self.weight(tid);
        let turn = &mut self.threads[tid as usize].turn;
        turn.slice = slice;
        // The rest of its slice is as long as before.
        turn.deadline = turn.vruntime + (turn.deadline - turn.vruntime) * turn.weight / weight;
        turn.weight = weight;
        self.refresh_turn(tid);
    }
}
