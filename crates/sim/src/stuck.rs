//! Detects that no thread can ever go on.
//!
//! A simulation in which nothing is due is over. But a clock that interrupts a spinning thread is
//! always due. The next quantum of a policy is always due, too, whether any thread makes progress
//! or not. Now and then every thread's wait is therefore checked. If no thread computes or sleeps,
//! and nothing that any thread waits for has come, nothing ever will: only a running thread opens a
//! barrier, releases a lock, or fills a queue. That is exact, whatever is still due.

use crate::model::Op;
use crate::thread::{Doing, SimulatedThread, ThreadState, WaitTarget};
use crate::world::{Effect, SimulatedWorld};

/// The number of instants between two checks, and one more for each thread, so that checking costs
/// next to nothing.
const INSTANTS: usize = 1000;

impl SimulatedWorld {
    /// An instant has passed: returns whether any thread can still go on, as far as that was
    /// checked.
    pub(crate) fn gets_on(&mut self) -> bool {
        if self.patience > 0 {
            self.patience -= 1;
            return true;
        }
        self.patience = INSTANTS + self.threads.len();
        self.effects.iter().any(|effect| matches!(effect, Effect::Start(_)))
            || self.left().count() == 0
            || self.left().any(|thread| self.can_go_on(thread))
    }

    /// The threads that have not ended.
    pub(crate) fn left(&self) -> impl Iterator<Item = &SimulatedThread> {
        self.threads.iter().filter(|thread| thread.place != ThreadState::Ended)
    }

    /// Whether a thread can go on without another that does: a sleeping thread needs one that wakes
    /// it, unless a timer does.
    fn can_go_on(&self, thread: &SimulatedThread) -> bool {
        let program = &self.programs[usize::from(thread.turn.program)];
        let sync = &program.sync;
        let op = program.model.script.get(thread.at as usize);
        match (thread.waiting, op) {
            (WaitTarget::Time, Some(Op::Sleep(time))) => {
                thread.changed.checked_add(time.0).is_some_and(|at| at < u64::MAX)
            }
            // The request for threads has not been answered yet: the thread may be frozen.
            (WaitTarget::Region { round }, _) => sync.team.waits || sync.team.entry.round != round,
            // It may also not have been made yet.
            _ if thread.place == ThreadState::Blocked => false,
            (WaitTarget::Barrier { round }, Some(Op::Barrier(number))) => {
                sync.barriers[usize::from(*number)].round != round
            }
            (WaitTarget::Barrier { round }, Some(Op::TeamBarrier)) => {
                sync.team.region.round != round
            }
            (WaitTarget::Lock, Some(Op::Acquire(number))) => {
                let holder = sync.locks[usize::from(*number)].holder;
                holder.is_none_or(|holder| holder == thread.turn.tid)
            }
            (WaitTarget::Queue, Some(Op::Push(number))) => {
                let queue = &sync.queues[usize::from(*number)];
                queue.items < queue.capacity
            }
            (WaitTarget::Queue, Some(Op::Pop(number))) => {
                sync.queues[usize::from(*number)].items > 0
            }
            (WaitTarget::No, _) => match thread.doing {
                // It has more to compute than time lasts.
                Doing::Compute { .. } if thread.pace.rate > 0.0 => {
                    let horizon = thread.horizon().and_then(|nanos| self.now.checked_add(nanos));
                    horizon.is_some_and(|at| at < u64::MAX)
                }
                _ => true,
            },
            _ => true,
        }
    }
}
