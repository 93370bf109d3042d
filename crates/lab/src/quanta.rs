//! `cosched calibrate quanta`: a table of slices for this machine, made as the paper made table I.
//!
//! *Source.* The paper on faithful scheduling, section III-A: programs of each category, others
//! than those of the evaluation, were run with many slices, and each range of the scaling factor
//! got the slice that suited its programs. How that is found is ours: docs/research/quanta.md.
//!
//! Every run is one of [`faithful`](Kind::Faithful) without its guard, so all are measured alike.
//! All are in the class in which that policy uses the table (`carried_out`): `batch` with the
//! kernel's own slice, or `batch-slice` with a table of one row.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use cosched_core::engine::outcome::Ended;
use cosched_core::{Actuator, Nanos, scaling_factor, to_nine_digits};
use cosched_linux::kernel::sched_attr::default_slice;
use cosched_policy::reasons::FaithfulReason;
use cosched_policy::{Kind, Quanta};
use cosched_results::statistics::{Verdict, comparison_of_best};
use cosched_workload::{ProgramSpec, Repeat, Workload};

use crate::alone;
use crate::how::{How, MeasureChoices};
use crate::session::Session;
use crate::stop::MeasuringStop;
use crate::ui::failure::{Failure, exit_code};
use crate::ui::pace::{Pace, order};
use crate::ui::{Talk, print, say};

/// How often a run is measured. In less, threads that only wait for their turn would seem idle.
const INTERVAL: Duration = Duration::from_millis(50);
/// Threads per CPU, for programs without a thread count.
const LOADS: [u16; 2] = [2, 4];
/// Rows: tenths of the scaling factor, as in table I.
const ROWS: usize = 10;

/// A training program with a thread count, and what was measured of it.
#[derive(Clone, Debug)]
struct TrainingProgram {
    spec: ProgramSpec,
    /// The scaling factor in each run, with the kernel's own slice.
    factors: Vec<f64>,
    /// The seconds of each round, with the kernel's own slice and then with each of the others.
    seconds: Vec<Vec<f64>>,
}

#[derive(Clone, Debug, PartialEq)]
struct Row {
    slice: Nanos,
    /// Where the slice comes from, in one word.
    basis: &'static str,
    why: String,
}

/// Runs the programs of a jobs file with each slice this often, and prints the table.
///
/// # Errors
/// When something does not fit, or breaks on the way.
pub fn quanta(training: &Path, slices: &[Nanos], runs: u16) -> Result<ExitCode, Failure> {
    let none = "nothing to calibrate: slices of single threads need Linux 6.12 or later";
    let kernel = default_slice().map_err(Failure::broken)?;
    let kernel = kernel.ok_or_else(|| Failure::Input(none.to_owned()))?;
    let workload = Workload::load(training).map_err(|error| {
        Failure::Input(format!(
            "{error}. Training programs are not part of an installed package: in cosched's source \
             tree workloads/training.toml lists some, which `make kernels` builds; or name a jobs \
             file of your own programs, but not of those that the table is for"
        ))
    })?;
    let session = Session::here()?;
    let mut programs = with_loads(&workload, session.usable.cpus.len());
    programs.iter().try_for_each(|program| session.executable(&program.spec).map(drop))?;
    session.tell_if_busy(Talk::Usual);
    let ended = MeasuringStop::ended(train(&session, &mut programs, slices, runs))?;
    if ended != Ended::Complete {
        say(format_args!("interrupted: there is no table, and nothing is kept"));
        return Ok(exit_code(ended, true));
    }
    let rows = derive(&programs, slices, kernel);
    if rows.is_empty() {
        let text =
            "no program ran long enough to see what its threads wait for; give them more work";
        return Err(Failure::Broken(text.to_owned()));
    }
    for short in programs.iter().filter(|one| one.factors.is_empty()) {
        let name = &short.spec.name;
        say(format_args!(
            "{name} is left out: it was too short to see what its threads wait for; give it more \
             work"
        ));
    }
    print(file(&rows, &session.description.to_string()).trim_end())?;
    say(format_args!("keep the table in a file, and use it with --policy faithful --quanta FILE"));
    Ok(exit_code(ended, true))
}

/// The table as `--quanta` reads it.
fn file(rows: &[Row], machine: &str) -> String {
    let plain = |text: &str| text.replace(char::is_control, " ");
    let (base, with_slice) = (carried_out(None), carried_out(Some(Nanos::ZERO)));
    let head = format!(
        "schema = {:?}\nmachine = {:?}\n\n# Trained with {with_slice}, against {base} \
         with the kernel's own slice.\n",
        Quanta::SCHEMA,
        plain(machine)
    );
    let row = |(i, row): (usize, &Row)| {
        let (end, milliseconds) = (end(i), row.slice.as_secs_f64() * 1e3);
        format!(
            "\n# {}\n[[row]]\nup_to = {end:?}\nslice_milliseconds = {milliseconds:?}\n\
             basis = {:?}\n",
            plain(&row.why),
            row.basis
        )
    };
    std::iter::once(head).chain(rows.iter().enumerate().map(row)).collect()
}

