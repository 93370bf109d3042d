//! The rounds: every way once, again and again.
//!
//! Each round begins with the next way and goes round from there: a machine that gets slower or warmer during a round
//! then does it to all of them alike.
//!
//! What was complete before an interruption is kept. With a folder it can also be gone on with later: rounds that are
//! complete there are read, and all others are made. Nobody chooses among rounds: whoever asks for fewer than are there gets
//! all of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cosched_core::Exit;
use cosched_core::engine::outcome::Ended;
use cosched_core::result::RunResult;
use cosched_core::workload::{Workload, escaped, shown_path};

use super::lock::Lock;
use super::pace::Pace;
use super::{Record, Site, Turn, Way};
use crate::failure::Failure;
use crate::out;
use crate::session::say;

/// The most rounds of a comparison.
pub(crate) const MOST_ROUNDS: u16 = 1000;

/// What is to be done.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) workload: &'a Workload,
    pub(crate) ways: &'a [Way],
    pub(crate) rounds: u16,
    /// A folder with a folder for every run.
    pub(crate) out: Option<&'a Path>,
    /// Whether to go on with what is there.
    pub(crate) resume: bool,
    /// What has to be the same for that.
    pub(crate) record: Record,
}

/// What has come of it.
#[derive(Debug)]
pub(crate) struct Experiment {
    /// The ways, each with its run in each complete round.
    pub(crate) ways: Vec<cosched_report::Way>,
    /// How it ended.
    pub(crate) ended: Ended,
    /// Whether every program in every run ended with status 0.
    pub(crate) all_succeeded: bool,
}

/// A result for each way.
type Round = Vec<RunResult>;

impl Experiment {
    /// Checks everything, then runs everything that is not there yet.
    pub(crate) fn run(site: &mut dyn Site, plan: &Plan<'_>) -> Result<Experiment, Failure> {
        // Many outputs of the same programs would bury the table.
        let hidden = tempfile::tempdir().map_err(Failure::broken)?;
        let folder = plan.out.unwrap_or(hidden.path());
        let workloads = plan
            .ways
            .iter()
            .map(|way| way.prepare(plan.workload, site.session()))
            .collect::<Result<Vec<_>, _>>()?;
        // What is wrong with the last one is said before the first one runs.
        for (way, workload) in plan.ways.iter().zip(&workloads) {
            site.check(workload, way.kind())?;
        }
        let _lock = plan.out.map(Lock::take).transpose()?;
        let goes_on = plan.resume && plan.record.is_in(folder)?;
        let mut rounds = if goes_on { complete(folder, plan)? } else { BTreeMap::new() };
        let open: Vec<u16> = (0..plan.rounds).filter(|round| !rounds.contains_key(round)).collect();
        if plan.out.is_some() {
            if goes_on {
                remove_leftovers(folder, plan, &workloads, &open)?;
            } else {
                plan.record.check_free(folder)?;
                if plan.resume {
                    check_known(folder, plan, &open)?;
                }
            }
            check_room(folder, plan, &workloads, &open)?;
            plan.record.save(folder)?;
        }
        if plan.resume {
            say(format_args!("{} complete round(s) found, {} to make", rounds.len(), open.len()));
            let beyond = rounds.range(plan.rounds..).count();
            if beyond > 0 {
                let asked = plan.rounds;
                say(format_args!(
                    "{beyond} of these were not asked for by --runs {asked}, and count, too"
                ));
            }
        }

        let parts = plan.ways.len() + usize::from(site.finds_times_alone());
        let mut pace = Pace::new(parts, plan.rounds, open.len());
        let (mut ended, mut untroubled) = (Ended::Complete, true);
        if plan.rounds > 1 && !open.is_empty() && site.warms_up() {
            say(format_args!("{} once, to warm up", plan.ways[0]));
            let warm_up = tempfile::tempdir().map_err(Failure::broken)?;
            let (workload, kind) = (&workloads[0], plan.ways[0].kind());
            ended = site.run(&Turn { workload, kind, out: warm_up.path() })?.ended;
        }
        for round in open {
            if ended == Ended::Complete && site.finds_times_alone() {
                pace.begin(round, "each program alone");
                ended = site.alone(round)?;
            }
            let mut results: Vec<Option<RunResult>> = plan.ways.iter().map(|_| None).collect();
            for i in order(plan.ways.len(), round) {
                if ended != Ended::Complete {
                    break;
                }
                let way = plan.ways[i];
                pace.begin(round, &way.to_string());
                let out = &run_folder(folder, plan, round, i);
                let turn = Turn { workload: &workloads[i], kind: way.kind(), out };
                let ran = site.run(&turn)?;
                ended = ran.ended;
                untroubled &= ran.report_troubles();
                results[i] = Some(ran.result);
            }
            if ended != Ended::Complete {
                // What has run of this round may have failed; that is worth an exit code.
                untroubled &= results.iter().flatten().all(succeeded);
                break;
            }
            rounds.extend(results.into_iter().collect::<Option<Round>>().map(|all| (round, all)));
        }
        let all_succeeded = untroubled && rounds.values().flatten().all(succeeded);
        Ok(Experiment { ways: by_way(plan.ways, rounds), ended, all_succeeded })
    }
}

