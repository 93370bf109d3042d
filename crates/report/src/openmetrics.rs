//! A running run as OpenMetrics text, which Prometheus and similar programs read.
//!
//! The specification (version 1.0) requires: one block per metric family, its samples together;
//! `TYPE`, `UNIT` and `HELP` before them; the unit as the end of the family's name; `_total` at the
//! end of a counter's samples; states as a *stateset* with a sample for each state; `# EOF` as the
//! last line. <https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md>

use std::fmt::Write;

use cosched_core::Actuator;
use cosched_results::live::{ChosenSlice, Forward, LiveState, Shuffled, Snapshot, Standing};

/// The text for one answer to a scraper.
pub fn text(snapshot: &Snapshot) -> String {
    let mut page = MetricsPage(String::new());
    let pid = snapshot.pid.to_string();
    page.family("cosched_run", "info", None, "The current run.");
    let mut about =
        vec![("version", env!("CARGO_PKG_VERSION")), ("policy", snapshot.policy.as_str())];
    about.extend(snapshot.placement.as_deref().map(|placement| ("placement", placement)));
    about.push(("pid", pid.as_str()));
    page.sample("cosched_run_info", &about, 1);
    page.single("cosched_cpus", "gauge", None, "CPUs that programs may use.", snapshot.cpus.len());
    if let Some(quantum) = snapshot.quantum_seconds {
        let help = "The requested quantum (length of a turn).";
        page.single("cosched_quantum_seconds", "gauge", SECONDS, help, quantum);
    }
    let help = "How often a decision has changed which programs run.";
    page.single("cosched_switches", "counter", None, help, snapshot.switches);
    let help = "Deviations from what the policy planned.";
    page.single("cosched_deviations", "counter", None, help, snapshot.deviations);
    let help = "CPU time that cosched itself has used.";
    page.single("cosched_own_cpu_seconds", "counter", SECONDS, help, snapshot.own_cpu_seconds);

    let mut each = |name, kind, unit, help, value: fn(&Standing) -> Option<String>| {
        page.family(name, kind, unit, help);
        for program in &snapshot.programs {
            let Some(value) = value(program) else { continue };
            page.sample(&sample_name(name, kind), &[("program", program.name.as_str())], value);
        }
    };
    let help = "How long the program was allowed to run, in all its runs.";
    let running = "cosched_program_running_seconds";
    each(running, "counter", SECONDS, help, |program| Some(program.running_seconds.to_string()));
    let help = "How long the program waited for its starts or was paused, in all its runs.";
    let waiting = "cosched_program_waiting_seconds";
    each(waiting, "counter", SECONDS, help, |program| Some(program.waiting_seconds.to_string()));
    if snapshot.is_by_weight() {
        let help = "How long the program was a filler, of the time in which it was allowed to run.";
        let filler = "cosched_program_filler_seconds";
        each(filler, "counter", SECONDS, help, |program| Some(program.filler_seconds.to_string()));
    }
    let known = |program: &Standing| program.cpu_seconds.map(|seconds| seconds.to_string());
    let help = "CPU time of the program's processes, in all its runs.";
    each("cosched_program_cpu_seconds", "counter", SECONDS, help, known);
    let known = |program: &Standing| program.context_switches.map(|count| count.to_string());
    let help = "How often threads of the program were taken from a CPU, in all its runs.";
    each("cosched_program_context_switches", "counter", None, help, known);
    let help = "Turns of the program: starts and thaws, or turns by weight.";
    each("cosched_program_turns", "counter", None, help, |program| Some(program.turns.to_string()));
    let help = "Complete runs of the program.";
    each("cosched_program_completions", "counter", None, help, |p| Some(p.completions.to_string()));
    let help = "Thread limit of the program.";
    each("cosched_program_threads", "gauge", None, help, |program| {
        Some(program.allowed.to_string())
    });
    let help = "Threads that the program requests.";
    each("cosched_program_threads_requested", "gauge", None, help, |p| Some(p.threads.to_string()));
    let help = "Weight of the program: its share relative to other programs.";
    each("cosched_program_weight", "gauge", None, help, |program| Some(program.weight.to_string()));

    slices(&mut page, snapshot);
    moves(&mut page, snapshot);
    forward(&mut page, snapshot);
    barrier_stats(&mut page, snapshot);

    let name = "cosched_program_state";
    page.family(name, "stateset", None, "State of the program.");
    for program in &snapshot.programs {
        for state in LiveState::ALL {
            let labels = [("program", program.name.as_str()), (name, state.name())];
            page.sample(name, &labels, u8::from(state == program.state));
        }
    }
    page.0 + "# EOF\n"
}

