//! Programs' progress in a moment, as far as the machine can tell.
//!
//! Progress is in instructions where they are counted, else in CPU time outside the kernel. A
//! moment may have several samples, since programs are measured for other reasons, too. Two moments
//! are compared only where the programs and the units are equal in both: instructions cannot be
//! compared with seconds.

use std::collections::BTreeMap;

use cosched_core::{Nanos, ProgramId, Quality, Sample};

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct MomentProgress(BTreeMap<ProgramId, ProgramProgress>);

/// The progress of one program in a moment, as far as that is known.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ProgramProgress {
    seconds: f64,
    /// Instructions in units of 10^9, about the progress of a second; `None` if they were not
    /// counted all the time.
    instructions: Option<f64>,
    /// CPU time outside the kernel; `None` if it was not measured all the time.
    user_seconds: Option<f64>,
    is_exact: bool,
    /// It did not run: nothing is counted of a program that does not run.
    is_idle: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum ProgressUnit {
    Instructions,
    Time,
}

impl ProgramProgress {
    /// Progress per second; zero is equal in every unit.
    fn rate(&self) -> Option<(f64, Option<ProgressUnit>)> {
        match (self.instructions, self.user_seconds) {
            _ if self.is_idle => Some((0.0, None)),
            (Some(count), _) => Some((count / self.seconds, Some(ProgressUnit::Instructions))),
            (None, Some(time)) => Some((time / self.seconds, Some(ProgressUnit::Time))),
            (None, None) => None,
        }
    }
}

impl MomentProgress {
    pub(super) fn add(&mut self, sample: &Sample) {
        let seconds = (sample.to - sample.from).as_secs_f64();
        if sample.thread.is_some() || seconds <= 0.0 {
            return;
        }
        let part = self.0.entry(sample.program).or_insert(ProgramProgress {
            seconds: 0.0,
            instructions: Some(0.0),
            user_seconds: Some(0.0),
            is_exact: true,
            is_idle: true,
        });
        part.seconds += seconds;
        let instructions = sample.instructions.filter(|count| *count > 0);
        let used = sample.on_cpu.max(sample.user_time.unwrap_or_default());
        if used == Nanos::ZERO && instructions.is_none() && sample.quality != Quality::Missing {
            return;
        }
        let sum = |sum: Option<f64>, one: Option<f64>| Some(sum? + one?);
        part.instructions = sum(part.instructions, instructions.map(|count| count as f64 / 1e9));
        part.user_seconds = sum(part.user_seconds, sample.user_time.map(Nanos::as_secs_f64));
        part.is_exact &= sample.quality == Quality::Exact;
        part.is_idle = false;
    }

    /// Whether the progress of any program is only known in ticks of the kernel.
    pub(super) fn is_coarse(&self) -> bool {
        let in_ticks = |part: &ProgramProgress| {
            matches!(part.rate(), Some((_, Some(ProgressUnit::Time)))) && !part.is_exact
        };
        self.0.values().any(in_ticks)
    }

    /// The logarithm of the progress here over that there, the mean over the programs with known
    /// progress. `None` if the programs or units are not equal in both, or if there are none.
    /// `floor` is added to every program's progress, so that an idle program decides nothing.
    pub(super) fn log_ratio(&self, without: &MomentProgress, floor: f64) -> Option<f64> {
        let known = |progress: &MomentProgress| -> Vec<(ProgramId, f64, Option<ProgressUnit>)> {
            let rates = progress.0.iter().map(|(id, part)| (*id, part.rate()));
            rates.filter_map(|(id, rate)| rate.map(|(rate, unit)| (id, rate, unit))).collect()
        };
        let (with, without) = (known(self), known(without));
        let pairs = with.iter().zip(&without);
        let alike =
            |a: Option<ProgressUnit>, b: Option<ProgressUnit>| a == b || a.is_none() || b.is_none();
        let same = with.len() == without.len()
            && pairs.clone().all(|(a, b)| a.0 == b.0 && alike(a.2, b.2));
        let logarithms = pairs.map(|(a, b)| ((a.1 + floor) / (b.1 + floor)).ln());
        (same && !with.is_empty()).then(|| logarithms.sum::<f64>() / with.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOOR: f64 = 0.01;
    const A: ProgramId = ProgramId::first(0);
    const B: ProgramId = ProgramId::first(1);
    const SECOND: Nanos = Nanos::from_secs(1);

    fn sample(id: ProgramId, seconds: f64, instructions: Option<u64>) -> Sample {
        let time = Nanos((seconds * 1e9) as u64);
        Sample {
            on_cpu: time,
            user_time: Some(time),
            instructions,
            quality: Quality::Exact,
            ..Sample::empty(id, Nanos::ZERO, SECOND)
        }
    }

    fn progress(samples: &[Sample]) -> MomentProgress {
        let mut progress = MomentProgress::default();
        samples.iter().for_each(|sample| progress.add(sample));
        progress
    }

    #[test]
    fn instructions_are_not_compared_with_seconds() {
        let counted = progress(&[sample(A, 0.5, Some(2_000_000_000))]);
        let not_counted = progress(&[sample(A, 0.5, None)]);
        assert_eq!(counted.log_ratio(&not_counted, FLOOR), None);
        assert_eq!(counted.log_ratio(&counted, FLOOR), Some(0.0));
        let partly = progress(&[sample(A, 0.5, Some(9)), sample(A, 0.5, None)]);
        assert_eq!(partly.log_ratio(&not_counted, FLOOR), Some(0.0));
    }

    /// A program that is idle now and then does not keep the others from being compared.
    #[test]
    fn an_occasionally_idle_program_is_still_compared() {
        let idle = Sample { user_time: None, ..sample(B, 0.0, None) };
        let with = progress(&[sample(A, 1.0, None), idle]);
        let without = progress(&[sample(A, 0.5, None), sample(B, 0.0001, None)]);
        assert!(with.log_ratio(&without, FLOOR).is_some_and(|ratio| ratio > 0.3), "{with:?}");
        let unknown = Sample { quality: Quality::Missing, ..idle };
        assert_eq!(progress(&[sample(A, 1.0, None), unknown]).log_ratio(&without, FLOOR), None);
    }

    #[test]
    fn samples_of_one_moment_are_added_up() {
        let whole = progress(&[Sample { to: SECOND * 2, ..sample(A, 1.0, None) }]);
        let parts = progress(&[sample(A, 0.9, None), sample(A, 0.1, None)]);
        assert!(whole.log_ratio(&parts, FLOOR).is_some_and(|ratio| ratio.abs() < 1e-9));
    }
}
