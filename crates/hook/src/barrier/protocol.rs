//! The barrier itself: which threads arrive, which are missing, and why no thread sleeps for ever.
//!
//! It consists of two words that only ever go up, and one slot for each thread that takes part.
//!
//! - `arrivals` counts the threads that arrive. The number that a thread draws says which *round*
//!   of the barrier it belongs to and whether it is the last of it, however many threads use the
//!   barrier.
//! - `over` says how many rounds are over; a waiter reads nothing else. Its lowest bits say that a
//!   thread sleeps, and whether the barrier is *shut*. All change together, so a wake-up cannot be
//!   lost. A thread that is about to sleep sets the bit in the very word that the last
//!   arriver replaces, and the kernel lets it sleep only on the word as it then is. A single word
//!   needs no order among several. `tests/model.rs`, which checks interleavings, therefore leaves
//!   out nothing that processors with weak memory could add. Release and acquire hand on what the
//!   threads wrote before, from each arrival to the last and from there to every waiter.
//! - `slots` say which thread arrived in which round. A thread that was here in the last round and
//!   not in this one is a *laggard*: the paper's BAPS flag, without a system call. Slots only help
//!   waiters, and nothing depends on them. A thread that finds no free slot waits and is waited for
//!   like any other.
//!
//! The last arriver ends the round, and makes a system call only if a thread sleeps. As soon as a
//! round is over, a barrier can be destroyed, and its place be used for another. Nothing here is
//! ever set back, so a late thread finds its own round over.
//!
//! A barrier that is *shut* lets every thread of the present round pass, and says that not all have
//! arrived. A runtime needs that where its own barrier does more than wait. The last thread to
//! arrive ends that round, too, and notes that it was shut, so all of its threads are told the
//! same. The next round is as any other. A barrier that is *closed* stays shut until it is renewed:
//! some threads do not arrive any more.

use core::cell::Cell;
use core::num::NonZeroU64;

use cosched_page::{LOAD_UPDATE, Passage};

use super::atomic::AtomicU64;
use super::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use super::stack::BarrierPlacement;
use super::wait::{Wait, since, stamp};
use super::wait_mode::{Laggards, SpinLimits, WaitMode, WaiterAction};

/// How many threads of a barrier its waiters can see.
pub(crate) const SLOTS: usize = 64;

/// The bits of the word: threads sleep; this round is shut; the round before was shut; all further
/// ones are; above them, the round.
const SLEEPING: u64 = 1;
const SHUT: u64 = 2;
const WAS_SHUT: u64 = 4;
const CLOSED: u64 = 8;
const ROUND_SHIFT: u32 = 4;

/// The assumed cost of a wake-up before one was measured. Two threads with 8 us of work that
/// slept at every barrier had rounds of 37 us (`docs/research/barrier.md`).
const ASSUMED_WAKE_NS: u64 = 29_000;
/// The bounds of a believable cost of a wake-up: chosen, not measured. A woken thread that
/// waits longer waits for its turn on the CPU.
const LEAST_WAKE_NS: u64 = 5_000;
const MOST_WAKE_NS: u64 = 50_000;
/// Spinning in vain halves the patience for it down to this: about as long as the first checks
/// take.
const LEAST_PATIENCE_NS: u64 = 1_000;
/// First checks in vain halve their number down to this.
const FEWEST_CHECKS: u32 = 2;

