//! `cosched sim measure`: the figures of this machine, as the simulator's machine files hold them.
//!
//! Each figure is measured by a small probe that does what the simulator says the figure means, on
//! the CPUs that programs may use, and is the median of several repetitions: others can take time
//! away, and now and then do. The result is a file like those of `machines/`, with a comment that
//! says how each figure came about.

mod cpu;
mod description;
mod document;
mod memory;
mod streams;
mod threads;

use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc;

use cosched_core::{CpuSet, Nanos};
use cosched_linux::kernel::affinity;
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::kernel::topology::Sys;
use cosched_linux::rights::Rights;
use cosched_results::statistics;
use cosched_results::whole_file;
use cosched_sim::Costs;

use super::this;
use crate::gaps;
use crate::session::Session;
use crate::stop::MeasuringStop;
use crate::ui::failure::Failure;
use crate::ui::{Talk, print, print_json, say};

pub(super) use cpu::spin_turn;
use description::MeasuredFigures;
pub(crate) use memory::peak as memory_peak;
pub(crate) use streams::{Stream, bytes_of_thread, memory_of_streams, streams};

/// How thoroughly to measure.
#[derive(Clone, Copy, Debug)]
struct Effort {
    /// How often each probe is repeated; the median counts.
    repetitions: usize,
    /// By how much less each repetition does.
    less: usize,
}

impl Effort {
    const FULL: Effort = Effort { repetitions: 15, less: 1 };
    /// For tests: the form of everything, and figures that mean little.
    const QUICK: Effort = Effort { repetitions: 3, less: 20 };
}

/// Measures, keeps, and shows what was found.
///
/// `out`: the file for the description; `None`: the one in the user's data folder. `quick`: a short
/// test, with figures that mean little.
///
/// # Errors
/// When the file cannot be written, or something breaks on the way.
pub fn measure(out: Option<&Path>, quick: bool, json: bool) -> Result<ExitCode, Failure> {
    let session = Session::here()?;
    let path = match out {
        Some(path) if path.exists() => {
            return Err(Failure::Input(format!(
                "--out {}: exists and would be overwritten; choose another file, or remove this \
                 one",
                path.display()
            )));
        }
        Some(path) => path.to_owned(),
        None => this::file()?,
    };
    check_writable(&path)?;
    let effort = if quick { Effort::QUICK } else { Effort::FULL };
    let busy = session.tell_if_busy(Talk::Usual);
    let figures = match figures(&session, effort) {
        Ok(figures) => figures,
        Err(stop) => return stop.code(),
    };
    let text = description::text(&figures, &session, busy.as_deref());
    let kept = whole_file::write(&path, text.as_bytes());
    if kept.is_ok() {
        say(format_args!("kept in {}", path.display()));
    }
    // A disk that is full by now must not cost the figures.
    match json {
        true => print_json(&document::json(&figures, &session.description, &path)?)?,
        false => print(text.trim_end())?,
    }
    kept.map_err(|error| Failure::unwritable(&path, &error, ANOTHER))?;
    Ok(ExitCode::SUCCESS)
}

/// What to do where the file cannot be written.
const ANOTHER: &str = "choose another place with --out";

/// Checks that the file can be written later, before the minute of work that is to go into it;
/// makes its folder.
fn check_writable(file: &Path) -> Result<(), Failure> {
    let folder = file.parent().filter(|folder| *folder != Path::new(""));
    let folder = folder.unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .and_then(|()| tempfile::tempfile_in(folder))
        .map(drop)
        .map_err(|error| Failure::unwritable(file, &error, ANOTHER))
}

/// All probes, one after another: they need the machine to themselves.
fn figures(session: &Session, effort: Effort) -> Result<MeasuredFigures, MeasuringStop> {
    let topology = this::usable(session);
    let cpus: Vec<usize> = session.usable.cpus.iter().collect();
    let proc = Proc::own().map_err(Failure::input)?;
    say(format_args!("measuring the speed of the CPUs"));
    let gigahertz = cpu::gigahertz(&cpus, effort)?;
    let smt_share = cpu::smt_share(&topology, effort)?;
    say(format_args!("measuring the memory"));
    let memory = memory::measure(&topology, effort)?;
    say(format_args!("measuring switches, wake-ups and signals"));
    let switch = threads::switch(cpus[0], effort)?;
    let wake = threads::wake(&topology, effort)?;
    let signals = threads::signals(&topology, effort)?;
    let interruptions = threads::interruptions(&cpus, effort)?;
    let tick = threads::tick(&cpus, effort)?;
    let strays = threads::strays(cpus.len(), effort)?;
    say(format_args!("measuring how long starting, pausing and continuing take"));
    let rights = Rights::probe(&proc, &Sys::default()).map_err(Failure::broken)?;
    let [start, joined] = gaps::starts(session, &rights, effort.repetitions)?.map(|starts| {
        let nanos: Vec<f64> = starts.iter().map(|start| start.0 as f64).collect();
        Nanos(median(&nanos) as u64)
    });
    let turns = gaps::measure_best(session, &rights, cpus.len() as u16)?;
    let milliseconds = |time: f64| Nanos((time * 1e6) as u64);
    let own = Costs {
        start,
        join: joined.since(start),
        freeze: milliseconds(turns.freeze_ms_p50),
        thaw: milliseconds(turns.thaw_ms_p50),
    };
    Ok(MeasuredFigures {
        gigahertz,
        smt_share,
        memory,
        switch,
        wake,
        signals,
        interruptions,
        tick,
        strays,
        own,
        backend: turns.backend,
    })
}

/// Runs the same on a thread on each of these CPUs at once; gives what each returned, in their
/// order. No thread begins before all are bound: they may wait for each other.
fn on_each<T: Send>(cpus: &[usize], work: impl Fn(usize) -> T + Sync) -> Result<Vec<T>, Failure> {
    let work = &work;
    std::thread::scope(|scope| {
        let (report, reports) = mpsc::channel();
        let (mut starts, mut threads) = (Vec::new(), Vec::new());
        for cpu in cpus.iter().copied() {
            let (start, started) = mpsc::channel::<()>();
            let report = report.clone();
            let thread = move || {
                let only: CpuSet = [cpu].into_iter().collect();
                let _ = report.send(affinity::set(0, &only));
                started.recv().ok().map(|()| work(cpu))
            };
            let thread = std::thread::Builder::new().spawn_scoped(scope, thread);
            threads.push(thread.map_err(Failure::broken)?);
            starts.push(start);
        }
        // An error ends this function and drops `starts`, so the other threads end, too.
        for bound in reports.iter().take(cpus.len()) {
            bound.map_err(Failure::broken)?;
        }
        for start in &starts {
            let _ = start.send(());
        }
        let joined = threads.into_iter().filter_map(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        Ok(joined.collect())
    })
}

/// The median of what a probe found.
fn median(figures: &[f64]) -> f64 {
    statistics::median(figures).unwrap_or_else(|| unreachable!("a probe is repeated at least once"))
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    /// A CPU may go offline between two measurements. The other threads do not wait for it.
    #[test]
    fn a_cpu_that_is_gone_is_an_error_and_no_endless_wait() {
        let here = affinity::get(0).unwrap().iter().next().unwrap();
        let together = Barrier::new(2);
        let gone = cosched_core::MAX_CPUS - 1;
        assert!(on_each(&[here, gone], |_| together.wait()).is_err());
        assert_eq!(on_each(&[here, here], |cpu| cpu).unwrap(), [here, here]);
    }
}
