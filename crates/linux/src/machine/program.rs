//! One live program: its processes, its freezer, its pinning, and how far its end has come.

use std::os::fd::OwnedFd;

use cosched_core::{Aspect, CpuSet, Exit, Nanos, ProgramId, Refusal, Settings, Turn, Usage};

use crate::cgroup::{Dir, WeightSwitch, can_be_idle, is_part_of_program};
use crate::control::freezer::Freezer;
use crate::control::pinning::{Pinning, ThreadSource};
use crate::control::run_cgroups::ProgramCgroups;
use crate::control::scheduling::Scheduling;
use crate::hook::HookServer;
use crate::kernel::files::FileError;
use crate::kernel::procfs::Proc;
use crate::observe::counters::Counters;
use crate::process::claim::Claim;
use crate::process::helper::Helper;
use crate::process::launch::Launched;
use crate::process::tree::{Process, Tree};
use crate::safety::undo::Record;

#[derive(Debug)]
pub(super) struct Live {
    pub(super) id: ProgramId,
    pub(super) tree: Tree,
    pub(super) freezer: Freezer,
    /// Its CPU group's weight, where programs take turns by weight.
    pub(super) weight: Option<WeightSwitch>,
    pub(super) turn: Option<Turn>,
    pub(super) pinning: Pinning,
    pub(super) scheduling: Scheduling,
    /// What it was to start with; class, nice value and slice are given to its first process.
    pub(super) at_start: Settings,
    pub(super) by_ext: ByExt,
    /// What could not be had of its scheduling, so far.
    pub(super) lacks: Vec<(Aspect, Refusal)>,
    pub(super) state: ExecutionState,
    /// How long it took to stop the last time, as far as that was seen.
    pub(super) stops_within: Nanos,
    /// When it could not be frozen because it catches SIGCONT: for the first and the last time of
    /// several in a row.
    pub(super) not_frozen: Option<(Nanos, Nanos)>,
    /// For how long cosched has had it frozen.
    pub(super) frozen: Frozen,
    pub(super) parent: Parent,
    /// The session that it was started in; `None` until a program that opens one has started.
    pub(super) session: Option<i32>,
    pub(super) counters: Option<Counters>,
    /// Where its processes come to, if it has the hook inside.
    pub(super) hook_server: Option<HookServer>,
    pub(super) ended: Option<CommandEnd>,
    /// When none of its processes was found any more.
    pub(super) empty_since: Option<Nanos>,
    /// Whether its last process is known to have ended.
    pub(super) gone: bool,
    /// It was detached, and is a child of cosched, or of its shim, all the same.
    pub(super) is_detached: bool,
    /// No other cosched takes it meanwhile.
    pub(super) claim: Option<Claim>,
    cgroups: ProgramCgroups,
}

/// Whether the scheduler in the kernel has a program's threads, where one is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByExt {
    /// It is to have them.
    NotYet,
    /// It has them.
    Joined,
    /// It has them no more.
    Left,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CommandEnd {
    pub(super) exit: Exit,
    pub(super) usage: Usage,
    /// When the program ended, if that was seen; `None`: just before that is noticed.
    pub(super) at: Option<Nanos>,
}

impl CommandEnd {
    pub(super) fn unseen(exit: Exit, usage: Usage) -> CommandEnd {
        CommandEnd { exit, usage, at: None }
    }
}

/// Which process is the parent of its command and its orphans, and how cosched hears of their ends.
#[derive(Debug)]
pub(super) enum Parent {
    /// No process yet, or none any more.
    Absent,
    /// Its shim, which reports.
    Shim(Launched),
    /// Its shim, which was killed and is still on its way out.
    Killed(Launched),
    /// cosched itself, in the place of a killed shim.
    Cosched,
    /// The parent that it had when cosched came. This, a pidfd, tells when its first process has
    /// ended.
    Other(OwnedFd),
}

impl Parent {
    /// The shim, as long as it is a child of cosched.
    pub(super) fn shim(&self) -> Option<Process> {
        match self {
            Parent::Shim(shim) | Parent::Killed(shim) => Some(shim.shim()),
            Parent::Absent | Parent::Cosched | Parent::Other(_) => None,
        }
    }
}

/// For how long a program was frozen, from when that was confirmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Frozen {
    since: Option<Nanos>,
    before: Nanos,
}

impl Frozen {
    pub(super) fn begin(&mut self, at: Nanos) {
        self.since.get_or_insert(at);
    }

    pub(super) fn end(&mut self, at: Nanos) {
        self.before = self.until(at);
        self.since = None;
    }

    /// Since when it has been stopped, if it is.
    pub(super) fn since(&self) -> Option<Nanos> {
        self.since
    }

    /// All time up to now.
    pub(super) fn until(&self, now: Nanos) -> Nanos {
        self.before + self.since.map_or(Nanos::ZERO, |since| now.since(since))
    }
}

