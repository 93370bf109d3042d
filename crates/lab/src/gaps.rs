//! How long a switch between gangs takes on each backend, measured by the code that runs use.
//!
//! Two small programs of ours spin on every CPU (the hard case: nothing yields),
//! and take turns a few hundred times. *Freezing* counts from the request until
//! the machine confirms it, which is what a switch waits for; *thawing* from the request until
//! a thread of the program runs again; the *gap* from the last thread of the old program
//! running to the first one of the new program. When their threads ran, the
//! programs themselves have noted.

mod spin;

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::channel;

use cosched_core::engine::outcome::Ended;
use cosched_core::{Event, Happening, Machine, Nanos, ProgramId, Settings, Signal, Step};
use cosched_linux::clients::cpu_time::Roots;
use cosched_linux::control::run_cgroups::{FreezerBackend, Wishes};
use cosched_linux::machine::{Config, Job, Linux, Origin};
use cosched_linux::observe::barrier_stats::StatsOfRun;
use cosched_linux::process::helper::OWN_EXECUTABLE;
use cosched_linux::process::launch::{LaunchOrder, OutputTo};
use cosched_linux::rights::{Ability, Rights};
use cosched_linux::safety::undo;
use cosched_results::metrics::quantile;
use serde::Serialize;

use crate::session::Session;
use crate::stop::MeasuringStop;
use crate::ui::failure::Failure;
use crate::ui::say;
use spin::Gap;

pub use spin::spin;

/// The subcommand that only cosched itself calls: the program to be frozen.
pub const SPIN: &str = "__spin";

const THREADS: [u16; 3] = [2, 8, 64];
/// Each number of threads is measured so often, or for so long: beside many spinning threads it is
/// a while until we get a CPU at all.
const REPETITIONS: usize = 200;
const TIME: Nanos = Nanos::from_secs(5);
/// How long each turn is; well above [`spin::GAP`].
const PHASE: Nanos = Nanos::from_millis(3);
/// For its threads to be made, and for the last gap to be printed.
const SETTLE: Nanos = Nanos::from_millis(100);
/// Time for the kernel to forget that a process has just joined a cgroup. A process that joins one
/// before that does not wait.
const FORGET: Nanos = Nanos::from_millis(60);
/// For a machine that is busy with other things.
const PATIENCE: Nanos = Nanos::from_secs(10);
const PROGRAMS: [ProgramId; 2] = [ProgramId::first(0), ProgramId::first(1)];

