//! Which program ran where and when: the thesis' snapshots (figures 5.11 and 5.12), for any run.

use cosched_core::{CpuSet, Quantum};
use cosched_results::result::{ProgramResult, RunResult, TimelineEntry};

use super::panel::{Panel, Plot, Table};

/// Times are rounded to microseconds: nearer spans are one.
const ROUNDING: f64 = 2e-6;

/// Programs that shared a CPU for a smaller part of the run did so only while cosched switched from
/// one to the other.
const SHARED: f64 = 0.01;

/// Which program ran where and when.
#[derive(Clone, Debug, PartialEq)]
pub struct SnapshotPlot {
    /// What a row is.
    pub rows: Rows,
    /// The CPUs, ascending.
    pub cpus: Vec<usize>,
    /// One each, in the workload's order.
    pub programs: Vec<Lane>,
    /// When quanta began, seconds.
    pub quanta: Vec<f64>,
    /// How long the run took, seconds.
    pub total: f64,
    /// What is in the picture, seconds.
    pub window: (f64, f64),
}

/// What a row of the picture is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// A CPU: at most one program has it at a time.
    Cpus,
    /// A program: several shared CPUs, and where each of their threads ran is not known.
    Programs,
    /// A program that takes turns by weight: its turns.
    Turns,
}

/// One program.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    /// Its name.
    pub name: String,
    /// Its threads.
    pub threads: u16,
    /// When it was allowed to run, in order of time, and where; `None`: on all CPUs. Its turns,
    /// where it has them by weight.
    pub spans: Vec<TimelineEntry>,
}

/// The run as a snapshot; nothing if no program ever ran.
pub(super) fn snapshot(run: &RunResult) -> Option<Panel> {
    let snapshot = SnapshotPlot::of(run);
    snapshot.programs.iter().any(|lane| !lane.spans.is_empty()).then_some(())?;
    let says = match snapshot.rows {
        Rows::Cpus => {
            "Each row is a CPU over time, and each colour is the program that has the CPU to \
             itself (blank: no program)."
        }
        Rows::Programs => {
            "Each row is a program over time, coloured while it was allowed to run; the kernel \
             shared the CPUs between the threads."
        }
        Rows::Turns => {
            "Each row is a program over time, coloured in its turns; outside of them it gets the \
             CPU time that the others leave idle."
        }
    };
    Some(Panel {
        id: "snapshot",
        title: "Which program ran when and where".to_owned(),
        says: says.to_owned(),
        plot: Plot::Snapshot(snapshot),
    })
}

impl SnapshotPlot {
    /// The snapshot of a run, with all of it in the picture.
    pub fn of(run: &RunResult) -> SnapshotPlot {
        let lanes = run.programs.iter().map(|program| Lane {
            name: program.name.clone(),
            threads: program.threads,
            spans: turns(program),
        });
        let programs: Vec<Lane> = lanes.collect();
        let bound = programs.iter().flat_map(|lane| &lane.spans).filter_map(|span| span.2);
        let bound = bound.fold(CpuSet::EMPTY, |all, cpus| all.union(&cpus));
        let all = CpuSet::first(run.machine.cpus);
        let cpus = if bound.is_subset(&all) { all } else { bound };
        let began = run.decisions.iter().filter(|decision| {
            decision.reasons.iter().any(|reason| Quantum::of(&reason.why).is_some())
        });
        let quanta = began.map(|decision| decision.at_seconds).collect();
        SnapshotPlot {
            rows: if run.programs.iter().any(|program| !program.turns.is_empty()) {
                Rows::Turns
            } else if shared(&programs, &all) > SHARED * run.total_seconds {
                Rows::Programs
            } else {
                Rows::Cpus
            },
            cpus: cpus.iter().collect(),
            programs,
            quanta,
            total: run.total_seconds,
            window: (0.0, run.total_seconds),
        }
    }

    /// The name of each row.
    pub fn row_names(&self) -> Vec<String> {
        match self.rows {
            Rows::Cpus => self.cpus.iter().map(|cpu| format!("CPU {cpu}")).collect(),
            Rows::Programs | Rows::Turns => {
                self.programs.iter().map(|lane| lane.name.clone()).collect()
            }
        }
    }

    /// The rows of a set of CPUs, as ranges of neighbours, first and last; all of them without a
    /// set.
    pub fn ranges(&self, cpus: Option<&CpuSet>) -> Vec<(usize, usize)> {
        let Some(set) = cpus else { return vec![(0, self.cpus.len().saturating_sub(1))] };
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        for row in (0..self.cpus.len()).filter(|row| set.contains(self.cpus[*row])) {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == row => *last = row,
                _ => ranges.push((row, row)),
            }
        }
        ranges
    }

    pub(super) fn table(&self) -> Table {
        let head = [
            "program",
            "threads",
            match self.rows {
                Rows::Turns => "in turn (s)",
                Rows::Cpus | Rows::Programs => "allowed to run (s)",
            },
            "share of the run",
            "turns",
            "mean turn (s)",
        ];
        let row = |lane: &Lane| {
            let ran: f64 = lane.spans.iter().map(|span| span.1 - span.0).sum();
            let turns = lane.spans.len();
            let share = if self.total > 0.0 { 100.0 * ran / self.total } else { 0.0 };
            vec![
                lane.name.clone(),
                lane.threads.to_string(),
                format!("{ran:.3}"),
                format!("{share:.0} %"),
                turns.to_string(),
                format!("{:.3}", ran / turns.max(1) as f64),
            ]
        };
        Table {
            head: head.map(str::to_owned).to_vec(),
            rows: self.programs.iter().map(row).collect(),
        }
    }
}

