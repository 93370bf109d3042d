//! Algorithm 1: the programs with the least progress run.
//!
//! *Source.* The FPS paper, section 3.2, algorithm 1: the program with the smallest progress, again
//! and again until no CPU is left. Ours: a program may have several CPUs. The walk goes on past a
//! program that does not fit, so that the machine is filled. A program that is passed over falls
//! behind until it is the first. No program is frozen for too long, however far ahead it is.
//!
//! Where speeds are known by co-runners, there is a choice among the programs that have almost as
//! little progress as the first, within a quantum. While the speeds of some of them with the first
//! are not known, the one that has run with the first least often is chosen. Afterwards the one
//! with the highest of these speeds is chosen. Programs that slow each other down are thus kept
//! apart, as far as equal progress allows. That makes slowdowns small and thereby more equal.

use std::cmp::Ordering::Equal;
use std::cmp::Reverse;

use cosched_core::Nanos;

use crate::common::unit::Unit;
use crate::gangs::rounds::first_fit;

#[derive(Clone, Copy, Debug)]
pub(super) struct EligibleUnit<'a> {
    pub(super) unit: &'a Unit,
    /// Weighted progress.
    pub(super) progress: f64,
    pub(super) waited: Nanos,
}

/// What is known of two units running together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct UnitPair {
    /// How many quanta they have shared.
    pub(super) shared_quanta: u32,
    /// The sum of their speeds with each other, relative to alone; `None`: not known.
    pub(super) speed: Option<f64>,
}

impl UnitPair {
    /// Whether their speeds have to be measured first, unless they have shared `enough` quanta.
    fn is_unmeasured(&self, enough: u32) -> bool {
        self.speed.is_none() && self.shared_quanta < enough
    }
}

/// Positions of the units that run in a quantum of this length on this number of CPUs; no unit is
/// to wait longer than `limit`.
pub(super) fn select(
    all: &[EligibleUnit<'_>],
    cpus: usize,
    length: Nanos,
    limit: Nanos,
) -> Vec<usize> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    // First the units that have no time for this quantum and another one, longest waits first.
    let pressing = |waits: &EligibleUnit<'_>| {
        let presses = waits.waited > Nanos::ZERO && waits.waited + length * 2 > limit;
        Reverse(if presses { waits.waited } else { Nanos::ZERO })
    };
    order.sort_by(|&a, &b| {
        let by_wait = pressing(&all[a]).cmp(&pressing(&all[b]));
        by_wait.then(all[a].progress.total_cmp(&all[b].progress)).then(a.cmp(&b))
    });
    first_fit(order.into_iter().map(|i| (i, all[i].unit)), cpus)
}

