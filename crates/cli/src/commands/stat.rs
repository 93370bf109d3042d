//! `cosched stat`: what the threads of running programs do: run, lack a CPU, wait at locks, take
//! each other's CPU.
//!
//! It only observes: it changes no program, and no policy runs.

mod subjects;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use cosched_core::{CpuSet, Nanos};
use cosched_lab::stat::conclusion::{self, LEGEND, ThreadTimes, WatchedMachine};
use cosched_lab::stat::{Arrivals, Counted, StatDocument};
use cosched_linux::kernel::affinity;
use cosched_linux::kernel::clock::Clock;
use cosched_linux::kernel::poll::{Poll, Ready};
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::kernel::signals::interruption;
use cosched_linux::kernel::topology::Sys;
use cosched_linux::observe::counters::{CounterLack, Events};
use cosched_linux::observe::monitor::interval::{Intervals, Slice};
use cosched_linux::observe::monitor::{Monitor, ROOM};
use cosched_linux::safety::undo::Held;
use cosched_policy::{GroupBy, Sockets};
use cosched_report::words;
use cosched_workload::{escaped_json, shown};
use rustix::process::{Signal, geteuid};

use crate::args::choices;
use crate::args::{duration, groups, pid, whole};
use crate::session::Load;
use crate::ui::failure::{Failure, interruption_code};
use crate::ui::{print_if_read, say};
use subjects::{StatTarget, Subjects};

/// Intervals are not shorter: reading takes time, too.
const SHORTEST: Duration = Duration::from_millis(10);
/// A header stands above so many lines.
const PAGE: usize = 20;

/// What to look at.
#[derive(Debug, Args)]
#[command(override_usage = "cosched stat [OPTIONS] --pid <PID>\n       \
                            cosched stat [OPTIONS] -- <CMD ARGS>...")]
pub(crate) struct StatArgs {
    /// A running process, with all its threads and the processes that it will start. May be
    /// repeated.
    #[arg(short, long = "pid", value_name = "PID", required_unless_present = "command",
          allow_negative_numbers = true, value_parser = pid)]
    pids: Vec<i32>,
    /// Time between two prints: 10ms or more [default: 1s]
    #[arg(long, allow_hyphen_values = true, value_parser = duration)]
    interval: Option<Duration>,
    /// Stop after this many intervals (only with --pid) [default: when the processes have ended]
    #[arg(long, value_name = "N", conflicts_with = "command", allow_negative_numbers = true,
          value_parser = whole(1..=u32::MAX))]
    count: Option<u32>,
    /// Groups of CPUs, such as 0-3,4-7 ('+' joins ranges into one group). Lock transfers inside a
    /// group and between groups are counted separately, and for each group the time in which its
    /// threads come to locks
    #[arg(long, value_name = "CPUS,CPUS", value_parser = groups, conflicts_with = "group_by")]
    groups: Option<Sockets>,
    /// Make these groups of the CPUs that share a package, an llc (last-level cache) or a numa node
    /// [default: the largest of these of which the machine has several, if any]
    #[arg(long, value_parser = choices::listed(GroupBy::ALL, GroupBy::name),
          hide_possible_values = true)]
    group_by: Option<GroupBy>,
    /// Do not count lock transfers, which costs some time at every wake-up.
    #[arg(long, conflicts_with_all = ["groups", "group_by"])]
    no_transfers: bool,
    /// Also print a line for every thread.
    #[arg(long)]
    threads: bool,
    /// Print one JSON object for each interval.
    #[arg(long)]
    json: bool,
    /// Estimate from samples of /proc, even where the kernel counts exactly.
    #[arg(long)]
    sampled: bool,
    /// A program to start, with its arguments, after '--'. It keeps standard input and output.
    #[arg(last = true, value_name = "CMD ARGS", conflicts_with = "pids")]
    command: Vec<String>,
}

impl StatArgs {
    /// The groups of CPUs that are counted separately; none where there is only one of anything.
    fn groups(&self) -> Result<Vec<CpuSet>, Failure> {
        let topology = Sys::default().topology().map_err(Failure::input)?;
        let said = self.groups.clone().or(self.group_by.map(Sockets::By));
        if let Some(said) = &said {
            said.check(&topology, &topology.all()).map_err(Failure::input)?;
        }
        Ok(said.unwrap_or(Sockets::Widest).usable(&topology, &topology.all()))
    }
}

