//! What several policies use.

pub(crate) mod goal;
pub(crate) mod guard;
pub(crate) mod nice;
#[cfg(test)]
pub(crate) mod on_an_engine;
pub(crate) mod params;
#[cfg(test)]
pub(crate) mod properties;
pub(crate) mod reasons;
#[cfg(test)]
pub(crate) mod testkit;
pub(crate) mod unit;
pub(crate) mod unknown;
