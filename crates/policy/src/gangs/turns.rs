//! How programs take turns: by weight, or frozen while others run.

use std::fmt;
use std::str::FromStr;

use crate::common::goal::Goal;
use crate::descriptor::{Descriptor, Gangs, OF_GANGS, OptionGroup};
use crate::gangs::minwait::Minwait;
use crate::kind::UnknownName;

/// Ours: turns by weight, as [`minwait`](crate::gangs::minwait) gives them.
pub(crate) const TURNS: Descriptor = Descriptor {
    gangs: Gangs::Chosen,
    turns: Turns::Weight,
    options: &[OF_GANGS, &[OptionGroup::Goal]],
    ..Descriptor::of_gangs(
        "turns",
        "every program runs, the one in turn with the largest weight; the others use the CPUs that \
         it leaves idle",
        |options| {
            let balanced = |options: &_| Ok(Box::new(Minwait::sharing(options)) as _);
            Goal::build(options, balanced)
        },
    )
};

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

impl fmt::Display for Turns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Turns {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Turns, UnknownName> {
        let found = Turns::ALL.into_iter().find(|turns| turns.name() == name);
        found
            .ok_or_else(|| UnknownName::new("way to take turns", name, Turns::ALL.map(Turns::name)))
    }
}
