//! The derived table beside table I, for people and as JSON.

use cosched_core::Nanos;
use cosched_linux::kernel::sched_attr::LONGEST_SLICE;
use cosched_policy::{Basis, Quanta, Row};
use cosched_results::result::MachineDescription;
use cosched_results::statistics::{Estimate, comparison_of_best};
use serde::Serialize;

use super::live::Program;
use crate::ui::failure::Failure;
use crate::ui::table::{number, table, text};

/// The version of the JSON document.
const SCHEMA: &str = "cosched-calibrate-quanta/1";

/// All that came of a calibration.
pub(super) struct Calibration<'a> {
    pub(super) machine: &'a MachineDescription,
    /// The kernel's own slice.
    pub(super) kernel: Nanos,
    pub(super) slices: &'a [Nanos],
    /// Complete ones.
    pub(super) rounds: usize,
    pub(super) interrupted: bool,
    pub(super) programs: &'a [Program],
    pub(super) rows: &'a [Row],
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    machine: &'a MachineDescription,
    kernel_slice_seconds: f64,
    slices_seconds: Vec<f64>,
    rounds: usize,
    interrupted: bool,
    programs: Vec<ProgramDocument<'a>>,
    rows: Vec<RowDocument<'a>>,
}

#[derive(Serialize)]
struct ProgramDocument<'a> {
    name: &'a str,
    command: &'a [String],
    threads: Option<u16>,
    scaling_factor: f64,
    scaling_factor_least: f64,
    scaling_factor_largest: f64,
    lock_contention: f64,
    miss_ratio: Option<f64>,
    kernel_seconds: &'a [f64],
    slice_seconds: &'a [Vec<f64>],
}

#[derive(Serialize)]
struct RowDocument<'a> {
    up_to: f64,
    slice_seconds: f64,
    table_1_seconds: f64,
    basis: &'static str,
    programs: &'a [String],
    best_seconds: Option<f64>,
    time: Option<Estimate>,
    as_good_seconds: Vec<f64>,
    neighbour: Option<f64>,
}

impl ProgramDocument<'_> {
    fn of(program: &Program) -> ProgramDocument<'_> {
        let Program { command, threads, lock_contention, miss_ratio, factors, times } = program;
        ProgramDocument {
            name: &times.name,
            command,
            threads: *threads,
            scaling_factor: times.factor,
            scaling_factor_least: factors.0,
            scaling_factor_largest: factors.1,
            lock_contention: *lock_contention,
            miss_ratio: *miss_ratio,
            kernel_seconds: &times.kernel,
            slice_seconds: &times.with,
        }
    }
}

impl RowDocument<'_> {
    fn of(row: &Row) -> RowDocument<'_> {
        let Row { end, slice, programs, basis } = row;
        let (best, time, as_good, neighbour) = match basis {
            Basis::Measured { time, as_good } => (Some(*slice), Some(*time), &as_good[..], None),
            Basis::Undecided { best, time } => (Some(*best), Some(*time), &[][..], None),
            Basis::Neighbour { end } => (None, None, &[][..], Some(*end)),
        };
        RowDocument {
            up_to: *end,
            slice_seconds: slice.as_secs_f64(),
            table_1_seconds: Quanta::of_the_paper().slice(*end).as_secs_f64(),
            basis: basis.name(),
            programs,
            best_seconds: best.map(Nanos::as_secs_f64),
            time,
            as_good_seconds: seconds(as_good),
            neighbour,
        }
    }
}

fn seconds(slices: &[Nanos]) -> Vec<f64> {
    slices.iter().map(|slice| slice.as_secs_f64()).collect()
}

impl Calibration<'_> {
    pub(super) fn json(&self) -> Result<String, Failure> {
        let document = Document {
            schema: SCHEMA,
            machine: self.machine,
            kernel_slice_seconds: self.kernel.as_secs_f64(),
            slices_seconds: seconds(self.slices),
            rounds: self.rounds,
            interrupted: self.interrupted,
            programs: self.programs.iter().map(ProgramDocument::of).collect(),
            rows: self.rows.iter().map(RowDocument::of).collect(),
        };
        serde_json::to_string_pretty(&document).map_err(Failure::broken)
    }

    /// The programs, and the rows below.
    pub(super) fn table(&self) -> String {
        let header =
            ["program", "scaling factor", "at locks", "misses", "best slice", "time with it"];
        let mut programs = table(&header);
        for program in self.programs {
            let times = &program.times;
            let of = |with: &Vec<f64>| comparison_of_best(with, &times.kernel, self.slices.len());
            let best =
                times.with.iter().zip(self.slices).filter_map(|(with, s)| Some((*s, of(with)?)));
            let best = best.min_by(|a, b| a.1.value.total_cmp(&b.1.value));
            let (low, high) = program.factors;
            programs.add_row([
                text(&times.name),
                number(format!("{:.2} ({low:.2} to {high:.2})", times.factor)),
                number(format!("{:.0} %", program.lock_contention * 100.0)),
                number(
                    program.miss_ratio.map_or("–".to_owned(), |r| format!("{:.0} %", r * 100.0)),
                ),
                number(best.map_or("–".to_owned(), |(slice, _)| milliseconds(slice))),
                number(best.map_or("–".to_owned(), |(_, time)| time.to_string())),
            ]);
        }
        let mut rows = table(&["scaling factor up to", "table I ms", "live ms", "here ms", "why"]);
        for row in self.rows {
            let paper = Quanta::of_the_paper().slice(row.end);
            rows.add_row([
                number(format!("{:.1}", row.end)),
                number(milliseconds(paper)),
                number(milliseconds(paper.min(LONGEST_SLICE))),
                number(milliseconds(row.slice)),
                text(&why(row)),
            ]);
        }
        let lines = [
            format!(
                "{}; {} round(s){}. Times are against those with the kernel's own slice, {} ms, \
                 and their intervals allow \
                 for having chosen the best of {}.",
                self.machine_in_words(),
                self.rounds,
                if self.interrupted { ", interrupted" } else { "" },
                milliseconds(self.kernel),
                self.slices.len()
            ),
            "live: what the kernel grants of table I, 100 ms at most.".to_owned(),
        ];
        format!("{programs}\n\n{rows}\n{}", lines.join("\n"))
    }

    /// The machine for people.
    pub(super) fn machine_in_words(&self) -> String {
        let MachineDescription { cpus, model, kernel } = self.machine;
        let model = model.as_deref().unwrap_or("unknown model");
        format!("{cpus} CPUs, {model}, Linux {kernel}")
    }
}

