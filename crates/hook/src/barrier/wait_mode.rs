//! How to wait: what a thread does that has arrived and finds others missing.
//!
//! A thread that spins keeps a CPU that a missing thread may be waiting for. A thread that sleeps
//! has to be woken, which takes longer than most barriers. In the paper on Tidon, a waiter donates
//! its time to a preempted *laggard*, a thread that has not arrived, by a new system call
//! (algorithm 3). On a stock kernel a thread cannot name its successor, but it can leave its CPU.
//! The CPU then goes to a thread in its queue or, if there is none, to one that the kernel fetches
//! from another queue. [`WaitMode::Donate`] chooses by what the laggards do.
//!
//! | laggards | waiter |
//! |---|---|
//! | all run | spins for four wake-ups, then sleeps |
//! | nothing is known of one | spins while that paid lately, for one wake-up at most, then sleeps |
//! | one was woken, or preempted, and waits for another CPU | as where nothing is known |
//! | one is blocked | sleeps |
//! | one is queued for this CPU | sleeps: its turn may be next |
//! | one is queued for this CPU, grouped | yields to it, for four wake-ups at most, then sleeps |
//! | one is queued anywhere, directed | gives it this CPU |
//!
//! *Grouped*: in a program with a CPU group of its own. *Directed*: in a program that cosched's
//! scheduler in the kernel has (`--scheduler ext`). There a thread can name its successor.
//!
//! Where several rows hold, the lowest counts. All bounds are multiples of the cost of a wake-up,
//! as measured lately by the woken threads. Spinning for one wake-up costs at most twice as much as
//! knowing how long the wait will be. Together with a program that computes, spinning is nearly
//! always in vain, and is then soon given up ([`SpinLimits`]).
//!
//! The paper's waiter never sleeps: it donates and checks again (line 10), and stays in the queue.
//! The nearest thing here, `sched_yield`, gives the CPU to the next thread in the queue. Together
//! with a program that computes, that is a thread of that program, for a whole slice. A thread that
//! sleeps instead is put in front of it when woken. Where the program has a CPU group of its own,
//! the next thread is another thread of the program. Yielding then does all that the paper requires
//! for. Where the program is directed, a waiter does as the paper's: [`WaitMode::Donate`] names a
//! laggard of its barrier that it knows to be queued, and [`WaitMode::Tidon`] leaves the choice to
//! the kernel, by the status of each thread (BAPS, section 3.1).
//!
//! [`WaitMode::LoadControl`] knows nothing of laggards, but the load of the machine: the rival of
//! the paper on faithful scheduling (its section VI, on Johnson, Stoica, Ailamaki and Mowry:
//! Decoupling contention management from scheduling, 2010). As many waiters sleep as the machine
//! has surplus threads, and all others spin. cosched looks at the load, and publishes the *sleep
//! slots* ([`cosched_page::Page::in_slot`]). A sleeper checks for its slot after each look of
//! cosched's, so that it spins again once the load falls.

/// How a thread waits at a barrier. All but [`WaitMode::Donate`] exist for comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitMode {
    /// Spins until the end.
    Spin,
    /// Sleeps at once.
    Block,
    /// Spins for [`SPIN`], then sleeps.
    SpinThenBlock,
    /// Yields its CPU, and checks again.
    Yield,
    /// By what the laggards do.
    Donate,
    /// As [`WaitMode::Donate`], but threads that wait behind each other on one CPU separate
    /// ([`stack`](super::stack)). This is faster on a machine that is idle except for a few
    /// threads, and slower on a busy one (`docs/research/barrier.md`).
    Spread,
    /// As in the paper: tells the kernel that it has arrived, and gives its CPU to any laggard that
    /// the kernel finds queued, again and again. Without that scheduler, as [`WaitMode::Yield`].
    Tidon,
    /// Sleeps where the machine has more runnable threads than CPUs, and spins elsewhere.
    LoadControl,
}

/// How long [`WaitMode::SpinThenBlock`] spins, ns.
pub(crate) const SPIN: u64 = 100_000;

/// How long a waiter may spin, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpinLimits {
    /// Where every laggard runs.
    pub(crate) running: u64,
    /// Where the state of a laggard is not known.
    pub(crate) unknown: u64,
}

