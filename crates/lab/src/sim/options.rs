//! What was asked for of a simulation, or of the model of this machine.

use std::path::PathBuf;

use cosched_policy::{Kind, Placement};
use cosched_sim::Kernel;

use crate::how::How;

/// What to simulate, on which machine.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The jobs file, or `-` for standard input.
    pub workload: Option<PathBuf>,
    /// A recorded run to be replayed instead: its folder, or its run.json.
    pub from: Option<PathBuf>,
    /// Whether only the programs of the recorded run are printed, as a jobs file.
    pub jobs_file: bool,
    /// What decides; `None`: the default policy.
    pub policy: Option<Kind>,
    /// The machine: a name, a file, words, or `this`.
    pub machine: Option<String>,
    /// Its kernel; `None`: the newest.
    pub kernel: Option<Kernel>,
    /// The seed of all random choices; `None`: [`SEED`](super::SEED).
    pub seed: Option<u64>,
    /// Settings to be varied, each as `key=a,b,c`.
    pub sweep: Vec<String>,
    /// The events of one simulation beyond which it ends with an error.
    pub max_events: u64,
    /// Whether programs are not simulated alone.
    pub no_solo: bool,
    /// How policies do their work.
    pub how: How,
    /// A folder for run.json.
    pub out: Option<PathBuf>,
    /// A file for what each program did in each second.
    pub watch: Option<PathBuf>,
    /// Whether JSON is printed instead of the table.
    pub json: bool,
}

/// How to compare this machine with its model.
#[derive(Clone, Debug)]
pub struct CheckOptions {
    /// The file with the description; `None`: the one in the user's data folder.
    pub machine: Option<PathBuf>,
    /// The folder with the programs to be run.
    pub kernels: PathBuf,
    /// Runs of each workload under each policy.
    pub runs: u16,
    /// Parts of workloads' names; only these are run. Empty: all are.
    pub only: Vec<String>,
    /// How policies and this machine do their work.
    pub how: How,
    /// Whether it is a short test: its errors mean nothing.
    pub quick: bool,
    /// Whether JSON is printed instead of the table.
    pub json: bool,
}

/// The machine on which programs are simulated alone.
#[derive(Clone, Debug)]
pub struct MachineOptions {
    /// The machine: a name, a file, words, or `this`.
    pub machine: String,
    /// Its kernel.
    pub kernel: Kernel,
    /// The seed of all random choices.
    pub seed: u64,
    /// Where the threads of a program go.
    pub placement: Placement,
}
