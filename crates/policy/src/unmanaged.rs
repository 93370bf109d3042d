//! `linux`, `linux-groups` and `linux-weights`: everything at once, and the kernel decides.
//!
//! These are the baselines. Every program starts when it arrives and runs with its original
//! settings; nothing is frozen and no program is bound to CPUs. Both are measured through the same
//! code as the policies, so that a difference between them is one of policy.
//!
//! There are several, because Linux divides CPU time in two ways. Without groups it divides by
//! *thread*: a program with four threads gets four times as much as one with a single thread. With
//! a CPU cgroup per program, as systemd services and desktop sessions have, it divides by *program*
//! first. Weights of programs mean nothing to either. `linux-weights` gives them to the kernel as
//! nice values: the *OS with weights* of the FPS paper, section 7.6.

use std::collections::BTreeMap;

use cosched_core::{Cause, Plan, Policy, Program, ProgramId, Settings, Wording, Words, World};
use serde::{Deserialize, Serialize};

use crate::common::nice::nice;
use crate::common::reasons::{ReasonSet, SharedReason};
use crate::descriptor::{Descriptor, Need};

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

/// Everything at once, with nice values by weight.
pub(crate) const LINUX_WEIGHTS: Descriptor = Descriptor {
    weights: true,
    needs: &[Need::Nice],
    reasons: &[ReasonSet::of::<WeightReason>()],
    ..Descriptor::without_gangs(
        "linux-weights",
        "start everything at once and give the kernel the programs' weights as nice values",
        |_| Ok(Box::new(Unmanaged::by_weight())),
    )
};

/// A reason of `linux-weights`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum WeightReason {
    /// From now on its threads have a nice value: 0 for the program with the largest weight.
    NiceValue {
        /// How much is added.
        nice: i8,
    },
}

impl Words for WeightReason {
    fn words(&self) -> Wording {
        let WeightReason::NiceValue { nice } = *self;
        Wording::new("its threads have a nice value by its weight", format!("nice {nice}"))
            .figures(format!("{nice} more than their own"))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Unmanaged {
    settings: Settings,
    by_weight: bool,
    /// The nice value that was last given to each program.
    given: BTreeMap<ProgramId, i8>,
}

impl Unmanaged {
    /// Programs in one group, sharing by thread.
    pub(crate) fn together() -> Unmanaged {
        Unmanaged::default()
    }

    /// Programs in one group, sharing by thread and weight.
    pub(crate) fn by_weight() -> Unmanaged {
        Unmanaged { by_weight: true, ..Unmanaged::default() }
    }

    /// Programs in a CPU cgroup each, sharing by program.
    pub(crate) fn in_groups() -> Unmanaged {
        let settings = Settings { cpu_group: Some(true), ..Settings::default() };
        Unmanaged { settings, ..Unmanaged::default() }
    }
}

impl Policy for Unmanaged {
    fn decide(&mut self, causes: &[Cause], world: &World<'_>, plan: &mut Plan) {
        let has_come = |program: &&Program| causes.contains(&Cause::Arrived(program.id));
        let heaviest = world.programs.iter().map(|program| program.weight).fold(0.0, f64::max);
        // A newcomer may be heavier than all others, and the heaviest one may have ended.
        let is_other = |cause: &Cause| matches!(cause, Cause::Arrived(_) | Cause::Exited(..));
        let all = self.by_weight && causes.iter().any(is_other);
        for program in world.programs.iter().filter(|program| all || has_come(program)) {
            let by_weight = nice(program.weight, heaviest);
            let nice = Some(by_weight).filter(|nice| self.by_weight && *nice > 0);
            plan.run(program.id, Settings { nice, ..self.settings });
            if has_come(&program) {
                plan.because(Some(program.id), SharedReason::LeftToKernel);
            }
            let value = nice.unwrap_or(0);
            if self.given.insert(program.id, value).unwrap_or(0) != value {
                plan.aside(program.id, WeightReason::NiceValue { nice: value });
            }
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

    /// Figure 11 of the paper: weights of 1, 1, 2 and 4. The kernel's weight for nice value 0 is
    /// 1024, for 3 it is 526, and for 6 it is 272.
    #[test]
    fn weights_become_nice_values() {
        let of = |lab: &Lab<Unmanaged>| -> Vec<Option<i8>> {
            let nice = |(_, directive): &(_, Directive)| match directive {
                Directive::Run(settings) => settings.nice,
                other => panic!("{other:?}"),
            };
            lab.plan.programs.iter().map(nice).collect()
        };
        let weighing = |slot, weight| Program { weight, ..program(slot, 1) };
        let programs = [1.0, 1.0, 2.0].into_iter().zip(0..).map(|(w, slot)| weighing(slot, w));
        let mut lab = Lab::new(Unmanaged::by_weight(), 4, programs.collect());
        assert_eq!(of(&lab), [Some(3), Some(3), None]);
        let told = |lab: &Lab<Unmanaged>| -> Vec<i8> {
            let whys = lab.plan.reasons.iter().filter_map(|reason| reason.why.read());
            whys.map(|WeightReason::NiceValue { nice }| nice).collect()
        };
        assert_eq!(told(&lab), [3, 3]);
        lab.arrive(weighing(3, 4.0));
        assert_eq!(of(&lab), [Some(6), Some(6), Some(3), None]);
        assert_eq!(told(&lab), [6, 6, 3]);
        lab.exit(3);
        assert_eq!(of(&lab), [Some(3), Some(3), None]);
        assert_eq!(told(&lab), [3, 3, 0]);
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
