//! Taking turns by weight: the effect of a program's part ([`Turn`]) in the fair class of Linux
//! 6.18.
//!
//! Each program with a part has a CPU group of its own. In turn, the group has the greatest weight
//! that Linux allows. A filler's group is idle (`cpu.idle`): it weighs next to nothing, and any
//! thread outside idle groups preempts it on waking (`check_preempt_wakeup_fair`). A CPU on which
//! only fillers run counts as idle, both for a thread that wakes (`sched_idle_cpu` in
//! `select_idle_sibling`) and for how often work is evened out (`sched_balance_domains`).
//!
//! Linux has a queue for each group on each CPU. Here all threads of a CPU are in one queue, and a
//! thread has its part of its group's weight. Idle threads are picked by the same rule as all
//! others, and rarely because of their weight.
//!
//! When a turn begins, and [now and then](Turn::moved_apart_every) after that, cosched separates
//! threads of the program that share a CPU. The mask that it sets for that moment is not simulated;
//! the moves are.

use cosched_core::Turn;

use crate::thread::ThreadState;
use crate::tid::Tid;
use crate::world::{ProgramRun, SimulatedWorld};

/// The weight of a group in turn, in groups of the default weight: 262144 (`MAX_SHARES`) against
/// 1024.
const IN_TURN: f64 = 256.0;
/// The weight of an idle group (`WEIGHT_IDLEPRIO`), and the lowest that a group has on a CPU
/// (`MIN_SHARES`).
const FILLER: f64 = 3.0 / 1024.0;
const LEAST_ON_A_CPU: f64 = 2.0 / 1024.0;

impl SimulatedWorld {
    pub(crate) fn has_parts(&self) -> bool {
        self.kernel.takes_turns_by_weight()
    }

    /// A thread's weight in the group of a program with a part, with this many runnable threads
    /// (`calc_group_shares`, with the threads spread evenly over the CPUs).
    pub(crate) fn weight_of_part(&self, part: Turn, runnable: u32) -> f64 {
        let threads = f64::from(runnable.max(1));
        match part {
            Turn::InTurn => IN_TURN / threads,
            Turn::Filler => {
                let on_a_cpu = (threads / self.cpus.len() as f64).ceil();
                (FILLER / threads).max(LEAST_ON_A_CPU / on_a_cpu)
            }
        }
    }

    /// Sets or removes a program's part. Threads keep their lag (`reweight_entity`), and each CPU
    /// checks whether another thread should run.
    pub(crate) fn give_part(&mut self, run: usize, part: Option<Turn>) {
        if self.programs[run].part == part {
            return;
        }
        self.programs[run].part = part;
        self.by_weight |= part.is_some();
        for cpu in 0..self.cpus.len() {
            self.rebase(cpu);
        }
        for tid in self.programs[run].tids() {
            let thread = &mut self.threads[tid as usize];
            thread.turn.idle = part == Some(Turn::Filler);
            let (place, cpu) = (thread.place, usize::from(thread.cpu));
            match place {
                ThreadState::Ended => {}
                ThreadState::Running | ThreadState::Queued => self.reweight(tid, cpu),
                ThreadState::Blocked if thread.turn.delayed => self.reweight(tid, cpu),
                ThreadState::Blocked | ThreadState::Held => self.reweight_sleeper(tid),
            }
        }
        for cpu in 0..self.cpus.len() {
            self.looks_for_preemption(cpu);
        }
        if part == Some(Turn::InTurn) {
            self.begun.push(run);
            self.used.clear();
        }
        self.spread_later();
    }

    fn spread_later(&mut self) {
        if let Some(every) = Turn::moved_apart_every(self.cpus.len(), false) {
            self.agenda.set(self.spread_slot(), self.now + every.0);
        }
    }

    /// Separates threads of the programs in turn again, as long as there are fillers.
    pub(crate) fn keep_apart(&mut self) {
        let has =
            |part| move |program: &ProgramRun| program.alive > 0 && program.part == Some(part);
        if !self.programs.iter().any(has(Turn::Filler)) {
            return;
        }
        let programs = 0..self.programs.len();
        self.begun.extend(programs.filter(|run| has(Turn::InTurn)(&self.programs[*run])));
        if !self.begun.is_empty() {
            self.spread_later();
        }
    }

    /// Separates threads of programs that have just got the turn. This comes after all changes of
    /// an instant, so that it does not matter whether a turn begins or ends first.
    pub(crate) fn spread_begun(&mut self) {
        for at in 0..self.begun.len() {
            self.spread(self.begun[at]);
        }
        self.begun.clear();
    }

