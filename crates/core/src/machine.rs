//! What obeys: the seam between the engine and Linux, the simulator, or a test's fake.
//!
//! A machine knows the commands behind program ids, and how to start, freeze and bind them. It
//! decides nothing. [`Machine::submit`] takes steps and returns at once. Their effects come back
//! through [`Machine::wait`], stamped with the time at which the machine, or a helper of the
//! machine, saw them. Accounts are kept from these effects, never from what was asked for.

use crate::cause::{Aspect, Command, Refusal};
use crate::cpuset::CpuSet;
use crate::plan::{Observe, Settings, ThreadRule};
use crate::program::{Exit, GroupId, ProgramId, ThreadId, Usage};
use crate::sample::Arena;
use crate::time::Nanos;

/// Something that runs programs and can be told how.
pub trait Machine {
    /// What can go wrong beyond repair.
    type Error: std::error::Error + Send + Sync + 'static;

    /// The present.
    fn now(&self) -> Nanos;

    /// Waits until something happens or `until` is reached, and appends what happened, in order of
    /// time. Returns the present: whatever was seen before it has been told.
    ///
    /// # Errors
    /// When the machine is lost; single failed steps come back as [`Happening::Refused`].
    fn wait(&mut self, until: Nanos, out: &mut Vec<Event>) -> Result<Nanos, Self::Error>;

    /// Measures; replaces in `into` what it measured anew.
    ///
    /// # Errors
    /// When the machine is lost; what cannot be measured is marked so in the samples.
    fn read(&mut self, what: &[Observe], into: &mut Arena) -> Result<(), Self::Error>;

    /// Begins to carry out steps, in their order.
    ///
    /// # Errors
    /// When the machine is lost; single failed steps come back as [`Happening::Refused`].
    fn submit(&mut self, steps: &[Step]) -> Result<(), Self::Error>;
}

/// One thing for a machine to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Start the program, with these settings from its first instruction on.
    Start(ProgramId, Settings),
    /// Stop all its threads; answered by [`Happening::Froze`].
    Freeze(ProgramId),
    /// Let its threads run again; answered by [`Happening::Thawed`].
    Thaw(ProgramId),
    /// Change its settings; answered by [`Happening::Applied`] with the number given here.
    Apply(ProgramId, Settings, u64),
    /// Begin to measure, change how often, or stop; comes before the program's start if it can.
    Observe(Observe),
    /// Change one thread's settings; an [`Step::Apply`] of its program follows and confirms both.
    ApplyThread(ThreadId, ThreadRule),
    /// Put everything back as found, let it run, and touch it no more.
    Leave(ProgramId),
    /// Send a signal to every process of the program.
    Signal(ProgramId, Signal),
}

/// The signals that cosched sends on the user's behalf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// Please end.
    Terminate,
    /// End.
    Kill,
}

/// The signals by which the user asks for the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Interruption {
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGQUIT: Ctrl-\.
    Quit,
    /// SIGHUP: the terminal was closed.
    Hangup,
    /// SIGTERM.
    Terminate,
    /// SIGUSR1.
    User1,
    /// SIGUSR2.
    User2,
    /// SIGALRM.
    Alarm,
}

impl Interruption {
    /// The signal's name.
    pub const fn name(self) -> &'static str {
        match self {
            Interruption::Interrupt => "SIGINT",
            Interruption::Quit => "SIGQUIT",
            Interruption::Hangup => "SIGHUP",
            Interruption::Terminate => "SIGTERM",
            Interruption::User1 => "SIGUSR1",
            Interruption::User2 => "SIGUSR2",
            Interruption::Alarm => "SIGALRM",
        }
    }

    /// What programs are sent then. Only Ctrl-C has a meaning of its own for them; whatever else
    /// ends cosched is no message to a program, which may take SIGHUP or SIGUSR1 for something else
    /// than its end.
    pub const fn signal(self) -> Signal {
        match self {
            Interruption::Interrupt => Signal::Interrupt,
            _ => Signal::Terminate,
        }
    }
}

/// Something that happened on a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// When.
    pub at: Nanos,
    /// What.
    pub what: Happening,
}

/// What can happen on a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Happening {
    /// The program runs its first instruction.
    Started(ProgramId),
    /// Every thread of it is stopped.
    Froze(ProgramId),
    /// Its threads may run again.
    Thawed(ProgramId),
    /// Settings are in effect for every thread of it.
    Applied(ProgramId, u64),
    /// Its command ended, with what it used.
    Exited(ProgramId, Exit, Usage),
    /// A step, or a part of it, could not be done, or another process undid it.
    Refused(ProgramId, Aspect, Refusal),
    /// Another process stopped it.
    StoppedByOther(ProgramId),
    /// Another process let it go on.
    ContinuedByOther(ProgramId),
    /// It was found that the program must not be frozen.
    Unfreezable(ProgramId, Refusal),
    /// It was found that the program belongs to a group.
    Grouped(ProgramId, GroupId),
    /// Threads were born or ended.
    ThreadsChanged(ProgramId),
    /// A malleable program asks for threads.
    Requested {
        /// Who asks.
        program: ProgramId,
        /// How many threads it wants.
        threads: u16,
        /// Whether it waits for the answer.
        blocked: bool,
    },
    /// Other CPUs may be used from now on.
    MachineChanged(CpuSet),
    /// The user asks for something.
    Commanded(Command),
    /// The user asks for the end: the signal that came.
    Interrupted(Interruption),
}

impl Happening {
    /// The program that it is about, if it is about one.
    pub fn program(&self) -> Option<ProgramId> {
        match *self {
            Happening::Started(id)
            | Happening::Froze(id)
            | Happening::Thawed(id)
            | Happening::Applied(id, _)
            | Happening::Exited(id, ..)
            | Happening::Refused(id, ..)
            | Happening::StoppedByOther(id)
            | Happening::ContinuedByOther(id)
            | Happening::Unfreezable(id, _)
            | Happening::Grouped(id, _)
            | Happening::ThreadsChanged(id)
            | Happening::Requested { program: id, .. } => Some(id),
            Happening::MachineChanged(_) | Happening::Commanded(_) | Happening::Interrupted(_) => {
                None
            }
        }
    }
}
