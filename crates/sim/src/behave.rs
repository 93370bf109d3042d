//! What threads do: the operations of their scripts, one after another, until one takes time.

use crate::fair::EnqueueReason;
use crate::model::{AtBarrier, Model, Op};
use crate::sync::Gate;
use crate::thread::{Doing, ThreadState, WaitTarget};
use crate::tid::Tid;
use crate::world::SimulatedWorld;

impl SimulatedWorld {
    /// Executes the script of a thread on a CPU until an operation takes time.
    pub(crate) fn proceed(&mut self, tid: Tid) {
        let is_on_cpu =
            |world: &SimulatedWorld| world.threads[tid as usize].place == ThreadState::Running;
        if !is_on_cpu(self) {
            return;
        }
        self.account(tid);
        while is_on_cpu(self) && self.step(tid) {}
    }

    /// Begins a thread's present operation, or checks it again. Returns whether it is complete at
    /// once.
    fn step(&mut self, tid: Tid) -> bool {
        let program = self.program_of(tid);
        let thread = &self.threads[tid as usize];
        let Some(op) = self.programs[program].model.script.get(thread.at as usize).copied() else {
            self.end(tid);
            return false;
        };
        match op {
            Op::Compute { instructions, mix } => {
                let model = &self.programs[program].model;
                let share = model.share(thread.index, model.threads);
                self.compute(tid, instructions * share, mix)
            }
            Op::Share { instructions, mix } => {
                let (model, sync) = (&self.programs[program].model, &self.programs[program].sync);
                let team = sync.team.threads;
                let share = model.share(thread.index, team) / f64::from(team);
                self.compute(tid, instructions * share, mix)
            }
            Op::Region { threads, next } => self.region(tid, program, threads, next),
            Op::Barrier(number) => {
                let all = self.programs[program].model.threads;
                self.barrier(tid, program, Gate::Numbered(number), all)
            }
            Op::TeamBarrier => {
                let team = self.programs[program].sync.team.threads;
                self.barrier(tid, program, Gate::OfTheTeam, team)
            }
            Op::Acquire(number) => self.acquire(tid, program, usize::from(number)),
            Op::Fetch { lock, lines } => {
                self.fetch(tid, program, usize::from(lock), lines);
                self.go_on(tid)
            }
            Op::Release(number) => {
                self.release(tid, program, usize::from(number));
                self.go_on(tid)
            }
            Op::Push(number) => self.exchange(tid, program, usize::from(number), true),
            Op::Pop(number) => self.exchange(tid, program, usize::from(number), false),
            Op::Sleep(time) => {
                self.threads[tid as usize].waiting = WaitTarget::Time;
                self.block(tid);
                let slot = self.sleep_slot(tid);
                self.agenda.set(slot, self.now.saturating_add(time.0));
                false
            }
            Op::Create => {
                self.create(tid, program);
                self.go_on(tid)
            }
            Op::Only { threads, next } => {
                let thread = &mut self.threads[tid as usize];
                thread.at +=
                    if Model::does(threads, thread.index) { 1 } else { 1 + u32::from(next) };
                true
            }
            Op::Repeat { from, times, counter } => {
                let thread = &mut self.threads[tid as usize];
                let counter = &mut thread.counters[usize::from(counter)];
                *counter += 1;
                if *counter < times {
                    thread.at = from;
                } else {
                    *counter = 0;
                    thread.at += 1;
                }
                true
            }
        }
    }

    fn compute(&mut self, tid: Tid, left: f64, mix: u16) -> bool {
        let thread = &mut self.threads[tid as usize];
        thread.doing = Doing::Compute { left, mix };
        thread.at += 1;
        self.stir(tid);
        self.unprice_thread(tid);
        false
    }

    /// A thread makes its siblings, which begin after its present operation.
    fn create(&mut self, tid: Tid, program: usize) {
        let parent = &self.threads[tid as usize];
        let (at, cpu) = (parent.at + 1, parent.cpu);
        for other in self.programs[program].tids().filter(|other| *other != tid) {
            let thread = &mut self.threads[other as usize];
            (thread.at, thread.cpu, thread.made) = (at, cpu, true);
            self.make_runnable(other, EnqueueReason::Fresh);
        }
    }

    /// Completes the operation.
    pub(crate) fn go_on(&mut self, tid: Tid) -> bool {
        let thread = &mut self.threads[tid as usize];
        thread.at += 1;
        thread.waiting = WaitTarget::No;
        thread.doing = Doing::Nothing;
        true
    }

