//! Results: `run.json`, what a run leaves for people and scripts.
//!
//! The file says what was run, on which machine and by which policy; how each program ended; the
//! [`metrics`](crate::metrics); and what cosched itself cost. It has the raw times in addition to
//! the metrics, so that everything can be computed again. `docs/json.md` describes every field.
//!
//! Times are seconds since the run began, rounded to microseconds (a timeline
//! has thousands of entries, and the kernel promises no more); ratios are not rounded. What was not
//! measured is `null`. The first field names the version of the schema: a field may
//! be added within a version, never changed or removed, and [`RunResult::load`] refuses
//! any other version.

mod after;
mod build;
mod check;
mod error;
mod estimates;
mod fair_share;
mod in_kernel;
mod own;
mod solo;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use after::{AfterResult, NotStartedResult};
pub use build::{Context, ProgramContext};
pub(crate) use build::{seconds, to_microseconds};
pub use error::ResultError;
pub use estimates::EstimatesResult;
pub use fair_share::FairShareResult;
pub use in_kernel::InKernel;
pub use own::{Own, PolicyCost, Quantiles};
pub use solo::reject_solos_everywhere;

use cosched_core::barrier_stats::BarrierStats;
use cosched_core::{Aspect, CpuSet, Exit, ProgramId, Reason, Refusal, Spinning, Usage, format};
use cosched_workload::{BarrierMode, input, shown};

use crate::json;
use crate::metrics::Metrics;
use crate::whole_file;

/// The version of the schema that is written.
pub const SCHEMA: &str = "cosched-run/3";
/// The versions before, which had other keys, and are still read.
const EARLIER_SCHEMAS: [&str; 2] = ["cosched-run/1", "cosched-run/2"];
/// How the schema of a result begins, whatever its version.
const ANY_SCHEMA: &str = "cosched-run/";
/// The largest size of a result that is read, bytes: a hundred days of quanta take less.
pub const MAX_BYTES: u64 = 1 << 30;
/// The file that is in the output folder until the result is there.
pub const RUN_IN_PROGRESS: &str = ".cosched-run";

/// The backend of a policy that freezes no program, or binds none.
pub const NONE: &str = "none";

/// The kernel's release, and the backend, of a simulated machine.
pub const SIMULATED: &str = "simulated";

/// The content of `run.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// [`SCHEMA`].
    pub schema: String,
    /// The policy's name.
    pub policy: String,
    /// The policy that decided in its place, where programs could not take turns by weight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// How threads were placed, `packed` or `spread`, where the policy places them.
    pub placement: Option<String>,
    /// The quantum that the user requested, where the policy has one.
    pub quantum_seconds: Option<f64>,
    /// The longest time that a program may be frozen at a stretch, where the policy freezes; `None`
    /// also in older files.
    pub max_frozen_seconds: Option<f64>,
    /// Whether idle CPUs of a gang were backfilled, where the policy can do that; `None` also in
    /// older files.
    pub fill: Option<bool>,
    /// The wall-clock time at which the run began, RFC 3339.
    pub started_at: String,
    /// The signal that ended the run before its time; `None` if it was complete.
    pub interrupted_by: Option<String>,
    /// From the start of the run until every program was done, or it was interrupted.
    pub total_seconds: f64,
    /// The time from which on decisions, deviations, timelines, turns and complete runs are here
    /// one by one; left out: from the beginning. Sums include all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_from_seconds: Option<f64>,
    /// CPU time that other processes used on the run's CPUs while it lasted; `None` where that is
    /// not known, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_cpu_seconds: Option<f64>,
    /// CPU time of the run's CPUs that the hypervisor gave to other guests while it lasted; `None`
    /// where that is not known, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen_cpu_seconds: Option<f64>,
    /// Whether the solo times are from runs of the same comparison, and from no profile.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub solo_runs: bool,
    /// The machine.
    pub machine: MachineDescription,
    /// What a simulation needs to be repeated; `None` for a run on a real machine, and in older
    /// files.
    pub simulation: Option<Simulation>,
    /// The backends: how programs were frozen and bound.
    #[serde(alias = "rungs")]
    pub backends: Backends,
    /// The workload as a whole.
    pub metrics: Metrics,
    /// One per program, in the workload's order.
    pub programs: Vec<ProgramResult>,
    /// What the machine could not do, or another process undid.
    pub deviations: Vec<DeviationResult>,
    /// The plans that changed anything, in order of time.
    pub decisions: Vec<DecisionResult>,
    /// How well cosched itself did, and what it cost.
    pub own: Own,
}

