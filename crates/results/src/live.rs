//! A run that is under way, as other processes see it: one [`Snapshot`] per heartbeat.
//!
//! [`result`](crate::result) says how a run ended; a snapshot says how a run is now. It says which
//! programs run, which programs wait, how long each has done so, and the policy's reason. `cosched
//! top`, the metrics and every reader of the run's socket see the same snapshot. `docs/results.md`
//! describes every field.
//!
//! Times are seconds since the run began, rounded to microseconds, from *confirmed* effects, as in
//! `run.json`. Unlike there, they cover every run of a program, also those after it was done. They
//! therefore never fall, and always grow while a program runs. The first field names the version of
//! the schema: a field may be added within a version, never changed or removed.

mod board;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use board::{About, Board};

use cosched_core::barrier_stats::BarrierStats;
use cosched_core::waits::lag;
use cosched_core::{Actuator, Advance, Chosen, CpuSet, Exit, GroupId, Grouping, ProgramState, Why};

use crate::result::{seconds, to_microseconds};

/// The version of the schema that is written.
pub const SCHEMA: &str = "cosched-live/2";
/// The version before, which had other keys, and is still read.
const EARLIER_SCHEMA: &str = "cosched-live/1";

/// The state of a run at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// [`SCHEMA`].
    pub schema: String,
    /// The process of cosched.
    pub pid: u32,
    /// The policy's name.
    pub policy: String,
    /// The policy that decides in its place, where programs cannot take turns by weight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// How threads are placed, where the policy places them.
    pub placement: Option<String>,
    /// The quantum that the user requested, where the policy has one.
    pub quantum_seconds: Option<f64>,
    /// The wall-clock time at which the run began, RFC 3339.
    pub started_at: String,
    /// The time of the snapshot.
    pub at_seconds: f64,
    /// The CPUs that the programs may use now.
    pub cpus: CpuSet,
    /// The present quantum, where the policy has quanta.
    pub quantum: Option<LiveQuantum>,
    /// How often a decision has changed which programs run.
    pub switches: u64,
    /// How often a part of a plan was not in effect.
    pub deviations: u64,
    /// CPU time that cosched has used.
    pub own_cpu_seconds: f64,
    /// One per program, in the workload's order.
    pub programs: Vec<Standing>,
}

/// The quantum that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveQuantum {
    /// The number of the round; policies without rounds count quanta.
    pub round: u64,
    /// The gang that has it, from 0.
    pub gang: u16,
    /// How many gangs the round has.
    pub gangs: u16,
    /// When it began.
    pub began_seconds: f64,
    /// How long it lasts; `None`: until something happens.
    pub length_seconds: Option<f64>,
}

/// The state of one program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// Its name, unique in the workload.
    pub name: String,
    /// Where it is in its life.
    pub state: LiveState,
    /// The number of this run of it, from 0.
    pub generation: u32,
    /// How many threads it is to have on CPUs at once.
    pub threads: u16,
    /// Its thread limit.
    #[serde(rename = "thread_limit", alias = "granted")]
    pub allowed: u16,
    /// The CPUs that cosched has bound it to; `None`: the original ones, or it is not present.
    pub cpus: Option<CpuSet>,
    /// Its weight relative to the others.
    pub weight: f64,
    /// Programs of the same group run together.
    pub group: Option<GroupId>,
    /// When it arrived, or will arrive.
    pub arrived_seconds: f64,
    /// When it was first started.
    pub started_seconds: Option<f64>,
    /// How long it was allowed to run, in all its runs.
    pub running_seconds: f64,
    /// How long it waited, in all its runs: before their starts, and frozen.
    pub waiting_seconds: f64,
    /// How long it was a filler, of the time in which it was allowed to run: it only got the CPU
    /// time that the programs in turn left.
    #[serde(default)]
    pub filler_seconds: f64,
    /// Whether it is a filler now.
    #[serde(default)]
    pub is_filler: bool,
    /// How long it has been waiting since it last ran; 0 while it runs.
    pub waiting_now_seconds: f64,
    /// CPU time that the processes of all its runs have used, on all CPUs together, where it is
    /// known. A [`Board`] knows it of complete runs only. A caller that can read the present ones
    /// adds their time.
    #[serde(default)]
    pub cpu_seconds: Option<f64>,
    /// Its fair share of the CPU time, in all its runs; `None`: it ran before the run began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_seconds: Option<f64>,
    /// How often threads were taken from a CPU, by themselves or not, in all runs. It is known
    /// where the CPU time is.
    #[serde(default)]
    pub context_switches: Option<u64>,
    /// How often it began to run (its starts and its thaws), or a turn by weight began.
    pub turns: u64,
    /// How many complete runs it has made.
    pub completions: u64,
    /// How the last complete run ended.
    pub exit: Option<Exit>,
    /// The last reason that the policy gave about it.
    pub why: Option<Why>,
    /// The slice that the policy chose last for its threads, where it chooses any.
    #[serde(default)]
    pub slice: Option<ChosenSlice>,
    /// How its threads are scheduled, where the policy tries actuators and keeps what helps.
    #[serde(default)]
    pub actuator: Option<Actuator>,
    /// The actuator that is being tried instead.
    #[serde(default)]
    pub tried: Option<Actuator>,
    /// How its threads were moved between groups of CPUs, where the policy does that.
    #[serde(default)]
    pub shuffled: Option<Shuffled>,
    /// Its progress in solo time, where the policy equalises that.
    #[serde(default)]
    pub forward: Option<Forward>,
    /// Barrier statistics over all its runs, where its threads use cosched's barriers. A [`Board`]
    /// does not know them: a caller that does adds them.
    #[serde(default, rename = "barrier_statistics", alias = "meetings")]
    pub barrier_stats: Option<BarrierStats>,
    /// Its processes that compute, the busiest first, if there are several. As with CPU time, a
    /// caller that knows them adds them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<BusyProcess>,
}

