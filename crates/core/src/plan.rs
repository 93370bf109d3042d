//! What a policy wants: states, not steps.
//!
//! A plan names only what it wants changed: a program that it does not mention
//! keeps its last directive, a wake-up with a known token moves, a measurement
//! that is named again changes its period. An empty plan changes nothing. The
//! engine finds the steps that lead from what is to what is wanted; so a plan
//! is easy to test, to log, to draw and to undo.

use serde::{Deserialize, Serialize};

use crate::actuator::Actuator;
use crate::cause::{Aspect, Refusal, Token};
use crate::choice::{Ground, Manner};
use crate::cpuset::CpuSet;
use crate::program::{ProgramId, ThreadId};
use crate::sample::Measure;
use crate::time::Nanos;

/// The state that a policy wants; a buffer that the engine clears and reuses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// What is wanted of programs; each at most once.
    pub programs: Vec<(ProgramId, Directive)>,
    /// Exceptions for single threads, on top of their program's directive.
    pub threads: Vec<(ThreadId, ThreadRule)>,
    /// When to be asked again.
    pub wake: Vec<Wake>,
    /// What to measure.
    pub observe: Vec<Observe>,
    /// Why: `explain` and traces speak from these.
    pub reasons: Vec<Reason>,
}

impl Plan {
    /// Empties the plan and keeps its memory.
    pub fn clear(&mut self) {
        self.programs.clear();
        self.threads.clear();
        self.wake.clear();
        self.observe.clear();
        self.reasons.clear();
    }

    /// Wants a program to run.
    pub fn run(&mut self, program: ProgramId, settings: Settings) {
        self.programs.push((program, Directive::Run(settings)));
    }

    /// Wants a program to be frozen, or, if it has not started, not to start yet.
    pub fn freeze(&mut self, program: ProgramId) {
        self.programs.push((program, Directive::Freeze));
    }

    /// Wants to be asked again at `at`.
    pub fn wake_at(&mut self, at: Nanos, token: Token) {
        self.wake.push(Wake { token, at, first: AtExpiry::Nothing });
    }

    /// Notes why.
    pub fn because(&mut self, program: Option<ProgramId>, why: Why) {
        self.reasons.push(Reason { program, why });
    }

    /// The directive for a program, if the plan has one.
    pub fn directive(&self, program: ProgramId) -> Option<&Directive> {
        self.programs.iter().find(|(id, _)| *id == program).map(|(_, directive)| directive)
    }
}

/// What is wanted of one program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Directive {
    /// Run, with these settings.
    Run(Settings),
    /// Be frozen; a program that has not started stays unstarted.
    Freeze,
    /// Be as it was found: nothing of ours on it any more, running.
    Leave,
}

impl Directive {
    /// Whether it gives CPUs to the program, and not only what others leave.
    pub fn gives_cpus(&self) -> bool {
        matches!(self, Directive::Run(settings) if settings.turn != Some(Turn::Filler))
    }
}

/// How a program runs. `None` everywhere means: as it was found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Settings {
    /// The CPUs for all its threads.
    pub cpus: Option<CpuSet>,
    /// The number of threads that a malleable program may use: of those that a region asks for, at
    /// most so many.
    pub grant: Option<u16>,
    /// The kernel's own time slice for each thread.
    pub slice: Option<Nanos>,
    /// The scheduling class.
    pub class: Option<Class>,
    /// Steps to add to each thread's nice value; a machine that could not take them back refuses.
    pub nice: Option<i8>,
    /// Whether it has a CPU cgroup of its own, so that the kernel shares CPU by program.
    pub cpu_group: Option<bool>,
    /// Its part in taking turns by weight; needs a CPU cgroup of its own. A program that starts
    /// without a part may not get one later.
    pub turn: Option<Turn>,
}

/// A program's part in taking turns by weight, where every program runs and weights decide who gets
/// the CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Turn {
    /// Its turn: its CPU group has a very large weight.
    InTurn,
    /// It gets what the programs in turn leave: its CPU group is idle, and preempted as soon as one
    /// of their threads wakes.
    Filler,
}

impl Settings {
    /// On these CPUs, everything else as found.
    pub fn on(cpus: CpuSet) -> Settings {
        Settings { cpus: Some(cpus), ..Settings::default() }
    }

    /// Fills what is unset here from `under`: how one policy overlays another.
    pub fn over(self, under: Settings) -> Settings {
        Settings {
            cpus: self.cpus.or(under.cpus),
            grant: self.grant.or(under.grant),
            slice: self.slice.or(under.slice),
            class: self.class.or(under.class),
            nice: self.nice.or(under.nice),
            cpu_group: self.cpu_group.or(under.cpu_group),
            turn: self.turn.or(under.turn),
        }
    }
}

