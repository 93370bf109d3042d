//! How to wait: what a thread does that has arrived and finds others missing.
//!
//! Whoever looks on keeps a CPU that a missing thread may be waiting for; whoever sleeps has to be woken, which takes longer
//! than most barriers. The paper on Tidon hands the waiter's time over to a preempted *laggard*, a thread that has not
//! arrived, by a system call of its own (algorithm 3). On a stock kernel a thread cannot name its successor, but it can
//! leave the CPU in two ways: `sched_yield` lets another run that is queued here, and sleeping frees the CPU, which then
//! takes over what is queued elsewhere. [`Way::Donate`] chooses by what the laggards do.
//!
//! | laggards | waiter | for |
//! |---|---|---|
//! | all run | looks on | four wake-ups, then sleeps |
//! | nothing is known of one | looks on | one wake-up, then sleeps |
//! | one is queued for another CPU | yields: it may just have been woken | one wake-up, then sleeps |
//! | one is blocked | sleeps | |
//! | one is queued for this CPU | yields: its turn may be next | four wake-ups, then sleeps |
//!
//! Where several hold, the lower line counts. The measure of all bounds is what a wake-up has cost lately, as the woken
//! measure it: looking on for as long as a wake-up takes costs at most twice as much as knowing how long the wait will be.
//! The paper's waiter never sleeps: it hands over and looks again (line 10). Ours does, so that the CPU is free for the
//! laggard or for somebody else's work, and no wait keeps a CPU for longer than it says here.

/// A way to wait. All but the last are there to be compared with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Looks on until the end.
    Spin,
    /// Sleeps at once.
    Block,
    /// Looks on for [`SPIN`], then sleeps.
    SpinThenBlock,
    /// Lets others run, and looks again.
    Yield,
    /// By what the laggards do.
    Donate,
}

/// How long [`Way::SpinThenBlock`] looks on, ns.
pub(crate) const SPIN: u64 = 100_000;

/// What the laggards do, the most telling last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Laggards {
    /// All are on their CPUs.
    Run,
    /// Nothing is known of one.
    Unknown,
    /// One waits for another CPU.
    QueuedElsewhere,
    /// One waits for something else.
    Blocked,
    /// One waits for the CPU of who asks.
    QueuedHere,
}

/// What a waiter does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Goes on looking.
    LookOn,
    /// Lets another thread run that is queued for this CPU.
    GiveWay,
    /// Sleeps until the last has arrived.
    Sleep,
}

impl Way {
    #[rustfmt::skip]
    const NAMES: [(&'static str, Way); 5] = [
        ("spin", Way::Spin),
        ("block", Way::Block),
        ("spin-then-block", Way::SpinThenBlock),
        ("yield", Way::Yield),
        ("donate", Way::Donate),
    ];

    /// The number of the way of this name.
    pub(crate) fn number(name: &[u8]) -> Option<u8> {
        Way::NAMES.iter().zip(0..).find(|((known, _), _)| known.as_bytes() == name).map(|(_, n)| n)
    }

    /// The way of this number.
    pub(crate) fn numbered(number: u8) -> Option<Way> {
        Way::NAMES.get(usize::from(number)).map(|(_, way)| *way)
    }

    /// Whether it looks some times before it does anything else.
    pub(crate) fn looks_first(self) -> bool {
        !matches!(self, Way::Block | Way::Yield)
    }

    /// What to do after so many nanoseconds of waiting, where a wake-up costs so many.
    pub(crate) fn act(self, spent: u64, cost: u64, laggards: impl FnOnce() -> Laggards) -> Act {
        let for_so_long = |bound: u64, act: Act| if spent < bound { act } else { Act::Sleep };
        match self {
            Way::Spin => Act::LookOn,
            Way::Block => Act::Sleep,
            Way::SpinThenBlock => for_so_long(SPIN, Act::LookOn),
            Way::Yield => Act::GiveWay,
            Way::Donate => match laggards() {
                Laggards::Run => for_so_long(cost.saturating_mul(4), Act::LookOn),
                Laggards::Unknown => for_so_long(cost, Act::LookOn),
                Laggards::QueuedElsewhere => for_so_long(cost, Act::GiveWay),
                Laggards::Blocked => Act::Sleep,
                Laggards::QueuedHere => for_so_long(cost.saturating_mul(4), Act::GiveWay),
            },
        }
    }
}
