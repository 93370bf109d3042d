//! An experiment: the same programs run in several variants, several times, in turn.
//!
//! On a machine that others share, a minute later is another machine. So the variants take turns (A
//! B C A B C), each round gives one sample of every variant, and variants are compared pair by pair
//! within rounds. The solo times, where they are asked for, are measured in every round too. One
//! run that does not count comes first: it fills the page cache. All that is the same on this
//! machine and on a simulated one.

mod failures;
mod here;
mod kept;
mod lock;
mod origin;
mod record;
mod rounds;
mod site;
mod split;
mod summary;
#[cfg(test)]
mod tests;
mod variant;

pub use here::Here;
pub use record::ExperimentRecord;
pub use rounds::{Experiment, ExperimentPlan, MOST_ROUNDS};
pub use site::{Site, VariantRun};
pub use summary::show;
pub use variant::{Variant, VariantOptions, check_names};