/// What the laggards do, the most significant last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Laggards {
    /// All are on their CPUs.
    Run,
    /// Nothing is known of one laggard.
    Unknown,
    /// One was just woken, and waits for another CPU.
    WokenElsewhere,
    /// One was preempted, and waits for another CPU.
    QueuedElsewhere,
    /// One waits for something else.
    Blocked,
    /// One waits for the CPU of the calling thread.
    QueuedHere,
    /// One waits for the CPU of the calling thread, and only threads of this program come before
    /// it.
    NextHere,
    /// One is queued, and can have the CPU of the calling thread.
    CanHave,
}

/// What a waiter does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaiterAction {
    /// Keeps spinning.
    Spin,
    /// Yields to another thread that is queued for this CPU.
    Yield,
    /// Gives its CPU to a laggard.
    Donate,
    /// Gives its CPU to any laggard that the kernel finds queued.
    DonateToAny,
    /// Goes to a CPU with fewer siblings, if that is worth it, or sleeps.
    Spread,
    /// Goes to a laggard's CPU, if that is worth it, and sleeps.
    Join,
    /// Sleeps until the last has arrived.
    Sleep,
    /// Sleeps until the last has arrived, or for one look at the load, if a slot is free; else
    /// keeps spinning.
    SleepInSlot,
}

impl WaitMode {
    #[rustfmt::skip]
    const NAMES: [(&'static str, WaitMode); 8] = [
        ("spin", WaitMode::Spin),
        ("block", WaitMode::Block),
        ("spin-then-block", WaitMode::SpinThenBlock),
        ("yield", WaitMode::Yield),
        ("donate", WaitMode::Donate),
        ("donate-spread", WaitMode::Spread),
        ("tidon", WaitMode::Tidon),
        ("load-control", WaitMode::LoadControl),
    ];

    /// The number of the wait mode of this name.
    pub(crate) fn number(name: &[u8]) -> Option<u8> {
        WaitMode::NAMES
            .iter()
            .zip(0..)
            .find(|((known, _), _)| known.as_bytes() == name)
            .map(|(_, n)| n)
    }

    /// The wait mode of this number.
    pub(crate) fn numbered(number: u8) -> Option<WaitMode> {
        WaitMode::NAMES.get(usize::from(number)).map(|(_, wait_mode)| *wait_mode)
    }

    /// How many checks it makes before it does anything else. `of_late` is what has paid lately,
    /// at most `most`.
    pub(crate) fn first_checks(self, of_late: u32, most: u32) -> u32 {
        match self {
            WaitMode::Block | WaitMode::Yield | WaitMode::Tidon => 1,
            WaitMode::Spin | WaitMode::SpinThenBlock | WaitMode::LoadControl => most,
            WaitMode::Donate | WaitMode::Spread => of_late,
        }
    }

    /// What to do after `spent` nanoseconds of waiting.
    pub(crate) fn act(
        self,
        spent: u64,
        patience: SpinLimits,
        laggards: impl FnOnce() -> Laggards,
    ) -> WaiterAction {
        let spin =
            |bound: u64| if spent < bound { WaiterAction::Spin } else { WaiterAction::Sleep };
        match self {
            WaitMode::Spin => WaiterAction::Spin,
            WaitMode::Block => WaiterAction::Sleep,
            WaitMode::SpinThenBlock => spin(SPIN),
            WaitMode::Yield => WaiterAction::Yield,
            WaitMode::Tidon => WaiterAction::DonateToAny,
            WaitMode::LoadControl => WaiterAction::SleepInSlot,
            WaitMode::Spread => match laggards() {
                Laggards::Run => spin(patience.running),
                Laggards::Unknown | Laggards::WokenElsewhere => spin(patience.unknown),
                Laggards::QueuedElsewhere => WaiterAction::Join,
                Laggards::Blocked => WaiterAction::Sleep,
                Laggards::QueuedHere | Laggards::NextHere => WaiterAction::Spread,
                Laggards::CanHave => WaiterAction::Donate,
            },
            WaitMode::Donate => match laggards() {
                Laggards::Run => spin(patience.running),
                Laggards::Unknown | Laggards::WokenElsewhere | Laggards::QueuedElsewhere => {
                    spin(patience.unknown)
                }
                Laggards::CanHave => WaiterAction::Donate,
                Laggards::NextHere if spent < patience.running => WaiterAction::Yield,
                Laggards::Blocked | Laggards::QueuedHere | Laggards::NextHere => {
                    WaiterAction::Sleep
                }
            },
        }
    }
}
