//! `cosched advise`: with how many threads each program makes the whole workload fastest and
//! fairest on this machine.
//!
//! Programs are measured alone with several thread counts, several times, as far as the
//! [store](crate::store) does not know them yet. A [fluid model](cosched_policy::advice) then tells
//! how the workload would go with each combination of counts. With `--apply` it is run with the
//! best ones, which programs are told by `OMP_NUM_THREADS` and the like.

mod show;

use std::path::PathBuf;
use std::process::ExitCode;

use cosched_core::format::count;
use cosched_core::{Nanos, Speedup};
use cosched_policy::Kind;
use cosched_policy::advice::{self, Candidate, Prediction};
use cosched_workload::{ProgramSpec, Repeat, Workload};

use crate::alone::{self, Measured};
use crate::how::How;
use crate::session::{Ran, Request, Session, enter_scope};
use crate::source::{self, Needs, Runs, Source};
use crate::store::{Key, SoloRecord, Store};
use crate::table::{self, AfterTable};
use crate::ui::failure::{Failure, both, exit_code};
use crate::ui::{Talk, print, print_json, say};

/// What to advise on.
#[derive(Clone, Debug)]
pub struct AdviseOptions {
    /// The programs.
    pub source: Source,
    /// The policy under which they will run.
    pub policy: Kind,
    /// Thread counts to choose from, such as `1..4` or `1,2,4`; `None`: the usual ones.
    pub threads: Option<String>,
    /// Solo runs of each program with each thread count.
    pub runs: u16,
    /// How policies and this machine do their work.
    pub how: How,
    /// Whether the programs are run as advised.
    pub apply: bool,
    /// A folder for the result and outputs of that run.
    pub out: Option<PathBuf>,
    /// Whether JSON is printed instead of tables.
    pub json: bool,
}

struct Advice<'a> {
    workload: &'a Workload,
    policy: Kind,
    cpus: usize,
    candidates: Vec<Candidate>,
    counts: Vec<u16>,
    /// With the threads that programs request, and as advised.
    requested: Prediction,
    advised: Prediction,
    /// What disturbed the times of each program, by thread count.
    disturbed: Vec<Vec<Option<String>>>,
    /// Which times were not kept, a sentence for each.
    not_kept: Vec<String>,
}

/// Measures what is missing, advises, and runs if that is wanted.
///
/// # Errors
/// When the options do not fit, or something breaks on the way.
pub fn advise(args: &AdviseOptions) -> Result<ExitCode, Failure> {
    let how = &args.how;
    let Some(round) = args.policy.descriptor().round else {
        let known: Vec<&str> = Kind::predictable().collect();
        return Err(Failure::Input(format!(
            "--policy {}: cosched cannot predict its runs; choose from {}",
            args.policy,
            known.join(", ")
        )));
    };
    let used = both(how.check_no_constants("advise"), how.check_use(&[args.policy]));
    let (together, redirects) = (args.apply, args.apply);
    let out = args.out.as_deref();
    let runs = Runs { alone: true, predicted: true, together, redirects, out, ..Runs::default() };
    let (_, workload) = both(used, source::workload(&args.source, Needs::Runs(runs)))?;
    if args.apply {
        enter_scope([(args.policy, how)], Talk::Usual);
    }
    let session = Session::here()?;
    let cpus = session.usable.cpus.len();
    let most = u16::try_from(cpus).unwrap_or(u16::MAX);
    let listed = match &args.threads {
        Some(list) => alone::parse_counts(list, cpus)?,
        None => session.counts(),
    };
    if listed.iter().all(|count| *count > most) {
        return Err(Failure::Input(format!(
            "--threads: this machine has {}, and more threads than that never help; \
             choose smaller thread counts",
            count(most.into(), "CPU", "CPUs")
        )));
    }
    if listed.iter().any(|count| *count > most) {
        say(format_args!("--threads: counts above {most}, the CPUs of this machine, are left out"));
    }
    let counts = |spec: &ProgramSpec| counts(spec, &listed, session.threads(spec).min(most), most);
    let mut store = Store::open().map_err(Failure::input)?;
    let runs = args.runs;
    let measured = alone::measure_missing(&session, &workload, &counts, how, runs, &mut store);
    let measured = match measured {
        Ok(measured) => measured,
        Err(stop) => return stop.code(),
    };
    let found = SoloTimes { store: &store, measured };
    let candidate = |spec: &ProgramSpec| candidate(&session, spec, &counts(spec), how, &found);
    let candidates: Vec<Candidate> =
        workload.programs.iter().map(candidate).collect::<Result<_, _>>()?;
    let best = advice::advise(round, &candidates, cpus);
    let requested: Vec<u16> = candidates.iter().map(|c| c.requested.min(most)).collect();
    let predict = |counts: &[u16]| advice::predict(round, &candidates, counts, cpus);
    let (requested, advised) = (predict(&requested), predict(&best));
    let policy = args.policy;
    let disturbed = |spec| found.disturbed(&session, spec, &counts(spec), how);
    let advice = Advice {
        workload: &workload,
        policy,
        cpus,
        candidates,
        counts: best,
        requested,
        advised,
        disturbed: workload.programs.iter().map(disturbed).collect(),
        not_kept: found.not_kept(),
    };
    if !args.json {
        print(&show::table(&advice))?;
    }
    let ran = args.apply.then(|| apply(&session, &advice, args, how, &store)).transpose()?;
    if args.json {
        print_json(&show::json(&advice, ran.as_ref().map(|ran| &ran.result)))?;
    }
    let Some(ran) = ran else { return Ok(ExitCode::SUCCESS) };
    if !args.json {
        print(&table::run(&ran.result, &AfterTable::default()))?;
    }
    let untroubled = ran.report_troubles();
    Ok(exit_code(ran.ended, untroubled && ran.all_succeeded()))
}

