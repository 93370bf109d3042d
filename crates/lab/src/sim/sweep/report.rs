//! What came of a sweep: a table for people, JSON for scripts (docs/json.md).

use std::collections::BTreeMap;

use cosched_results::result::RunResult;
use serde::Serialize;

use super::axis::Axis;
use crate::sim::simulator::Scene;
use crate::ui::table::{known, number, table, text};

const SCHEMA: &str = "cosched-sweep/1";

#[derive(Debug, Serialize)]
pub(super) struct SweepReport {
    schema: &'static str,
    /// The settings that vary, as they were given.
    keys: Vec<&'static str>,
    points: Vec<SweepRow>,
}

/// One combination: its settings, and what came of it.
#[derive(Debug, Serialize)]
pub(super) struct SweepRow {
    policy: String,
    machine: String,
    kernel: &'static str,
    seed: u64,
    placement: Option<String>,
    quantum_seconds: Option<f64>,
    max_frozen_seconds: Option<f64>,
    total_seconds: f64,
    ratio_to_solo_sum: Option<f64>,
    mean_turnaround_seconds: Option<f64>,
    unfairness: Option<f64>,
    longest_wait_seconds: f64,
    cpu_utilisation: f64,
    failed: usize,
    deviations: usize,
    /// The constants of policies that were set.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    set: BTreeMap<String, String>,
    /// The values of the keys, as they are written.
    #[serde(skip)]
    words: Vec<Option<String>>,
}

impl SweepRow {
    pub(super) fn new(axes: &[Axis], scene: &Scene, result: &RunResult) -> SweepRow {
        let gangs = scene.policy.makes_gangs();
        let solos = result.programs.iter().map(|program| program.solo_seconds);
        let solo_sum = solos.sum::<Option<f64>>();
        let wait = |program: &cosched_results::result::ProgramResult| {
            let started = program.started_seconds.unwrap_or(result.total_seconds);
            (started - program.arrived_seconds).max(program.longest_frozen_seconds)
        };
        SweepRow {
            policy: scene.policy.to_string(),
            machine: scene.machine.clone(),
            kernel: scene.kernel.name(),
            seed: scene.seed,
            placement: result.placement.clone(),
            quantum_seconds: result.quantum_seconds,
            max_frozen_seconds: gangs.then(|| scene.how.max_frozen().as_secs_f64()),
            total_seconds: result.total_seconds,
            ratio_to_solo_sum: solo_sum.map(|sum| result.total_seconds / sum),
            mean_turnaround_seconds: result.metrics.mean_turnaround_seconds,
            unfairness: result.metrics.unfairness,
            longest_wait_seconds: result.programs.iter().map(wait).fold(0.0, f64::max),
            cpu_utilisation: result.metrics.cpu_utilisation,
            failed: result.programs.iter().filter(|program| program.exit_status != Some(0)).count(),
            deviations: result.deviations.len(),
            set: scene.constants(scene.policy),
            words: axes.iter().map(|axis| axis.key.of(scene)).collect(),
        }
    }
}

impl SweepReport {
    pub(super) fn new(axes: &[Axis], points: Vec<SweepRow>) -> SweepReport {
        let keys = axes.iter().map(|axis| axis.key.name()).collect();
        SweepReport { schema: SCHEMA, keys, points }
    }

    pub(super) fn all_succeeded(&self) -> bool {
        self.points.iter().all(|row| row.failed == 0)
    }

    /// A row per combination.
    pub(super) fn show(&self) -> String {
        let figures = [
            "total s",
            "total / alone",
            "mean turnaround s",
            "unfairness",
            "longest wait s",
            "CPU use %",
        ];
        let mut shown = table(&[&self.keys, &figures[..]].concat());
        for row in &self.points {
            let word = |word: &Option<String>| text(word.as_deref().unwrap_or("–"));
            let mut cells: Vec<_> = row.words.iter().map(word).collect();
            let figures = [
                (Some(row.total_seconds), 2),
                (row.ratio_to_solo_sum, 3),
                (row.mean_turnaround_seconds, 2),
                (row.unfairness, 2),
                (Some(row.longest_wait_seconds), 2),
                (Some(row.cpu_utilisation * 100.0), 0),
            ];
            cells.extend(figures.map(|(value, digits)| number(known(value, digits))));
            shown.add_row(cells);
        }
        shown.to_string()
    }
}