/// Like [`select`], with a choice among units of almost equal progress; `pair` returns what is
/// known of two. After `enough` quanta together, unknown speeds are not waited for any longer.
pub(super) fn select_mixed(
    all: &[EligibleUnit<'_>],
    cpus: usize,
    length: Nanos,
    limit: Nanos,
    pair: impl Fn(usize, usize) -> UnitPair,
    enough: u32,
) -> Vec<usize> {
    let mut left = cpus;
    let mut rest: Vec<EligibleUnit<'_>> = all.to_vec();
    let mut positions: Vec<usize> = (0..all.len()).collect();
    let mut chosen: Vec<usize> = Vec::new();
    // The unit that `select` would take first is the reference for the others.
    while let Some(&first) = select(&rest, left, length, limit).first() {
        let bound = rest[first].progress + length.as_secs_f64();
        let presses = rest[first].waited + length * 2 > limit;
        let is_near = |i: &usize| {
            rest[*i].unit.threads <= left && rest[*i].progress <= bound && (!presses || *i == first)
        };
        let pairs = |i: usize| chosen.iter().map(|c| pair(*c, positions[i])).collect::<Vec<_>>();
        let near: Vec<(usize, Vec<UnitPair>)> =
            (0..rest.len()).filter(is_near).map(|i| (i, pairs(i))).collect();
        let is_unmeasured =
            |pairs: &[UnitPair]| pairs.iter().any(|pair| pair.is_unmeasured(enough));
        let finds_out = near.iter().any(|(_, pairs)| is_unmeasured(pairs));
        let shared_quanta =
            |pairs: &[UnitPair]| pairs.iter().map(|pair| pair.shared_quanta).sum::<u32>();
        let speed = |pairs: &[UnitPair]| pairs.iter().filter_map(|pair| pair.speed).sum::<f64>();
        let open = near.iter().filter(|(_, pairs)| !finds_out || is_unmeasured(pairs));
        let best = open.min_by(|(a, of_a), (b, of_b)| {
            let by_speed = if finds_out { Equal } else { speed(of_b).total_cmp(&speed(of_a)) };
            let by_quanta = shared_quanta(of_a).cmp(&shared_quanta(of_b));
            let by_progress = rest[*a].progress.total_cmp(&rest[*b].progress);
            by_speed.then(by_quanta).then(by_progress)
        });
        let best = best.map(|(i, _)| *i);
        let best = if chosen.is_empty() { first } else { best.unwrap_or(first) };
        left -= rest[best].unit.threads;
        chosen.push(positions.remove(best));
        rest.remove(best);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::testkit::unit;

    const QUANTUM: Nanos = Nanos::from_millis(100);
    const LIMIT: Nanos = Nanos::from_millis(900);

    /// The selection on four CPUs, from CPUs, progress, and milliseconds of waiting.
    fn selected(all: &[(usize, f64, u64)]) -> Vec<usize> {
        let units: Vec<Unit> = all.iter().map(|(cpus, ..)| unit(0, *cpus, None)).collect();
        let waits = units.iter().zip(all).map(|(unit, &(_, progress, waited))| EligibleUnit {
            unit,
            progress,
            waited: Nanos::from_millis(waited),
        });
        select(&waits.collect::<Vec<_>>(), 4, QUANTUM, LIMIT)
    }

    #[test]
    fn the_programs_with_the_smallest_progress_run_one_on_each_cpu() {
        let all = [5.0, 1.0, 4.0, 2.0, 3.0, 6.0].map(|progress| (1, progress, 0));
        assert_eq!(selected(&all), [1, 3, 4, 2]);
    }

    /// CPUs that programs of several CPUs leave are filled with other programs.
    #[test]
    fn programs_of_several_cpus_run_when_they_are_behind() {
        assert_eq!(selected(&[(1, 2.0, 0), (3, 1.0, 0), (4, 1.5, 0), (1, 9.0, 0)]), [1, 0]);
        assert_eq!(selected(&[(1, 2.0, 0), (3, 2.0, 0), (4, 1.5, 0)]), [2]);
    }

    /// A co-runner is chosen from programs with almost as little progress as the first.
    #[test]
    fn the_least_measured_co_runner_runs_with_the_first() {
        let mixed = |all: &[(usize, f64, u64)], shared_quanta: &dyn Fn(usize, usize) -> u32| {
            mixed(all, &|a, b| UnitPair { shared_quanta: shared_quanta(a, b), speed: None })
        };
        let all = [(1, 5.0, 0), (1, 5.02, 0), (1, 5.09, 0), (1, 5.2, 0)];
        assert_eq!(mixed(&all, &|_, _| 0), [0, 1]);
        assert_eq!(mixed(&all, &|_, b| u32::from(b == 1)), [0, 2]);
        assert_eq!(mixed(&all, &|_, b| u32::from(b < 3)), [0, 1], "the last is too far ahead");
        let mut pressed = all;
        pressed[3].2 = 800;
        assert_eq!(mixed(&pressed, &|_, _| 0), [3, 0]);
        assert_eq!(mixed(&[(2, 5.0, 0), (1, 4.0, 0)], &|_, _| 0), [1]);
    }

    /// The selection on two CPUs.
    fn mixed(all: &[(usize, f64, u64)], pair: &dyn Fn(usize, usize) -> UnitPair) -> Vec<usize> {
        let units: Vec<Unit> = all.iter().map(|(cpus, ..)| unit(0, *cpus, None)).collect();
        let waits = units.iter().zip(all).map(|(unit, &(_, progress, waited))| EligibleUnit {
            unit,
            progress,
            waited: Nanos::from_millis(waited),
        });
        select_mixed(&waits.collect::<Vec<_>>(), 2, QUANTUM, LIMIT, pair, 8)
    }

    /// Which programs run together is chosen once their speeds with each other are known.
    #[test]
    fn the_least_disturbing_run_together_once_speeds_are_known() {
        let all = [(1, 5.0, 0), (1, 5.02, 0), (1, 5.09, 0), (1, 5.2, 0)];
        let known = |b: usize| Some([0.0, 1.2, 1.9, 2.0][b]);
        let pair = |_: usize, b: usize| UnitPair { shared_quanta: 20, speed: known(b) };
        assert_eq!(mixed(&all, &pair), [0, 2], "the last is too far ahead");
        let strange =
            |_: usize, b: usize| UnitPair { shared_quanta: 5, speed: known(b).filter(|_| b != 1) };
        assert_eq!(mixed(&all, &strange), [0, 1], "it is found out first");
        let mute =
            |_: usize, b: usize| UnitPair { shared_quanta: 8, speed: known(b).filter(|_| b != 1) };
        assert_eq!(mixed(&all, &mute), [0, 2], "it never tells anything");
    }

    #[test]
    fn no_program_is_frozen_too_long_however_far_ahead() {
        let mut all = [1.0, 1.0, 1.0, 1.0, 50.0].map(|progress| (1, progress, 0));
        all[4].2 = 700;
        assert_eq!(selected(&all), [0, 1, 2, 3]);
        all[4].2 = 701;
        assert_eq!(selected(&all), [4, 0, 1, 2]);
    }
}
