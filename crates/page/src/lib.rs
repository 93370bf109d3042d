//! The page that cosched and a process of a malleable program share, and how they find each other.
//!
//! cosched starts the program with the library of `crates/hook` preloaded and the name of a socket
//! in [`SOCKET`]. A process that needs threads connects. cosched makes a page for it alone and
//! sends its descriptor with a [`Hello`]. From then on numbers are exchanged in the page, and a
//! byte on the socket says that there are new ones.
//!
//! ```text
//! first 64 bytes: cosched writes          next 64 bytes: the program writes
//!   magic                                   request: number, threads, whether it waits
//!   version and size                        progress: ticks so far
//!   heartbeat: when cosched was alive
//!   rule: managed, barriers, counting,      passages: regions and barriers so far
//!     limit, CPUs                           moves: of threads between CPUs, begun and under way
//!   answer: number of the last request      sleepers: threads in sleep slots
//!     that is answered
//!   slots: how many waiting threads may
//!     sleep, by the machine's load
//!
//! then 32 tallies of 128 bytes, which the program's threads write: what they did at barriers of
//! ours ([`BarrierTally`])
//! ```
//!
//! Either side may lie, die or be of another version. A page therefore has no pointers and no
//! lengths, and every word is read and written whole. Any value of a word is harmless, and a
//! program always takes the *smaller* of its limit and its own request. No word is read by the side
//! that writes it, but for counts.
//!
//! Where the rule says that cosched's library replaces the program's barriers, a second memory may
//! come along: the [`ThreadTable`], which the program only reads.

#![no_std]
#![forbid(unsafe_code)]

mod barrier_stats;
mod directed;
mod threads;

pub use barrier_stats::{BarrierCounts, BarrierTally, LINES, Passage};
pub use directed::{ALL_ARRIVED, ARRIVED, DONATE};
pub use threads::{ENTRIES, RunState, ThreadEntry, ThreadTable};

use core::ops::Add;
use core::sync::atomic::{AtomicU64, Ordering};

/// The variable that names cosched's socket: an abstract UNIX socket that keeps messages apart.
pub const SOCKET: &str = "COSCHED_HOOK";
/// The variable that names how to wait at barriers, for comparisons.
pub const BARRIER_MODE: &str = "COSCHED_BARRIER_MODE";
/// The size of the shared memory, bytes.
pub const SIZE: usize = 8192;
/// The version of everything here; different versions do not work together.
pub const VERSION: u32 = 8;
/// How often cosched renews the heartbeat, milliseconds.
pub const BEAT: u64 = 1000;
/// How old a heartbeat may be before cosched counts as gone, milliseconds.
pub const STALE: u64 = 3 * BEAT;

/// How often cosched looks at the load of the machine, ns: 7 ms, the update interval of load
/// control, as the paper on faithful scheduling has it (sections I and VI).
pub const LOAD_UPDATE: u64 = 7_000_000;

const MAGIC: u64 = u64::from_le_bytes(*b"cosched\x01");

/// The memory that both sides read.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Page {
    cosched: OfCosched,
    program: OfProgram,
    threads: [BarrierTally; LINES],
}

#[derive(Debug, Default)]
#[repr(C, align(64))]
struct OfCosched {
    magic: AtomicU64,
    form: AtomicU64,
    heartbeat: AtomicU64,
    rule: AtomicU64,
    answer: AtomicU64,
    slots: AtomicU64,
}

#[derive(Debug, Default)]
#[repr(C, align(64))]
struct OfProgram {
    request: AtomicU64,
    progress: AtomicU64,
    passages: AtomicU64,
    /// How many have begun, in the upper half; how many are under way, in the lower.
    moves: AtomicU64,
    sleepers: AtomicU64,
}

/// The side of cosched.
impl Page {
    /// Prepares a page of zeros, so that programs accept it.
    pub fn prepare(&self) {
        self.cosched.form.store(form(), Ordering::Relaxed);
        self.cosched.magic.store(MAGIC, Ordering::Release);
    }

    /// Notes that cosched is alive; `now` is in milliseconds of the monotonic clock.
    pub fn beat(&self, now: u64) {
        self.cosched.heartbeat.store(now, Ordering::Relaxed);
    }