/// A process of a program that computes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BusyProcess {
    /// Its number.
    pub pid: i32,
    /// The name that the kernel has for it.
    pub name: String,
    /// How many threads it has.
    pub threads: u32,
    /// CPU time over time, of the last few seconds or since it started.
    pub cpus: f64,
}

impl Standing {
    /// How long it was allowed to run, without the time as a filler.
    pub fn turn_seconds(&self) -> f64 {
        self.running_seconds - self.filler_seconds
    }

    /// How much less CPU time it got than its fair share so far, [`lag`]; negative: more.
    pub fn lag_seconds(&self) -> Option<f64> {
        Some(to_microseconds(lag(self.share_seconds?, self.cpu_seconds?)))
    }

    /// How long it waited or was a filler.
    pub fn other_seconds(&self) -> f64 {
        self.waiting_seconds + self.filler_seconds
    }

    /// The share of its threads' time at locks, 0 to 1, by which the policy decided last, where it
    /// does.
    pub fn lock_contention(&self) -> Option<f64> {
        let of_slice = self.slice.map(|slice| slice.lock_contention);
        of_slice.or(self.shuffled.map(|shuffled| shuffled.lock_contention))
    }
}

/// A slice, and the figures that it was chosen for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChosenSlice {
    /// How long a thread may keep a CPU.
    pub slice_seconds: f64,
    /// Share of its threads' time that they waited for locks, 0 to 1.
    pub lock_contention: f64,
    /// Share of references to the last-level cache that missed, 0 to 1, where it is known.
    pub miss_ratio: Option<f64>,
    /// Share of its threads' time asleep for anything but locks, 0 to 1, where that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_wait: Option<f64>,
}

impl From<Chosen> for ChosenSlice {
    fn from(Chosen { slice, lock_contention, miss_ratio, io_wait }: Chosen) -> ChosenSlice {
        ChosenSlice { slice_seconds: slice.as_secs_f64(), lock_contention, miss_ratio, io_wait }
    }
}

/// How a program's threads were moved between groups of CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shuffled {
    /// How many threads were sorted last.
    pub threads: u16,
    /// To how many groups they are bound; 0: they are not bound.
    pub groups: u16,
    /// How often a thread was moved to another group, in all runs of the program.
    pub moves: u64,
    /// The mean share of their time at locks, 0 to 1, by which this was decided.
    pub lock_contention: f64,
}

impl Shuffled {
    /// The state after another change. Threads that were never bound stay as they are.
    fn after(before: Option<Shuffled>, change: Grouping) -> Option<Shuffled> {
        let moves = before.map_or(0, |before| before.moves);
        match change {
            Grouping::Sorted { threads, moved, groups, lock_time } => Some(Shuffled {
                threads,
                groups,
                moves: moves + u64::from(moved),
                lock_contention: lock_time,
            }),
            Grouping::Unbound { lock_time } => before.map(|before| Shuffled {
                groups: 0,
                lock_contention: lock_time.unwrap_or(before.lock_contention),
                ..before
            }),
        }
    }
}

