//! Exceptions for single threads: kept, compared, and told to the machine when they change.

use crate::machine::Step;
use crate::plan::{Plan, ThreadRule};
use crate::program::{ProgramId, Thread, ThreadId};

/// The rules in force, sorted by thread.
#[derive(Debug, Default)]
pub(super) struct Rules(Vec<(ThreadId, ThreadRule)>);

impl Rules {
    /// Takes over a plan's rules, adds a step for each that is new, and returns the programs that they concern:
    /// an `Apply` of those follows, and confirms the rules as well.
    pub(super) fn adopt(
        &mut self,
        plan: &Plan,
        threads: &[Thread],
        steps: &mut Vec<Step>,
    ) -> Vec<ProgramId> {
        // A thread that is gone takes its rule along.
        self.0.retain(|(id, _)| threads.iter().any(|thread| thread.id == *id));
        let mut programs = Vec::new();
        for (id, rule) in &plan.threads {
            let Some(thread) = threads.iter().find(|thread| thread.id == *id) else { continue };
            match self.0.binary_search_by_key(id, |(id, _)| *id) {
                Ok(i) if self.0[i].1 == *rule => continue,
                Ok(i) => self.0[i].1 = *rule,
                Err(_) if *rule == ThreadRule::default() => continue,
                Err(i) => self.0.insert(i, (*id, *rule)),
            }
            steps.push(Step::ApplyThread(*id, *rule));
            programs.push(thread.program);
        }
        programs.sort_unstable();
        programs.dedup();
        programs
    }
}