    /// Sets the rule.
    pub fn set_rule(&self, rule: Rule) {
        self.cosched.rule.store(rule.packed(), Ordering::Release);
    }

    /// Marks the request with this number as answered by the rule.
    pub fn answer(&self, number: u32) {
        self.cosched.answer.store(number.into(), Ordering::Release);
    }

    /// The last request.
    pub fn request(&self) -> ThreadRequest {
        ThreadRequest::unpacked(self.program.request.load(Ordering::Acquire))
    }

    /// How many ticks the program has reported.
    pub fn progress(&self) -> u64 {
        self.program.progress.load(Ordering::Relaxed)
    }

    /// What the program's threads have done at barriers of cosched's library.
    pub fn barrier_stats(&self) -> BarrierCounts {
        self.threads
            .iter()
            .map(BarrierTally::read)
            .fold(BarrierCounts::default(), BarrierCounts::add)
    }

    /// Sets how many waiting threads may sleep by the load of the machine.
    pub fn set_slots(&self, slots: u64) {
        self.cosched.slots.store(slots, Ordering::Relaxed);
    }

    /// How many threads sleep by the load of the machine.
    pub fn sleepers(&self) -> u64 {
        self.program.sleepers.load(Ordering::Relaxed)
    }

    /// How many moves of threads to other CPUs have begun; `None`: one is under way, and a thread
    /// may have a mask of one CPU that is not its own.
    pub fn moves(&self) -> Option<u32> {
        let moves = self.program.moves.load(Ordering::SeqCst);
        (moves as u32 == 0).then_some((moves >> 32) as u32)
    }

    /// How many regions it has begun and barriers it has passed, while they were counted.
    pub fn passages(&self) -> u64 {
        self.program.passages.load(Ordering::Relaxed)
    }
}

/// The side of a program.
impl Page {
    /// Whether this was prepared by a cosched of this version.
    pub fn is_known(&self) -> bool {
        let OfCosched { magic, form: found, .. } = &self.cosched;
        magic.load(Ordering::Acquire) == MAGIC && found.load(Ordering::Relaxed) == form()
    }

    /// Whether cosched was alive not long before `now`, milliseconds of the monotonic clock.
    #[inline]
    pub fn is_fresh(&self, now: u64) -> bool {
        now.saturating_sub(self.cosched.heartbeat.load(Ordering::Relaxed)) <= STALE
    }

    /// The present rule.
    #[inline]
    pub fn rule(&self) -> Rule {
        Rule::unpacked(self.cosched.rule.load(Ordering::Acquire))
    }

    /// Whether the states in the [`ThreadTable`] can be trusted, at `now`, milliseconds of the
    /// monotonic clock.
    #[inline]
    pub fn believes_threads(&self, now: u64) -> bool {
        self.rule().donate && self.is_fresh(now)
    }

    /// The number of the last request that was answered.
    pub fn answered(&self) -> u32 {
        self.cosched.answer.load(Ordering::Acquire) as u32
    }

    /// Makes a request; a message on the socket has to follow.
    pub fn set_request(&self, request: ThreadRequest) {
        self.program.request.store(request.packed(), Ordering::Release);
    }

    /// Counts a region that has begun, or a barrier that all threads have passed.
    #[inline]
    pub fn pass(&self) {
        self.program.passages.fetch_add(1, Ordering::Relaxed);
    }

    /// Runs `f`, which moves a thread to another CPU by a mask that it has for a moment.
    pub fn moving<T>(&self, f: impl FnOnce() -> T) -> T {
        self.program.moves.fetch_add(1 << 32 | 1, Ordering::SeqCst);
        let result = f();
        self.program.moves.fetch_sub(1, Ordering::SeqCst);
        result
    }

    /// Runs `sleep` in a sleep slot, if one is free.
    pub fn in_slot<T>(&self, sleep: impl FnOnce() -> T) -> Option<T> {
        let slots = self.cosched.slots.load(Ordering::Relaxed);
        let claim = |sleepers: u64| (sleepers < slots).then_some(sleepers + 1);
        let sleepers = &self.program.sleepers;
        sleepers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, claim).ok()?;
        let result = sleep();
        sleepers.fetch_sub(1, Ordering::Relaxed);
        Some(result)
    }

    /// Reports progress.
    pub fn tick(&self, ticks: u64) {
        self.program.progress.fetch_add(ticks, Ordering::Relaxed);
    }

    /// Where a thread counts what it does at barriers, by the order in which threads came.
    #[inline]
    pub fn tally(&self, thread: usize) -> Option<&BarrierTally> {
        self.threads.get(thread % LINES)
    }
}

