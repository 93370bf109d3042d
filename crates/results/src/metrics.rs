//! Metrics: how good a run was, for its programs and as a whole.
//!
//! Every metric of the papers that we follow stands here once, with its formula. It serves live
//! runs, simulations and comparisons alike. Some metrics rest on a time that was not measured: a
//! program's solo time, or the end of a program that did not end, or failed. Such a metric is
//! `None`, never a guess: a comparison with an invented number is worth less than none.
//!
//! Sources: \[T\] the thesis on gang scheduling with space sharing, section 4.1; \[B\] the paper on
//! the time donating barrier, section 5.2; \[F\] the paper on fair-progress scheduling, sections
//! 3.1, 6 and 7.2. With i a program, t(i) its turnaround (from its arrival until it is done) and
//! t_alone(i) the time that the same work takes alone on the machine, with the same threads and
//! placement.

use serde::{Deserialize, Serialize};

use cosched_core::Nanos;
use cosched_core::engine::outcome::Gaps;
use cosched_core::estimates::Estimates;

/// What a run was for one program.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProgramTimes {
    /// From its arrival until it was done, t(i); `None` if it never was.
    pub turnaround: Option<Nanos>,
    /// How long it was allowed to run until then.
    pub running: Nanos,
    /// How long it waited until then: before its first start, and frozen.
    pub waiting: Nanos,
    /// The spans in which it was frozen until then.
    pub frozen: Gaps,
    /// The time that the same work takes alone, t_alone(i), where it was measured and the work was
    /// done.
    pub solo: Option<Nanos>,
    /// The solo time with the threads with which it was started, where these were fewer than it
    /// requests.
    pub molded_solo: Option<Nanos>,
    /// CPU time that the same work takes alone, C_alone(i), where it was measured and the work was
    /// done, seconds. CPU time stands for cycles, as at a constant clock.
    pub solo_cpu_seconds: Option<f64>,
    /// CPU time that it used until it was done, C_shared(i), seconds; `None` if it never was.
    pub work_cpu_seconds: Option<f64>,
    /// What the policy has estimated of its speed alone.
    pub estimates: Option<Estimates>,
    /// CPU time that it used in all its runs, also in one that was cut short by the end of the
    /// workload, seconds.
    pub cpu_seconds: f64,
}

impl ProgramTimes {
    /// How many times longer it took than alone, t(i) / t_alone(i). \[F\] eq. 1.
    pub fn slowdown(&self) -> Option<f64> {
        let (turnaround, solo) = self.turnaround_and_solo()?;
        Some(turnaround / solo)
    }

    /// Its speed relative to running alone, f(i) = t_alone(i) / t(i). \[T\] eq. 4.2, there called
    /// the fairness of a program.
    pub fn fairness(&self) -> Option<f64> {
        let (turnaround, solo) = self.turnaround_and_solo()?;
        Some(solo / turnaround)
    }

    /// Time that it ran longer than alone because of its co-runners, in seconds:
    /// t_interference = t - t_alone - t_waiting. \[T\] eq. 4.1. Slightly negative where the run
    /// alone happened to be the slower one. Time that it needs because it was started with fewer
    /// threads is not interference.
    pub fn interference_seconds(&self) -> Option<f64> {
        let (turnaround, solo) = self.turnaround_and_solo()?;
        let alone = self.molded_solo.map_or(solo, Nanos::as_secs_f64);
        Some(turnaround - alone - self.waiting.as_secs_f64())
    }

    /// The mean time that it was frozen at a stretch, in seconds: R_i = average of T_i,j. \[T\] eq.
    /// 4.4. Zero if it was never frozen.
    pub fn responsiveness_seconds(&self) -> f64 {
        self.frozen.total.as_secs_f64() / self.frozen.count.max(1) as f64
    }

    /// The longest time that it was frozen at a stretch, in seconds; zero if it never was.
    pub fn longest_frozen_seconds(&self) -> f64 {
        self.frozen.longest.as_secs_f64()
    }

