//! The choices for the policy `shuffling`: between which CPUs threads are moved, and when.

use cosched_policy::{GroupBy, ShufflingOptions, Sockets, SortBy};

/// How threads are shuffled.
#[derive(Clone, Debug, Default)]
pub struct ShuffleChoices {
    /// Groups of CPUs between which threads are moved.
    pub groups: Option<Sockets>,
    /// What the CPUs of a group share; not beside `groups`.
    pub group_by: Option<GroupBy>,
    /// The share of their time at locks, from 0 to 1, above which threads are shuffled.
    pub threshold: Option<f64>,
    /// By which share of their time, from 0 to 1, the threads of a group must become more alike.
    pub hysteresis: Option<f64>,
    /// What threads are sorted by.
    pub sort_by: Option<SortBy>,
}

impl ShuffleChoices {
    /// The first option that was given, without its dashes.
    pub fn given(&self) -> Option<&'static str> {
        let all = [
            ("groups", self.groups.is_some()),
            ("group-by", self.group_by.is_some()),
            ("threshold", self.threshold.is_some()),
            ("hysteresis", self.hysteresis.is_some()),
            ("sort-by", self.sort_by.is_some()),
        ];
        all.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }

    /// Takes what is not given here from `all`.
    pub fn or(self, all: &ShuffleChoices) -> ShuffleChoices {
        let says_groups = self.groups.is_some() || self.group_by.is_some();
        let (groups, group_by) = match says_groups {
            true => (self.groups, self.group_by),
            false => (all.groups.clone(), all.group_by),
        };
        ShuffleChoices {
            groups,
            group_by,
            threshold: self.threshold.or(all.threshold),
            hysteresis: self.hysteresis.or(all.hysteresis),
            sort_by: self.sort_by.or(all.sort_by),
        }
    }

    /// The options of the policy, with defaults for what was not given.
    pub fn options(&self) -> ShufflingOptions {
        let usual = ShufflingOptions::default();
        let said = self.groups.clone().or(self.group_by.map(Sockets::By));
        ShufflingOptions {
            sockets: said.unwrap_or(usual.sockets),
            threshold: self.threshold.unwrap_or(usual.threshold),
            hysteresis: self.hysteresis.unwrap_or(usual.hysteresis),
            sort: self.sort_by.unwrap_or(usual.sort),
            interval: usual.interval,
            guard: usual.guard,
            relearn: usual.relearn,
        }
    }
}