/// The machine of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineDescription {
    /// How many CPUs the programs could use.
    pub cpus: usize,
    /// The CPUs' model name, if the kernel tells it.
    pub model: Option<String>,
    /// The kernel's release; [`SIMULATED`] where the machine was simulated.
    pub kernel: String,
}

impl MachineDescription {
    /// Whether no program was run on it.
    pub fn is_simulated(&self) -> bool {
        self.kernel == SIMULATED
    }
}

impl fmt::Display for MachineDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(model) = &self.model {
            write!(f, "{model}, ")?;
        }
        write!(f, "{}, {}", format::count(self.cpus, "CPU", "CPUs"), self.kernel)
    }
}

/// What a simulated run depends on in addition to the workload and the policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Simulation {
    /// The machine, as it was requested: a name, a path, or a description in words.
    pub machine: String,
    /// The name of its kernel.
    pub kernel: String,
    /// The seed of the random numbers.
    pub seed: u64,
    /// The constants of policies that were set, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, String>,
}

impl Simulation {
    /// The constants of policies that were set, as a command line has them; `None`: none.
    pub fn constants(&self) -> Option<String> {
        let set: Vec<String> =
            self.set.iter().map(|(name, value)| format!("{name}={value}")).collect();
        (!set.is_empty()).then(|| set.join(", "))
    }
}

impl fmt::Display for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Simulation { machine, kernel, seed, .. } = self;
        write!(f, "machine {machine}, kernel {kernel}, seed {seed}")?;
        match self.constants() {
            Some(set) => write!(f, ", with {set}"),
            None => Ok(()),
        }
    }
}

/// The backends that the run used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backends {
    /// How programs were frozen; [`NONE`] where the policy freezes none.
    pub freezing: String,
    /// How programs were bound to CPUs, or [`NONE`] where the policy binds none. It also says how
    /// CPUs were shared, where they were.
    pub pinning: String,
}

