//! Locks, as C libraries have them.
//!
//! A lock is a word in memory. A thread that finds it taken spins, and then sleeps in the lock's
//! queue. Threads that spin on a CPU all see the release, and the first one that reaches the word
//! takes it: mostly the nearest one, but its place in the queue does not count. A thread that was
//! woken for the lock, and finds it taken again, is queued anew, at the end.
//!
//! *Solaris.* The release wakes the thread that has slept longest only where no thread spins on a
//! CPU. A woken thread does not spin again. *Linux.* The release wakes a sleeper in any case, and
//! it spins again, if its program does, as libgomp's waiters do.
//!
//! *What more threads cost.* Every spinning thread reads the word after the release. Half of these
//! reads come before that of the next holder, on average, one after another.
//!
//! *Source.* OpenSolaris `libc/port/threads/synch.c`: `mutex_trylock_adaptive` (test and set by
//! threads that spin), `mutex_unlock_queue` (no wake-up while there are any), `mutex_lock_queue`
//! (queued again). glibc `nptl/lowlevellock`, libgomp `config/linux/mutex.c` (a futex is woken
//! whenever its queue is not empty). What reads cost: Boyd-Wickizer, Kaashoek, Morris and
//! Zeldovich, "Non-scalable locks are dangerous" (Linux Symposium 2012), section 3. Chance, ours:
//! a spinning thread looks at a random moment, so any may be first that is less than twice as far
//! as the nearest; that costs nothing more.

use cosched_core::Nanos;

use crate::kernel::Order;
use crate::model::Op;
use crate::thread::{Doing, SimulatedThread, ThreadState, WaitTarget};
use crate::tid::Tid;
use crate::world::SimulatedWorld;

impl SimulatedWorld {
    /// A thread takes a lock, or waits for it. Returns whether it has it.
    pub(crate) fn acquire(&mut self, tid: Tid, program: usize, number: usize) -> bool {
        let lock = &mut self.programs[program].sync.locks[number];
        match lock.holder {
            // It was the first one at the word when the lock was released.
            Some(holder) if holder == tid => {}
            None => {
                lock.holder = Some(tid);
                lock.waiters.retain(|waiter| *waiter != tid);
                self.threads[tid as usize].holds += 1;
            }
            Some(holder) => return self.wait_for_lock(tid, program, number, holder),
        }
        self.takes_over(tid, program, number);
        self.go_on(tid)
    }

    fn wait_for_lock(&mut self, tid: Tid, program: usize, number: usize, holder: Tid) -> bool {
        let thread = &self.threads[tid as usize];
        let waited = thread.waiting == WaitTarget::Lock;
        let was_woken = waited && !spins_in(thread);
        let lock = &mut self.programs[program].sync.locks[number];
        if !lock.waiters.contains(&tid) {
            lock.waiters.push_back(tid);
        }
        if !waited {
            self.note_arrival(tid, program);
        }
        let model = &self.programs[program].model;
        let spin = match model.adaptive {
            _ if was_woken && self.has_solaris_libc() => Nanos::ZERO,
            Some(limit) if self.threads[holder as usize].place == ThreadState::Running => limit,
            Some(_) => Nanos::ZERO,
            None => model.spin,
        };
        let spin = self.spins(program, spin);
        self.wait_spinning(tid, WaitTarget::Lock, spin)
    }

    fn has_solaris_libc(&self) -> bool {
        matches!(self.kernel.order, Order::Solaris { .. })
    }

    /// Releases a lock: to the first spinning thread that reaches it, if there is one. One that
    /// sleeps may be woken to try, and may come too late.
    pub(crate) fn release(&mut self, tid: Tid, program: usize, number: usize) {
        let cpu = self.threads[tid as usize].cpu;
        let lock = &mut self.programs[program].sync.locks[number];
        lock.holder = None;
        lock.given_back = Some((tid, cpu));
        self.threads[tid as usize].holds -= 1;
        let spinner = self.first_spinner(tid, program, number);
        if let Some((spinner, others)) = spinner {
            let lock = &mut self.programs[program].sync.locks[number];
            lock.waiters.retain(|waiter| *waiter != spinner);
            lock.holder = Some(spinner);
            self.signal(tid, spinner);
            let thread = &mut self.threads[spinner as usize];
            thread.holds += 1;
            thread.owes += others;
        }
        // Under load control a sleeper would find the lock taken, in a slot that is still its own.
        let lets_sleep =
            self.has_solaris_libc() || self.programs[program].model.load_control.is_some();
        if spinner.is_some() && lets_sleep {
            return;
        }
        let lock = &mut self.programs[program].sync.locks[number];
        let sleeps = |waiter: &Tid| self.threads[*waiter as usize].place == ThreadState::Blocked;
        if let Some(position) = lock.waiters.iter().position(sleeps) {
            let sleeper = lock.waiters.remove(position);
            sleeper.into_iter().for_each(|sleeper| self.signal(tid, sleeper));
        }
    }

    /// The spinning thread that reaches a lock first after its release, and how long the reads of
    /// the others delay it, nanoseconds.
    fn first_spinner(&self, from: Tid, program: usize, number: usize) -> Option<(Tid, f64)> {
        let waiters = self.programs[program].sync.locks[number].waiters.iter();
        let (mut first, mut sum) = (None, 0.0);
        for waiter in waiters.copied().filter(|waiter| self.spins_on_cpu(*waiter)) {
            let distance = self.distance(from, waiter);
            let cpu = usize::from(self.threads[waiter as usize].cpu);
            let arrives = distance * (1.0 + self.chance(waiter, cpu) as f64 / u64::MAX as f64);
            sum += distance;
            if first.is_none_or(|(_, earliest, _)| arrives < earliest) {
                first = Some((waiter, arrives, distance));
            }
        }
        first.map(|(waiter, _, own)| (waiter, (sum - own) / 2.0))
    }

    /// A thread that has just been woken is on a CPU, but does not check the lock yet.
    fn spins_on_cpu(&self, tid: Tid) -> bool {
        let thread = &self.threads[tid as usize];
        thread.place == ThreadState::Running && spins_in(thread)
    }

    /// The holder of the lock that a thread's operation names.
    pub(crate) fn awaited(&self, tid: Tid) -> Option<Tid> {
        let thread = &self.threads[tid as usize];
        let program = &self.programs[usize::from(thread.turn.program)];
        match program.model.script.get(thread.at as usize) {
            Some(Op::Acquire(number)) => program.sync.locks[usize::from(*number)].holder,
            _ => None,
        }
    }

    /// A thread that spins for an adaptive lock checks it again when the holder loses its CPU, and
    /// goes to sleep.
    pub(crate) fn leaves_waiters(&mut self, tid: Tid) {
        let thread = &self.threads[tid as usize];
        let program = &self.programs[usize::from(thread.turn.program)];
        if thread.holds == 0 || program.model.adaptive.is_none() {
            return;
        }
        for lock in program.sync.locks.iter().filter(|lock| lock.holder == Some(tid)) {
            let spins = |waiter: &&Tid| spins_in(&self.threads[**waiter as usize]);
            self.ready.extend(lock.waiters.iter().filter(spins));
        }
    }
}

fn spins_in(thread: &SimulatedThread) -> bool {
    matches!(thread.doing, Doing::Spin { .. })
}