/// What waiting needs of its surroundings.
pub(crate) trait Waiting {
    /// How many times to check before anything else is done, at most.
    const CHECKS: u32;
    /// Waits for a moment.
    fn pause(&self);
    /// Lets another thread run.
    fn yield_cpu(&self);
    /// Lets this thread run instead; 0: any laggard of the process.
    fn donate(&self, tid: u32);
    /// Tells the kernel that the thread has arrived, after this time, or that all have, before it.
    fn tell_arrival(&self, of_all: bool, time: u64);
    /// Sleeps until woken, or for so many nanoseconds, if the lower half of the word is still
    /// `seen`. Returns whether it was woken.
    fn sleep(&self, word: &AtomicU64, seen: u32, at_most: Option<u64>) -> bool;
    /// Runs `sleep`, if the load of the machine leaves a sleep slot for it.
    fn in_slot<T>(&self, sleep: impl FnOnce() -> T) -> Option<T>;
    /// Wakes all threads that sleep on the word.
    fn wake(&self, word: &AtomicU64);
    /// The time of a clock, ns.
    fn now(&self) -> u64;
    /// What a thread does, as far as it is known now.
    fn knowledge(&self) -> impl Fn(u32) -> Laggards;
    /// Goes to the CPU that a thread is queued for.
    fn join(&self, tid: u32);
    /// Goes to a CPU with fewer of these threads, if there is one with two fewer than here. Returns
    /// whether it went.
    fn spread(&self, siblings: impl Iterator<Item = u32>) -> bool;
    /// Whether [`Waiting::note`] does anything.
    fn is_counted(&self) -> bool;
    /// Notes that a thread has passed, and how.
    fn note(&self, how: Passage, wait: Wait);
}

/// A thread that arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArrivingThread<'a> {
    /// Its thread number; not 0.
    pub(crate) tid: u32,
    /// Its probable slot: saves the search.
    pub(crate) slot: &'a Cell<usize>,
}

/// How a thread has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    /// All have arrived, and this was the last one.
    Last,
    /// All have arrived.
    All,
    /// The round was shut: not all may have arrived here.
    Shut,
}

/// A value on a cache line of its own.
#[repr(align(64))]
struct CacheLine<T>(T);

/// A barrier for any number of threads.
pub(crate) struct Barrier {
    arrivals: CacheLine<AtomicU64>,
    over: CacheLine<AtomicU64>,
    /// The round that the first arrival belongs to.
    first: CacheLine<AtomicU64>,
    /// How threads that wait for each other are placed.
    stack: BarrierPlacement,
    /// The [`stamp`] of the latest timed round; 0: none has begun.
    began: AtomicU64,
    /// When sleepers were last woken, ns.
    woken: AtomicU64,
    /// What a wake-up costs, ns; 0: not known yet.
    cost: AtomicU64,
    /// How long to spin where nothing is known, ns; 0: for one wake-up.
    patience: AtomicU64,
    /// How many first checks have paid lately; 0: all.
    first_checks: AtomicU64,
    slots: [CacheLine<AtomicU64>; SLOTS],
}

impl Barrier {
    /// A barrier that is used for the first time.
    pub(crate) const fn new() -> Barrier {
        Barrier {
            arrivals: CacheLine(AtomicU64::new(0)),
            over: CacheLine(AtomicU64::new(0)),
            first: CacheLine(AtomicU64::new(0)),
            stack: BarrierPlacement::new(),
            began: AtomicU64::new(0),
            woken: AtomicU64::new(0),
            cost: AtomicU64::new(0),
            patience: AtomicU64::new(0),
            first_checks: AtomicU64::new(0),
            slots: [const { CacheLine(AtomicU64::new(0)) }; SLOTS],
        }
    }

    /// Resets the barrier: no thread has arrived, and it is not shut. No thread may be about to
    /// arrive.
    pub(crate) fn renew(&self) {
        let over = self.over.0.load(Acquire);
        // A round that was left because the barrier was shut counts as over, so that a late thread
        // finds it over.
        let is_shut = over & (SHUT | CLOSED) != 0;
        let round = (over >> ROUND_SHIFT).wrapping_add(u64::from(is_shut));
        self.first.0.store(round, Relaxed);
        self.arrivals.0.store(0, Relaxed);
        self.began.store(0, Relaxed);
        if is_shut {
            self.over.0.store(round << ROUND_SHIFT, Release);
        }
    }

    /// Forgets which threads took part.
    pub(crate) fn forget(&self) {
        self.slots.iter().for_each(|slot| slot.0.store(0, Relaxed));
    }

