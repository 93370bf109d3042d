//! The rounds: every variant once, again and again.
//!
//! Each round begins with the next variant and goes round from there: a machine that gets slower or
//! warmer during a round then does it to all of them alike.
//!
//! What was complete before an interruption, or before something went wrong, is kept. With a
//! folder, the comparison can also be resumed later: rounds that are complete there
//! [are read](super::kept), and all others are made. There is no choice among rounds: a user who
//! requests fewer than are there gets all of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cosched_core::Exit;
use cosched_core::engine::outcome::Ended;
use cosched_report::words::count;
use cosched_results::result::{RunResult, reject_solos_everywhere};
use cosched_workload::Workload;

use super::{ExperimentRecord, Site, Variant, VariantRun, failures, kept, lock};
use crate::how::How;
use crate::out::{self, Folder};
use crate::session::Ran;
use crate::stop::MeasuringStop;
use crate::ui::failure::{self, Failure};
use crate::ui::pace::{Pace, order};
use crate::ui::{Talk, say};

/// The most rounds of a comparison.
pub const MOST_ROUNDS: u16 = 1000;

/// What is to be done.
#[derive(Debug)]
pub struct ExperimentPlan<'a> {
    /// The programs.
    pub workload: &'a Workload,
    /// The variants to be compared, the first with all others.
    pub variants: &'a [Variant],
    /// How policies and the machine do their work, where a variant says nothing else.
    pub how: &'a How,
    /// How many rounds; each runs every variant once.
    pub rounds: u16,
    /// A folder with a folder for every run.
    pub out: Option<&'a Path>,
    /// Whether to go on with what is there.
    pub resume: bool,
    /// What has to be the same for that.
    pub record: ExperimentRecord,
    /// How much is said while it goes on.
    pub talk: Talk,
}

/// What has come of it.
#[derive(Debug)]
pub struct Experiment {
    /// The variants, each with its run in each complete round.
    pub variants: Vec<cosched_report::VariantRuns>,
    /// Whether every requested round is there.
    pub whole: bool,
    /// How it ended.
    pub ended: Ended,
    /// Whether every program in every run ended with status 0, and nothing else went wrong.
    pub all_succeeded: bool,
    /// Which programs failed, and what they wrote, a sentence for each.
    pub failures: Vec<String>,
}

/// A result for each variant.
pub(super) type RoundResults = Vec<RunResult>;

/// Why a round did not come to its end.
enum RoundStop {
    /// The user requests its end, or something is wrong and would be in every further round.
    Early(MeasuringStop),
    /// Something is wrong, and the user has been told.
    Reported,
}

impl<E: Into<MeasuringStop>> From<E> for RoundStop {
    fn from(stop: E) -> RoundStop {
        RoundStop::Early(stop.into())
    }
}

impl Experiment {
    /// Checks everything, then runs everything that is not there yet.
    ///
    /// # Errors
    /// When something is wrong beforehand, or breaks on the way.
    pub fn run(site: &mut dyn Site, plan: &ExperimentPlan<'_>) -> Result<Experiment, Failure> {
        // Many outputs of the same programs would bury the table.
        let hidden = out::hidden()?;
        let held = Folder::hold(hidden.path()).map_err(Failure::broken)?;
        let mut ready = ReadyPlan::new(plan, site, held)?;
        // What is wrong with the last one is said before the first one runs.
        failure::all((0..plan.variants.len()).map(|i| {
            let VariantRun { workload, kind, how, .. } = ready.turn(i, hidden.path());
            site.check(workload, kind, how)
        }))?;
        if let Some(out) = plan.out {
            ready.held = lock::take(out)?;
        }
        let mut rounds = kept::take(&ready, site).map_err(|failure| ready.held.tell(failure))?;
        let open: Vec<u16> = (0..plan.rounds).filter(|round| !rounds.contains_key(round)).collect();

        if !open.is_empty() {
            site.tell_before_runs();
            plan.talk.tell(format_args!("{}", ready.ahead(open.len(), site.finds_times_alone())));
        }
        let (mut ended, mut unbroken) = (Ended::Complete, true);
        if plan.rounds > 1 && !open.is_empty() && site.warms_up() {
            plan.talk.tell(format_args!("{} once, to warm up", plan.variants[0]));
            let warm_up = out::hidden()?;
            match site.run(&ready.turn(0, warm_up.path())) {
                Ok(ran) => (ended, unbroken) = (ran.ended, ran.report_troubles()),
                Err(stop) => ended = MeasuringStop::ended(Err(stop))?,
            }
        }
        // The run to warm up would make the estimates longer.
        let parts = plan.variants.len() + usize::from(site.finds_times_alone());
        let mut pace = Pace::new(parts, plan.rounds, open.len()).with_talk(plan.talk);
        let begun = if ended == Ended::Complete && unbroken { open } else { Vec::new() };
        for round in begun {
            match ready.make(site, &mut pace, round) {
                Ok(results) => {
                    rounds.insert(round, results);
                    continue;
                }
                Err(RoundStop::Early(MeasuringStop::Interrupted(so))) => ended = so,
                // There is nothing to show.
                Err(RoundStop::Early(MeasuringStop::Failed(failure))) if rounds.is_empty() => {
                    return Err(failure);
                }
                Err(RoundStop::Early(MeasuringStop::Failed(failure))) => {
                    say(format_args!("{}", failure.text()));
                    unbroken = false;
                }
                Err(RoundStop::Reported) => unbroken = false,
            }
            if plan.out.is_some() {
                say(format_args!(
                    "round {} is not complete; the same command with --resume continues",
                    round + 1
                ));
            }
            break;
        }
        let all_succeeded = unbroken && rounds.values().flatten().all(succeeded);
        let failures = failures::sentences(&ready, &rounds);
        let whole = (0..plan.rounds).all(|round| rounds.contains_key(&round));
        Ok(Experiment {
            variants: by_variant(plan.variants, rounds),
            whole,
            ended,
            all_succeeded,
            failures,
        })
    }
}

