//! What happened: the reasons for which a policy is asked to decide.

use serde::{Deserialize, Serialize};

use crate::id::ProgramId;
use crate::program::Exit;

/// Names a wake-up; the number is the policy's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Token(pub u32);

/// Something that a policy may answer with a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cause {
    /// A program arrived. It is [`New`](crate::ProgramState::New) until the policy lets it run.
    Arrived(ProgramId),
    /// A program ended; it is no longer in the world.
    Exited(ProgramId, Exit),
    /// Threads of a program were born or ended (sent only where threads are observed).
    ThreadsChanged(ProgramId),
    /// Another process continued a program that another process had stopped.
    Continued(ProgramId),
    /// A program was found to belong to another group than before.
    Grouped(ProgramId),
    /// CPUs were added or removed, or may no longer be used.
    MachineChanged,
    /// A wake-up that the policy requested. What was to be done at its expiry is done.
    Woke(Token),
    /// New samples of a program are in the world.
    Sampled(ProgramId),
    /// A malleable program requests threads at the start of a parallel region.
    Requested {
        /// The program that requests them.
        program: ProgramId,
        /// How many threads it requests.
        threads: u16,
        /// Whether it waits for the answer.
        blocked: bool,
    },
    /// A directive is in full effect.
    Settled {
        /// The program of the directive.
        program: ProgramId,
        /// The number of the directive: [`Program::epoch`](crate::Program::epoch) if it is the
        /// latest.
        epoch: u64,
    },
    /// The machine could not do what the plan says, or another process undid it.
    Deviated {
        /// The program of the directive.
        program: ProgramId,
        /// The part of the directive that is not in effect.
        what: Aspect,
        /// The cause.
        why: Refusal,
    },
    /// The user requested something, and the engine has done its part of it.
    Commanded(UserCommand),
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

/// Why a part of a plan is not in effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// The kernel did not confirm it in time (a thread in uninterruptible sleep, say).
    TimedOut,
    /// The program was frozen for as long as it may be.
    FrozenTooLong,
    /// cosched itself did not run. Either it was stopped, and its guard process thawed the program
    /// meanwhile; or it got no CPU for longer than any program may be frozen.
    CoschedStopped,
    /// No sentinel would thaw the program if cosched died.
    Unguarded,
    /// A permission is missing.
    NotPermitted,
    /// This kernel or machine cannot do it.
    NotSupported,
    /// The value is outside of what the kernel allows. The nearest allowed value is used instead.
    OutOfRange,
    /// Threads of the program are in a real-time class, which the user has chosen for them.
    RealTime,
    /// The program may use none of the CPUs in the plan.
    NoCpuLeft,
    /// The program is being traced by a debugger.
    Traced,
    /// The program holds a GPU device.
    HoldsGpu,
    /// The program listens on a socket.
    Listens,
    /// The program reads a terminal.
    HoldsTerminal,
    /// The program waits in a call that a pause would end early, and catches no signal.
    WaitsForEvents,
    /// The program waits for processes that stop or continue, and pauses by signals stop its own.
    WaitsForStops,
    /// A process of the program stops itself when its child is stopped, and pauses by signals stop
    /// that one.
    StopsItself,
    /// A process that computes catches SIGCONT, and would see pauses by signals.
    CatchesContinue,
    /// A process of the program has moved to a cgroup of others.
    LeftCgroup,
    /// The user said that the program must not be frozen.
    UserSaysNo,
    /// Another program of its group runs.
    GroupRuns,
    /// Another process stopped it.
    StoppedByOther,
    /// Another process changed it without cosched's knowledge.
    ChangedByOther,
}

/// What a user may request of a running instance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum UserCommand {
    /// Restore the original settings of this program and detach it. It is no longer in the world.
    Detach(ProgramId),
    /// Give this program another weight.
    Weight(ProgramId, f64),
}
