//! Shows what cosched did.
//!
//! A result ([`cosched_results::result`]) holds what happened: which program ran when, on which
//! CPUs, and why. This crate makes text and pictures of it. It runs nothing, measures nothing, and
//! touches no file. Everything is a pure function from results to text or bytes, so the same result
//! always gives the same picture.
//!
//! A [`Report`] compares several [`VariantRuns`]s in a [`Comparison`]. It shows
//! a run of each in [`panels`], which become [SVG](svg) for a paper or one [HTML page](html).

#![forbid(unsafe_code)]

pub mod after;
#[cfg(test)]
mod by_hand;
mod colours;
pub mod comparison;
mod detached;
pub mod disturbance;
pub mod explain;
pub mod history;
pub mod html;
pub mod interference;
pub mod molding;
pub mod openmetrics;
pub mod panels;
mod processes;
mod report;
pub mod screen;
pub mod shortened;
pub mod silence;
pub mod spent;
mod spinning;
#[cfg(test)]
mod standing;
pub mod svg;
#[cfg(test)]
mod testkit;
mod trace;
mod treatment;
mod unpaused;
mod variant;
pub mod words;

pub use comparison::{Comparison, Incomparable};
pub use report::Report;
pub use trace::{Trace, is_trace, trace};
pub use variant::VariantRuns;
