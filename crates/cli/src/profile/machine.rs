//! `cosched profile --machine`: how much this machine's memory carries at most, measured once and kept.
//!
//! Policies that ask whether a program moves little or much (fair-progress) hold its traffic against the realistic peak: what
//! programs get, not what the modules could. That is what threads move that stream through arrays larger than the caches,
//! by the number of threads that moves most. Since the bytes of these are known, it takes no hardware counters.

use std::process::ExitCode;
use std::time::SystemTime;

use cosched_core::result::MachineDescription;
use serde::Serialize;

use crate::failure::Failure;
use crate::session::{Session, print, say};
use crate::sim;
use crate::store::{Peak, Store};

/// The version of the JSON that is written.
const SCHEMA: &str = "cosched-profile-machine/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    machine: &'a MachineDescription,
    peak_gigabytes_per_second: f64,
    peak_lines_per_microsecond: f64,
    threads: usize,
    measured_at: &'a str,
}

/// Measures, keeps, and shows what was found.
pub(super) fn machine(json: bool) -> Result<ExitCode, Failure> {
    let session = Session::here()?;
    let mut store = Store::open().map_err(Failure::input)?;
    say(format_args!("measuring the memory; whatever else runs takes its part of it"));
    let cpus: Vec<usize> = session.usable.cpus.iter().collect();
    let (gigabytes_per_second, threads) = sim::memory_peak(&cpus)?;
    let measured_at = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let peak = Peak { gigabytes_per_second, threads, measured_at };
    store.put_peak(&session.description, &peak)?;
    let lines = peak.lines_per_microsecond();
    if json {
        let document = Document {
            schema: SCHEMA,
            machine: &session.description,
            peak_gigabytes_per_second: peak.gigabytes_per_second,
            peak_lines_per_microsecond: lines,
            threads,
            measured_at: &peak.measured_at,
        };
        print(&serde_json::to_string_pretty(&document).map_err(Failure::broken)?)?;
    } else {
        print(&format!(
            "memory carries {gigabytes_per_second:.1} GB/s at most, {lines:.0} cache lines per microsecond, to {threads} \
             of {} CPUs; kept for the policy fair-progress",
            cpus.len()
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}