/// The metrics of policies that choose time slices: the slices, the figures for which they were
/// chosen, and how threads are scheduled. An unknown figure has no sample.
fn slices(page: &mut MetricsPage, snapshot: &Snapshot) {
    let chosen = || {
        let alive = |program: &&Standing| program.state != LiveState::Ended;
        let programs = snapshot.programs.iter().filter(alive);
        programs.filter_map(|program| Some((program, program.slice?)))
    };
    if chosen().next().is_none() {
        return;
    }
    let mut each = |name, unit: &'static str, help, value: fn(ChosenSlice) -> Option<f64>| {
        page.family(name, "gauge", Some(unit), help);
        for (program, slice) in chosen() {
            if let Some(value) = value(slice) {
                page.sample(name, &[("program", program.name.as_str())], value);
            }
        }
    };
    let help = "Time slice that the policy has chosen for the program's threads.";
    each("cosched_program_slice_seconds", "seconds", help, |slice| Some(slice.slice_seconds));
    let help = "Share of its threads' time at locks for which the slice was chosen.";
    let locks = "cosched_program_lock_contention_ratio";
    each(locks, "ratio", help, |slice| Some(slice.lock_contention));
    let help = "Share of references to the last-level cache that missed when the slice was chosen.";
    each("cosched_program_cache_miss_ratio", "ratio", help, |slice| slice.miss_ratio);

    let name = "cosched_program_actuator";
    page.family(name, "stateset", None, "How the program's threads are scheduled.");
    for (program, _) in chosen() {
        for actuator in program.actuator.iter().flat_map(|_| Actuator::ALL) {
            let labels = [("program", program.name.as_str()), (name, actuator.name())];
            page.sample(name, &labels, u8::from(program.actuator == Some(actuator)));
        }
    }
}

/// The metrics of policies that move threads between groups of CPUs: how often, and why.
fn moves(page: &mut MetricsPage, snapshot: &Snapshot) {
    let shuffled = || {
        let alive = |program: &&Standing| program.state != LiveState::Ended;
        let programs = snapshot.programs.iter().filter(alive);
        programs.filter_map(|program| Some((program.name.as_str(), program.shuffled?)))
    };
    if shuffled().next().is_none() {
        return;
    }
    let mut each = |name, kind, unit, help, value: fn(Shuffled) -> f64| {
        page.family(name, kind, unit, help);
        for (program, shuffled) in shuffled() {
            page.sample(&sample_name(name, kind), &[("program", program)], value(shuffled));
        }
    };
    let help = "How often a thread of the program was moved to another group of CPUs.";
    each("cosched_program_moves", "counter", None, help, |shuffled| shuffled.moves as f64);
    let help = "Groups of CPUs to which the program's threads are bound; 0: they run anywhere.";
    each("cosched_program_groups", "gauge", None, help, |shuffled| shuffled.groups.into());
    let help = "Share of its threads' time at locks for which they were moved.";
    let locks = "cosched_program_lock_contention_ratio";
    each(locks, "gauge", Some("ratio"), help, |shuffled| shuffled.lock_contention);
}

/// The metrics of policies that equalise slowdowns: the progress of programs, and the cost of
/// measuring it.
fn forward(page: &mut MetricsPage, snapshot: &Snapshot) {
    let come = || {
        let alive = |program: &&Standing| program.state != LiveState::Ended;
        let programs = snapshot.programs.iter().filter(alive);
        programs.filter_map(|program| Some((program.name.as_str(), program.forward?)))
    };
    if come().next().is_none() {
        return;
    }
    let mut each = |name, kind, unit, help, value: fn(Forward) -> Option<f64>| {
        page.family(name, kind, unit, help);
        for (program, forward) in come() {
            if let Some(value) = value(forward) {
                page.sample(&sample_name(name, kind), &[("program", program)], value);
            }
        }
    };
    let help = "Solo time of the work that the program has done, weighted, since the last program \
                arrived.";
    let name = "cosched_program_forward_progress_seconds";
    each(name, "gauge", SECONDS, help, |forward| Some(forward.progress_seconds));
    let help = "Slowdown of the program since its arrival: time / solo time.";
    each("cosched_program_slowdown_ratio", "gauge", RATIO, help, |forward| forward.slowdown);
    let help = "Share of its quanta for which the program's solo speed is known.";
    let name = "cosched_program_speed_known_ratio";
    each(name, "gauge", RATIO, help, |forward| Some(forward.speed_known));
    let help =
        "How often other programs waited so that the program's solo speed could be measured.";
    let name = "cosched_program_trainings";
    each(name, "counter", None, help, |forward| Some(forward.trainings as f64));
    let help =
        "CPU time that was to be left idle so that the program's solo speed could be measured.";
    let name = "cosched_program_training_idle_seconds";
    each(name, "counter", SECONDS, help, |forward| Some(forward.training_idle_seconds));
}

