//! An interval as a JSON object, and as lines for people.

use cosched_core::{Counts, CpuSet, Nanos, Quality, format};
use cosched_linux::observe::monitor::interval::{ProgramUse, Slice, by_program};
use cosched_linux::observe::monitor::{Monitor, ThreadActivity};
use cosched_workload::shown;
use serde::Serialize;

use super::arrivals::{Arrivals, group_of};
use super::conclusion::SHORT;

const SCHEMA: &str = "cosched-stat/2";

/// What stands above the columns of counters.
const COUNTERS: &str = "  Minstr/s    Mcyc/s    kref/s   kmiss/s  miss%";

/// One interval.
#[derive(Debug, Serialize)]
pub struct StatDocument<'a> {
    schema: &'static str,
    /// `kernel`, or `sampled` where times at locks are estimated.
    source: &'static str,
    /// Of the interval's end, since the first one began.
    at_seconds: f64,
    interval_seconds: f64,
    programs: Vec<StatProgram<'a>>,
    /// Whether there are columns of counters.
    #[serde(skip)]
    counted: bool,
}

/// One program; shares are of its threads' time, without idle threads.
#[derive(Debug, Serialize)]
struct StatProgram<'a> {
    name: &'a str,
    threads: usize,
    /// Slept at one place during the whole interval.
    idle_threads: usize,
    cpus: f64,
    /// Its part of the run queue: how many of its threads waited for a CPU, on average.
    run_queue: f64,
    running_share: Option<f64>,
    run_delay_share: Option<f64>,
    lock_share: Option<f64>,
    mutex_share: Option<f64>,
    condition_share: Option<f64>,
    barrier_share: Option<f64>,
    voluntary_switches_per_second: f64,
    involuntary_switches_per_second: f64,
    /// Of the involuntary ones, those at the end of a slice.
    expired_share: Option<f64>,
    /// Of the involuntary ones, those before that in favour of a sibling.
    sibling_preemption_share: Option<f64>,
    migrations_per_second: Option<f64>,
    /// How often a sibling handed a lock on to a thread that slept at it.
    lock_transfers_per_second: Option<f64>,
    /// Of these, those between groups of CPUs.
    across_share: Option<f64>,
    groups: Vec<Group>,
    /// In the interval, as the next three.
    instructions: Option<u64>,
    cycles: Option<u64>,
    llc_references: Option<u64>,
    llc_misses: Option<u64>,
    llc_miss_ratio: Option<f64>,
    /// `exact`, or `scaled` where events took turns; `None`: nothing was counted.
    counters: Option<&'static str>,
    by_thread: Vec<StatThread>,
}

/// The threads of a program on a group of CPUs.
#[derive(Debug, Serialize)]
struct Group {
    cpus: CpuSet,
    threads: usize,
    /// From its first thread's first arrival at a lock to its last thread's, the mean over windows
    /// of 100 ms.
    arrival_range_seconds: Option<f64>,
}

/// One thread, in the interval.
#[derive(Debug, Serialize)]
struct StatThread {
    process: i32,
    thread: i32,
    ended: bool,
    running_seconds: f64,
    run_delay_seconds: f64,
    mutex_seconds: f64,
    condition_seconds: f64,
    barrier_seconds: f64,
    sleeping_seconds: f64,
    stopped_seconds: f64,
    voluntary_switches: u64,
    involuntary_switches: u64,
    migrations: Option<u64>,
}

