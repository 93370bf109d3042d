//! A running run as OpenMetrics text, which Prometheus and similar programs read.
//!
//! The specification (version 1.0) requires: one block per metric family, its samples together;
//! `TYPE`, `UNIT` and `HELP` before them; the unit as the end of the family's name; `_total` at the
//! end of a counter's samples; states as a *stateset* with a sample for each state; `# EOF` as the
//! last line. <https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md>

use std::fmt::Write;

use cosched_core::Actuator;
use cosched_results::live::{LiveState, Snapshot, Standing};

/// The text for one answer to a scraper.
pub fn text(snapshot: &Snapshot) -> String {
    let mut page = MetricsPage(String::new());
    let pid = snapshot.pid.to_string();
    page.family("cosched_run", "info", "The current run.");
    let mut about =
        vec![("version", env!("CARGO_PKG_VERSION")), ("policy", snapshot.policy.as_str())];
    about.extend(snapshot.placement.as_deref().map(|placement| ("placement", placement)));
    about.push(("pid", pid.as_str()));
    page.sample("cosched_run_info", &about, 1);
    page.single("cosched_cpus", "gauge", "CPUs that programs may use.", snapshot.cpus.len());
    if let Some(quantum) = snapshot.quantum_seconds {
        let help = "The requested quantum (length of a turn).";
        page.single("cosched_quantum_seconds", "gauge", help, quantum);
    }
    let help = "How often a decision has changed which programs run.";
    page.single("cosched_switches", "counter", help, snapshot.switches);
    let help = "Deviations from what the policy planned.";
    page.single("cosched_deviations", "counter", help, snapshot.deviations);
    let help = "CPU time that cosched itself has used.";
    page.single("cosched_own_cpu_seconds", "counter", help, snapshot.own_cpu_seconds);

    let all: Vec<&Standing> = snapshot.programs.iter().collect();
    let mut each = |name, kind, help, value: FigureOf| page.each(&all, name, kind, help, value);
    let help = "How long the program was allowed to run, in all its runs.";
    each("cosched_program_running_seconds", "counter", help, |it| Some(it.running_seconds));
    let help = "How long the program waited for its starts or was paused, in all its runs.";
    each("cosched_program_waiting_seconds", "counter", help, |it| Some(it.waiting_seconds));
    if snapshot.is_by_weight() {
        let help = "How long the program was a filler, of the time in which it was allowed to run.";
        each("cosched_program_filler_seconds", "counter", help, |it| Some(it.filler_seconds));
    }
    let help = "CPU time of the program's processes, in all its runs.";
    each("cosched_program_cpu_seconds", "counter", help, |it| it.cpu_seconds);
    let help = "CPU time that is the program's by its weight, in all its runs.";
    each("cosched_program_fair_share_seconds", "counter", help, |it| it.share_seconds);
    let help = "How much less CPU time the program got than its fair share; negative: more.";
    each("cosched_program_lag_seconds", "gauge", help, |it| it.lag_seconds());
    let help = "How often threads of the program were taken from a CPU, in all its runs.";
    let switches = "cosched_program_context_switches";
    each(switches, "counter", help, |it| it.context_switches.map(|count| count as f64));
    let help = "Turns of the program: starts and thaws, or turns by weight.";
    each("cosched_program_turns", "counter", help, |it| Some(it.turns as f64));
    let help = "Complete runs of the program.";
    each("cosched_program_completions", "counter", help, |it| Some(it.completions as f64));
    let help = "Thread limit of the program.";
    each("cosched_program_threads", "gauge", help, |it| Some(it.allowed.into()));
    let help = "Threads that the program requests.";
    each("cosched_program_threads_requested", "gauge", help, |it| Some(it.threads.into()));
    let help = "Weight of the program: its share relative to other programs.";
    each("cosched_program_weight", "gauge", help, |it| Some(it.weight));

    slices(&mut page, snapshot);
    moves(&mut page, snapshot);
    forward(&mut page, snapshot);
    barrier_stats(&mut page, snapshot);

    let name = "cosched_program_state";
    page.family(name, "stateset", "State of the program.");
    for program in &snapshot.programs {
        for state in LiveState::ALL {
            let labels = [("program", program.name.as_str()), (name, state.name())];
            page.sample(name, &labels, u8::from(state == program.state));
        }
    }
    page.0 + "# EOF\n"
}