    /// Its speed-up by cycles, C_alone(i) / (C_shared(i) + C_wasted(i)), where C_wasted(i) is what
    /// was left idle for its training until it was done. \[F\] eq. 6.
    pub fn extended_speedup(&self) -> Option<f64> {
        let (alone, shared) = self.alone_and_shared()?;
        let wasted = self.estimates.map_or(0.0, |estimates| estimates.training_idle_seconds);
        Some(alone / (shared + wasted))
    }

    /// How accurate the estimates of its speed alone are: EstiAcc = IPC_esti_alone / IPC_alone.
    /// \[F\] eq. 8, with IPC_esti_alone = sum of I(q) / sum of (I(q) / IPC_esti_alone(q)), eq. 7.
    /// With the speed IPC_shared of the same quanta, the former is IPC_shared times CPU time over
    /// estimated CPU time alone. Work outside of measured quanta counts as if it had the speed of
    /// the others. 1 is perfect; above 1, it seems faster alone than it is.
    pub fn estimation_accuracy(&self) -> Option<f64> {
        let estimates = self.estimates.filter(|estimates| estimates.solo_cpu_seconds > 0.0)?;
        let faster = estimates.cpu_seconds / estimates.solo_cpu_seconds;
        self.accuracy_without_estimates().map(|accuracy| accuracy * faster)
    }

    /// How accurate its present speed would be as an estimate of its speed alone:
    /// EstiAcc_os = IPC_shared / IPC_alone. \[F\] eq. 9. Of the same work, the instructions are the
    /// same, and C_alone(i) / C_shared(i) is left.
    pub fn accuracy_without_estimates(&self) -> Option<f64> {
        let (alone, shared) = self.alone_and_shared()?;
        Some(alone / shared)
    }

    fn alone_and_shared(&self) -> Option<(f64, f64)> {
        let measured = |seconds: Option<f64>| seconds.filter(|seconds| *seconds > 0.0);
        measured(self.solo_cpu_seconds).zip(measured(self.work_cpu_seconds))
    }

    fn turnaround_and_solo(&self) -> Option<(f64, f64)> {
        let measured =
            |time: Option<Nanos>| time.filter(|t| *t > Nanos::ZERO).map(Nanos::as_secs_f64);
        measured(self.turnaround).zip(measured(self.solo))
    }
}

/// The metrics of the workload as a whole. Metrics that rest on solo times are `None` unless every
/// program was done and its solo time is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Standard deviation (of the population) of the programs'
    /// [`fairness`](ProgramTimes::fairness), F = sigma(f(i)). \[T\] eq. 4.3. Zero is perfectly
    /// fair.
    pub fairness_stddev: Option<f64>,
    /// Largest slowdown / smallest slowdown. \[F\] eq. 2; \[B\]. One is perfectly fair.
    pub unfairness: Option<f64>,
    /// Sum of t_alone(i) / t(i). \[B\]. How many machines, each running one program alone, the run
    /// was worth.
    pub weighted_speedup: Option<f64>,
    /// Sum of [`extended_speedup`](ProgramTimes::extended_speedup), EWSpeedup. \[F\] eq. 6. There,
    /// every CPU is charged that is idle before fewer programs than CPUs are left, so that runs one
    /// after the other gain nothing. Here only training is charged. The sum is therefore `None`
    /// under policies that leave CPUs idle in other ways.
    #[serde(default)]
    pub extended_weighted_speedup: Option<f64>,
    /// The largest [`responsiveness`](ProgramTimes::responsiveness_seconds) of a program,
    /// max(R_i), seconds. \[T\] eq. 4.5.
    pub responsiveness_max_seconds: f64,
    /// The longest time that any program was frozen at a stretch, seconds. Not in the papers: a
    /// mean hides it.
    pub responsiveness_longest_gap_seconds: f64,
    /// CPU time used by the programs / (CPUs x total time): 1 if no CPU was ever idle.
    pub cpu_utilisation: f64,
    /// Mean of t(i), seconds; `None` if a program was not done.
    pub mean_turnaround_seconds: Option<f64>,
}

