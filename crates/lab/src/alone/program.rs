//! One program alone on the machine: how long it takes.
//!
//! It is run through the same code as any workload, as a workload of its own, so that a time
//! alone and a turnaround mean the same. With a policy of gangs, wherever its threads fit the
//! machine: then it gets the CPUs that its placement gives it, as it will beside others.
//!
//! A program alone waits at barriers of its own: what others are worth is measured against that.
//!
//! Where the machine has hardware counters, its cache misses are counted along the way; those of
//! the run in the middle are kept.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use cosched_core::{Counts, Nanos, Profile, Quality};
use cosched_policy::Kind;
use cosched_report::disturbance;
use cosched_results::result::RunResult;
use cosched_workload::{BarrierMode, ProgramSpec, Repeat, Workload};

use super::disturbed::Disturbance;
use crate::how::How;
use crate::out;
use crate::session::{Extras, Request, Session};
use crate::stop::MeasuringStop;
use crate::store::SoloRecord;
use crate::ui::failure::Failure;
use crate::ui::say;

/// How much of a failed program's standard error is shown.
const LAST_LINES: usize = 5;

#[derive(Clone, Debug, Default)]
pub(crate) struct SoloRun {
    pub(crate) turnaround: Nanos,
    /// Voluntary and involuntary switches.
    pub(crate) switches: u64,
    /// CPU time of all its threads.
    pub(super) cpu: Nanos,
    pub(super) counts: Counts,
    /// What other processes did meanwhile, where that matters; such a time is not kept.
    pub(super) disturbed: Option<Disturbance>,
}

/// What is known of a program after these runs, and what was known of it before and still counts;
/// at least one run altogether.
pub(super) fn entry(made: &[SoloRun], before: Option<&SoloRecord>) -> SoloRecord {
    let known = before.map_or(&[][..], |entry| &entry.times);
    let times: Vec<Nanos> =
        known.iter().copied().chain(made.iter().map(|run| run.turnaround)).collect();
    let cpu = middle(made).map(|run| run.cpu);
    let counts = counts_of_the_middle(made);
    let misses = counts.misses_per_kilo_instruction();
    let ratio = counts.miss_ratio();
    SoloRecord {
        solo: median(&times).expect("at least one run is known"),
        cpu: cpu.or(before.and_then(|entry| entry.cpu)),
        runs: u16::try_from(times.len()).unwrap_or(u16::MAX),
        misses_per_kilo_instruction: misses
            .or(before.and_then(|entry| entry.misses_per_kilo_instruction)),
        miss_ratio: ratio.or(before.and_then(|entry| entry.miss_ratio)),
        times,
        measured_at: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
    }
}

/// Tells it where the counters did not count all of these runs.
pub(super) fn tell_scaled(spec: &ProgramSpec, made: &[SoloRun]) {
    if counts_of_the_middle(made).quality == Quality::Scaled {
        say(format_args!(
            "{}: its cache misses are scaled up from a part of the run: the counters were shared \
             (with a profiler, say), or do not count on every kind of core",
            spec.name
        ));
    }
}

/// What was counted in the run in the middle.
fn counts_of_the_middle(all: &[SoloRun]) -> Counts {
    middle(all).map(|run| run.counts).unwrap_or_default()
}

/// The run of median time; of an even number the faster of the two in the middle.
fn middle(all: &[SoloRun]) -> Option<SoloRun> {
    let mut sorted = all.to_vec();
    sorted.sort_by_key(|run| run.turnaround);
    sorted.get(sorted.len().saturating_sub(1) / 2).cloned()
}

/// Runs a program alone, this once: nothing is kept.
pub(crate) fn run_alone(
    session: &Session,
    spec: &ProgramSpec,
    how: &How,
) -> Result<SoloRun, MeasuringStop> {
    let fits = usize::from(session.threads(spec)) <= session.usable.cpus.len();
    let alone = ProgramSpec {
        start: Nanos::ZERO,
        after: Vec::new(),
        repeat: Repeat::Times(1),
        group: None,
        barrier: Some(BarrierMode::Own),
        ..spec.clone()
    };
    let kind = if fits { Kind::Gang } else { Kind::Linux };
    let (result, seconds) = run_once(session, alone, kind, how, true)?;
    let disturbed = disturbance::phrase(&result)
        .map(|what| Disturbance { what, cpus: disturbance::others(&result).unwrap_or_default() });
    let usage = &result.programs[0].usage;
    Ok(SoloRun {
        turnaround: Nanos((seconds * 1e9).round() as u64),
        switches: usage.voluntary_switches + usage.involuntary_switches,
        cpu: usage.cpu(),
        counts: usage.counts,
        disturbed,
    })
}