/// The programs with the figures of a policy; none of them has ended.
fn alive(snapshot: &Snapshot, has: fn(&Standing) -> bool) -> Vec<&Standing> {
    let programs = snapshot.programs.iter();
    programs.filter(|program| program.state != LiveState::Ended && has(program)).collect()
}

/// The metrics of policies that choose time slices: the slices, the figures for which they were
/// chosen, and how threads are scheduled.
fn slices(page: &mut MetricsPage, snapshot: &Snapshot) {
    let programs = alive(snapshot, |program| program.slice.is_some());
    if programs.is_empty() {
        return;
    }
    let mut each = |name, help, value: FigureOf| page.each(&programs, name, "gauge", help, value);
    let help = "Time slice that the policy has chosen for the program's threads.";
    each("cosched_program_slice_seconds", help, |it| Some(it.slice?.slice_seconds));
    let help = "Share of its threads' time at locks for which the slice was chosen.";
    each("cosched_program_lock_contention_ratio", help, |it| Some(it.slice?.lock_contention));
    let help = "Share of references to the last-level cache that missed when the slice was chosen.";
    each("cosched_program_cache_miss_ratio", help, |it| it.slice?.miss_ratio);

    let name = "cosched_program_actuator";
    page.family(name, "stateset", "How the program's threads are scheduled.");
    for program in programs {
        for actuator in program.actuator.iter().flat_map(|_| Actuator::ALL) {
            let labels = [("program", program.name.as_str()), (name, actuator.name())];
            page.sample(name, &labels, u8::from(program.actuator == Some(actuator)));
        }
    }
}

/// The metrics of policies that move threads between groups of CPUs: how often, and why.
fn moves(page: &mut MetricsPage, snapshot: &Snapshot) {
    let programs = alive(snapshot, |program| program.shuffled.is_some());
    if programs.is_empty() {
        return;
    }
    let mut each =
        |name, kind, help, value: FigureOf| page.each(&programs, name, kind, help, value);
    let help = "How often a thread of the program was moved to another group of CPUs.";
    each("cosched_program_moves", "counter", help, |it| Some(it.shuffled?.moves as f64));
    let help = "Groups of CPUs to which the program's threads are bound; 0: they run anywhere.";
    each("cosched_program_groups", "gauge", help, |it| Some(it.shuffled?.groups.into()));
    let help = "Share of its threads' time at locks for which they were moved.";
    let locks = "cosched_program_lock_contention_ratio";
    each(locks, "gauge", help, |it| Some(it.shuffled?.lock_contention));
}

/// The metrics of policies that equalise slowdowns: the progress of programs, and the cost of
/// measuring it.
fn forward(page: &mut MetricsPage, snapshot: &Snapshot) {
    let programs = alive(snapshot, |program| program.forward.is_some());
    if programs.is_empty() {
        return;
    }
    let mut each =
        |name, kind, help, value: FigureOf| page.each(&programs, name, kind, help, value);
    let help = "Solo time of the work that the program has done, weighted, since the last program \
                arrived.";
    let name = "cosched_program_forward_progress_seconds";
    each(name, "gauge", help, |it| Some(it.forward?.progress_seconds));
    let help = "Slowdown of the program since its arrival: time / solo time.";
    each("cosched_program_slowdown_ratio", "gauge", help, |it| it.forward?.slowdown);
    let help = "Share of its quanta for which the program's solo speed is known.";
    each("cosched_program_speed_known_ratio", "gauge", help, |it| Some(it.forward?.speed_known));
    let help =
        "How often other programs waited so that the program's solo speed could be measured.";
    each("cosched_program_trainings", "counter", help, |it| Some(it.forward?.trainings as f64));
    let help =
        "CPU time that was to be left idle so that the program's solo speed could be measured.";
    let name = "cosched_program_training_idle_seconds";
    each(name, "counter", help, |it| Some(it.forward?.training_idle_seconds));
}

