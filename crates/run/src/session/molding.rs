//! With how many threads moldable programs are started under `turns` and `auto`, where it is known
//! how all programs do alone.
//!
//! A program that takes as many threads as there are CPUs does so as if it were alone. Beside
//! others, its last threads may bring it less than they take from them. Which counts are best
//! follows from [solo times](cosched_policy::molding::mold).

use std::fmt;

use cosched_core::{Molding, Profile, Speedup};
use cosched_policy::molding::mold;
use cosched_policy::{OptionGroup, advice::Candidate};
use cosched_workload::{ProgramSpec, Repeat, Workload};

use super::here::Session;
use super::request::Request;

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
        let mut known = programs.iter().zip(request.profiles);
        let (spec, _) = known.find(|(spec, profile)| {
            let lacks_fewer = is_moldable(spec) && profile.speedup.is_none();
            profile.solo.is_none() || profile.solo_cpu.is_none() || lacks_fewer
        })?;
        let counts = match is_moldable(spec) {
            true => format!(" with several thread counts, {} among them,", self.threads(spec)),
            false => format!(" {}", self.threads(spec)),
        };
        Some(format!(
            "moldable programs keep their thread counts, because not all solo times of {} are \
             known; `cosched profile --runs 5 --threads`{counts} measures it",
            spec.name
        ))
    }
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
                "{} with {} of {} threads",
                spec.name, spec.threads?, profile.molded?.requested
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
