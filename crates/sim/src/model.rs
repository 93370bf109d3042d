//! Programs as scripts.
//!
//! Every thread of a program executes the same short list of operations, which has loops. That is
//! enough for data-parallel programs (compute, barrier), critical sections (lock), pipelines
//! (queues) and interactive ones (sleep). The computing of programs differs in its [`Mix`]: how
//! many cycles an instruction takes without misses, how often it misses, and how much of that
//! depends on its share of the cache.

mod file;
pub mod fit;
mod pipeline;

use std::ops::Range;

use cosched_core::Nanos;

pub use file::ModelError;

/// Defaults of keys in files of models and of solo runs.
const fn once() -> u32 {
    1
}

const fn one() -> f64 {
    1.0
}

fn no_time() -> String {
    "0s".to_owned()
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Op {
    /// Execute instructions of a mix.
    Compute {
        /// The number for each thread, before imbalance.
        instructions: f64,
        /// Position in [`Model::mixes`].
        mix: u16,
    },
    /// Wait until every thread has arrived here.
    Barrier(u16),
    /// A parallel region of a malleable program begins: every thread arrives here, and as many as
    /// the thread limit allows go on together. The others skip the given number of operations.
    Region {
        /// How many threads the region requests.
        threads: u16,
        /// How many operations it has.
        next: u16,
    },
    /// In a region: execute this thread's part of the instructions of a mix.
    Share {
        /// The number of all its threads together.
        instructions: f64,
        /// Position in [`Model::mixes`].
        mix: u16,
    },
    /// In a region: wait until each of its threads has arrived here.
    TeamBarrier,
    /// Take a lock.
    Acquire(u16),
    /// Right after that: cache lines of the data that a lock guards come from the CPU on which it
    /// was released last.
    Fetch {
        /// The lock.
        lock: u16,
        /// The number of lines.
        lines: u32,
    },
    /// Release it.
    Release(u16),
    /// Put an item into a bounded queue.
    Push(u16),
    /// Take one out.
    Pop(u16),
    /// Sleep.
    Sleep(Nanos),
    /// Threads outside this range skip the given number of operations.
    Only {
        /// The threads in the range, by number.
        threads: (u16, u16),
        /// The number of operations to skip.
        next: u16,
    },
    /// Make the other threads of the program, which begin after this: until thread 0 arrives here,
    /// it is the only one. As `pthread_create`, and an OpenMP runtime at its first parallel region.
    /// In a script without it, all begin together.
    Create,
    /// Go back to the operation at a position until it was reached this often in all.
    Repeat {
        /// The position.
        from: u32,
        /// How often; at least 1.
        times: u32,
        /// The counter of the thread, one of four; nested loops need different ones.
        counter: u8,
    },
}

/// The properties of a program's instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mix {
    /// Cycles per instruction without last-level misses.
    pub base_cpi: f64,
    /// Last-level misses per instruction with as much cache as it can use.
    pub misses: f64,
    /// Last-level misses per instruction without any cache.
    pub misses_without_cache: f64,
    /// How many bytes of cache the whole program can use.
    pub footprint: f64,
    /// How many misses are in flight at once.
    pub parallelism: f64,
}

impl Mix {
    /// Instructions that never miss.
    pub fn computing(base_cpi: f64) -> Mix {
        Mix { base_cpi, parallelism: 1.0, ..Mix::default() }
    }

    /// Whether it uses memory at all.
    pub(crate) fn uses_memory(&self) -> bool {
        self.misses_without_cache > 0.0
    }

    /// Whether it misses less with a cache.
    pub(crate) fn uses_cache(&self) -> bool {
        self.footprint > 0.0 && self.misses_without_cache > self.misses
    }
}

/// How threads wait at barriers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtBarrier {
    /// As everywhere else: they spin for [`Model::spin`], then sleep. This is the default.
    Spin,
    /// They give their CPUs to late siblings that have none, and never sleep (the time donating
    /// barrier).
    Donate,
}