/// A program's progress in solo time, as of the policy's last reason that gave it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Forward {
    /// Time alone that its work was worth, by its weight, since the set of programs last changed.
    pub progress_seconds: f64,
    /// Its slowdown since it arrived: time over solo time, where that is known.
    pub slowdown: Option<f64>,
    /// The share of its quanta, 0 to 1, for which its solo speed is known from a quantum with
    /// little interference.
    pub speed_known: f64,
    /// How often other programs waited so that its solo speed could be measured, in all its runs.
    pub trainings: u64,
    /// The CPU time that was left idle for these measurements.
    pub training_idle_seconds: f64,
}

impl Forward {
    /// The state after the policy has said how far the program has come.
    fn advanced(self, advance: Advance) -> Forward {
        Forward {
            progress_seconds: seconds(advance.progress),
            slowdown: advance.slowdown,
            speed_known: advance.coverage.unwrap_or(self.speed_known),
            ..self
        }
    }

    /// The state after a quantum of this length, in seconds, with this many CPUs left idle.
    fn trained(self, idle: u16, length: Option<f64>) -> Forward {
        let idle = f64::from(idle) * length.unwrap_or_default();
        Forward {
            trainings: self.trainings + 1,
            training_idle_seconds: to_microseconds(self.training_idle_seconds + idle),
            ..self
        }
    }
}

/// A program's state as seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LiveState {
    /// It has not arrived yet.
    Expected,
    /// It has arrived, and was not started yet.
    New,
    /// It is starting.
    Starting,
    /// It may run; the kernel schedules it.
    Running,
    /// It is being frozen.
    Freezing,
    /// cosched has frozen it.
    Frozen,
    /// Another process stopped it.
    StoppedByOther,
    /// It has ended, and will not arrive again.
    Ended,
}

impl LiveState {
    /// Every state, in the order of a life.
    pub const ALL: [LiveState; 8] = [
        LiveState::Expected,
        LiveState::New,
        LiveState::Starting,
        LiveState::Running,
        LiveState::Freezing,
        LiveState::Frozen,
        LiveState::StoppedByOther,
        LiveState::Ended,
    ];

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            LiveState::Expected => "expected",
            LiveState::New => "new",
            LiveState::Starting => "starting",
            LiveState::Running => "running",
            LiveState::Freezing => "freezing",
            LiveState::Frozen => "frozen",
            LiveState::StoppedByOther => "stopped-by-other",
            LiveState::Ended => "ended",
        }
    }

    /// Whether threads of the program may be on a CPU.
    pub fn may_run(self) -> bool {
        matches!(self, LiveState::Starting | LiveState::Running | LiveState::Freezing)
    }
}

impl From<ProgramState> for LiveState {
    fn from(state: ProgramState) -> LiveState {
        match state {
            ProgramState::New => LiveState::New,
            ProgramState::Starting => LiveState::Starting,
            ProgramState::Running => LiveState::Running,
            ProgramState::Freezing => LiveState::Freezing,
            ProgramState::Frozen => LiveState::Frozen,
            ProgramState::StoppedByOther => LiveState::StoppedByOther,
        }
    }
}

/// Why a line is no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum NoSnapshot {
    /// The line has another version, or is something else.
    #[error(
        "it has the schema '{0}', but only '{EARLIER_SCHEMA}' and '{SCHEMA}' can be read; use \
         the cosched that makes the run"
    )]
    OtherSchema(String),
    /// The line is not JSON, or a field is missing or wrong.
    #[error("it is damaged: {0}")]
    Damaged(#[from] serde_json::Error),
}

impl Snapshot {
    /// Whether programs take turns by weight.
    pub fn is_by_weight(&self) -> bool {
        self.programs.iter().any(|program| program.is_filler || program.filler_seconds > 0.0)
    }

    /// The snapshot as one line of JSON, without a line end.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("all keys of a snapshot's maps are strings")
    }

    /// Reads a snapshot from one line of JSON.
    ///
    /// # Errors
    /// When the line is damaged or has another schema than [`SCHEMA`].
    pub fn from_json(line: &str) -> Result<Snapshot, NoSnapshot> {
        #[derive(Deserialize)]
        struct SnapshotVersion {
            schema: String,
        }
        let version: SnapshotVersion = serde_json::from_str(line)?;
        match version.schema.as_str() {
            SCHEMA | EARLIER_SCHEMA => Ok(serde_json::from_str(line)?),
            _ => Err(NoSnapshot::OtherSchema(version.schema)),
        }
    }
}
