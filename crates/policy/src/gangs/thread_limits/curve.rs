//! A program's speed by thread count, as far as that is known.
//!
//! *Problem.* The effect of a further thread is known only where it was tried, and a result from
//! some phases ago may no longer hold.
//!
//! *Idea.* Progress per running time is kept for each thread count that was in force: progress
//! ticks where the program reports them, else instructions, else CPU time outside the kernel. For a
//! count that was not tried, the nearest one that was (by ratio) is used, with the *shape* of the
//! curve between them. The shape is that of the program's solo times with several counts, if these
//! are known, and else perfect scaling. An unknown program is therefore assumed to lose as much as
//! possible by fewer threads.
//!
//! *Limits.* Instructions and CPU time of threads that spin are no progress; the error makes the
//! program seem to scale perfectly at worst. A program that is slower with more threads for that
//! reason is found only by its ticks or its profile.

use cosched_core::{Nanos, Sample, Speedup};

use crate::gangs::params::ThreadLimitParams as Params;

/// The unit of progress, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpeedUnit {
    Ticks,
    Instructions,
    UserTime,
}

/// The progress in a sample, in units of its kind.
pub(super) fn progress(sample: &Sample) -> Option<(SpeedUnit, f64)> {
    let counted = |count: Option<u64>| count.filter(|count| *count > 0).map(|count| count as f64);
    let ticks = counted(sample.progress).map(|ticks| (SpeedUnit::Ticks, ticks));
    let instructions =
        || counted(sample.instructions).map(|count| (SpeedUnit::Instructions, count));
    let user = || sample.user_time.map(|time| (SpeedUnit::UserTime, time.as_secs_f64()));
    ticks.or_else(instructions).or_else(user).filter(|(_, amount)| *amount > 0.0)
}

#[derive(Clone, Copy, Debug)]
struct CurvePoint {
    threads: u16,
    /// Progress per second of running.
    rate: f64,
    readings: f64,
    at: Nanos,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Curve {
    unit: Option<SpeedUnit>,
    /// Ascending by threads.
    points: Vec<CurvePoint>,
}

impl Curve {
    /// Adds progress that was made with this many threads in this time. Readings of different kinds
    /// cannot be compared: the better kind stays.
    pub(super) fn learn(
        &mut self,
        threads: u16,
        progress: (SpeedUnit, f64),
        ran: Nanos,
        now: Nanos,
        params: &Params,
    ) {
        let rank = |unit: SpeedUnit| unit as u8;
        match self.unit {
            Some(unit) if rank(unit) < rank(progress.0) => return,
            Some(unit) if unit == progress.0 => {}
            _ => self.points.clear(),
        }
        self.unit = Some(progress.0);
        let rate = progress.1 / ran.as_secs_f64();
        match self.points.binary_search_by_key(&threads, |point| point.threads) {
            Ok(i) => {
                let point = &mut self.points[i];
                let before = if now.since(point.at) < params.fresh { point.readings } else { 0.0 };
                point.readings = (before + 1.0).min(params.remembered);
                point.rate += (rate - point.rate) / point.readings;
                point.at = now;
            }
            Err(i) => self.points.insert(i, CurvePoint { threads, rate, readings: 1.0, at: now }),
        }
    }

    /// Whether there is a reading with this many threads that is younger than `fresh`.
    pub(super) fn is_fresh(&self, threads: u16, now: Nanos, fresh: Nanos) -> bool {
        self.read(threads).is_some_and(|(_, at)| now.since(at) < fresh)
    }

    /// The number of readings with this many threads, and the time of the last one.
    pub(super) fn read(&self, threads: u16) -> Option<(f64, Nanos)> {
        let point = self.points.iter().find(|point| point.threads == threads)?;
        Some((point.readings, point.at))
    }

