//! The names of threads for policies: a slot each, used again with another generation.

use std::collections::BTreeMap;

use cosched_core::ThreadId;

use crate::monitor::ThreadUse;

/// The names that were given.
#[derive(Debug, Default)]
pub(super) struct Names {
    slots: BTreeMap<(i32, i32), ThreadId>,
    next: u32,
    free: Vec<ThreadId>,
}

impl Names {
    /// The name of a thread, which it keeps until it is forgotten.
    pub(super) fn of(&mut self, thread: &ThreadUse) -> ThreadId {
        let (next, free) = (&mut self.next, &mut self.free);
        *self.slots.entry((thread.process, thread.thread)).or_insert_with(|| match free.pop() {
            Some(used) => ThreadId { generation: used.generation + 1, ..used },
            None => {
                *next += 1;
                ThreadId { slot: *next - 1, generation: 0 }
            }
        })
    }

    /// It has ended, or is none of ours any more.
    pub(super) fn forget(&mut self, thread: &ThreadUse) {
        self.free.extend(self.slots.remove(&(thread.process, thread.thread)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_used_again_with_another_generation() {
        let thread = |thread: i32| ThreadUse::of_nothing(0, thread);
        let mut names = Names::default();
        let first = names.of(&thread(10));
        assert_eq!(names.of(&thread(10)), first);
        assert_ne!(names.of(&thread(11)).slot, first.slot);
        names.forget(&thread(10));
        let again = names.of(&thread(12));
        assert_eq!((again.slot, again.generation), (first.slot, first.generation + 1));
    }
}
