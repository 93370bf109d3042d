//! What barriers took, and what share of the machine each thread had a right to: the figures of
//! [`Waits`].
//!
//! All threads of the machine have the same right to it, whatever they wait for; it changes when
//! some come or end. What one has a right to from then on is counted once for all.

use cosched_core::Waits;
use cosched_core::waits::{lag, share, useful};

use crate::thread::Used;
use crate::world::World;

/// What a thread of the machine has a right to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shares {
    /// Up to now, if it has been here from the beginning; nanoseconds.
    each: f64,
    /// What now is.
    until: u64,
    /// How many threads there are.
    threads: u32,
}

/// What the threads of a program had to wait for, and had a right to; nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delays {
    barriers: u64,
    latency: u64,
    longest: u64,
    /// What one thread of the machine had had a right to when this program came.
    from: Option<f64>,
    /// What those of its threads that have ended had.
    share: f64,
}

impl Delays {
    /// A barrier has opened, so long after the first thread came to it.
    pub(crate) fn book_barrier(&mut self, took: u64) {
        self.barriers += 1;
        self.latency += took;
        self.longest = self.longest.max(took);
    }
}

impl World {
    /// What a thread has had a right to from the beginning until now.
    fn count_shares(&mut self) -> f64 {
        let shares = &mut self.shares;
        let passed = self.now - std::mem::replace(&mut shares.until, self.now);
        if shares.threads > 0 {
            let weight = 1.0 / f64::from(shares.threads);
            shares.each += share(passed as f64, self.cpus.len() as f64, weight);
        }
        shares.each
    }

    /// The threads of a program come.
    pub(crate) fn begin_share(&mut self, run: usize) {
        let from = self.count_shares();
        let program = &mut self.programs[run];
        program.delays.from = Some(from);
        self.shares.threads += u32::from(program.alive);
    }

    /// So many threads of a program end.
    pub(crate) fn end_share(&mut self, run: usize, threads: u16) {
        let each = self.count_shares();
        let delays = &mut self.programs[run].delays;
        // A program may be ended before its threads have come.
        if let Some(from) = delays.from {
            delays.share += f64::from(threads) * (each - from);
            self.shares.threads -= u32::from(threads);
        }
    }

    /// What a run of a program that has ended, and used so much, is told of its waiting, if its
    /// model asks for that.
    pub(crate) fn waits(&self, run: usize, used: Used) -> Option<Waits> {
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
            donations: program.tally.donated,
        })
    }
}