/// What was measured on one backend with one number of threads.
#[derive(Debug, Serialize)]
pub struct Latency {
    /// How the programs were frozen.
    pub backend: &'static str,
    /// How many threads each of the two programs has.
    pub threads: u16,
    /// How many switches were measured.
    pub repetitions: usize,
    /// From the request to freeze until it is confirmed, in milliseconds: the median.
    pub freeze_ms_p50: f64,
    /// From the request to freeze until it is confirmed, in milliseconds: the 99th percentile.
    pub freeze_ms_p99: f64,
    /// From the request to thaw until a thread runs, in milliseconds: the median.
    pub thaw_ms_p50: f64,
    /// From the request to thaw until a thread runs, in milliseconds: the 99th percentile.
    pub thaw_ms_p99: f64,
    /// Between the programs, when no thread of either runs, in milliseconds: the median.
    pub gap_ms_p50: f64,
    /// Between the programs, when no thread of either runs, in milliseconds: the 99th percentile.
    pub gap_ms_p99: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProgramSwitch {
    /// Which of [`PROGRAMS`] was frozen, so that the other one could run.
    old: usize,
    /// From the request to freeze to its confirmation.
    freeze: Nanos,
    /// When (CLOCK_MONOTONIC) the other one was asked to be thawed.
    thaw: Nanos,
}

/// Measures every backend that the user may use.
///
/// # Errors
/// When something breaks, or the user ends it.
pub fn measure(session: &Session, rights: &Rights) -> Result<Vec<Latency>, MeasuringStop> {
    let mut latencies = Vec::new();
    for backend in backends(rights) {
        for threads in THREADS {
            say(format_args!(
                "two programs of {threads} spinning threads take turns, frozen by {}",
                backend.name()
            ));
            latencies.push(latency(session, backend, threads)?);
        }
    }
    Ok(latencies)
}

/// Measures the best backend that the user may use, with one number of threads.
pub(crate) fn measure_best(
    session: &Session,
    rights: &Rights,
    threads: u16,
) -> Result<Latency, MeasuringStop> {
    latency(session, best(rights)?, threads)
}

/// How long it takes from the order to start a program that does nothing until its end is known, so
/// often: in no cgroup, and as the best backend that the user may use requires it.
pub(crate) fn starts(
    session: &Session,
    rights: &Rights,
    repetitions: usize,
) -> Result<[Vec<Nanos>; 2], MeasuringStop> {
    let best = best(rights)?;
    let nowhere = starts_on(session, FreezerBackend::Signals, repetitions)?;
    Ok([nowhere, starts_on(session, best, repetitions)?])
}

fn starts_on(
    session: &Session,
    backend: FreezerBackend,
    repetitions: usize,
) -> Result<Vec<Nanos>, MeasuringStop> {
    let nowhere = vec![PathBuf::from("/dev/null"); repetitions];
    let mut bench =
        Bench { machine: Linux::new(config(session, backend, 0, &nowhere)?).map_err(broken)? };
    let ended = (0..repetitions).map(|slot| bench.start_to_end(slot as u16)).collect();
    bench.machine.close().map_err(broken)?;
    ended
}

/// The backends that the user may use, the best first.
fn backends(rights: &Rights) -> impl Iterator<Item = FreezerBackend> {
    let backends = [
        (Ability::FreezeV2, FreezerBackend::CgroupV2),
        (Ability::FreezerV1, FreezerBackend::CgroupV1),
        (Ability::Signals, FreezerBackend::Signals),
    ];
    let usable = backends.into_iter().filter(|(ability, _)| rights.has(*ability));
    usable.map(|(_, backend)| backend)
}

fn best(rights: &Rights) -> Result<FreezerBackend, MeasuringStop> {
    backends(rights).next().ok_or_else(|| broken("no backend of freezing works"))
}

fn latency(
    session: &Session,
    backend: FreezerBackend,
    threads: u16,
) -> Result<Latency, MeasuringStop> {
    let folder = tempfile::tempdir().map_err(broken)?;
    let outputs = PROGRAMS.map(|id| folder.path().join(format!("gaps-{}", id.slot)));
    let config = config(session, backend, threads, &outputs)?;
    let mut bench = Bench { machine: Linux::new(config).map_err(broken)? };
    let measured = bench.repeat();
    // The programs are ended and everything put back, however the measurement went.
    let ended = bench.end();
    let switches = measured?;
    ended?;

    let read = |output| -> Result<Vec<Gap>, MeasuringStop> {
        let printed = fs::read_to_string(output).map_err(broken)?;
        Ok(printed.lines().filter_map(Gap::parse).collect())
    };
    let noted = [read(&outputs[0])?, read(&outputs[1])?];
    let freezes: Vec<Nanos> = switches.iter().map(|switch| switch.freeze).collect();
    let (thaws, gaps) = turns(&switches, &noted);
    let milliseconds = |times: &[Nanos], share| {
        let time = quantile(times, share)
            .ok_or_else(|| broken("the spinning programs did not note any freeze"));
        // To the microsecond: the clock promises no more.
        time.map(|time| (time.0 / 1_000) as f64 / 1e3)
    };
    Ok(Latency {
        backend: backend.name(),
        threads,
        repetitions: freezes.len(),
        freeze_ms_p50: milliseconds(&freezes, 0.5)?,
        freeze_ms_p99: milliseconds(&freezes, 0.99)?,
        thaw_ms_p50: milliseconds(&thaws, 0.5)?,
        thaw_ms_p99: milliseconds(&thaws, 0.99)?,
        gap_ms_p50: milliseconds(&gaps, 0.5)?,
        gap_ms_p99: milliseconds(&gaps, 0.99)?,
    })
}

/// For each switch: how long after its thaw the new program ran, and how long no program had run by
/// then. At the moment of the thaw both programs stand still, so that this moment falls into a gap
/// of each.
fn turns(switches: &[ProgramSwitch], noted: &[Vec<Gap>; 2]) -> (Vec<Nanos>, Vec<Nanos>) {
    let turn = |switch: &ProgramSwitch| {
        let around = |which: usize| {
            noted[which].iter().find(|gap| gap.from < switch.thaw && switch.thaw < gap.to)
        };
        let (old, new) = (around(switch.old)?, around(1 - switch.old)?);
        Some((new.to.since(switch.thaw), new.to.since(old.from)))
    };
    switches.iter().filter_map(turn).unzip()
}

fn config(
    session: &Session,
    backend: FreezerBackend,
    threads: u16,
    outputs: &[PathBuf],
) -> Result<Config, MeasuringStop> {
    let job = |output: &PathBuf| Job {
        origin: Origin::Started,
        order: LaunchOrder {
            executable: OWN_EXECUTABLE.into(),
            argv: vec![
                "cosched-spin".to_owned(),
                SPIN.to_owned(),
                threads.to_string(),
                std::process::id().to_string(),
            ],
            cwd: "/".into(),
            ..LaunchOrder::default()
        },
        stdout: OutputTo::File { path: output.clone(), append: false },
        stderr: OutputTo::Inherit,
        // It is ours, whatever it has inherited.
        freezable_for_sure: true,
        grouped_by_user: true,
        hook: None,
    };
    Ok(Config {
        executable: OWN_EXECUTABLE.into(),
        log_folder: undo::log_folder()
            .map_err(|error| MeasuringStop::Failed(Failure::input(error)))?,
        topology: session.topology.clone(),
        cpus: session.usable.cpus,
        wishes: Wishes { freezer: Some(backend), pinning: None, ..Wishes::default() },
        ext: None,
        turns: true,
        units: false,
        sessions: true,
        count: None,
        spin_loops: None,
        jobs: outputs.iter().map(job).collect(),
        user_requests: None,
        notes: channel().0,
        roots: Roots::default(),
        stats: StatsOfRun::default(),
    })
}

/// The machine with the spinning programs on it.
struct Bench {
    machine: Linux,
}

impl Bench {
    /// Has the programs take turns.
    fn repeat(&mut self) -> Result<Vec<ProgramSwitch>, MeasuringStop> {
        for id in PROGRAMS {
            self.submit(Step::Start(id, Settings::default()))?;
            self.wait_for(|what| *what == Happening::Started(id))?;
        }
        self.pause(SETTLE)?;
        self.freeze(1)?;
        let mut switches = Vec::new();
        let until = self.machine.now() + TIME;
        while switches.len() < REPETITIONS && self.machine.now() < until {
            self.pause(PHASE)?;
            let old = switches.len() % 2;
            let freeze = self.freeze(old)?;
            switches.push(ProgramSwitch { old, freeze, thaw: spin::now() });
            self.submit(Step::Thaw(PROGRAMS[1 - old]))?;
        }
        self.pause(SETTLE)?;
        Ok(switches)
    }