/// A program.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// How many threads it has.
    pub threads: u16,
    /// The operations of each thread; after the last operation it ends.
    pub script: Vec<Op>,
    /// The mixes that the script names.
    pub mixes: Vec<Mix>,
    /// How much more work than the average the thread with the most work has; 0 to 1.
    pub imbalance: f64,
    /// How long a waiting thread spins on its CPU before it sleeps; [`Nanos::NEVER`] for always.
    pub spin: Nanos,
    /// How a thread waits at a barrier. If set, the cost of waiting is reported
    /// ([`Waits`](cosched_core::Waits)).
    pub barrier: Option<AtBarrier>,
    /// If set: a thread that waits for a lock spins only while its holder is on a CPU, and at most
    /// this long (the adaptive mutexes of Solaris).
    pub adaptive: Option<Nanos>,
    /// If set: a thread that waits for another spins, and sleeps only where the machine has more
    /// runnable threads than CPUs; the load is looked at this often (load control).
    pub load_control: Option<Nanos>,
    /// Whether it reports how often its barriers have opened and its regions begun.
    pub tells: bool,
    /// How many barriers the script names.
    pub barriers: u16,
    /// How many locks.
    pub locks: u16,
    /// How many items each queue can hold.
    pub queues: Vec<u32>,
}

impl Model {
    /// Threads that compute `instructions` each and never wait.
    pub fn parallel(threads: u16, instructions: f64, mix: Mix) -> Model {
        Model {
            threads,
            script: vec![Op::Compute { instructions, mix: 0 }],
            mixes: vec![mix],
            imbalance: 0.0,
            spin: Nanos::ZERO,
            barrier: None,
            adaptive: None,
            load_control: None,
            tells: false,
            barriers: 0,
            locks: 0,
            queues: Vec::new(),
        }
    }

    /// Threads that compute `instructions` each between barriers, `rounds` times.
    pub fn barriers(threads: u16, rounds: u32, instructions: f64, mix: Mix, spin: Nanos) -> Model {
        Model {
            script: vec![
                Op::Compute { instructions, mix: 0 },
                Op::Barrier(0),
                Op::Repeat { from: 0, times: rounds, counter: 0 },
            ],
            spin,
            barriers: 1,
            ..Model::parallel(threads, 0.0, mix)
        }
    }

    /// Threads that each, `rounds` times, compute outside and inside one lock.
    pub fn lock(threads: u16, rounds: u32, gap: f64, hold: f64, mix: Mix, spin: Nanos) -> Model {
        Model {
            script: vec![
                Op::Compute { instructions: gap, mix: 0 },
                Op::Acquire(0),
                Op::Compute { instructions: hold, mix: 0 },
                Op::Release(0),
                Op::Repeat { from: 0, times: rounds, counter: 0 },
            ],
            spin,
            locks: 1,
            ..Model::parallel(threads, 0.0, mix)
        }
    }

    /// Whether it requests threads at the beginning of its parallel regions.
    pub fn is_malleable(&self) -> bool {
        self.script.iter().any(|op| matches!(op, Op::Region { .. }))
    }

    /// The share of the average work that one of this many threads gets: from `1 - imbalance` to `1
    /// + imbalance`.
    pub(crate) fn share(&self, index: u16, threads: u16) -> f64 {
        match threads {
            0 | 1 => 1.0,
            n => 1.0 + self.imbalance * (2.0 * f64::from(index) / f64::from(n - 1) - 1.0),
        }
    }

    /// The most cache that it can use, bytes.
    pub(crate) fn footprint(&self) -> f64 {
        self.mixes.iter().map(|mix| mix.footprint).fold(0.0, f64::max)
    }

    pub(crate) fn does(threads: (u16, u16), index: u16) -> bool {
        Range { start: threads.0, end: threads.1 }.contains(&index)
    }
}
