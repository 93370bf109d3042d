//! Algorithm 1: whoever has made least progress runs.
//!
//! *Source.* The FPS paper, section 3.2, algorithm 1: the program with the smallest progress, again and again until no CPU
//! is left. Ours: programs of several CPUs (the walk goes on past whoever does not fit, so that the machine is filled;
//! who is passed over falls behind until he is the first), and nobody is frozen for too long, however far ahead he is. Where
//! speeds are compared by company, whoever is behind by no more than a quantum runs beside those he has met least: programs
//! that always meet the same others would never be seen beside anybody else.

use std::cmp::Reverse;

use cosched_core::Nanos;

use crate::rounds::first_fit;
use crate::unit::Unit;

/// Somebody who may run in the next quantum.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waits<'a> {
    pub(super) unit: &'a Unit,
    /// Weighted progress.
    pub(super) progress: f64,
    /// How long it has been waiting.
    pub(super) waited: Nanos,
}

/// Positions of those that run in a quantum of this length on so many CPUs; nobody is to wait longer than `limit`.
pub(super) fn select(all: &[Waits<'_>], cpus: usize, length: Nanos, limit: Nanos) -> Vec<usize> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    // First whoever has no time for this quantum and another one, longest waits first.
    let pressing = |waits: &Waits<'_>| {
        let presses = waits.waited > Nanos::ZERO && waits.waited + length * 2 > limit;
        Reverse(if presses { waits.waited } else { Nanos::ZERO })
    };
    order.sort_by(|&a, &b| {
        let by_wait = pressing(&all[a]).cmp(&pressing(&all[b]));
        by_wait.then(all[a].progress.total_cmp(&all[b].progress)).then(a.cmp(&b))
    });
    first_fit(order.into_iter().map(|i| (i, all[i].unit)), cpus)
}

/// The same, of those that are hardly less behind beside those that they have met least; `met` tells how often two have.
pub(super) fn select_mixed(
    all: &[Waits<'_>],
    cpus: usize,
    length: Nanos,
    limit: Nanos,
    met: impl Fn(usize, usize) -> u32,
) -> Vec<usize> {
    let mut left = cpus;
    let mut rest: Vec<Waits<'_>> = all.to_vec();
    let mut positions: Vec<usize> = (0..all.len()).collect();
    let mut chosen: Vec<usize> = Vec::new();
    // Whoever `select` would take first sets the measure for the others.
    while let Some(&first) = select(&rest, left, length, limit).first() {
        let bound = rest[first].progress + length.as_secs_f64();
        let presses = rest[first].waited + length * 2 > limit;
        let is_near = |i: &usize| {
            rest[*i].unit.threads <= left && rest[*i].progress <= bound && (!presses || *i == first)
        };
        let meetings = |i: usize| chosen.iter().map(|c| met(*c, positions[i])).sum::<u32>();
        let near = (0..rest.len()).filter(is_near);
        let best = near.min_by(|a, b| {
            let by_meetings = meetings(*a).cmp(&meetings(*b));
            by_meetings.then(rest[*a].progress.total_cmp(&rest[*b].progress))
        });
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
    use crate::testkit::unit;

    const QUANTUM: Nanos = Nanos::from_millis(100);
    const LIMIT: Nanos = Nanos::from_millis(900);

    /// On four CPUs: CPUs, progress, and milliseconds of waiting.
    fn selected(all: &[(usize, f64, u64)]) -> Vec<usize> {
        let units: Vec<Unit> = all.iter().map(|(cpus, ..)| unit(0, *cpus, None)).collect();
        let waits = units.iter().zip(all).map(|(unit, &(_, progress, waited))| Waits {
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

    #[test]
    fn programs_of_several_cpus_run_when_they_are_behind_and_the_machine_is_filled_around_them() {
        assert_eq!(selected(&[(1, 2.0, 0), (3, 1.0, 0), (4, 1.5, 0), (1, 9.0, 0)]), [1, 0]);
        assert_eq!(selected(&[(1, 2.0, 0), (3, 2.0, 0), (4, 1.5, 0)]), [2]);
    }

    #[test]
    fn of_those_that_are_hardly_less_behind_whoever_was_met_least_runs_beside_the_first() {
        let mixed = |all: &[(usize, f64, u64)], met: &dyn Fn(usize, usize) -> u32| {
            let units: Vec<Unit> = all.iter().map(|(cpus, ..)| unit(0, *cpus, None)).collect();
            let waits = units.iter().zip(all).map(|(unit, &(_, progress, waited))| Waits {
                unit,
                progress,
                waited: Nanos::from_millis(waited),
            });
            select_mixed(&waits.collect::<Vec<_>>(), 2, QUANTUM, LIMIT, met)
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

    #[test]
    fn nobody_is_frozen_too_long_however_far_ahead_he_is() {
        let mut all = [1.0, 1.0, 1.0, 1.0, 50.0].map(|progress| (1, progress, 0));
        all[4].2 = 700;
        assert_eq!(selected(&all), [0, 1, 2, 3]);
        all[4].2 = 701;
        assert_eq!(selected(&all), [4, 0, 1, 2]);
    }
}
