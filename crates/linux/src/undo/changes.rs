//! Finding back from what cosched set to what it had found.
//!
//! One rule serves for masks and for scheduling alike. A thread with a record of its own gets back
//! what was found there. But threads are born with the settings of their parent, so there are
//! threads with our settings and no record: those get back what was found wherever the program was
//! given the setting that they have. A thread whose present setting is none of ours was changed by somebody
//! else, or not yet by us, and is left alone.
//!
//! cosched may have died between two changes, with half of the threads still under an earlier
//! one. So every setting that was ever announced counts as ours, and what was found first is what is restored.

use std::collections::HashMap;

use crate::tree::Process;

/// The announced changes of one setting of one program.
#[derive(Debug)]
pub(super) struct Changes<T> {
    by_thread: HashMap<Process, Vec<Change<T>>>,
    all: Vec<Change<T>>,
}

#[derive(Clone, Copy, Debug)]
struct Change<T> {
    found: T,
    set: T,
}

impl<T> Default for Changes<T> {
    fn default() -> Changes<T> {
        Changes { by_thread: HashMap::new(), all: Vec::new() }
    }
}

impl<T: Copy + PartialEq> Changes<T> {
    /// Takes in that threads with `found`, this one if one is named, were to be given `set`.
    pub(super) fn add(&mut self, thread: Option<Process>, found: T, set: T) {
        let change = Change { found, set };
        self.all.push(change);
        if let Some(thread) = thread {
            self.by_thread.entry(thread).or_default().push(change);
        }
    }

    /// The threads that changes were announced for by name.
    pub(super) fn threads(&self) -> impl Iterator<Item = Process> {
        self.by_thread.keys().copied()
    }

    /// Whether nothing was ever announced.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// What a thread that now has `present` is to be given; `None` if it is to be left alone.
    pub(super) fn original(&self, thread: Process, present: T) -> Option<T> {
        let own = self.by_thread.get(&thread);
        let ours = own.unwrap_or(&self.all).iter().find(|change| change.set == present)?;
        // Of a thread's own changes the first tells what was there before them all.
        let source = own.and_then(|own| own.first()).unwrap_or(ours);
        (source.found != present).then_some(source.found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Process = Process { pid: 1, start_time: 1 };
    const CHILD_OF_A: Process = Process { pid: 2, start_time: 2 };

    #[test]
    fn a_thread_gets_back_what_was_found_before_the_first_of_its_changes() {
        let mut changes = Changes::default();
        changes.add(Some(A), 0, 5);
        changes.add(Some(A), 5, 9);
        assert_eq!(changes.original(A, 9), Some(0));
        assert_eq!(changes.original(A, 5), Some(0));
    }

    #[test]
    fn a_thread_without_a_record_gets_back_what_its_parent_had() {
        let mut changes = Changes::default();
        changes.add(Some(A), 0, 5);
        assert_eq!(changes.original(CHILD_OF_A, 5), Some(0));
    }

    #[test]
    fn what_is_not_as_cosched_set_it_is_left_alone() {
        let mut changes = Changes::default();
        changes.add(Some(A), 0, 5);
        changes.add(None, 0, 6);
        assert_eq!(changes.original(A, 7), None);
        assert_eq!(changes.original(CHILD_OF_A, 7), None);
        assert_eq!(changes.original(A, 0), None);
    }
}