impl Metrics {
    /// The metrics of a run that took `total` on `cpus` CPUs.
    pub fn of(programs: &[ProgramTimes], total: Nanos, cpus: usize) -> Metrics {
        let fairness = of_all(programs, ProgramTimes::fairness);
        let slowdowns = of_all(programs, ProgramTimes::slowdown);
        let turnarounds = of_all(programs, |p| p.turnaround.map(Nanos::as_secs_f64));
        Metrics {
            fairness_stddev: fairness.as_deref().map(population_stddev),
            unfairness: slowdowns.as_deref().map(max_over_min),
            weighted_speedup: fairness.as_deref().map(|f| f.iter().sum()),
            extended_weighted_speedup: of_all(programs, ProgramTimes::extended_speedup)
                .map(|speedups| speedups.iter().sum()),
            responsiveness_max_seconds: largest(
                programs.iter().map(ProgramTimes::responsiveness_seconds),
            ),
            responsiveness_longest_gap_seconds: largest(
                programs.iter().map(ProgramTimes::longest_frozen_seconds),
            ),
            cpu_utilisation: cpu_utilisation(programs, total, cpus),
            mean_turnaround_seconds: turnarounds.as_deref().map(mean),
        }
    }
}

/// A value for every program; `None` if one of them has none, or if there is no program.
fn of_all<'a>(
    programs: &'a [ProgramTimes],
    value: impl Fn(&'a ProgramTimes) -> Option<f64>,
) -> Option<Vec<f64>> {
    programs.iter().map(value).collect::<Option<Vec<_>>>().filter(|all| !all.is_empty())
}

