//! What a policy requests: states, not steps.
//!
//! A plan names only changes. A program that it does not name keeps its last directive, a wake-up
//! with a known token moves, and a measurement that is named again changes its period. An empty
//! plan changes nothing. The engine finds the steps from the present state to the desired one. A
//! plan is therefore easy to test, to log, to draw and to undo.

use serde::{Deserialize, Serialize};

use crate::cause::Token;
use crate::cpuset::CpuSet;
use crate::id::{ProgramId, ThreadId};
use crate::output::{Output, Quantum};
use crate::reason::{Reason, Why};
use crate::sample::Measure;
use crate::time::Nanos;
use crate::turn::Turn;

/// The desired state; a buffer that the engine clears and reuses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The directives of programs; each program at most once.
    pub programs: Vec<(ProgramId, Directive)>,
    /// Exceptions for single threads, on top of their program's directive.
    pub threads: Vec<(ThreadId, ThreadRule)>,
    /// The wake-ups: when to call the policy again.
    pub wake: Vec<Wake>,
    /// What to measure.
    pub observe: Vec<Observe>,
    /// The reasons: `explain` and traces use these.
    pub reasons: Vec<Reason>,
    /// The positions of reasons about a program's threads. The reason for which the program runs or
    /// waits stays in force.
    pub asides: Vec<usize>,
    /// The positions of reasons that users who follow the run want to know at once.
    pub news: Vec<usize>,
    /// What the policy has done, for other parts of cosched.
    pub outputs: Vec<(ProgramId, Output)>,
    /// The quantum that begins.
    pub quantum: Option<Quantum>,
}

impl Plan {
    /// Empties the plan and keeps its memory.
    pub fn clear(&mut self) {
        self.programs.clear();
        self.threads.clear();
        self.wake.clear();
        self.observe.clear();
        self.reasons.clear();
        self.asides.clear();
        self.news.clear();
        self.outputs.clear();
        self.quantum = None;
    }

    /// Requests that a program runs.
    pub fn run(&mut self, program: ProgramId, settings: Settings) {
        self.programs.push((program, Directive::Run(settings)));
    }

    /// Requests that a program is frozen, or, if it has not started, not to start yet.
    pub fn freeze(&mut self, program: ProgramId) {
        self.programs.push((program, Directive::Freeze));
    }

    /// Requests a wake-up at `at`.
    pub fn wake_at(&mut self, at: Nanos, token: Token) {
        self.wake.push(Wake { token, at, first: AtExpiry::Nothing });
    }

    /// Requests measurements of a program, or, with a period of zero, their end.
    pub fn measure(
        &mut self,
        program: ProgramId,
        measures: impl IntoIterator<Item = Measure>,
        period: Nanos,
    ) {
        let observe = |measure| Observe { program: Some(program), measure, period };
        self.observe.extend(measures.into_iter().map(observe));
    }

    /// Adds a reason.
    pub fn because(&mut self, program: Option<ProgramId>, why: impl Into<Why>) {
        self.reasons.push(Reason { program, why: why.into() });
    }

    /// Adds a reason about a program's threads, and not about whether it runs.
    pub fn aside(&mut self, program: ProgramId, why: impl Into<Why>) {
        self.asides.push(self.reasons.len());
        self.because(Some(program), why);
    }

    /// Adds a reason for the plan as a whole that users who follow the run want to know at once.
    pub fn announce(&mut self, why: impl Into<Why>) {
        self.news.push(self.reasons.len());
        self.because(None, why);
    }

    /// Says what was done with a program.
    pub fn output(&mut self, program: ProgramId, output: Output) {
        self.outputs.push((program, output));
    }

    /// Says that a quantum begins, with that as a reason.
    pub fn begin(&mut self, quantum: Quantum) {
        self.quantum = Some(quantum);
        self.because(None, quantum);
    }

    /// The directive for a program, if the plan has one.
    pub fn directive(&self, program: ProgramId) -> Option<&Directive> {
        self.programs.iter().find(|(id, _)| *id == program).map(|(_, directive)| directive)
    }
}

/// The state that a plan requests for one program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Directive {
    /// Run, with these settings.
    Run(Settings),
    /// Be frozen; a program that has not started stays unstarted.
    Freeze,
    /// Be released: run with the original settings.
    Release,
}

impl Directive {
    /// Whether it gives CPUs to the program, and not only CPU time that other programs leave.
    pub fn gives_cpus(&self) -> bool {
        matches!(self, Directive::Run(settings) if settings.turn != Some(Turn::Filler))
    }
}

/// How a program runs. `None` everywhere means the original settings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Settings {
    /// The CPUs for all its threads.
    pub cpus: Option<CpuSet>,
    /// The thread limit of a malleable program: a region gets at most this many of the threads that
    /// it requests.
    pub thread_limit: Option<u16>,
    /// The kernel's own time slice for each thread.
    pub slice: Option<Nanos>,
    /// The scheduling class.
    pub class: Option<Class>,
    /// Steps to add to each thread's nice value; a machine that could not take them back refuses.
    pub nice: Option<i8>,
    /// Whether it has a CPU cgroup of its own, so that the kernel shares CPU time by program.
    pub cpu_group: Option<bool>,
    /// Its part in taking turns by weight; needs a CPU cgroup of its own. A program that starts
    /// without a part may not get one later.
    pub turn: Option<Turn>,
}

impl Settings {
    /// Settings with these CPUs, and the original settings otherwise.
    pub fn on(cpus: CpuSet) -> Settings {
        Settings { cpus: Some(cpus), ..Settings::default() }
    }

    /// Takes what is unset here from `under`: one policy overlays another.
    pub fn over(self, under: Settings) -> Settings {
        Settings {
            cpus: self.cpus.or(under.cpus),
            thread_limit: self.thread_limit.or(under.thread_limit),
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

/// An exception for one thread; an empty one revokes an earlier one.
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
    /// Its name. A second request with the same token moves the wake-up.
    pub token: Token,
    /// The time; [`Nanos::NEVER`] revokes it.
    pub at: Nanos,
    /// What is done at its expiry before the policy is called.
    pub first: AtExpiry,
}

/// What is done when a wake-up expires, before the policy is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtExpiry {
    /// Nothing.
    Nothing,
    /// Everything observed is read.
    Read,
    /// Every running program is frozen, and then everything observed is read. Samples of a quantum
    /// therefore belong to that quantum alone.
    FreezeAndRead,
}

/// A measurement that a policy requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observe {
    /// The program; `None` for the machine as a whole.
    pub program: Option<ProgramId>,
    /// The kind of measurement.
    pub measure: Measure,
    /// How often; [`Nanos::NEVER`] for only at wake-ups that read, [`Nanos::ZERO`] to stop
    /// measuring.
    pub period: Nanos,
}
