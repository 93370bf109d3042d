//! A run in words: why it took so long, and why a program ran or waited at a time.
//!
//! [`Story`] tells where the time of the whole run went. [`Moment`] tells what happened at a time,
//! and why. Both are data first (the JSON of `cosched explain`, described in `docs/results.md`) and
//! sentences second: the sentences say nothing that the data do not hold. All reasons
//! ([`Why`](cosched_core::Why)) were given by the policy during the run, none is guessed
//! afterwards.

mod choices;
mod grants;
mod meetings;
mod moment;
mod slices;
mod spread;
mod story;
#[cfg(test)]
mod tests;

pub use choices::Choice;
pub use grants::Grant;
pub use moment::{Moment, ProgramMoment, QuantumMoment};
pub use slices::{SliceChoice, TriedWay};
pub use story::{Company, LongestWait, Misfortune, ProgramStory, Story, WaitReason};

/// The version of the JSON.
pub const SCHEMA: &str = "cosched-explain/2";
