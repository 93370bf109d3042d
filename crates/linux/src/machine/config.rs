//! The configuration of a machine for a run, and the messages that it sends meanwhile.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use cosched_core::{CpuSet, ProgramId, SpinLoop, Spinning, Topology};

use crate::clients::cpu_time::Roots;
use crate::clients::user_requests::UserRequests;
use crate::control::ext::ExtCounts;
use crate::control::run_cgroups::Wishes;
use crate::hook::Hook;
use crate::observe::barrier_stats::StatsOfRun;
use crate::observe::counters::Events;
use crate::process::launch::{LaunchOrder, OutputTo};
use crate::process::tree::Process;

/// What a run on this machine needs to know.
#[derive(Debug)]
pub struct Config {
    /// The executable of helpers; normally [`crate::process::helper::OWN_EXECUTABLE`].
    pub executable: PathBuf,
    /// Where the undo log goes; normally [`log_folder`](crate::safety::undo::log_folder).
    pub log_folder: PathBuf,
    /// The CPUs, caches and packages of the machine.
    pub topology: Topology,
    /// The CPUs that programs may use.
    pub cpus: CpuSet,
    /// How to freeze, bind and share.
    pub wishes: Wishes,
    /// What loads the scheduler that is to schedule the programs' threads instead of the kernel;
    /// `None`: the kernel schedules them.
    pub ext: Option<PathBuf>,
    /// Whether programs take turns. If so, reasons that forbid freezing them are looked for.
    pub turns: bool,
    /// Whether to look for several processes of a program that compute with several threads each.
    /// They take turns, or the user is told how they could.
    pub units: bool,
    /// Whether every program gets a session of its own instead of cosched's, provided that the
    /// kernel shares CPUs by session here. cosched is then on time, however many threads they have.
    pub sessions: bool,
    /// The hardware events to count for every program; `None`: none.
    pub count: Option<Events>,
    /// The spin loops that are known from earlier runs; `None`: none are looked for.
    pub spin_loops: Option<Vec<SpinLoop>>,
    /// The programs; the position is the slot of their ids.
    pub jobs: Vec<Job>,
    /// The requests of users during the run, if they can make any.
    pub user_requests: Option<Arc<UserRequests>>,
    /// Where messages for the user go, at once.
    pub notes: Sender<Note>,
    /// Where the machine writes which shim each program has.
    pub roots: Roots,
    /// Where the machine writes the barrier statistics of the programs.
    pub stats: StatsOfRun,
}

/// How a program comes into the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// cosched starts it, below a shim.
    #[default]
    Started,
    /// cosched starts it as its own child, in its own place: with its standard input, terminal and
    /// process group. Signals to cosched are passed on to it.
    Child,
    /// It runs already.
    Running(Process),
}

/// One program, as the machine needs to know it.
#[derive(Clone, Debug)]
pub struct Job {
    /// How it comes into the run. For one that runs already, the rest of this does not matter.
    pub origin: Origin,
    /// What to execute. The machine fills in cgroups, CPUs and the session.
    pub order: LaunchOrder,
    /// Where its standard output goes.
    pub stdout: OutputTo,
    /// Where its standard error goes.
    pub stderr: OutputTo,
    /// Whether the user has said that it may be frozen whatever it holds.
    pub freezable_for_sure: bool,
    /// Whether the user has said which programs it belongs together with.
    pub grouped_by_user: bool,
    /// The library inside it, if it has one. Only programs below a shim get thread limits.
    pub hook: Option<Hook>,
}

/// A message for the user.
#[derive(Debug)]
pub struct Note {
    /// The programs that it is about; none: the whole run.
    pub programs: Vec<ProgramId>,
    /// What happened.
    pub text: String,
    /// Whether something could not be done that was to be done.
    pub is_error: bool,
}

/// What was seen of a program; `None`: it was not looked at, or there was none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// The most threads that it had at once, in all its processes.
    pub threads: Option<u32>,
    /// The most processes that computed at once.
    pub processes: Option<u32>,
    /// The most parts of it that took turns within it.
    pub units: Option<u32>,
    /// How much of its CPU time went to spin loops.
    pub spinning: Option<Spinning>,
    /// What its threads did under the scheduler in the kernel.
    pub in_kernel: Option<ExtCounts>,
}
