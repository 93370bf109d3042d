//! The stages of a pipeline, each with a slice of its own.
//!
//! *Problem.* "Resource usage of the threads from different pipeline stages may differ greatly"
//! (section III-C). One slice for all suits the stage that does most of the work, and no other.
//!
//! *Source.* The paper gives one quantum to a pipeline. That it could be made faster by
//! "appropriate time-quanta for different pipeline stage threads according to their resource usage"
//! is its future work (section V-E2). How stages are found is ours.
//!
//! *Stages* are found by the wait profile. Threads are sorted by their share of time at locks,
//! which are the queues of a pipeline. A stage ends where the next thread waits for longer by more
//! than a row of table I is wide. Threads that all wait alike are no pipeline.
//!
//! *Slice* of a stage: eq. 1 with the means of its threads' shares, and the program's miss ratio,
//! as references to the cache are not counted for each thread. A thread keeps its slice until the
//! factor of its stage has moved by more than the range, as in algorithm 1.

use std::collections::BTreeMap;

use cosched_core::{Nanos, Plan, ThreadId, ThreadRule, scaling_factor, to_nine_digits};

use super::quanta::Quanta;

/// The slices of a program's threads.
#[derive(Debug, Default)]
pub(super) struct StageSlices {
    /// For each thread the factor of its stage, and the slice that was chosen for it.
    chosen: BTreeMap<ThreadId, (f64, Nanos)>,
    /// The slices that threads were last given.
    given: BTreeMap<ThreadId, Nanos>,
}

/// What an interval has shown of a thread; shares of its time, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ThreadShares {
    pub(super) id: ThreadId,
    pub(super) at_locks: f64,
    /// Asleep for anything else, where that counts.
    pub(super) asleep: Option<f64>,
}

/// Threads by stage, from the one that waits least at locks.
fn stages(threads: &[ThreadShares], range: f64) -> Vec<Vec<ThreadShares>> {
    let mut sorted = threads.to_vec();
    sorted.sort_by(|a, b| a.at_locks.total_cmp(&b.at_locks).then(a.id.cmp(&b.id)));
    let is_alike =
        |a: &ThreadShares, b: &ThreadShares| to_nine_digits(b.at_locks - a.at_locks) <= range;
    sorted.chunk_by(is_alike).map(<[_]>::to_vec).collect()
}

impl StageSlices {
    /// Takes in what an interval has shown. Threads that did not run keep what they have.
    pub(super) fn update(
        &mut self,
        threads: &[ThreadShares],
        miss_ratio: Option<f64>,
        quanta: &Quanta,
        range: f64,
    ) {
        for stage in stages(threads, range) {
            let mean = |sum: f64| sum / stage.len() as f64;
            let at_locks = mean(stage.iter().map(|thread| thread.at_locks).sum());
            let asleep = stage.iter().map(|thread| thread.asleep).sum::<Option<f64>>().map(mean);
            let factor = scaling_factor(at_locks, miss_ratio, asleep);
            for id in stage.iter().map(|thread| thread.id) {
                let before = self.chosen.get(&id).map(|(before, _)| *before);
                if before.is_none_or(|before| to_nine_digits(factor - before).abs() > range) {
                    self.chosen.insert(id, (factor, quanta.slice(factor)));
                }
            }
        }
    }

    /// Threads that have ended need no slice.
    pub(super) fn retain(&mut self, lives: impl Fn(ThreadId) -> bool) {
        self.chosen.retain(|id, _| lives(*id));
        self.given.retain(|id, _| lives(*id));
    }

    /// The shortest and the longest slice; `None`: all threads have the same one, so it is no
    /// pipeline, or none with stages that differ.
    pub(super) fn range(&self) -> Option<(Nanos, Nanos)> {
        let slices = || self.chosen.values().map(|(_, slice)| *slice);
        slices().min().zip(slices().max()).filter(|(shortest, longest)| shortest < longest)
    }

