//! How long freezing and thawing take on each rung, measured by the code that runs use.
//!
//! A small program of ours spins on every CPU (the hard case: nothing yields),
//! and is frozen and thawed a few hundred times. Freezing counts from the request
//! until the machine confirms it, which is what a switch between gangs waits for.
//! Thawing counts from the request until a thread of the program runs again, as the
//! [program itself](super::spin) has noted it.

use std::fs;
use std::path::Path;

use cosched_core::engine::outcome::Ended;
use cosched_core::metrics::quantile;
use cosched_core::{Event, Happening, Machine, Nanos, ProgramId, Settings, Signal, Step};
use cosched_linux::ground::{FreezerRung, Wishes};
use cosched_linux::helper::OWN_EXECUTABLE;
use cosched_linux::launch::{Order, Output};
use cosched_linux::machine::{Config, Job, Linux};
use cosched_linux::rights::{Ability, Rights};
use cosched_linux::undo;
use serde::Serialize;

use super::spin::{self, Gap};
use crate::args::SPIN;
use crate::failure::Failure;
use crate::session::Session;

const THREADS: [u16; 3] = [2, 8, 64];
/// Each number of threads is measured so often, or for so long: beside many spinning threads it is
/// a while until we get a CPU at all.
const REPETITIONS: usize = 200;
const TIME: Nanos = Nanos::from_secs(5);
/// How long the program runs, and is frozen, in each repetition; well above [`spin::GAP`].
const PHASE: Nanos = Nanos::from_millis(3);
/// For its threads to be made, and for the last gap to be printed.
const SETTLE: Nanos = Nanos::from_millis(100);
/// For a machine that is busy with other things.
const PATIENCE: Nanos = Nanos::from_secs(10);
const PROGRAM: ProgramId = ProgramId::first(0);

/// What was measured on one rung with one number of threads.
#[derive(Debug, Serialize)]
pub(super) struct Latency {
    pub(super) rung: &'static str,
    pub(super) threads: u16,
    pub(super) repetitions: usize,
    pub(super) freeze_ms_p50: f64,
    pub(super) freeze_ms_p99: f64,
    pub(super) thaw_ms_p50: f64,
    pub(super) thaw_ms_p99: f64,
}

/// Why measuring ended early.
#[derive(Debug)]
pub(super) enum Stop {
    /// Something broke.
    Failed(Failure),
    /// The user wants it to end.
    Interrupted(Ended),
}

/// Measures every rung that is open to the user.
pub(super) fn measure(session: &Session, rights: &Rights) -> Result<Vec<Latency>, Stop> {
    let mut latencies = Vec::new();
    for rung in rungs(rights) {
        for threads in THREADS {
            eprintln!(
                "cosched: freezing {threads} spinning threads by {} again and again",
                rung.name()
            );
            latencies.push(latency(session, rung, threads)?);
        }
    }
    Ok(latencies)
}

fn rungs(rights: &Rights) -> Vec<FreezerRung> {
    let rungs = [
        (Ability::FreezeV2, FreezerRung::CgroupV2),
        (Ability::FreezerV1, FreezerRung::CgroupV1),
        (Ability::Signals, FreezerRung::Signals),
    ];
    rungs.into_iter().filter(|(ability, _)| rights.has(*ability)).map(|(_, rung)| rung).collect()
}

fn latency(session: &Session, rung: FreezerRung, threads: u16) -> Result<Latency, Stop> {
    let folder = tempfile::tempdir().map_err(broken)?;
    let output = folder.path().join("gaps");
    let mut bench =
        Bench { machine: Linux::new(config(session, rung, threads, &output)?).map_err(broken)? };
    let measured = bench.repeat();
    // The program is ended and everything put back, however the measurement went.
    let ended = bench.end();
    let (freezes, thaws) = measured?;
    ended?;

    let printed = fs::read_to_string(&output).map_err(broken)?;
    let gaps: Vec<Gap> = printed.lines().filter_map(Gap::parse).collect();
    let resumptions = resumptions(&thaws, &gaps);
    let milliseconds = |times: &[Nanos], share| {
        let time = quantile(times, share)
            .ok_or_else(|| broken("the spinning program did not note any freeze"));
        // To the microsecond: the clock promises no more.
        time.map(|time| (time.0 / 1_000) as f64 / 1e3)
    };
    Ok(Latency {
        rung: rung.name(),
        threads,
        repetitions: freezes.len(),
        freeze_ms_p50: milliseconds(&freezes, 0.5)?,
        freeze_ms_p99: milliseconds(&freezes, 0.99)?,
        thaw_ms_p50: milliseconds(&resumptions, 0.5)?,
        thaw_ms_p99: milliseconds(&resumptions, 0.99)?,
    })
}

/// How long after each thaw the program ran again: the end of the gap that the thaw falls into.
fn resumptions(thaws: &[Nanos], gaps: &[Gap]) -> Vec<Nanos> {
    let resumed = thaws.iter().filter_map(|thaw| {
        let around = gaps.iter().find(|gap| gap.from < *thaw && *thaw < gap.to)?;
        Some(around.to.since(*thaw))
    });
    resumed.collect()
}

