//! What users can choose of `faithful`.

use cosched_core::{Actuator, Class, Nanos};

use super::quanta::Quanta;

/// Options of `faithful`.
#[derive(Clone, Debug, PartialEq)]
pub struct FaithfulOptions {
    /// How often programs are measured; `None`: once a second, and with the guard more often until
    /// the first decision.
    pub interval: Option<Nanos>,
    /// The slice for each scaling factor.
    pub quanta: Quanta,
    /// The actuators that may be used; without the guard, the first one is.
    pub actuators: Vec<Actuator>,
    /// Whether time asleep for input and output counts like time at locks (section V-E2).
    pub io_waits: bool,
    /// Whether actuators are tried, and put back if they do not help.
    pub guard: bool,
    /// Whether actuators are tried again, whatever earlier runs have shown.
    pub relearn: bool,
    /// The class that a simulated kernel has for slices; `None`: slices are for threads of any
    /// class.
    pub class: Option<Class>,
}

impl Default for FaithfulOptions {
    fn default() -> FaithfulOptions {
        FaithfulOptions {
            interval: None,
            quanta: Quanta::of_the_paper(),
            // Slices alone have not helped in any of our measurements
            // (docs/research/measurements.md).
            actuators: vec![Actuator::Batch, Actuator::BatchSlice],
            io_waits: false,
            guard: true,
            relearn: false,
            class: None,
        }
    }
}

impl FaithfulOptions {
    /// The options of the paper: its table, each second, and no guard. "Same priority is assigned
    /// to all the threads" (section III), so that no thread takes a CPU from a sibling: the batch
    /// class comes nearest to that on Linux. A slice alone leaves preemption on wake-up as it is.
    pub fn of_the_paper() -> FaithfulOptions {
        FaithfulOptions {
            actuators: vec![Actuator::BatchSlice],
            guard: false,
            ..FaithfulOptions::default()
        }
    }
}