/// The barrier statistics, where threads wait at barriers of cosched: how many they passed, and how
/// their waits ended.
fn barrier_stats(page: &mut MetricsPage, snapshot: &Snapshot) {
    let programs = snapshot.programs.iter().filter(|program| program.barrier_stats.is_some());
    let programs: Vec<&Standing> = programs.collect();
    if programs.is_empty() {
        return;
    }
    let help = "Barriers of cosched that the program's threads passed.";
    let passed: FigureOf = |it| Some(it.barrier_stats?.barriers as f64);
    page.each(&programs, "cosched_program_barriers", "counter", help, passed);
    let name = "cosched_program_barrier_waits";
    page.family(name, "counter", "How waits at these barriers ended.");
    for (program, stats) in programs.iter().filter_map(|it| Some((it, it.barrier_stats?))) {
        for (how, count) in [
            ("spun-briefly", stats.spun_briefly),
            ("spun", stats.spun),
            ("yielded", stats.yielded),
            ("slept", stats.slept),
        ] {
            let labels = [("program", program.name.as_str()), ("how", how)];
            page.sample(&sample_name(name, "counter"), &labels, count);
        }
    }
    let mut each = |name, help, value: FigureOf| page.each(&programs, name, "counter", help, value);
    let help =
        "Waits beyond microseconds at these barriers with a known state of the late threads.";
    let informed = "cosched_program_barrier_informed_waits";
    each(informed, help, |it| Some(it.barrier_stats?.knew as f64));
    let help = "Time of the program's threads in waits beyond microseconds at these barriers.";
    let waiting = "cosched_program_barrier_waiting_seconds";
    each(waiting, help, |it| Some(it.barrier_stats?.waited_seconds));
    let help = "CPU time in which the program's threads spun at these barriers.";
    let spinning = "cosched_program_barrier_spinning_seconds";
    each(spinning, help, |it| Some(it.barrier_stats?.times?.spun_seconds));
    let help = "Time from the first arrival at these barriers to their completion.";
    let latency = "cosched_program_barrier_latency_seconds";
    each(latency, help, |it| Some(it.barrier_stats?.times?.latency_seconds));
    let help = "Time from the first arrival at these barriers to each thread's own, estimated.";
    let completion = "cosched_program_barrier_completion_seconds";
    let of: FigureOf = |it| it.barrier_stats?.times?.completion_seconds;
    page.each(&programs, completion, "gauge", help, of);
    let help = "Longest time from the first arrival at such a barrier to its completion.";
    let longest = "cosched_program_barrier_longest_latency_seconds";
    let of: FigureOf = |it| Some(it.barrier_stats?.times?.longest_latency_seconds);
    page.each(&programs, longest, "gauge", help, of);
}

/// A figure of a program; an unknown one has no sample.
type FigureOf = fn(&Standing) -> Option<f64>;

/// The name of a family's samples; those of a counter end with *total*.
fn sample_name(family: &str, kind: &str) -> String {
    match kind {
        "counter" => format!("{family}_total"),
        _ => family.to_owned(),
    }
}

struct MetricsPage(String);

impl MetricsPage {
    /// The lines that come before the figures of a family. Its name ends with its unit, if any.
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# TYPE {name} {kind}"));
        if let Some((_, unit @ ("seconds" | "ratio"))) = name.rsplit_once('_') {
            self.line(format_args!("# UNIT {name} {unit}"));
        }
        self.line(format_args!("# HELP {name} {help}"));
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let labels: Vec<String> =
            labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escaped(value))).collect();
        match labels.is_empty() {
            true => self.line(format_args!("{name} {value}")),
            false => self.line(format_args!("{name}{{{}}} {value}", labels.join(","))),
        }
    }

    /// A family of one sample.
    fn single(&mut self, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
        self.family(name, kind, help);
        self.sample(&sample_name(name, kind), &[], value);
    }

    /// A family with a sample for each of these programs.
    fn each(
        &mut self,
        programs: &[&Standing],
        name: &str,
        kind: &str,
        help: &str,
        value: FigureOf,
    ) {
        self.family(name, kind, help);
        for (program, value) in programs.iter().filter_map(|it| Some((it, value(it)?))) {
            let labels = [("program", program.name.as_str())];
            self.sample(&sample_name(name, kind), &labels, value);
        }
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "{line}");
    }
}