    /// Lets every thread of the present round pass. A thread of it calls this that has not arrived.
    pub(crate) fn shut(&self, by: &impl Waiting) {
        self.mark(SHUT, by);
    }

    /// Lets every thread pass from now on.
    pub(crate) fn close(&self, by: &impl Waiting) {
        self.mark(CLOSED, by);
    }

    fn mark(&self, bit: u64, by: &impl Waiting) {
        if self.over.0.load(Relaxed) & bit == 0 && self.over.0.fetch_or(bit, AcqRel) & SLEEPING != 0
        {
            by.wake(&self.over.0);
        }
    }

    /// Arrives, and waits until `count` threads have arrived.
    #[inline]
    pub(crate) fn pass(
        &self,
        count: NonZeroU64,
        thread: ArrivingThread<'_>,
        wait_mode: WaitMode,
        by: &impl Waiting,
    ) -> Passed {
        // Read before the arrival: after it, the round may end, and the barrier may become another
        // one.
        let first = self.first.0.load(Relaxed);
        // Read before the arrival: a later time could lie in the next round.
        let came = if wait_mode == WaitMode::Tidon { by.now() } else { 0 };
        let number = self.arrivals.0.fetch_add(1, AcqRel);
        let round = first.wrapping_add(number / count);
        self.enter(thread, round);
        let place = number % count;
        let (is_first, is_last) = (place == 0, place == count.get() - 1);
        let mut wait = Wait::new(is_first, came);
        if Wait::is_sampled(round) && by.is_counted() {
            let now = by.now();
            wait.after_first = Some(self.since_first(round, is_first, now));
            if !is_last {
                wait.arrives(now);
            }
        }
        let passed = if is_last {
            self.end(round, wait_mode, &mut wait, by)
        } else {
            self.wait(round, wait_mode, &mut wait, by)
        };
        match passed {
            Passed::Last => by.note(Passage::Last, wait),
            Passed::All => by.note(wait.passage(), wait),
            Passed::Shut => {}
        }
        passed
    }

    /// How long ago the first thread of a round arrived, ns. All threads of the round ask; one that
    /// does before the first one has arrived at the same time.
    fn since_first(&self, round: u64, is_first: bool, now: u64) -> u64 {
        if is_first {
            self.began.store(stamp(round, now), Relaxed);
            return 0;
        }
        since(self.began.load(Relaxed), round, now)
    }

    /// Ends the round.
    fn end(&self, round: u64, wait_mode: WaitMode, wait: &mut Wait, by: &impl Waiting) -> Passed {
        // Where more threads use the barrier than a round has, the last of this round may come
        // before that of the previous round.
        if round > 0 {
            self.wait(round - 1, wait_mode, wait, by);
        }
        // Before any thread can arrive in the next round.
        if wait_mode == WaitMode::Tidon {
            by.tell_arrival(true, by.now());
        }
        loop {
            let over = self.over.0.load(Relaxed);
            if over & CLOSED != 0 {
                return Passed::Shut;
            }
            let was_shut = over & SHUT != 0;
            let note = if was_shut { WAS_SHUT } else { 0 };
            let next = round.wrapping_add(1) << ROUND_SHIFT | note;
            if self.over.0.compare_exchange(over, next, AcqRel, Relaxed).is_err() {
                continue;
            }
            if over & SLEEPING != 0 {
                self.woken.store(by.now(), Relaxed);
                by.wake(&self.over.0);
            }
            return if was_shut { Passed::Shut } else { Passed::Last };
        }
    }

    /// Whether the round is over, and how it ended.
    #[inline]
    fn outcome(&self, round: u64) -> Option<Passed> {
        let over = self.over.0.load(Acquire);
        let ended = over >> ROUND_SHIFT;
        if ended == round.wrapping_add(1) && over & WAS_SHUT != 0 {
            Some(Passed::Shut)
        } else if ended > round {
            Some(Passed::All)
        } else if over & (SHUT | CLOSED) != 0 {
            Some(Passed::Shut)
        } else {
            None
        }
    }