/// One program. Spans end when the program was done ([`Repeat`](cosched_workload::Repeat) tells
/// when that is), except where another end is given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramResult {
    /// Its name, unique in the workload.
    pub name: String,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// How many threads it requested; fewer, if it was started with fewer.
    pub threads: u16,
    /// The most threads that it was seen to have at once, in all its processes; `None` where it was
    /// not looked at, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads_seen: Option<u32>,
    /// The most of its processes that were seen to compute at once, as with its threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes_seen: Option<u32>,
    /// The most parts of it, of one or more processes with several threads each, that took turns
    /// within it; `None` where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units_seen: Option<u32>,
    /// How much of its CPU time went to spin loops; `None` where it was not sampled, and in older
    /// files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spinning: Option<Spinning>,
    /// What its threads did under cosched's scheduler in the kernel; `None` where they had the
    /// kernel's own, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_kernel: Option<InKernel>,
    /// How many it would have requested, had it not been started with fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub molded_from: Option<u16>,
    /// The solo time with the fewer threads with which it was started; `None` where it had all,
    /// and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub molded_solo_seconds: Option<f64>,
    /// When it arrived.
    pub arrived_seconds: f64,
    /// The programs that had to end before it came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<AfterResult>,
    /// Why it was not started, where one of those did not end as it should; `None` also in older
    /// files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_started: Option<NotStartedResult>,
    /// When it was first started; `None` if it never was.
    pub started_seconds: Option<f64>,
    /// From its arrival until it was done; `None` if it never was.
    pub turnaround_seconds: Option<f64>,
    /// How long it was allowed to run.
    pub running_seconds: f64,
    /// How long it waited: before its first start, and frozen.
    pub waiting_seconds: f64,
    /// Where programs take turns by weight: how long it only got the CPU time that the programs in
    /// turn left, of the time in which it was allowed to run.
    #[serde(default, skip_serializing_if = "is_no_time")]
    pub filler_seconds: f64,
    /// The solo time with all threads that it requests, where it was measured.
    pub solo_seconds: Option<f64>,
    /// CPU time of that work alone, where it was measured; `None` also in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub solo_cpu_seconds: Option<f64>,
    /// The solo time as it was started, where that cannot be true: in this run, or in another one
    /// of a comparison, it ran for less. Nothing here rests on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected_solo_seconds: Option<f64>,
    /// Turnaround - solo time with the threads with which it was started - waiting.
    pub interference_seconds: Option<f64>,
    /// Turnaround / solo time with all threads that it requests.
    pub slowdown: Option<f64>,
    /// The longest time that it was frozen at a stretch.
    pub longest_frozen_seconds: f64,
    /// [`exit`](Self::exit) as a shell reports it.
    pub exit_status: Option<i32>,
    /// How it ended: its first failure, or else its last end. `None` if it never ended.
    pub exit: Option<Exit>,
    /// Its complete runs in the whole run; programs that repeat have several.
    pub completions: Vec<CompletionResult>,
    /// How many complete runs came before those, and are not kept one by one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub earlier_completions: u64,
    /// What its complete runs used together.
    pub usage: Usage,
    /// Its fair share of the CPU time, and what it lacks of it; `None` where that is not known, and
    /// in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fair_share: Option<FairShareResult>,
    /// When it was allowed to run in the whole run, and where.
    pub timeline: Vec<TimelineEntry>,
    /// Where programs take turns by weight: its turns, from and to (seconds). It may also run
    /// outside of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<(f64, f64)>,
    /// When the user detached it; `None`: not before the run ended, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detached_seconds: Option<f64>,
    /// Whether processes of it were alive when the run ended, and were left running.
    pub left_running: bool,
    /// Its other terms for the policy; `None` in older files.
    pub terms: Option<Terms>,
    /// Variables that decide how programs run, and that it got in addition to what it inherited;
    /// `None` where nothing was run, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<BTreeMap<String, String>>,
    /// How its threads waited at barriers; `None`: by its own barrier, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub barrier: Option<BarrierResult>,
    /// What replaced its progress, which it was to report and never did. `None`: it reported its
    /// progress, or no policy needed it, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of_progress: Option<Instead>,
    /// What the policy has estimated of its speed alone; `None`: nothing, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimates: Option<EstimatesResult>,
}

/// What a policy uses that needs a program's progress, where the program does not report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Instead {
    /// The program is assumed not to be slowed: its CPU time counts as its progress.
    CpuTime,
    /// The table of slowdowns, by its traffic with memory.
    Slowdowns,
}

impl ProgramResult {
    /// How many threads it requests where it gets no number. A program that is started with fewer
    /// threads is the same program.
    pub fn requested(&self) -> u16 {
        self.molded_from.unwrap_or(self.threads)
    }

    /// The solo time with the threads with which it was started, where it was measured.
    pub fn alone_as_started_seconds(&self) -> Option<f64> {
        self.molded_solo_seconds.or(self.solo_seconds)
    }
}

/// The barrier of a program's threads, if it is not its own, or was to be another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BarrierResult {
    /// The kind of barrier.
    #[serde(alias = "way")]
    pub mode: BarrierMode,
    /// Why its waiting threads did not know which threads ran; `None`: they knew.
    pub lacks: Option<String>,
    /// Barrier statistics of the whole run. `None`: its threads never waited there, or no counts of
    /// it arrived, as in older files.
    #[serde(default, skip_serializing_if = "Option::is_none", alias = "meetings")]
    pub statistics: Option<BarrierStats>,
    /// Variables that it got so that threads of gcc's OpenMP do not spin for long between parallel
    /// regions. Empty where the user had set how they wait, and in older files.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub between_regions: BTreeMap<String, String>,
}

/// What a policy gets of a program in addition to its threads and its arrival.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// Its weight relative to the other programs.
    pub weight: f64,
    /// The group that the user named for it.
    pub group: Option<String>,
    /// Whether it may be frozen; `None`: to be found out.
    pub freezable: Option<bool>,
    /// Last-level cache misses per 1000 instructions alone, where known.
    pub misses_per_kilo_instruction: Option<f64>,
    /// Traffic between caches and memory alone, GB/s (10^9 bytes), where known.
    pub memory_gigabytes_per_second: Option<f64>,
}

