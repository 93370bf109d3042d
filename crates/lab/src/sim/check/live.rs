//! The live side of the check: rounds of every program alone and every mixture under every policy.
//!
//! These are not the rounds of [`crate::experiment`], which run one workload and count only whole:
//! here a round has many mixtures, the runs that calibrate the model, and solo times that it
//! shares among mixtures, and what a round has when it is interrupted counts. The order of turns is
//! the same.

use std::path::Path;

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
use crate::stop::MeasuringStop;
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
    pub(super) fn run(&mut self, rounds: u16) -> Result<(), MeasuringStop> {
        if rounds > 1 {
            say(format_args!("each kernel once, to warm up"));
            self.runs.programs().iter().try_for_each(|program| self.alone(*program).map(drop))?;
        }
        let mut pace = Pace::new(1 + self.mixtures.len(), rounds, rounds.into());
        (0..rounds).try_for_each(|round| self.round(round, &mut pace))
    }

    /// Whether everything has run at least once.
    pub(super) fn is_complete(&self) -> bool {
        self.samples.iter().flatten().all(|figures| !figures.is_empty())
    }

    fn round(&mut self, round: u16, pace: &mut Pace) -> Result<(), MeasuringStop> {
        pace.begin(round, "each program alone");
        for _ in 0..REPEATS {
            for position in 0..self.runs.programs().len() {
                let alone = self.alone(self.runs.programs()[position])?;
                self.runs.note(position, &alone);
            }
        }
        for position in 0..self.alone.len() {
            let alone = self.alone(self.alone[position].0)?;
            self.alone[position].1.push(alone.turnaround.as_secs_f64());
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
                let found = together(self.session, self.how, &workload, policy, &profiles)?;
                self.samples[position][which].push(found);
            }
        }
        Ok(())
    }

    fn alone(&self, program: KernelRun) -> Result<SoloRun, MeasuringStop> {
        let workload = workload(&[program], self.folder)?;
        alone::run_alone(self.session, &workload.programs[0], self.how)
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
) -> Result<ComparedFigures, MeasuringStop> {
    let out = crate::out::hidden()?;
    let ran = session.execute(&Request {
        out: Some(out.path()),
        ..Request::new(workload, policy, how, profiles)
    })?;
    let has_worked = ran.report_troubles() && ran.all_succeeded();
    MeasuringStop::if_interrupted(ran.ended)?;
    if has_worked {
        return Ok(ComparedFigures::of(&ran.result));
    }
    let names: Vec<&str> = workload.programs.iter().map(|spec| spec.name.as_str()).collect();
    let text = format!(
        "a program of {} failed under {policy}, so its time means nothing",
        names.join(", ")
    );
    Err(Failure::Broken(text).into())
}