    /// Waits until the round is over.
    #[inline]
    fn wait<W: Waiting>(&self, round: u64, wait_mode: WaitMode, wait: &mut Wait, by: &W) -> Passed {
        let mut checks = wait_mode.first_checks(self.first_checks(W::CHECKS), W::CHECKS);
        loop {
            for _ in 0..checks {
                if let Some(passed) = self.outcome(round) {
                    if wait.is_long() && !wait.slept {
                        self.judge(true);
                    }
                    self.judge_first_checks(!wait.slept && !wait.yielded, W::CHECKS);
                    wait.passes(|| by.now());
                    return passed;
                }
                by.pause();
            }
            let spent = wait.spent_by(by.now());
            let (patience, mut late) = (self.patience(), 0);
            let act = wait_mode.act(spent, patience, || {
                let (laggards, tid) = self.laggards(round, by);
                wait.knew |= laggards != Laggards::Unknown;
                late = tid;
                laggards
            });
            match act {
                WaiterAction::Spin => checks = W::CHECKS,
                WaiterAction::Yield => {
                    (wait.yielded, checks) = (true, 1);
                    wait.leaves();
                    by.yield_cpu();
                }
                WaiterAction::Donate | WaiterAction::DonateToAny => {
                    if act == WaiterAction::DonateToAny && !wait.yielded {
                        by.tell_arrival(false, wait.came);
                    }
                    (wait.yielded, checks) = (true, 1);
                    wait.leaves();
                    by.donate(late);
                }
                WaiterAction::Spread if self.spread(round, by) => {}
                WaiterAction::Join | WaiterAction::Spread | WaiterAction::Sleep => {
                    if act == WaiterAction::Join && self.stack.is_worse(round, by.now()) {
                        by.join(late);
                    }
                    if spent >= patience.unknown && !wait.slept {
                        self.judge(false);
                    }
                    wait.slept = true;
                    wait.leaves();
                    if let Some(woken) = self.sleep(round, by, None) {
                        wait.spent_by(woken);
                    }
                }
                WaiterAction::SleepInSlot => {
                    match by.in_slot(|| self.sleep(round, by, Some(LOAD_UPDATE))) {
                        Some(woken) => {
                            wait.slept = true;
                            wait.leaves();
                            wait.spent_by(woken.unwrap_or_else(|| by.now()));
                        }
                        None => checks = W::CHECKS,
                    }
                }
            }
        }
    }

    fn patience(&self) -> SpinLimits {
        let cost = self.cost_of_waking();
        let unknown = match self.patience.load(Relaxed) {
            0 => cost,
            patience => patience.min(cost),
        };
        SpinLimits { running: 4 * cost, unknown }
    }

    /// Notes whether spinning has paid.
    fn judge(&self, paid: bool) {
        let known = self.patience().unknown;
        let new = if paid { known + known / 4 } else { known / 2 };
        let new = new.clamp(LEAST_PATIENCE_NS, MOST_WAKE_NS);
        if new != known {
            self.patience.store(new, Relaxed);
        }
    }

    /// How many first checks have paid lately.
    #[inline]
    fn first_checks(&self, most: u32) -> u32 {
        match self.first_checks.load(Relaxed) as u32 {
            0 => most,
            checks => checks.min(most),
        }
    }

    /// Notes whether a wait was short enough for first checks or a little more, or whether they
    /// were in vain. Writes only changes, since threads that have the CPUs to themselves share this
    /// cache line.
    #[inline]
    fn judge_first_checks(&self, paid: bool, most: u32) {
        let known = self.first_checks(most);
        let new = if paid { known * 2 } else { known / 2 }.clamp(FEWEST_CHECKS.min(most), most);
        if new != known {
            self.first_checks.store(new.into(), Relaxed);
        }
    }

