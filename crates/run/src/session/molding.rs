//! With how many threads moldable programs are started under `turns` and `auto`, where it is known
//! how all programs do alone.
//!
//! A program that takes as many threads as there are CPUs does so as if it were alone. Beside
//! others, its last threads may bring it less than they take from them. Which counts are best
//! follows from [solo times](cosched_policy::molding::mold).

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use cosched_core::format::count;
use cosched_core::{Molding, Profile, Speedup};
use cosched_policy::molding::mold;
use cosched_policy::{OptionGroup, advice::Candidate};
use cosched_workload::input::STANDARD_INPUT;
use cosched_workload::shell::{join, quote};
use cosched_workload::{ProgramSpec, Repeat, Workload, shown};

use super::here::Session;
use super::request::Request;
use crate::store::Store;

/// Programs that are started with fewer threads than they would have.
pub struct Molded {
    /// The programs, with their new thread counts.
    pub workload: Workload,
    /// What is known of each with that thread count.
    pub profiles: Vec<Profile>,
}

impl Session {
    /// The programs with the thread counts with which they are started; `None`: as the request has
    /// them.
    pub fn molded(&self, request: &Request<'_>) -> Option<Molded> {
        let programs = &request.workload.programs;
        if !request.kind.takes(OptionGroup::Goal) || !programs.iter().any(is_moldable) {
            return None;
        }
        if programs.iter().any(|spec| !spec.after.is_empty()) {
            return None;
        }
        let known = programs.iter().zip(request.profiles);
        let candidates: Option<Vec<Candidate>> =
            known.map(|(spec, profile)| self.candidate(spec, profile)).collect();
        let candidates = candidates?;
        let counts = mold(&candidates, self.usable.cpus.len(), &request.how.policy.set.params())?;
        let (mut workload, mut profiles) = (request.workload.clone(), request.profiles.to_vec());
        for (slot, (count, candidate)) in counts.into_iter().zip(candidates).enumerate() {
            // More threads than CPUs are none that it was measured with.
            if usize::from(count) < usize::from(candidate.requested).min(self.usable.cpus.len()) {
                workload.programs[slot].threads = Some(count);
                let alone = candidate.speedup.times().iter().find(|(known, _)| *known == count);
                profiles[slot].molded =
                    alone.map(|(_, solo)| Molding { requested: candidate.requested, solo: *solo });
            }
        }
        Some(Molded { workload, profiles })
    }

    fn candidate(&self, spec: &ProgramSpec, profile: &Profile) -> Option<Candidate> {
        let (requested, usable) = (self.threads(spec), self.usable_threads(spec));
        let known = profile.speedup.filter(|_| is_moldable(spec));
        let mut times = known.map_or_else(Vec::new, |known| known.times().to_vec());
        times.retain(|(threads, _)| *threads < usable);
        times.push((usable, profile.solo?));
        let speedup = Speedup::new(&times)?;
        // How often another one is run while others last is not known.
        let Repeat::Times(runs) = spec.repeat else { return None };
        let cpu = Some(profile.solo_cpu?);
        Some(Candidate { arrives: spec.start, runs, requested, speedup, cpu, rounds: Vec::new() })
    }

    /// How many of its threads can run at once.
    fn usable_threads(&self, spec: &ProgramSpec) -> u16 {
        let cpus = u16::try_from(self.usable.cpus.len()).unwrap_or(u16::MAX);
        self.threads(spec).min(cpus).max(1)
    }

    /// Why moldable programs keep their threads whatever would be better, where it is so.
    pub fn cannot_mold(&self, request: &Request<'_>) -> Option<String> {
        let programs = &request.workload.programs;
        if !request.kind.takes(OptionGroup::Goal) {
            return None;
        }
        if !programs.iter().any(is_moldable) {
            return programs.iter().find_map(fixed_by_env);
        }
        if let Some(spec) = programs.iter().find(|spec| spec.repeat == Repeat::UntilAllFinish) {
            let name = &spec.name;
            return Some(format!(
                "moldable programs keep their thread counts: {name} runs until all others have \
                 ended, so the solo times needed for a choice are not known"
            ));
        }
        if let Some(spec) = programs.iter().find(|spec| !spec.after.is_empty()) {
            let name = &spec.name;
            return Some(format!(
                "moldable programs keep their threads with {name}, since it is not known when that \
                 starts (after)"
            ));
        }
        let (counts, store) = (self.counts(), Store::open_if_there());
        let programs = programs.iter().zip(request.profiles);
        let missing = programs.map(|(spec, profile)| {
            let is_unknown = |threads: &u16| {
                !store.as_ref().is_some_and(|store| {
                    self.solo_with(*threads, spec, request.how, store).is_some()
                })
            };
            let worth = counts.iter().copied().filter(is_unknown).collect::<Vec<_>>();
            (spec, missing_counts(profile, self.threads(spec), is_moldable(spec), &worth))
        });
        lack_of_solo_times(&missing.filter(|(_, counts)| !counts.is_empty()).collect::<Vec<_>>())
    }
}

