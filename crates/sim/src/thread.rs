//! One simulated thread: its place, its present operation, the kernel's data about it, and its
//! usage.

use cosched_core::CpuSet;

use crate::cpu::QueueKey;
use crate::eviction::CacheLines;
use crate::prices::ThreadSpeed;
use crate::solaris::Dispatch;
use crate::tid::Tid;

#[derive(Clone, Debug, Default)]
pub(crate) struct SimulatedThread {
    /// The keys that order queues.
    pub(crate) turn: QueueKey,
    /// Its number in the program; 0 does the serial parts.
    pub(crate) index: u16,
    pub(crate) place: ThreadState,
    /// It was made by a sibling, and not by the process that started the program.
    pub(crate) made: bool,
    /// The CPU that it is on, or was on last.
    pub(crate) cpu: u16,
    pub(crate) doing: Doing,
    /// What it waits for, while it spins or is blocked.
    pub(crate) waiting: WaitTarget,
    /// The next operation of its script, or the present one.
    pub(crate) at: u32,
    /// How often the loops around that operation were executed.
    pub(crate) counters: [u32; 4],
    /// Nanoseconds on a CPU that it owes before its own work goes on: switches, wake-ups, ticks.
    pub(crate) owes: f64,
    pub(crate) pace: ThreadSpeed,
    pub(crate) lines: CacheLines,
    /// The memory node of its pages, where nodes have a distance.
    pub(crate) pages: Option<u16>,
    /// The time up to which its account is kept.
    pub(crate) since: u64,
    /// When it was last put on a CPU, or into a queue, or went to sleep.
    pub(crate) changed: u64,
    /// When it was last on a CPU.
    pub(crate) seen: u64,
    /// Its lag behind the average of its queue when it left (EEVDF), in virtual nanoseconds.
    pub(crate) lag: f64,
    /// The rest until its virtual deadline at that time.
    pub(crate) ahead: f64,
    /// The virtual runtime up to which no thread with as long a slice may preempt it (EEVDF).
    pub(crate) protected: f64,
    /// Its own CPUs, if a plan has given it some, limited to those of its program.
    pub(crate) mask: Option<Box<CpuSet>>,
    /// A plan's rule for it in addition to its program's settings.
    pub(crate) rule: Option<Box<cosched_core::ThreadRule>>,
    /// Solaris' data about it.
    pub(crate) dispatch: Dispatch,
    /// Its turn was over at the last check, and it still runs.
    pub(crate) expired: bool,
    /// It leaves its CPU voluntarily, and stays runnable.
    pub(crate) yields: bool,
    /// The sibling with which it has exchanged places in the order of turns.
    pub(crate) gift: Option<Tid>,
    /// How many locks it holds.
    pub(crate) holds: u16,
    /// Counts the threads that had its position before.
    pub(crate) generation: u32,
    pub(crate) used: ThreadUsage,
    /// How many of the instructions were of each mix of the program.
    pub(crate) by_mix: Vec<f64>,
}

