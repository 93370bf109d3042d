//! The seam between the engine and Linux, the simulator, or a test's fake.
//!
//! A machine knows the commands behind program ids, and how to start, freeze and bind them. It
//! decides nothing. [`Machine::submit`] takes steps and returns at once. Their effects come back
//! through [`Machine::wait`], stamped with the time at which the machine, or a helper of the
//! machine, saw them. Accounts are kept from these effects, never from what was asked for.

use crate::cause::{Aspect, Refusal, UserCommand};
use crate::cpuset::CpuSet;
use crate::id::{ProgramId, ThreadId};
use crate::plan::{Observe, Settings, ThreadRule};
use crate::program::{Exit, GroupId, Usage};
use crate::sample::Arena;
use crate::time::Nanos;

/// Something that runs programs and carries out steps.
pub trait Machine {
    /// What can go wrong beyond repair.
    type Error: std::error::Error + Send + Sync + 'static;

    /// The present time.
    fn now(&self) -> Nanos;

    /// Waits for an event or for `until`, and appends the events in order of time. Returns the
    /// present time: all events before it have been returned.
    ///
    /// # Errors
    /// When the machine is lost; single failed steps come back as [`Happening::Refused`].
    fn wait(&mut self, until: Nanos, out: &mut Vec<Event>) -> Result<Nanos, Self::Error>;

    /// Measures, and replaces in `into` what it measured.
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

/// One step for a machine.
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
    /// Change one thread's settings. An [`Step::Apply`] of its program follows and confirms both.
    ApplyThread(ThreadId, ThreadRule),
    /// Release the program: restore its original settings, let it run, and change it no more.
    Release(ProgramId),
    /// Send a signal to every process of the program.
    Signal(ProgramId, Signal),
}

/// The signals that cosched sends for the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// A request to end.
    Terminate,
    /// Force an end.
    Kill,
}

/// The signals by which the user requests the end of a run.
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

    /// The signal that programs get then. Only Ctrl-C has a meaning of its own for them. Any other
    /// signal that ends cosched is not passed on: a program may use SIGHUP or SIGUSR1 for another
    /// purpose than its end.
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
    /// The time.
    pub at: Nanos,
    /// The event.
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
    /// Another process continued it.
    ContinuedByOther(ProgramId),
    /// The program must not be frozen, as was just found.
    Unfreezable(ProgramId, Refusal),
    /// The program belongs to a group, as was just found.
    Grouped(ProgramId, GroupId),
    /// Threads of it were born or ended.
    ThreadsChanged(ProgramId),
    /// A malleable program requests threads.
    Requested {
        /// The program that requests them.
        program: ProgramId,
        /// How many threads it requests.
        threads: u16,
        /// Whether it waits for the answer.
        blocked: bool,
    },
    /// Other CPUs may be used from now on.
    MachineChanged(CpuSet),
    /// A request of the user.
    Commanded(UserCommand),
    /// The user requests the end of the run, with this signal.
    Interrupted(Interruption),
}

impl Happening {
    /// The program of the event, if it has one.
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
