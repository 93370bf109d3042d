//! The ids of threads for policies: a slot each, reused with another generation.

use std::collections::BTreeMap;

use cosched_core::{ProgramId, ThreadId};

use crate::observe::monitor::ThreadUse;

#[derive(Debug, Default)]
pub(super) struct ThreadIds {
    slots: BTreeMap<(i32, i32), ThreadId>,
    named: BTreeMap<ThreadId, Named>,
    next: u32,
    free: Vec<ThreadId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) program: ProgramId,
    pub(super) process: i32,
    pub(super) thread: i32,
}

impl ThreadIds {
    /// The id of a program's thread, which the thread keeps until it is forgotten.
    pub(super) fn of(&mut self, program: ProgramId, thread: &ThreadUse) -> ThreadId {
        let ThreadUse { process, thread, .. } = *thread;
        let (next, free) = (&mut self.next, &mut self.free);
        let id = *self.slots.entry((process, thread)).or_insert_with(|| match free.pop() {
            Some(used) => ThreadId { generation: used.generation + 1, ..used },
            None => {
                *next += 1;
                ThreadId { slot: *next - 1, generation: 0 }
            }
        });
        self.named.insert(id, Named { program, process, thread });
        id
    }

    /// Whether a thread has an id.
    pub(super) fn knows(&self, thread: &ThreadUse) -> bool {
        self.slots.contains_key(&(thread.process, thread.thread))
    }

    /// The thread with this id; `None` once it is forgotten.
    pub(super) fn named(&self, id: ThreadId) -> Option<Named> {
        self.named.get(&id).copied()
    }

    /// Frees the id of a thread that has ended, or is not observed any more.
    pub(super) fn forget(&mut self, thread: &ThreadUse) {
        let id = self.slots.remove(&(thread.process, thread.thread));
        id.iter().for_each(|id| _ = self.named.remove(id));
        self.free.extend(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: ProgramId = ProgramId::first(0);

    fn thread(thread: i32) -> ThreadUse {
        ThreadUse::of_nothing(0, thread)
    }

    #[test]
    fn a_slot_is_reused_with_another_generation() {
        let mut names = ThreadIds::default();
        let first = names.of(P, &thread(10));
        assert_eq!(names.of(P, &thread(10)), first);
        assert_ne!(names.of(P, &thread(11)).slot, first.slot);
        names.forget(&thread(10));
        let again = names.of(P, &thread(12));
        assert_eq!((again.slot, again.generation), (first.slot, first.generation + 1));
    }

    #[test]
    fn an_id_leads_to_its_thread_until_that_is_forgotten() {
        let mut names = ThreadIds::default();
        let first = names.of(P, &thread(10));
        assert_eq!(names.named(first), Some(Named { program: P, process: 1, thread: 10 }));
        names.forget(&thread(10));
        let again = names.of(ProgramId::first(1), &thread(12));
        assert_eq!(names.named(first), None);
        assert_eq!(names.named(again).map(|named| named.thread), Some(12));
    }
}
