//! `cosched profile`: how programs run alone on this machine, measured once and kept.
//!
//! Every slowdown is a ratio to the time that the same work takes alone with the same threads and
//! the same placement. This command measures those times and puts them into the
//! [store](crate::store); `run` and `compare` find them there. With `--threads` it measures every
//! program with several thread counts and shows how it scales. Cache misses are counted along the
//! way where the machine has hardware counters; where one could not be counted, the reason is told.
//!
//! With `--machine` it measures the memory instead.
//!
//! A program that fails ends the command: the time of a failure says nothing about the work. What
//! was measured before is kept, as it is when the user interrupts.

mod curve;
mod machine;
mod show;

use std::process::ExitCode;

use cosched_core::Nanos;
use cosched_linux::observe::counters::{self, CounterLack, Events};
use cosched_policy::Placement;
use cosched_workload::{ProgramSpec, Workload};

use crate::alone::{KnownRuns, Measured, measure_in_turn, parse_counts, with_counts};
use crate::how::How;
use crate::session::Session;
use crate::source::{self, Needs, Runs, Source};
use crate::stop::MeasuringStop;
use crate::store::{SoloRecord, Store};
use crate::ui::failure::{Failure, both};
use crate::ui::{print, print_json};

/// The options of policies that also matter for a program that runs alone, without their dashes.
/// All others are refused.
pub const USED: [&str; 3] = ["placement", "freezer", "pinning"];

/// What to measure.
#[derive(Clone, Debug)]
pub struct ProfileOptions {
    /// The programs.
    pub source: Source,
    /// How this machine does its work.
    pub how: How,
    /// Thread counts to measure with, such as `1..4` or `1,2,4`; `None`: those that the programs
    /// request.
    pub threads: Option<String>,
    /// Runs of each program with each thread count.
    pub runs: u16,
    /// Whether the memory's peak bandwidth is measured instead of programs.
    pub machine: bool,
    /// Whether JSON is printed instead of tables.
    pub json: bool,
}

struct Profiled<'a> {
    spec: &'a ProgramSpec,
    placement: Placement,
    /// By thread count, ascending; at least one.
    entries: Vec<(u16, SoloRecord)>,
    /// By thread count too: what disturbed the times, so that none was kept.
    disturbed: Vec<Option<String>>,
}

impl Profiled<'_> {
    fn curve(&self) -> Vec<(u16, Nanos)> {
        self.entries.iter().map(|(threads, entry)| (*threads, entry.solo)).collect()
    }

    fn lacks_misses(&self) -> bool {
        self.entries.iter().any(|(_, entry)| entry.misses_per_kilo_instruction.is_none())
    }
}

/// Measures the programs of a workload, one by one, and shows what was found.
///
/// # Errors
/// When the options do not fit, or something breaks on the way.
pub fn profile(args: &ProfileOptions) -> Result<ExitCode, Failure> {
    let how = &args.how;
    let used = how.check_use_by("profile", &USED);
    if args.machine {
        return used.and_then(|()| machine::machine(args.json));
    }
    let needs = Needs::Runs(Runs { alone: true, ..Runs::default() });
    let (_, workload) = both(used, source::workload(&args.source, needs))?;
    let session = Session::here()?;
    let counts = args.threads.as_deref().map(|list| parse_counts(list, session.usable.cpus.len()));
    let counts = counts.transpose()?;
    let mut store = Store::open().map_err(Failure::input)?;

    match profiles(&session, &workload, counts.as_deref(), how, args.runs, &mut store) {
        Ok((profiles, _)) if args.json => print_json(&show::json(&profiles))?,
        Ok((profiles, not_kept)) => {
            print(&show::table(&profiles))?;
            not_kept.iter().try_for_each(|sentence| print(sentence))?;
            if profiles.iter().any(Profiled::lacks_misses) {
                print(&why_no_misses(counters::check(Events::HARDWARE)))?;
            }
        }
        Err(stop) => return stop.code(),
    }
    Ok(ExitCode::SUCCESS)
}

/// What was found, and which times were not kept, a sentence for each.
fn profiles<'a>(
    session: &Session,
    workload: &'a Workload,
    counts: Option<&[u16]>,
    how: &How,
    runs: u16,
    store: &mut Store,
) -> Result<(Vec<Profiled<'a>>, Vec<String>), MeasuringStop> {
    let all: Vec<(&ProgramSpec, Vec<ProgramSpec>)> =
        workload.programs.iter().map(|spec| (spec, with_counts(spec, counts))).collect();
    let specs = all.iter().flat_map(|(_, counted)| counted.clone()).collect();
    let measured = measure_in_turn(session, specs, how, runs, KnownRuns::IsReplaced, store)?;
    let mut profiles = Vec::new();
    for (spec, counted) in all {
        let (mut entries, mut disturbed) = (Vec::new(), Vec::new());
        for spec in counted {
            let key = session.key(&spec, how);
            let found = measured.iter().find(|measured| measured.key == key);
            let Measured { entry, disturbed: by, .. } = found.expect("all of them were measured");
            entries.push((session.threads(&spec), entry.clone()));
            disturbed.push(by.as_ref().map(ToString::to_string));
        }
        profiles.push(Profiled { spec, placement: how.placement(), entries, disturbed });
    }
    Ok((profiles, measured.into_iter().filter_map(|measured| measured.not_kept).collect()))
}

/// Why cache misses are missing, given what can be counted here, and what to do.
fn why_no_misses(countable: Result<(), CounterLack>) -> String {
    let why = match countable {
        Err(lack) => {
            let remedy =
                lack.remedy().map(|remedy| format!(" Remedy: {remedy}.")).unwrap_or_default();
            format!("Cache misses could not be measured: {lack}.{remedy}")
        }
        Ok(()) => {
            "Not all cache misses were measured: the hardware counters were in use or did not \
             count (a profiler or a watchdog may hold them)."
                .to_owned()
        }
    };
    format!("{why} Policy cgreedy then needs `misses_per_kilo_instruction` in the jobs file.")
}

#[cfg(test)]
mod tests {
    use cosched_workload::OPENMP;

    use super::*;

    #[test]
    fn missing_misses_are_reported_with_the_reason_and_the_remedy() {
        for (countable, why) in [
            (Err(CounterLack::Hardware), "shows no hardware counters"),
            (Err(CounterLack::CacheEvents), "counts instructions, but no misses"),
            (Err(CounterLack::Permission), "perf_event_paranoid=2"),
            (Ok(()), "in use or did not count"),
        ] {
            let sentence = why_no_misses(countable);
            assert!(sentence.contains(why), "{sentence}");
            assert!(
                sentence.ends_with("`misses_per_kilo_instruction` in the jobs file."),
                "{sentence}"
            );
        }
    }

    #[test]
    fn each_thread_count_is_set_for_the_program() {
        let commands = vec![vec!["cg".to_owned()]];
        let workload = Workload::from_commands(commands, "/tmp".as_ref()).unwrap();
        let threads = |counts| -> Vec<Option<u16>> {
            with_counts(&workload.programs[0], counts).iter().map(|spec| spec.threads).collect()
        };
        assert_eq!(threads(Some(&[1, 4])), [Some(1), Some(4)]);
        assert_eq!(threads(None), [None]);
        let mut own = workload.programs[0].clone();
        own.env.insert(OPENMP.to_owned(), "2".to_owned());
        assert_eq!(with_counts(&own, Some(&[1, 4])), [own]);
    }
}