    /// A thread cannot go on: it spins as long as its program does, then sleeps.
    fn wait(&mut self, tid: Tid, program: usize, waiting: WaitTarget) -> bool {
        let spin = self.spins(program, self.programs[program].model.spin);
        self.wait_spinning(tid, waiting, spin)
    }

    /// A thread cannot go on: it spins for at most this many nanoseconds, then sleeps.
    pub(crate) fn wait_spinning(&mut self, tid: Tid, waiting: WaitTarget, spin: u64) -> bool {
        let thread = &mut self.threads[tid as usize];
        thread.waiting = waiting;
        match thread.doing {
            // It has checked again, in vain; the rest of its time to spin is kept.
            Doing::Spin { .. } if spin > 0 => self.unprice_thread(tid),
            _ if spin > 0 => {
                thread.doing = Doing::Spin { left: spin };
                self.unprice_thread(tid);
            }
            _ => self.block(tid),
        }
        false
    }

    /// A thread is at a barrier for this many threads.
    fn barrier(&mut self, tid: Tid, program: usize, gate: Gate, threads: u16) -> bool {
        let now = self.now;
        let barrier = self.programs[program].sync.barrier(gate);
        match self.threads[tid as usize].waiting {
            WaitTarget::Barrier { round } if round != barrier.round => return self.go_on(tid),
            WaitTarget::Barrier { round } => return self.wait_for_siblings(tid, program, round),
            _ => {}
        }
        if barrier.waiters.is_empty() {
            barrier.began = now;
        }
        let took = now - barrier.began;
        if barrier.waiters.len() + 1 < usize::from(threads) {
            barrier.waiters.push(tid);
            let round = barrier.round;
            self.programs[program].delays.count_arrival(took);
            return self.wait_for_siblings(tid, program, round);
        }
        barrier.round += 1;
        let mut waiters = std::mem::take(&mut barrier.waiters);
        for waiter in waiters.drain(..) {
            self.signal(tid, waiter);
        }
        let program = &mut self.programs[program];
        program.sync.barrier(gate).waiters = waiters;
        program.delays.count_arrival(took);
        program.delays.count_barrier(took);
        self.go_on(tid)
    }

    /// A thread is at a barrier that is not open.
    fn wait_for_siblings(&mut self, tid: Tid, program: usize, round: u64) -> bool {
        match self.programs[program].model.barrier {
            Some(AtBarrier::Donate) => self.wait_donating(tid, round),
            Some(AtBarrier::Spin) | None => self.wait(tid, program, WaitTarget::Barrier { round }),
        }
    }

    /// One thread has done what another waits for: a thread that spins on a CPU sees it, a thread
    /// that sleeps is woken.
    pub(crate) fn signal(&mut self, from: Tid, to: Tid) {
        match self.threads[to as usize].place {
            ThreadState::Running => {
                self.account(to);
                let distance = self.distance(from, to);
                let thread = &mut self.threads[to as usize];
                thread.owes += distance;
                thread.doing = Doing::Nothing;
                self.unprice_thread(to);
            }
            ThreadState::Blocked => self.wake(to),
            // It sees this once it is on a CPU again.
            ThreadState::Queued | ThreadState::Held | ThreadState::Ended => {}
        }
    }

    pub(crate) fn distance(&self, from: Tid, to: Tid) -> f64 {
        let cpu = |tid: Tid| usize::from(self.threads[tid as usize].cpu);
        self.hardware.signal(cpu(from), cpu(to))
    }

    /// Puts an item into a queue or takes one out, and wakes the first thread that waits for that.
    fn exchange(&mut self, tid: Tid, program: usize, number: usize, push: bool) -> bool {
        let queue = &mut self.programs[program].sync.queues[number];
        let possible = if push { queue.items < queue.capacity } else { queue.items > 0 };
        let (own, others) = match push {
            true => (&mut queue.givers, &mut queue.takers),
            false => (&mut queue.takers, &mut queue.givers),
        };
        own.retain(|waiter| *waiter != tid);
        if !possible {
            own.push_back(tid);
            return self.wait(tid, program, WaitTarget::Queue);
        }
        queue.items = if push { queue.items + 1 } else { queue.items - 1 };
        if let Some(waiter) = others.pop_front() {
            self.signal(tid, waiter);
        }
        self.go_on(tid)
    }
}
