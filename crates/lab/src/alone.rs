//! Each program alone on this machine, measured and kept in the [store](crate::store).

mod counts;
mod disturbed;
mod in_turn;
mod program;

use std::collections::BTreeSet;

use cosched_workload::{ProgramSpec, Workload};

use crate::how::How;
use crate::session::Session;
use crate::stop::MeasuringStop;
use crate::store::{Key, Store};
use crate::ui::Talk;
pub(crate) use counts::parse_counts;
pub(crate) use in_turn::{KnownRuns, Measured, measure as measure_in_turn};
pub(crate) use program::{SoloRun, complaint, run_alone, run_once};

/// Measures every program once; programs that are the same count as one. Disturbed times serve this
/// process alone. What was measured before an interruption is kept.
pub(crate) fn measure_all(
    session: &Session,
    workload: &Workload,
    how: &How,
    talk: Talk,
    store: &mut Store,
) -> Result<(), MeasuringStop> {
    let mut fresh: BTreeSet<Key> = BTreeSet::new();
    for (slot, spec) in workload.programs.iter().enumerate() {
        let key = session.key(spec, how);
        if !fresh.insert(key.clone()) {
            continue;
        }
        talk.tell(format_args!("{} alone, threads: {}", spec.name, session.threads(spec)));
        let made = [run_alone(session, spec, how)?];
        program::tell_scaled(spec, &made);
        let entry = program::entry(&made, None);
        let later = workload.programs[slot + 1..].iter();
        let same = later.filter(|other| session.key(other, how) == key);
        let same: Vec<String> = same.map(|other| other.name.clone()).collect();
        match disturbed::not_kept(&spec.name, &same, session.threads(spec), &made) {
            None => store.put(&key, &entry)?,
            Some(sentence) => {
                talk.tell(format_args!("{sentence} This round still uses it."));
                store.know_for_now(&key, &entry);
            }
        }
    }
    Ok(())
}

/// Measures every program with each of its thread counts until so many runs of it are known. What
/// was measured before an interruption is kept.
pub(crate) fn measure_missing(
    session: &Session,
    workload: &Workload,
    counts: &dyn Fn(&ProgramSpec) -> Vec<u16>,
    how: &How,
    runs: u16,
    store: &mut Store,
) -> Result<Vec<Measured>, MeasuringStop> {
    let programs = workload.programs.iter();
    let specs = programs.flat_map(|spec| with_counts(spec, Some(&counts(spec)))).collect();
    measure_in_turn(session, specs, how, runs, KnownRuns::Counts, store)
}

/// The program with each of the thread counts; as it is where none are given, and where its own
/// `env` wins over them.
pub(crate) fn with_counts(spec: &ProgramSpec, counts: Option<&[u16]>) -> Vec<ProgramSpec> {
    match counts.filter(|_| !spec.has_own_count()) {
        None => vec![spec.clone()],
        Some(counts) => counts
            .iter()
            .map(|count| ProgramSpec { threads: Some(*count), ..spec.clone() })
            .collect(),
    }
}
