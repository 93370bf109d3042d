//! The rounds: every way once, again and again.
//!
//! Each round begins with the next way and goes round from there: a machine that gets slower or warmer during a round
//! then does it to all of them alike.

use std::path::{Path, PathBuf};

use cosched_core::Profile;
use cosched_core::engine::outcome::Ended;
use cosched_core::result::RunResult;
use cosched_core::workload::{Repeat, Workload};

use super::Way;
use super::pace::Pace;
use crate::args::HowArgs;
use crate::failure::Failure;
use crate::out;
use crate::profile;
use crate::session::{Origins, Request, Session, say};
use crate::store::Store;

/// What is to be done.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) workload: &'a Workload,
    pub(crate) ways: &'a [Way],
    pub(crate) how: &'a HowArgs,
    pub(crate) rounds: u16,
    /// A folder with a folder for every run.
    pub(crate) out: Option<&'a Path>,
    /// Whether to measure in every round how long each program takes alone.
    pub(crate) solo: bool,
}

/// What has come of it.
#[derive(Debug)]
pub(crate) struct Experiment {
    /// For each complete round, a result for each way.
    pub(crate) rounds: Vec<Vec<RunResult>>,
    /// Whether a program runs again and again until all have finished: then a run holds more work
    /// than every program's once, and says nothing beside the sum of the times alone.
    pub(crate) open_ended: bool,
    /// How it ended.
    pub(crate) ended: Ended,
    /// Whether every program in every run ended with status 0.
    pub(crate) all_succeeded: bool,
}

impl Experiment {
    /// Checks everything, then runs everything. What was complete before an interruption is kept.
    pub(crate) fn run(
        session: &Session,
        plan: &Plan<'_>,
        mut store: Option<Store>,
    ) -> Result<Experiment, Failure> {
        // Many outputs of the same programs would bury the table.
        let hidden = tempfile::tempdir().map_err(Failure::broken)?;
        let folder = plan.out.unwrap_or(hidden.path());
        let workloads = plan
            .ways
            .iter()
            .map(|way| way.prepare(plan.workload))
            .collect::<Result<Vec<_>, _>>()?;
        let request = |i: usize, out: &Path, profiles: &[Profile]| -> Result<_, Failure> {
            let request = Request {
                workload: &workloads[i],
                kind: plan.ways[i].kind(),
                how: plan.how,
                out: Some(out),
                stdout_is_taken: true,
                profiles,
                count: false,
                origins: Origins::Started,
            };
            session.execute(&request)
        };
        // What is wrong with the last one is said before the first one runs.
        let known = session.profiles(plan.workload, plan.how, store.as_ref())?;
        for (i, way) in plan.ways.iter().enumerate() {
            session.check(&Request {
                workload: &workloads[i],
                kind: way.kind(),
                how: plan.how,
                out: Some(&run_folder(folder, plan, 0, i)),
                stdout_is_taken: true,
                profiles: &known,
                count: false,
                origins: Origins::Started,
            })?;
            for round in 0..plan.rounds {
                out::check_free(&run_folder(folder, plan, round, i), &workloads[i])?;
            }
        }

        let programs = &plan.workload.programs;
        let mut experiment = Experiment {
            rounds: Vec::new(),
            open_ended: programs.iter().any(|spec| spec.repeat == Repeat::UntilAllFinish),
            ended: Ended::Complete,
            all_succeeded: true,
        };
        let mut pace = Pace::new(plan.ways.len() + usize::from(plan.solo), plan.rounds);
        if plan.rounds > 1 {
            say(format_args!("{} once, to warm up", plan.ways[0]));
            let warm_up = tempfile::tempdir().map_err(Failure::broken)?;
            experiment.ended = request(0, warm_up.path(), &known)?.ended;
        }
        for round in 0..plan.rounds {
            if experiment.ended != Ended::Complete {
                break;
            }
            if let (true, Some(store)) = (plan.solo, &mut store) {
                pace.begin(round, "each program alone");
                experiment.ended = profile::measure_all(session, plan.workload, plan.how, store)?;
            }
            let profiles = session.profiles(plan.workload, plan.how, store.as_ref())?;
            let mut results: Vec<Option<RunResult>> = plan.ways.iter().map(|_| None).collect();
            for i in order(plan.ways.len(), round) {
                if experiment.ended != Ended::Complete {
                    break;
                }
                pace.begin(round, &plan.ways[i].to_string());
                let ran = request(i, &run_folder(folder, plan, round, i), &profiles)?;
                experiment.ended = ran.ended;
                experiment.all_succeeded &= ran.report_troubles() && ran.all_succeeded();
                results[i] = Some(ran.result);
            }
            if experiment.ended == Ended::Complete {
                experiment.rounds.extend(results.into_iter().collect::<Option<Vec<_>>>());
            }
        }
        Ok(experiment)
    }
}

/// The positions of the ways in the order of a round.
fn order(ways: usize, round: u16) -> impl Iterator<Item = usize> {
    (0..ways).map(move |i| (i + usize::from(round)) % ways)
}

/// Where a run's outputs go: a folder for each way, in a folder for each round where there are several.
fn run_folder(folder: &Path, plan: &Plan<'_>, round: u16, i: usize) -> PathBuf {
    let way = plan.ways[i];
    let name = match plan.ways[..i].iter().filter(|earlier| **earlier == way).count() {
        0 => way.to_string(),
        earlier => format!("{way}-{}", earlier + 1),
    };
    match plan.rounds {
        1 => folder.join(name),
        _ => folder.join(format!("round-{:03}", round + 1)).join(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_begins_a_round_in_its_turn_and_none_is_left_out() {
        let rounds = (0..4).map(|round| order(3, round).collect::<Vec<_>>());
        assert_eq!(rounds.collect::<Vec<_>>(), [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2]]);
    }
}
