//! What the figures mean: the columns, before the first line, and what stood in a program's way,
//! after the last one.

use cosched_core::format::count;
use cosched_linux::observe::monitor::ThreadActivity;
use cosched_linux::observe::monitor::interval::Slice;
use cosched_report::disturbance;
use cosched_workload::shown;

/// What the columns mean.
pub const LEGEND: &str = "\
CPUs: CPUs in use, on average; queue: threads without one that are ready to run, on average.
Columns with % up to barr% are shares of the threads' time: delay% ready to run, without a CPU;
lock% waiting for another thread, at a mutex, a condition or a barrier. vol/s: a thread left its CPU
to wait; invol/s: it lost its CPU. Shares of invol/s: expir% because its time slice was over, sibl%
earlier and to a thread of the same program. migr/s: arrivals at another CPU. xfer/s: locks handed
to a sleeping thread; across%: to another group of CPUs. No column counts changes of priority: the
kernel itself makes none in its fair class.";

/// From this share of the threads' time on, something is in the way.
const MUCH: f64 = 0.1;
/// A program that uses fewer CPUs than this does next to nothing, and its shares say little.
const LITTLE: f64 = 0.01;
/// A program that ends sooner, in seconds, has mostly been started and ended.
pub(super) const SHORT: f64 = 0.01;

/// The time of one program's threads over all intervals, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ThreadTimes {
    running: f64,
    without_cpu: f64,
    sleeping: f64,
    at_mutexes: f64,
    at_conditions: f64,
    at_barriers: f64,
    /// Whether the caller may not see at what its threads wait.
    hidden: bool,
}

/// Where the programs were watched.
#[derive(Clone, Copy, Debug)]
pub struct WatchedMachine {
    /// How long they were watched.
    pub seconds: f64,
    /// How many CPUs they may use.
    pub cpus: usize,
    /// Whether the machine has several groups of CPUs between which threads could be moved.
    pub has_groups: bool,
    /// CPU time of all processes on these CPUs, in seconds; `None`: the kernel does not tell.
    pub busy: Option<f64>,
    /// CPU time of the program, in seconds, where it was started here and has ended.
    pub used: Option<f64>,
    /// The process of the cosched that schedules the program, if one does.
    pub cosched: Option<i32>,
}

/// Adds an interval to what each program has spent.
pub fn add(spent: &mut Vec<ThreadTimes>, slices: &[Slice]) {
    // An idle thread sleeps at one place, and lacks nothing.
    for slice in slices.iter().filter(|slice| !slice.is_idle) {
        let program = slice.thread.program as usize;
        if spent.len() <= program {
            spent.resize(program + 1, ThreadTimes::default());
        }
        let sum = &mut spent[program];
        let time = |activity| slice.thread.in_activity(activity).as_secs_f64();
        sum.running += time(ThreadActivity::Running);
        sum.without_cpu += time(ThreadActivity::Runnable);
        sum.sleeping += time(ThreadActivity::Sleeping);
        sum.at_mutexes += time(ThreadActivity::AtMutex);
        sum.at_conditions += time(ThreadActivity::AtCondition);
        sum.at_barriers += time(ThreadActivity::AtBarrier);
        sum.hidden |= slice.thread.hidden;
    }
}

