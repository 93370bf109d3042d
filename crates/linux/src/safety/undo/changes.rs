//! From the settings that cosched made to the original settings.
//!
//! One rule serves for masks and for scheduling. A thread with a record of its own gets back the
//! settings in that record. But threads are born with the settings of their parent, so there are
//! threads with cosched's settings and no record. Those get the settings that the program had
//! wherever it was given the setting that they have. A thread with a present setting that is none
//! of cosched's is left alone: other software changed it, or cosched has not changed it yet.
//!
//! cosched may have died between two changes, with half of the threads still under an earlier one.
//! Every setting that was ever announced therefore counts as cosched's, and the first original
//! settings are restored.
//!
//! Scheduling is three settings at once, and programs renice threads of their own. Class, nice
//! value and slice are therefore restored one by one, each from the latest change that left it as
//! it is now.

use std::collections::HashMap;

use crate::kernel::sched_attr::SchedAttr;
use crate::process::tree::Process;

/// The announced changes of one setting of one program.
#[derive(Debug)]
pub(super) struct Changes<T> {
    by_thread: HashMap<Process, Vec<ChangedSetting<T>>>,
    all: Vec<ChangedSetting<T>>,
}

#[derive(Clone, Copy, Debug)]
struct ChangedSetting<T> {
    found: T,
    set: T,
}

impl<T> Default for Changes<T> {
    fn default() -> Changes<T> {
        Changes { by_thread: HashMap::new(), all: Vec::new() }
    }
}

impl<T: Copy + PartialEq> Changes<T> {
    /// Notes that threads with the settings `found` (or this thread, if one is named) were to get
    /// `set`.
    pub(super) fn add(&mut self, thread: Option<Process>, found: T, set: T) {
        let change = ChangedSetting { found, set };
        self.all.push(change);
        if let Some(thread) = thread {
            self.by_thread.entry(thread).or_default().push(change);
        }
    }

    /// The threads with changes that were announced by name.
    pub(super) fn threads(&self) -> impl Iterator<Item = Process> {
        self.by_thread.keys().copied()
    }

    pub(super) fn sets(&self) -> impl Iterator<Item = T> {
        self.all.iter().map(|change| change.set)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The settings for a thread that now has `present`; `None` if it is to be left alone.
    pub(super) fn original(&self, thread: Process, present: T) -> Option<T> {
        let own = self.by_thread.get(&thread);
        // A setting of other software that cosched has left as it was.
        let kept = |change: &ChangedSetting<T>| change.set == present && change.found == present;
        if own.is_some_and(|own| own.iter().any(kept)) {
            return None;
        }
        let ours = own.unwrap_or(&self.all).iter().find(|change| change.set == present)?;
        // Of a thread's own changes, the first one has the original settings.
        let source = own.and_then(|own| own.first()).unwrap_or(ours);
        (source.found != present).then_some(source.found)
    }
}

impl Changes<SchedAttr> {
    /// As [`Changes::original`], with class, nice value and slice treated one by one. If other
    /// software has changed one of them since, the others are restored nevertheless.
    pub(super) fn original_scheduling(
        &self,
        thread: Process,
        present: SchedAttr,
    ) -> Option<SchedAttr> {
        let own = self.by_thread.get(&thread);
        // A thread without a record has inherited all settings together, unless it has changed some
        // itself.
        let whole = self.all.iter().find(|change| own.is_none() && change.set == present);
        let changes = own.unwrap_or(&self.all).iter().map(|change| (change.found, change.set));
        let found = whole.map_or_else(|| present.original(changes), |change| change.found);
        (found != present).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use cosched_core::Nanos;

    use super::*;
    use crate::kernel::sched_attr::SchedPolicy;

    const A: Process = Process { pid: 1, start_time: 1 };
    const CHILD_OF_A: Process = Process { pid: 2, start_time: 2 };

    #[test]
    fn a_thread_gets_back_its_settings_before_the_first_change() {
        let mut changes = Changes::default();
        changes.add(Some(A), 0, 5);
        changes.add(Some(A), 5, 9);
        assert_eq!(changes.original(A, 9), Some(0));
        assert_eq!(changes.original(A, 5), Some(0));
    }

    #[test]
    fn a_thread_without_a_record_gets_its_parents_settings() {
        let mut changes = Changes::default();
        changes.add(Some(A), 0, 5);
        assert_eq!(changes.original(CHILD_OF_A, 5), Some(0));
    }

    #[test]
    fn settings_changed_by_others_are_left_alone() {
        let mut changes = Changes::default();
        changes.add(Some(A), 0, 5);
        changes.add(None, 0, 6);
        assert_eq!(changes.original(A, 7), None);
        assert_eq!(changes.original(CHILD_OF_A, 7), None);
        assert_eq!(changes.original(A, 0), None);
    }

    fn attr(policy: SchedPolicy, nice: i32, slice: u64) -> SchedAttr {
        let (flags, priority) = (0, u32::from(!policy.has_slices()));
        let (runtime, deadline, period) = (Nanos(slice), Nanos::ZERO, Nanos::ZERO);
        SchedAttr { policy, flags, nice, priority, runtime, deadline, period }
    }

    /// It gets its class and slice back, and keeps the nice value that it has set itself.
    #[test]
    fn a_thread_with_a_new_nice_value_keeps_it_and_is_restored() {
        let found = attr(SchedPolicy::Other, 0, 0);
        let set = attr(SchedPolicy::Batch, 0, 20);
        let mut changes = Changes::default();
        changes.add(Some(A), found, set);
        changes.add(Some(A), found, found);
        for thread in [A, CHILD_OF_A] {
            let back = |present| changes.original_scheduling(thread, present);
            assert_eq!(back(SchedAttr { nice: 7, ..set }), Some(SchedAttr { nice: 7, ..found }));
            assert_eq!(
                back(SchedAttr { runtime: Nanos(5), ..set }),
                Some(SchedAttr { runtime: Nanos(5), ..found })
            );
            assert_eq!(back(SchedAttr { policy: SchedPolicy::Idle, ..found }), None);
            assert_eq!(back(found), None);
        }
    }

    #[test]
    fn a_nice_value_changed_between_two_changes_stays() {
        let [found, later] = [0, 5].map(|nice| attr(SchedPolicy::Other, nice, 0));
        let mut changes = Changes::default();
        for found in [found, later] {
            changes.add(Some(A), found, SchedAttr { policy: SchedPolicy::Batch, ..found });
        }
        let present = SchedAttr { policy: SchedPolicy::Batch, ..later };
        assert_eq!(changes.original_scheduling(A, present), Some(later));
    }

    #[test]
    fn values_hidden_by_a_real_time_class_are_restored_with_it() {
        let found = attr(SchedPolicy::Other, 5, 7);
        let set = SchedAttr { policy: SchedPolicy::RoundRobin, priority: 1, ..found }.shown();
        assert_eq!((set.nice, set.runtime), (0, Nanos::ZERO));
        let mut changes = Changes::default();
        changes.add(Some(A), found, set);
        assert_eq!(changes.original_scheduling(A, set), Some(found));
        let own = SchedAttr { priority: 50, ..set };
        assert_eq!(changes.original_scheduling(A, own), None, "set by other software");
    }
}
