//! Who may start: everybody at once, or one after another as long as the CPUs are busy.
//!
//! *Problem.* One after another, nobody disturbs anybody, memory is used by one program at a time, and the results come one by
//! one. But programs that leave CPUs idle leave them to nobody.
//!
//! *Idea.* The next program starts when those that run leave CPUs idle, or have ended; several at once where there is room
//! for several like those that run. Whoever asks for no more threads than those that run leave CPUs starts at once. A program
//! that fills the machine so runs alone, and small ones run beside each other. Since waiting for somebody who has not started
//! leaves CPUs idle, nobody waits for him for ever.
//!
//! *Who is next:* the shortest, where times alone are known; then the others in the order of arrival. Programs of a
//! group start together. (Shortest first has the smallest mean turnaround on one machine: Smith's rule, 1956.)

use std::collections::BTreeSet;

use cosched_core::{Nanos, Plan, Program, ProgramId, ProgramState, Why, World};

/// CPUs that nobody uses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Room {
    /// How many.
    pub(super) idle: f64,
    /// For how many more programs that is enough.
    pub(super) programs: usize,
}

/// Who may run, and who waits for that.
#[derive(Debug)]
pub(super) struct Line {
    /// Nobody waits.
    open: bool,
    admitted: BTreeSet<ProgramId>,
    told_to_wait: BTreeSet<ProgramId>,
}

impl Line {
    /// In which nobody waits, if it is `open`.
    pub(super) fn new(open: bool) -> Line {
        Line { open, admitted: BTreeSet::new(), told_to_wait: BTreeSet::new() }
    }

    pub(super) fn has(&self, id: ProgramId) -> bool {
        self.admitted.contains(&id)
    }

    /// Whether nobody is in.
    pub(super) fn is_empty(&self) -> bool {
        self.admitted.is_empty()
    }

    /// Whether somebody waits.
    pub(super) fn waits(&self) -> bool {
        !self.told_to_wait.is_empty()
    }

    /// Lets in whoever may come, and tells the others to wait; returns who is new.
    pub(super) fn update(
        &mut self,
        room: Room,
        world: &World<'_>,
        plan: &mut Plan,
    ) -> Vec<ProgramId> {
        self.admitted.retain(|id| world.program(*id).is_some());
        self.told_to_wait.retain(|id| world.program(*id).is_some());
        let alive = || world.programs.iter().filter(|p| p.state != ProgramState::Exiting);
        let (inside, mut waiting): (Vec<&Program>, Vec<&Program>) =
            alive().partition(|p| self.open || p.state != ProgramState::New || self.has(p.id));
        let mut new: Vec<ProgramId> =
            inside.iter().map(|p| p.id).filter(|id| self.admitted.insert(*id)).collect();
        waiting.sort_by_key(|p| (p.profile.solo.unwrap_or(Nanos::NEVER), p.arrived, p.id));
        let mut groups: BTreeSet<_> = inside.iter().filter_map(|p| p.group).collect();
        let mut places = if inside.is_empty() { room.programs.max(1) } else { room.programs };
        let mut free = world.cpus.len();
        inside.iter().for_each(|p| free = free.saturating_sub(p.asked.into()));
        let mut ahead = 0;
        for program in waiting {
            let belongs = program.group.is_some_and(|group| groups.contains(&group));
            let fits = usize::from(program.asked) <= free;
            if places == 0 && !belongs && !fits {
                if self.told_to_wait.insert(program.id) {
                    plan.freeze(program.id);
                    plan.because(Some(program.id), Why::Queued { ahead });
                }
                ahead += 1;
                continue;
            }
            places = places.saturating_sub(usize::from(!belongs));
            let idle = if fits { free as f64 } else { room.idle };
            free = free.saturating_sub(program.asked.into());
            groups.extend(program.group);
            self.told_to_wait.remove(&program.id);
            self.admitted.insert(program.id);
            new.push(program.id);
            let why = match inside.is_empty() && (belongs || new.len() == 1) {
                true => Why::Turn,
                false => Why::Admitted { idle },
            };
            plan.because(Some(program.id), why);
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use cosched_core::GroupId;

    use super::*;
    use crate::testkit::{Scene, program};

    fn came(line: &mut Line, room: Room, programs: &[Program]) -> Vec<u16> {
        let scene = Scene::new(4, programs.to_vec());
        let new = line.update(room, &scene.world(), &mut Plan::default());
        new.into_iter().map(|id| id.slot).collect()
    }

    #[test]
    fn the_shortest_known_one_starts_first_and_the_next_when_it_has_ended_or_leaves_room() {
        let mut programs = vec![program(0, 4), program(1, 4), program(2, 4), program(3, 4)];
        programs[2].profile.solo = Some(Nanos::from_secs(1));
        let (mut line, none) = (Line::new(false), Room::default());
        assert_eq!(came(&mut line, none, &programs), [2]);
        assert!(line.waits());
        programs[2].state = ProgramState::Running;
        assert_eq!(came(&mut line, none, &programs), [0; 0]);
        let room = Room { idle: 2.0, programs: 2 };
        assert_eq!(came(&mut line, room, &programs), [0, 1]);
        assert_eq!(came(&mut line, none, &programs[3..]), [3]);
        assert!(!line.waits());
    }

    #[test]
    fn whoever_has_cpus_for_all_its_threads_is_not_kept_waiting() {
        let programs = [program(0, 1), program(1, 4), program(2, 2), program(3, 2)];
        let mut line = Line::new(false);
        assert_eq!(came(&mut line, Room::default(), &programs), [0, 2]);
        assert!(line.waits(), "there is one CPU left");
        assert_eq!(came(&mut line, Room::default(), &programs[2..]), [3], "the first has ended");
    }

    #[test]
    fn programs_of_a_group_start_together_and_in_an_open_line_everybody_does() {
        let mut programs = vec![program(0, 4), program(1, 4), program(2, 4)];
        for grouped in [0, 2] {
            programs[grouped].group = Some(GroupId(1));
        }
        let none = Room::default();
        assert_eq!(came(&mut Line::new(false), none, &programs), [0, 2]);
        assert_eq!(came(&mut Line::new(true), none, &programs), [0, 1, 2]);
    }
}
