//! The durations of barriers, and each thread's fair share of the machine: the figures of
//! [`Waits`].
//!
//! All threads of the machine have the same fair share, whatever they wait for. It changes when
//! threads are added or end. The share since a given time is counted once for all threads.

use cosched_core::Waits;
use cosched_core::waits::{lag, share, useful};

use crate::thread::ThreadUsage;
use crate::world::SimulatedWorld;

/// The fair share of a thread of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shares {
    /// The share of a thread that was there from the beginning, up to `until`; nanoseconds.
    each: f64,
    /// The time of the last update.
    until: u64,
    threads: u32,
}

/// The waits of a program's threads, and their fair share; nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delays {
    barriers: u64,
    latency: u64,
    longest: u64,
    /// From the first arrival to each other one.
    completion: u64,
    /// The share of one thread of the machine when this program arrived.
    from: Option<f64>,
    /// The sum of the shares of its threads that have ended.
    share: f64,
}

impl Delays {
    /// A thread has arrived at a barrier, this long after the first one.
    pub(crate) fn count_arrival(&mut self, after: u64) {
        self.completion += after;
    }

    /// A barrier has opened, this long after the arrival of the first thread.
    pub(crate) fn count_barrier(&mut self, took: u64) {
        self.barriers += 1;
        self.latency += took;
        self.longest = self.longest.max(took);
    }
}

impl SimulatedWorld {
    /// The share of a thread from the beginning until now.
    fn count_shares(&mut self) -> f64 {
        let shares = &mut self.shares;
        let passed = self.now - std::mem::replace(&mut shares.until, self.now);
        if shares.threads > 0 {
            let weight = 1.0 / f64::from(shares.threads);
            shares.each += share(passed as f64, self.cpus.len() as f64, weight);
        }
        shares.each
    }

    /// The threads of a program are added.
    pub(crate) fn begin_share(&mut self, run: usize) {
        let from = self.count_shares();
        let program = &mut self.programs[run];
        program.delays.from = Some(from);
        self.shares.threads += u32::from(program.alive);
    }

    /// This many threads of a program end.
    pub(crate) fn end_share(&mut self, run: usize, threads: u16) {
        let each = self.count_shares();
        let delays = &mut self.programs[run].delays;
        // A program may be ended before its threads exist.
        if let Some(from) = delays.from {
            delays.share += f64::from(threads) * (each - from);
            self.shares.threads -= u32::from(threads);
        }
    }

    /// The waits of a run that has ended, with its usage, if the program's model requests them.
    pub(crate) fn waits(&self, run: usize, used: ThreadUsage) -> Option<Waits> {
        let program = &self.programs[run];
        program.model.barrier?;
        let (delays, seconds) = (program.delays, |nanos: f64| nanos * 1e-9);
        let (received, spun) = (used.ran as f64, used.spun as f64);
        Some(Waits {
            useful_seconds: seconds(useful(received, spun)),
            spun_seconds: seconds(spun),
            lag_seconds: seconds(lag(delays.share, received)),
            barriers: delays.barriers,
            latency_seconds: seconds(delays.latency as f64),
            longest_latency_seconds: seconds(delays.longest as f64),
            completion_seconds: seconds(delays.completion as f64),
            donations: program.tally.donated,
        })
    }
}
