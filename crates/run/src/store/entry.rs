//! What is kept, and under which key.
//!
//! A solo time is worth something only for the same work on the same machine. What makes it the
//! same: the command with its arguments, the directory that relative paths start from, the
//! variables that the workload sets, the file that it reads as standard input, the thread count,
//! the placement, and the machine by its CPU model and the number of CPUs that programs may use.
//! The kernel's release is left out: it changes with every update and moves a solo time by little.

use std::collections::BTreeMap;

use cosched_core::Nanos;
use cosched_policy::Placement;
use cosched_results::result::MachineDescription;
use cosched_workload::{BarrierMode, ProgramSpec};
use serde::{Deserialize, Serialize};

use super::json;

/// Raised when a key is made of other parts, or one of them means more: old entries are then not
/// found any more.
const VERSION: u32 = 2;

/// Names one program on one machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(String);

/// The parts, in the order in which they are written.
#[derive(Serialize)]
struct EntryParts<'a> {
    version: u32,
    command: &'a [String],
    cwd: &'a str,
    env: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdin: Option<String>,
    threads: u16,
    placement: String,
    model: Option<&'a str>,
    cpus: usize,
}

/// What else counts for policies.
#[derive(Serialize)]
struct InHand<'a> {
    program: &'a str,
    barrier: &'static str,
    malleable: bool,
    weight: f64,
}

impl Key {
    /// The key of a program that requests `threads` CPUs at once.
    pub(crate) fn new(
        spec: &ProgramSpec,
        threads: u16,
        placement: Placement,
        machine: &MachineDescription,
    ) -> Key {
        let parts = EntryParts {
            version: VERSION,
            command: &spec.command,
            // Programs start in directories of UTF-8 names only, so nothing is lost.
            cwd: &spec.cwd.to_string_lossy(),
            env: &spec.env,
            stdin: spec.streams.stdin.as_ref().map(|file| file.path.to_string_lossy().into_owned()),
            threads,
            placement: placement.to_string(),
            model: machine.model.as_deref(),
            cpus: machine.cpus,
        };
        Key(json(&parts))
    }

    /// The same program as policies have it in hand: what it does at barriers, whether its threads
    /// are granted, and what it weighs change what helps it.
    pub(crate) fn in_hand(&self, spec: &ProgramSpec, barrier: BarrierMode) -> Key {
        let (barrier, malleable, weight) = (barrier.name(), spec.malleable, spec.weight);
        Key(json(&InHand { program: &self.0, barrier, malleable, weight }))
    }

    /// The parts as one line of JSON.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// What is known of a program from runs alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SoloRecord {
    /// How long it takes: the median of the runs.
    #[serde(rename = "solo_nanoseconds")]
    pub solo: Nanos,
    /// How many runs were made.
    pub runs: u16,
    /// How long each of them took, in the order in which they were made; older entries do not have
    /// it.
    #[serde(rename = "run_nanoseconds", default)]
    pub times: Vec<Nanos>,
    /// CPU time of the run in the middle, of all threads; older entries do not have it.
    #[serde(rename = "cpu_nanoseconds", default)]
    pub cpu: Option<Nanos>,
    /// Last-level cache misses per 1000 instructions, where they could be counted.
    pub misses_per_kilo_instruction: Option<f64>,
    /// Share of the references to the last-level cache that missed, where they could be counted;
    /// older entries do not have it.
    #[serde(default)]
    pub miss_ratio: Option<f64>,
    /// When, RFC 3339.
    pub measured_at: String,
}
