//! The reasons that policies give for their plans: data that is recorded, and put into words by
//! `cosched-report`. Nothing is decided by them: see [`Output`](crate::Output).

use serde::{Deserialize, Serialize};

use crate::actuator::Actuator;
use crate::cause::{Aspect, Refusal};
use crate::choice::{Mode, ReasonCode};
use crate::program::ProgramId;
use crate::time::Nanos;

/// A reason for a plan.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// The program of the reason; `None` for the plan as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramId>,
    /// The reason.
    #[serde(flatten)]
    pub why: Why,
}

impl Why {
    /// Whether it is about the program's threads, and not about whether it runs.
    pub fn is_of_threads(&self) -> bool {
        matches!(self, Why::LimitsThreads { .. } | Why::TriesThreads { .. })
    }
}

/// The kinds of reasons.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum Why {
    /// The policy leaves everything to the kernel.
    LeftToKernel,
    /// It is this program's turn: no other program runs until it ends.
    Turn,
    /// It waits for its turn behind `ahead` programs.
    Queued {
        /// How many programs come before it.
        ahead: u16,
    },
    /// A quantum begins.
    Quantum {
        /// The number of the round; policies without rounds count quanta.
        round: u64,
        /// The gang of the round.
        gang: u16,
        /// How many gangs the round has.
        gangs: u16,
        /// How long it lasts.
        length: Nanos,
    },
    /// The program is in the gang that has the quantum.
    InGang,
    /// The program's gang has another quantum.
    OtherGang {
        /// The gang that has it.
        gang: u16,
    },
    /// It backfills CPUs that the quantum would leave idle.
    #[serde(alias = "fills")]
    Backfills,
    /// It does not fit, and its threads share the CPUs that the quantum would leave idle.
    #[serde(alias = "lent")]
    SharesBackfill {
        /// How many CPUs.
        cpus: u16,
    },
    /// It has the highest cache miss rate of those not yet in a gang.
    MostMisses,
    /// It has the lowest cache miss rate of those that fit together with the gang's first.
    FewestMissesThatFit,
    /// It loses the least in this gang, of the gangs with room. It is alone where a gang of its own
    /// is better.
    LeastLost {
        /// Its predicted slowdown there.
        slowdown: f64,
    },
    /// It has waited longest of those that fit.
    WaitedLongest {
        /// Its waiting time.
        waited: Nanos,
        /// What the waiting time is multiplied by, if weights count and it is not 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        weight: Option<f64>,
    },
    /// It has the highest slowdown of those that fit.
    SlowedMost {
        /// Its slowdown as far as is known: time over solo time. `None`: it has not worked yet.
        slowdown: Option<f64>,
    },
    /// It does not fit together with those that have waited longer.
    DoesNotFit {
        /// CPUs still free when its turn came.
        free: u16,
    },
    /// It has the least progress, in solo time, of those that fit.
    LeastProgress {
        /// Its progress in solo time, by its weight, since the set of programs last changed.
        progress: Nanos,
        /// The share of its quanta for which its solo speed is known from a quantum with little
        /// interference.
        coverage: f64,
        /// Its slowdown since it arrived: time over solo time, as far as that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        slowdown: Option<f64>,
    },
    /// It has more progress than the programs that run.
    MoreProgress {
        /// Its progress in solo time, by its weight, since the set of programs last changed.
        progress: Nanos,
        /// Its slowdown since it arrived: time over solo time, as far as that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        slowdown: Option<f64>,
    },
    /// It runs with little interference for a short time, so that its solo speed can be measured.
    Trained {
        /// Whether this lasts for several quanta, because its phases cannot be predicted.
        sequential: bool,
        /// How many CPUs are left idle for it.
        idle: u16,
    },
    /// It fits together with a program that is to have little interference.
    #[serde(alias = "beside-trained")]
    WithTrained,
    /// Another program is to have little interference, and this one does not fit together with it.
    AwaitsTraining,
    /// Programs take turns by weight, and it has no turn: it gets what the programs in turn leave.
    Filler,
    /// It may not be frozen, so it always runs.
    NeverFrozen,
    /// The quantum is shorter than requested, so that no program is frozen longer than allowed.
    QuantumShortened {
        /// The requested length.
        #[serde(alias = "asked")]
        requested: Nanos,
        /// The length in effect.
        given: Nanos,
    },
    /// A slice was chosen for its threads, by the time that they wait for locks or memory. How they
    /// are scheduled decides whether they get it.
    Slice {
        /// How long a thread may keep a CPU.
        slice: Nanos,
        /// Share of its threads' time that they waited for locks, 0 to 1.
        lock_contention: f64,
        /// Share of references to the last-level cache that missed, 0 to 1, where it is known.
        miss_ratio: Option<f64>,
        /// Whether the miss ratio is not measured now, but known from solo runs.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        profiled: bool,
    },
    /// Its threads use this actuator from now on, without a trial: there is no other one to try, or
    /// others are to be tried against it.
    Given {
        /// The actuator.
        actuator: Actuator,
    },
    /// Earlier runs of the program, or repetitions in this one, have shown this actuator to be
    /// best. It is not tried again for now.
    Recalled {
        /// The actuator that is in force from now on.
        actuator: Actuator,
    },
    /// A trial has begun of whether the program is faster with this actuator. The program
    /// alternates between it and the one before.
    Tried {
        /// The actuator on trial.
        actuator: Actuator,
        /// The actuator that it is compared with.
        against: Actuator,
    },
    /// A trial has ended, and its actuator stays in force.
    Kept {
        /// The actuator that was tried.
        actuator: Actuator,
        /// Progress with it against progress without: above 1 is faster.
        progress: f64,
    },
    /// A trial has ended, and the actuator of before is in force again.
    PutBack {
        /// The actuator that was tried.
        actuator: Actuator,
        /// Progress with it against progress without: below 1 is slower.
        progress: f64,
        /// How long nothing is tried again, unless the program changes.
        pause: Nanos,
    },
    /// The thread limit of its parallel regions from now on.
    #[serde(alias = "granted")]
    LimitsThreads {
        /// The limit.
        threads: u16,
        /// How many threads it requests.
        #[serde(alias = "asked")]
        requested: u16,
        /// Its speed with them, relative to the speed with all that it requests, as far as both are
        /// known.
        speed: Option<f64>,
    },
    /// A trial has begun of its speed with this many threads.
    TriesThreads {
        /// How many threads.
        threads: u16,
        /// How many threads it requests.
        #[serde(alias = "asked")]
        requested: u16,
    },
    /// Its threads were sorted by how long they wait at locks. Threads that wait alike share a
    /// socket from now on.
    Shuffled {
        /// How many threads were sorted.
        threads: u16,
        /// How many of these threads change their socket.
        moved: u16,
        /// The number of sockets.
        groups: u16,
        /// The mean share of their time at locks, 0 to 1.
        lock_time: f64,
        /// The spread of the threads of a socket before, as a share of their time; in misses per
        /// second where they are sorted by these.
        before: f64,
        /// The spread with the new groups.
        after: f64,
    },
    /// A trial has begun of whether the program is faster with its threads sorted into groups. The
    /// program alternates between these groups and the placement before.
    GroupsTried {
        /// How many threads would be in a group.
        threads: u16,
        /// The number of sockets.
        groups: u16,
    },
    /// Earlier runs of the program, or repetitions in this one, have shown whether such groups help
    /// it. They are not tried again for now.
    GroupsRecalled {
        /// Whether they help; then they are in force from now on.
        helped: bool,
    },
    /// A trial of groups has ended, and they stay in force.
    GroupsKept {
        /// Progress with them against progress without: above 1 is faster.
        progress: f64,
    },
    /// A trial of groups has ended, and the placement of before is in force again.
    GroupsPutBack {
        /// To how many groups its threads are bound; 0: they are not bound.
        groups: u16,
        /// Progress with the groups against progress without: below 1 is slower.
        progress: f64,
        /// How long no groups are tried again, unless the program changes.
        pause: Nanos,
    },
    /// Its threads hardly wait at locks any more, and are not bound from now on.
    Unbound {
        /// The mean share of their time at locks, 0 to 1.
        lock_time: f64,
    },
    /// The mode in which programs run from now on.
    Chosen {
        /// The mode.
        #[serde(alias = "manner")]
        mode: Mode,
        /// The reason code.
        #[serde(alias = "ground")]
        reason_code: ReasonCode,
        /// How many CPUs they kept busy outside the kernel when running together, as measured last.
        #[serde(alias = "side_by_side")]
        corun: Option<f64>,
        /// How many they keep busy when taking turns, or are expected to by their solo probes.
        #[serde(alias = "in_gangs")]
        gangs: Option<f64>,
        /// The cost of measuring so far: CPU time that was lost to it, as time of the whole
        /// machine.
        explored: Nanos,
    },
    /// It was started with fewer threads than it requests. By solo runs, the last program ends
    /// sooner this way.
    Molded {
        /// How many threads it has.
        threads: u16,
        /// How many threads it requests.
        #[serde(alias = "asked")]
        requested: u16,
    },
    /// Its CPUs are spread over caches from now on, because it is memory-bound.
    Spread {
        /// Its last-level cache misses per 1000 instructions.
        misses: f64,
    },
    /// Each program has a solo probe, which shows how many CPUs it keeps busy.
    #[serde(alias = "looks-at-each")]
    SoloProbes {
        /// The length of a probe.
        #[serde(alias = "moment")]
        length: Nanos,
        /// The number of probes.
        #[serde(alias = "moments")]
        probes: u16,
    },
    /// It hardly uses CPUs, so it always runs.
    HardlyRuns,
    /// The machine could not do what the plan says.
    Deviation {
        /// The part of the directive that is not in effect.
        #[serde(alias = "wanted")]
        what: Aspect,
        /// The cause.
        refusal: Refusal,
    },
    /// A reason that only earlier versions of cosched had.
    #[serde(other)]
    Earlier,
}
