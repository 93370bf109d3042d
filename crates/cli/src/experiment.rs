//! An experiment: the same programs run in several [ways](way), several times, in turn.
//!
//! On a machine that others share, a minute later is another machine. So the ways take turns
//! (A B C A B C), each round gives one sample of every way, and ways are compared [pair by
//! pair](summary) within rounds. The times alone, where they are asked for, are measured in every round
//! too. One run that does not count comes first: it fills the page cache.

mod pace;
mod rounds;
mod summary;
mod way;

pub(crate) use pace::Pace;
pub(crate) use rounds::{Experiment, Plan};
pub(crate) use summary::Comparison;
pub(crate) use way::Way;
