//! The live side of the check: rounds of every program alone and every mixture under every policy.
//!
//! These are not the rounds of [`crate::experiment`], which run one workload and count only whole:
//! here a round has many mixtures, the runs that calibrate the model, and solo times that it
//! shares among mixtures, and what a round has when it is interrupted counts. The order of turns is
//! the same.

use std::path::Path;

use cosched_core::engine::outcome::Ended;
use cosched_core::{Nanos, Profile};
use cosched_policy::Kind;
use cosched_workload::Workload;

use super::constants::ConstantRuns;
use super::program::{KernelRun, SPINS};
use super::report::ComparedFigures;
use super::suite::Mixture;
use super::workload;
use crate::alone::{self, SoloRun};
use crate::how::How;
use crate::session::{Request, Session};
use crate::ui::failure::Failure;
use crate::ui::pace::{Pace, order};
use crate::ui::say;

/// How often each calibrating program runs in a round: everything hangs on them, and they are
/// short.
const REPEATS: usize = 3;

/// What every program is told. How waiting threads wait is the default of libgomp, said explicitly.
/// Large pages keep first touches of memory, which the simulator knows nothing of, few; `malloc` of
/// glibc 2.35 and later needs them.
pub(super) fn environment() -> [(String, String); 2] {
    [
        ("GOMP_SPINCOUNT".to_owned(), SPINS.to_string()),
        ("GLIBC_TUNABLES".to_owned(), "glibc.malloc.hugetlb=1".to_owned()),
    ]
}

/// The runs, and what came of them so far.
pub(super) struct LiveRuns<'a> {
    session: &'a Session,
    how: &'a How,
    folder: &'a Path,
    mixtures: &'a [Mixture],
    policies: &'a [Kind],
    pub(super) runs: ConstantRuns,
    /// Each program of the mixtures once, with its solo times in seconds.
    pub(super) alone: Vec<(KernelRun, Vec<f64>)>,
    /// For each mixture and each policy, what each round gave.
    pub(super) samples: Vec<Vec<Vec<ComparedFigures>>>,
}

impl<'a> LiveRuns<'a> {
    pub(super) fn new(
        session: &'a Session,
        how: &'a How,
        folder: &'a Path,
        runs: ConstantRuns,
        mixtures: &'a [Mixture],
        policies: &'a [Kind],
    ) -> LiveRuns<'a> {
        let mut alone: Vec<(KernelRun, Vec<f64>)> = Vec::new();
        for program in mixtures.iter().flat_map(|mixture| &mixture.programs) {
            if !alone.iter().any(|(known, _)| known == program) {
                alone.push((*program, Vec::new()));
            }
        }
        let samples = vec![vec![Vec::new(); policies.len()]; mixtures.len()];
        LiveRuns { session, how, folder, mixtures, policies, runs, alone, samples }
    }

    /// So many rounds; an incomplete last one counts as far as it went.
    pub(super) fn run(&mut self, rounds: u16) -> Result<Ended, Failure> {
        if rounds > 1 {
            say(format_args!("each kernel once, to warm up"));
            for position in 0..self.runs.programs().len() {
                if let Err(ended) = self.alone(self.runs.programs()[position])? {
                    return Ok(ended);
                }
            }
        }
        let mut pace = Pace::new(1 + self.mixtures.len(), rounds, rounds.into());
        for round in 0..rounds {
            if let Some(ended) = self.round(round, &mut pace)? {
                return Ok(ended);
            }
        }
        Ok(Ended::Complete)
    }

    /// Whether everything has run at least once.
    pub(super) fn is_complete(&self) -> bool {
        self.samples.iter().flatten().all(|figures| !figures.is_empty())
    }

    fn round(&mut self, round: u16, pace: &mut Pace) -> Result<Option<Ended>, Failure> {
        pace.begin(round, "each program alone");
        for _ in 0..REPEATS {
            for position in 0..self.runs.programs().len() {
                match self.alone(self.runs.programs()[position])? {
                    Ok(alone) => self.runs.note(position, &alone),
                    Err(ended) => return Ok(Some(ended)),
                }
            }
        }
        for position in 0..self.alone.len() {
            match self.alone(self.alone[position].0)? {
                Ok(alone) => self.alone[position].1.push(alone.turnaround.as_secs_f64()),
                Err(ended) => return Ok(Some(ended)),
            }
        }
        for (position, mixture) in self.mixtures.iter().enumerate() {
            pace.begin(round, mixture.name);
            let workload = workload(&mixture.programs, self.folder)?;
            let profiles: Vec<Profile> =
                mixture.programs.iter().map(|program| self.profile(program)).collect();
            // Each policy begins in turn: the first one gets memory that the host of a virtual
            // machine has to find first.
            for which in order(self.policies.len(), round) {
                let policy = self.policies[which];
                match together(self.session, self.how, &workload, policy, &profiles)? {
                    Ok(found) => self.samples[position][which].push(found),
                    Err(ended) => return Ok(Some(ended)),
                }
            }
        }
        Ok(None)
    }

    fn alone(&self, program: KernelRun) -> Result<Result<SoloRun, Ended>, Failure> {
        let workload = workload(&[program], self.folder)?;
        alone::once(self.session, &workload.programs[0], self.how)
    }

    /// What is known of a program: how long it took alone in this round.
    fn profile(&self, program: &KernelRun) -> Profile {
        let known = self.alone.iter().find(|(known, _)| known == program);
        let seconds = known.and_then(|(_, times)| times.last());
        Profile { solo: seconds.map(|s| Nanos((s * 1e9) as u64)), ..Profile::default() }
    }
}

/// One run of a mixture under a policy.
fn together(
    session: &Session,
    how: &How,
    workload: &Workload,
    policy: Kind,
    profiles: &[Profile],
) -> Result<Result<ComparedFigures, Ended>, Failure> {
    let out = crate::out::hidden()?;
    let ran = session.execute(&Request {
        out: Some(out.path()),
        ..Request::new(workload, policy, how, profiles)
    })?;
    match (ran.ended, ran.report_troubles() && ran.all_succeeded()) {
        (Ended::Complete, true) => Ok(Ok(ComparedFigures::of(&ran.result))),
        (Ended::Complete, false) => {
            let names: Vec<&str> =
                workload.programs.iter().map(|spec| spec.name.as_str()).collect();
            Err(Failure::Broken(format!(
                "a program of {} failed under {policy}, so its time means nothing",
                names.join(", ")
            )))
        }
        (ended, _) => Ok(Err(ended)),
    }
}
