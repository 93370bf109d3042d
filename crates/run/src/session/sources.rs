//! What shows the progress of programs, for the policy that has to know (`fair-progress`): found
//! out before anything starts.
//!
//! Hardware counters show it of every program. Without them, which is how it is on most virtual
//! machines, a program has to report it (its own ticks, or the regions and barriers that
//! the hook sees), or it has to be predicted from its traffic with memory and a table of slowdowns.

use cosched_core::Profile;
use cosched_linux::machine::Origin;
use cosched_linux::observe::counters::{self, CounterLack, Events};
use cosched_policy::Learns;
use cosched_results::result::Instead;
use cosched_workload::{BarrierMode, ProgramSpec};

use super::request::{Origins, Request};
use crate::ui::failure::{self, Failure};

/// What tells how far a program comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProgressSource {
    /// Instructions, and traffic with memory.
    Counters,
    /// The hook inside it.
    Inside,
    /// A prediction.
    Slowdowns,
}

impl ProgressSource {
    const ALL: [ProgressSource; 3] =
        [ProgressSource::Counters, ProgressSource::Inside, ProgressSource::Slowdowns];

    fn words(self) -> &'static str {
        match self {
            ProgressSource::Counters => "hardware counters",
            ProgressSource::Inside => {
                "progress that they report (ticks, or else regions and barriers)"
            }
            ProgressSource::Slowdowns => "the table of slowdowns and their memory traffic",
        }
    }
}

impl ProgressSource {
    /// What stands in for a program that tells nothing; `None`: it was not to tell.
    pub(super) fn instead(self, profile: &Profile, request: &Request<'_>) -> Option<Instead> {
        let by_table = has_prediction(profile, request);
        let instead = if by_table { Instead::Slowdowns } else { Instead::CpuTime };
        (self == ProgressSource::Inside).then_some(instead)
    }
}

/// Whether a table of slowdowns predicts how far a program comes.
fn has_prediction(profile: &Profile, request: &Request<'_>) -> bool {
    profile.memory_gigabytes_per_second.is_some() && request.how.policy.slowdowns.is_some()
}

/// Whether the hook will be inside a program.
pub(super) fn is_inside(spec: &ProgramSpec, request: &Request<'_>) -> bool {
    let is_started = request.origins == Origins::Started;
    (spec.malleable && is_started)
        || (spec.progress && request.hears_progress())
        || request.how.barrier(spec) != BarrierMode::Own
}

/// A peak that was said is refused where no traffic is known that could be held against it.
///
/// # Errors
/// When it is so.
pub(super) fn check_peak(request: &Request<'_>) -> Result<(), Failure> {
    let is_known = |profile: &Profile| profile.memory_gigabytes_per_second.is_some();
    let is_of_use = request.how.policy.fair.peak_bandwidth.is_none()
        || !request.kind.learns(Learns::SoloSpeeds)
        || request.profiles.iter().any(is_known)
        || counters::check(Events::HARDWARE).is_ok();
    needs_traffic("--peak-bandwidth", is_of_use)
}

/// A table of slowdowns is refused where it predicts no program's progress.
///
/// # Errors
/// When it is so.
pub(super) fn check_slowdowns(request: &Request<'_>) -> Result<(), Failure> {
    let is_of_use = request.how.policy.slowdowns.is_none()
        || !request.kind.learns(Learns::SoloSpeeds)
        || request.profiles.iter().any(|profile| has_prediction(profile, request));
    needs_traffic("--slowdowns", is_of_use)
}

fn needs_traffic(option: &str, is_of_use: bool) -> Result<(), Failure> {
    match is_of_use {
        true => Ok(()),
        false => Err(Failure::Input(format!(
            "{option} needs the memory traffic of the programs, and it is not known of any; leave \
             the option out, or set `memory_gigabytes_per_second` of the programs in a jobs file"
        ))),
    }
}

/// Whether it is known of every program how much it moves to and from memory: counted, or said by
/// the user.
pub(super) fn tell_traffic(request: &Request<'_>) -> bool {
    let is_said = |profile: &Profile| profile.memory_gigabytes_per_second.is_some();
    request.profiles.iter().all(is_said) || counters::check(Events::HARDWARE).is_ok()
}

/// The best source for each program.
///
/// # Errors
/// When some have none: all of these.
pub(super) fn find(request: &Request<'_>) -> Result<Vec<ProgressSource>, Failure> {
    let lack = counters::check(Events::HARDWARE).err();
    let programs = request.workload.programs.iter().zip(request.profiles).enumerate();
    let source = |(slot, (spec, profile)): (usize, (&ProgramSpec, &Profile))| {
        let runs_already = matches!(request.origins.of(slot), Origin::Running(_));
        match &lack {
            None => Ok(ProgressSource::Counters),
            Some(_) if !runs_already && is_inside(spec, request) => Ok(ProgressSource::Inside),
            Some(_) if has_prediction(profile, request) => Ok(ProgressSource::Slowdowns),
            Some(lack) => Err(Failure::Input(refusal(spec, request, lack))),
        }
    };
    failure::all(programs.map(source))
}

fn refusal(spec: &ProgramSpec, request: &Request<'_>, lack: &CounterLack) -> String {
    format!(
        "{}: policy '{}' needs the progress of '{}', which cannot be measured: {lack}. Set \
         `progress = true` for the program in a jobs file if it reports ticks, has parallel \
         regions or barriers, or calls OpenBLAS; or set its `memory_gigabytes_per_second`, and \
         name a table with --slowdowns",
        spec.places.command,
        request.kind,
        cosched_workload::shown(&spec.name),
    )
}

/// Which programs have which source, for people.
pub(super) fn shown(programs: &[ProgramSpec], sources: &[ProgressSource]) -> String {
    let of = |source: ProgressSource| {
        let its = programs.iter().zip(sources).filter(move |(_, other)| **other == source);
        let names: Vec<&str> = its.map(|(spec, _)| spec.name.as_str()).collect();
        (!names.is_empty()).then(|| format!("{} by {}", names.join(" "), source.words()))
    };
    let each: Vec<String> = ProgressSource::ALL.into_iter().filter_map(of).collect();
    format!("progress is measured for {}", each.join("; for "))
}
