//! Exceptions for single threads: kept, compared, and sent to the machine when they change.

use crate::id::{ProgramId, ThreadId};
use crate::machine::Step;
use crate::plan::{Plan, ThreadRule};
use crate::policy::World;

/// The rules in force, sorted by thread.
#[derive(Debug, Default)]
pub(super) struct Rules(Vec<(ThreadId, ThreadRule)>);

impl Rules {
    /// The threads were read again. A thread that is gone takes its rule along.
    pub(super) fn forget_the_gone(&mut self, world: &World<'_>) {
        self.0.retain(|(id, _)| world.thread(*id).is_some());
    }

    /// Adopts a plan's rules, adds a step for each that is new, and returns their programs. An
    /// `Apply` of these programs follows, and confirms the rules as well.
    pub(super) fn adopt(
        &mut self,
        plan: &Plan,
        world: &World<'_>,
        steps: &mut Vec<Step>,
    ) -> Vec<ProgramId> {
        let (mut programs, mut new) = (Vec::new(), Vec::new());
        for (id, rule) in &plan.threads {
            let Some(thread) = world.thread(*id) else { continue };
            match self.0.binary_search_by_key(id, |(id, _)| *id) {
                Ok(i) if self.0[i].1 == *rule => continue,
                Ok(i) => self.0[i].1 = *rule,
                Err(_) if *rule == ThreadRule::default() => continue,
                Err(_) => new.push((*id, *rule)),
            }
            steps.push(Step::ApplyThread(*id, *rule));
            programs.push(thread.program);
        }
        if !new.is_empty() {
            self.0.append(&mut new);
            self.0.sort_by_key(|(id, _)| *id);
        }
        programs.sort_unstable();
        programs.dedup();
        programs
    }
}