/// Zero without values.
fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, f64::max)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn population_stddev(values: &[f64]) -> f64 {
    let mean = mean(values);
    (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt()
}

fn max_over_min(values: &[f64]) -> f64 {
    let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let min = values.iter().copied().fold(f64::INFINITY, f64::min);
    max / min
}

/// The share of CPU time that programs used. Zero for a run of no length.
fn cpu_utilisation(programs: &[ProgramTimes], total: Nanos, cpus: usize) -> f64 {
    let available = total.as_secs_f64() * cpus as f64;
    let used: f64 = programs.iter().map(|p| p.cpu_seconds).sum();
    if available > 0.0 { used / available } else { 0.0 }
}

/// The smallest value that at least the given share (0 to 1) of the values do not exceed: the
/// quantile by nearest rank. `None` without values.
pub fn quantile(values: &[Nanos], share: f64) -> Option<Nanos> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAPS: [Nanos; 2] = [Nanos::from_secs(1), Nanos::from_secs(3)];

    fn close(found: Option<f64>, expected: f64) {
        let found = found.expect("every time is known");
        assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
    }

    /// Alone 4 s and 6 s; together 8 s (half speed) and 10 s (0.6 of its speed).
    fn pair() -> [ProgramTimes; 2] {
        let seconds = Nanos::from_secs;
        [
            ProgramTimes {
                turnaround: Some(seconds(8)),
                running: seconds(4),
                waiting: seconds(4),
                frozen: GAPS.into_iter().collect(),
                solo: Some(seconds(4)),
                molded_solo: None,
                solo_cpu_seconds: Some(6.0),
                work_cpu_seconds: Some(8.0),
                estimates: None,
                cpu_seconds: 8.0,
            },
            ProgramTimes {
                turnaround: Some(seconds(10)),
                running: seconds(7),
                waiting: seconds(3),
                frozen: GAPS.into_iter().take(1).collect(),
                solo: Some(seconds(6)),
                molded_solo: None,
                solo_cpu_seconds: Some(6.0),
                work_cpu_seconds: Some(7.0),
                estimates: Some(Estimates {
                    cpu_seconds: 3.0,
                    solo_cpu_seconds: 2.5,
                    training_idle_seconds: 1.0,
                    ..Estimates::default()
                }),
                cpu_seconds: 7.0,
            },
        ]
    }

    #[test]
    fn turnaround_splits_into_alone_waiting_and_interference() {
        let [gang, shared] = pair();
        close(gang.interference_seconds(), 0.0);
        close(shared.interference_seconds(), 1.0);
        close(gang.slowdown(), 2.0);
        close(shared.fairness(), 0.6);
    }

    /// By cycles, with equation 7: 3 s of CPU time at a speed of 1 are 3 units of work. Alone they
    /// would take 2.5 s, so the estimated speed alone is 1.2. The real one is 7/6, as 7 units took
    /// 6 s.
    #[test]
    fn estimates_are_as_accurate_as_their_cycles() {
        let [unestimated, estimated] = pair();
        close(estimated.accuracy_without_estimates(), 6.0 / 7.0);
        close(estimated.estimation_accuracy(), 1.2 / (7.0 / 6.0));
        close(unestimated.accuracy_without_estimates(), 0.75);
        assert_eq!(unestimated.estimation_accuracy(), None);
        let unmeasured = ProgramTimes { solo_cpu_seconds: None, ..estimated };
        assert_eq!((unmeasured.estimation_accuracy(), unmeasured.extended_speedup()), (None, None));
        let metrics = Metrics::of(&[unestimated, unmeasured], Nanos::from_secs(10), 2);
        assert_eq!(metrics.extended_weighted_speedup, None);
    }

    /// What a program takes longer because it runs with fewer threads alone is not caused by its
    /// co-runners.
    #[test]
    fn a_lower_thread_count_is_not_counted_as_interference() {
        let [_, shared] = pair();
        let molded = ProgramTimes { molded_solo: Some(Nanos::from_millis(6500)), ..shared };
        close(molded.interference_seconds(), 0.5);
        close(molded.fairness(), 0.6);
    }

    #[test]
    fn the_workloads_metrics_agree_with_hand_computed_ones() {
        let metrics = Metrics::of(&pair(), Nanos::from_secs(10), 2);
        close(metrics.fairness_stddev, 0.05);
        close(metrics.unfairness, 1.2);
        close(metrics.weighted_speedup, 1.1);
        // 6 of 8 CPU seconds, and 6 of 7 and 1 that was left idle.
        close(metrics.extended_weighted_speedup, 0.75 + 0.75);
        close(metrics.mean_turnaround_seconds, 9.0);
        close(Some(metrics.responsiveness_max_seconds), 2.0);
        close(Some(metrics.responsiveness_longest_gap_seconds), 3.0);
        close(Some(metrics.cpu_utilisation), 0.75);
    }

    #[test]
    fn without_one_time_alone_metrics_are_not_guessed() {
        let [gang, shared] = pair();
        let unprofiled = ProgramTimes { solo: None, ..shared };
        assert_eq!((unprofiled.slowdown(), unprofiled.interference_seconds()), (None, None));
        let metrics = Metrics::of(&[gang, unprofiled], Nanos::from_secs(10), 2);
        assert_eq!(metrics.fairness_stddev, None);
        assert_eq!(metrics.unfairness, None);
        assert_eq!(metrics.weighted_speedup, None);
        close(metrics.mean_turnaround_seconds, 9.0);
    }

    /// A mean over programs that include such a program does not exist either.
    #[test]
    fn a_program_that_never_finished_has_no_slowdown() {
        let [gang, shared] = pair();
        let unfinished = ProgramTimes { turnaround: None, ..shared };
        let metrics = Metrics::of(&[gang, unfinished], Nanos::from_secs(10), 2);
        assert_eq!((unfinished.slowdown(), metrics.mean_turnaround_seconds), (None, None));
        close(Some(metrics.responsiveness_max_seconds), 2.0);
    }

    #[test]
    fn a_run_of_no_programs_and_no_time_has_no_metrics() {
        assert_eq!(Metrics::of(&[], Nanos::ZERO, 0), Metrics::default());
    }

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let values: Vec<Nanos> = (1..=100).rev().map(Nanos).collect();
        assert_eq!(quantile(&values, 0.5), Some(Nanos(50)));
        assert_eq!(quantile(&values, 0.99), Some(Nanos(99)));
        assert_eq!(quantile(&values, 1.0), Some(Nanos(100)));
        assert_eq!(quantile(&[Nanos(7)], 0.5), Some(Nanos(7)));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