/// Looks until the processes have ended, or the user has seen enough.
pub(crate) fn stat(args: &StatArgs) -> Result<ExitCode, Failure> {
    let interval = args.interval.unwrap_or(Duration::from_secs(1));
    if interval < SHORTEST {
        return Err(Failure::Input(format!(
            "--interval {interval:?} is too short; write 10ms or more"
        )));
    }
    let groups = args.groups()?;
    let has_groups = !groups.is_empty();
    let proc = Proc::own().map_err(Failure::input)?;
    let target = StatTarget::check(&args.pids, &args.command, &proc)?;
    let (mut monitor, lack) =
        if args.sampled { (Monitor::sampled(&proc), None) } else { Monitor::open(&proc) };
    if let Some(lack) = lack {
        say(format_args!("lock times are estimated from samples of /proc: {lack}"));
    }
    let transfers = !args.no_transfers && counts_transfers(&mut monitor, &groups);
    let (mut counted, lack) = Counted::new(Events::HARDWARE);
    lack.iter().for_each(|lack| say(format_args!("{}", uncounted(lack))));
    // Signals wait in here from now on; what is started blocks none.
    let ends = [Signal::INT, Signal::TERM, Signal::HUP].map(Signal::as_raw);
    let mut poll = Poll::new(&ends).map_err(Failure::broken)?;
    let mut subjects = Subjects::watched(target, &proc, &mut monitor, &mut counted, &poll)?;
    if args.command.is_empty() && args.count.is_none() {
        say(format_args!(
            "watching {} until its end; Ctrl-C ends this command, and not the program",
            words::list(&subjects.names().iter().map(|name| shown(name)).collect::<Vec<_>>())
        ));
    }
    let (cpus, owners) = (usable(&args.pids), owners(&args.pids, &proc));
    let load = Load::begin(cpus);
    let clock = Clock::start();
    let mut reading = Vec::new();
    let mut intervals = Intervals::default();
    let mut from = Nanos::ZERO;
    let groups = if transfers { groups } else { Vec::new() };
    let mut arrivals = Arrivals::new(groups, clock.monotonic(from));
    let (mut printed, mut unseen) = (0, ReportedUnseen::default());
    let mut spent = Vec::new();
    if !args.json {
        print_if_read(LEGEND)?;
    }
    loop {
        let due = from + Nanos::from(interval);
        let end = wait(&mut poll, &clock, due, &mut monitor, &mut subjects, &mut arrivals)?;
        let now = clock.now();
        monitor.read(&mut reading).map_err(Failure::broken)?;
        arrivals.hear(&reading, clock.monotonic(now));
        reading.extend(arrivals.ended());
        reading.retain(|thread| subjects.include(thread));
        let slices = intervals.next(&reading, clock.monotonic(from));
        conclusion::add(&mut spent, &slices);
        unseen.tell(&slices, subjects.names(), monitor.lost(), &proc);
        let counts = counted.is_there().then(|| counted.since_last());
        let locks = transfers.then_some(&mut arrivals);
        let document = StatDocument::new(
            subjects.names(),
            &slices,
            counts.as_deref(),
            locks,
            (from, now),
            &monitor,
        );
        let text = match args.json {
            true => escaped_json(&serde_json::to_string(&document).map_err(Failure::broken)?),
            false => document.lines(printed % PAGE == 0, args.threads),
        };
        let is_read = print_if_read(&text)?;
        printed += 1;
        from = now;
        if !args.json
            && (end.is_some() || args.count.is_some_and(|count| printed >= count as usize))
        {
            let busy = load.as_ref().and_then(Load::so_far).map(|load| load.busy_seconds);
            let (seconds, cpus) = (now.as_secs_f64(), cpus.len());
            let used = subjects.cpu_seconds();
            let cosched = None;
            let place = WatchedMachine { seconds, cpus, has_groups, busy, used, cosched };
            print_if_read(&conclusions(subjects.names(), &spent, &place, &owners))?;
        }
        match end {
            Some(End::Gone) => return subjects.exit_code(),
            Some(End::Signal(signal)) => {
                let by = interruption(signal.as_raw());
                return Ok(by.map_or(ExitCode::FAILURE, |by| interruption_code(by).into()));
            }
            // A program that was started here goes on, even if its figures are not read.
            None if !is_read && args.command.is_empty() => return Ok(ExitCode::SUCCESS),
            None if args.count.is_some_and(|count| printed >= count as usize) => {
                return Ok(ExitCode::SUCCESS);
            }
            None => {}
        }
    }
}

/// The CPUs that the processes may use; without one, those of a command that is started here.
fn usable(pids: &[i32]) -> CpuSet {
    let pids = if pids.is_empty() { &[0][..] } else { pids };
    let found = pids.iter().filter_map(|pid| affinity::get(*pid).ok());
    found.fold(CpuSet::EMPTY, |all, cpus| all.union(&cpus))
}

/// The process of the cosched that schedules each of these processes, if one does.
fn owners(pids: &[i32], proc: &Proc) -> Vec<Option<i32>> {
    let held = Held::anywhere(proc).unwrap_or_default();
    let owner = |pid: &i32| {
        let owner = held.iter().find(|held| held.includes(*pid, proc));
        owner.map(|held| held.owner.pid)
    };
    pids.iter().map(owner).collect()
}

