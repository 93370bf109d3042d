//! Several programs alone, in turn: each once, then each again.
//!
//! *Problem.* On a machine that others share one run may take twice as long as the next, and slow
//! minutes come in rows. What is measured several times in a row in such a minute looks slow.
//!
//! *Idea.* Rounds, as where variants are compared: everything is measured once, and each round
//! begins with another program. A slow minute then slows all programs alike, and a median does not
//! see it. Every time is kept as soon as it is known, so an interruption costs one run. If the user
//! requests more runs than are known, only the missing ones are made.
//!
//! A time that other processes disturbed is not kept: later commands would use it without a word.

use cosched_core::format::count;
use cosched_workload::ProgramSpec;

use super::disturbed::{self, Disturbance};
use super::program::{self, SoloRun};
use crate::how::How;
use crate::session::Session;
use crate::stop::MeasuringStop;
use crate::store::{Key, SoloRecord, Store};
use crate::ui::pace::{Pace, order};
use crate::ui::{Talk, say};

/// What becomes of runs that are known already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownRuns {
    /// They count.
    Counts,
    /// The new ones take their place, as soon as there are as many.
    IsReplaced,
}

struct Subject {
    spec: ProgramSpec,
    /// The names of the other programs that are the same.
    same: Vec<String>,
    key: Key,
    /// What counts of what was known.
    before: Option<SoloRecord>,
    made: Vec<SoloRun>,
    /// With fewer runs it is not kept.
    least: usize,
}

impl Subject {
    fn runs(&self) -> usize {
        self.before.as_ref().map_or(0, |entry| entry.times.len()) + self.made.len()
    }

    /// What may be kept: without disturbed times. `None`: nothing new.
    fn to_keep(&self) -> Option<SoloRecord> {
        let undisturbed: Vec<SoloRun> =
            self.made.iter().filter(|run| run.disturbed.is_none()).cloned().collect();
        (!undisturbed.is_empty()).then(|| program::entry(&undisturbed, self.before.as_ref()))
    }

    /// What is kept by now; `None` where it would replace more runs, too.
    fn kept(&self, runs: u16) -> Option<SoloRecord> {
        let is_over = self.runs() >= usize::from(runs);
        self.to_keep().filter(|entry| is_over || entry.times.len() >= self.least)
    }

    fn measured(self, session: &Session) -> Measured {
        let (name, threads) = (&self.spec.name, session.threads(&self.spec));
        let not_kept = disturbed::not_kept(name, &self.same, threads, &self.made);
        let known = self.before.clone().filter(|entry| !entry.times.is_empty());
        let (entry, disturbed) = match self.to_keep().or(known) {
            Some(entry) => (entry, None),
            None => (program::entry(&self.made, None), disturbed::worst(&self.made).cloned()),
        };
        Measured { key: self.key, entry, disturbed, not_kept }
    }
}

/// What was found of a program with a thread count.
pub(crate) struct Measured {
    pub(crate) key: Key,
    /// It rests on disturbed times only where there are no others.
    pub(crate) entry: SoloRecord,
    /// Set if it rests on disturbed times.
    pub(crate) disturbed: Option<Disturbance>,
    /// Says that times were not kept, and why.
    pub(crate) not_kept: Option<String>,
}

/// Runs each of these programs so often alone, in turn, and keeps all times that were not
/// disturbed. Programs that are the same count as one. Programs of which enough was known are not
/// among the measured ones.
pub(crate) fn measure(
    session: &Session,
    specs: Vec<ProgramSpec>,
    how: &How,
    runs: u16,
    known: KnownRuns,
    store: &mut Store,
) -> Result<Vec<Measured>, MeasuringStop> {
    let mut subjects: Vec<Subject> = Vec::new();
    for spec in specs {
        let key = session.key(&spec, how);
        if let Some(same) = subjects.iter_mut().find(|other| other.key == key) {
            same.same.push(spec.name);
            continue;
        }
        let entry = store.get(&key)?;
        let least = entry.as_ref().map_or(0, |entry| entry.runs.min(runs)).into();
        let before = entry.filter(|_| known == KnownRuns::Counts);
        subjects.push(Subject { spec, same: Vec::new(), key, before, made: Vec::new(), least });
    }
    subjects.retain(|subject| subject.runs() < usize::from(runs));
    if !subjects.is_empty() {
        session.tell_if_busy(Talk::Usual);
    }
    let missing = subjects.iter().map(|subject| usize::from(runs) - subject.runs()).max();
    let rounds = missing.and_then(|missing| u16::try_from(missing).ok()).unwrap_or(0);
    let mut pace = Pace::new(subjects.len(), rounds, rounds.into());
    for round in 0..rounds {
        for position in order(subjects.len(), round) {
            let spec = &subjects[position].spec;
            let threads = session.threads(spec);
            pace.begin(round, &format!("{} alone, threads: {threads}", spec.name));
            let made = program::run_alone(session, spec, how).inspect_err(|stop| {
                if matches!(stop, MeasuringStop::Interrupted(_)) {
                    say(format_args!("interrupted; {}", what_is_kept(&subjects, runs)));
                }
            })?;
            let subject = &mut subjects[position];
            subject.made.push(made);
            if let Some(entry) = subject.kept(runs) {
                store.put(&subject.key, &entry)?;
            }
        }
    }
    subjects.iter().for_each(|subject| program::tell_scaled(&subject.spec, &subject.made));
    Ok(subjects.into_iter().map(|subject| subject.measured(session)).collect())
}