    /// How long a program took that ends by itself.
    fn start_to_end(&mut self, slot: u16) -> Result<Nanos, MeasuringStop> {
        let id = ProgramId::first(slot);
        self.pause(FORGET)?;
        let asked = self.machine.now();
        self.submit(Step::Start(id, Settings::default()))?;
        let (until, mut events) = (self.machine.now() + PATIENCE, Vec::new());
        while self.machine.now() < until {
            self.machine.wait(until, &mut events).map_err(broken)?;
            for event in events.drain(..) {
                match event.what {
                    Happening::Exited(..) => return Ok(event.at.since(asked)),
                    Happening::Interrupted(signal) => {
                        return Err(MeasuringStop::Interrupted(Ended::Interrupted(signal)));
                    }
                    _ => {}
                }
            }
        }
        Err(broken(format!("a program that does nothing did not end within {PATIENCE}")))
    }

    /// How long it took to freeze a program.
    fn freeze(&mut self, which: usize) -> Result<Nanos, MeasuringStop> {
        let asked = self.machine.now();
        self.submit(Step::Freeze(PROGRAMS[which]))?;
        let frozen = self.wait_for(|what| *what == Happening::Froze(PROGRAMS[which]))?;
        Ok(frozen.at.since(asked))
    }

    /// Ends the programs and puts everything back.
    fn end(mut self) -> Result<(), MeasuringStop> {
        let mut killed = Ok(());
        for id in PROGRAMS {
            // A program frozen by a cgroup of version 1 cannot even be killed.
            killed = killed
                .and_then(|()| self.submit(Step::Thaw(id)))
                .and_then(|()| self.submit(Step::Signal(id, Signal::Kill)));
        }
        let killed = killed.and_then(|()| self.wait_for_exits());
        let restored = self.machine.close().map_err(broken)?;
        for failed in restored.failed {
            say(format_args!("{failed}"));
        }
        killed
    }

