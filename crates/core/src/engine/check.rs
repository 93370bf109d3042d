//! Whether a plan makes sense: a policy's mistake is found here, before any program feels it.

use crate::cpuset::CpuSet;
use crate::plan::{Directive, Plan};
use crate::policy::World;
use crate::program::ProgramId;
use crate::time::Nanos;

/// What is wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPlan {
    /// It names a program that is not there.
    #[error("the plan names {0}, which is not in the world")]
    UnknownProgram(ProgramId),
    /// It names a program twice.
    #[error("the plan names {0} twice")]
    NamedTwice(ProgramId),
    /// It binds a program to no CPU at all.
    #[error("the plan binds {0} to no CPU")]
    NoCpu(ProgramId),
    /// It binds a program to CPUs that may not be used.
    #[error("the plan binds {0} to CPUs {1}, which programs may not use")]
    ForeignCpu(ProgramId, Box<CpuSet>),
    /// It asks to be woken in the past.
    #[error("the plan asks for a wake-up at {0}, which is past")]
    PastWake(Nanos),
}

/// Checks a plan against the world that it was made for.
///
/// # Errors
/// The first thing that is wrong.
pub fn check(plan: &Plan, world: &World<'_>) -> Result<(), BadPlan> {
    for (i, (program, directive)) in plan.programs.iter().enumerate() {
        if world.program(*program).is_none() {
            return Err(BadPlan::UnknownProgram(*program));
        }
        if plan.programs[..i].iter().any(|(earlier, _)| earlier == program) {
            return Err(BadPlan::NamedTwice(*program));
        }
        let Directive::Run(settings) = directive else { continue };
        let Some(cpus) = settings.cpus else { continue };
        if cpus.is_empty() {
            return Err(BadPlan::NoCpu(*program));
        }
        if !cpus.is_subset(world.cpus) {
            return Err(BadPlan::ForeignCpu(*program, Box::new(cpus.difference(world.cpus))));
        }
    }
    match plan.wake.iter().find(|wake| wake.at < world.now) {
        Some(wake) => Err(BadPlan::PastWake(wake.at)),
        None => Ok(()),
    }
}
