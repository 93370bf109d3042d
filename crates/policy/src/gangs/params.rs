//! The constants of the policies that make gangs.

use cosched_core::Nanos;

use crate::constant::{ms, params, secs, us};

/// The shortest quantum.
pub const SHORTEST: Nanos = ms(1);
/// The longest quantum that can be requested: for longer ones, `fcfs` is the better policy.
pub const LONGEST: Nanos = secs(60);

/// How long a gang runs at a time, unless the policy or the user says otherwise. `--quantum` sets
/// it.
pub(crate) const QUANTUM: Nanos = ms(100);

params! {
    /// The constants of quanta, turns and places.
    pub(crate) struct Params of "gangs" {
        /// The shortest quantum: quanta are not shortened beyond it.
        shortest: Nanos = SHORTEST, [us(100), ms(100)], "time",
            "assumed: below it, most of the time would go to switching";
        /// The least cost of a switch; a higher cost is assumed in steps of this.
        switch: Nanos = us(500), [us(10), ms(10)], "time",
            "docs/dev/internals.md: 0.4 to 1.7 ms for 10 threads, of which a part is its freeze";
        /// A later wake-up than this is an exception, and does not count.
        latest: Nanos = ms(10), [us(100), secs(1)], "time", "assumed";
        /// The lateness is averaged over about this many wake-ups.
        remembered: u64 = 8, [1, 1000], "wake-ups", "assumed";
        /// The part of the limit on frozen time that is kept as a reserve: one over this.
        reserve: u64 = 10, [2, 1000], "one over a part", "assumed: 90 % are used";
        /// An interval counts as in turn, or as without a turn, if it was so for this part of it.
        nearly_all: f64 = 0.9, [0.5, 1.0], "part of an interval", "assumed; goal fair only";
        /// A program has a turn after so many rounds at the latest: its speed is learned there.
        most_rounds: u64 = 10, [1, 10_000], "rounds", "assumed; goal fair only";
        /// The speed of one of two busy siblings of a core, relative to alone.
        smt_share: f64 = 0.62, [0.01, 1.0], "part of a core",
            "Marr and others, Intel Technology Journal 6(1), 2002: 16 to 28 % more with both";
        /// CPUs of one kind have at least this part of the speed of the fastest one.
        kind: f64 = 0.85, [0.01, 1.0], "part of the speed",
            "favoured cores are up to a tenth faster than others of their kind";
        /// CPUs of several kinds are used if the slowest thread is so many times as fast there.
        mixed: f64 = 1.1, [1.0, 100.0], "times",
            "assumed: other programs can use the CPUs of the other kinds";
    }
}

params! {
    /// The limits of the search for gangs that disturb each other least.
    pub(crate) struct BandwidthParams of "bandwidth" {
        /// The most gangs with room that the first step examines for one program.
        gangs: usize = 64, [1, 10_000], "gangs", "keeps decisions short";
        /// The largest number of programs for which gangs are improved by exchanges.
        units: usize = 48, [0, 10_000], "programs", "keeps decisions short";
    }
}

params! {
    /// The constants of holding programs with a time limit back.
    pub(crate) struct HeldParams of "held" {
        /// How often it is read what the programs in turn use while a program is held back.
        reading: Nanos = ms(250), [ms(10), secs(10)], "time", "assumed";
        /// How many readings in a row must show idle CPUs.
        readings: usize = 2, [1, 100], "readings",
            "assumed: the build steps at the start of a program are shorter";
        /// The least part of the CPUs for its threads that must be idle.
        idle: f64 = 0.45, [0.01, 1.0], "part of its CPUs",
            "chosen: one busy thread in turn leaves a little less than half of two CPUs";
        /// How long a turn holds a program back that finds no idle CPUs. It is at least the time
        /// limit of the program in turn.
        longest: Nanos = secs(60), [ms(10), secs(100_000)], "time",
            "assumed: the program in turn may spin until the held one answers";
    }
}

params! {
    /// The constants of thread limits.
    pub(crate) struct ThreadLimitParams of "thread-limits" {
        /// How many quanta a program has run before it is measured.
        unmeasured: u64 = 10, [0, 10_000], "quanta",
            "assumed: before that, measuring costs more than it can gain";
        /// How many quanta a program has run before it is measured, where others could have its
        /// CPUs.
        unmeasured_with_co_runners: u64 = 2, [0, 10_000], "quanta", "assumed";
        /// A program that uses fewer CPUs than this is light.
        light: f64 = 1.25, [1.0, 2.0], "CPUs", "assumed: little more than one CPU";
        /// A thread count is known after this many readings, until some time has passed.
        enough: f64 = 4.0, [1.0, 1000.0], "readings", "assumed";
        /// The time after which a thread count is read again.
        stale: Nanos = secs(10), [ms(10), secs(10_000)], "time", "assumed";
        /// After this many readings without any progress, the program is no longer read.
        silent: u8 = 8, [1, 255], "readings", "assumed";
        /// With more programs than this, no program is measured early, and single thread counts are
        /// not tried.
        few: usize = 16, [1, 10_000], "programs", "keeps decisions short";
        /// The time without a trial, in lengths of a trial.
        pause: u64 = 100, [1, 100_000], "trials", "chosen: all trials take 1 % of the time";
        /// The assumed length of the first trial.
        of_a_trial: u64 = 2, [1, 1000], "quanta", "most trials last for two turns";
        /// The longest trial.
        longest_trial: u64 = 50, [1, 100_000], "quanta", "assumed";
        /// A program that has run for this long without a request has loaded its runtimes.
        loaded: Nanos = secs(2), [ms(1), secs(1000)], "time", "assumed";
        /// The logarithm of products differs by less than this where they are equal.
        tie: f64 = 0.005, [0.0, 1.0], "logarithm", "assumed";
        /// The least gain of a change, in the logarithm of the product.
        worthwhile: f64 = 0.02, [0.0, 1.0], "logarithm", "assumed: the noise of readings";
        /// With more threads than this, not every count is tried.
        many_threads: u16 = 32, [1, 10_000], "threads", "keeps decisions short";
        /// The largest number of passes over all programs.
        sweeps: usize = 4, [1, 1000], "passes", "keeps decisions short";
        /// The mean of a count's readings is kept over about this many.
        remembered: f64 = 8.0, [1.0, 1000.0], "readings", "assumed";
        /// An older reading may no longer hold: the next reading replaces it.
        fresh: Nanos = secs(60), [ms(10), secs(10_000)], "time", "assumed";
    }
}