impl<'a> StatDocument<'a> {
    /// Of the interval between two times since the first one began; `counts`: of each program,
    /// where there are any; `arrivals`: where lock transfers are counted.
    pub fn new(
        names: &'a [String],
        slices: &[Slice],
        counts: Option<&[Counts]>,
        arrivals: Option<&mut Arrivals>,
        (from, to): (Nanos, Nanos),
        monitor: &Monitor,
    ) -> StatDocument<'a> {
        let seconds = (to - from).as_secs_f64();
        let mut sums = by_program(slices);
        let transfers = arrivals.is_some();
        let (groups, ranges) = match arrivals {
            Some(arrivals) => (arrivals.groups().to_vec(), arrivals.ranges()),
            None => Default::default(),
        };
        let group = |program: u32, (number, cpus): (usize, &CpuSet)| Group {
            cpus: *cpus,
            threads: slices
                .iter()
                .filter(|slice| slice.thread.program == program && !slice.is_idle)
                .filter(|slice| group_of(&slice.thread, &groups) == Some(number))
                .count(),
            arrival_range_seconds: ranges.get(&(program, number)).map(|range| range.as_secs_f64()),
        };
        let program = |(number, name): (usize, &'a String)| {
            let counts = counts.and_then(|counts| counts.get(number).copied());
            let number = number as u32;
            let threads =
                slices.iter().filter(|slice| slice.thread.program == number).map(StatThread::new);
            let sum = sums.remove(&number).unwrap_or_default();
            let all = sum.transfers.all;
            let across = sum.transfers.across as f64 / all as f64;
            StatProgram {
                lock_transfers_per_second: transfers.then(|| all as f64 / seconds),
                across_share: (groups.len() > 1 && all > 0).then_some(across),
                groups: groups.iter().enumerate().map(|one| group(number, one)).collect(),
                ..StatProgram::new(
                    name,
                    &sum,
                    counts.unwrap_or_default(),
                    seconds,
                    threads.collect(),
                )
            }
        };
        StatDocument {
            schema: SCHEMA,
            source: match monitor {
                Monitor::Kernel(_) => "kernel",
                Monitor::Sampled(_) => "sampled",
            },
            at_seconds: to.as_secs_f64(),
            interval_seconds: seconds,
            programs: names.iter().enumerate().map(program).collect(),
            counted: counts.is_some(),
        }
    }

    /// A line for each program, and below it one for each of its threads.
    pub fn lines(&self, header: bool, threads: bool) -> String {
        let mut lines = Vec::new();
        if header {
            let counters = match self.counted {
                true => COUNTERS,
                false => "",
            };
            lines.push(format!(
                "{:>8} {:<20} {:>7} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>8} {:>8} {:>7} \
                 {:>7} {:>8} {:>8} {:>7}{counters}",
                "at s",
                "program",
                "threads",
                "CPUs",
                "queue",
                "delay%",
                "lock%",
                "mutex%",
                "cond%",
                "barr%",
                "vol/s",
                "invol/s",
                "expir%",
                "sibl%",
                "migr/s",
                "xfer/s",
                "across%"
            ));
        }
        for program in &self.programs {
            let mut line = program.line(self.at_seconds, self.interval_seconds);
            if self.counted {
                line.push_str(&program.counters_line(self.interval_seconds));
            }
            lines.push(line);
            lines.extend(program.groups.iter().map(Group::line));
            if threads {
                lines.extend(
                    program.by_thread.iter().map(|thread| thread.line(self.interval_seconds)),
                );
            }
        }
        lines.join("\n")
    }
}

impl<'a> StatProgram<'a> {
    fn new(
        name: &'a str,
        sum: &ProgramUse,
        counts: Counts,
        seconds: f64,
        by_thread: Vec<StatThread>,
    ) -> StatProgram<'a> {
        let rate = |count: u64| count as f64 / seconds;
        // The sum of no threads is -0.0.
        let mean =
            |of: fn(&StatThread) -> f64| (by_thread.iter().map(of).sum::<f64>() / seconds).abs();
        let expired = sum.preemptions.map(|why| why.expired).filter(|_| sum.involuntary > 0);
        StatProgram {
            name,
            threads: sum.threads,
            idle_threads: sum.idle,
            cpus: mean(|thread| thread.running_seconds),
            run_queue: mean(|thread| thread.run_delay_seconds),
            running_share: sum.share(ThreadActivity::Running),
            run_delay_share: sum.share(ThreadActivity::Runnable),
            lock_share: sum.lock_contention(),
            mutex_share: sum.share(ThreadActivity::AtMutex),
            condition_share: sum.share(ThreadActivity::AtCondition),
            barrier_share: sum.share(ThreadActivity::AtBarrier),
            voluntary_switches_per_second: rate(sum.voluntary),
            involuntary_switches_per_second: rate(sum.involuntary),
            expired_share: expired.map(|expired| expired as f64 / sum.involuntary as f64),
            sibling_preemption_share: sum.sibling_preemption(),
            migrations_per_second: sum.migrations.map(rate),
            lock_transfers_per_second: None,
            across_share: None,
            groups: Vec::new(),
            instructions: counts.instructions,
            cycles: counts.cycles,
            llc_references: counts.llc_references,
            llc_misses: counts.llc_misses,
            llc_miss_ratio: counts.miss_ratio(),
            counters: match counts.quality {
                Quality::Exact => Some("exact"),
                Quality::Scaled => Some("scaled"),
                Quality::Missing => None,
            },
            by_thread,
        }
    }

    fn line(&self, at: f64, interval: f64) -> String {
        let percent = |share: Option<f64>| {
            share.map_or("-".to_owned(), |share| format!("{:.1}", share * 100.0))
        };
        let per_second =
            |rate: Option<f64>| rate.map_or("-".to_owned(), |rate| format!("{rate:.0}"));
        let threads = match self.idle_threads {
            0 => self.threads.to_string(),
            idle => format!("{}-{idle}", self.threads),
        };
        let name: String = shown(self.name).chars().take(20).collect();
        format!(
            "{at:>8.2} {name:<20} {threads:>7} {:>6} {:>6.2} {:>6} {:>6} {:>6} {:>6} {:>6} {:>8.0} \
             {:>8.0} {:>7} {:>7} {:>8} {:>8} {:>7}",
            cpus_in(self.cpus, interval),
            self.run_queue,
            percent(self.run_delay_share),
            percent(self.lock_share),
            percent(self.mutex_share),
            percent(self.condition_share),
            percent(self.barrier_share),
            self.voluntary_switches_per_second,
            self.involuntary_switches_per_second,
            percent(self.expired_share),
            percent(self.sibling_preemption_share),
            per_second(self.migrations_per_second),
            per_second(self.lock_transfers_per_second),
            percent(self.across_share),
        )
    }

    /// What the counters say, per second; with a mark where it is scaled up from a part of the
    /// interval.
    fn counters_line(&self, interval: f64) -> String {
        let mark = if self.counters == Some("scaled") { "~" } else { "" };
        let figure = |figure: Option<f64>| {
            figure.map_or("-".to_owned(), |figure| format!("{mark}{figure:.1}"))
        };
        let rate = |count: Option<u64>, unit: f64| {
            figure(count.map(|count| count as f64 / interval / unit))
        };
        format!(
            " {:>9} {:>9} {:>9} {:>9} {:>6}",
            rate(self.instructions, 1e6),
            rate(self.cycles, 1e6),
            rate(self.llc_references, 1e3),
            rate(self.llc_misses, 1e3),
            figure(self.llc_miss_ratio.map(|ratio| 100.0 * ratio)),
        )
    }
}

