//! The quanta of a run.
//!
//! A quantum is the time for which a gang has the CPUs. A policy that begins a quantum as soon as
//! the last one is over reports none once all programs fit at once. It decides nothing more until
//! another program arrives. A quantum that was planned for 100 ms then seems to last to the end of
//! the run. A quantum that goes on for twice its length therefore ends when the programs that had
//! to wait in it no longer wait, if no program waits from then on.

use cosched_core::{Nanos, Quantum};
use cosched_results::result::RunResult;

use super::{Activity, Phase, nanos};

/// A quantum as it was planned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlannedQuantum {
    /// Its number among those in run.json, from 1.
    pub number: usize,
    /// When it was decided.
    pub from: Nanos,
    /// When the next one was decided, or all programs fit at once, or the run ended.
    pub to: Nanos,
    /// Which round; policies without rounds count quanta.
    pub round: u64,
    /// Which gang, from 0.
    pub gang: u16,
    /// How many gangs the round has.
    pub gangs: u16,
    /// Its planned length; [`Nanos::NEVER`]: without a planned end.
    pub length: Nanos,
    /// Its position among the decisions.
    pub decision: usize,
}

/// The quanta of a run, in order of time; `phases` of each program.
pub(super) fn quanta(result: &RunResult, phases: &[Vec<Phase>]) -> Vec<PlannedQuantum> {
    let mut quanta: Vec<PlannedQuantum> = Vec::new();
    for (decision, made) in result.decisions.iter().enumerate() {
        let from = nanos(made.at_seconds);
        for reason in &made.reasons {
            let Some(begun) = Quantum::of(&reason.why) else { continue };
            let Quantum { round, gang, gangs, length } = begun;
            if let Some(last) = quanta.last_mut() {
                last.to = from;
            }
            let number = quanta.len() + 1;
            let to = nanos(result.total_seconds).max(from);
            quanta.push(PlannedQuantum { number, from, to, round, gang, gangs, length, decision });
        }
    }
    for quantum in &mut quanta {
        quantum.to = room_from(quantum, phases).unwrap_or(quantum.to);
    }
    quanta
}

/// From when on all programs fit at once, so that there was no quantum any more.
fn room_from(quantum: &PlannedQuantum, phases: &[Vec<Phase>]) -> Option<Nanos> {
    let PlannedQuantum { from, to, length, .. } = *quantum;
    if length == Nanos::NEVER || to - from < length * Quantum::OVER_AFTER {
        return None;
    }
    // A program that arrives later also waits for a moment until it is started.
    let (planned, starts) = (from + length, |phase: &Phase| phase.state == Activity::Unstarted);
    let within = |phase: &&Phase| phase.to > from && phase.from < to && phase.state.waits();
    let waits = phases.iter().flatten().filter(within);
    let waits = waits.filter(|phase| phase.from < planned || !starts(phase));
    let last = waits.map(|phase| phase.to).max().unwrap_or(from);
    (last <= from + length * Quantum::OVER_AFTER && last < to).then_some(last)
}
