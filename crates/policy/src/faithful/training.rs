//! Derives a table of slices from the times of training programs, as the paper made table I.
//!
//! *Source.* Section III-A: a few programs of each category (memory, CPU, high and low contention),
//! different from those of the evaluation, were run "with varying time-quantum ranging from 10 ms
//! to 400 ms". Each range of the scaling factor got the slice that suited its programs. The paper
//! does not say how the best slice was found. Ours:
//!
//! - A program belongs to the row in which its scaling factor lies under plain Linux.
//! - Everything is compared with the kernel's own slice, within rounds: in each, the geometric mean
//!   over the row's programs of the time with a slice, relative to that without.
//! - The slice with the smallest mean is *the best*. It counts if it is faster than the kernel's
//!   own also by the upper end of an interval that allows for the choice among several slices
//!   ([`comparison_of_best`]).
//! - If not, there is no significant difference, and the row keeps the kernel's own slice.
//! - A row without a program takes the slice of the nearest row that has one. Of two equally near
//!   ones it takes the shorter slice, with which other programs wait less.
//!
//! Slices need not fall from row to row, as those of table I do.

use cosched_core::Nanos;
use cosched_results::statistics::{Estimate, Verdict, comparison_of_best, ratio_estimate};

/// Rows: tenths of the scaling factor, as in table I.
const ROWS: usize = 10;

/// The measurements of one training program.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingTimes {
    /// Its name.
    pub name: String,
    /// Its scaling factor under plain Linux, 0 to 1.
    pub factor: f64,
    /// Seconds in each round with the kernel's own slice.
    pub kernel: Vec<f64>,
    /// Seconds in each round with each slice, in the order of the slices; as many rounds as in
    /// `kernel`.
    pub with: Vec<Vec<f64>>,
}

/// A row of a derived table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The largest scaling factor that belongs to it.
    pub end: f64,
    /// The slice.
    pub slice: Nanos,
    /// Names of the training programs in it.
    pub programs: Vec<String>,
    /// Where the slice comes from.
    pub basis: Basis,
}

/// Where a row's slice comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Basis {
    /// It was the best, and faster than the kernel's own.
    Measured {
        /// Its time relative to the kernel's own.
        time: Estimate,
        /// Other slices without a significant difference to it.
        as_good: Vec<Nanos>,
    },
    /// Not even the best was significantly different from the kernel's own, which is kept.
    Undecided {
        /// The best slice.
        best: Nanos,
        /// Its time relative to the kernel's own.
        time: Estimate,
    },
    /// There was no training program. The slice is that of the row that ends here.
    Neighbour {
        /// That row's end.
        end: f64,
    },
}

impl Basis {
    /// Its name in one word.
    pub fn name(&self) -> &'static str {
        match self {
            Basis::Measured { .. } => "measured",
            Basis::Undecided { .. } => "undecided",
            Basis::Neighbour { .. } => "neighbour",
        }
    }
}

/// Derives the table; `kernel` is the kernel's own slice. `None` without programs, slices or
/// rounds, or if a time is not positive.
pub fn derive(programs: &[TrainingTimes], slices: &[Nanos], kernel: Nanos) -> Option<Vec<Row>> {
    let members = |row: usize| programs.iter().filter(move |program| row_of(program.factor) == row);
    let mut rows = Vec::new();
    for row in 0..ROWS {
        let own: Vec<&TrainingTimes> = members(row).collect();
        rows.push(if own.is_empty() { None } else { Some(measured(row, &own, slices, kernel)?) });
    }
    let known: Vec<(usize, Row)> =
        rows.iter().enumerate().filter_map(|(i, row)| row.clone().map(|row| (i, row))).collect();
    let nearest = |row: usize| {
        known.iter().min_by_key(|(other, known)| (row.abs_diff(*other), known.slice)).map(
            |(_, known)| Row {
                end: end(row),
                slice: known.slice,
                programs: Vec::new(),
                basis: Basis::Neighbour { end: known.end },
            },
        )
    };
    rows.into_iter().enumerate().map(|(row, found)| found.or_else(|| nearest(row))).collect()
}

/// The row of a factor. A row does not include its beginning, as in [`Quanta`](super::Quanta); 0
/// belongs to the first.
fn row_of(factor: f64) -> usize {
    (0..ROWS - 1).find(|row| factor <= end(*row)).unwrap_or(ROWS - 1)
}

fn end(row: usize) -> f64 {
    (row + 1) as f64 / ROWS as f64
}

