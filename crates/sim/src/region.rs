//! The parallel regions of malleable programs, and their thread counts.
//!
//! This follows the library inside real programs (`crates/hook`). A region that requests as many
//! threads as the last one uses the present thread limit, at once. A region with another request
//! reports it and waits for the answer, which comes with the next settings. Without any limit, a
//! region has all requested threads at once. A limit is never above the request, and holds until
//! the next one. It changes nothing in a region that has begun.
//!
//! Threads that a region does not need sleep, without spinning, until the next one begins.

use cosched_core::Happening;

use crate::thread::{Doing, WaitTarget};
use crate::tid::Tid;
use crate::world::SimulatedWorld;

impl SimulatedWorld {
    /// A thread is at the beginning of a region. Returns whether it goes on at once.
    pub(crate) fn region(&mut self, tid: Tid, program: usize, requested: u16, next: u16) -> bool {
        let all = usize::from(self.programs[program].model.threads);
        let team = &mut self.programs[program].sync.team;
        let round = team.entry.round;
        match self.threads[tid as usize].waiting {
            WaitTarget::Region { round: waited_for } if waited_for != round => {
                return self.enter(tid, program, next);
            }
            WaitTarget::Region { .. } => {}
            _ => {
                team.entry.waiters.push(tid);
                if team.entry.waiters.len() == all {
                    if let Some(threads) = self.request_threads(program, requested) {
                        self.open(program, threads, Some(tid));
                        return self.enter(tid, program, next);
                    }
                }
            }
        }
        let runtime = &self.programs[program];
        let idle = self.threads[tid as usize].index >= runtime.sync.team.threads;
        let spin = if idle || runtime.sync.team.waits { 0 } else { runtime.model.spin.0 };
        self.wait_spinning(tid, WaitTarget::Region { round }, spin)
    }

    /// Requests threads. Returns how many there are, if that is known at once.
    fn request_threads(&mut self, program: usize, requested: u16) -> Option<u16> {
        let thread_limit = self.programs[program].settings.thread_limit;
        let team = &mut self.programs[program].sync.team;
        let is_new = std::mem::replace(&mut team.requested, requested) != requested;
        if is_new {
            team.waits = thread_limit.is_some();
            let (id, blocked) = (self.programs[program].id, thread_limit.is_some());
            self.tell(Happening::Requested { program: id, threads: requested, blocked });
        }
        match thread_limit {
            Some(_) if is_new => None,
            Some(thread_limit) => Some(thread_limit.clamp(1, requested)),
            None => Some(requested),
        }
    }

    /// Takes new settings as an answer, if one is waited for.
    pub(crate) fn answer(&mut self, program: usize) {
        let thread_limit = self.programs[program].settings.thread_limit;
        let team = &mut self.programs[program].sync.team;
        if std::mem::take(&mut team.waits) {
            let threads = thread_limit
                .map_or(team.requested, |thread_limit| thread_limit.clamp(1, team.requested));
            self.open(program, threads, None);
        }
    }

    /// A region begins with this many threads, opened by the thread that came last or by an answer.
    fn open(&mut self, program: usize, threads: u16, by: Option<Tid>) {
        let team = &mut self.programs[program].sync.team;
        team.threads = threads;
        team.entry.round += 1;
        let mut waiters = std::mem::take(&mut team.entry.waiters);
        for waiter in waiters.drain(..).filter(|waiter| Some(*waiter) != by) {
            self.signal(by.unwrap_or(waiter), waiter);
        }
        self.programs[program].sync.team.entry.waiters = waiters;
    }

    /// A region has begun, with or without this thread.
    fn enter(&mut self, tid: Tid, program: usize, next: u16) -> bool {
        let threads = self.programs[program].sync.team.threads;
        let thread = &mut self.threads[tid as usize];
        thread.at += if thread.index < threads { 1 } else { 1 + u32::from(next) };
        thread.waiting = WaitTarget::No;
        thread.doing = Doing::Nothing;
        true
    }
}
