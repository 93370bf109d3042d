//! What can be done to the threads of a program so that they do not take CPUs from each other.
//!
//! The paper on faithful scheduling uses one mechanism: Solaris' class of fixed priorities with a
//! time quantum. Linux has several. They differ in which thread may take a CPU from which other
//! thread. None of them is best for every program (docs/research/measurements.md).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::plan::{Class, Settings};
use crate::time::Nanos;

/// A way to schedule the threads of a program as equals.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Actuator {
    /// The original settings.
    #[default]
    None,
    /// The program's own class, with the slice of the table.
    Slice,
    /// Without preemption on wake-up, with the kernel's own slice.
    Batch,
    /// Without preemption on wake-up, with the slice of the table.
    BatchSlice,
    /// Without preemption on wake-up, with a slice of the table for each stage of a pipeline.
    BatchStages,
    /// Real-time round robin: before everything else on the machine, so on request only.
    RoundRobin,
}

/// A name that stands for no actuator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no actuator '{0}': choose from none, slice, batch, batch-slice, batch-stages, \
     round-robin"
)]
pub struct UnknownActuator(String);

impl Actuator {
    /// Every actuator, from the one that changes least to the one that changes most.
    pub const ALL: [Actuator; 6] = [
        Actuator::None,
        Actuator::Slice,
        Actuator::Batch,
        Actuator::BatchSlice,
        Actuator::BatchStages,
        Actuator::RoundRobin,
    ];

    /// The actuator's name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Actuator::None => "none",
            Actuator::Slice => "slice",
            Actuator::Batch => "batch",
            Actuator::BatchSlice => "batch-slice",
            Actuator::BatchStages => "batch-stages",
            Actuator::RoundRobin => "round-robin",
        }
    }

    /// The settings that the machine needs. `usual` is the class that a simulated kernel has for
    /// threads with slices, if it does not have Linux' classes: Solaris' class of fixed priorities,
    /// in which no thread preempts another of its priority.
    pub fn settings(self, slice: Nanos, usual: Option<Class>) -> Settings {
        let (class, slice) = match self {
            Actuator::None => return Settings::default(),
            Actuator::Slice => (usual, Some(slice)),
            Actuator::Batch => (Some(Class::Batch), None),
            Actuator::BatchSlice | Actuator::BatchStages => {
                (usual.or(Some(Class::Batch)), Some(slice))
            }
            Actuator::RoundRobin => (Some(Class::RoundRobin(1)), None),
        };
        Settings { class, slice, ..Settings::default() }
    }
}

impl fmt::Display for Actuator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Actuator {
    type Err = UnknownActuator;

    fn from_str(name: &str) -> Result<Actuator, UnknownActuator> {
        let known = Actuator::ALL.into_iter().find(|actuator| actuator.name() == name);
        known.ok_or_else(|| UnknownActuator(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_actuator_is_found_by_its_name_only() {
        for actuator in Actuator::ALL {
            assert_eq!(actuator.name().parse(), Ok(actuator));
            let written = serde_json::to_string(&actuator).unwrap();
            assert_eq!(written, format!("\"{actuator}\""), "results and options have one name");
        }
        assert!("rr".parse::<Actuator>().is_err());
    }

    #[test]
    fn actuators_set_what_their_names_say() {
        let slice = Nanos::from_millis(20);
        let asked = |actuator: Actuator| {
            let settings = actuator.settings(slice, None);
            (settings.class, settings.slice)
        };
        assert_eq!(asked(Actuator::None), (None, None));
        assert_eq!(asked(Actuator::Slice), (None, Some(slice)));
        assert_eq!(asked(Actuator::Batch), (Some(Class::Batch), None));
        assert_eq!(asked(Actuator::BatchSlice), (Some(Class::Batch), Some(slice)));
        let fixed = Some(Class::FixedPriority(0));
        for with_slice in [Actuator::Slice, Actuator::BatchSlice] {
            let settings = with_slice.settings(slice, fixed);
            assert_eq!((settings.class, settings.slice), (fixed, Some(slice)));
        }
    }
}