/// From (seconds), to (seconds), CPUs in the kernel's list format (`None`: the original ones).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimelineEntry(pub f64, pub f64, pub Option<CpuSet>);

/// One complete run of a program.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompletionResult {
    /// When it ended.
    pub at_seconds: f64,
    /// How it ended.
    pub exit: Exit,
}

/// A part of a plan that was not in effect.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviationResult {
    /// When it was noticed.
    pub at_seconds: f64,
    /// The program of the directive; the slot is the position in [`RunResult::programs`].
    pub program: ProgramId,
    /// The part of the directive.
    #[serde(alias = "wanted")]
    pub what: Aspect,
    /// Why it is not in effect.
    pub why: Refusal,
}

/// A plan that changed something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecisionResult {
    /// When it was made.
    pub at_seconds: f64,
    /// The reasons for it.
    pub reasons: Vec<Reason>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn is_no_time(seconds: &f64) -> bool {
    *seconds == 0.0
}

impl RunResult {
    /// Whether the user detached a program. Older files tell it only of one that outlived the run.
    pub fn was_detached(&self, slot: usize) -> bool {
        let program = &self.programs[slot];
        let is_open = program.exit.is_none() && !program.timeline.is_empty();
        let outlived = is_open && program.left_running && self.interrupted_by.is_none();
        program.detached_seconds.is_some() || outlived
    }

    /// The policy, and the one that decided in its place, for people.
    pub fn policy_in_words(&self) -> String {
        let other = self.decided_by.as_ref();
        let decided = other.map_or(String::new(), |other| format!(" ({other} decided)"));
        format!("{}{decided}", self.policy)
    }

    /// Reads a `run.json`.
    ///
    /// # Errors
    /// When the file cannot be read, and those of [`RunResult::read`].
    pub fn load(path: &Path) -> Result<RunResult, ResultError> {
        let unreadable = |source| ResultError::Unreadable { file: path.to_owned(), source };
        RunResult::read(&input::read(path, MAX_BYTES).map_err(unreadable)?, path)
    }

    /// Reads the content of a `run.json`. `path` is named in messages.
    ///
    /// # Errors
    /// When it is something else, is damaged, has a value that no run can have, or has a schema
    /// that cannot be read.
    pub fn read(text: &[u8], path: &Path) -> Result<RunResult, ResultError> {
        #[derive(Deserialize)]
        struct ResultVersion {
            schema: Option<String>,
        }
        let file = || path.to_owned();
        let damaged = |what| ResultError::Damaged { file: file(), what };
        let no_result = |what: String| Err(ResultError::NoResult { file: file(), what });
        // Half a result still begins with a brace.
        if text.trim_ascii_start().first().is_some_and(|first| *first != b'{') {
            return no_result("it is no JSON object".to_owned());
        }
        let version: ResultVersion = json::read(text).map_err(damaged)?;
        match version.schema {
            Some(found) if found == SCHEMA || EARLIER_SCHEMAS.contains(&found.as_str()) => {}
            Some(found) if found.starts_with(ANY_SCHEMA) => {
                return Err(ResultError::OtherSchema { file: file(), found: shown(&found) });
            }
            Some(found) => return no_result(format!("its schema is '{}'", shown(&found))),
            None => return no_result("it names no schema".to_owned()),
        }
        let mut run: RunResult = json::read(text).map_err(damaged)?;
        run.schema = SCHEMA.to_owned();
        match check::check(&run) {
            Ok(()) => {
                // Older files have such times.
                run.reject_impossible_solos();
                Ok(run)
            }
            Err((field, what)) => Err(ResultError::Impossible { file: file(), field, what }),
        }
    }

    /// Writes a `run.json`, whole or not at all: a reader never finds half a file.
    ///
    /// # Errors
    /// When the folder or the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), ResultError> {
        let text = self.to_json() + "\n";
        whole_file::create(path, text.as_bytes())
            .map_err(|source| ResultError::Unwritable { file: path.to_owned(), source })
    }

    /// The result as one line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("all keys of a result's maps are strings")
    }
}