/// Whether it runs, as far as cosched has to do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExecutionState {
    /// The shim has its order.
    Starting,
    Running,
    Freezing {
        since: Nanos,
        /// When to look next.
        look_at: Nanos,
    },
    Frozen,
    /// Another process has stopped it.
    StoppedByOther,
}

impl Live {
    /// A program that is started with the mask `first` where it would have had `found`.
    pub(super) fn new(
        id: ProgramId,
        shim: Option<Process>,
        cgroups: ProgramCgroups,
        (found, first): (CpuSet, Option<CpuSet>),
        is_freezable_for_sure: bool,
        proc: &Proc,
    ) -> Result<Live, FileError> {
        Ok(Live {
            id,
            tree: Tree { shim, ..Tree::default() },
            freezer: Freezer::of(cgroups.freezer.as_ref(), is_freezable_for_sure)?,
            weight: cgroups
                .share
                .as_ref()
                .filter(|dir| can_be_idle(dir))
                .map(WeightSwitch::open)
                .transpose()?,
            turn: None,
            pinning: Pinning::of(id, cgroups.cpuset.as_ref(), found, first),
            scheduling: Scheduling::new(id, proc),
            at_start: Settings::default(),
            by_ext: ByExt::NotYet,
            lacks: Vec::new(),
            state: ExecutionState::Starting,
            stops_within: Nanos::ZERO,
            not_frozen: None,
            frozen: Frozen::default(),
            parent: Parent::Absent,
            session: None,
            counters: None,
            hook_server: None,
            ended: None,
            empty_since: None,
            gone: false,
            is_detached: false,
            claim: None,
            cgroups,
        })
    }

    /// What binds it, and where its threads are found.
    pub(super) fn binding<T>(
        &mut self,
        proc: &Proc,
        bind: impl FnOnce(&mut Pinning, ThreadSource<'_>) -> T,
    ) -> T {
        let hook_server = &self.hook_server;
        let moves = || hook_server.as_ref().map_or(Some(0), HookServer::moves);
        bind(&mut self.pinning, ThreadSource { tree: &self.tree, proc, moves: &moves })
    }

    /// The cgroup that has its share of the CPUs.
    pub(super) fn share_dir(&self) -> Option<&Dir> {
        self.cgroups.share.as_ref()
    }

    /// What the undo log has to know before the program starts; and again, with the other answer,
    /// before its first freeze by signals.
    pub(super) fn record(&self, stopped_by_signal: bool) -> Record {
        Record::Program {
            program: self.id,
            // Only a program that cosched has started has a shim, which is known from the start.
            shim: self.tree.shim.unwrap_or(Process { pid: 0, start_time: 0 }),
            stopped_by_signal,
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        matches!(self.ended, Some(CommandEnd { exit: Exit::Failed(_), .. }))
    }

    pub(super) fn holds_in_cgroup(&self, pid: i32) -> bool {
        let mut members = self.cgroups.all.iter().filter_map(|dir| dir.procs_recursive().ok());
        members.any(|pids| pids.contains(&pid))
    }

    /// Whether one of these processes of the program has left a cgroup that it was started in. The
    /// sentinel of a cosched within the program does so to be safe.
    pub(super) fn has_strays(&self, processes: &[Process], proc: &Proc) -> bool {
        self.cgroups.all.iter().any(|dir| {
            let is_outside = |process: &Process| {
                let within = dir.procs_recursive().unwrap_or_else(|_| vec![process.pid]);
                within.binary_search(&process.pid).is_err()
            };
            let Ok(within) = dir.procs_recursive() else { return false };
            let mut outside = processes.to_vec();
            outside.retain(|process| within.binary_search(&process.pid).is_err());
            outside.retain(|process| !Helper::Sentinel.may_be(process.pid, proc));
            // It may have moved back, or ended.
            outside.iter().any(|process| is_outside(process) && process.is_there(proc))
        })
    }

    /// Removes its cgroups, once it is gone. Its last process may still be on its way out: what
    /// cannot be removed now is removed with the run's cgroups at the end.
    pub(super) fn remove_cgroups(&self) {
        for dir in &self.cgroups.all {
            let below = dir.children().unwrap_or_default();
            below.iter().filter(|dir| is_part_of_program(dir)).for_each(|dir| _ = dir.remove());
            let _ = dir.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_frozen_goes_on_from_one_freeze_to_the_next() {
        let mut frozen = Frozen::default();
        frozen.begin(Nanos(10));
        assert_eq!(frozen.until(Nanos(15)), Nanos(5));
        frozen.begin(Nanos(12));
        frozen.end(Nanos(20));
        frozen.end(Nanos(25));
        assert_eq!(frozen.until(Nanos(30)), Nanos(10));
        frozen.begin(Nanos(30));
        assert_eq!(frozen.until(Nanos(31)), Nanos(11));
    }
}
