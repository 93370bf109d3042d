//! How programs take turns: by weight, or frozen while others run.

use crate::common::unknown::by_name;

/// How the programs that have no turn are kept from the CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Turns {
    /// They get what the programs in turn leave ([`by_weight`](crate::gangs::by_weight)).
    Weight,
    /// They are frozen.
    Freeze,
}

by_name!(Turns, "way to take turns", [Weight: "weight", Freeze: "freeze"]);