/// A scheduling class of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Linux' default fair class.
    Fair,
    /// Fair, without preemption on wake-up.
    Batch,
    /// Real-time round robin at this priority.
    RoundRobin(u8),
    /// Solaris' fixed-priority class at this priority (simulated kernels only).
    FixedPriority(u8),
}

/// An exception for one thread; an empty one takes an earlier one back.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ThreadRule {
    /// The thread's CPUs.
    pub cpus: Option<CpuSet>,
    /// The thread's slice.
    pub slice: Option<Nanos>,
}

/// A wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// Its name. Asking again with the same token moves the wake-up.
    pub token: Token,
    /// When; [`Nanos::NEVER`] takes it back.
    pub at: Nanos,
    /// What is done at its expiry before the policy is asked.
    pub first: AtExpiry,
}

/// What is done when a wake-up expires, before the policy is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtExpiry {
    /// Nothing.
    Nothing,
    /// Everything observed is read.
    Read,
    /// Every running program is frozen, and then everything observed is read:
    /// so samples of a quantum belong to that quantum alone.
    FreezeAndRead,
}

/// A measurement that a policy wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observe {
    /// Of which program; `None` for the machine as a whole.
    pub program: Option<ProgramId>,
    /// What.
    pub measure: Measure,
    /// How often; [`Nanos::NEVER`] for only at wake-ups that read, [`Nanos::ZERO`] to stop
    /// measuring.
    pub period: Nanos,
}

/// Why a plan is as it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// The program that it is about; `None` for the plan as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramId>,
    /// The reason.
    #[serde(flatten)]
    pub why: Why,
}