    /// Gives threads the slices of their stages, or no longer. Returns whether any has changed.
    pub(super) fn settle(&mut self, is_in_force: bool, plan: &mut Plan) -> bool {
        let wanted: BTreeMap<ThreadId, Nanos> = match self.range().filter(|_| is_in_force) {
            Some(_) => self.chosen.iter().map(|(id, (_, slice))| (*id, *slice)).collect(),
            None => BTreeMap::new(),
        };
        let before = std::mem::replace(&mut self.given, wanted);
        let slice = |slices: &BTreeMap<ThreadId, Nanos>, id: &ThreadId| slices.get(id).copied();
        let mut threads: Vec<ThreadId> = before.keys().chain(self.given.keys()).copied().collect();
        threads.sort_unstable();
        threads.dedup();
        threads.retain(|id| slice(&before, id) != slice(&self.given, id));
        for id in &threads {
            let rule = ThreadRule { slice: slice(&self.given, id), ..ThreadRule::default() };
            plan.threads.push((*id, rule));
        }
        !threads.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: f64 = super::super::RANGE;

    fn id(slot: u32) -> ThreadId {
        ThreadId { slot, generation: 0 }
    }

    fn threads(waits: &[f64]) -> Vec<ThreadShares> {
        let shares = |(id, wait): (_, &f64)| ThreadShares { id, at_locks: *wait, asleep: None };
        (0..).map(id).zip(waits).map(shares).collect()
    }

    /// The stages of ferret (section III-C): Load, Segment, Extract, Vector, four threads of Rank,
    /// which "performs most of the work", and Out.
    const FERRET: [f64; 9] = [0.85, 0.80, 0.78, 0.55, 0.05, 0.05, 0.05, 0.05, 0.90];

    fn slices(of: &StageSlices) -> Vec<u64> {
        of.chosen.values().map(|(_, slice)| slice.0 / 1_000_000).collect()
    }

    fn updated(waits: &[f64], miss_ratio: Option<f64>) -> StageSlices {
        let mut found = StageSlices::default();
        found.update(&threads(waits), miss_ratio, &Quanta::of_the_paper(), RANGE);
        found
    }

    #[test]
    fn threads_that_wait_alike_are_one_stage() {
        let sizes = |waits: &[f64]| -> Vec<usize> {
            stages(&threads(waits), RANGE).iter().map(Vec::len).collect()
        };
        assert_eq!(sizes(&FERRET), [4, 1, 4]);
        assert_eq!(sizes(&[0.2, 0.3, 0.4, 0.1]), [4], "each is within 0.10 of the next");
        assert_eq!(sizes(&[0.1, 0.21]), [1, 1]);
        assert_eq!(sizes(&[]), [0; 0]);
    }

    /// Rank: 1 - 0.05 gives 10 ms; Vector: 0.45 gives 100 ms; the others wait for 0.8325 of their
    /// time in the mean, and 0.1675 gives 200 ms.
    #[test]
    fn each_stage_of_ferret_gets_the_slice_of_its_row() {
        let found = updated(&FERRET, None);
        assert_eq!(slices(&found), [200, 200, 200, 100, 10, 10, 10, 10, 200]);
        assert_eq!(found.range(), Some((Nanos::from_millis(10), Nanos::from_millis(200))));
        // With a miss ratio of 0.5, no factor is above 0.5.
        assert_eq!(slices(&updated(&FERRET, Some(0.5)))[3..6], [100, 100, 100]);
        assert_eq!(updated(&[0.5, 0.55, 0.52], None).range(), None, "no pipeline");
    }

    /// The second thread is 0.8325 of its time asleep for a file: 0.1675 gives 200 ms.
    #[test]
    fn time_asleep_counts_for_its_own_stage() {
        let mut shares = threads(&[0.05, 0.55]);
        (shares[0].asleep, shares[1].asleep) = (Some(0.0), Some(0.8325));
        let mut found = StageSlices::default();
        found.update(&shares, None, &Quanta::of_the_paper(), RANGE);
        assert_eq!(slices(&found), [10, 200]);
    }

    #[test]
    fn a_thread_keeps_its_slice_within_the_range() {
        let mut found = updated(&[0.05, 0.55], None);
        let mut update = |waits: &[f64]| {
            found.update(&threads(waits), None, &Quanta::of_the_paper(), RANGE);
            slices(&found)
        };
        assert_eq!(update(&[0.14, 0.64]), [10, 100]);
        assert_eq!(update(&[0.14, 0.66]), [10, 120], "0.34");
        assert_eq!(update(&[0.14]), [10, 120], "the other one slept");
    }

    #[test]
    fn only_changed_slices_are_planned_and_all_are_taken_back() {
        let mut found = updated(&[0.05, 0.55], None);
        let planned = |found: &mut StageSlices, is_in_force| {
            let mut plan = Plan::default();
            let has_changed = found.settle(is_in_force, &mut plan);
            assert_eq!(has_changed, !plan.threads.is_empty());
            let slice = |rule: ThreadRule| rule.slice.map(|slice| slice.0 / 1_000_000);
            plan.threads.iter().map(|(id, rule)| (id.slot, slice(*rule))).collect::<Vec<_>>()
        };
        assert_eq!(planned(&mut found, true), [(0, Some(10)), (1, Some(100))]);
        assert_eq!(planned(&mut found, true), []);
        found.update(&threads(&[0.05, 0.85]), None, &Quanta::of_the_paper(), RANGE);
        assert_eq!(planned(&mut found, true), [(1, Some(200))]);
        found.retain(|thread| thread == id(0));
        assert_eq!(planned(&mut found, true), [(0, None)], "one stage is left");
        assert_eq!(planned(&mut found, false), []);
    }
}
