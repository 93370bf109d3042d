//! Several programs alone, in turn: each once, then each again.
//!
//! *Problem.* On a machine that others share one run may take twice as long as the next, and slow
//! minutes come in rows. What is measured several times in a row in such a minute looks slow.
//!
//! *Idea.* Rounds, as where variants are compared: everything is measured once, and each round
//! begins with another program. A slow minute then slows all programs alike, and a median does not
//! see it. Every time is kept, so an interruption costs one run. If the user requests more runs
//! than are known, only the missing ones are made.

use cosched_workload::ProgramSpec;

use super::program::{self, Alone, Stop};
use crate::args::HowArgs;
use crate::session::Session;
use crate::store::{Entry, Key, Store};
use crate::ui::pace::{Pace, order};

/// What becomes of runs that are known already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// They count.
    Counts,
    /// The new ones take their place, as soon as there are as many.
    IsReplaced,
}

/// A program with a thread count.
struct Subject {
    spec: ProgramSpec,
    key: Key,
    /// What counts of what was known.
    before: Option<Entry>,
    made: Vec<Alone>,
    /// With fewer runs it is not kept.
    least: usize,
}

impl Subject {
    fn runs(&self) -> usize {
        self.before.as_ref().map_or(0, |entry| entry.times.len()) + self.made.len()
    }
}

/// Runs each of these programs so often alone, in turn, and keeps all times. Programs that are the
/// same count as one.
pub(crate) fn measure(
    session: &Session,
    specs: Vec<ProgramSpec>,
    how: &HowArgs,
    runs: u16,
    known: Known,
    store: &mut Store,
) -> Result<(), Stop> {
    let mut subjects: Vec<Subject> = Vec::new();
    for spec in specs {
        let key = session.key(&spec, how);
        if subjects.iter().any(|other| other.key == key) {
            continue;
        }
        let entry = store.get(&key)?;
        let least = entry.as_ref().map_or(0, |entry| entry.runs.min(runs)).into();
        let before = entry.filter(|_| known == Known::Counts);
        subjects.push(Subject { spec, key, before, made: Vec::new(), least });
    }
    subjects.retain(|subject| subject.runs() < usize::from(runs));
    let missing = subjects.iter().map(|subject| usize::from(runs) - subject.runs()).max();
    let rounds = missing.and_then(|missing| u16::try_from(missing).ok()).unwrap_or(0);
    let mut pace = Pace::new(subjects.len(), rounds, rounds.into());
    for round in 0..rounds {
        for position in order(subjects.len(), round) {
            let subject = &mut subjects[position];
            let threads = session.threads(&subject.spec);
            pace.begin(round, &format!("{} alone, threads: {threads}", subject.spec.name));
            subject.made.push(program::run_alone(session, &subject.spec, how)?);
            if subject.runs() >= subject.least {
                let entry = program::entry(&subject.made, subject.before.as_ref());
                store.put(&subject.key, &entry)?;
            }
        }
    }
    subjects.iter().for_each(|subject| program::tell_scaled(&subject.spec, &subject.made));
    Ok(())
}