/// Every program with every thread count; one that names its threads has that count only.
fn with_loads(workload: &Workload, cpus: usize) -> Vec<TrainingProgram> {
    let counts = |spec: &ProgramSpec| match spec.threads {
        Some(count) => vec![count],
        None => LOADS.map(|load| load.saturating_mul(cpus as u16)).to_vec(),
    };
    let with = |spec: &ProgramSpec, count: u16| {
        let name = format!("{}-{count}t", spec.name);
        let spec = ProgramSpec { name, threads: Some(count), ..spec.clone() };
        TrainingProgram { spec, factors: Vec::new(), seconds: Vec::new() }
    };
    let all = |spec| counts(spec).into_iter().map(move |count| with(spec, count));
    workload.programs.iter().flat_map(all).collect()
}

/// Runs everything, round by round. All runs of a program in a round follow each other, so that
/// what is compared happened close together. Each round begins with the next slice.
fn train(
    session: &Session,
    programs: &mut [TrainingProgram],
    slices: &[Nanos],
    runs: u16,
) -> Result<(), MeasuringStop> {
    let slices: Vec<_> = [None].into_iter().chain(slices.iter().copied().map(Some)).collect();
    programs.iter_mut().for_each(|one| one.seconds = vec![Vec::new(); slices.len()]);
    let mut pace = Pace::new(programs.len(), runs, runs.into());
    for round in 0..runs {
        for program in programs.iter_mut() {
            pace.begin(round, &program.spec.name);
            for arm in order(slices.len(), round) {
                let (seconds, factor) = run(session, &program.spec, slices[arm])?;
                program.seconds[arm].push(seconds);
                program.factors.extend(factor);
            }
        }
    }
    Ok(())
}

/// Runs a program alone with this slice; `None`: the kernel's own. Returns its seconds, and its
/// scaling factor before the slice was given.
fn run(
    session: &Session,
    spec: &ProgramSpec,
    slice: Option<Nanos>,
) -> Result<(f64, Option<f64>), MeasuringStop> {
    let quanta = slice.map(|slice| Quanta::new(vec![(1.0, slice)])).transpose();
    let how = How::from(MeasureChoices {
        interval: Some(INTERVAL),
        no_guard: true,
        actuators: Some(vec![carried_out(slice)]),
        quanta: quanta.map_err(Failure::input)?,
        ..MeasureChoices::default()
    });
    let (start, after, repeat, group) = (Nanos::ZERO, Vec::new(), Repeat::Times(1), None);
    let alone = ProgramSpec { start, after, repeat, group, ..spec.clone() };
    let (result, seconds) = alone::run_once(session, alone, Kind::Faithful, &how, false)?;
    let reasons = result.decisions.iter().flat_map(|made| &made.reasons);
    let factor = reasons.filter_map(|reason| reason.why.read()).find_map(|why| match why {
        FaithfulReason::Slice { lock_contention, miss_ratio, io_wait, .. } => {
            Some(scaling_factor(lock_contention, miss_ratio, io_wait))
        }
        _ => None,
    });
    Ok((seconds, factor))
}

/// What the policy without its guard carries out with this slice (section III: "Same priority is
/// assigned to all the threads"), so that two runs differ by their slices alone.
fn carried_out(slice: Option<Nanos>) -> Actuator {
    slice.map_or(Actuator::Batch, |_| Actuator::BatchSlice)
}

/// The rows of the table. A row without a program takes the slice of the nearest row that has one;
/// of two equally near ones the shorter slice, with which other programs wait less. No rows: no
/// program was ever measured.
fn derive(programs: &[TrainingProgram], slices: &[Nanos], kernel: Nanos) -> Vec<Row> {
    let row_of = |program: &TrainingProgram| {
        let factor = to_nine_digits(mean(&program.factors)?);
        // A row does not include its beginning, and 0 belongs to the first.
        Some((0..ROWS - 1).find(|row| factor <= end(*row)).unwrap_or(ROWS - 1))
    };
    let found = |row: usize| {
        let own: Vec<&TrainingProgram> =
            programs.iter().filter(|one| row_of(one) == Some(row)).collect();
        Some((row, measured(&own, slices, kernel)?))
    };
    let known: Vec<(usize, Row)> = (0..ROWS).filter_map(found).collect();
    let row = |row: usize| {
        let distance = |(other, found): &&(usize, Row)| (row.abs_diff(*other), found.slice);
        let (from, found) = known.iter().min_by_key(distance)?;
        let why = format!("no program; as up to {}", end(*from));
        let neighbour = Row { basis: "neighbour", why, ..*found };
        Some(if *from == row { found.clone() } else { neighbour })
    };
    (0..ROWS).filter_map(row).collect()
}

fn end(row: usize) -> f64 {
    (row + 1) as f64 / ROWS as f64
}

