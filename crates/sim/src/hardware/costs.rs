//! What the steps of cosched itself take.

use cosched_core::Nanos;
use serde::Deserialize;

/// The durations of cosched's own steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// From the start step to the first instruction.
    #[serde(rename = "start_nanos")]
    pub start: Nanos,
    /// The additional time if the program has to join a cgroup first. In Linux every process that
    /// moves between cgroups waits until all CPUs have passed through the kernel once (an RCU grace
    /// period). All programs that start at once share one wait.
    #[serde(default, rename = "join_nanos")]
    pub join: Nanos,
    /// From the freeze step until the last thread has stopped.
    #[serde(rename = "freeze_nanos")]
    pub freeze: Nanos,
    /// From the thaw step until the first thread runs.
    #[serde(rename = "thaw_nanos")]
    pub thaw: Nanos,
}

impl Costs {
    /// Freezing and thawing as measured with a version 2 cgroup (see
    /// docs/research/measurements.md): about the medians with few threads. The time to start is
    /// assumed, and so is that joining a cgroup takes no additional time.
    pub const MEASURED: Costs = Costs {
        start: Nanos::from_micros(700),
        join: Nanos::ZERO,
        freeze: Nanos::from_micros(50),
        thaw: Nanos::from_micros(30),
    };
}
