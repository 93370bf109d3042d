//! The reasons of `auto`, and their words.

use cosched_core::format::count;
use cosched_core::format::span;
use cosched_core::{Nanos, Says, Wording, Words};
use serde::{Deserialize, Serialize};

use super::choice::{Mode, ReasonCode};

/// A reason of `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum AutoReason {
    /// The mode in which programs run from now on.
    Chosen {
        /// The mode.
        #[serde(alias = "manner")]
        mode: Mode,
        /// The reason code.
        #[serde(alias = "ground")]
        reason_code: ReasonCode,
        /// How many CPUs they kept busy outside the kernel when running together, as measured last.
        #[serde(alias = "side_by_side")]
        corun: Option<f64>,
        /// How many they keep busy when taking turns, or are expected to by their solo probes.
        #[serde(alias = "in_gangs")]
        gangs: Option<f64>,
        /// The cost of measuring so far: CPU time that was lost to it, as time of the whole
        /// machine.
        explored: Nanos,
    },
    /// Each program has a solo probe, which shows how many CPUs it keeps busy.
    #[serde(alias = "looks-at-each")]
    SoloProbes {
        /// The length of a probe.
        #[serde(alias = "moment")]
        length: Nanos,
        /// The number of probes.
        #[serde(alias = "moments")]
        probes: u16,
    },
    /// It hardly uses CPUs, so it always runs.
    HardlyRuns,
}

impl Words for AutoReason {
    fn words(&self) -> Wording {
        match *self {
            AutoReason::Chosen { mode, reason_code, corun, gangs, explored } => {
                let turns =
                    gangs.map_or(String::new(), |cpus| format!(", {cpus:.2} when taking turns"));
                let busy =
                    corun.map(|cpus| format!("{cpus:.2} CPUs busy when running together{turns}"));
                let cost = Some(explored).filter(|cost| *cost > Nanos::ZERO);
                let cost = cost.map(|cost| format!("measuring has cost {} so far", span(cost)));
                let figures: Vec<String> = busy.into_iter().chain(cost).collect();
                let brief = match mode {
                    Mode::Corun => "running together",
                    Mode::Gangs => "taking turns",
                    Mode::Earlier => "unknown mode",
                };
                Wording::new(chosen(mode, reason_code), brief)
                    .figures((!figures.is_empty()).then(|| figures.join("; ")))
                    .says(Says::Nothing)
            }
            AutoReason::SoloProbes { length, probes } => Wording::new(
                "solo probe: each program runs by itself for a moment, to measure how many CPUs \
                 it uses",
                "solo probes",
            )
            .figures(format!("{} {}", count(probes as usize, "time", "times"), span(length)))
            .says(Says::Nothing),
            AutoReason::HardlyRuns => {
                Wording::new("it uses hardly any CPU time, so it always runs", "almost idle")
            }
        }
    }
}

/// The mode in which programs run from now on, and why.
fn chosen(mode: Mode, reason_code: ReasonCode) -> &'static str {
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