impl ThreadTimes {
    /// What stood in the way of a program, and what to try next. Shares are of the same time as in
    /// the table.
    pub fn conclusion(&self, name: &str, place: &WatchedMachine) -> String {
        let name = shown(name);
        if place.seconds < SHORT {
            return format!(
                "{name} was watched for {:.1} ms, too short to judge.",
                place.seconds * 1e3
            );
        }
        let locks = self.at_mutexes + self.at_conditions + self.at_barriers;
        let all = self.running + self.without_cpu + self.sleeping + locks;
        let share = |part: f64| if all > 0.0 { part / all } else { 0.0 };
        let percent = |part: f64| format!("{:.0} %", 100.0 * share(part));
        // Samples miss threads that end soon.
        let really = place.used.unwrap_or_default();
        let cpus = self.running.max(really) / place.seconds.max(f64::EPSILON);
        let used = format!("{name} used {cpus:.2} CPUs");
        let (delayed, locked) = (share(self.without_cpu), share(locks));
        if really > (2.0 * self.running).max(LITTLE * place.seconds) {
            return format!(
                "{used}, most of them in threads that ended before their first sample: too short \
                 to judge."
            );
        }
        if all <= 0.0 {
            return format!("{name} slept.");
        }
        if self.hidden && delayed.max(locked) < MUCH {
            return format!(
                "{used}, and did not lack any. Whether its threads waited for one another is not \
                 known: that is for its own user, and root, to see."
            );
        }
        if cpus < LITTLE && delayed < MUCH {
            return format!("{used}: it slept nearly all the time.");
        }
        if delayed.max(locked) < MUCH {
            return format!("{used}. Nothing stood in its way.");
        }
        if delayed >= locked {
            return format!(
                "{used}. Its threads lacked a CPU for {} of their time: {}.",
                percent(self.without_cpu),
                self.why_without_cpu(place)
            );
        }
        format!(
            "{used}. Its threads waited for one another for {} of their time: at mutexes {}, at \
             conditions {}, at barriers {}. {}.",
            percent(locks),
            percent(self.at_mutexes),
            percent(self.at_conditions),
            percent(self.at_barriers),
            match (self.at_barriers > self.at_mutexes + self.at_conditions, place.cosched) {
                _ if !self.leaves_cpus(place) => "These waits left no CPU idle".to_owned(),
                (true, _) => {
                    "Next: balance the work between its threads, or give it fewer".to_owned()
                }
                (false, Some(cosched)) => scheduled_by(cosched),
                (false, None) if place.has_groups => {
                    "Next: measure it under `cosched exec --policy faithful` and `--policy \
                     shuffling`"
                        .to_owned()
                }
                (false, None) => {
                    "Next: measure it under `cosched exec --policy faithful`".to_owned()
                }
            }
        )
    }

    /// Whether CPUs were idle that the program may use.
    fn leaves_cpus(&self, place: &WatchedMachine) -> bool {
        let WatchedMachine { seconds, cpus, busy, .. } = *place;
        let used = busy.unwrap_or_default().max(self.running) / seconds.max(f64::EPSILON);
        disturbance::is_busy(cpus as f64 - used, cpus)
    }

    /// Why threads lacked a CPU, and what to try next.
    fn why_without_cpu(&self, place: &WatchedMachine) -> String {
        let WatchedMachine { seconds, cpus, busy, .. } = *place;
        let ready = (self.running + self.without_cpu) / seconds.max(f64::EPSILON);
        let crowded = ready.round() > cpus as f64;
        let others = busy.map_or(0.0, |busy| (busy - self.running).max(0.0) / seconds);
        let used = format!("other processes used {}", disturbance::of_cpus(others, cpus));
        let own =
            format!("on average {ready:.1} of them were ready on {}", count(cpus, "CPU", "CPUs"));
        match (crowded, disturbance::is_busy(others, cpus)) {
            (_, true) if place.cosched.is_some() => {
                let scheduled = place.cosched.map(scheduled_by).unwrap_or_default();
                format!("{used}. {scheduled}")
            }
            (false, true) => format!(
                "{used}. Next: wait until these are idle (the system's `top` shows them), or start \
                 them and this program together with `cosched run`"
            ),
            (true, true) => format!(
                "{own}, and {used}. Next: fewer threads, or `cosched run` for all these programs"
            ),
            (true, false) => format!("{own}. Next: fewer threads"),
            (false, false) => format!(
                "{own}, which is not too many. Next: look for a CPU mask or a CPU quota that \
                 limits it (`cosched doctor` shows its own)"
            ),
        }
    }
}