/// The thread counts with which a program's solo time is still to be measured: that which it
/// requests, and for a moldable program fewer ones, of those that are unknown here.
fn missing_counts(
    profile: &Profile,
    requested: u16,
    is_moldable: bool,
    unknown: &[u16],
) -> Vec<u16> {
    let lacks_fewer = is_moldable && profile.speedup.is_none();
    let fewer = unknown.iter().filter(|count| lacks_fewer && **count < requested);
    let is_known = profile.solo.is_some() && profile.solo_cpu.is_some();
    fewer.copied().chain((!is_known).then_some(requested)).collect()
}

/// Which solo times are missing, and the command that measures them.
fn lack_of_solo_times(missing: &[(&ProgramSpec, Vec<u16>)]) -> Option<String> {
    let (first, _) = missing.first()?;
    let list = |counts: &mut dyn Iterator<Item = &u16>| {
        counts.map(u16::to_string).collect::<Vec<_>>().join(",")
    };
    let named = missing.iter().map(|(spec, counts)| {
        let threads = if counts[..] == [1] { "thread" } else { "threads" };
        format!("{} with {} {threads}", shown(&spec.name), list(&mut counts.iter()))
    });
    let all: BTreeSet<u16> = missing.iter().flat_map(|(_, counts)| counts).copied().collect();
    let options = format!("--runs 5 --threads {}", list(&mut all.iter()));
    let command = match &first.places.command.file {
        Some(file) if file == Path::new(STANDARD_INPUT) => format!("- {options}"),
        Some(file) => format!("{} {options}", quote(&file.to_string_lossy())),
        None => format!("{options} -- {}", join(&first.command)),
    };
    Some(format!(
        "moldable programs keep their thread counts, because not all solo times are known \
         (missing: {}); `cosched profile {command}` measures them",
        named.collect::<Vec<_>>().join("; ")
    ))
}

/// That a program that says that it is moldable has its threads by a variable of its own: by any,
/// since one that keeps all of them may not be taken to have fewer.
fn fixed_by_env(spec: &ProgramSpec) -> Option<String> {
    let variable = spec.own_thread_variable()?;
    spec.moldable.then(|| {
        format!(
            "{} is moldable, but keeps its thread count, because its env sets {variable}",
            spec.name
        )
    })
}

/// Whether a program may be started with fewer threads. A malleable program has fewer when that is
/// better, and all of them later. A variable of a program's own `env` wins over whatever it would
/// be told.
pub fn is_moldable(spec: &ProgramSpec) -> bool {
    spec.moldable && !spec.malleable && fixed_by_env(spec).is_none()
}

impl Molded {
    /// The request for these, where there are any.
    pub fn instead<'r>(molded: Option<&'r Molded>, request: &Request<'r>) -> Request<'r> {
        match molded {
            Some(Molded { workload, profiles }) => Request { workload, profiles, ..*request },
            None => *request,
        }
    }
}

impl fmt::Display for Molded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let programs = self.workload.programs.iter().zip(&self.profiles);
        let fewer = programs.filter_map(|(spec, profile)| {
            Some(format!(
                "{} with {} of {}",
                spec.name,
                spec.threads?,
                count(profile.molded?.requested.into(), "thread", "threads")
            ))
        });
        let fewer = fewer.collect::<Vec<_>>().join(", ");
        write!(
            f,
            "started with fewer threads: {fewer}; by the solo times, the last program ends sooner \
             so"
        )
    }
}

#[cfg(test)]
mod tests {
    use cosched_core::Nanos;

    use super::*;

    #[test]
    fn missing_solo_times_are_named_with_a_command_to_type() {
        let (solo, solo_cpu) = (Some(Nanos::from_secs(1)), Some(Nanos::from_secs(2)));
        let known = Profile { solo, solo_cpu, ..Profile::default() };
        let unknown = Profile::default();
        let missing = |of, is_moldable| missing_counts(of, 4, is_moldable, &[1, 2, 4, 8]);
        assert_eq!(missing(&unknown, true), [1, 2, 4]);
        assert_eq!(missing(&unknown, false), [4]);
        assert_eq!(missing(&known, true), [1, 2]);
        assert_eq!(missing(&known, false), [0; 0]);
        assert_eq!(missing_counts(&unknown, 4, true, &[2, 4, 8]), [2, 4], "1 is known");

        let text = "[[program]]\nname = 'a'\ncommand = 'a'\n[[program]]\ncommand = 'b'";
        let programs = Workload::parse(text, Path::new("my jobs.toml")).unwrap().programs;
        let lack = lack_of_solo_times(&[(&programs[0], vec![1, 2]), (&programs[1], vec![4])]);
        let lack = lack.unwrap();
        assert!(lack.contains("(missing: a with 1,2 threads; b with 4 threads)"), "{lack}");
        let command = "`cosched profile 'my jobs.toml' --runs 5 --threads 1,2,4`";
        assert!(lack.contains(command), "{lack}");
        let piped = Workload::parse(text, Path::new(STANDARD_INPUT)).unwrap().programs;
        let lack = lack_of_solo_times(&[(&piped[0], vec![1, 2])]).unwrap();
        assert!(lack.contains("`cosched profile - --runs 5 --threads 1,2`"), "{lack}");
        assert_eq!(lack_of_solo_times(&[]), None);
    }
}