/// A label's value, in which three characters are escaped.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::standing::{donating, equalising, faithful, shuffling, snapshot};

    /// The name of a sample's family, as the specification derives it.
    fn family<'n>(sample: &'n str, kind: &str) -> &'n str {
        let end = match kind {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        sample.strip_suffix(end).unwrap()
    }

    fn has_lines(metrics: &str, lines: &[&str]) {
        for line in lines {
            assert!(metrics.lines().any(|found| found == *line), "{line}: {metrics}");
        }
    }

    #[test]
    fn every_family_is_there_once_with_type_and_samples() {
        for text in [faithful(), shuffling(), donating(), equalising()].map(|one| text(&one)) {
            check_families(&text);
        }
    }

    fn check_families(text: &str) {
        let (mut families, mut kind, mut name) = (BTreeSet::new(), "", "");
        for line in text.lines() {
            if let Some(words) = line.strip_prefix("# TYPE ") {
                (name, kind) = words.split_once(' ').unwrap();
                assert!(families.insert(name), "{name} is there twice");
                assert!(name.starts_with("cosched_") && !name.ends_with("_total"), "{name}");
            } else if let Some(words) = line.strip_prefix("# UNIT ") {
                let (of, unit) = words.split_once(' ').unwrap();
                assert!(of == name && name.ends_with(&format!("_{unit}")), "{line}");
            } else if let Some(words) = line.strip_prefix("# HELP ") {
                assert!(words.starts_with(&format!("{name} ")), "{line}");
            } else if line != "# EOF" {
                let sample = line.split(['{', ' ']).next().unwrap();
                assert_eq!(family(sample, kind), name, "{line}");
                let value = line.rsplit(' ').next().unwrap();
                assert!(value.parse::<f64>().is_ok(), "{line}");
            }
        }
        assert!(families.len() >= 12 && text.ends_with("\n# EOF\n"), "{text}");
        assert_eq!(text.matches("# EOF").count(), 1);
    }

    #[test]
    fn a_program_is_in_exactly_one_state() {
        let snapshot = snapshot();
        let text = text(&snapshot);
        for program in &snapshot.programs {
            let of = format!("cosched_program_state{{program=\"{}\",", escaped(&program.name));
            let lines: Vec<&str> = text.lines().filter(|line| line.starts_with(&of)).collect();
            let set: Vec<&&str> = lines.iter().filter(|line| line.ends_with(" 1")).collect();
            assert_eq!((lines.len(), set.len()), (LiveState::ALL.len(), 1), "{lines:?}");
            assert!(set[0].contains(&format!("=\"{}\"}}", program.state.name())), "{}", set[0]);
        }
    }

    #[test]
    fn names_cannot_break_the_text() {
        let mut snapshot = snapshot();
        snapshot.programs[0].name = "a\"b\\c\nd".into();
        let text = text(&snapshot);
        assert!(text.contains(r#"cosched_program_turns_total{program="a\"b\\c\nd"} "#), "{text}");
    }

    #[test]
    fn unknown_figures_are_left_out() {
        let mut snapshot = snapshot();
        (snapshot.quantum_seconds, snapshot.placement) = (None, None);
        let text = text(&snapshot);
        assert!(!text.contains("quantum") && !text.contains("placement"), "{text}");
    }

    #[test]
    fn slices_have_metrics_while_a_program_lives() {
        let mut snapshot = faithful();
        let metrics = text(&snapshot);
        has_lines(
            &metrics,
            &[
                "cosched_program_slice_seconds{program=\"solver\"} 0.2",
                "cosched_program_lock_contention_ratio{program=\"sort\"} 0.12",
                "cosched_program_cache_miss_ratio{program=\"solver\"} 0.05",
                "cosched_program_actuator{program=\"solver\",cosched_program_actuator=\"slice\"} 1",
                "cosched_program_actuator{program=\"solver\",cosched_program_actuator=\"batch\"} 0",
            ],
        );
        assert!(!metrics.contains("cache_miss_ratio{program=\"sort\"}"), "{metrics}");
        assert!(!metrics.contains("slice_seconds{program=\"short\"}"), "{metrics}");
        snapshot.programs[0].state = LiveState::Ended;
        assert!(!text(&snapshot).contains("slice_seconds{program=\"solver\"}"));
        assert!(!text(&crate::standing::snapshot()).contains("slice"));
    }

    #[test]
    fn moved_threads_are_counted() {
        let metrics = text(&shuffling());
        has_lines(
            &metrics,
            &[
                "cosched_program_moves_total{program=\"solver\"} 5",
                "cosched_program_groups{program=\"solver\"} 2",
                "cosched_program_lock_contention_ratio{program=\"solver\"} 0.62",
            ],
        );
        assert!(!metrics.contains("moves_total{program=\"sort\"}"), "{metrics}");
        assert!(!text(&faithful()).contains("cosched_program_moves"));
    }

    #[test]
    fn progress_has_metrics_where_it_is_known() {
        let metrics = text(&equalising());
        has_lines(
            &metrics,
            &[
                "cosched_program_forward_progress_seconds{program=\"solver\"} 0.95",
                "cosched_program_slowdown_ratio{program=\"solver\"} 2.58",
                "cosched_program_speed_known_ratio{program=\"sort\"} 0.75",
                "cosched_program_trainings_total{program=\"solver\"} 2",
                "cosched_program_training_idle_seconds_total{program=\"solver\"} 0.05",
            ],
        );
        assert!(!metrics.contains("slowdown_ratio{program=\"sort\"}"), "{metrics}");
        assert!(!metrics.contains("trainings_total{program=\"short\"}"), "{metrics}");
        assert!(!text(&faithful()).contains("forward"));
    }

    /// It has used 1.875 s of its share of 2.4 s.
    #[test]
    fn lag_is_the_share_without_the_cpu_time() {
        let expected = [
            "cosched_program_fair_share_seconds_total{program=\"solver\"} 2.4",
            "cosched_program_lag_seconds{program=\"solver\"} 0.525",
        ];
        has_lines(&text(&snapshot()), &expected);
        let mut attached = snapshot();
        attached.programs[0].share_seconds = None;
        assert!(!text(&attached).contains("lag_seconds{program=\"solver\"}"));
    }

    #[test]
    fn barriers_are_counted_with_the_ends_of_waits() {
        let metrics = text(&donating());
        has_lines(
            &metrics,
            &[
                "cosched_program_barriers_total{program=\"solver\"} 2450",
                "cosched_program_barrier_waits_total{program=\"solver\",how=\"slept\"} 500",
                "cosched_program_barrier_informed_waits_total{program=\"solver\"} 600",
                "cosched_program_barrier_waiting_seconds_total{program=\"solver\"} 0.05",
                "cosched_program_barrier_spinning_seconds_total{program=\"solver\"} 0.02",
                "cosched_program_barrier_latency_seconds_total{program=\"solver\"} 0.04",
                "cosched_program_barrier_completion_seconds{program=\"solver\"} 0.1",
                "cosched_program_barrier_longest_latency_seconds{program=\"solver\"} 0.003",
            ],
        );
        assert!(!metrics.contains("barriers_total{program=\"sort\"}"), "{metrics}");
        assert!(!text(&faithful()).contains("barrier"));
    }

    #[test]
    fn every_metric_is_documented() {
        let documentation = include_str!("../../../docs/json.md");
        let all = [faithful(), shuffling(), donating(), equalising(), snapshot()];
        let text = all.map(|one| text(&one)).concat();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let sample = line.split(['{', ' ']).next().unwrap();
            assert!(documentation.contains(&format!("| `{sample}` |")), "{sample}");
        }
    }
}
