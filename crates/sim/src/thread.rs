//! One simulated thread: where it is, what it is doing, and what the kernel keeps of it.

/// The position of a thread in the world's list.
pub(crate) type Tid = u32;

/// A thread.
#[derive(Clone, Debug)]
pub(crate) struct Thread {
    /// The program, by its position in the world's list.
    pub(crate) program: u16,
    /// Its number in the program; 0 does the serial parts.
    pub(crate) index: u16,
    pub(crate) place: Place,
    /// The CPU that it is on, or was on last.
    pub(crate) cpu: u16,
    pub(crate) doing: Doing,
    /// What it waits for, while it spins or is blocked.
    pub(crate) waiting: Waiting,
    /// The operation of its script that comes next, or that it is at.
    pub(crate) at: u32,
    /// How often the loops around that operation were gone through.
    pub(crate) counters: [u32; 4],
    /// Nanoseconds on a CPU that it owes before its own work goes on: switches, refills, wake-ups.
    pub(crate) owes: f64,
    /// Instructions per nanosecond, at the present price.
    pub(crate) rate: f64,
    /// Until when its account is kept.
    pub(crate) since: u64,
    /// The horizon that was last scheduled for it; an event with another stamp is stale.
    pub(crate) stamp: u32,
    /// Virtual runtime, in nanoseconds of a thread of weight 1.
    pub(crate) vruntime: f64,
    /// Virtual deadline (EEVDF), in the same unit.
    pub(crate) deadline: f64,
    /// How far ahead of its queue it was when it left (EEVDF's negative lag), in the same unit.
    pub(crate) ahead: f64,
    /// When it was last put on a CPU.
    pub(crate) picked: u64,
    /// CPU time so far, nanoseconds.
    pub(crate) ran: u64,
    /// Switches because it waited, and because the CPU was taken away.
    pub(crate) switches: [u64; 2],
}

/// Where a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// On its CPU.
    Running,
    /// In the queue of its CPU.
    Queued,
    /// Asleep until woken.
    Blocked,
    /// Would be queued, if its program were not frozen.
    Held,
    /// Ended.
    Ended,
}

/// What a thread does with the CPU when it has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Doing {
    /// Nothing yet: its next operation has to be looked at.
    Nothing,
    /// Computes; so many instructions are left, of this mix of the program.
    Compute { left: f64, mix: u16 },
    /// Looks at memory until it changes, or for so many nanoseconds more.
    Spin { left: u64 },
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// Nothing.
    No,
    /// The end of this round of the barrier that its operation names.
    Barrier { round: u64 },
    /// The lock that its operation names.
    Lock,
    /// An item, or room for one, in the queue that its operation names.
    Queue,
    /// A time.
    Time,
}

impl Thread {
    pub(crate) fn new(program: u16, index: u16) -> Thread {
        Thread {
            program,
            index,
            place: Place::Blocked,
            cpu: 0,
            doing: Doing::Nothing,
            waiting: Waiting::No,
            at: 0,
            counters: [0; 4],
            owes: 0.0,
            rate: 0.0,
            since: 0,
            stamp: 0,
            vruntime: 0.0,
            deadline: 0.0,
            ahead: 0.0,
            picked: 0,
            ran: 0,
            switches: [0; 2],
        }
    }

    /// Books the time since the last booking, if it is on a CPU. Returns that time in nanoseconds.
    pub(crate) fn account(&mut self, now: u64, weight: f64) -> u64 {
        if self.place != Place::Running {
            return 0;
        }
        let passed = now - std::mem::replace(&mut self.since, now);
        self.ran += passed;
        self.vruntime += passed as f64 / weight;
        let owed = self.owes.min(passed as f64);
        self.owes -= owed;
        match &mut self.doing {
            Doing::Nothing => {}
            Doing::Compute { left, .. } => {
                *left = (*left - (passed as f64 - owed) * self.rate).max(0.0);
            }
            Doing::Spin { left: u64::MAX } => {}
            Doing::Spin { left } => *left = left.saturating_sub(passed),
        }
        passed
    }

    /// In how many nanoseconds it is done with what it does, if nothing changes; `None` for never.
    pub(crate) fn horizon(&self) -> Option<u64> {
        match self.doing {
            Doing::Nothing => Some(self.owes.ceil() as u64),
            // Rounded up: nobody is done before he is.
            Doing::Compute { left, .. } => Some((self.owes + left / self.rate).ceil() as u64),
            Doing::Spin { left: u64::MAX } => None,
            Doing::Spin { left } => Some(left),
        }
    }
}
