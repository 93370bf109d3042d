//! How well cosched itself did, and what it cost.

use serde::{Deserialize, Serialize};

/// How well cosched itself did, and what it cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Own {
    /// CPU time that cosched used, in percent of one CPU over the run.
    pub cpu_percent: f64,
    /// How often a decision changed which programs run; the first start does not count.
    pub switches: usize,
    /// How late wake-ups came after they were due; `None` without wake-ups.
    pub wake_lateness: Option<Quantiles>,
    /// From the first freeze of a switch until the last program of the new gang ran, where a switch
    /// froze one program and thawed another; `None` without such switches.
    pub switch_gap: Option<Quantiles>,
    /// What the policy cost; `None` in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_cost: Option<PolicyCost>,
}

/// What a policy cost, in the parts of section 7.7 of the FPS paper. There the first one is part of
/// the scheduling routine, and the last one is in the time of programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PolicyCost {
    /// Time in which measurements were read.
    pub reading_seconds: f64,
    /// Time in which the policy decided, phases and estimates included.
    pub deciding_seconds: f64,
    /// Samples of programs' code: an interrupt each, in the time of programs.
    pub code_samples: u64,
}

/// How a measured time is distributed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Half of the measured times are no longer than this.
    pub p50_seconds: f64,
    /// 99 in 100 of the measured times are no longer than this.
    pub p99_seconds: f64,
    /// The longest.
    pub max_seconds: f64,
}