    fn submit(&mut self, step: Step) -> Result<(), MeasuringStop> {
        self.machine.submit(&[step]).map_err(broken)
    }

    fn pause(&mut self, length: Nanos) -> Result<(), MeasuringStop> {
        let until = self.machine.now() + length;
        self.events(until, |_| false).map(drop)
    }

    fn wait_for(
        &mut self,
        is_expected: impl Fn(&Happening) -> bool,
    ) -> Result<Event, MeasuringStop> {
        let until = self.machine.now() + PATIENCE;
        self.events(until, is_expected)?
            .ok_or_else(|| broken(format!("no answer from the machine for {PATIENCE}")))
    }

    /// Waits until something wanted happens; whatever makes it impossible is an error.
    fn events(
        &mut self,
        until: Nanos,
        is_expected: impl Fn(&Happening) -> bool,
    ) -> Result<Option<Event>, MeasuringStop> {
        let mut events = Vec::new();
        while self.machine.now() < until {
            self.machine.wait(until, &mut events).map_err(broken)?;
            for event in events.drain(..) {
                match event.what {
                    Happening::Interrupted(signal) => {
                        return Err(MeasuringStop::Interrupted(Ended::Interrupted(signal)));
                    }
                    Happening::Refused(_, aspect, why) => {
                        return Err(broken(format!(
                            "a spinning program: {aspect:?} was refused: {why:?}"
                        )));
                    }
                    Happening::Exited(_, exit, _) => {
                        return Err(broken(format!("a spinning program ended early: {exit:?}")));
                    }
                    what if is_expected(&what) => return Ok(Some(event)),
                    _ => {}
                }
            }
        }
        Ok(None)
    }

    /// Nothing else counts any more, not even a second Ctrl-C: the program is on its way out.
    fn wait_for_exits(&mut self) -> Result<(), MeasuringStop> {
        let until = self.machine.now() + PATIENCE;
        let (mut events, mut exits) = (Vec::new(), 0);
        while self.machine.now() < until {
            self.machine.wait(until, &mut events).map_err(broken)?;
            let exited = |event: &Event| matches!(event.what, Happening::Exited(..));
            exits += events.drain(..).filter(exited).count();
            if exits == PROGRAMS.len() {
                return Ok(());
            }
        }
        Err(broken("a spinning program could not be ended; it ends by itself within a minute"))
    }
}

fn broken(error: impl std::fmt::Display) -> MeasuringStop {
    MeasuringStop::Failed(Failure::broken(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_where_both_stand_still() {
        let gap = |from, to| Gap { from: Nanos(from), to: Nanos(to) };
        let switch = |old, thaw| ProgramSwitch { old, freeze: Nanos(1), thaw: Nanos(thaw) };
        let switches = [switch(0, 20), switch(1, 40), switch(0, 60)];
        // The second program was also kept off its CPUs for a while by others. No program noted the
        // last switch.
        let noted = [vec![gap(18, 43)], vec![gap(2, 25), gap(28, 31), gap(37, 70)]];
        let (thaws, gaps) = turns(&switches, &noted);
        assert_eq!(thaws, [Nanos(5), Nanos(3)]);
        assert_eq!(gaps, [Nanos(25 - 18), Nanos(43 - 37)]);
    }
}
