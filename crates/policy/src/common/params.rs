//! The constants of what several policies use.

use cosched_core::Nanos;

use crate::constant::{ms, params, secs, us};

params! {
    /// The constants of placement and goals.
    pub(crate) struct Params of "common" {
        /// A program with this many last-level cache misses is memory-bound. `auto` spreads its
        /// threads.
        many_misses: f64 = 10.0, [0.0, 1000.0], "misses per 1000 instructions",
            "modelled programs: the memory-bound ones have 100, the others less than 1";
        /// The longest quantum under the goal responsive.
        short_quantum: Nanos = ms(25), [ms(1), secs(60)], "time",
            "docs/research/benchmarks.md: a switch costs about 1 % of it with a cgroup freezer";
    }
}

params! {
    /// The constants of the guard.
    pub(crate) struct GuardParams of "guard" {
        /// The first pause after all settings were tried.
        first_pause: Nanos = secs(10), [ms(10), secs(10_000)], "time", "assumed";
        /// The longest of these pauses; each is twice as long as the one before.
        longest_pause: Nanos = secs(160), [ms(10), secs(100_000)], "time", "assumed";
        /// The time without trials after a trial. On a live machine, each change costs time.
        peace: u64 = 9, [0, 1000], "lengths of the trial",
            "chosen: trials take a tenth of a program's time at most";
        /// Part of a CPU that is added to every program's progress, so that an idle program decides
        /// nothing. Without it, the logarithm of zero would.
        floor: f64 = 0.01, [0.0001, 1.0], "CPUs", "assumed";
        /// Additional time of a moment for each thread. On a live machine, each change costs time.
        for_each_thread: Nanos = us(500), [us(0), ms(100)], "time",
            "every change costs some 20 us for each thread";
        /// The measured time of a moment where user time is in ticks.
        long_moment: Nanos = ms(500), [ms(20), secs(100)], "time", "a tick is 10 ms";
        /// Pairs of moments before any answer. A clear answer ends a trial early: on a live
        /// machine, each change costs time.
        fewest_pairs: usize = 5, [2, 100], "pairs", "assumed";
        /// Pairs after which no further answer is waited for.
        most_pairs: usize = 10, [2, 1000], "pairs", "assumed";
        /// The least gain that is worth a change: live progress is measured with errors.
        worthwhile: f64 = 0.02, [0.0, 1.0], "part of the progress", "assumed";
        /// Standard errors for a clear answer: live measurements have noise.
        clear: f64 = 2.6, [0.0, 100.0], "standard errors",
            "Student's t: one-sided 3 % for the fewest pairs, more often as the test is repeated";
        /// Standard errors above the mean within which a trial goes on. A hopeless one ends early:
        /// on a live machine, each change costs time.
        hope: f64 = 1.0, [0.0, 100.0], "standard errors",
            "assumed: a trial costs time, and a missed gain is tried again";
    }
}
