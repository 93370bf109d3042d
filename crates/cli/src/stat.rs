//! `cosched stat`: what the threads of running programs do: run, lack a CPU, wait at locks, take each other's CPU.
//!
//! It only looks. Nothing of a program is changed, and no policy runs.

mod counted;
mod show;
mod subjects;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use cosched_core::Nanos;
use cosched_linux::clock::Clock;
use cosched_linux::counters::{Events, Lack};
use cosched_linux::monitor::interval::{Intervals, Slice};
use cosched_linux::monitor::{Monitor, ROOM};
use cosched_linux::poll::{Poll, Ready};
use cosched_linux::procfs::Proc;

use rustix::process::Signal;

use crate::args::{duration, pid, whole};
use crate::failure::Failure;
use crate::session::{print, say};
use counted::Counted;
use show::Document;
use subjects::Subjects;

/// Intervals are not shorter: reading takes time, too.
const SHORTEST: Duration = Duration::from_millis(10);
/// A header stands above so many lines.
const PAGE: usize = 20;

/// What to look at.
#[derive(Debug, Args)]
#[command(
    override_usage = "cosched stat [OPTIONS] --pid <PID>\n       cosched stat [OPTIONS] -- <CMD ARGS>..."
)]
pub(crate) struct StatArgs {
    /// A running process; its threads, and what it will start, belong to it. May be repeated.
    #[arg(short, long = "pid", value_name = "PID", required_unless_present = "command",
          allow_negative_numbers = true, value_parser = pid)]
    pids: Vec<i32>,
    /// How often lines are printed: 10ms or more [default: 1s]
    #[arg(long, value_parser = duration)]
    interval: Option<Duration>,
    /// End after so many intervals (of --pid only) [default: when the processes have ended]
    #[arg(long, value_name = "N", conflicts_with = "command", allow_negative_numbers = true, value_parser = whole(1..=u32::MAX))]
    count: Option<u32>,
    /// A line for every thread, too.
    #[arg(long)]
    threads: bool,
    /// One JSON object for each interval (docs/stat.md).
    #[arg(long)]
    json: bool,
    /// Estimate from samples of /proc, even where the kernel can be asked.
    #[arg(long)]
    sampled: bool,
    /// A program to start; it keeps standard input and output.
    #[arg(last = true, value_name = "CMD ARGS", conflicts_with = "pids")]
    command: Vec<String>,
}

/// Looks until the processes have ended, or the user has seen enough.
pub(crate) fn stat(args: &StatArgs) -> Result<ExitCode, Failure> {
    let interval = args.interval.unwrap_or(Duration::from_secs(1));
    if interval < SHORTEST {
        return Err(Failure::Input(format!(
            "--interval {interval:?} is too short: 10ms is the least"
        )));
    }
    let proc = Proc::own().map_err(Failure::input)?;
    let (mut monitor, lack) =
        if args.sampled { (Monitor::sampled(&proc), None) } else { Monitor::open(&proc) };
    if let Some(lack) = lack {
        say(format_args!("lock times are estimated from samples of /proc: {lack}"));
    }
    let (mut counted, lack) = Counted::new(Events::HARDWARE);
    lack.iter().for_each(|lack| say(format_args!("{}", uncounted(lack))));
    // Signals wait in here from now on; what is started does not inherit that.
    let ends = [Signal::INT, Signal::TERM, Signal::HUP].map(Signal::as_raw);
    let mut poll = Poll::new(&ends).map_err(Failure::broken)?;
    let mut subjects = match args.command.is_empty() {
        true => Subjects::running(&args.pids, &proc, &mut monitor, &mut counted, &poll)?,
        false => Subjects::start(&args.command, &proc, &mut monitor, &mut counted, &poll)?,
    };
    let clock = Clock::start();
    let mut reading = Vec::new();
    let mut intervals = Intervals::default();
    let mut from = Nanos::ZERO;
    let (mut printed, mut unseen) = (0, Unseen::default());
    loop {
        let due = from + Nanos::from(interval);
        let end = wait(&mut poll, &clock, due, &mut monitor, &mut subjects)?;
        let now = clock.now();
        monitor.read(&mut reading).map_err(Failure::broken)?;
        reading.retain(|thread| subjects.include(thread));
        let slices = intervals.next(&reading, clock.monotonic(from));
        unseen.tell(&slices, subjects.names(), monitor.lost());
        let counts = counted.is_there().then(|| counted.next());
        let document =
            Document::new(subjects.names(), &slices, counts.as_deref(), (from, now), &monitor);
        if args.json {
            print(&serde_json::to_string(&document).map_err(Failure::broken)?)?;
        } else {
            print(&document.lines(printed % PAGE == 0, args.threads))?;
        }
        printed += 1;
        from = now;
        match end {
            Some(End::Gone) => return subjects.exit_code(),
            Some(End::Signal(Signal::INT)) => return Ok(ExitCode::from(130)),
            Some(End::Signal(_)) => return Ok(ExitCode::from(143)),
            None if args.count.is_some_and(|count| printed >= count as usize) => {
                return Ok(ExitCode::SUCCESS);
            }
            None => {}
        }
    }
}

/// What cannot be seen, as far as the user has been told.
#[derive(Default)]
struct Unseen {
    /// Programs of whose threads it is not known what they sleep for.
    waits: BTreeSet<u32>,
    /// Whether there are more threads than room.
    threads: bool,
}

impl Unseen {
    /// Tells what is new, on standard error.
    fn tell(&mut self, slices: &[Slice], names: &[String], lost: u64) {
        for Slice { thread, .. } in slices.iter().filter(|slice| slice.thread.hidden) {
            if self.waits.insert(thread.program) {
                let name = names.get(thread.program as usize).map_or("", String::as_str);
                say(format_args!(
                    "{name}: the system calls of its threads may not be looked at, so how long they wait at locks is not known \
                     (remedy: root; or, where kernel.yama.ptrace_scope is 1, cosched stat -- COMMAND)"
                ));
            }
        }
        if lost > 0 && !self.threads {
            self.threads = true;
            say(format_args!(
                "more threads than the {ROOM} that can be watched at once: {lost} are not"
            ));
        }
    }
}

/// Why there are no columns of counters, and how to get them.
fn uncounted(lack: &Lack) -> String {
    let remedy = lack.remedy().map_or(String::new(), |remedy| format!(" (remedy: {remedy})"));
    format!("no columns for instructions, cycles and cache misses: {lack}{remedy}")
}

/// Why looking ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Every process has ended.
    Gone,
    /// The user wants it to.
    Signal(Signal),
}

/// Waits for the end of an interval, with the looks that the monitor wants.
fn wait(
    poll: &mut Poll,
    clock: &Clock,
    due: Nanos,
    monitor: &mut Monitor,
    subjects: &mut Subjects,
) -> Result<Option<End>, Failure> {
    let mut ready = Vec::new();
    loop {
        let look = monitor.looks_every().map_or(Nanos::NEVER, |period| clock.now() + period);
        poll.wait(clock.absolute(due.min(look)), &mut ready).map_err(Failure::broken)?;
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
    }
}
