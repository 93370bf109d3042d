//! What every subcommand that runs programs shares: a workload, a policy and this machine become a
//! result.
//!
//! A [`Request`] says what is to be run and how. A [`Session`] is this machine, or one that is not
//! there: it knows what programs need of it, makes runs, and tells of them.

mod actuators;
mod barriers;
mod by_weight;
mod crowding;
mod here;
mod jobs;
mod learned;
mod live;
mod load;
mod making;
mod misses;
mod molding;
mod pauses;
mod request;
mod scope;
mod seen;
mod sources;
mod streams;
mod terms;
mod turn_lengths;
mod workers;

pub use by_weight::{ByWeightReport, unused_by_weight};
pub use here::{Planned, Session, THIS};
pub use load::Load;
pub use making::{Checked, NO_WEIGHTS, backends_by_weight, by_weight};
pub use molding::{Molded, is_moldable};
pub use request::{Extras, Labels, Origins, Ran, Request};
pub use scope::enter_scope;
pub(crate) use streams::{check_alone, check_outputs, check_together};
