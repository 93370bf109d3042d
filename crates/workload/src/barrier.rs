//! At which barriers the threads of a program wait, and how.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::Problem;

/// How threads wait for each other at barriers. All but the first are those of cosched's library
/// inside the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BarrierMode {
    /// As the program's own runtime does it.
    #[default]
    Own,
    /// A waiting thread knows whether the threads that it waits for run, and gives its CPU away
    /// where one does not.
    Donate,
    /// Looks on until the last has come. This and the following are there to be compared with.
    Spin,
    /// Sleeps at once.
    Block,
    /// Looks on for a fixed time, then sleeps.
    SpinThenBlock,
    /// Lets others run between looks.
    Yield,
    /// As in the paper on Tidon: gives the CPU to a thread that has not come, which the kernel
    /// chooses; needs cosched's scheduler in the kernel.
    Tidon,
    /// Sleeps where the machine has more runnable threads than CPUs, and looks on elsewhere: the
    /// rival of the paper on faithful scheduling.
    LoadControl,
}

impl BarrierMode {
    /// All, in the order in which they are told.
    pub const ALL: [BarrierMode; 8] = [
        BarrierMode::Own,
        BarrierMode::Donate,
        BarrierMode::Spin,
        BarrierMode::Block,
        BarrierMode::SpinThenBlock,
        BarrierMode::Yield,
        BarrierMode::Tidon,
        BarrierMode::LoadControl,
    ];

    /// As it is written down.
    pub const fn name(self) -> &'static str {
        match self {
            BarrierMode::Own => "own",
            BarrierMode::Donate => "donate",
            BarrierMode::Spin => "spin",
            BarrierMode::Block => "block",
            BarrierMode::SpinThenBlock => "spin-then-block",
            BarrierMode::Yield => "yield",
            BarrierMode::Tidon => "tidon",
            BarrierMode::LoadControl => "load-control",
        }
    }
}

impl fmt::Display for BarrierMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for BarrierMode {
    type Err = Problem;

    fn from_str(name: &str) -> Result<BarrierMode, Problem> {
        let found = BarrierMode::ALL.into_iter().find(|barrier| barrier.name() == name);
        found.ok_or_else(|| Problem::Barrier(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_written_to_files_by_the_name_that_it_is_read_by() {
        for barrier in BarrierMode::ALL {
            assert_eq!(barrier.name().parse::<BarrierMode>().unwrap(), barrier);
            assert_eq!(serde_json::to_value(barrier).unwrap(), barrier.name());
        }
        assert!(
            "gang".parse::<BarrierMode>().unwrap_err().to_string().contains("own, donate, spin")
        );
    }
}
