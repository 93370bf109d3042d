//! Where the runs of an experiment are made. The rounds are the same everywhere; only a site knows
//! what a run is.

use std::path::Path;

use cosched_policy::Kind;
use cosched_results::result::Context;
use cosched_workload::Workload;

use crate::how::How;
use crate::session::{Ran, Session};
use crate::stop::MeasuringStop;
use crate::ui::failure::Failure;

/// One run of one variant.
#[derive(Clone, Copy, Debug)]
pub struct VariantRun<'a> {
    /// The programs as this variant starts them.
    pub workload: &'a Workload,
    /// The policy that decides.
    pub kind: Kind,
    /// How policies and machine do their work in it.
    pub how: &'a How,
    /// The folder for its result and outputs, where nothing lies that it would write.
    pub out: &'a Path,
}

/// A machine that runs programs, or seems to.
pub trait Site {
    /// The machine, as programs may use it.
    fn session(&self) -> &Session;

    /// Says what would disturb the runs: other processes, or more threads than CPUs.
    fn tell_before_runs(&self) {}

    /// Whether a first run differs from later ones.
    fn warms_up(&self) -> bool;

    /// Whether it is to be found in every round how long each program takes alone.
    fn finds_times_alone(&self) -> bool;

    /// Checks everything that can be wrong with such a run. Nothing is started or written.
    fn check(&self, workload: &Workload, kind: Kind, how: &How) -> Result<(), Failure>;

    /// What a run of this round would tell of itself, as far as that is known before it is made.
    fn expected(&self, turn: &VariantRun<'_>, round: u16) -> Context;

    /// Finds how long each program takes alone, for the runs that follow.
    fn alone(&mut self, round: u16) -> Result<(), MeasuringStop>;

    /// Makes a run, and saves its result.
    fn run(&mut self, turn: &VariantRun<'_>) -> Result<Ran, MeasuringStop>;
}
