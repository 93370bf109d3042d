//! A run in words: why it took so long, and why a program ran or waited at a time.
//!
//! [`Story`] tells where the time of the whole run went. [`Moment`] tells what happened at a time,
//! and why. Both are data first (the JSON of `cosched explain`, described in `docs/results.md`) and
//! sentences second: the sentences say nothing that the data do not hold. All reasons
//! ([`Why`](cosched_core::Why)) were given by the policy during the run, none is guessed
//! afterwards.

mod barrier_stats;
mod choices;
mod lag;
mod left_to_linux;
mod moment;
mod slices;
mod spread;
mod story;
mod sum;
#[cfg(test)]
mod tests;
mod thread_decisions;
mod thread_limits;
mod turns;

pub use choices::Choice;
pub use moment::{Moment, ProgramMoment, QuantumMoment};
pub use slices::{SliceChoice, TriedActuator, unset, why_unset};
pub use story::{CoRunner, LongestWait, Misfortune, ProgramStory, Story, WaitReason};
pub use thread_decisions::ThreadDecision;
pub use thread_limits::ThreadLimit;
pub(crate) use thread_limits::thread_limits;

/// The version of the JSON.
pub const SCHEMA: &str = "cosched-explain/4";
