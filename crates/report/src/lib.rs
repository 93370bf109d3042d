//! Shows what cosched did.
//!
//! A result ([`cosched_core::result`]) holds what happened: who ran when, on which CPUs, and why.
//! From it this crate makes what people look at, and nothing else: it runs nothing, measures
//! nothing, and touches no file. Everything is a pure function from results to text or bytes, so
//! that the same result always gives the same picture.
//!
//! A [`Report`]: several [`Way`]s are held against each other ([`Comparison`]), and a run of each
//! is shown in [`panels`], which become [SVG](svg) for a paper or one [HTML page](html).

#![forbid(unsafe_code)]

pub mod after;
#[cfg(test)]
mod by_hand;
mod colours;
pub mod comparison;
pub mod explain;
pub mod history;
pub mod html;
pub mod molding;
pub mod openmetrics;
pub mod panels;
mod report;
pub mod screen;
pub mod silence;
#[cfg(test)]
mod standing;
pub mod svg;
#[cfg(test)]
mod testkit;
mod trace;
mod treatment;
mod way;
pub mod words;

pub use comparison::{Comparison, Incomparable};
pub use report::Report;
pub use trace::{Trace, is_trace, trace};
pub use way::Way;