fn config(
    session: &Session,
    rung: FreezerRung,
    threads: u16,
    output: &Path,
) -> Result<Config, Stop> {
    let order = Order {
        executable: OWN_EXECUTABLE.into(),
        argv: ["cosched-spin", SPIN, &threads.to_string()].map(str::to_owned).into(),
        cwd: "/".into(),
        ..Order::default()
    };
    Ok(Config {
        executable: OWN_EXECUTABLE.into(),
        log_folder: undo::log_folder().map_err(|error| Stop::Failed(Failure::input(error)))?,
        topology: session.topology.clone(),
        cpus: session.usable.cpus,
        wishes: Wishes { freezer: Some(rung), pinning: None, shares: false },
        own_sessions: true,
        count: None,
        jobs: vec![Job {
            order,
            stdout: Output::File { path: output.to_owned(), append: false },
            stderr: Output::Inherit,
            // It is ours, whatever it has inherited.
            freezable_for_sure: true,
            grouped_by_user: true,
        }],
    })
}

/// The machine with the spinning program on it.
struct Bench {
    machine: Linux,
}

impl Bench {
    /// Freezes and thaws; returns how long each freeze took and when (CLOCK_MONOTONIC) each thaw was asked for.
    fn repeat(&mut self) -> Result<(Vec<Nanos>, Vec<Nanos>), Stop> {
        self.submit(Step::Start(PROGRAM, Settings::default()))?;
        self.wait_for(|what| matches!(what, Happening::Started(_)))?;
        self.pause(SETTLE)?;
        let (mut freezes, mut thaws) = (Vec::new(), Vec::new());
        let until = self.machine.now() + TIME;
        while freezes.len() < REPETITIONS && self.machine.now() < until {
            self.pause(PHASE)?;
            let asked = self.machine.now();
            self.submit(Step::Freeze(PROGRAM))?;
            let frozen = self.wait_for(|what| matches!(what, Happening::Froze(_)))?;
            freezes.push(frozen.at.since(asked));
            self.pause(PHASE)?;
            thaws.push(spin::now());
            self.submit(Step::Thaw(PROGRAM))?;
        }
        self.pause(SETTLE)?;
        Ok((freezes, thaws))
    }

    /// Ends the program and puts everything back.
    fn end(mut self) -> Result<(), Stop> {
        // A program frozen by a cgroup of version 1 cannot even be killed.
        let killed = self
            .submit(Step::Thaw(PROGRAM))
            .and_then(|()| self.submit(Step::Signal(PROGRAM, Signal::Kill)))
            .and_then(|()| self.wait_for_exit());
        let restored = self.machine.close().map_err(broken)?;
        for failed in restored.failed {
            eprintln!("cosched: {failed}");
        }
        killed
    }

    fn submit(&mut self, step: Step) -> Result<(), Stop> {
        self.machine.submit(&[step]).map_err(broken)
    }

    fn pause(&mut self, length: Nanos) -> Result<(), Stop> {
        let until = self.machine.now() + length;
        self.events(until, |_| false).map(drop)
    }

    fn wait_for(&mut self, wanted: impl Fn(&Happening) -> bool) -> Result<Event, Stop> {
        let until = self.machine.now() + PATIENCE;
        self.events(until, wanted)?
            .ok_or_else(|| broken(format!("no answer from the machine for {PATIENCE}")))
    }

    /// Waits until something wanted happens; whatever makes it impossible is an error.
    fn events(
        &mut self,
        until: Nanos,
        wanted: impl Fn(&Happening) -> bool,
    ) -> Result<Option<Event>, Stop> {
        let mut events = Vec::new();
        while self.machine.now() < until {
            self.machine.wait(until, &mut events).map_err(broken)?;
            for event in events.drain(..) {
                match event.what {
                    Happening::Interrupted(signal) => {
                        return Err(Stop::Interrupted(Ended::Interrupted(signal)));
                    }
                    Happening::Refused(_, wanted, why) => {
                        return Err(broken(format!(
                            "the spinning program: {wanted:?} was refused: {why:?}"
                        )));
                    }
                    Happening::Exited(_, exit, _) => {
                        return Err(broken(format!("the spinning program ended early: {exit:?}")));
                    }
                    what if wanted(&what) => return Ok(Some(event)),
                    _ => {}
                }
            }
        }
        Ok(None)
    }

    /// Nothing else counts any more, not even a second Ctrl-C: the program is on its way out.
    fn wait_for_exit(&mut self) -> Result<(), Stop> {
        let until = self.machine.now() + PATIENCE;
        let mut events = Vec::new();
        while self.machine.now() < until {
            self.machine.wait(until, &mut events).map_err(broken)?;
            if events.drain(..).any(|event| matches!(event.what, Happening::Exited(..))) {
                return Ok(());
            }
        }
        Err(broken("the spinning program could not be ended; it ends by itself within a minute"))
    }
}

fn broken(error: impl std::fmt::Display) -> Stop {
    Stop::Failed(Failure::broken(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thaw_counts_until_the_end_of_the_gap_that_it_falls_into() {
        let gap = |from, to| Gap { from: Nanos(from), to: Nanos(to) };
        let thaws = [Nanos(20), Nanos(60), Nanos(90)];
        // The program was also kept off its CPUs for a while by others, and missed the second freeze.
        let gaps = [gap(10, 25), gap(30, 40), gap(80, 97)];
        assert_eq!(resumptions(&thaws, &gaps), [Nanos(5), Nanos(7)]);
    }
}
