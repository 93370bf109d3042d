//! A run that is under way, as others may see it: one [`Snapshot`] per heartbeat.
//!
//! [`result`](crate::result) says what became of a run; a snapshot says how a run stands. It says
//! which programs run, which programs wait, how much of either each program has had, and why the
//! policy has it so. `cosched top`, the metrics and every reader of the run's socket see the same
//! snapshot. `docs/json.md` describes every field.
//!
//! Times are seconds since the run began, rounded to microseconds, from *confirmed* effects, as in
//! `run.json`; other than there they cover every run of a program, also those after it was done, so
//! that they never stand still while a program runs, and never fall. The first field names the
//! version of the schema: a field may be added within a version, never changed or removed.

mod board;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use board::{About, Board};

use crate::actuator::Actuator;
use crate::cpuset::CpuSet;
use crate::meetings::Meetings;
use crate::plan::Why;
use crate::program::{Exit, GroupId, ProgramState};
use crate::result::{seconds, to_microseconds};
use crate::treatment::Chosen;

/// The version of the schema that this crate writes and reads.
pub const SCHEMA: &str = "cosched-live/1";

/// How a run stands at a moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// [`SCHEMA`].
    pub schema: String,
    /// The process of cosched.
    pub pid: u32,
    /// The policy's name.
    pub policy: String,
    /// How threads are placed, where the policy places them.
    pub placement: Option<String>,
    /// The quantum that was asked for, where the policy has one.
    pub quantum_seconds: Option<f64>,
    /// The wall-clock time at which the run began, RFC 3339.
    pub started_at: String,
    /// When the run stood so.
    pub at_seconds: f64,
    /// The CPUs that the programs may use now.
    pub cpus: CpuSet,
    /// The present quantum, where the policy has any.
    pub quantum: Option<Quantum>,
    /// How often a decision has changed which programs run.
    pub switches: u64,
    /// How often something was not as wanted.
    pub deviations: u64,
    /// CPU time that cosched has used.
    pub own_cpu_seconds: f64,
    /// One per program, in the workload's order.
    pub programs: Vec<Standing>,
}

/// The quantum that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantum {
    /// Which round; policies without rounds count quanta.
    pub round: u64,
    /// Which gang has it, from 0.
    pub gang: u16,
    /// How many gangs the round has.
    pub gangs: u16,
    /// When it began.
    pub began_seconds: f64,
    /// How long it lasts; `None`: until something happens.
    pub length_seconds: Option<f64>,
}

/// How one program stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// Its name, unique in the workload.
    pub name: String,
    /// Where it is in its life.
    pub state: State,
    /// Which of its runs this is, from 0.
    pub generation: u32,
    /// How many threads it wants to have on CPUs at once.
    pub threads: u16,
    /// How many it was granted.
    pub granted: u16,
    /// The CPUs that cosched has bound it to; `None`: as found, or not there.
    pub cpus: Option<CpuSet>,
    /// Its share relative to the others.
    pub weight: f64,
    /// Programs of the same group run together.
    pub group: Option<GroupId>,
    /// When it came, or will come.
    pub arrived_seconds: f64,
    /// When it was first started.
    pub started_seconds: Option<f64>,
    /// How long it was allowed to run, in all its runs.
    pub running_seconds: f64,
    /// How long it waited, in all its runs: before their starts, and frozen.
    pub waiting_seconds: f64,
    /// How long it has been waiting since it last ran; 0 while it runs.
    pub waiting_now_seconds: f64,
    /// CPU time that the processes of all its runs have used, on all CPUs together, where it is
    /// known. A [`Board`] knows that of complete runs only; who can read the present ones' adds it.
    #[serde(default)]
    pub cpu_seconds: Option<f64>,
    /// How often their threads were taken from a CPU, by themselves or not; where it is known, as
    /// above.
    #[serde(default)]
    pub context_switches: Option<u64>,
    /// How often it began to run: its starts and its thaws.
    pub turns: u64,
    /// How many complete runs it has made.
    pub completions: u64,
    /// How the last of them ended.
    pub exit: Option<Exit>,
    /// The last reason that the policy gave about it.
    pub why: Option<Why>,
    /// The slice that the policy chose last for its threads, where it chooses any.
    #[serde(default)]
    pub slice: Option<ChosenSlice>,
    /// How its threads are scheduled, where the policy tries ways and keeps what helps.
    #[serde(default)]
    pub actuator: Option<Actuator>,
    /// What is being tried instead.
    #[serde(default)]
    pub tried: Option<Actuator>,
    /// How its threads were moved between groups of CPUs, where the policy does that.
    #[serde(default)]
    pub shuffled: Option<Shuffled>,
    /// How far it has come by what it would have done alone, where the policy equalises that.
    #[serde(default)]
    pub forward: Option<Forward>,
    /// What its threads did at barriers of cosched, in all its runs, where they meet at such. A
    /// [`Board`] does not know it: who has heard of it adds it.
    #[serde(default)]
    pub meetings: Option<Meetings>,
}

impl Standing {
    /// The share of its threads' time at locks that the policy has last decided by, 0 to 1, where
    /// it does.
    pub fn lock_contention(&self) -> Option<f64> {
        let of_slice = self.slice.map(|slice| slice.lock_contention);
        of_slice.or(self.shuffled.map(|shuffled| shuffled.lock_contention))
    }
}

/// A slice, and what it was chosen for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChosenSlice {
    /// How long a thread may keep a CPU.
    pub slice_seconds: f64,
    /// Share of its threads' time that they waited for locks, 0 to 1.
    pub lock_contention: f64,
    /// Share of references to the last-level cache that missed, 0 to 1; where it is known.
    pub miss_ratio: Option<f64>,
}

