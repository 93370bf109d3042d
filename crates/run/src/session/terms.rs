//! What the engine is told of a run before it, and what `run.json` says of it after it: the terms
//! of a [`Request`].

use std::collections::HashMap;

use cosched_core::engine::{Limits, Predecessor, ProgramSetup, Setup};
use cosched_core::{GroupId, Nanos};
use cosched_linux::control::run_cgroups::ByWeight;
use cosched_policy::{OptionGroup, binds_by_weight};
use cosched_results::result::{AfterResult, Backends, Context, NONE, ProgramContext, Terms};
use cosched_workload::{After, BarrierMode, ProgramSpec};

use super::barriers;
use super::here::Session;
use super::making::{HEARTBEAT, by_weight};
use super::pauses;
use super::request::{Origins, Request};
use crate::ui::watched;

/// Groups that the user names are numbered from here, so that they are never taken for groups that
/// were found.
const FIRST_NAMED_GROUP: u16 = 1 << 15;

fn waits(spec: &ProgramSpec, slots: &HashMap<&str, u16>) -> Vec<Predecessor> {
    let wait = |after: &After| {
        let slot = slots.get(after.program.as_str())?;
        Some(Predecessor { slot: *slot, any_exit: after.any_exit })
    };
    spec.after.iter().filter_map(wait).collect()
}

fn after(after: &After) -> AfterResult {
    AfterResult { program: after.program.clone(), any_exit: after.any_exit }
}

impl Session {
    /// What the engine has to know of the programs, each of which has so many threads.
    pub fn setup(&self, request: &Request<'_>, threads: &[u16]) -> Setup {
        let mut names: HashMap<&str, GroupId> = HashMap::new();
        let mut entries = Vec::new();
        let programs = request.workload.programs.iter();
        let slots: HashMap<&str, u16> =
            programs.map(|spec| spec.name.as_str()).zip(0u16..).collect();
        let known = request.workload.programs.iter().zip(threads).zip(request.profiles);
        let risks = self.pause_risks(request);
        for (((spec, threads), profile), risks) in known.zip(&risks) {
            let next = GroupId(FIRST_NAMED_GROUP + names.len() as u16);
            let mut entry = ProgramSetup {
                arrives: spec.start,
                after: waits(spec, &slots),
                thread_count: *threads,
                weight: spec.weight,
                repeat: spec.repeat,
                freezable: spec.freezable != Some(false),
                max_frozen: None,
                time_limit: None,
                malleable: spec.malleable,
                runs_already: matches!(request.origins, Origins::Running(_)),
                group: spec.group.as_deref().map(|name| *names.entry(name).or_insert(next)),
                profile: *profile,
            };
            pauses::limit(&mut entry, risks);
            entries.push(entry);
        }
        Setup {
            topology: self.topology.clone(),
            cpus: self.usable.cpus,
            programs: entries,
            limits: Limits {
                max_frozen: request.how.max_frozen(),
                grace: request.how.grace.into(),
                heartbeat: if request.out.is_some() && watched() {
                    HEARTBEAT
                } else {
                    Nanos::NEVER
                },
                ..Limits::default()
            },
        }
    }

    /// What a run would tell of itself, as far as that is known before it is made: with the threads
    /// that programs request.
    pub fn expected(&self, request: &Request<'_>) -> Context {
        let programs = &request.workload.programs;
        let threads: Vec<u16> = programs.iter().map(|spec| self.threads(spec)).collect();
        let backends = Backends { freezing: NONE.to_owned(), pinning: NONE.to_owned() };
        self.context(request, &threads, &Session::barriers(request), String::new(), backends, 0.0)
    }

    /// How threads are placed, unless the policy binds no program: it makes no gangs, or programs
    /// take turns by weight on a machine where that needs no binding.
    pub fn placement(&self, request: &Request<'_>) -> Option<String> {
        let by_weight = by_weight(request.kind, request.how) != ByWeight::No;
        let binds = !by_weight || binds_by_weight(&self.topology, &self.usable.cpus);
        let placed = request.kind.makes_gangs() && binds;
        placed.then(|| request.how.options(request.kind).placement.to_string())
    }

    /// What the result says of the run beside its course.
    pub fn context(
        &self,
        request: &Request<'_>,
        threads: &[u16],
        modes: &[BarrierMode],
        started_at: String,
        backends: Backends,
        own_cpu_seconds: f64,
    ) -> Context {
        let options = Some(request.how.options(request.kind));
        let options = options.filter(|_| request.kind.makes_gangs());
        let started =
            !self.description.is_simulated() && !matches!(request.origins, Origins::Running(_));
        let risks = self.pause_risks(request);
        let environment = |spec: &ProgramSpec| self.started_with(spec, request);
        let programs = &request.workload.programs;
        let program = |slot: usize| {
            let (spec, profile) = (&programs[slot], &request.profiles[slot]);
            let is_kept = risks[slot].forbid_pauses();
            ProgramContext {
                name: spec.name.clone(),
                command: spec.command.clone(),
                threads: threads[slot],
                molded: profile.molded,
                solo: profile.solo,
                solo_cpu: profile.solo_cpu,
                after: spec.after.iter().map(after).collect(),
                terms: Some(Terms {
                    weight: spec.weight,
                    group: spec.group.clone(),
                    freezable: if is_kept { Some(false) } else { spec.freezable },
                    misses_per_kilo_instruction: profile.misses_per_kilo_instruction,
                    memory_gigabytes_per_second: profile.memory_gigabytes_per_second,
                }),
                environment: started.then(|| self.given(spec, request)),
                barrier: started
                    .then(|| barriers::result(modes[slot], &environment(spec)))
                    .flatten(),
                instead_of_progress: None,
            }
        };
        Context {
            policy: request.kind.to_string(),
            decided_by: None,
            placement: self.placement(request),
            max_frozen: options.as_ref().map(|_| request.how.max_frozen()),
            fill: options
                .as_ref()
                .map(|options| options.fill)
                .filter(|_| request.kind.takes(OptionGroup::Fill)),
            quantum: options.map(|options| options.quantum),
            started_at,
            machine: self.description.clone(),
            simulation: None,
            backends,
            own_cpu_seconds,
            programs: (0..programs.len()).map(program).collect(),
        }
    }
}