/// The turns of a program: those by weight, or else the spans in which it was allowed to run.
fn turns(program: &ProgramResult) -> Vec<TimelineEntry> {
    let turns = program.turns.iter().map(|(from, to)| TimelineEntry(*from, *to, None));
    match program.turns.is_empty() {
        true => joined(&program.timeline),
        false => joined(&turns.collect::<Vec<_>>()),
    }
}

/// Joins spans on the same CPUs that follow each other without a gap.
fn joined(timeline: &[TimelineEntry]) -> Vec<TimelineEntry> {
    let mut spans: Vec<TimelineEntry> = Vec::new();
    for span in timeline {
        match spans.last_mut() {
            Some(last) if span.0 - last.1 <= ROUNDING && last.2 == span.2 => last.1 = span.1,
            _ => spans.push(*span),
        }
    }
    spans
}

/// For how many seconds pairs of programs had the same CPU at the same time.
fn shared(programs: &[Lane], all: &CpuSet) -> f64 {
    let spans = programs.iter().enumerate().flat_map(|(i, lane)| {
        lane.spans.iter().map(move |span| (span.0, span.1, span.2.unwrap_or(*all), i))
    });
    let mut spans: Vec<_> = spans.collect();
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut running: Vec<(f64, CpuSet, usize)> = Vec::new();
    let mut sum = 0.0;
    for (from, to, cpus, i) in spans {
        running.retain(|(end, _, _)| *end > from);
        let others = running.iter().filter(|(_, other, of)| *of != i && other.intersects(&cpus));
        sum += others.map(|(end, _, _)| end.min(to) - from).sum::<f64>();
        running.push((to, cpus, i));
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit;

    #[test]
    fn rows_are_cpus_unless_programs_shared_one() {
        assert_eq!(SnapshotPlot::of(&testkit::gang()).rows, Rows::Cpus);
        assert_eq!(SnapshotPlot::of(&testkit::linux()).rows, Rows::Programs);
        assert_eq!(SnapshotPlot::of(&testkit::linux()).row_names(), ["a", "b"]);
    }

    #[test]
    fn turns_by_weight_replace_the_running_time() {
        let mut run = testkit::linux();
        run.programs[0].turns = vec![(0.0, 0.1), (0.3, 0.4)];
        run.programs[1].turns = vec![(0.1, 0.3)];
        let snapshot = SnapshotPlot::of(&run);
        assert_eq!(snapshot.rows, Rows::Turns);
        let drawn = [TimelineEntry(0.0, 0.1, None), TimelineEntry(0.3, 0.4, None)];
        assert_eq!(snapshot.programs[0].spans, drawn);
    }

    #[test]
    fn rows_stay_cpus_if_programs_only_overlap_at_switches() {
        let mut run = testkit::gang();
        run.programs[0].timeline[0].1 += 0.005;
        assert_eq!(SnapshotPlot::of(&run).rows, Rows::Cpus);
        run.programs[0].timeline[0].1 += 0.005;
        assert_eq!(SnapshotPlot::of(&run).rows, Rows::Programs);
    }

    #[test]
    fn an_unbound_program_has_every_row() {
        let mut run = testkit::gang();
        run.machine.cpus = 6;
        let snapshot = SnapshotPlot::of(&run);
        assert_eq!(snapshot.ranges(None), [(0, 5)]);
        assert_eq!(snapshot.ranges(Some(&"0-1,3,5".parse().unwrap())), [(0, 1), (3, 3), (5, 5)]);
    }

    #[test]
    fn cpus_with_high_numbers_are_the_only_rows() {
        let mut run = testkit::gang();
        for program in &mut run.programs {
            program.timeline.iter_mut().for_each(|span| span.2 = Some("4,6".parse().unwrap()));
        }
        assert_eq!(SnapshotPlot::of(&run).row_names(), ["CPU 4", "CPU 6"]);
    }

    #[test]
    fn spans_that_touch_are_one() {
        let mut run = testkit::gang();
        run.programs[0].timeline = vec![
            TimelineEntry(0.0, 0.1, None),
            TimelineEntry(0.100001, 0.2, None),
            TimelineEntry(0.2, 0.3, Some(CpuSet::first(1))),
        ];
        let lane = &SnapshotPlot::of(&run).programs[0];
        assert_eq!((lane.spans.len(), lane.spans[0].1), (2, 0.2));
    }
}