    /// The speed with this many threads, in a unit of its own.
    pub(super) fn speed(&self, threads: u16, alone: Option<&Speedup>) -> f64 {
        let shape =
            |n: u16| alone.map_or(f64::from(n), |alone| alone.speed(n)).max(f64::MIN_POSITIVE);
        let ratio = |point: &CurvePoint| {
            let (known, requested) = (f64::from(point.threads), f64::from(threads));
            (known / requested).max(requested / known)
        };
        let nearest = self.points.iter().min_by(|a, b| ratio(a).total_cmp(&ratio(b)));
        match nearest {
            Some(point) => point.rate * shape(threads) / shape(point.threads),
            None => shape(threads),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = Nanos::from_secs(1);
    const FRESH: Nanos = Params::DEFAULT.fresh;

    fn curve(readings: &[(u16, f64)]) -> Curve {
        let mut curve = Curve::default();
        for (threads, amount) in readings {
            let progress = (SpeedUnit::Instructions, *amount);
            curve.learn(*threads, progress, SECOND, SECOND, &Params::DEFAULT);
        }
        curve
    }

    #[test]
    fn untried_counts_scale_from_the_nearest_tried_one() {
        let known = curve(&[(2, 3.0), (8, 6.0)]);
        assert_eq!([1, 2, 3, 8, 16].map(|n| known.speed(n, None)), [1.5, 3.0, 4.5, 6.0, 12.0]);
        assert_eq!(curve(&[]).speed(4, None), 4.0);
    }

    /// Without readings and profile, the guess is perfect scaling.
    #[test]
    fn readings_go_before_the_profile_and_it_before_a_guess() {
        let times = [(1, SECOND), (2, SECOND * 4 / 5)];
        let alone = Speedup::new(&times);
        assert_eq!(curve(&[]).speed(2, alone.as_ref()), 1.25);
        assert_eq!(curve(&[(1, 10.0)]).speed(2, alone.as_ref()), 12.5);
        assert_eq!(curve(&[(1, 10.0), (2, 19.0)]).speed(2, alone.as_ref()), 19.0);
    }

    #[test]
    fn readings_are_averaged_and_old_ones_replaced() {
        let mut known = curve(&[(2, 1.0), (2, 2.0)]);
        assert_eq!(known.speed(2, None), 1.5);
        assert!(
            known.is_fresh(2, Nanos::from_secs(30), FRESH) && !known.is_fresh(1, SECOND, FRESH)
        );
        let later = Nanos::from_secs(62);
        assert!(!known.is_fresh(2, later, FRESH));
        known.learn(2, (SpeedUnit::Instructions, 9.0), SECOND, later, &Params::DEFAULT);
        assert_eq!(known.speed(2, None), 9.0);
    }

    /// A reading of a worse kind never replaces one of a better kind.
    #[test]
    fn a_better_kind_of_reading_replaces_a_worse_one() {
        let mut known = curve(&[(2, 3.0)]);
        known.learn(1, (SpeedUnit::UserTime, 9.0), SECOND, SECOND, &Params::DEFAULT);
        assert_eq!(known.speed(1, None), 1.5);
        known.learn(1, (SpeedUnit::Ticks, 9.0), SECOND, SECOND, &Params::DEFAULT);
        assert_eq!(known.speed(2, None), 18.0);
    }

    #[test]
    fn ticks_come_before_instructions_and_user_time() {
        let id = cosched_core::ProgramId::first(0);
        let user = Sample { user_time: Some(SECOND), ..Sample::empty(id, Nanos::ZERO, SECOND) };
        let instructions = Sample { instructions: Some(7), ..user };
        let ticks = Sample { progress: Some(3), ..instructions };
        let silent = Sample { progress: Some(0), ..instructions };
        assert_eq!(progress(&user), Some((SpeedUnit::UserTime, 1.0)));
        assert_eq!(progress(&instructions), Some((SpeedUnit::Instructions, 7.0)));
        assert_eq!(progress(&ticks), Some((SpeedUnit::Ticks, 3.0)));
        assert_eq!(progress(&silent), Some((SpeedUnit::Instructions, 7.0)));
        assert_eq!(progress(&Sample { user_time: None, ..user }), None);
    }
}
