//! How to wait: what a thread does that has arrived and finds others missing.
//!
//! A thread that looks on keeps a CPU that a missing thread may be waiting for. A thread that
//! sleeps has to be woken, which takes longer than most barriers. The paper on Tidon hands the
//! waiter's time over to a preempted *laggard*, a thread that has not arrived, by a system call of
//! its own (algorithm 3). On a stock kernel a thread cannot name its successor, but it can leave
//! its CPU. The CPU then goes to what is queued there or, if nothing is, to what is queued
//! elsewhere, which the kernel then fetches. [`Way::Donate`] chooses by what the laggards do.
//!
//! | laggards | waiter |
//! |---|---|
//! | all run | looks on for four wake-ups, then sleeps |
//! | nothing is known of one | looks on while that has paid of late, for one wake-up at most, then sleeps |
//! | one was woken, or preempted, and waits for another CPU | the same |
//! | one is blocked | sleeps |
//! | one is queued for this CPU | sleeps: its turn may be next |
//! | the same, in a program with a CPU group of its own | gives way to it, for four wake-ups at most, then sleeps |
//!
//! Where several hold, the lower line counts. The measure of all bounds is what a wake-up has cost
//! lately, as the woken threads measure it. Looking on for as long as a wake-up takes costs at most
//! twice as much as knowing how long the wait will be. Together with a program that computes,
//! looking on is in vain nearly always, and then soon given up ([`Patience`]).
//!
//! The paper's waiter never sleeps: it hands over and looks again (line 10), and stays in the
//! queue. The nearest thing here, `sched_yield`, gives the CPU to the next thread in the queue.
//! Together with a program that computes, that is a thread of that program, for a whole slice. A
//! thread that sleeps instead is put in front of it when woken. Where the program has a CPU group
//! of its own, the next thread is another thread of the program. Giving way is then all that the
//! paper asks for.

/// A way to wait. All but [`Way::Donate`] are there to be compared with it.
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
    /// The same, but threads that wait behind each other on one CPU go apart
    /// ([`stack`](super::stack)): quicker on a machine that is idle but for a few threads, slower
    /// on a busy one (`docs/research/barrier.md`).
    Spread,
}

/// How long [`Way::SpinThenBlock`] looks on, ns.
pub(crate) const SPIN: u64 = 100_000;

/// How long a waiter may look on, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    /// Where every laggard runs.
    pub(crate) running: u64,
    /// Where that is not known.
    pub(crate) unknown: u64,
}

/// What the laggards do, the most telling last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Laggards {
    /// All are on their CPUs.
    Run,
    /// Nothing is known of one.
    Unknown,
    /// One was just woken, and waits for another CPU.
    WokenElsewhere,
    /// One was preempted, and waits for another CPU.
    QueuedElsewhere,
    /// One waits for something else.
    Blocked,
    /// One waits for the CPU of who asks.
    QueuedHere,
    /// The same, and only threads of this program come before it.
    NextHere,
}

/// What a waiter does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Goes on looking.
    LookOn,
    /// Lets another thread run that is queued for this CPU.
    GiveWay,
    /// Goes to a CPU with fewer siblings, if that is worth it, or sleeps.
    Spread,
    /// Goes to a laggard's CPU, if that is worth it, and sleeps.
    Join,
    /// Sleeps until the last has arrived.
    Sleep,
}

impl Way {
    #[rustfmt::skip]
    const NAMES: [(&'static str, Way); 6] = [
        ("spin", Way::Spin),
        ("block", Way::Block),
        ("spin-then-block", Way::SpinThenBlock),
        ("yield", Way::Yield),
        ("donate", Way::Donate),
        ("donate-spread", Way::Spread),
    ];

    /// The number of the way of this name.
    pub(crate) fn number(name: &[u8]) -> Option<u8> {
        Way::NAMES.iter().zip(0..).find(|((known, _), _)| known.as_bytes() == name).map(|(_, n)| n)
    }

    /// The way of this number.
    pub(crate) fn numbered(number: u8) -> Option<Way> {
        Way::NAMES.get(usize::from(number)).map(|(_, way)| *way)
    }

    /// How many times it looks before it does anything else; `of_late` is what has paid of late,
    /// and not more than `most`.
    pub(crate) fn first_looks(self, of_late: u32, most: u32) -> u32 {
        match self {
            Way::Block | Way::Yield => 1,
            Way::Spin | Way::SpinThenBlock => most,
            Way::Donate | Way::Spread => of_late,
        }
    }

    /// What to do after so many nanoseconds of waiting.
    pub(crate) fn act(self, spent: u64, patience: Patience, ask: impl FnOnce() -> Laggards) -> Act {
        let look_on = |bound: u64| if spent < bound { Act::LookOn } else { Act::Sleep };
        match self {
            Way::Spin => Act::LookOn,
            Way::Block => Act::Sleep,
            Way::SpinThenBlock => look_on(SPIN),
            Way::Yield => Act::GiveWay,
            Way::Spread => match ask() {
                Laggards::Run => look_on(patience.running),
                Laggards::Unknown | Laggards::WokenElsewhere => look_on(patience.unknown),
                Laggards::QueuedElsewhere => Act::Join,
                Laggards::Blocked => Act::Sleep,
                Laggards::QueuedHere | Laggards::NextHere => Act::Spread,
            },
            Way::Donate => match ask() {
                Laggards::Run => look_on(patience.running),
                Laggards::Unknown | Laggards::WokenElsewhere | Laggards::QueuedElsewhere => {
                    look_on(patience.unknown)
                }
                Laggards::NextHere if spent < patience.running => Act::GiveWay,
                Laggards::Blocked | Laggards::QueuedHere | Laggards::NextHere => Act::Sleep,
            },
        }
    }
}