/// CPUs in use. The kernel counts CPU time in steps: a short interval says nothing of it.
fn cpus_in(cpus: f64, interval: f64) -> String {
    if interval < SHORT { "-".to_owned() } else { format!("{cpus:.2}") }
}

impl Group {
    fn line(&self) -> String {
        let Group { cpus, threads, arrival_range_seconds } = self;
        let range = match arrival_range_seconds {
            Some(range) => format!("; they come to locks within {:.1} ms of 100", range * 1e3),
            None => String::new(),
        };
        format!("{:>8}   on {}: {threads} at work{range}", "", format::cpus(cpus))
    }
}

impl StatThread {
    fn new(slice: &Slice) -> StatThread {
        let thread = &slice.thread;
        let time = |activity| thread.in_activity(activity).as_secs_f64();
        StatThread {
            process: thread.process,
            thread: thread.thread,
            ended: thread.now.is_none(),
            running_seconds: time(ThreadActivity::Running),
            run_delay_seconds: time(ThreadActivity::Runnable),
            mutex_seconds: time(ThreadActivity::AtMutex),
            condition_seconds: time(ThreadActivity::AtCondition),
            barrier_seconds: time(ThreadActivity::AtBarrier),
            sleeping_seconds: time(ThreadActivity::Sleeping),
            stopped_seconds: time(ThreadActivity::Stopped),
            voluntary_switches: thread.voluntary,
            involuntary_switches: thread.involuntary,
            migrations: thread.migrations,
        }
    }

    fn line(&self, interval: f64) -> String {
        let percent = |seconds: f64| seconds / interval * 100.0;
        let locks = self.mutex_seconds + self.condition_seconds + self.barrier_seconds;
        let rate = |count: u64| count as f64 / interval;
        let name = format!("  {}/{}", self.process, self.thread);
        format!(
            "{:>8} {name:<20} {:>7} {:>6} {:>6} {:>6.1} {:>6.1} {:>6.1} {:>6.1} {:>6.1} {:>8.0} \
             {:>8.0} {:>7} {:>7} {:>8}",
            "",
            if self.ended { "ended" } else { "" },
            cpus_in(self.running_seconds / interval, interval),
            "",
            percent(self.run_delay_seconds),
            percent(locks),
            percent(self.mutex_seconds),
            percent(self.condition_seconds),
            percent(self.barrier_seconds),
            rate(self.voluntary_switches),
            rate(self.involuntary_switches),
            "",
            "",
            self.migrations.map_or("-".to_owned(), |count| format!("{:.0}", rate(count))),
        )
    }
}

#[cfg(test)]
mod tests {
    use cosched_linux::observe::monitor::ThreadUse;

