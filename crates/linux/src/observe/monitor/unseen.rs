//! Threads that programs in the kernel have not seen yet.
//!
//! They see a thread when it is switched or woken. One that sleeps when it is first observed has no
//! record until then, and may sleep for hours. But then it also is what it was at first: what it
//! does is therefore read once, from `/proc`.

use std::collections::BTreeSet;

use cosched_core::Nanos;

use super::sampled::{activity, thread_folder};
use super::{Preemptions, ThreadActivity, ThreadUse};
use crate::kernel::clock;
use crate::kernel::files::FileError;
use crate::kernel::procfs::{Proc, ProcState};

/// The threads of observed processes that have no record.
#[derive(Debug, Default)]
pub(super) struct UnseenThreads(Vec<ThreadUse>);

impl UnseenThreads {
    /// Adds the threads of a process that is observed from now on.
    pub(super) fn add(&mut self, program: u32, process: i32, proc: &Proc) -> Result<(), FileError> {
        let since = Nanos(clock::monotonic());
        for thread in proc.threads(process)? {
            let Some((now, hidden)) = present(process, thread, proc) else { continue };
            self.0.push(ThreadUse {
                now: Some(now),
                since,
                hidden,
                process,
                preemptions: Some(Preemptions::default()),
                migrations: Some(0),
                ..ThreadUse::of_nothing(program, thread)
            });
        }
        Ok(())
    }

    /// Stops observing the threads of a program.
    pub(super) fn forget(&mut self, program: u32) {
        self.0.retain(|one| one.program != program);
    }

    /// Adds to a reading what has no record there. `lost`: threads go without one for lack of room,
    /// so nothing is known of those.
    pub(super) fn report(&mut self, into: &mut Vec<ThreadUse>, lost: bool, proc: &Proc) {
        if lost {
            self.0.clear();
        }
        if self.0.is_empty() {
            return;
        }
        let seen: BTreeSet<(i32, i32)> = into.iter().map(|one| (one.process, one.thread)).collect();
        self.0.retain(|one| {
            !seen.contains(&(one.process, one.thread))
                && thread_folder(proc, one.process, one.thread).exists()
        });
        let now = Nanos(clock::monotonic());
        into.extend(self.0.iter().map(|one| {
            let mut one = *one;
            let activity = one.now.unwrap_or(ThreadActivity::Sleeping);
            one.time[activity as usize] = now.since(one.since);
            one
        }));
    }
}

/// What a thread does, and whether it may not be seen what it sleeps for; `None`: it has ended.
fn present(process: i32, thread: i32, proc: &Proc) -> Option<(ThreadActivity, bool)> {
    match proc.thread_stat(process, thread).ok()?.state {
        ProcState::Running => Some((ThreadActivity::Running, false)),
        ProcState::Stopped | ProcState::Traced => Some((ThreadActivity::Stopped, false)),
        state if state.has_ended() => None,
        _ => match activity(&thread_folder(proc, process, thread).join("syscall")) {
            // It has been woken meanwhile: it has a record.
            Ok(ThreadActivity::Running) => None,
            Ok(activity) => Some((activity, false)),
            Err(error) if error.is_gone() => None,
            Err(_) => Some((ThreadActivity::Sleeping, true)),
        },
    }
}