/// A plan, and how each of its variants is run.
pub(super) struct ReadyPlan<'a> {
    pub(super) plan: &'a ExperimentPlan<'a>,
    /// Where the runs go: the folder itself, whatever takes its name meanwhile.
    pub(super) held: Folder,
    workloads: Vec<Workload>,
    hows: Vec<How>,
}

impl<'a> ReadyPlan<'a> {
    fn new(
        plan: &'a ExperimentPlan<'a>,
        site: &dyn Site,
        held: Folder,
    ) -> Result<ReadyPlan<'a>, Failure> {
        let workload = |variant: &Variant| variant.prepare(plan.workload, site.session());
        Ok(ReadyPlan {
            plan,
            held,
            workloads: failure::all(plan.variants.iter().map(workload))?,
            hows: plan.variants.iter().map(|variant| variant.how(plan.how)).collect(),
        })
    }

    /// A run of a variant, into a folder.
    pub(super) fn turn<'t>(&'t self, i: usize, out: &'t Path) -> VariantRun<'t> {
        let kind = self.plan.variants[i].kind();
        VariantRun { workload: &self.workloads[i], kind, how: &self.hows[i], out }
    }

    /// How much there is to run.
    fn ahead(&self, rounds: usize, alone: bool) -> String {
        let variants = self.plan.variants.len();
        format!(
            "{} of {}: {}{}",
            count(rounds, "round", "rounds"),
            count(variants, "variant", "variants"),
            count(rounds * variants, "run", "runs"),
            if alone { ", and in each round each program alone" } else { "" }
        )
    }

    /// The runs of these rounds: round and variant.
    pub(super) fn runs(&self, rounds: &[u16]) -> impl Iterator<Item = (u16, usize)> {
        let variants = self.plan.variants.len();
        rounds.iter().flat_map(move |round| (0..variants).map(move |i| (*round, i)))
    }

    /// Where a run's outputs go: a folder for each variant, in a folder for each round where there
    /// are several.
    pub(super) fn run_folder(&self, round: u16, i: usize) -> PathBuf {
        self.held.path().join(self.inner(round, i))
    }

    /// The same, held open; made if it is not there.
    pub(super) fn hold(&self, round: u16, i: usize) -> Result<Folder, Failure> {
        self.held.below(&self.inner(round, i))
    }

    fn inner(&self, round: u16, i: usize) -> PathBuf {
        let name = PathBuf::from(self.plan.variants[i].to_string());
        match self.plan.rounds {
            1 => name,
            _ => Path::new(&format!("round-{:03}", round + 1)).join(name),
        }
    }

    fn make(
        &self,
        site: &mut dyn Site,
        pace: &mut Pace,
        round: u16,
    ) -> Result<RoundResults, RoundStop> {
        if site.finds_times_alone() {
            pace.begin(round, "each program alone");
            site.alone(round)?;
        }
        let mut results: Vec<Option<RunResult>> = self.plan.variants.iter().map(|_| None).collect();
        for i in order(self.plan.variants.len(), round) {
            pace.begin(round, &self.plan.variants[i].to_string());
            let ran = self.run(site, round, i)?;
            let untroubled = ran.report_troubles();
            MeasuringStop::if_interrupted(ran.ended)?;
            if !untroubled {
                // A result that could not be saved is none to go on from, and the next one could
                // not be, either.
                return Err(RoundStop::Reported);
            }
            results[i] = Some(ran.result);
        }
        Ok(results.into_iter().flatten().collect())
    }

    fn run(&self, site: &mut dyn Site, round: u16, i: usize) -> Result<Ran, MeasuringStop> {
        let held = self.hold(round, i)?;
        let ran = site.run(&self.turn(i, &held.path())).map_err(|stop| match stop {
            MeasuringStop::Failed(failure) => MeasuringStop::Failed(held.tell(failure)),
            interrupted => interrupted,
        })?;
        let troubles = ran.troubles.into_iter().map(|trouble| held.tell(trouble)).collect();
        Ok(Ran { troubles, ..ran })
    }
}

fn succeeded(result: &RunResult) -> bool {
    result.programs.iter().all(|program| program.exit == Some(Exit::Code(0)))
}

/// Each variant's results, in the order of the rounds.
fn by_variant(
    variants: &[Variant],
    rounds: BTreeMap<u16, RoundResults>,
) -> Vec<cosched_report::VariantRuns> {
    let named = |variant: &Variant| cosched_report::VariantRuns {
        name: variant.to_string(),
        runs: Vec::new(),
    };
    let mut variants: Vec<cosched_report::VariantRuns> = variants.iter().map(named).collect();
    for results in rounds.into_values() {
        variants.iter_mut().zip(results).for_each(|(variant, result)| variant.runs.push(result));
    }
    reject_solos_everywhere(variants.iter_mut().flat_map(|variant| &mut variant.runs));
    variants
}