fn measured(row: usize, own: &[&TrainingTimes], slices: &[Nanos], kernel: Nanos) -> Option<Row> {
    let base = means(own, |program| Some(&program.kernel))?;
    let with = (0..slices.len())
        .map(|slice| means(own, |program| program.with.get(slice)))
        .collect::<Option<Vec<_>>>()?;
    let times = with
        .iter()
        .map(|times| comparison_of_best(times, &base, slices.len()))
        .collect::<Option<Vec<Estimate>>>()?;
    let best = (0..slices.len()).min_by(|a, b| times[*a].value.total_cmp(&times[*b].value))?;
    let time = times[best];
    let is_as_good = |other: &usize| {
        let against = ratio_estimate(&with[*other], &with[best]).map(|ratio| ratio.verdict());
        *other != best && !matches!(against, Some(Verdict::Better | Verdict::Worse))
    };
    let as_good = || (0..slices.len()).filter(is_as_good).map(|other| slices[other]).collect();
    let (slice, basis) = match time.verdict() {
        Verdict::Better => (slices[best], Basis::Measured { time, as_good: as_good() }),
        _ => (kernel, Basis::Undecided { best: slices[best], time }),
    };
    let programs = own.iter().map(|program| program.name.clone()).collect();
    Some(Row { end: end(row), slice, programs, basis })
}