/// The row of these programs. The best slice has the least geometric mean over programs and rounds.
/// It is taken if it is faster than the kernel's own by an interval that allows for the choice.
fn measured(own: &[&TrainingProgram], slices: &[Nanos], kernel: Nanos) -> Option<Row> {
    let rounds = own.first()?.seconds.first()?.len();
    let logs = |arm: usize, round: usize| own.iter().map(move |one| one.seconds[arm][round].ln());
    let means = |arm: usize| -> Option<Vec<f64>> {
        let of_round = |round| Some(mean(&logs(arm, round).collect::<Vec<_>>())?.exp());
        (0..rounds).map(of_round).collect()
    };
    let base = means(0)?;
    let times = slices.iter().zip(1..).filter_map(|(slice, arm)| {
        Some((*slice, comparison_of_best(&means(arm)?, &base, slices.len())?))
    });
    let (best, time) = times.min_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
    let names: Vec<&str> = own.iter().map(|one| &*one.spec.name).collect();
    let why = format!("best with {best}, {time}; {}", names.join(", "));
    Some(match time.verdict() {
        Verdict::Better => Row { slice: best, basis: "measured", why },
        _ => Row { slice: kernel, basis: "undecided", why },
    })
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use cosched_policy::FaithfulOptions;

    use super::*;

    /// A program of ten rounds, which differ a little, with the kernel's own slice of 3 ms and with
    /// 1 and 100 ms.
    fn trained(factor: f64, with: [f64; 2]) -> TrainingProgram {
        let text = "[[program]]\ncommand = ['cg']";
        let workload = Workload::parse(text, "/tmp/jobs.toml".as_ref()).unwrap();
        let rounds =
            |seconds: f64| (0..10).map(|i| seconds * (1.0 + 2e-3 * f64::from(i * 7 % 5))).collect();
        let seconds = [1.0, with[0], with[1]].map(rounds).to_vec();
        TrainingProgram { spec: workload.programs[0].clone(), factors: vec![factor], seconds }
    }

    fn table(programs: &[TrainingProgram]) -> Vec<(u64, &'static str)> {
        let [short, kernel, long] = [1, 3, 100].map(Nanos::from_millis);
        let rows = derive(programs, &[short, long], kernel);
        if let Ok(table) = Quanta::parse(&file(&rows, "a \"fast\" one\n[[row]]")) {
            assert!(rows.iter().enumerate().all(|(i, row)| table.slice(end(i)) == row.slice));
        }
        rows.iter().map(|row| (row.slice.0 / 1_000_000, row.basis)).collect()
    }

    #[test]
    fn rows_have_their_best_slice_or_their_neighbours() {
        let rows = table(&[trained(0.15, [1.2, 0.8]), trained(0.55, [0.7, 1.1])]);
        let (low, high) = ((100, "neighbour"), (1, "neighbour"));
        let (of_low, of_high) = ((100, "measured"), (1, "measured"));
        assert_eq!(rows, [low, of_low, low, high, high, of_high, high, high, high, high]);
        assert_eq!(table(&[trained(0.3, [1.0, 0.5]), trained(0.31, [0.5, 1.0])])[2], of_low);
        // The mean of three times 0.1 is above 0.1 in floating-point arithmetic.
        let thrice = TrainingProgram { factors: vec![0.1; 3], ..trained(0.1, [1.0, 0.5]) };
        assert_eq!(table(&[thrice])[..2], [of_low, low]);
        assert_eq!(table(&[TrainingProgram { factors: vec![], ..trained(0.5, [0.5; 2]) }]), []);
    }

    /// 0.5 and 1.7 make 0.92, and 0.9 twice makes 0.9.
    #[test]
    fn programs_of_a_row_count_by_their_geometric_mean() {
        let row = |other| table(&[trained(0.42, [0.5, 0.9]), trained(0.48, [other, 0.9])])[4];
        assert_eq!((row(1.6), row(1.7)), ((1, "measured"), (100, "measured")));
    }

    /// Otherwise the table would be for settings that no program gets.
    #[test]
    fn training_carries_out_what_faithful_does_without_its_guard() {
        let with_slice = carried_out(Some(Nanos::from_millis(1)));
        assert_eq!(FaithfulOptions::of_the_paper().actuators, [with_slice]);
        let [bare, full] = [None, Some(Nanos::from_millis(1))]
            .map(|slice| carried_out(slice).settings(slice.unwrap_or_default(), None).class);
        assert_eq!(bare, full, "a comparison is of slices, not of classes");
        let table = file(&[], "here");
        assert!(table.contains("# Trained with batch-slice, against batch"), "{table}");
    }

    #[test]
    fn without_a_significant_difference_the_slice_is_kept() {
        let mut program = trained(0.5, [1.0, 0.5]);
        program.seconds[2] = [0.8, 0.9, 1.3, 0.8, 1.2, 0.9, 0.9, 1.1, 0.8, 0.95].to_vec();
        assert_eq!(table(&[program])[4], (3, "undecided"));
        let mut program = trained(0.5, [1.0, 0.5]);
        program.seconds.iter_mut().for_each(|rounds| rounds.truncate(5));
        assert_eq!(table(&[program])[4], (3, "undecided"), "too few rounds");
    }
}
