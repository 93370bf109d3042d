//! `fcfs`: first come, first served; one program until it ends, on all CPUs.
//!
//! *Problem and idea.* This is what a shell loop does: programs never disturb each other, and
//! nothing has to be frozen. For programs that use all CPUs well there is nothing better. Short
//! programs behind long ones wait long, and CPUs that a program leaves idle stay idle.
//!
//! *Algorithm.* Programs start in order of arrival (those of one instant in the order of the
//! workload). When the command of one has ended, the next starts. Its descendants in the background
//! do not hold the queue, as in a shell. A program that another process stops does hold the queue.
//! Programs of one group start together, or they would wait for each other for ever.
//!
//! A program that runs already when it arrives (it was attached) runs on: this policy freezes no
//! program. It is the second baseline, and not from the thesis.

use std::collections::BTreeSet;

use cosched_core::{Cause, Plan, Policy, Program, ProgramId, ProgramState, Settings, World};

use crate::common::reasons::SharedReason;
use crate::descriptor::Descriptor;

/// One after another.
pub(crate) const FCFS: Descriptor = Descriptor {
    in_order: true,
    ..Descriptor::without_gangs("fcfs", "one program after another, each on all CPUs", |_| {
        Ok(Box::new(Fcfs::default()))
    })
};

#[derive(Debug, Default)]
pub(crate) struct Fcfs {
    /// The programs that were told to run: the world shows a start a moment later.
    start_sent: BTreeSet<ProgramId>,
    wait_sent: BTreeSet<ProgramId>,
}

impl Policy for Fcfs {
    fn decide(&mut self, _causes: &[Cause], world: &World<'_>, plan: &mut Plan) {
        self.start_sent.retain(|id| world.program(*id).is_some());
        self.wait_sent.retain(|id| world.program(*id).is_some());

        let has_started =
            |p: &&Program| p.state != ProgramState::New || self.start_sent.contains(&p.id);
        let (started, mut new): (Vec<&Program>, Vec<&Program>) =
            world.programs.iter().partition(has_started);
        new.sort_by_key(|p| (p.arrived, p.id));
        let next = if started.is_empty() { new.first().copied() } else { None };

        let groups: Vec<_> = started.iter().copied().chain(next).filter_map(|p| p.group).collect();
        let (start, wait): (Vec<&Program>, Vec<&Program>) = new.into_iter().partition(|p| {
            next.is_some_and(|next| next.id == p.id) || p.group.is_some_and(|g| groups.contains(&g))
        });
        for program in start {
            self.start_sent.insert(program.id);
            plan.run(program.id, Settings::default());
            plan.because(Some(program.id), SharedReason::Turn);
        }
        for (ahead, program) in wait.into_iter().enumerate() {
            if self.wait_sent.insert(program.id) {
                plan.freeze(program.id);
                plan.because(Some(program.id), SharedReason::Queued { ahead: ahead as u16 });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::testkit::{Lab, program};
    use cosched_core::{Directive, GroupId, Nanos};

    fn lab(programs: Vec<Program>) -> Lab<Fcfs> {
        Lab::new(Fcfs::default(), 2, programs)
    }

    #[test]
    fn programs_run_one_after_another_in_order_of_arrival() {
        let mut lab = lab(vec![program(2, 2), program(3, 1)]);
        lab.pass(Nanos::from_millis(1));
        lab.arrive(program(0, 8));
        assert_eq!(lab.running(), [2]);
        lab.exit(2);
        assert_eq!(lab.running(), [3]);
        lab.exit(3);
        assert_eq!(lab.running(), [0]);
        assert_eq!(
            lab.plan.directive(ProgramId::first(0)),
            Some(&Directive::Run(Settings::default()))
        );
        assert_eq!(lab.next_wake(), None, "nothing is timed");
    }

    #[test]
    fn a_stopped_program_holds_the_queue() {
        let mut lab = lab(vec![program(0, 1), program(1, 1)]);
        assert_eq!(lab.running(), [0]);
        lab.set_state(0, ProgramState::StoppedByOther);
        assert!(lab.running().is_empty());
        lab.exit(0);
        assert_eq!(lab.running(), [1]);
    }

    /// Programs of a group start together, even when one of them arrives later.
    #[test]
    fn programs_of_one_group_start_together() {
        let grouped = |slot| Program { group: Some(GroupId(1)), ..program(slot, 1) };
        let mut lab = lab(vec![grouped(0), program(1, 1), grouped(2)]);
        assert_eq!(lab.running(), [0, 2]);
        lab.arrive(grouped(3));
        assert_eq!(lab.running(), [0, 2, 3]);
    }

    #[test]
    fn a_program_that_runs_already_is_never_frozen() {
        let attached =
            Program { state: ProgramState::Running, waiting_since: None, ..program(0, 1) };
        let mut lab = lab(vec![attached, program(1, 1)]);
        assert_eq!(lab.running(), [0]);
        assert_eq!(lab.plan.directive(ProgramId::first(0)), None);
        lab.exit(0);
        assert_eq!(lab.running(), [1]);
    }
}
