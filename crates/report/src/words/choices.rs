//! The choices of `auto`, and their reasons, in words.

use cosched_core::{Mode, ReasonCode};

/// The mode in which programs run from now on, and why.
pub(super) fn chosen(mode: Mode, reason_code: ReasonCode) -> &'static str {
    match (mode, reason_code) {
        (Mode::Corun, ReasonCode::Begins) => {
            "running together, because nothing has been measured yet"
        }
        (Mode::Corun, ReasonCode::EnoughCpus) => {
            "running together, because there is a CPU for each thread"
        }
        (Mode::Corun, ReasonCode::CpusIdle) => {
            "running together, because hardly any thread waits for a CPU"
        }
        (Mode::Corun, ReasonCode::Alone) => {
            "running without turns, because there is only one program"
        }
        (Mode::Corun, ReasonCode::OneCompetes) => {
            "running together, because at most one program needs much CPU time"
        }
        (Mode::Corun, ReasonCode::AllSingleThreaded) => {
            "running together, because each program is single-threaded"
        }
        (Mode::Corun, ReasonCode::FewFreezable) => {
            "running together, because too few programs may be paused for turns"
        }
        (Mode::Corun, ReasonCode::GangsIdle) => {
            "running together, because taking turns keeps too few CPUs busy"
        }
        (Mode::Gangs, ReasonCode::GangsFill) => {
            "taking turns, because each program can fill its CPUs by itself"
        }
        (Mode::Corun, _) => "running together",
        (Mode::Gangs, _) => "taking turns",
        (Mode::Earlier, _) => "running in a mode that this version of cosched does not know",
    }
}