/// How many of the measured times are kept, and why others are not.
fn what_is_kept(subjects: &[Subject], runs: u16) -> String {
    let made = subjects.iter().flat_map(|subject| &subject.made);
    let (all, disturbed) =
        (made.clone().count(), made.filter(|run| run.disturbed.is_some()).count());
    let kept = subjects.iter().filter(|subject| subject.kept(runs).is_some());
    let kept = kept.flat_map(|subject| &subject.made).filter(|run| run.disturbed.is_none()).count();
    let were = |n: usize| format!("{n} {}", if n == 1 { "was" } else { "were" });
    let few = all - disturbed - kept;
    let why = [
        (disturbed > 0).then(|| format!("{} disturbed", were(disturbed))),
        (few > 0).then(|| format!("{} too few to replace known ones", were(few))),
    ];
    let why: Vec<String> = why.into_iter().flatten().collect();
    match (all, kept) {
        (0, _) => "no run was complete".to_owned(),
        (1, 1) => "the measured time is kept".to_owned(),
        _ if kept == all => format!("all {all} measured times are kept"),
        _ => format!(
            "kept: {kept} of {} ({})",
            count(all, "measured time", "measured times"),
            why.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use cosched_core::Nanos;
    use cosched_workload::Workload;

    use super::*;
    use crate::how::PolicyChoices;

    /// A subject with runs of these seconds; those that are disturbed are marked.
    fn subject(session: &Session, before: &[u64], made: &[(u64, bool)]) -> Subject {
        let run = |(seconds, disturbed): &(u64, bool)| SoloRun {
            turnaround: Nanos::from_secs(*seconds),
            disturbed: disturbed
                .then(|| Disturbance { what: "other processes used CPUs".to_owned(), cpus: 1.2 }),
            ..SoloRun::default()
        };
        let known: Vec<SoloRun> = before.iter().map(|seconds| run(&(*seconds, false))).collect();
        let workload = Workload::from_commands(vec![vec!["cg".into()]], "/tmp".as_ref()).unwrap();
        let spec = workload.programs[0].clone();
        Subject {
            key: session.key(&spec, &How::from(PolicyChoices::default())),
            spec,
            same: vec!["twin".to_owned()],
            before: (!known.is_empty()).then(|| program::entry(&known, None)),
            made: made.iter().map(run).collect(),
            least: 0,
        }
    }

    fn times(entry: &SoloRecord) -> Vec<u64> {
        entry.times.iter().map(|time| time.as_secs_f64() as u64).collect()
    }

    #[test]
    fn a_disturbed_time_is_not_kept() {
        let session = Session::here().unwrap();
        let mixed = subject(&session, &[], &[(9, true), (2, false)]);
        assert_eq!(times(&mixed.to_keep().unwrap()), [2]);
        let measured = mixed.measured(&session);
        assert_eq!((times(&measured.entry), measured.disturbed), (vec![2], None));
        assert!(measured.not_kept.unwrap().contains("1 of 2 runs was disturbed"));
        let alone = subject(&session, &[], &[(9, true)]);
        assert_eq!(alone.to_keep(), None);
        let measured = alone.measured(&session);
        assert_eq!(times(&measured.entry), [9], "it is shown");
        assert!(measured.disturbed.is_some());
        let not_kept = measured.not_kept.unwrap();
        assert!(not_kept.starts_with("cg (the same as twin) alone"), "{not_kept}");
    }

    #[test]
    fn an_interruption_says_what_was_kept() {
        let session = Session::here().unwrap();
        let kept = |made: &[(u64, bool)], least: usize| {
            let subject = Subject { least, ..subject(&session, &[], made) };
            what_is_kept(&[subject], 9)
        };
        assert_eq!(kept(&[], 0), "no run was complete");
        assert_eq!(kept(&[(2, false)], 0), "the measured time is kept");
        assert_eq!(kept(&[(2, true)], 0), "kept: 0 of 1 measured time (1 was disturbed)");
        assert_eq!(kept(&[(2, false); 2], 0), "all 2 measured times are kept");
        let some = kept(&[(2, false), (9, true), (8, true)], 0);
        assert_eq!(some, "kept: 1 of 3 measured times (2 were disturbed)");
        let few = kept(&[(2, false), (9, true)], 3);
        let why = "kept: 0 of 2 measured times (1 was disturbed, 1 was too few to replace known \
                   ones)";
        assert_eq!(few, why);
    }

    #[test]
    fn what_was_known_is_used_instead_of_a_disturbed_time() {
        let session = Session::here().unwrap();
        let known = subject(&session, &[2, 3], &[(9, true)]);
        assert_eq!(known.to_keep(), None);
        let measured = known.measured(&session);
        assert_eq!((times(&measured.entry), measured.disturbed), (vec![2, 3], None));
        let quiet = subject(&session, &[2], &[(3, false)]).measured(&session);
        assert_eq!((times(&quiet.entry), quiet.not_kept), (vec![2, 3], None));
    }
}
