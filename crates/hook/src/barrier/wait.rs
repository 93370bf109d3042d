//! What a thread did until it could pass, and for how long: the times of section 2.3 of the paper
//! on Tidon, as far as a thread knows them of itself.
//!
//! - *Barrier latency*, T'_BL of equation 5: from the first arrival of a round to its completion.
//!   The first thread to arrive waits for that long, and then for its own wake-up or its CPU. Of
//!   first checks that take longer than checks can, nothing counts.
//! - *Completion*, T_cpt of equations 4 and 6: from the first arrival of a round to a thread's own.
//! - *Useless spinning*, T_WS of equation 2. It is CPU time. Reading the CPU clock of a thread is a
//!   system call, so this goes by wall-clock time instead: a thread that spins reads that clock at
//!   least every few microseconds. Where it comes back much later, it had no CPU in between, and
//!   that time is left out.
//!
//! A wait beyond the first checks is timed in any case, since it needs the clock to decide what to
//! do. The first checks need none, and reading it would cost a fast barrier a tenth of its speed.
//! They are therefore timed in one of [`SAMPLED`] rounds, and count as often. That is a prime: a
//! program that repeats a fixed number of barriers has each of them timed as often. Arrivals are
//! timed in the same rounds.

use cosched_page::Passage;

/// Arrivals and first checks are timed in one of so many rounds.
pub(crate) const SAMPLED: u64 = 17;

/// A thread that spins and reads the clock this much later had no CPU, ns. Checks between two
/// readings take a few microseconds; a thread that is preempted waits for at least a slice, and no
/// kernel has slices below 100 us.
pub(crate) const PREEMPTED_NS: u64 = 50_000;

/// This many of the lowest bits of a round's number go with the time of its first arrival. A thread
/// that is slow thus does not take that of another round for its own.
const TAG: u32 = 16;

/// The time of a round's first arrival, ns, above the lowest bits of the round's number.
pub(crate) fn stamp(round: u64, now: u64) -> u64 {
    now << TAG | tag(round)
}

/// How long after a stamped arrival `now` is, ns; 0 if the stamp is none, or of another round.
pub(crate) fn since(stamp: u64, round: u64, now: u64) -> u64 {
    if stamp == 0 || tag(stamp) != tag(round) {
        return 0;
    }
    // What is shifted out, of either time, counts for nothing: it is the same for hours.
    let passed = (now << TAG).wrapping_sub(stamp ^ tag(stamp)) as i64 >> TAG;
    u64::try_from(passed).unwrap_or(0)
}

fn tag(number: u64) -> u64 {
    number & !(u64::MAX << TAG)
}

/// What a thread did until it could pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wait {
    /// Whether its thread was the first of the round to arrive.
    pub(crate) is_first: bool,
    /// How long after the first thread of the round it arrived, if that is timed, ns.
    pub(crate) after_first: Option<u64>,
    /// A time before it arrived, where the kernel is told of its arrival, ns.
    pub(crate) came: u64,
    /// When it arrived, if its first checks are timed, ns.
    arrived: Option<u64>,
    /// How long the first checks took, if they are timed, ns.
    checked: u64,
    /// When its first checks were over, ns; `None`: it passed before.
    began: Option<u64>,
    /// How long it has waited since then, as far as it has read the clock, ns.
    pub(crate) spent: u64,
    /// How long it has spun of that, ns.
    spun: u64,
    /// Whether it has done anything but spin since it last read the clock.
    left: bool,
    /// Whether it knew what the laggards do.
    pub(crate) knew: bool,
    pub(crate) yielded: bool,
    pub(crate) slept: bool,
}

impl Wait {
    /// A thread arrives, as the first of its round or not.
    #[inline]
    pub(crate) fn new(is_first: bool, came: u64) -> Wait {
        Wait { is_first, came, ..Wait::default() }
    }

    /// Whether the arrivals and first checks of this round are timed.
    #[inline]
    pub(crate) fn is_sampled(round: u64) -> bool {
        round % SAMPLED == 0
    }

    /// Its first checks, which begin now, are timed.
    pub(crate) fn arrives(&mut self, now: u64) {
        self.arrived = Some(now);
    }

    /// Its first checks are over, if they were not before.
    fn ends_first_checks(&mut self, now: u64) {
        if let Some(arrived) = self.arrived.take() {
            self.checked = Some(now.saturating_sub(arrived)).filter(is_spinning).unwrap_or(0);
        }
    }

    /// How long it has waited beyond its first checks until `now`.
    pub(crate) fn spent_by(&mut self, now: u64) -> u64 {
        self.ends_first_checks(now);
        let spent = now.saturating_sub(*self.began.get_or_insert(now));
        let since = spent.saturating_sub(self.spent);
        if !self.left && is_spinning(&since) {
            self.spun += since;
        }
        (self.spent, self.left) = (spent, false);
        spent
    }

    /// It is about to do something else than to spin.
    pub(crate) fn leaves(&mut self) {
        self.left = true;
    }

    /// It passes. `now` is only called where the time counts.
    #[inline]
    pub(crate) fn passes(&mut self, now: impl FnOnce() -> u64) {
        if self.is_long() {
            self.spent_by(now());
        } else if self.arrived.is_some() {
            self.ends_first_checks(now());
        }
    }

    /// Whether it has done more than its first checks.
    pub(crate) fn is_long(&self) -> bool {
        self.began.is_some()
    }

    /// Whether it has a time to be counted.
    #[inline]
    pub(crate) fn is_timed(&self) -> bool {
        self.is_long() || self.checked > 0
    }

    /// How long it spun, ns: a sum over many waits is right.
    pub(crate) fn spun(&self) -> u64 {
        self.spun + SAMPLED * self.checked
    }

    /// How long it waited, ns: a sum over many waits is right.
    pub(crate) fn waited(&self) -> u64 {
        self.spent + SAMPLED * self.checked
    }

    /// How long it waited at least, ns.
    pub(crate) fn length(&self) -> u64 {
        self.spent + self.checked
    }

    pub(crate) fn passage(&self) -> Passage {
        match self {
            Wait { slept: true, .. } => Passage::Slept,
            Wait { yielded: true, .. } => Passage::Yielded,
            Wait { began: Some(_), .. } => Passage::Spun,
            _ => Passage::SpunBriefly,
        }
    }
}

/// Whether a thread that spins can take so long between two readings of the clock.
fn is_spinning(took: &u64) -> bool {
    *took < PREEMPTED_NS
}
