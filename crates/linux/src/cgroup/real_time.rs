//! Time for real-time threads in a CPU group of version 1.
//!
//! Where the kernel has `CONFIG_RT_GROUP_SCHED`, each group has a budget for its threads of the
//! classes FIFO and RR. A new group has none: no thread in it may choose such a class, and none
//! with such a class may join. The run's group therefore gets half of what other groups have left
//! of the budget above it, so that a further run finds some, too. Its programs get equal parts, an
//! eighth at most. A program may get less than it would alone (usually 95 % of each CPU). A program
//! with real-time threads that need more leaves nothing to others anyway.

use super::dir::Dir;

/// Microseconds in each period, which is a second.
const BUDGET: &str = "cpu.rt_runtime_us";
/// Less than this is useless.
const LEAST: i64 = 1000;

/// The budget of a group, microseconds; `None`: groups have no budgets.
pub(crate) fn real_time_budget(dir: &Dir) -> Option<i64> {
    dir.read(BUDGET).ok()?.trim().parse().ok()
}

/// Gives the group of a run half of what other groups have left of the budget above.
pub(crate) fn share_real_time(above: &Dir, dir: &Dir) {
    grant_real_time(dir, real_time_left(above).map(|left| left / 2));
    leave_as_much(above, dir);
}

/// Runs that begin at the same moment can all take half of the same. Each gives back until as much
/// is left as it has.
fn leave_as_much(above: &Dir, dir: &Dir) {
    while let Some((left, own)) = real_time_left(above).zip(real_time_budget(dir)) {
        let half = own / 2;
        if left >= own || half < LEAST || dir.write(BUDGET, &half.to_string()).is_err() {
            return;
        }
    }
}

/// What the groups below have left of a group's budget; `None`: groups have no budgets.
fn real_time_left(dir: &Dir) -> Option<i64> {
    let all = real_time_budget(dir)?;
    let below = dir.children().unwrap_or_default();
    Some(all - below.iter().filter_map(real_time_budget).sum::<i64>())
}

/// Gives a group a budget, or the most that is left; a very small one is made larger. Nothing
/// happens where groups have no budgets.
pub(crate) fn grant_real_time(dir: &Dir, budget: Option<i64>) {
    let Some(mut budget) = budget.map(|budget| budget.max(LEAST)) else { return };
    while budget >= LEAST && dir.write(BUDGET, &budget.to_string()).is_err() {
        budget /= 2;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::cgroup::Version;

    #[test]
    fn a_group_gets_real_time_budget_where_budgets_exist() {
        let root = tempfile::tempdir().unwrap();
        let above = Dir::new(root.path(), Version::V1);
        let dir = above.create_child("p").unwrap();
        grant_real_time(&dir, real_time_left(&above));
        assert!(!dir.has(BUDGET));
        fs::write(root.path().join(BUDGET), "950000\n").unwrap();
        fs::write(root.path().join("p").join(BUDGET), "0\n").unwrap();
        assert_eq!(real_time_left(&above), Some(950_000));
        grant_real_time(&dir, Some(475_000));
        assert_eq!(real_time_budget(&dir), Some(475_000));
        assert_eq!(real_time_left(&above), Some(475_000), "for a further run");
        fs::write(root.path().join("p").join(BUDGET), "0\n").unwrap();
        share_real_time(&above, &dir);
        assert_eq!(real_time_budget(&dir), Some(475_000), "as much is left");
        above.create_child("q").unwrap();
        fs::write(root.path().join("q").join(BUDGET), "475000\n").unwrap();
        leave_as_much(&above, &dir);
        assert_eq!(real_time_budget(&dir), Some(237_500), "both took it at the same moment");
        fs::write(root.path().join("p").join(BUDGET), "0\n").unwrap();
        grant_real_time(&dir, Some(10));
        assert_eq!(real_time_budget(&dir), Some(LEAST), "one of very many programs");
    }
}