/// What is said of a program that a cosched has already.
fn scheduled_by(cosched: i32) -> String {
    format!(
        "cosched (process {cosched}) schedules it. Next: `cosched top {cosched}` shows how, and \
         which programs share its CPUs"
    )
}

#[cfg(test)]
mod tests {
    use cosched_core::Nanos;
    use cosched_linux::observe::monitor::ThreadUse;
    use cosched_linux::observe::monitor::interval::by_program;

    use super::*;

    /// Five seconds on two CPUs, with so much CPU time of all processes.
    fn said(spent: ThreadTimes, busy: f64) -> String {
        let place = WatchedMachine {
            seconds: 5.0,
            cpus: 2,
            has_groups: false,
            busy: Some(busy),
            used: None,
            cosched: None,
        };
        spent.conclusion("a", &place)
    }

    #[test]
    fn the_legend_says_why_no_rate_of_priority_changes_is_shown() {
        let last = LEGEND.split(". ").last();
        let expected = "No column counts changes of priority: the\n\
                        kernel itself makes none in its fair class.";
        assert_eq!(last, Some(expected));
        assert!(LEGEND.lines().all(|line| line.len() <= 100));
    }

    #[test]
    fn the_largest_loss_is_named_with_its_share() {
        let free = ThreadTimes { running: 9.5, without_cpu: 0.5, ..ThreadTimes::default() };
        assert_eq!(said(free, 9.5), "a used 1.90 CPUs. Nothing stood in its way.");
        let unknown = said(ThreadTimes { hidden: true, ..free }, 9.5);
        assert!(unknown.contains("waited for one another is not known"), "{unknown}");
        let locked = ThreadTimes {
            running: 5.0,
            at_mutexes: 4.0,
            at_barriers: 1.0,
            ..ThreadTimes::default()
        };
        let text = said(locked, 5.0);
        assert!(text.contains("for 50 %") && text.contains("at mutexes 40 %"), "{text}");
        assert!(text.ends_with("`cosched exec --policy faithful`."), "{text}");
        let uneven = ThreadTimes { running: 5.0, at_barriers: 5.0, ..ThreadTimes::default() };
        assert!(said(uneven, 5.0).contains("balance the work"));
        assert_eq!(said(ThreadTimes::default(), 0.0), "a slept.");
        let pool = ThreadTimes { running: 9.6, at_conditions: 10.0, ..ThreadTimes::default() };
        assert!(said(pool, 9.6).ends_with("These waits left no CPU idle."), "{}", said(pool, 9.6));
        let beside_others = said(locked, 9.9);
        assert!(!beside_others.contains("faithful"), "{beside_others}");
    }

    #[test]
    fn a_program_that_a_cosched_has_is_not_to_be_started_again() {
        let (seconds, cosched) = (5.0, Some(17));
        let place = WatchedMachine {
            seconds,
            cpus: 2,
            has_groups: false,
            busy: Some(10.0),
            used: None,
            cosched,
        };
        let starved = ThreadTimes { without_cpu: 4.9, running: 1.0, ..ThreadTimes::default() };
        let locked = ThreadTimes { running: 5.0, at_mutexes: 5.0, ..ThreadTimes::default() };
        let idle = WatchedMachine { busy: Some(5.0), ..place };
        for text in [starved.conclusion("a", &place), locked.conclusion("a", &idle)] {
            assert!(text.contains("cosched (process 17) schedules it. Next: `cosched top 17`"));
            assert!(!text.contains("cosched run") && !text.contains("cosched exec"), "{text}");
        }
    }

    #[test]
    fn a_name_cannot_control_the_terminal() {
        let place = WatchedMachine {
            seconds: 5.0,
            cpus: 2,
            has_groups: false,
            busy: None,
            used: None,
            cosched: None,
        };
        let text = ThreadTimes::default().conclusion("a\n\u{1b}]0;b\u{7}\u{9b}m", &place);
        assert_eq!(text, "a\\n\\u{1b}]0;b\\u{7}\\u{9b}m slept.");
    }

