//! `cosched sim --watch FILE`: what each program did in each second, and how its threads lost their
//! CPUs.
//!
//! Such a file may replace an earlier one, and [nothing else](crate::replace).

use std::fmt::Write as _;
use std::path::Path;

use cosched_core::Nanos;
use cosched_results::result::RunResult;
use cosched_sim::Sim;
use serde_json::{Value, json};

use crate::replace::{self, FileKind};
use crate::ui::failure::Failure;

pub(super) const INTERVAL: Nanos = Nanos::from_secs(1);

/// What may be replaced.
const WATCHED: FileKind = FileKind { made_by: "cosched sim --watch", option: "--watch", is_one };

/// By the first line, which a file's beginning holds as a whole.
fn is_one(beginning: &[u8]) -> bool {
    let line = beginning.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let row: Value = serde_json::from_slice(line).unwrap_or_default();
    row["program"].is_string() && row["run_delay_seconds"].is_number()
}

/// Checks that the file can be written when the simulation is over.
pub(super) fn check(file: &Path) -> Result<(), Failure> {
    replace::check(file, WATCHED)
}

/// Writes a line for each interval of each program; docs/research/simulator.md describes it.
pub(super) fn write(file: &Path, sim: &Sim, result: &RunResult) -> Result<(), Failure> {
    let mut lines = String::new();
    for row in sim.intervals() {
        let tally = row.tally;
        let line = json!({
            "program": result.programs[usize::from(row.program.slot)].name,
            "threads": row.threads,
            "from_seconds": row.from.as_secs_f64(),
            "to_seconds": row.to.as_secs_f64(),
            "cpu_seconds": row.ran.as_secs_f64(),
            "alone_seconds": row.alone.as_secs_f64(),
            "run_delay_seconds": row.queued.as_secs_f64(),
            "run_queue": row.queue,
            "lock_seconds": row.waited.as_secs_f64(),
            "arrival_range_seconds": row.arrival_range.map(Nanos::as_secs_f64),
            "llc_references": row.references,
            "llc_misses": row.misses,
            "voluntary": row.voluntary,
            "for_locks": tally.for_locks,
            "holder_queued": tally.holder_queued,
            "transfers_inside": tally.transfers_inside,
            "transfers_across": tally.transfers_across,
            "expired": tally.expired,
            "by_sibling": tally.by_sibling,
            "by_other": tally.by_other,
            "holders": tally.holders,
            "donated": tally.donated,
            "yielded": tally.yielded,
            "turns": tally.turns,
            "priority_expired": tally.changes_expired,
            "priority_slept": tally.changes_slept,
            "priority_ran": tally.changes_ran,
            "priority_waited": tally.changes_waited,
            "priority_preempted": tally.changes_preempted,
        });
        _ = writeln!(lines, "{line}");
    }
    replace::replace(file, lines.as_bytes(), WATCHED)
}