    /// Each waiting thread that shares its CPU with a sibling goes to a CPU with nothing but
    /// fillers, if one is left to which no thread has been moved in this turn.
    fn spread(&mut self, run: usize) {
        for tid in self.programs[run].tids() {
            let thread = &self.threads[tid as usize];
            let from = usize::from(thread.cpu);
            if thread.place != ThreadState::Queued
                || thread.turn.rank > 0
                || !self.has_sibling(tid, from)
            {
                continue;
            }
            let free = (0..self.cpus.len()).filter(|to| *to != from && self.is_free(*to));
            let allowed = free.filter(|to| self.may_use(tid, *to) && !self.used.contains(to));
            if let Some(to) = allowed.min_by_key(|to| (self.cpus[*to].load, self.chance(tid, *to)))
            {
                self.used.push(to);
                self.move_queued(tid, from, to);
            }
        }
    }

    /// Whether a CPU has nothing to do, or runs only fillers.
    pub(crate) fn is_free(&self, cpu: usize) -> bool {
        self.cpus[cpu].load == 0 || self.has_only_fillers(cpu)
    }

    /// Whether a CPU has something to do, and all of it is threads of fillers (`sched_idle_rq`).
    pub(crate) fn has_only_fillers(&self, cpu: usize) -> bool {
        if !self.by_weight || self.cpus[cpu].load == 0 {
            return false;
        }
        let cpu = &self.cpus[cpu];
        let current = cpu.current.map(|tid| &self.threads[tid as usize].turn);
        let mut awake = cpu.queue.iter().filter(|turn| !turn.delayed).chain(current);
        awake.all(|turn| turn.idle && turn.rank == 0)
    }

    /// Weights on a CPU have changed: it chooses again, and a filler does not finish its slice
    /// before others.
    fn looks_for_preemption(&mut self, cpu: usize) {
        let mut waiting = self.cpus[cpu].queue.iter().filter(|turn| !turn.delayed).peekable();
        if waiting.peek().is_none() {
            return;
        }
        let others = waiting.any(|turn| !turn.idle);
        if let Some(current) = self.cpus[cpu].current {
            let thread = &mut self.threads[current as usize];
            if others && thread.turn.idle {
                thread.protected = f64::NEG_INFINITY;
            }
        }
        self.unsettle(cpu);
    }

    /// Sets the weight of a thread on a CPU or in its queue to the present value. Its lag in
    /// nanoseconds and the rest of its slice stay (`reweight_entity`). The running thread's account
    /// is up to date.
    pub(crate) fn reweight(&mut self, tid: Tid, cpu: usize) {
        let weight = self.weight(tid);
        let old = self.threads[tid as usize].turn.weight;
        if weight == old {
            self.refresh_turn(tid);
            return;
        }
        if self.threads[tid as usize].turn.rank > 0 {
            self.threads[tid as usize].turn.weight = weight;
            self.refresh_turn(tid);
            return;
        }
        self.keep_average(cpu);
        self.part(tid, cpu);
        // Without a weight it does not count in the average.
        self.threads[tid as usize].turn.weight = 0.0;
        self.refresh_turn(tid);
        let (average, all) = self.average(cpu);
        let thread = &mut self.threads[tid as usize];
        let scale = old / weight;
        let protected = (thread.protected - thread.turn.vruntime) * scale;
        let lag = if all > 0.0 { thread.lag * scale * (all + weight) / all } else { 0.0 };
        let turn = &mut thread.turn;
        turn.weight = weight;
        turn.vruntime = average - lag;
        turn.deadline = turn.vruntime + thread.ahead * scale;
        thread.protected = turn.vruntime + protected;
        self.refresh_turn(tid);
    }

    /// Like [`reweight`](Self::reweight), for a thread in no queue.
    fn reweight_sleeper(&mut self, tid: Tid) {
        let weight = self.weight(tid);
        let thread = &mut self.threads[tid as usize];
        let scale = thread.turn.weight / weight;
        thread.lag *= scale;
        thread.ahead *= scale;
        thread.turn.weight = weight;
    }

    /// A thread moves to a CPU. Its lag on another one belongs to its group, and stays there: each
    /// CPU has an entity of the group.
    pub(crate) fn leaves_debts(&mut self, tid: Tid, cpu: usize) {
        let has_part = self.programs[self.program_of(tid)].part.is_some();
        let thread = &mut self.threads[tid as usize];
        if has_part && usize::from(thread.cpu) != cpu {
            thread.lag = 0.0;
        }
    }

    /// Resets the zero of a CPU's virtual time to now. Where fillers run alone, virtual time is
    /// hundreds of times as fast as the clock, and large numbers would leave no digits for small
    /// differences.
    fn rebase(&mut self, cpu: usize) {
        if let Some(current) = self.cpus[cpu].current {
            self.account(current);
        }
        self.keep_average(cpu);
        let base = std::mem::replace(&mut self.cpus[cpu].average, 0.0);
        for at in 0..self.cpus[cpu].queue.len() {
            let tid = self.cpus[cpu].queue[at].tid;
            self.threads[tid as usize].shift(base);
            self.refresh_turn(tid);
        }
        if let Some(current) = self.cpus[cpu].current {
            self.threads[current as usize].shift(base);
        }
    }
}