impl From<Chosen> for ChosenSlice {
    fn from(Chosen { slice, lock_contention, miss_ratio }: Chosen) -> ChosenSlice {
        ChosenSlice { slice_seconds: slice.as_secs_f64(), lock_contention, miss_ratio }
    }
}

/// How a program's threads were moved between groups of CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shuffled {
    /// How many threads were sorted the last time.
    pub threads: u16,
    /// To how many groups they are bound; 0: they run where the kernel likes.
    pub groups: u16,
    /// How often a thread was moved to another group, in all runs of the program.
    pub moves: u64,
    /// The mean share of their time at locks that this was decided for, 0 to 1.
    pub lock_contention: f64,
}

impl Shuffled {
    /// What is so after another reason about the program.
    fn after(before: Option<Shuffled>, why: &Why) -> Option<Shuffled> {
        let moves = before.map_or(0, |before| before.moves);
        match *why {
            Why::Shuffled { threads, moved, groups, lock_time, .. } => Some(Shuffled {
                threads,
                groups,
                moves: moves + u64::from(moved),
                lock_contention: lock_time,
            }),
            Why::Unbound { lock_time } => {
                before.map(|before| Shuffled { groups: 0, lock_contention: lock_time, ..before })
            }
            // What had proved itself before does so no more.
            Why::GroupsPutBack { groups: 0, .. } => {
                before.map(|before| Shuffled { groups: 0, ..before })
            }
            _ => before,
        }
    }
}

/// How far a program has come by what it would have done alone, as of the policy's last reason that
/// told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Forward {
    /// Time alone that its work was worth, by its weight, since the programs were last others.
    pub progress_seconds: f64,
    /// By how much it was slowed since it came: time over time alone; where that is known.
    pub slowdown: Option<f64>,
    /// The share of its quanta, 0 to 1, for which its speed alone is known from one in which it
    /// suffered little.
    pub speed_known: f64,
    /// How often others waited so that its speed alone could be measured, in all its runs.
    pub trainings: u64,
    /// The CPU time that was to be left idle for that.
    pub training_idle_seconds: f64,
}

impl Forward {
    /// What is so after another reason about the program, in a quantum of this length.
    fn after(before: Option<Forward>, why: &Why, length: Option<f64>) -> Option<Forward> {
        let old = before.unwrap_or_default();
        match *why {
            Why::LeastProgress { progress, coverage, slowdown } => Some(Forward {
                progress_seconds: seconds(progress),
                slowdown,
                speed_known: coverage,
                ..old
            }),
            Why::MoreProgress { progress, slowdown } => {
                Some(Forward { progress_seconds: seconds(progress), slowdown, ..old })
            }
            Why::Trained { idle, .. } => {
                let idle = f64::from(idle) * length.unwrap_or_default();
                Some(Forward {
                    trainings: old.trainings + 1,
                    training_idle_seconds: to_microseconds(old.training_idle_seconds + idle),
                    ..old
                })
            }
            _ => before,
        }
    }
}

/// Where a program is in its life, seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It has not come yet.
    Expected,
    /// It has come and was not started yet.
    New,
    /// It is on its way to its start.
    Starting,
    /// It may run, as far as the kernel lets it.
    Running,
    /// It is being frozen.
    Freezing,
    /// It is frozen by us.
    Frozen,
    /// Another process stopped it.
    StoppedByOther,
    /// It is about to end.
    Exiting,
    /// It has ended, and will not come again.
    Ended,
}

impl State {
    /// Every state, in the order of a life.
    pub const ALL: [State; 9] = [
        State::Expected,
        State::New,
        State::Starting,
        State::Running,
        State::Freezing,
        State::Frozen,
        State::StoppedByOther,
        State::Exiting,
        State::Ended,
    ];

    /// As it is written in JSON.
    pub fn name(self) -> &'static str {
        match self {
            State::Expected => "expected",
            State::New => "new",
            State::Starting => "starting",
            State::Running => "running",
            State::Freezing => "freezing",
            State::Frozen => "frozen",
            State::StoppedByOther => "stopped-by-other",
            State::Exiting => "exiting",
            State::Ended => "ended",
        }
    }

    /// Whether threads of the program may be on a CPU.
    pub fn may_run(self) -> bool {
        matches!(self, State::Starting | State::Running | State::Freezing)
    }
}

impl From<ProgramState> for State {
    fn from(state: ProgramState) -> State {
        match state {
            ProgramState::New => State::New,
            ProgramState::Starting => State::Starting,
            ProgramState::Running => State::Running,
            ProgramState::Freezing => State::Freezing,
            ProgramState::Frozen => State::Frozen,
            ProgramState::StoppedByOther => State::StoppedByOther,
            ProgramState::Exiting => State::Exiting,
        }
    }
}

/// Why a line is no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum NoSnapshot {
    /// It is of another version, or something else.
    #[error(
        "it has the schema '{0}', but only '{SCHEMA}' can be read; use the cosched that makes the run"
    )]
    OtherSchema(String),
    /// It is not JSON, or a field is missing or wrong.
    #[error("it is damaged: {0}")]
    Damaged(#[from] serde_json::Error),
}

impl Snapshot {
    /// The snapshot as one line of JSON, without its end.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a snapshot has no map whose keys are not strings")
    }

    /// Reads such a line.
    ///
    /// # Errors
    /// When it is damaged or has another schema than [`SCHEMA`].
    pub fn from_json(line: &str) -> Result<Snapshot, NoSnapshot> {
        #[derive(Deserialize)]
        struct Version {
            schema: String,
        }
        let version: Version = serde_json::from_str(line)?;
        match version.schema.as_str() {
            SCHEMA => Ok(serde_json::from_str(line)?),
            _ => Err(NoSnapshot::OtherSchema(version.schema)),
        }
    }
}