/// What a thread has used since it began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThreadUsage {
    /// CPU time, nanoseconds.
    pub(crate) ran: u64,
    /// The part that was spent spinning.
    pub(crate) spun: u64,
    /// Time in queues.
    pub(crate) queued: u64,
    /// Time asleep at barriers, locks and queues.
    pub(crate) waited: u64,
    pub(crate) instructions: f64,
    pub(crate) references: f64,
    pub(crate) misses: f64,
    /// Switches because it waited, and because the CPU was taken away.
    pub(crate) switches: [u64; 2],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ThreadState {
    /// On its CPU.
    Running,
    /// In the queue of its CPU.
    Queued,
    /// Asleep until woken.
    #[default]
    Blocked,
    /// It would be queued, if its program were not frozen.
    Held,
    Ended,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Doing {
    /// Nothing yet: its next operation has to be begun.
    #[default]
    Nothing,
    /// Computes; this many instructions are left, of this mix of the program.
    Compute { left: f64, mix: u16 },
    /// Spins, for this many nanoseconds more.
    Spin { left: u64 },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum WaitTarget {
    #[default]
    No,
    /// The end of this round of its operation's barrier.
    Barrier { round: u64 },
    /// The beginning of a parallel region: the end of this round of its entry.
    Region { round: u64 },
    /// Its operation's lock.
    Lock,
    /// An item, or room for one, in its operation's queue.
    Queue,
    /// A point in time.
    Time,
}

impl SimulatedThread {
    pub(crate) fn new(tid: Tid, program: u16, index: u16) -> SimulatedThread {
        let turn = QueueKey { tid, program, weight: 1.0, ..QueueKey::default() };
        SimulatedThread { turn, index, ..SimulatedThread::default() }
    }

    /// Accounts for the time since the last update, if it is on a CPU. `fair`: whether its virtual
    /// time goes on, too. Returns how many bytes it has brought into its cache.
    pub(crate) fn account(&mut self, now: u64, fair: bool) -> f64 {
        if self.place != ThreadState::Running || self.since == now {
            return 0.0;
        }
        let passed = now - std::mem::replace(&mut self.since, now);
        self.used.ran += passed;
        if fair && self.turn.rank == 0 {
            self.turn.vruntime += passed as f64 / self.turn.weight;
        }
        if matches!(self.doing, Doing::Spin { .. }) {
            self.used.spun += passed;
        }
        let owed = self.owes.min(passed as f64);
        self.owes -= owed;
        match &mut self.doing {
            Doing::Nothing | Doing::Spin { left: u64::MAX } => {}
            Doing::Compute { left, mix } => {
                let mix = *mix;
                let done = ((passed as f64 - owed) * self.pace.rate).min(*left);
                *left -= done;
                self.counts(done, mix);
                if self.pace.uses > 0.0 {
                    return self.lines.fill(done * self.pace.uses, done * self.pace.regains);
                }
            }
            Doing::Spin { left } => *left = left.saturating_sub(passed),
        }
        0.0
    }

    /// Moves the zero of virtual time in its queue.
    pub(crate) fn shift(&mut self, base: f64) {
        if self.turn.rank == 0 {
            self.turn.vruntime -= base;
            self.turn.deadline -= base;
            self.protected -= base;
        }
    }

    /// Whether its lines are back before it has finished computing.
    pub(crate) fn refills_first(&self) -> bool {
        match self.doing {
            Doing::Compute { left, .. } => {
                self.pace.regains > 0.0 && self.lines.lost < left * self.pace.regains
            }
            Doing::Nothing | Doing::Spin { .. } => false,
        }
    }

    /// Finishes its computation, including what rounding has left.
    pub(crate) fn finishes(&mut self) {
        if let Doing::Compute { left, mix } = self.doing {
            self.counts(left, mix);
        }
        self.doing = Doing::Nothing;
        self.owes = 0.0;
    }

    fn counts(&mut self, instructions: f64, mix: u16) {
        self.by_mix[usize::from(mix)] += instructions;
        self.used.instructions += instructions;
        self.used.references += instructions * self.pace.references;
        self.used.misses += instructions * self.pace.misses;
    }

    /// The nanoseconds until it has finished, or has its lines back, if nothing changes; `None` for
    /// never.
    pub(crate) fn horizon(&self) -> Option<u64> {
        match self.doing {
            Doing::Nothing => Some(self.owes.ceil() as u64),
            // Rounded up: no thread finishes early.
            Doing::Compute { left, .. } => {
                let until =
                    if self.refills_first() { self.lines.lost / self.pace.regains } else { left };
                Some((self.owes + until / self.pace.rate).ceil() as u64)
            }
            Doing::Spin { left: u64::MAX } => None,
            Doing::Spin { left } => Some(left),
        }
    }
}
