//! The constants of `auto`.

use cosched_core::Nanos;

use crate::constant::{ms, params, secs};

/// The quantum, which `auto` shortens as far as needed to serve every program each second. With
/// quanta of 100 ms, switches and cold caches cost programs that compute 3 to 5 %
/// (docs/research/benchmarks.md). `--quantum` sets it.
pub(crate) const QUANTUM: Nanos = ms(250);

params! {
    /// The constants of `auto`.
    pub(crate) struct Params of "auto" {
        /// How long programs run before CPU times are read.
        sample: Nanos = ms(75), [ms(1), secs(10)], "time", "assumed";
        /// How soon after an arrival or end an interval begins, so that it has nothing of the time
        /// before, and no program that starts its threads.
        settle: Nanos = ms(12), [ms(1), secs(10)], "time", "assumed";
        /// The most intervals in a row that are given up because programs arrive and end.
        most_spoilt: u32 = 3, [0, 1000], "intervals", "assumed";
        /// The time until the next sample where nothing can be gained.
        next_sample: Nanos = ms(500), [ms(1), secs(100)], "time", "assumed";
        /// The length of all solo probes together, unless one would be too short or too long.
        probes: Nanos = ms(80), [ms(1), secs(10)], "time", "assumed";
        /// The shortest solo probe.
        shortest_probe: Nanos = ms(5), [ms(1), ms(100)], "time", "assumed";
        /// The longest solo probe.
        longest_probe: Nanos = ms(30), [ms(1), secs(10)], "time", "assumed";
        /// The time between comparisons of taking turns with running together.
        check: Nanos = secs(1), [ms(10), secs(100)], "time", "assumed";
        /// The time before the first of these comparisons.
        first_check: Nanos = ms(300), [ms(10), secs(100)], "time", "assumed";
        /// The first pause after taking turns was given up.
        first_pause: Nanos = ms(500), [ms(10), secs(1000)], "time", "assumed";
        /// The longest of these pauses; each is twice as long as the one before.
        longest_pause: Nanos = secs(64), [ms(10), secs(10_000)], "time", "assumed";
        /// CPUs are short if more threads than this wait for one.
        short: f64 = 0.1, [0.0, 1.0], "part of the CPUs", "assumed";
        /// Where the number of waiting threads is unknown, CPUs are short if this part is busy.
        busy: f64 = 0.9, [0.0, 1.0], "part of the CPUs", "assumed";
        /// The relative difference of work between two equal intervals.
        noise: f64 = 0.02, [0.0, 1.0], "part of the work", "assumed";
        /// A program that uses less of a CPU does not compete.
        idles: f64 = 0.2, [0.0, 1.0], "CPUs", "assumed";
        /// A program that uses less does not compete when running together, in parts of what a
        /// thread has if all compete.
        idles_together: f64 = 0.25, [0.0, 1.0], "part of a share", "assumed";
        /// A program that counts as idle while others take turns competes when it uses this many
        /// times as much.
        wakes: f64 = 1.4, [1.0, 100.0], "times", "assumed";
        /// A program that has used less CPU time than this is still being loaded.
        loaded: Nanos = ms(10), [ms(1), secs(10)], "time", "assumed";
        /// The part of the joint work that may be lost where programs may spin.
        most_lost: f64 = 0.25, [0.0, 1.0], "part of the work",
            "experiments/policies: such programs take 1.3 to 10 times as long together";
        /// A program with this part of its threads active alone waits without sleeping, or never
        /// waits.
        awake: f64 = 0.93, [0.0, 1.0], "part of the threads", "assumed";
        /// A program that is outside the kernel for less than this part of what all are when
        /// running together yields its CPUs when it waits.
        yields: f64 = 0.85, [0.0, 1.0], "part of the CPUs", "assumed";
    }
}