/// What stood in the way of each program that was watched in this place.
fn conclusions(
    names: &[String],
    spent: &[ThreadTimes],
    place: &WatchedMachine,
    owners: &[Option<i32>],
) -> String {
    let of = |(number, name): (usize, &String)| {
        let cosched = owners.get(number).copied().flatten();
        let place = WatchedMachine { cosched, ..*place };
        spent.get(number).copied().unwrap_or_default().conclusion(name, &place)
    };
    names.iter().enumerate().map(of).collect::<Vec<_>>().join("\n")
}

/// Has lock transfers counted between these groups, where that can be had; else tells why not.
fn counts_transfers(monitor: &mut Monitor, groups: &[CpuSet]) -> bool {
    match monitor.count_transfers(groups) {
        Ok(()) => true,
        // What lacks here lacks all the more there, and has been told.
        Err(_) if matches!(monitor, Monitor::Sampled(_)) => false,
        Err(lack) => {
            say(format_args!("no columns for lock transfers: {lack}"));
            false
        }
    }
}

/// What cannot be seen, as far as the user has been told.
#[derive(Default)]
struct ReportedUnseen {
    /// Programs with threads that sleep for an unknown reason.
    waits: BTreeSet<u32>,
    /// Whether there are more threads than room.
    threads: bool,
}

impl ReportedUnseen {
    /// Tells what is new, on standard error.
    fn tell(&mut self, slices: &[Slice], names: &[String], lost: u64, proc: &Proc) {
        for Slice { thread, .. } in slices.iter().filter(|slice| slice.thread.hidden) {
            if self.waits.insert(thread.program) {
                let name = names.get(thread.program as usize).map_or("", String::as_str);
                let is_own = proc.user(thread.process) == Some(geteuid().as_raw());
                let scope = proc.root().join("sys/kernel/yama/ptrace_scope");
                let scope = std::fs::read_to_string(scope).unwrap_or_default();
                // With 1, a process may look at those that it has started.
                let or = match is_own && scope.trim() == "1" {
                    true => ", or start it by `cosched stat -- COMMAND`",
                    false => "",
                };
                say(format_args!(
                    "{}: lock times are not known, because this user may not read the system \
                     calls of its threads (remedy: run this command as root{or})",
                    shown(name)
                ));
            }
        }
        if lost > 0 && !self.threads {
            self.threads = true;
            say(format_args!(
                "too many threads: {ROOM} can be watched at once, so {lost} are left out"
            ));
        }
    }
}

/// Why there are no columns of counters, and what the user can type to get them. What only a host
/// can change stands in the report of `cosched doctor`.
fn uncounted(lack: &CounterLack) -> String {
    let remedy = lack.remedy().filter(|_| matches!(lack, CounterLack::Permission));
    let remedy = remedy.map_or(String::new(), |remedy| format!(" (remedy: {remedy})"));
    format!("no columns for instructions, cycles and cache misses: {lack}{remedy}")
}

/// Why looking ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Every process has ended.
    Gone,
    /// The user requests it.
    Signal(Signal),
}

/// Waits for the end of an interval, with the samples that the monitor needs.
fn wait(
    poll: &mut Poll,
    clock: &Clock,
    due: Nanos,
    monitor: &mut Monitor,
    subjects: &mut Subjects,
    arrivals: &mut Arrivals,
) -> Result<Option<End>, Failure> {
    let (mut ready, mut reading) = (Vec::new(), Vec::new());
    let began = clock.monotonic(Nanos::ZERO);
    loop {
        let look = monitor.looks_every().map_or(Nanos::NEVER, |period| clock.now() + period);
        let window = arrivals.due().map_or(Nanos::NEVER, |due| due.since(began));
        let next = due.min(look).min(window);
        poll.wait(clock.absolute(next), &mut ready).map_err(Failure::broken)?;
        for ready in ready.drain(..) {
            match ready {
                Ready::Source(key) => subjects.ended(key, poll)?,
                Ready::Signal(signal) => {
                    // All signals that are waited for have names.
                    let signal = Signal::from_named_raw(signal).unwrap_or(Signal::TERM);
                    // A program that was started here decides itself when it ends.
                    if !subjects.pass_on(signal) {
                        return Ok(Some(End::Signal(signal)));
                    }
                }
            }
        }
        if subjects.all_ended() {
            return Ok(Some(End::Gone));
        }
        if clock.now() >= due {
            return Ok(None);
        }
        monitor.look().map_err(Failure::broken)?;
        if clock.now() >= window {
            monitor.read(&mut reading).map_err(Failure::broken)?;
            arrivals.hear(&reading, clock.monotonic(clock.now()));
            arrivals.keep_ended(&reading);
        }
    }
}
