//! The figures as JSON.

use std::path::Path;

use cosched_results::result::MachineDescription;
use serde::Serialize;

use super::description::MeasuredFigures;
use crate::ui::failure::Failure;

const SCHEMA: &str = "cosched-sim-measure/1";

#[derive(Debug, Serialize)]
struct MeasurementDocument<'a> {
    schema: &'static str,
    file: &'a Path,
    machine: &'a MachineDescription,
    #[serde(flatten)]
    figures: &'a MeasuredFigures,
    own: OwnCosts,
}

#[derive(Debug, Serialize)]
struct OwnCosts {
    start_nanos: u64,
    join_nanos: u64,
    freeze_nanos: u64,
    thaw_nanos: u64,
    frozen_by: &'static str,
}

/// What was measured, and where the description lies.
pub(super) fn json(
    figures: &MeasuredFigures,
    machine: &MachineDescription,
    file: &Path,
) -> Result<String, Failure> {
    let own = OwnCosts {
        start_nanos: figures.own.start.0,
        join_nanos: figures.own.join.0,
        freeze_nanos: figures.own.freeze.0,
        thaw_nanos: figures.own.thaw.0,
        frozen_by: figures.backend,
    };
    let document = MeasurementDocument { schema: SCHEMA, file, machine, figures, own };
    serde_json::to_string_pretty(&document).map_err(Failure::broken)
}