fn why(row: &Row) -> String {
    let programs = match row.programs.len() {
        1 => "1 program".to_owned(),
        n => format!("{n} programs"),
    };
    match &row.basis {
        Basis::Measured { time, as_good } => {
            let as_good: Vec<String> = as_good.iter().map(|slice| milliseconds(*slice)).collect();
            let suffix = match as_good.is_empty() {
                true => String::new(),
                false => format!("; no significant difference to {} ms", as_good.join(", ")),
            };
            format!("{programs}: {time}{suffix}")
        }
        Basis::Undecided { best, time } => format!(
            "{programs}: no significant difference, so the kernel's own slice is kept; best {} \
             ms: {time}",
            milliseconds(*best)
        ),
        Basis::Neighbour { end } => format!("no program: as up to {end:.1}"),
    }
}

fn milliseconds(slice: Nanos) -> String {
    let milliseconds = slice.as_secs_f64() * 1e3;
    let text = format!("{milliseconds:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use cosched_policy::{TrainingTimes, derive};

    use super::*;

    fn shown<T>(show: impl Fn(&Calibration<'_>) -> T) -> T {
        let machine =
            MachineDescription { cpus: 2, model: Some("M".into()), kernel: "6.18".into() };
        let slices = [Nanos::from_micros(100), Nanos::from_millis(100)];
        let rounds = |factor: f64| (0..10).map(|r| factor * (1.0 + f64::from(r) / 1e3)).collect();
        let program = |factor: f64, with: [f64; 2]| Program {
            command: vec!["cg".into()],
            threads: Some(4),
            lock_contention: 1.0 - factor,
            miss_ratio: None,
            factors: (factor - 0.01, factor + 0.01),
            times: TrainingTimes {
                name: format!("cg at {factor}"),
                factor,
                kernel: rounds(1.0),
                with: with.map(rounds).to_vec(),
            },
        };
        let programs = [program(0.05, [1.1, 0.8]), program(0.95, [1.0, 1.1])];
        let times: Vec<TrainingTimes> =
            programs.iter().map(|program| program.times.clone()).collect();
        let kernel = Nanos(2_800_000);
        let rows = derive(&times, &slices, kernel).unwrap();
        show(&Calibration {
            machine: &machine,
            kernel,
            slices: &slices,
            rounds: 10,
            interrupted: false,
            programs: &programs,
            rows: &rows,
        })
    }

    #[test]
    fn the_table_is_shown_with_table_1_and_reasons() {
        let text = shown(|calibration| calibration.table());
        let line = |begin: &str| {
            let line = text.lines().find(|line| line.trim_start().starts_with(begin));
            line.unwrap_or_else(|| panic!("{begin}: {text}"))
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert!(
            line("0.1 ").starts_with("0.1 250 100 100 1 program: 0.800 (0.800 to 0.800)"),
            "{text}"
        );
        assert_eq!(line("0.5 "), "0.5 100 100 100 no program: as up to 0.1", "{text}");
        let undecided = "1.0 10 10 2.8 1 program: no significant difference, so the kernel's own \
                         slice is kept; best 0.1 ms: 1.000";
        assert!(line("1.0 ").starts_with(undecided), "{text}");
        assert!(text.contains("cg at 0.05") && text.contains("0.05 (0.04 to 0.06)"), "{text}");
    }

    #[test]
    fn scripts_find_every_measurement_and_the_basis_of_each_row() {
        let document: serde_json::Value =
            serde_json::from_str(&shown(|calibration| calibration.json()).unwrap()).unwrap();
        assert_eq!(document["schema"], SCHEMA);
        assert_eq!(document["kernel_slice_seconds"], 0.0028);
        assert_eq!(document["programs"][0]["slice_seconds"][1].as_array().unwrap().len(), 10);
        let rows = document["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 10);
        let of = |row: usize| {
            (rows[row]["basis"].as_str().unwrap(), rows[row]["slice_seconds"].as_f64())
        };
        assert_eq!(of(0), ("measured", Some(0.1)));
        assert_eq!((of(4), rows[4]["neighbour"].as_f64()), (("neighbour", Some(0.1)), Some(0.1)));
        assert_eq!(
            (of(9), rows[9]["best_seconds"].as_f64()),
            (("undecided", Some(0.0028)), Some(0.0001))
        );
        assert_eq!(rows[0]["table_1_seconds"], 0.25);
    }

    #[test]
    fn times_are_shown_without_idle_digits() {
        let texts: Vec<String> =
            [100_000, 2_800_000, 10_000_000, 100_000_000].map(|n| milliseconds(Nanos(n))).to_vec();
        assert_eq!(texts, ["0.1", "2.8", "10", "100"]);
    }
}