    #[test]
    fn shares_are_those_of_the_table() {
        let seconds = |second: u64| Nanos::from_secs(second);
        let mut thread = ThreadUse::of_nothing(0, 7);
        for (activity, time) in [
            (ThreadActivity::Sleeping, 2),
            (ThreadActivity::Running, 2),
            (ThreadActivity::AtCondition, 3),
        ] {
            thread.time[activity as usize] = seconds(time);
        }
        let slices = [Slice { thread, is_idle: false }];
        let mut spent = Vec::new();
        add(&mut spent, &slices);
        let text = said(spent[0], 2.0);
        let shown = by_program(&slices)[&0].lock_contention().unwrap();
        assert!(text.contains(&format!("for {:.0} % of their time", 100.0 * shown)), "{text}");
        assert!(text.contains("at conditions 43 %"), "{text}");
    }

    #[test]
    fn a_program_that_uses_no_cpu_has_slept() {
        let asleep = ThreadTimes {
            sleeping: 4.95,
            without_cpu: 0.02,
            running: 0.005,
            ..ThreadTimes::default()
        };
        assert_eq!(said(asleep, 9.0), "a used 0.00 CPUs: it slept nearly all the time.");
        let starved = ThreadTimes { without_cpu: 4.9, running: 0.01, ..ThreadTimes::default() };
        assert!(said(starved, 9.9).contains("lacked a CPU for 100 %"), "{}", said(starved, 9.9));
    }

    #[test]
    fn nothing_is_claimed_of_threads_that_were_not_sampled() {
        let asleep = ThreadTimes { sleeping: 5.0, running: 0.1, ..ThreadTimes::default() };
        for (used, is_missed) in [(0.1, false), (4.0, true), (0.15, false)] {
            let (seconds, used) = (5.0, Some(used));
            let place = WatchedMachine {
                seconds,
                cpus: 2,
                has_groups: false,
                busy: None,
                used,
                cosched: None,
            };
            let said = asleep.conclusion("a", &place);
            let missed = "a used 0.80 CPUs, most of them in threads that ended before";
            assert_eq!(said.starts_with(missed), is_missed, "{said}");
        }
        let busy = ThreadTimes { running: 3.0, ..ThreadTimes::default() };
        let place = WatchedMachine {
            seconds: 5.0,
            cpus: 2,
            has_groups: false,
            busy: None,
            used: Some(4.0),
            cosched: None,
        };
        assert!(busy.conclusion("a", &place).starts_with("a used 0.80 CPUs"));
    }

    #[test]
    fn a_lack_of_cpus_is_due_to_own_threads_or_to_other_processes() {
        let many = ThreadTimes { running: 10.0, without_cpu: 10.0, ..ThreadTimes::default() };
        assert_eq!(
            said(many, 10.0),
            "a used 2.00 CPUs. Its threads lacked a CPU for 50 % of their time: on average 4.0 of \
             them were ready on 2 CPUs. Next: fewer threads."
        );
        let few = ThreadTimes { running: 4.0, without_cpu: 6.0, ..ThreadTimes::default() };
        let text = said(few, 10.0);
        assert!(text.contains("their time: other processes used 1.2 of 2 CPUs. Next: "), "{text}");
        assert!(!text.contains("fewer threads"), "{text}");
        let both = ThreadTimes { running: 5.0, without_cpu: 10.0, ..ThreadTimes::default() };
        let text = said(both, 10.0);
        assert!(text.contains("3.0 of them") && text.contains("1.0 of 2 CPUs"), "{text}");
        assert!(said(few, 4.0).contains("a CPU mask or a CPU quota"), "{}", said(few, 4.0));
    }
}