/// The barrier statistics, where threads wait at barriers of cosched: how many they passed, and how
/// their waits ended.
fn barrier_stats(page: &mut MetricsPage, snapshot: &Snapshot) {
    let stats = || {
        let programs = snapshot.programs.iter();
        programs.filter_map(|program| Some((program.name.as_str(), program.barrier_stats?)))
    };
    if stats().next().is_none() {
        return;
    }
    let name = "cosched_program_barriers";
    page.family(name, "counter", None, "Barriers of cosched that the program's threads passed.");
    for (program, stats) in stats() {
        page.sample(&sample_name(name, "counter"), &[("program", program)], stats.barriers);
    }
    let name = "cosched_program_barrier_waits";
    page.family(name, "counter", None, "How waits at these barriers ended.");
    for (program, stats) in stats() {
        for (how, count) in [
            ("spun-briefly", stats.spun_briefly),
            ("spun", stats.spun),
            ("yielded", stats.yielded),
            ("slept", stats.slept),
        ] {
            let labels = [("program", program), ("how", how)];
            page.sample(&sample_name(name, "counter"), &labels, count);
        }
    }
    let name = "cosched_program_barrier_informed_waits";
    let help =
        "Waits beyond microseconds at these barriers with a known state of the late threads.";
    page.family(name, "counter", None, help);
    for (program, stats) in stats() {
        page.sample(&sample_name(name, "counter"), &[("program", program)], stats.knew);
    }
    let name = "cosched_program_barrier_waiting_seconds";
    let help = "Time of the program's threads in waits beyond microseconds at these barriers.";
    page.family(name, "counter", SECONDS, help);
    for (program, stats) in stats() {
        page.sample(&sample_name(name, "counter"), &[("program", program)], stats.waited_seconds);
    }
}

const SECONDS: Option<&str> = Some("seconds");
const RATIO: Option<&str> = Some("ratio");

/// The name of a family's samples; those of a counter end with *total*.
fn sample_name(family: &str, kind: &str) -> String {
    match kind {
        "counter" => format!("{family}_total"),
        _ => family.to_owned(),
    }
}

struct MetricsPage(String);

impl MetricsPage {
    fn family(&mut self, name: &str, kind: &str, unit: Option<&str>, help: &str) {
        self.line(format_args!("# TYPE {name} {kind}"));
        if let Some(unit) = unit {
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
    fn single(
        &mut self,
        name: &str,
        kind: &str,
        unit: Option<&str>,
        help: &str,
        value: impl std::fmt::Display,
    ) {
        self.family(name, kind, unit, help);
        self.sample(&sample_name(name, kind), &[], value);
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
        for line in [
            "cosched_program_slice_seconds{program=\"solver\"} 0.2",
            "cosched_program_lock_contention_ratio{program=\"sort\"} 0.12",
            "cosched_program_cache_miss_ratio{program=\"solver\"} 0.05",
            "cosched_program_actuator{program=\"solver\",cosched_program_actuator=\"slice\"} 1",
            "cosched_program_actuator{program=\"solver\",cosched_program_actuator=\"batch\"} 0",
        ] {
            assert!(metrics.lines().any(|found| found == line), "{line}: {metrics}");
        }
        assert!(!metrics.contains("cache_miss_ratio{program=\"sort\"}"), "{metrics}");
        assert!(!metrics.contains("slice_seconds{program=\"short\"}"), "{metrics}");
        snapshot.programs[0].state = LiveState::Ended;
        assert!(!text(&snapshot).contains("slice_seconds{program=\"solver\"}"));
        assert!(!text(&crate::standing::snapshot()).contains("slice"));
    }

    #[test]
    fn moved_threads_are_counted() {
        let metrics = text(&shuffling());
        for line in [
            "cosched_program_moves_total{program=\"solver\"} 5",
            "cosched_program_groups{program=\"solver\"} 2",
            "cosched_program_lock_contention_ratio{program=\"solver\"} 0.62",
        ] {
            assert!(metrics.lines().any(|found| found == line), "{line}: {metrics}");
        }
        assert!(!metrics.contains("moves_total{program=\"sort\"}"), "{metrics}");
        assert!(!text(&faithful()).contains("cosched_program_moves"));
    }

    #[test]
    fn progress_has_metrics_where_it_is_known() {
        let metrics = text(&equalising());
        for line in [
            "cosched_program_forward_progress_seconds{program=\"solver\"} 0.95",
            "cosched_program_slowdown_ratio{program=\"solver\"} 2.58",
            "cosched_program_speed_known_ratio{program=\"sort\"} 0.75",
            "cosched_program_trainings_total{program=\"solver\"} 2",
            "cosched_program_training_idle_seconds_total{program=\"solver\"} 0.05",
        ] {
            assert!(metrics.lines().any(|found| found == line), "{line}: {metrics}");
        }
        assert!(!metrics.contains("slowdown_ratio{program=\"sort\"}"), "{metrics}");
        assert!(!metrics.contains("trainings_total{program=\"short\"}"), "{metrics}");
        assert!(!text(&faithful()).contains("forward"));
    }

    #[test]
    fn barriers_are_counted_with_the_ends_of_waits() {
        let metrics = text(&donating());
        for line in [
            "cosched_program_barriers_total{program=\"solver\"} 2450",
            "cosched_program_barrier_waits_total{program=\"solver\",how=\"slept\"} 500",
            "cosched_program_barrier_informed_waits_total{program=\"solver\"} 600",
            "cosched_program_barrier_waiting_seconds_total{program=\"solver\"} 0.05",
        ] {
            assert!(metrics.lines().any(|found| found == line), "{line}: {metrics}");
        }
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
