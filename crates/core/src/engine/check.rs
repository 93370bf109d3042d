//! Whether a plan makes sense. A policy's mistake is found here, before it affects any program.

use std::collections::{BTreeSet, HashSet};

use crate::cpuset::CpuSet;
use crate::id::{ProgramId, ThreadId};
use crate::plan::{Directive, Plan};
use crate::policy::World;
use crate::time::Nanos;

/// What is wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPlan {
    /// It names a program that is not there.
    #[error("the plan names {0}, which is not in the world")]
    UnknownProgram(ProgramId),
    /// It names a thread that is not there.
    #[error("the plan names {0:?}, which is not in the world")]
    UnknownThread(ThreadId),
    /// It names a program twice.
    #[error("the plan names {0} twice")]
    NamedTwice(ProgramId),
    /// It names a thread twice.
    #[error("the plan names {0:?} twice")]
    ThreadNamedTwice(ThreadId),
    /// It binds a program to no CPU at all.
    #[error("the plan binds {0} to no CPU")]
    NoCpu(ProgramId),
    /// It binds a program to CPUs that may not be used.
    #[error("the plan binds {0} to CPUs {1}, which programs may not use")]
    ForeignCpu(ProgramId, Box<CpuSet>),
    /// Its thread limit is zero. (A limit above the number that a region requests is lowered.)
    #[error("the plan gives {0} a thread limit of 0")]
    NoThread(ProgramId),
    /// It requests a wake-up in the past.
    #[error("the plan requests a wake-up at {0}, which is past")]
    PastWake(Nanos),
}

/// Checks a plan against the world that it was made for.
///
/// # Errors
/// The first thing that is wrong.
pub fn check(plan: &Plan, world: &World<'_>) -> Result<(), BadPlan> {
    let mut named = BTreeSet::new();
    for (program, directive) in &plan.programs {
        if world.program(*program).is_none() {
            return Err(BadPlan::UnknownProgram(*program));
        }
        if !named.insert(*program) {
            return Err(BadPlan::NamedTwice(*program));
        }
        let Directive::Run(settings) = directive else { continue };
        if settings.thread_limit == Some(0) {
            return Err(BadPlan::NoThread(*program));
        }
        check_cpus(*program, settings.cpus, world)?;
    }
    let mut named = HashSet::with_capacity(plan.threads.len());
    for (id, rule) in &plan.threads {
        if !named.insert(*id) {
            return Err(BadPlan::ThreadNamedTwice(*id));
        }
        let thread = world.thread(*id).ok_or(BadPlan::UnknownThread(*id))?;
        check_cpus(thread.program, rule.cpus, world)?;
    }
    let unknown = |program: &ProgramId| world.program(*program).is_none();
    if let Some(program) = plan.observe.iter().filter_map(|observe| observe.program).find(unknown) {
        return Err(BadPlan::UnknownProgram(program));
    }
    match plan.wake.iter().find(|wake| wake.at < world.now) {
        Some(wake) => Err(BadPlan::PastWake(wake.at)),
        None => Ok(()),
    }
}

fn check_cpus(program: ProgramId, cpus: Option<CpuSet>, world: &World<'_>) -> Result<(), BadPlan> {
    let Some(cpus) = cpus else { return Ok(()) };
    if cpus.is_empty() {
        return Err(BadPlan::NoCpu(program));
    }
    match cpus.is_subset(world.cpus) {
        true => Ok(()),
        false => Err(BadPlan::ForeignCpu(program, Box::new(cpus.difference(world.cpus)))),
    }
}
