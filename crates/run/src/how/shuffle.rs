//! The choices for the policy `shuffling`: between which CPUs threads are moved, and when.

use cosched_policy::{GroupBy, ShufflingOptions, Sockets, SortBy};

use super::choice::choices;

choices! {
    /// How threads are shuffled.
    ShuffleChoices {
        /// Groups of CPUs between which threads are moved.
        "groups" groups: Option<Sockets>,
        /// What the CPUs of a group share; not beside `groups`.
        "group-by" group_by: Option<GroupBy>,
        /// The share of their time at locks, from 0 to 1, above which threads are shuffled.
        "threshold" threshold: Option<f64>,
        /// By which share of their time, from 0 to 1, the threads of a group must become more
        /// alike.
        "hysteresis" hysteresis: Option<f64>,
        /// What threads are sorted by.
        "sort-by" sort_by: Option<SortBy>,
    } and {}
}

impl ShuffleChoices {
    /// Takes what is not given here from `all`.
    pub fn over(&self, all: &ShuffleChoices) -> ShuffleChoices {
        let says_groups = self.groups.is_some() || self.group_by.is_some();
        let said = if says_groups { self } else { all };
        let (groups, group_by) = (said.groups.clone(), said.group_by);
        ShuffleChoices { groups, group_by, ..self.each_over(all) }
    }

    /// The options of the policy, with defaults for what was not given.
    pub fn options(&self) -> ShufflingOptions {
        let usual = ShufflingOptions::default();
        let said = self.groups.clone().or(self.group_by.map(Sockets::By));
        ShufflingOptions {
            sockets: said.unwrap_or(usual.sockets),
            threshold: self.threshold.unwrap_or(usual.threshold),
            hysteresis: self.hysteresis.or(usual.hysteresis),
            sort: self.sort_by.unwrap_or(usual.sort),
            interval: usual.interval,
            guard: usual.guard,
            relearn: usual.relearn,
        }
    }
}
