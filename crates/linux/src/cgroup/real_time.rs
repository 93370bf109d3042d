//! Time for real-time threads in a CPU group of version 1.
//!
//! Where the kernel has `CONFIG_RT_GROUP_SCHED`, each group has a budget for its threads of the
//! classes FIFO and RR. A new group has none: no thread in it may choose such a class, and none
//! with such a class may join. The run's group therefore gets half of the budget above it, and each
//! program an eighth of the run's, or less where that is taken. A program may get less than it
//! would alone (usually 95 % of each CPU). A program with real-time threads that need more leaves
//! nothing to others anyway.

use super::dir::Dir;

/// Microseconds in each period, which is a second.
const BUDGET: &str = "cpu.rt_runtime_us";
/// Less than this is useless.
const LEAST: i64 = 1000;

/// Gives a group a part of the budget of the one above it, or the most that is left. Nothing
/// happens where groups have no budgets.
pub fn grant_real_time(dir: &Dir, above: &Dir, part: i64) {
    let Ok(all) = above.read(BUDGET) else { return };
    let mut budget = all.trim().parse().unwrap_or(0) / part;
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
        grant_real_time(&dir, &above, 2);
        assert!(!dir.has(BUDGET));
        fs::write(root.path().join(BUDGET), "950000\n").unwrap();
        fs::write(root.path().join("p").join(BUDGET), "0\n").unwrap();
        grant_real_time(&dir, &above, 2);
        assert_eq!(dir.read(BUDGET).unwrap(), "475000");
    }
}