/// The geometric mean over programs of the times in each round. `None` unless all have equally many
/// rounds, and at least one.
fn means<'a>(
    own: &[&'a TrainingTimes],
    times: impl Fn(&'a TrainingTimes) -> Option<&'a Vec<f64>>,
) -> Option<Vec<f64>> {
    let all = own.iter().map(|program| times(program)).collect::<Option<Vec<_>>>()?;
    let rounds = all.first()?.len();
    let complete = rounds > 0 && all.iter().all(|times| times.len() == rounds);
    let mean = |round: usize| {
        (all.iter().map(|times| times[round].ln()).sum::<f64>() / all.len() as f64).exp()
    };
    complete.then(|| (0..rounds).map(mean).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: Nanos = Nanos::from_millis(3);

    fn slices() -> Vec<Nanos> {
        [1, 10, 100].map(Nanos::from_millis).to_vec()
    }

    /// Rounds that differ a little from each other, by this factor of a second.
    fn rounds(factor: f64) -> Vec<f64> {
        (0..10).map(|round| factor * (1.0 + 0.002 * f64::from(round * 7 % 5))).collect()
    }

    fn trained(factor: f64, with: [f64; 3]) -> TrainingTimes {
        let name = format!("program at {factor}");
        TrainingTimes { name, factor, kernel: rounds(1.0), with: with.map(rounds).to_vec() }
    }

    fn table(programs: &[TrainingTimes]) -> Vec<Row> {
        derive(programs, &slices(), KERNEL).unwrap()
    }

    #[test]
    fn each_row_gets_the_slice_with_which_its_programs_were_fastest() {
        let rows = table(&[trained(0.05, [1.2, 1.0, 0.8]), trained(0.95, [0.7, 0.9, 1.1])]);
        assert_eq!(rows.len(), 10);
        assert_eq!(
            (rows[0].slice, rows[9].slice),
            (Nanos::from_millis(100), Nanos::from_millis(1))
        );
        let Basis::Measured { time, as_good } = &rows[0].basis else { panic!("{rows:?}") };
        assert!((time.value - 0.8).abs() < 1e-9 && time.interval.is_some(), "{time:?}");
        assert!(as_good.is_empty(), "{as_good:?}");
        assert_eq!(rows[0].programs, ["program at 0.05"]);
    }

    #[test]
    fn programs_of_a_row_count_by_their_geometric_mean() {
        // 0.5 and 1.6 make 0.89; 0.9 and 0.9 are worse, though no program loses by them.
        let row =
            |b: [f64; 3]| table(&[trained(0.42, [0.5, 0.9, 1.0]), trained(0.48, b)])[4].clone();
        assert_eq!(row([1.6, 0.9, 1.0]).slice, Nanos::from_millis(1));
        assert_eq!(row([1.7, 0.9, 1.0]).slice, Nanos::from_millis(10));
        assert_eq!(row([1.6, 0.9, 1.0]).programs.len(), 2);
    }

    #[test]
    fn a_factor_on_the_edge_of_two_rows_belongs_to_the_lower_one() {
        let rows = table(&[trained(0.3, [0.5, 1.0, 1.0]), trained(0.30001, [1.0, 1.0, 0.5])]);
        assert_eq!(rows[2].programs, ["program at 0.3"]);
        assert_eq!(rows[3].programs, ["program at 0.30001"]);
        assert_eq!(table(&[trained(0.0, [1.0; 3])])[0].programs.len(), 1);
        assert_eq!(table(&[trained(1.0, [1.0; 3])])[9].programs.len(), 1);
    }

    /// Without a significant difference, the kernel's own slice is kept, and the row says so.
    #[test]
    fn without_a_significant_difference_the_slice_is_kept() {
        let mut program = trained(0.55, [1.0, 1.0, 1.0]);
        // Faster in the median, but not in every round.
        program.with[2] = [0.8, 0.9, 1.3, 0.8, 1.2, 0.9, 0.9, 1.1, 0.8, 0.95].to_vec();
        let row = &table(&[program])[5];
        assert_eq!(row.slice, KERNEL);
        let Basis::Undecided { best, time } = row.basis else { panic!("{row:?}") };
        assert_eq!(best, Nanos::from_millis(100));
        assert!(time.interval.is_some_and(|(low, high)| low < 1.0 && high > 1.0), "{time:?}");
    }

    #[test]
    fn too_few_rounds_decide_nothing() {
        let mut program = trained(0.55, [0.5, 1.0, 1.0]);
        program.kernel.truncate(5);
        program.with.iter_mut().for_each(|times| times.truncate(5));
        let row = &table(&[program])[5];
        assert_eq!((row.slice, row.basis.name()), (KERNEL, "undecided"));
    }

    #[test]
    fn slices_as_good_as_the_best_are_named() {
        let mut program = trained(0.55, [1.0, 0.8, 0.5]);
        program.with[1] = [0.4, 0.6, 0.5, 0.61, 0.39, 0.52, 0.48, 0.5, 0.55, 0.45].to_vec();
        program.with[2] = [0.5; 10].to_vec();
        let row = &table(&[program])[5];
        let Basis::Measured { as_good, .. } = &row.basis else { panic!("{row:?}") };
        assert_eq!(as_good.len(), 1);
        assert!(!as_good.contains(&Nanos::from_millis(1)) && !as_good.contains(&row.slice));
    }

    /// Of two rows that are equally near, the one with the shorter slice is taken.
    #[test]
    fn a_row_without_programs_takes_from_the_nearest() {
        let rows = table(&[trained(0.15, [1.2, 1.0, 0.8]), trained(0.55, [0.7, 0.9, 1.1])]);
        let from = |row: usize| match rows[row].basis {
            Basis::Neighbour { end } => Some((end, rows[row].slice.as_secs_f64() * 1e3)),
            _ => None,
        };
        let rows_from = (0..10).map(from).collect::<Vec<_>>();
        let (low, high) = (Some((0.2, 100.0)), Some((0.6, 1.0)));
        assert_eq!(rows_from, [low, None, low, high, high, None, high, high, high, high]);
    }

    #[test]
    fn a_slice_that_is_best_by_chance_is_hardly_ever_chosen() {
        let mut random = fastrand::Rng::with_seed(5);
        let slices: Vec<Nanos> = (1..=11).map(Nanos::from_millis).collect();
        let mut noisy = || (0..10).map(|_| 0.9 + 0.2 * random.f64()).collect::<Vec<f64>>();
        let chosen = (0..400).filter(|_| {
            let with = slices.iter().map(|_| noisy()).collect();
            let program = TrainingTimes { name: "p".into(), factor: 0.5, kernel: noisy(), with };
            derive(&[program], &slices, KERNEL).unwrap()[4].basis.name() == "measured"
        });
        // 2.5 of 100 tables of one row are allowed to; without the allowance for eleven slices
        // there are several times as many.
        let chosen = chosen.count();
        assert!(chosen <= 16, "{chosen} of 400");
    }

    #[test]
    fn without_programs_there_is_no_table() {
        assert_eq!(derive(&[], &slices(), KERNEL), None);
        assert_eq!(derive(&[trained(0.5, [1.0; 3])], &[], KERNEL), None);
        let none =
            TrainingTimes { kernel: vec![], with: vec![vec![]; 3], ..trained(0.5, [1.0; 3]) };
        assert_eq!(derive(&[none], &slices(), KERNEL), None);
        let mut impossible = trained(0.5, [1.0; 3]);
        impossible.with[0][3] = 0.0;
        assert_eq!(derive(&[impossible], &slices(), KERNEL), None);
    }
}
