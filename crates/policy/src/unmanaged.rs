//! `linux` and `linux-groups`: everything at once, and the kernel decides.
//!
//! These are the baselines. Every program starts when it arrives and runs with its original
//! settings; nothing is frozen and no program is bound to CPUs. Both are measured through the same
//! code as the policies, so that a difference between them is one of policy.
//!
//! There are two, because Linux divides CPU time in two ways. Without groups it divides by
//! *thread*: a program with four threads gets four times as much as one with a single thread. With
//! a CPU cgroup per program, as systemd services and desktop sessions have, it divides by *program*
//! first.

use cosched_core::{Cause, Plan, Policy, Program, Settings, World};

use crate::common::reasons::SharedReason;
use crate::descriptor::Descriptor;

/// Everything at once, in one session and one CPU group.
pub(crate) const LINUX: Descriptor = Descriptor {
    baseline: true,
    attaches: true,
    ..Descriptor::without_gangs(
        "linux",
        "start everything at once and let the kernel share the CPUs by thread",
        |_| Ok(Box::new(Unmanaged::together())),
    )
};

/// Everything at once, a CPU group for each program.
pub(crate) const LINUX_GROUPS: Descriptor = Descriptor {
    baseline: true,
    shares: true,
    ..Descriptor::without_gangs(
        "linux-groups",
        "start everything at once and let the kernel share the CPUs by program",
        |_| Ok(Box::new(Unmanaged::in_groups())),
    )
};

#[derive(Debug)]
pub(crate) struct Unmanaged {
    settings: Settings,
}

impl Unmanaged {
    /// Programs in one group, sharing by thread.
    pub(crate) fn together() -> Unmanaged {
        Unmanaged { settings: Settings::default() }
    }

    /// Programs in a CPU cgroup each, sharing by program.
    pub(crate) fn in_groups() -> Unmanaged {
        Unmanaged { settings: Settings { cpu_group: Some(true), ..Settings::default() } }
    }
}

impl Policy for Unmanaged {
    fn decide(&mut self, causes: &[Cause], world: &World<'_>, plan: &mut Plan) {
        let has_come = |program: &&Program| causes.contains(&Cause::Arrived(program.id));
        for program in world.programs.iter().filter(has_come) {
            plan.run(program.id, self.settings);
            plan.because(Some(program.id), SharedReason::LeftToKernel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::testkit::{Lab, program};
    use cosched_core::Directive;

    /// A program starts on arrival with its original settings, and the policy plans nothing for it
    /// afterwards.
    #[test]
    fn every_program_starts_on_arrival_unchanged() {
        let mut lab = Lab::new(Unmanaged::together(), 2, vec![program(0, 2), program(1, 4)]);
        assert_eq!(lab.running(), [0, 1]);
        assert!(lab.plan.programs.iter().all(|(_, d)| *d == Directive::Run(Settings::default())));
        lab.arrive(program(2, 2));
        assert_eq!(lab.running(), [0, 1, 2]);
        assert_eq!(lab.plan.programs.len(), 1);
        lab.exit(0);
        assert!(lab.plan.programs.is_empty());
        assert_eq!(lab.next_wake(), None);
    }

    #[test]
    fn in_groups_each_program_has_a_cpu_group() {
        let lab = Lab::new(Unmanaged::in_groups(), 2, vec![program(0, 2), program(1, 2)]);
        for (_, directive) in &lab.plan.programs {
            let Directive::Run(settings) = directive else { panic!("{directive:?}") };
            assert_eq!(settings.cpu_group, Some(true));
            assert_eq!(settings.cpus, None);
        }
    }
}
