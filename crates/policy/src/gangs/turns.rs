//! How programs take turns: by weight, or frozen while others run.

use std::fmt;
use std::str::FromStr;

use crate::kind::unknown::UnknownName;

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