impl Why {
    /// Whether it tells of threads that a program may have, and not whether it runs.
    pub fn is_of_threads(&self) -> bool {
        matches!(self, Why::Granted { .. } | Why::TriesThreads { .. })
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
        /// Which round; policies without rounds count quanta.
        round: u64,
        /// Which gang of the round.
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
        /// Which one.
        gang: u16,
    },
    /// It fits into CPUs that the quantum would leave idle.
    Fills,
    /// It does not fit, and shares among its threads the CPUs that the quantum would leave idle.
    Lent {
        /// How many.
        cpus: u16,
    },
    /// It has the highest cache miss rate of those not yet in a gang.
    MostMisses,
    /// It has the lowest cache miss rate of those that fit beside the gang's first.
    FewestMissesThatFit,
    /// Of the gangs with room, the one in which least is lost by its coming; alone where a gang of
    /// its own is better.
    LeastLost {
        /// By how much this program is predicted to be slowed there.
        slowdown: f64,
    },
    /// It has waited longest of those that fit.
    WaitedLongest {
        /// How long.
        waited: Nanos,
    },
    /// It is slowed most of those that fit.
    SlowedMost {
        /// By how much, as far as is known: time over time alone. `None`: it has done nothing yet.
        slowdown: Option<f64>,
    },
    /// It does not fit beside those that have waited longer.
    DoesNotFit {
        /// CPUs still free when its turn came.
        free: u16,
    },
    /// It is furthest behind of those that fit, by what it would have done alone.
    LeastProgress {
        /// Time alone that it has come so far, by its weight, since the programs were last others.
        progress: Nanos,
        /// The share of its quanta for which its speed alone is known from one in which it suffered
        /// little.
        coverage: f64,
        /// By how much it was slowed since it came: time over time alone, as far as that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        slowdown: Option<f64>,
    },
    /// It is further ahead than those that run.
    MoreProgress {
        /// Time alone that it has come so far, as above.
        progress: Nanos,
        /// By how much it was slowed since it came, as above.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        slowdown: Option<f64>,
    },
    /// It is made to suffer little for a short time, so that its speed alone can be measured.
    Trained {
        /// For several quanta in sequence, since its phases cannot be predicted.
        sequential: bool,
        /// How many CPUs are left idle for it.
        idle: u16,
    },
    /// It fits beside a program that is made to suffer little.
    BesideTrained,
    /// Another program is made to suffer little, and it does not fit beside that.
    AwaitsTraining,
    /// Programs take turns by weight, and it has none: it gets what the programs in turn leave.
    Filler,
    /// It may not be frozen, so it always runs.
    NeverFrozen,
    /// The quantum is shorter than asked, so that no program is frozen longer than allowed.
    QuantumShortened {
        /// What was asked.
        asked: Nanos,
        /// What is given.
        given: Nanos,
    },
    /// This is the slice for its threads, for the time that they wait for locks or memory; whether
    /// they get it follows from how they are scheduled.
    Slice {
        /// How long a thread may keep a CPU.
        slice: Nanos,
        /// Share of its threads' time that they waited for locks, 0 to 1.
        lock_contention: f64,
        /// Share of references to the last-level cache that missed, 0 to 1; where it is known.
        miss_ratio: Option<f64>,
        /// Whether that share is not measured now, but what is known of the program from runs
        /// alone.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        profiled: bool,
    },
    /// Its threads are scheduled this way from now on, without a trial: nothing else is to be
    /// tried, or everything is to be tried from here.
    Given {
        /// How.
        actuator: Actuator,
    },
    /// Earlier runs of the program, or repetitions in this one, have shown this to be best: it is
    /// not tried again for now.
    Recalled {
        /// What is in force from now on.
        actuator: Actuator,
    },
    /// It is being tried whether the program is faster this way; it goes to and fro between this
    /// and how it was.
    Tried {
        /// What is tried.
        actuator: Actuator,
        /// What it is compared with.
        against: Actuator,
    },
    /// A way was tried, and the program is left with it.
    Kept {
        /// What was tried.
        actuator: Actuator,
        /// Progress with it against progress without: above 1 is faster.
        progress: f64,
    },
    /// A way was tried, and the program is as it was before.
    PutBack {
        /// What was tried.
        actuator: Actuator,
        /// Progress with it against progress without: below 1 is slower.
        progress: f64,
        /// How long nothing is tried again, unless the program changes.
        pause: Nanos,
    },
    /// It gets so many threads in its parallel regions from now on.
    Granted {
        /// How many.
        threads: u16,
        /// How many it asks for.
        asked: u16,
        /// How fast it is with them, relative to all that it asks for, as far as both are known.
        speed: Option<f64>,
    },
    /// It is being tried how fast it is with so many threads.
    TriesThreads {
        /// How many.
        threads: u16,
        /// How many it asks for.
        asked: u16,
    },
    /// Its threads were sorted by how long they wait at locks, and those that wait alike share a
    /// socket from now on.
    Shuffled {
        /// How many were sorted.
        threads: u16,
        /// How many of them go to another socket than the one that they were on.
        moved: u16,
        /// Over how many sockets.
        groups: u16,
        /// The mean share of their time at locks, 0 to 1.
        lock_time: f64,
        /// How far the threads of a socket were apart, as a share of their time; misses per second
        /// where they are sorted by these.
        before: f64,
        /// The same with the new groups.
        after: f64,
    },
    /// It is being tried whether the program is faster with its threads sorted into groups; it goes
    /// to and fro between that and how they were.
    GroupsTried {
        /// How many threads would be in a group.
        threads: u16,
        /// Over how many sockets.
        groups: u16,
    },
    /// Earlier runs of the program, or repetitions in this one, have shown whether such groups help
    /// it: that is not tried again for now.
    GroupsRecalled {
        /// Whether they do; then they are in force from now on.
        helped: bool,
    },
    /// Groups were tried, and the program is left with them.
    GroupsKept {
        /// Progress with them against progress without: above 1 is faster.
        progress: f64,
    },
    /// Groups were tried, and its threads are as they were before.
    GroupsPutBack {
        /// To how many groups they are bound; 0: they run where the kernel likes.
        groups: u16,
        /// Progress with the groups against progress without: below 1 is slower.
        progress: f64,
        /// How long no groups are tried again, unless the program changes.
        pause: Nanos,
    },
    /// Its threads hardly wait at locks any more, and run where the kernel likes from now on.
    Unbound {
        /// The mean share of their time at locks, 0 to 1.
        lock_time: f64,
    },
    /// This is how the programs are run from now on.
    Chosen {
        /// How.
        manner: Manner,
        /// Why.
        ground: Ground,
        /// How many CPUs they kept busy outside the kernel together, when that was last measured.
        side_by_side: Option<f64>,
        /// How many they keep busy in turns, or are expected to by what each did alone.
        in_gangs: Option<f64>,
        /// What finding out has cost so far: CPU time that was lost by it, as time of the whole
        /// machine.
        explored: Nanos,
    },
    /// It was started with fewer threads than it would have, since by runs alone the last program
    /// ends sooner so.
    Molded {
        /// How many it has.
        threads: u16,
        /// How many it would have.
        asked: u16,
    },
    /// Wherever the others go, its CPUs are far apart from now on, since it lives from memory.
    Spread {
        /// Its last-level cache misses per 1000 instructions.
        misses: f64,
    },
    /// Each runs alone for a moment, to see how many CPUs it keeps busy.
    LooksAtEach {
        /// How long a moment is.
        moment: Nanos,
        /// How many there are.
        moments: u16,
    },
    /// It hardly uses CPUs, so it always runs.
    HardlyRuns,
    /// The machine could not do what the plan wanted.
    Deviation {
        /// What could not be had.
        wanted: Aspect,
        /// Why.
        refusal: Refusal,
    },
    /// A reason that only earlier versions of cosched had.
    #[serde(other)]
    Earlier,
}
