//! `cosched profile --machine`: this machine's largest memory bandwidth, measured once and
//! kept.
//!
//! Policies that need to know whether a program moves little or much (fair-progress) hold its
//! traffic against the realistic peak: what programs get, not what the modules could. That is what
//! threads move that stream through arrays larger than the caches, by the number of threads that
//! moves most. Since the bytes of these are known, it takes no hardware counters.

use std::process::ExitCode;
use std::time::SystemTime;

use cosched_core::format::count;
use cosched_results::result::MachineDescription;
use serde::Serialize;

use crate::session::Session;
use crate::sim;
use crate::store::{Peak, Store};
use crate::ui::failure::Failure;
use crate::ui::{Talk, print, print_json, say};

const SCHEMA: &str = "cosched-profile-machine/1";

#[derive(Serialize)]
struct PeakDocument<'a> {
    schema: &'static str,
    machine: &'a MachineDescription,
    peak_gigabytes_per_second: f64,
    peak_lines_per_microsecond: f64,
    threads: usize,
    measured_at: &'a str,
}

/// What was known before may be more by this part of it, or less, and is not told.
const TENTH: f64 = 0.1;

/// What was known before, where it was another.
fn differs(before: &Peak, now: &Peak) -> Option<String> {
    let Peak { gigabytes_per_second: known, measured_at, .. } = before;
    let found = now.gigabytes_per_second;
    ((found - known).abs() > TENTH * known).then(|| {
        format!(
            "{found:.1} GB/s replace the {known:.1} GB/s that were measured at {measured_at}; if \
             the machine was not idle for one of the two, measure again on the idle machine"
        )
    })
}

/// Measures, keeps, and shows what was found.
pub(super) fn machine(json: bool) -> Result<ExitCode, Failure> {
    let session = Session::here()?;
    let mut store = Store::open().map_err(Failure::input)?;
    say(format_args!(
        "measuring the memory's peak bandwidth; other programs that run now make the figure too \
         small"
    ));
    session.tell_if_busy(Talk::Usual);
    let cpus: Vec<usize> = session.usable.cpus.iter().collect();
    let (found, disturbed) = session.while_watched(|| sim::memory_peak(&cpus));
    let (gigabytes_per_second, threads) = found?;
    let measured_at = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let peak = Peak { gigabytes_per_second, threads, measured_at };
    let kept = match &disturbed {
        None => "kept for the policy fair-progress".to_owned(),
        Some(used) => {
            format!("not kept: other processes used {used}; run it again when the machine is idle")
        }
    };
    if disturbed.is_none() {
        let before = store.peak(&session.description);
        store.put_peak(&session.description, &peak)?;
        if let Some(sentence) = before.and_then(|before| differs(&before, &peak)) {
            say(format_args!("{sentence}"));
        }
    } else if json {
        say(format_args!("{kept}"));
    }
    let lines = peak.lines_per_microsecond();
    if json {
        let document = PeakDocument {
            schema: SCHEMA,
            machine: &session.description,
            peak_gigabytes_per_second: peak.gigabytes_per_second,
            peak_lines_per_microsecond: lines,
            threads,
            measured_at: &peak.measured_at,
        };
        print_json(&serde_json::to_string_pretty(&document).map_err(Failure::broken)?)?;
    } else {
        print(&format!(
            "peak memory bandwidth: {gigabytes_per_second:.1} GB/s ({lines:.0} cache lines per \
             microsecond) with {threads} of {}; {kept}",
            count(cpus.len(), "CPU", "CPUs")
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_peak_is_reported_if_it_differs_by_over_a_tenth() {
        let peak = |gigabytes_per_second| Peak {
            gigabytes_per_second,
            threads: 2,
            measured_at: "2026-01-01T00:00:00Z".into(),
        };
        let sentence = differs(&peak(45.7), &peak(31.9)).unwrap();
        let parts = ["31.9 GB/s replace the 45.7 GB/s", "2026-01-01", "idle machine"];
        assert!(parts.iter().all(|part| sentence.contains(part)), "{sentence}");
        assert!(differs(&peak(31.9), &peak(45.7)).is_some());
        assert_eq!(differs(&peak(40.0), &peak(37.0)), None);
    }
}
