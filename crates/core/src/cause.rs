//! What happened: the reasons for which a policy is asked to decide.

use serde::{Deserialize, Serialize};

use crate::program::{Exit, ProgramId};

/// Names a wake-up; the number is the policy's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Token(pub u32);

/// Something that a policy may want to answer with a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cause {
    /// A program came. It is [`New`](crate::ProgramState::New) until the policy lets it run.
    Arrived(ProgramId),
    /// A program ended; it is no longer in the world.
    Exited(ProgramId, Exit),
    /// Threads of a program were born or ended (told only where threads are observed).
    ThreadsChanged(ProgramId),
    /// Another process continued a program that another process had stopped.
    Continued(ProgramId),
    /// A program was found to belong to another group than before.
    Grouped(ProgramId),
    /// CPUs came, went, or changed hands.
    MachineChanged,
    /// A wake-up that the policy asked for; what it asked to have done at its expiry is done.
    Woke(Token),
    /// New samples of a program are in the world.
    Sampled(ProgramId),
    /// A malleable program asks for threads at the start of a parallel region.
    Requested {
        /// Who asks.
        program: ProgramId,
        /// How many threads it wants.
        threads: u16,
        /// Whether it waits for the answer.
        blocked: bool,
    },
    /// A directive is in full effect.
    Settled {
        /// Whose directive.
        program: ProgramId,
        /// The number of the directive: [`Program::epoch`](crate::Program::epoch) if it is the
        /// latest.
        epoch: u64,
    },
    /// The machine could not do what was wanted, or another process undid it.
    Deviated {
        /// Whose directive.
        program: ProgramId,
        /// What could not be had.
        wanted: Aspect,
        /// Why.
        why: Refusal,
    },
    /// The user asked for something, and the engine has done its part of it.
    Commanded(Command),
}

/// A part of a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aspect {
    /// Being frozen.
    Frozen,
    /// Running.
    Running,
    /// The CPUs.
    Cpus,
    /// The kernel's time slice.
    Slice,
    /// The scheduling class.
    Class,
    /// The nice value.
    Nice,
    /// A CPU cgroup of its own.
    CpuGroup,
    /// Its part in taking turns by weight.
    Turn,
    /// The thread count.
    Threads,
}

/// Why something that a plan wanted is not so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// The kernel did not confirm it in time (a thread in uninterruptible sleep, say).
    TimedOut,
    /// The program was frozen for as long as any program may be.
    FrozenTooLong,
    /// cosched itself did not run. Either it was stopped, and what watches over it let the program
    /// run meanwhile; or it got no CPU for longer than any program may be frozen.
    CoschedStopped,
    /// A right is missing.
    NotPermitted,
    /// This kernel or machine cannot do it.
    NotSupported,
    /// It is more, or less, than the kernel grants; the nearest that it grants is given instead.
    OutOfRange,
    /// Threads of the program are in a real-time class, which the user has chosen for them.
    RealTime,
    /// None of the wanted CPUs is allowed to the program.
    NoCpuLeft,
    /// The program is being traced by a debugger.
    Traced,
    /// The program holds a GPU device.
    HoldsGpu,
    /// The program listens on a socket.
    Listens,
    /// The program reads a terminal.
    HoldsTerminal,
    /// The user said that the program must not be frozen.
    UserSaysNo,
    /// It must run together with a program that runs.
    GroupRuns,
    /// Another process stopped it.
    StoppedByOther,
    /// Another process changed it without cosched's knowledge.
    ChangedByOther,
}

/// What a user may ask of a running instance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Command {
    /// Put everything of this program back as found and let it go: it is no longer in the world.
    Detach(ProgramId),
    /// Give this program another share.
    Weight(ProgramId, f64),
}
