//! Programs that another process, such as a shell or a debugger, stops for a while.
//!
//! A stop makes a program neither fall behind nor get ahead. While a program is stopped, it makes
//! no progress. In the quantum in which it was stopped or went on, only the time counts in which it
//! used or requested a CPU: how long it was stopped in that quantum is not known. A stop is noticed
//! late. Waiting time that was assumed since it last used a CPU is taken back then. When a program
//! goes on, it has its former progress, but no less than the least of the programs that are
//! present. It therefore takes its turns as a newcomer does, and does not catch up with what others
//! did meanwhile.
//!
//! *Source.* Ours, after what the FPS paper says of programs that arrive and end (section 5).

use std::collections::BTreeSet;

use cosched_core::{Program, ProgramId, ProgramState};

/// The programs that are stopped, and those that were.
#[derive(Debug, Default)]
pub(super) struct StoppedPrograms {
    now: BTreeSet<ProgramId>,
    /// Programs that were stopped at any time since the present quantum began.
    meanwhile: BTreeSet<ProgramId>,
}

/// The changes since the last update.
#[derive(Debug, Default, PartialEq)]
pub(super) struct StopChanges {
    pub(super) stopped: Vec<ProgramId>,
    pub(super) continued: Vec<ProgramId>,
}

impl StoppedPrograms {
    /// Checks which of all programs are stopped now.
    pub(super) fn update(&mut self, programs: &[Program]) -> StopChanges {
        let is_stopped = |program: &&Program| program.state == ProgramState::StoppedByOther;
        let now: BTreeSet<ProgramId> =
            programs.iter().filter(is_stopped).map(|program| program.id).collect();
        let stopped = now.difference(&self.now).copied().collect();
        let lives = |id: &&ProgramId| programs.iter().any(|program| program.id == **id);
        let continued = self.now.difference(&now).filter(lives).copied().collect();
        self.meanwhile.extend(&now);
        self.now = now;
        StopChanges { stopped, continued }
    }

    pub(super) fn begin_quantum(&mut self) {
        self.meanwhile.clone_from(&self.now);
    }

    pub(super) fn is_stopped(&self, id: ProgramId) -> bool {
        self.now.contains(&id)
    }

    /// Whether it was stopped at any time in the present quantum.
    pub(super) fn was_stopped(&self, id: ProgramId) -> bool {
        self.meanwhile.contains(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::testkit::program;

    #[test]
    fn a_continued_program_stays_out_until_the_next_quantum() {
        let mut programs = vec![program(0, 1), program(1, 1)];
        let (id, other) = (programs[0].id, programs[1].id);
        let mut stopped = StoppedPrograms::default();
        assert_eq!(stopped.update(&programs), StopChanges::default());
        programs[0].state = ProgramState::StoppedByOther;
        assert_eq!(
            stopped.update(&programs),
            StopChanges { stopped: vec![id], ..StopChanges::default() }
        );
        assert_eq!(stopped.update(&programs), StopChanges::default());
        stopped.begin_quantum();
        assert!(stopped.is_stopped(id) && stopped.was_stopped(id) && !stopped.was_stopped(other));
        programs[0].state = ProgramState::Running;
        assert_eq!(
            stopped.update(&programs),
            StopChanges { continued: vec![id], ..StopChanges::default() }
        );
        assert!(!stopped.is_stopped(id) && stopped.was_stopped(id));
        stopped.begin_quantum();
        assert!(!stopped.was_stopped(id));
    }

    #[test]
    fn a_program_that_ended_while_stopped_does_not_go_on() {
        let mut programs = vec![program(0, 1)];
        programs[0].state = ProgramState::StoppedByOther;
        let mut stopped = StoppedPrograms::default();
        stopped.update(&programs);
        assert_eq!(stopped.update(&[]), StopChanges::default());
    }
}
