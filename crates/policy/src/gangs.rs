//! Gangs that take turns: the policies that decide which programs run together.

pub(crate) mod bandwidth;
pub(crate) mod by_weight;
pub(crate) mod cgreedy;
pub(crate) mod fcfs;
pub(crate) mod gang;
pub(crate) mod goals;
pub(crate) mod greedy;
pub(crate) mod held;
pub(crate) mod minwait;
pub(crate) mod params;
pub(crate) mod placement;
pub mod quantum;
pub(crate) mod rounds;
pub(crate) mod thread_limits;
pub(crate) mod turns;
