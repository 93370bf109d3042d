//! The speed of a phase by co-runners: an estimate for phases without a quantum of little
//! interference.
//!
//! A program that runs with several others in turn is disturbed by some of them and hardly by
//! others. The highest of the mean speeds with each set of co-runners is therefore nearer to the
//! speed alone than the mean of all, and it costs no training. The estimate does not need programs'
//! traffic. It covers contention of every kind: for memory, for a cache, for a core's parts.
//!
//! *Source.* Ours. The FPS paper leaves contention for caches to later work (sections 4.6 and 8).

use std::collections::BTreeMap;

use cosched_core::ProgramId;

use super::params::Params;

/// What was done with one set of co-runners.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Done {
    segments: u32,
    work: f64,
    cpu_seconds: f64,
}

/// A phase with each set of co-runners.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CoRunners(BTreeMap<Vec<ProgramId>, Done>);

impl CoRunners {
    /// Adds a segment with these co-runners. At most `most_sets` of them are kept.
    pub(super) fn take_in(
        &mut self,
        co_runners: &[ProgramId],
        work: f64,
        cpu_seconds: f64,
        params: &Params,
    ) {
        if self.0.len() >= params.most_sets && !self.0.contains_key(co_runners) {
            return;
        }
        let done = self.0.entry(co_runners.to_vec()).or_default();
        done.segments += 1;
        done.work += work;
        done.cpu_seconds += cpu_seconds;
    }

    /// The mean speed with co-runners that include this program; `None` if there are too few
    /// segments.
    pub(super) fn with(&self, other: ProgramId, params: &Params) -> Option<f64> {
        let shared = self.0.iter().filter(|(co_runners, _)| co_runners.contains(&other));
        let all = shared.fold(Done::default(), |all, (_, done)| Done {
            segments: all.segments + done.segments,
            work: all.work + done.work,
            cpu_seconds: all.cpu_seconds + done.cpu_seconds,
        });
        (all.segments >= params.segments).then(|| all.work / all.cpu_seconds)
    }

    /// The speed with the co-runners that disturb it least, if enough work with them is known.
    pub(super) fn best(&self, least_work: f64, params: &Params) -> Option<f64> {
        let counts = |done: &&Done| done.segments >= params.segments && done.work >= least_work;
        let speeds = self.0.values().filter(counts).map(|done| done.work / done.cpu_seconds);
        speeds.reduce(f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMS: &Params = &Params::DEFAULT;

    /// Co-runners count after they were measured often enough.
    #[test]
    fn the_least_disturbing_co_runners_count_once_known() {
        let (loud, quiet) = ([ProgramId::first(1)], [ProgramId::first(2)]);
        let mut co_runners = CoRunners::default();
        for _ in 0..PARAMS.segments {
            assert_eq!(co_runners.best(0.0, PARAMS), None);
            co_runners.take_in(&loud, 5.0, 1.0, PARAMS);
        }
        assert_eq!(co_runners.best(0.0, PARAMS), Some(5.0));
        for _ in 1..PARAMS.segments {
            co_runners.take_in(&quiet, 9.0, 1.0, PARAMS);
            assert_eq!(co_runners.best(0.0, PARAMS), Some(5.0));
        }
        co_runners.take_in(&quiet, 9.0, 1.0, PARAMS);
        assert_eq!(co_runners.best(0.0, PARAMS), Some(9.0));
        assert_eq!(co_runners.best(40.0, PARAMS), None, "36 and 20");
    }

    /// The speed with one co-runner is the mean over all sets of co-runners that it was part of.
    #[test]
    fn speed_with_one_co_runner_is_the_mean_of_its_sets() {
        let [one, other, third] = [1, 2, 3].map(ProgramId::first);
        let mut co_runners = CoRunners::default();
        for _ in 0..2 {
            co_runners.take_in(&[one, other], 4.0, 1.0, PARAMS);
            assert_eq!(co_runners.with(one, PARAMS), None);
            co_runners.take_in(&[one, third], 10.0, 1.0, PARAMS);
        }
        assert_eq!(
            (co_runners.with(one, PARAMS), co_runners.with(third, PARAMS)),
            (Some(7.0), None)
        );
    }
}
