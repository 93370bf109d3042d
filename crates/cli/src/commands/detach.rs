//! `cosched detach`: detaches a process from its cosched, and restores its original settings.
//!
//! The undo logs of the running cosched processes tell which of them has the process ([`Held`]).
//! The request goes over that run's own socket. It is done when the log owes the program nothing
//! any more. This command then reads what was put back, and does not take it for granted.

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use cosched_core::Nanos;
use cosched_core::format::count;
use cosched_linux::cgroup::RUN;
use cosched_linux::clients::onlookers;
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::kernel::sched_attr::{self, SchedAttr, default_slice};
use cosched_linux::process::tree::Process;
use cosched_linux::safety::undo::{self, Held, LogError, Record};
use serde::Serialize;

use crate::args::pid;
use crate::live::{WrittenRequest, socket_of};
use crate::ui::failure::Failure;
use crate::ui::{print, print_json};

const SCHEMA: &str = "cosched-detach/2";
/// The name of its process.
const COSCHED: &str = "cosched";
/// How long a cosched may take: far longer than one needs that gets any CPU.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(5);

/// What to detach.
#[derive(Debug, Args)]
pub(crate) struct DetachArgs {
    /// A process of the program to detach.
    #[arg(value_name = "PID", allow_negative_numbers = true, value_parser = pid)]
    pid: i32,
    /// Print what was restored as JSON.
    #[arg(long)]
    json: bool,
}

/// What came of it.
#[derive(Debug, Serialize)]
struct Detached {
    schema: &'static str,
    /// The process that was named.
    pid: i32,
    name: String,
    /// The cosched that had it.
    cosched: i32,
    /// How many of its threads had been changed and live.
    threads: usize,
    /// How many of these have the class, nice value and slice that they were found with.
    original: usize,
    /// Whether it had been bound to CPUs.
    bound: bool,
    /// Whether it stays in a cgroup of the run.
    #[serde(skip)]
    keeps_group: bool,
}

/// Makes the cosched that has the process detach it.
pub(crate) fn detach(args: &DetachArgs) -> Result<ExitCode, Failure> {
    let proc = Proc::own().map_err(Failure::input)?;
    let name = proc.name(args.pid).map_err(|error| {
        Failure::Input(match error.is_gone() {
            true => format!(
                "there is no process {}: `ps -e` lists all processes, and `cosched top` shows the \
                 programs of a run",
                args.pid
            ),
            false => error.to_string(),
        })
    })?;
    let (folder, held) = find(args.pid, &name, &proc)?;
    let owner = held.owner.pid;
    let unseen = |error: LogError| {
        Failure::broken(format!(
            "{error}; without it, this command cannot see what process {owner} restores. \
             `cosched top {owner}` shows the programs that it still schedules"
        ))
    };
    let owed = held.owed(&proc).map_err(unseen)?;
    let refused = |error: std::io::Error| {
        Failure::Broken(format!(
            "process {owner} schedules it, and takes no requests ({error}): only `run`, `exec` and \
             `attach` do. Wait for its end, or end it (`kill {owner}`): both restore the original \
             settings"
        ))
    };
    let mut socket = onlookers::connect_to(&socket_of(&folder, owner as u32)).map_err(refused)?;
    socket.write_all(WrittenRequest::detach(args.pid).line().as_bytes()).map_err(refused)?;
    let until = Instant::now() + PATIENCE;
    while !held.owed(&proc).map_err(unseen)?.is_empty() {
        if Instant::now() > until {
            return Err(Failure::Broken(format!(
                "process {owner} has not detached it within {} s; it may be stopped, or unable to \
                 restore everything",
                PATIENCE.as_secs()
            )));
        }
        std::thread::sleep(PAUSE);
    }
    let (threads, original) = put_back(&owed, &proc);
    let bound = owed.iter().any(|record| matches!(record, Record::Pinned { .. }));
    let keeps_group = is_in_group_of(owner, args.pid, &proc);
    let (pid, cosched) = (args.pid, owner);
    let detached =
        Detached { schema: SCHEMA, pid, name, cosched, threads, original, bound, keeps_group };
    match args.json {
        true => print_json(&serde_json::to_string(&detached).map_err(Failure::broken)?)?,
        false => print(&detached.sentence())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The cosched that has a process. For root, those of other users are searched, too.
fn find(pid: i32, name: &str, proc: &Proc) -> Result<(PathBuf, Held), Failure> {
    let mut is_cosched = name == COSCHED;
    for folder in undo::log_folders().map_err(Failure::input)? {
        // One of another user's may vanish meanwhile.
        let held = Held::all(&folder, proc).unwrap_or_default();
        is_cosched |= held.iter().any(|held| held.owner.pid == pid);
        if let Some(held) = held.into_iter().find(|held| held.includes(pid, proc)) {
            return Ok((folder, held));
        }
    }
    Err(Failure::Input(match is_cosched {
        true => format!("{pid} is cosched itself; name a process of one of its programs"),
        false => format!(
            "no cosched of yours schedules process {pid}; name the first process of a program, or \
             one below it, as `ps` shows them"
        ),
    }))
}

impl Detached {
    fn sentence(&self) -> String {
        let Detached { pid, name, cosched, threads, original, .. } = self;
        let had = "the original class, nice value and slice";
        let cpus = if self.bound { ", and the original CPUs" } else { "" };
        let state = match (threads, original) {
            (0, _) if self.keeps_group => "until the run ends it stays in its cgroup; nothing \
                                           else of it is changed any more"
                .to_owned(),
            (0, _) if !self.bound => "none of its settings had been changed".to_owned(),
            (0, _) => "its threads have their original CPUs, or those that another program has set"
                .to_owned(),
            (all, same) if all == same => {
                format!("{} {had}{cpus}", count(*all, "thread has", "threads have"))
            }
            (all, same) => format!(
                "{same} of {} with {had}{cpus}; another program has changed the rest",
                count(*all, "thread", "threads")
            ),
        };
        format!("{name} ({pid}) is detached from process {cosched}: {state}.")
    }
}

/// Whether a process is in a cgroup of this cosched.
fn is_in_group_of(cosched: i32, pid: i32, proc: &Proc) -> bool {
    let run = format!("{RUN}{cosched}");
    let groups = proc.cgroups(pid).unwrap_or_default();
    groups.iter().any(|group| group.path.split('/').any(|part| part == run))
}

/// How many threads were changed and live, and how many of these are as they were found.
fn put_back(owed: &[Record], proc: &Proc) -> (usize, usize) {
    let default = default_slice().ok().flatten();
    // A slice that reads as the kernel's choice was not chosen by any process.
    let chosen = |attr: SchedAttr| {
        let is_default = Some(attr.runtime) == default && attr.policy.has_slices();
        if is_default { SchedAttr { runtime: Nanos::ZERO, ..attr } } else { attr }
    };
    let mut found: HashMap<Process, SchedAttr> = HashMap::new();
    for record in owed {
        if let Record::Attr { thread, found: first, set, .. } = record {
            // One that had already what others were given is in the log, too, and was not changed.
            if *first != chosen(*set) {
                found.entry(*thread).or_insert(*first);
            }
        }
    }
    found.retain(|thread, _| thread.look(proc).is_some());
    let is_original = |(thread, found): &(&Process, &SchedAttr)| {
        sched_attr::get(thread.pid).is_ok_and(|now| chosen(now) == **found)
    };
    (found.len(), found.iter().filter(is_original).count())
}