fn form() -> u64 {
    u64::from(VERSION) << 32 | SIZE as u64
}

/// The rule for a process. The default limits nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Whether cosched limits threads, so that the process has to send requests.
    pub managed: bool,
    /// Whether cosched's library replaces the barriers of the program, and the table of threads is
    /// valid.
    pub donate: bool,
    /// Whether regions and barriers are to be counted.
    pub counts: bool,
    /// Whether the program has a CPU group of its own (a cgroup with a share, or a session): a
    /// thread that yields in it gives its CPU to another thread of the program first.
    pub grouped: bool,
    /// Whether cosched's scheduler in the kernel has its threads, so that a waiting thread can name
    /// the thread that gets its CPU ([`DONATE`]).
    pub directed: bool,
    /// The most threads that a region may have; `None`: no limit.
    pub thread_limit: Option<u16>,
    /// How many CPUs the program has; 0: not known.
    pub cpus: u16,
}

impl Rule {
    /// How many threads a region gets that requests `requested`: never more than that, and at least
    /// one.
    #[inline]
    pub fn bound(self, requested: i32) -> i32 {
        match self.thread_limit {
            Some(thread_limit) if self.managed => requested.min(i32::from(thread_limit)),
            _ => requested,
        }
    }

    fn packed(self) -> u64 {
        let thread_limit =
            u64::from(self.thread_limit.map_or(0, |thread_limit| thread_limit.max(1)));
        let Rule { managed, donate, counts, grouped, directed, .. } = self;
        let set = [managed, donate, counts, grouped, directed].into_iter().zip(0..);
        let flags = set.fold(0, |flags, (is_set, bit)| flags | u64::from(is_set) << bit);
        flags << 32 | u64::from(self.cpus) << 16 | thread_limit
    }

    fn unpacked(word: u64) -> Rule {
        let thread_limit = Some(word as u16).filter(|thread_limit| *thread_limit > 0);
        let is_set = |bit: u32| word >> bit & 1 == 1;
        let [managed, donate, counts, grouped, directed] = [32, 33, 34, 35, 36].map(is_set);
        let cpus = (word >> 16) as u16;
        Rule { managed, donate, counts, grouped, directed, thread_limit, cpus }
    }
}

/// The request of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadRequest {
    /// Which of its requests this is.
    pub number: u32,
    /// How many threads its regions request.
    pub threads: u16,
    /// Whether it waits for the answer.
    pub blocked: bool,
}

impl ThreadRequest {
    fn packed(self) -> u64 {
        u64::from(self.number) << 32 | u64::from(self.blocked) << 16 | u64::from(self.threads)
    }

    fn unpacked(word: u64) -> ThreadRequest {
        ThreadRequest {
            number: (word >> 32) as u32,
            threads: word as u16,
            blocked: word >> 16 & 1 == 1,
        }
    }
}

/// The message that comes with the page's descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// Whether a second descriptor comes, of the [`ThreadTable`].
    pub threads: bool,
}

impl Hello {
    /// How long it is, bytes.
    pub const SIZE: usize = 24;

