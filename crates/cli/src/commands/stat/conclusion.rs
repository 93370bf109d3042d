//! What the figures mean: the columns, before the first line, and what stood in a program's way,
//! after the last one.

use cosched_linux::observe::monitor::Activity;
use cosched_linux::observe::monitor::interval::Slice;

/// What the columns mean.
pub(super) const LEGEND: &str = "\
CPUs: CPUs in use, on average. Columns with % up to barr% are shares of the threads' time:
delay% ready to run, without a CPU; lock% waiting for another thread, at a mutex, a condition or a
barrier. vol/s, invol/s: a thread left its CPU to wait, or lost it; of those lost, expir% after a
full slice, stab% before that to a thread of the same program. migr/s: arrivals at another CPU.
xfer/s: locks handed to a sleeping thread; across%: to another group of CPUs.";

/// From this share of the time on, something is in the way.
const MUCH: f64 = 0.1;

/// The time of one program's threads over all intervals, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Spent {
    running: f64,
    without_cpu: f64,
    at_mutexes: f64,
    at_conditions: f64,
    at_barriers: f64,
}

/// Adds an interval to what each program has spent.
pub(super) fn add(spent: &mut Vec<Spent>, slices: &[Slice]) {
    // An idle thread sleeps at one place, and lacks nothing.
    for slice in slices.iter().filter(|slice| !slice.is_idle) {
        let program = slice.thread.program as usize;
        if spent.len() <= program {
            spent.resize(program + 1, Spent::default());
        }
        let sum = &mut spent[program];
        let time = |activity| slice.thread.in_activity(activity).as_secs_f64();
        sum.running += time(Activity::Running);
        sum.without_cpu += time(Activity::Runnable);
        sum.at_mutexes += time(Activity::AtMutex);
        sum.at_conditions += time(Activity::AtCondition);
        sum.at_barriers += time(Activity::AtBarrier);
    }
}

impl Spent {
    /// One sentence about a program that was watched for so many seconds, and what to try next.
    pub(super) fn conclusion(&self, name: &str, seconds: f64) -> String {
        let locks = self.at_mutexes + self.at_conditions + self.at_barriers;
        let all = self.running + self.without_cpu + locks;
        let share = |part: f64| if all > 0.0 { part / all } else { 0.0 };
        let percent = |part: f64| format!("{:.0} %", 100.0 * share(part));
        let used = format!("{name} used {:.2} CPUs", self.running / seconds.max(f64::EPSILON));
        let (delayed, locked) = (share(self.without_cpu), share(locks));
        if all <= 0.0 {
            return format!("{name} slept.");
        }
        if delayed.max(locked) < MUCH {
            return format!("{used}. Nothing stood in its way.");
        }
        if delayed >= locked {
            return format!(
                "{used}. Its threads lacked a CPU for {} of the time in which they did not sleep: more \
                 threads are ready than there are CPUs. Next: fewer threads, or `cosched run` if several \
                 programs share the machine.",
                percent(self.without_cpu)
            );
        }
        format!(
            "{used}. Its threads waited for one another for {} of the time in which they did not sleep: at \
             mutexes {}, at conditions {}, at barriers {}. Next: {}.",
            percent(locks),
            percent(self.at_mutexes),
            percent(self.at_conditions),
            percent(self.at_barriers),
            match self.at_barriers > self.at_mutexes + self.at_conditions {
                true => "balance the work between its threads, or give it fewer",
                false =>
                    "measure it under `cosched exec --policy faithful` and `--policy shuffling`",
            }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_loss_is_named_with_its_share() {
        let free = Spent { running: 9.5, without_cpu: 0.5, ..Spent::default() };
        assert_eq!(free.conclusion("a", 5.0), "a used 1.90 CPUs. Nothing stood in its way.");
        let crowded = Spent { running: 5.0, without_cpu: 4.0, at_mutexes: 1.0, ..Spent::default() };
        let said = crowded.conclusion("a", 5.0);
        assert!(said.contains("lacked a CPU for 40 %") && said.contains("fewer threads"), "{said}");
        let locked = Spent { running: 5.0, at_mutexes: 4.0, at_barriers: 1.0, ..Spent::default() };
        let said = locked.conclusion("a", 5.0);
        assert!(said.contains("for 50 %") && said.contains("at mutexes 40 %"), "{said}");
        assert!(said.contains("--policy faithful"), "{said}");
        let uneven = Spent { running: 5.0, at_barriers: 5.0, ..Spent::default() };
        assert!(uneven.conclusion("a", 5.0).contains("balance the work"));
        assert_eq!(Spent::default().conclusion("a", 5.0), "a slept.");
    }
}