    use super::*;

    fn lines(counts: Option<&[Counts]>) -> (Vec<String>, serde_json::Value) {
        let names = ["solver".to_owned()];
        let span = (Nanos::ZERO, Nanos::from_millis(500));
        let monitor = Monitor::sampled(&cosched_linux::kernel::procfs::Proc::default());
        let groups = ["0", "1"].map(|cpu| cpu.parse().unwrap()).to_vec();
        let mut arrivals = Arrivals::new(groups, Nanos::ZERO);
        let document = StatDocument::new(&names, &[], counts, Some(&mut arrivals), span, &monitor);
        let lines = document.lines(true, false).lines().map(str::to_owned).collect();
        (lines, serde_json::to_value(&document).unwrap())
    }

    #[test]
    fn missing_counters_have_no_columns_and_are_null() {
        let counts = Counts {
            instructions: Some(1_000_000),
            cycles: None,
            llc_references: Some(4_000),
            llc_misses: Some(1_000),
            quality: Quality::Exact,
        };
        let (shown, json) = lines(Some(&[counts]));
        assert!(shown[0].ends_with(COUNTERS) && shown[0].len() == shown[1].len(), "{shown:?}");
        let figures: Vec<&str> = shown[1].split_whitespace().rev().take(5).collect();
        assert_eq!(figures, ["25.0", "2.0", "8.0", "-", "2.0"]);
        let program = &json["programs"][0];
        assert_eq!(
            (&program["llc_miss_ratio"], &program["counters"]),
            (&0.25.into(), &"exact".into())
        );
        let (shown, json) = lines(None);
        assert!(!shown[0].contains("miss%") && shown[0].len() == shown[1].len(), "{shown:?}");
        for field in
            ["instructions", "cycles", "llc_references", "llc_misses", "llc_miss_ratio", "counters"]
        {
            assert!(json["programs"][0].get(field).unwrap().is_null(), "{field}");
        }
    }

    #[test]
    fn no_program_runs_on_no_cpus_or_fewer() {
        let (_, json) = lines(None);
        assert_eq!(json["programs"][0]["cpus"].to_string(), "0.0");
    }

    /// Two threads wait for a CPU for 0.3 and 0.1 of half a second: 0.8 threads, on average.
    #[test]
    fn the_run_queue_is_the_mean_number_of_threads_without_a_cpu() {
        let waiting = |thread: i32, milliseconds: u64| {
            let mut used = ThreadUse::of_nothing(0, thread);
            used.time[ThreadActivity::Runnable as usize] = Nanos::from_millis(milliseconds);
            Slice { thread: used, is_idle: false }
        };
        let (names, span) = (["solver".to_owned()], (Nanos::ZERO, Nanos::from_millis(500)));
        let monitor = Monitor::sampled(&cosched_linux::kernel::procfs::Proc::default());
        let slices = [waiting(5, 300), waiting(6, 100)];
        let document = StatDocument::new(&names, &slices, None, None, span, &monitor);
        assert!((document.programs[0].run_queue - 0.8).abs() < 1e-9);
        let shown = document.lines(true, true);
        let columns = |line: usize| -> Vec<&str> {
            shown.lines().nth(line).unwrap().split_whitespace().collect()
        };
        // "at s" has two words.
        let place = columns(0).iter().position(|column| *column == "queue").unwrap() - 1;
        assert_eq!(columns(1)[place], "0.80", "{shown}");
    }

    #[test]
    fn a_short_interval_says_nothing_of_cpus() {
        assert_eq!([0.0007, 0.5].map(|interval| cpus_in(2.456, interval)), ["-", "2.46"]);
    }

    #[test]
    fn what_is_scaled_up_has_a_mark() {
        let counts =
            Counts { instructions: Some(500_000), quality: Quality::Scaled, ..Counts::default() };
        let (shown, json) = lines(Some(&[counts]));
        assert!(shown[1].contains(" ~1.0 "), "{shown:?}");
        assert_eq!(json["programs"][0]["counters"], "scaled");
    }

    #[test]
    fn every_field_is_documented() {
        let documentation = include_str!("../../../../docs/json.md");
        let (_, json) = lines(None);
        let fields = |value: &serde_json::Value| -> Vec<String> {
            value.as_object().unwrap().keys().cloned().collect()
        };
        let program = &json["programs"][0];
        let all = [fields(&json), fields(program), fields(&program["groups"][0])];
        for name in all.into_iter().flatten() {
            assert!(documentation.contains(&format!("`{name}`")), "{name}");
        }
    }
}