    /// The message as it is sent.
    pub fn bytes(self) -> [u8; Hello::SIZE] {
        let mut bytes = [0; Hello::SIZE];
        let words = [MAGIC, form(), u64::from(self.threads)];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// The content of a message; `None`: it is not of this version.
    pub fn read(message: &[u8]) -> Option<Hello> {
        [false, true]
            .map(|threads| Hello { threads })
            .into_iter()
            .find(|hello| message == hello.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_zeros_is_unknown_and_limits_no_program() {
        let page = Page::default();
        assert!(!page.is_known() && page.rule() == Rule::default());
        assert_eq!(page.rule().bound(7), 7);
        page.prepare();
        assert!(page.is_known());
    }

    #[test]
    fn any_written_value_is_read_back() {
        let page = Page::default();
        for rule in [
            Rule { managed: true, thread_limit: Some(u16::MAX), ..Rule::default() },
            Rule { managed: true, donate: true, cpus: u16::MAX, ..Rule::default() },
            Rule { donate: true, counts: true, thread_limit: Some(1), cpus: 3, ..Rule::default() },
            Rule { counts: true, ..Rule::default() },
            Rule { donate: true, grouped: true, ..Rule::default() },
            Rule { donate: true, directed: true, cpus: 7, ..Rule::default() },
        ] {
            page.set_rule(rule);
            assert_eq!(page.rule(), rule);
        }
        let request = ThreadRequest { number: u32::MAX, threads: u16::MAX, blocked: true };
        page.set_request(request);
        assert_eq!(page.request(), request);
        page.set_request(ThreadRequest { blocked: false, ..request });
        assert!(!page.request().blocked);
    }

    #[test]
    fn no_word_gives_a_region_more_than_its_request_or_below_one() {
        for word in (0..64).map(|bit| 1u64 << bit).chain([0, u64::MAX]) {
            for requested in [1, 2, 3, 70_000, i32::MAX] {
                let allowed = Rule::unpacked(word).bound(requested);
                assert!((1..=requested).contains(&allowed), "{word:x} {requested}: {allowed}");
            }
        }
    }

    #[test]
    fn ticks_and_passages_are_counted_apart() {
        let page = Page::default();
        page.tick(7);
        page.pass();
        page.pass();
        assert_eq!((page.progress(), page.passages()), (7, 2));
    }

    #[test]
    fn moves_are_counted_and_hidden_while_one_is_under_way() {
        let page = Page::default();
        assert_eq!(page.moves(), Some(0));
        page.moving(|| {
            assert_eq!(page.moves(), None);
            page.moving(|| ());
            assert_eq!(page.moves(), None);
        });
        assert_eq!(page.moves(), Some(2));
    }

    #[test]
    fn only_as_many_threads_sleep_as_there_are_slots() {
        let page = Page::default();
        assert_eq!(page.in_slot(|| ()), None, "without surplus every waiter spins");
        page.set_slots(2);
        let third = page.in_slot(|| page.in_slot(|| (page.sleepers(), page.in_slot(|| ()))));
        assert_eq!(third, Some(Some((2, None))));
        assert_eq!(page.sleepers(), 0, "slots are given back");
    }

    #[test]
    fn a_heartbeat_goes_stale_and_one_from_a_clock_ahead_does_not() {
        let page = Page::default();
        page.beat(10_000);
        assert!(page.is_fresh(10_000 + STALE) && !page.is_fresh(10_001 + STALE));
        assert!(page.is_fresh(9_996));
    }

    #[test]
    fn thread_states_are_used_only_while_allowed_and_cosched_lives() {
        let page = Page::default();
        page.beat(10_000);
        assert!(!page.believes_threads(10_000));
        page.set_rule(Rule { donate: true, ..Rule::default() });
        assert!(page.believes_threads(10_000) && !page.believes_threads(10_001 + STALE));
    }

    #[test]
    fn halves_and_threads_have_separate_cache_lines_that_fit() {
        assert_eq!(size_of::<Page>(), 128 + LINES * 128);
        assert!(size_of::<Page>() <= SIZE);
    }

    #[test]
    fn counts_on_own_and_shared_lines_are_added_up() {
        let page = Page::default();
        for thread in [0, 1, LINES, usize::MAX] {
            page.tally(thread).unwrap().passed(Passage::Slept);
        }
        assert_eq!(page.barrier_stats(), BarrierCounts { slept: 4, ..BarrierCounts::default() });
    }

    #[test]
    fn only_a_hello_of_this_version_is_one() {
        for hello in [false, true].map(|threads| Hello { threads }) {
            let mut bytes = hello.bytes();
            assert_eq!(Hello::read(&bytes), Some(hello));
            assert_eq!((Hello::read(&bytes[..23]), Hello::read(&[])), (None, None));
            bytes[12] ^= 1;
            assert_eq!(Hello::read(&bytes), None);
        }
    }
}
