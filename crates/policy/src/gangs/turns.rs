//! How programs take turns: by weight, or frozen while others run.

use crate::kind::unknown::by_name;

/// How the programs that have no turn are kept from the CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Turns {
    /// They get what the programs in turn leave ([`by_weight`](crate::gangs::by_weight)).
    Weight,
    /// They are frozen.
    Freeze,
}

impl Turns {
    /// All of them.
    pub const ALL: [Turns; 2] = [Turns::Weight, Turns::Freeze];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Turns::Weight => "weight",
            Turns::Freeze => "freeze",
        }
    }
}

by_name!(Turns, "way to take turns");