fn succeeded(result: &RunResult) -> bool {
    result.programs.iter().all(|program| program.exit == Some(Exit::Code(0)))
}

/// The rounds that are there, complete.
fn complete(folder: &Path, plan: &Plan<'_>) -> Result<BTreeMap<u16, Round>, Failure> {
    let mut rounds = BTreeMap::new();
    let most = if plan.rounds == 1 { 1 } else { MOST_ROUNDS };
    for round in 0..most {
        let folders: Vec<PathBuf> =
            (0..plan.ways.len()).map(|i| run_folder(folder, plan, round, i)).collect();
        if !folders.iter().all(|folder| out::result(folder).exists()) {
            continue;
        }
        let results: Round = match folders.iter().map(|folder| out::load(folder)).collect() {
            Ok(results) => results,
            // What a full disk or a crash left.
            Err(Failure::Input(why)) => {
                say(format_args!("{why}; the round is made anew"));
                continue;
            }
            Err(broken) => return Err(broken),
        };
        for (i, result) in results.iter().enumerate() {
            check_origin(&folders[i], plan, i, result)?;
        }
        if results.iter().all(|result| result.interrupted_by.is_none()) {
            rounds.insert(round, results);
        }
    }
    Ok(rounds)
}

/// A run that was put there by somebody else is no round of this comparison.
fn check_origin(folder: &Path, plan: &Plan<'_>, i: usize, run: &RunResult) -> Result<(), Failure> {
    let policy = plan.ways[i].kind().name();
    let names = plan.workload.programs.iter().map(|spec| &spec.name);
    if run.policy == policy && names.eq(run.programs.iter().map(|program| &program.name)) {
        return Ok(());
    }
    Err(Failure::Input(format!(
        "--resume: {} holds a run of other programs, or under '{}' instead of '{policy}': it is none of this \
         comparison; take it away, and its round is made anew",
        shown_path(folder),
        escaped(&run.policy)
    )))
}

/// Removes what an interruption left in rounds that are not complete, and says so.
fn remove_leftovers(
    folder: &Path,
    plan: &Plan<'_>,
    workloads: &[Workload],
    open: &[u16],
) -> Result<(), Failure> {
    for round in open {
        let left = |i| out::left(&run_folder(folder, plan, *round, i), &workloads[i]);
        let left: Vec<PathBuf> = (0..plan.ways.len()).flat_map(left).collect();
        if !left.is_empty() {
            say(format_args!(
                "round {} is not complete: it is made anew, and {} file(s) of it are overwritten",
                round + 1,
                left.len()
            ));
        }
        left.iter().try_for_each(|file| out::remove(file))?;
    }
    Ok(())
}

/// Checks that the runs can write their files, and overwrite nothing.
fn check_room(
    folder: &Path,
    plan: &Plan<'_>,
    workloads: &[Workload],
    open: &[u16],
) -> Result<(), Failure> {
    for (round, i) in runs(plan, open) {
        out::check_free(&run_folder(folder, plan, round, i), &workloads[i])?;
    }
    runs(plan, open).next().map_or(Ok(()), |(round, i)| {
        out::prepare(&run_folder(folder, plan, round, i), &workloads[i])
    })
}

/// Checks that no run is there, since nobody knows of what.
fn check_known(folder: &Path, plan: &Plan<'_>, open: &[u16]) -> Result<(), Failure> {
    let folders = runs(plan, open).map(|(round, i)| run_folder(folder, plan, round, i));
    let there = folders.into_iter().find(|run| out::result(run).exists());
    there.map_or(Ok(()), |run| Err(Record::missing(folder, &run)))
}

/// The runs of these rounds: round and way.
fn runs(plan: &Plan<'_>, rounds: &[u16]) -> impl Iterator<Item = (u16, usize)> {
    let ways = plan.ways.len();
    rounds.iter().flat_map(move |round| (0..ways).map(move |i| (*round, i)))
}

/// Each way's results, in the order of the rounds.
fn by_way(ways: &[Way], rounds: BTreeMap<u16, Round>) -> Vec<cosched_report::Way> {
    let named = |way: &Way| cosched_report::Way { name: way.to_string(), runs: Vec::new() };
    let mut ways: Vec<cosched_report::Way> = ways.iter().map(named).collect();
    for results in rounds.into_values() {
        ways.iter_mut().zip(results).for_each(|(way, result)| way.runs.push(result));
    }
    ways
}

/// The positions of the ways in the order of a round.
pub(crate) fn order(ways: usize, round: u16) -> impl Iterator<Item = usize> {
    (0..ways).map(move |i| (i + usize::from(round)) % ways)
}

/// Where a run's outputs go: a folder for each way, in a folder for each round where there are several.
fn run_folder(folder: &Path, plan: &Plan<'_>, round: u16, i: usize) -> PathBuf {
    let name = plan.ways[i].to_string();
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
