//! What a folder has kept of a comparison, and room there for the rest.
//!
//! *Problem.* A resumed comparison relies on the rounds that are there, and overwrites what an
//! interruption left. A mistake mixes figures of something else with its own, or destroys the only
//! result of hours.
//!
//! *Idea.* Only what is incomplete, or damaged as a crash or a full disk leaves it, may be
//! overwritten; what cannot be looked at, or [is of something else](super::origin), is refused.
//! Everything is looked at before anything is touched.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use cosched_core::format::count;
use cosched_results::result::{ResultError, RunResult};
use cosched_workload::{Workload, shown_path};

use super::origin::{self, SeenRuns};
use super::rounds::{MOST_ROUNDS, ReadyPlan, RoundResults};
use super::{ExperimentRecord, Site};
use crate::out::{self, Left};
use crate::ui::failure::Failure;
use crate::ui::say;

/// The complete rounds of a folder, which has room for all others then.
pub(super) fn take(
    ready: &ReadyPlan<'_>,
    site: &dyn Site,
) -> Result<BTreeMap<u16, RoundResults>, Failure> {
    let (plan, folder) = (ready.plan, &ready.held.path());
    // A run in the folder itself would be taken for all that is there.
    out::check_free(folder, &Workload { programs: Vec::new() })?;
    let goes_on = plan.resume && plan.record.is_in(folder)?;
    let rounds = if goes_on { complete(ready, site)? } else { BTreeMap::new() };
    let open: Vec<u16> = (0..plan.rounds).filter(|round| !rounds.contains_key(round)).collect();
    if !goes_on {
        plan.record.check_free(folder)?;
        if plan.resume {
            check_known(ready, &open)?;
        }
    }
    make_room(ready, &open, goes_on)?;
    if !goes_on {
        plan.record.save(folder)?;
    }
    if plan.resume {
        let (found, open) = (rounds.len(), open.len());
        plan.talk.tell(format_args!(
            "{} found, {open} to run",
            count(found, "complete round", "complete rounds")
        ));
        let beyond = rounds.range(plan.rounds..).count();
        if beyond > 0 {
            let requested = plan.rounds;
            plan.talk.tell(format_args!(
                "{beyond} of these are more than --runs {requested}, and count, too"
            ));
        }
    }
    Ok(rounds)
}

fn complete(
    ready: &ReadyPlan<'_>,
    site: &dyn Site,
) -> Result<BTreeMap<u16, RoundResults>, Failure> {
    let plan = ready.plan;
    let (mut rounds, mut seen) = (BTreeMap::new(), SeenRuns::default());
    let most = if plan.rounds == 1 { 1 } else { MOST_ROUNDS };
    for round in 0..most {
        let mut results: Vec<Option<RunResult>> = Vec::new();
        for i in 0..plan.variants.len() {
            let folder = ready.run_folder(round, i);
            let result = match look(&folder)? {
                None => None,
                Some(Left::Whole(run)) => {
                    let expected = site.expected(&ready.turn(i, &folder), round);
                    origin::check(&run, &expected, site.finds_times_alone())
                        .and_then(|()| seen.check(&run, &folder))
                        .map_err(|what| foreign(&folder, &what))?;
                    Some(*run).filter(|run| run.interrupted_by.is_none())
                }
                Some(Left::Damaged(why)) if round < plan.rounds => {
                    say(format_args!("{}; the round is run again", ready.held.named(&why)));
                    None
                }
                Some(Left::Damaged(why)) => {
                    say(format_args!(
                        "{}; the round does not count, and is run again only with --runs {} or \
                         more",
                        ready.held.named(&why),
                        round + 1
                    ));
                    None
                }
            };
            results.push(result);
        }
        rounds
            .extend(results.into_iter().collect::<Option<RoundResults>>().map(|all| (round, all)));
    }
    Ok(rounds)
}

/// What is left of a run.
fn look(folder: &Path) -> Result<Option<Left>, Failure> {
    let file = out::result(folder);
    let refuse = |why: String| {
        let shown = shown_path(&file);
        Failure::Input(format!("--resume: {shown}: {why}, or choose another folder with --out"))
    };
    let unreadable = |error| refuse(format!("cannot be read: {error}; check its permissions"));
    match file.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
        Ok(found) if !found.is_file() => {
            return Err(refuse("is not a file; move it away".to_owned()));
        }
        Ok(_) => {}
    }
    match out::look(&file) {
        Ok(left) => Ok(Some(left)),
        Err(ResultError::Unreadable { source, .. }) => Err(unreadable(source)),
        Err(ResultError::NoResult { what, .. }) => Err(refuse(format!(
            "is not a result of a run ({what}); move it away, and its round is run again"
        ))),
        Err(other) => Err(Failure::Input(format!(
            "--resume: {other}; or move it away, and its round is run again"
        ))),
    }
}

/// A run that does not come from this comparison is no round of it.
fn foreign(folder: &Path, what: &str) -> Failure {
    Failure::Input(format!(
        "--resume: {} holds a run that does not belong to this comparison: {what}. Move it away, \
         and its round is run again",
        shown_path(folder)
    ))
}

/// Checks that no run is there: without a record, it is unknown what a run is of.
fn check_known(ready: &ReadyPlan<'_>, open: &[u16]) -> Result<(), Failure> {
    let mut folders = ready.runs(open).map(|(round, i)| ready.run_folder(round, i));
    let there = folders.find(|run| out::result(run).exists());
    there.map_or(Ok(()), |run| Err(ExperimentRecord::missing(&ready.held.path(), &run)))
}

/// Checks that the runs can write their files; then removes what an interruption left there, and
/// says so.
fn make_room(ready: &ReadyPlan<'_>, open: &[u16], goes_on: bool) -> Result<(), Failure> {
    let mut leftovers: BTreeMap<u16, Vec<(usize, PathBuf)>> = BTreeMap::new();
    for (round, i) in ready.runs(open) {
        let folder = ready.run_folder(round, i);
        let workload = ready.turn(i, &folder).workload;
        check_no_link(&folder, &ready.held.path())?;
        out::check_writable(&folder)?;
        if !goes_on {
            out::check_free(&folder, workload)?;
            continue;
        }
        let left = out::left(&folder, workload);
        left.iter().try_for_each(|file| out::check_removable(file))?;
        if !left.is_empty() {
            leftovers.entry(round).or_default().extend(left.into_iter().map(|file| (i, file)));
        }
    }
    for (round, left) in &leftovers {
        ready.plan.talk.tell(format_args!(
            "round {} is not complete; it is run again, which overwrites {} of it",
            round + 1,
            count(left.len(), "file", "files")
        ));
        for (i, file) in left {
            let held = ready.hold(*round, *i)?;
            out::remove(&held.place(file)).map_err(|failure| held.tell(failure))?;
        }
    }
    ready.runs(open).next().map_or(Ok(()), |(round, i)| {
        let held = ready.hold(round, i)?;
        let folder = held.path();
        out::prepare(&folder, ready.turn(i, &folder).workload).map_err(|failure| held.tell(failure))
    })
}

/// Checks that a run's folder is within the comparison's. Behind a link, a user keeps something
/// else.
fn check_no_link(run: &Path, folder: &Path) -> Result<(), Failure> {
    let mut within = run.ancestors().take_while(|path| *path != folder);
    within.find(|path| path.is_symlink()).map_or(Ok(()), |link| {
        Err(Failure::Input(format!(
            "--out {}: {} is a symbolic link, and files at its target would be written; put a \
             folder in its place, or choose another folder",
            shown_path(folder),
            shown_path(link)
        )))
    })
}
