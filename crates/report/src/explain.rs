//! A run in words: why it took so long, and why a program ran or did not at a time.
//!
//! Two questions, two modules: [`Story`] answers "why did it take so long" for the whole run,
//! [`Moment`] "what happened then, and why". Both are data first (the JSON of `cosched explain`,
//! described in `docs/json.md`) and sentences second: the sentences say nothing that the data do
//! not hold. Reasons are the policy's own ([`Why`](cosched_core::Why)), never guessed afterwards.

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
pub const SCHEMA: &str = "cosched-explain/1";