/// Runs one program by itself; the result, and its turnaround in seconds.
pub(crate) fn run_once(
    session: &Session,
    spec: ProgramSpec,
    kind: Kind,
    how: &How,
    count: bool,
) -> Result<(RunResult, f64), MeasuringStop> {
    let (workload, outputs) = (Workload { programs: vec![spec] }, out::hidden()?);
    let mut ran = session.execute(&Request {
        out: Some(outputs.path()),
        count,
        extras: Extras { as_they_are: true, ..Extras::default() },
        ..Request::new(&workload, kind, how, &[Profile::default()])
    })?;
    if let Some(trouble) = ran.troubles.pop() {
        return Err(trouble.into());
    }
    MeasuringStop::if_interrupted(ran.ended)?;
    let program = &ran.result.programs[0];
    match program.turnaround_seconds.filter(|_| ran.all_succeeded()) {
        Some(seconds) => Ok((ran.result, seconds)),
        None => Err(failed(&workload.programs[0], program.exit_status, outputs.path()).into()),
    }
}

/// The time of a program that failed is not the time of its work.
fn failed(spec: &ProgramSpec, status: Option<i32>, outputs: &Path) -> Failure {
    let status = status.map_or("an unknown status".to_owned(), |status| format!("status {status}"));
    Failure::Broken(format!(
        "program {} ended with {status}; its time is not kept; {}",
        spec.name,
        complaint(&out::output(outputs, &spec.name, "stderr"))
    ))
}

/// The end of what a program wrote to standard error, from the file that took it.
pub(crate) fn complaint(stderr: &Path) -> String {
    // A program that could not be started has no output.
    let text = fs::read(stderr).unwrap_or_default();
    let tail = last_lines(&String::from_utf8_lossy(&text));
    match tail.is_empty() {
        true => "its standard error is empty".to_owned(),
        false => format!("the end of its standard error:\n{tail}"),
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    last.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// The middle of the times; of an even number the mean of the two in the middle.
fn median(times: &[Nanos]) -> Option<Nanos> {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let upper = *sorted.get(sorted.len() / 2)?;
    match sorted.len() % 2 {
        0 => Some((sorted[sorted.len() / 2 - 1] + upper) / 2),
        _ => Some(upper),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_runs_the_middle_one_gives_the_counts() {
        let run = |seconds: u64| SoloRun {
            turnaround: Nanos::from_secs(seconds),
            counts: Counts { llc_misses: Some(seconds), ..Counts::default() },
            ..SoloRun::default()
        };
        let middle = |times: &[u64]| {
            let all: Vec<SoloRun> = times.iter().map(|seconds| run(*seconds)).collect();
            counts_of_the_middle(&all).llc_misses
        };
        assert_eq!(middle(&[9, 1, 2]), Some(2));
        assert_eq!(middle(&[4, 100, 2, 3]), Some(3));
        assert_eq!(middle(&[5]), Some(5));
    }

    #[test]
    fn what_was_known_before_counts_with_what_is_new() {
        let run =
            |seconds: u64| SoloRun { turnaround: Nanos::from_secs(seconds), ..SoloRun::default() };
        let before = SoloRecord { miss_ratio: Some(0.5), ..entry(&[run(9), run(2)], None) };
        let all = entry(&[run(3)], Some(&before));
        assert_eq!((all.solo, all.runs, all.miss_ratio), (Nanos::from_secs(3), 3, Some(0.5)));
        assert_eq!(all.times, [9, 2, 3].map(Nanos::from_secs));
    }

    #[test]
    fn only_the_end_of_a_long_output_is_shown() {
        let text = (1..=20).map(|n| format!("line {n}\n")).collect::<String>();
        assert_eq!(last_lines(&text), "  line 16\n  line 17\n  line 18\n  line 19\n  line 20");
        assert_eq!(last_lines("only\n\n"), "  only");
        assert_eq!(last_lines(""), "");
    }

    #[test]
    fn the_median_does_not_depend_on_the_order_or_on_one_bad_run() {
        let seconds = |all: &[u64]| all.iter().map(|s| Nanos::from_secs(*s)).collect::<Vec<_>>();
        assert_eq!(median(&seconds(&[9, 1, 2])), Some(Nanos::from_secs(2)));
        assert_eq!(median(&seconds(&[4, 100, 2, 3])), Some(Nanos::from_millis(3500)));
        assert_eq!(median(&[]), None);
    }
}