/// With which of the counts a program is looked at: none above the CPUs, and always the one that it
/// requests. A variable of its own `env` wins over all others.
fn counts(spec: &ProgramSpec, listed: &[u16], requested: u16, most: u16) -> Vec<u16> {
    let others = listed.iter().copied().filter(|count| !spec.has_own_count() && *count <= most);
    let mut counts: Vec<u16> = others.chain([requested]).collect();
    counts.sort_unstable();
    counts.dedup();
    counts
}

struct SoloTimes<'a> {
    store: &'a Store,
    /// What was measured just now. Disturbed times are not in the store.
    measured: Vec<Measured>,
}

impl SoloTimes<'_> {
    fn entry(&self, key: &Key) -> Option<SoloRecord> {
        let fresh = self.measured.iter().find(|measured| measured.key == *key);
        fresh.map(|fresh| fresh.entry.clone()).or_else(|| self.store.look_up(key))
    }

    fn not_kept(&self) -> Vec<String> {
        self.measured.iter().filter_map(|measured| measured.not_kept.clone()).collect()
    }

    /// What disturbed the times of a program with each of these counts, so that none was kept.
    fn disturbed(
        &self,
        session: &Session,
        spec: &ProgramSpec,
        counts: &[u16],
        how: &How,
    ) -> Vec<Option<String>> {
        let of = |threads: &u16| {
            let key = session.key(&ProgramSpec { threads: Some(*threads), ..spec.clone() }, how);
            let fresh = self.measured.iter().find(|measured| measured.key == key)?;
            fresh.disturbed.as_ref().map(ToString::to_string)
        };
        counts.iter().map(of).collect()
    }
}

fn candidate(
    session: &Session,
    spec: &ProgramSpec,
    counts: &[u16],
    how: &How,
    found: &SoloTimes<'_>,
) -> Result<Candidate, Failure> {
    let measured = |threads: &u16| {
        let counted = ProgramSpec { threads: Some(*threads), ..spec.clone() };
        Some((*threads, found.entry(&session.key(&counted, how))?))
    };
    let known: Vec<(u16, SoloRecord)> = counts.iter().filter_map(measured).collect();
    let speedup = |time: &dyn Fn(&SoloRecord) -> Nanos| {
        let times: Vec<(u16, Nanos)> = known.iter().map(|(n, entry)| (*n, time(entry))).collect();
        Speedup::new(&times).ok_or_else(|| {
            Failure::Broken(format!("{}: the measured times were not saved", spec.name))
        })
    };
    let rounds = known.iter().map(|(_, entry)| entry.times.len()).min().unwrap_or(0);
    let rounds = (0..rounds).map(|round| speedup(&|entry| entry.times[round]));
    let rounds = rounds.collect::<Result<Vec<_>, _>>()?;
    let speedup = speedup(&|entry| entry.solo)?;
    let runs = match spec.repeat {
        Repeat::Times(runs) => runs,
        Repeat::UntilAllFinish => 1,
    };
    let requested = session.threads(spec);
    Ok(Candidate { arrives: spec.start, runs, requested, speedup, cpu: None, rounds })
}

fn apply(
    session: &Session,
    advice: &Advice<'_>,
    args: &AdviseOptions,
    how: &How,
    store: &Store,
) -> Result<Ran, Failure> {
    let programs = advice.workload.programs.iter().zip(&advice.counts);
    let counted = programs.map(|(spec, n)| ProgramSpec { threads: Some(*n), ..spec.clone() });
    let workload = Workload { programs: counted.collect() };
    let profiles = session.profiles(&workload, how, Some(store));
    let request = Request {
        out: args.out.as_deref(),
        stdout_is_taken: args.json,
        redirects: true,
        ..Request::new(&workload, advice.policy, how, &profiles)
    };
    let live = session.open_live(&request, None)?;
    session.show(&request, live)
}