    /// Goes to another CPU, if that is worth it.
    fn spread(&self, round: u64, by: &impl Waiting) -> bool {
        let tids = self.slots.iter().map(|slot| content_of(slot.0.load(Relaxed)).0);
        self.stack.behind(round, by.now(), || by.spread(tids.take_while(|tid| *tid != 0)))
    }

    /// Sleeps, unless the round is over or another thread is just changing the word. Returns when
    /// it was woken at the round's end.
    fn sleep(&self, round: u64, by: &impl Waiting, at_most: Option<u64>) -> Option<u64> {
        let over = self.over.0.load(Relaxed);
        if over >> ROUND_SHIFT > round || over & (SHUT | CLOSED) != 0 {
            return None;
        }
        let marked = over | SLEEPING;
        let is_marked =
            over == marked || self.over.0.compare_exchange(over, marked, Relaxed, Relaxed).is_ok();
        let woken = is_marked && by.sleep(&self.over.0, marked as u32, at_most);
        let now = (woken && self.outcome(round).is_some()).then(|| by.now())?;
        self.learn(now.saturating_sub(self.woken.load(Relaxed)));
        Some(now)
    }

    /// Notes the duration of a wake-up, ns. Threads may overwrite each other's figures: any of them
    /// will do.
    fn learn(&self, took: u64) {
        let known = self.cost_of_waking();
        let took = took.clamp(LEAST_WAKE_NS, MOST_WAKE_NS);
        self.cost.store(known - known / 8 + took / 8, Relaxed);
    }

    fn cost_of_waking(&self) -> u64 {
        match self.cost.load(Relaxed) {
            0 => ASSUMED_WAKE_NS,
            cost => cost,
        }
    }

    /// What the laggards do, which were here in the last round and are not in this one. Returns the
    /// most significant of their states, and its thread.
    fn laggards(&self, round: u64, by: &impl Waiting) -> (Laggards, u32) {
        let (missing, what) = (round.wrapping_sub(1) as u32, by.knowledge());
        let slots = self.slots.iter().map(|slot| slot.0.load(Relaxed));
        let taken = slots.take_while(|slot| *slot != 0).map(content_of);
        let late = taken.filter(|(_, last)| *last == missing).map(|(tid, _)| (what(tid), tid));
        late.max().unwrap_or((Laggards::Unknown, 0))
    }

    /// Notes that the thread has arrived in this round.
    #[inline]
    fn enter(&self, thread: ArrivingThread<'_>, round: u64) {
        match self.slots.get(thread.slot.get()) {
            Some(slot) if content_of(slot.0.load(Relaxed)).0 == thread.tid => {
                slot.0.store(content(thread.tid, round), Relaxed);
            }
            _ => self.find_slot(thread, round),
        }
    }

    /// The thread's own slot, or else the first that is free or has a thread that was not here in
    /// the last round.
    #[cold]
    fn find_slot(&self, thread: ArrivingThread<'_>, round: u64) {
        let (this, last) = (round as u32, round.wrapping_sub(1) as u32);
        let is_free = |word: u64| word == 0 || ![this, last].contains(&content_of(word).1);
        let words = || self.slots.iter().map(|slot| slot.0.load(Relaxed));
        let own =
            words().take_while(|word| *word != 0).position(|word| content_of(word).0 == thread.tid);
        let Some(number) = own.or_else(|| words().position(is_free)) else { return };
        let Some(slot) = self.slots.get(number) else { return };
        let word = slot.0.load(Relaxed);
        // A thread that loses a free slot to another tries again in the next round.
        if (own.is_some() || is_free(word))
            && slot.0.compare_exchange(word, content(thread.tid, round), Relaxed, Relaxed).is_ok()
        {
            thread.slot.set(number);
        }
    }
}

/// The content of a slot: its thread, and the round in which that thread arrived last.
fn content(tid: u32, round: u64) -> u64 {
    u64::from(tid) << 32 | u64::from(round as u32)
}

fn content_of(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}
