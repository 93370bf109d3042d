//! The phase table: what is known of a program's phases.
//!
//! A phase is a set of segments with [similar vectors](super::vector). Its speed alone is estimated
//! from its segments with little interference (*valid* ones). As long as there are none, all its
//! segments count, which is better than nothing. No segment is faster with co-runners than alone,
//! so the estimate for a segment is never below its measured speed.
//!
//! *Source.* The FPS paper, section 4.2 and table 1; valid data coverage: section 4.5; programs
//! with phases that do not repeat (their 483.xalancbmk): section 6, where they are future work.
//! Ours:
//!
//! - training of a phase is given up after several failures;
//! - a phase is known by the vector of its first segment, and a segment belongs to the nearest
//!   phase that is near enough;
//! - where work comes in lumps, a phase is known only from many of them. Its speed alone is that of
//!   all its valid segments together, or until then of all its segments. The worth of its work is
//!   computed again at each request ([account](super::account));
//! - optionally, a phase without a valid segment gets its speed from segments
//!   [with](super::co_runners) the co-runners that disturb it least;
//! - speeds are work per CPU second, which at a constant clock is IPC;
//! - traffic and speed with co-runners are kept per phase as well, to predict the need and gain of
//!   its next segment. Its fastest segment gives the need: the mean of disturbed segments would be
//!   too low.

use cosched_core::ProgramId;
use cosched_core::estimates::{EstimateSource, EstimateSources, weighted_deviation};

use super::co_runners::CoRunners;
use super::evidence::Evidence;
use super::params::Params;
use super::segment::Segment;
use super::vector::BlockVector;

/// A phase; speeds are work per CPU second.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ProgramPhase {
    vector: BlockVector,
    /// How many segments it had.
    executions: u32,
    /// How many of its segments were valid.
    valid: u32,
    evidence: Evidence,
    /// Work and CPU seconds of its valid segments.
    valid_work: (f64, f64),
    /// Work and CPU seconds of all its segments.
    all_work: (f64, f64),
    /// Whether its work comes in lumps.
    in_lumps: bool,
    co_runners: CoRunners,
    /// How many of the latest segments were trained in vain.
    failed: u32,
    /// Its speed alone, as far as that is known (table 1).
    alone: f64,
    /// The mean speed of all its segments.
    shared: f64,
    /// The highest speed of any of its segments.
    fastest: f64,
    /// Cache lines per work, the mean over the segments in which they were counted.
    lines: Option<(f64, u32)>,
    params: Params,
}

impl ProgramPhase {
    /// Whether its speed alone is known from a segment with little interference.
    pub(super) fn is_known(&self) -> bool {
        self.valid > 0 && (!self.in_lumps || self.valid_work.0 >= self.params.lumps)
    }

    /// Its speed alone as far as it is known now.
    pub(super) fn speed_alone(&self) -> f64 {
        match self.co_runners.best(self.params.lumps, &self.params) {
            Some(best) if self.is_known() => self.alone.max(best),
            Some(best) => best,
            None => self.alone,
        }
    }

    /// Its speed with this program, relative to alone; `None` until there are enough segments.
    pub(super) fn relative_speed_with(&self, other: ProgramId) -> Option<f64> {
        let alone = self.speed_alone();
        let speed = self.co_runners.with(other, &self.params);
        speed.filter(|_| alone > 0.0).map(|speed| speed / alone)
    }

    /// CPU seconds of training that it still needs; zero where a single segment is enough.
    pub(super) fn lacks(&self) -> f64 {
        let lumps = if self.in_lumps { self.params.lumps - self.valid_work.0 } else { 0.0 };
        let speed = self.speed_alone();
        if speed > 0.0 { lumps.max(0.0) / speed } else { 0.0 }
    }

    /// Counts a segment that was trained in vain.
    pub(super) fn fails(&mut self) {
        self.failed += 1;
    }

    /// A segment was trained, and is of use.
    pub(super) fn succeeds(&mut self) {
        self.failed = 0;
    }

    /// Whether training may bring a valid segment: the phase repeats, has no valid segment, and has
    /// not failed often. Where no lump was ever counted, training will not count any.
    pub(super) fn is_trainable(&self) -> bool {
        let is_mute = self.in_lumps && self.all_work.0 == 0.0;
        let Params { seen, given_up, .. } = self.params;
        !self.is_known() && self.executions >= seen && self.failed < given_up && !is_mute
    }

    /// Cache lines per microsecond that each of its CPUs would move alone; `None` if they were not
    /// counted.
    pub(super) fn required(&self) -> Option<f64> {
        self.lines.map(|(lines, _)| lines * self.alone.max(self.fastest) / 1e6)
    }

    /// Its speed with co-runners, relative to alone: 0 to 1.
    pub(super) fn relative_speed(&self) -> f64 {
        let alone = self.alone.max(self.shared);
        if alone > 0.0 { self.shared / alone } else { 1.0 }
    }

    /// Where the speeds alone of its segments are from.
    fn sources(&self) -> EstimateSources {
        if self.is_known() {
            return self.evidence.sources(self.executions - self.valid);
        }
        let mut sources = EstimateSources::default();
        sources.add(self.source(None), self.executions);
        sources
    }

    /// Where the speed alone of a segment is from that is valid for this reason, if it is.
    pub(super) fn source(&self, valid: Option<EstimateSource>) -> EstimateSource {
        let least_work = if self.in_lumps { self.params.lumps } else { 0.0 };
        match valid.or(self.evidence.first()).filter(|_| self.is_known()) {
            Some(source) => source,
            None if self.co_runners.best(least_work, &self.params).is_some() => {
                EstimateSource::CoRunners
            }
            None => EstimateSource::Unknown,
        }
    }

    /// Table 1, and the means in addition to it.
    fn update(&mut self, segment: &Segment, speed: f64, source: Option<EstimateSource>) {
        let valid = source.is_some();
        source.into_iter().for_each(|source| self.evidence.add(source, speed));
        self.in_lumps = segment.in_lumps;
        let work = speed * segment.on_cpu;
        self.all_work = (self.all_work.0 + work, self.all_work.1 + segment.on_cpu);
        if valid {
            self.valid_work = (self.valid_work.0 + work, self.valid_work.1 + segment.on_cpu);
        }
        let lines = segment.lines_per_work();
        let mean = |old: f64, n: u32, new: f64| (old * f64::from(n) + new) / f64::from(n + 1);
        self.alone = match (self.valid, valid) {
            _ if self.in_lumps => match self.valid_work {
                (work, seconds) if work >= self.params.lumps => work / seconds,
                _ => self.all_work.0 / self.all_work.1,
            },
            (0, false) => mean(self.alone, self.executions, speed),
            (0, true) => speed,
            (_, false) => self.alone,
            (n, true) => mean(self.alone, n, speed),
        };
        self.shared = mean(self.shared, self.executions, speed);
        self.fastest = self.fastest.max(speed);
        self.executions += 1;
        self.valid += u32::from(valid);
        if let Some(lines) = lines {
            let (old, n) = self.lines.unwrap_or_default();
            self.lines = Some((mean(old, n, lines), n + 1));
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PhaseTable {
    phases: Vec<ProgramPhase>,
    /// Segments of no phase.
    unknown: u32,
    params: Params,
}

impl PhaseTable {
    pub(super) fn new(params: Params) -> PhaseTable {
        PhaseTable { params, ..PhaseTable::default() }
    }

    /// The phase of a segment, which may be a new one; `None` if there are too many to keep
    /// another.
    pub(super) fn identify(&mut self, vector: &BlockVector) -> Option<usize> {
        let Params { similar, most_phases, .. } = self.params;
        let near = |(_, phase): &(usize, &ProgramPhase)| phase.vector.is_similar(vector, similar);
        let nearest = self.phases.iter().enumerate().filter(near).min_by(|(_, a), (_, b)| {
            a.vector.distance(vector).total_cmp(&b.vector.distance(vector))
        });
        if let Some((position, _)) = nearest {
            return Some(position);
        }
        if self.phases.len() >= most_phases {
            self.unknown += 1;
            return None;
        }
        self.phases.push(ProgramPhase {
            vector: vector.clone(),
            executions: 0,
            valid: 0,
            evidence: Evidence::default(),
            valid_work: (0.0, 0.0),
            all_work: (0.0, 0.0),
            in_lumps: false,
            co_runners: CoRunners::default(),
            failed: 0,
            alone: 0.0,
            shared: 0.0,
            fastest: 0.0,
            lines: None,
            params: self.params,
        });
        Some(self.phases.len() - 1)
    }

    pub(super) fn phase(&self, position: usize) -> Option<&ProgramPhase> {
        self.phases.get(position)
    }

    pub(super) fn phase_mut(&mut self, position: usize) -> Option<&mut ProgramPhase> {
        self.phases.get_mut(position)
    }

    /// Adds a segment of a phase, and returns its solo time. One segment of work in lumps shows
    /// nothing: it is as likely to seem faster than alone as to seem slower than it was.
    pub(super) fn take_in(
        &mut self,
        position: usize,
        segment: &Segment,
        source: Option<EstimateSource>,
    ) -> f64 {
        let speed = segment.speed(&self.params).unwrap_or_default();
        let Some(phase) = self.phases.get_mut(position) else { return speed };
        phase.update(segment, speed, source);
        if segment.in_lumps { phase.alone } else { phase.alone.max(speed) }
    }

    /// Adds a segment with its co-runners, and returns its solo time. `alone` is the result of
    /// [`PhaseTable::take_in`]. As long as the phase is not known, its speed with the co-runners
    /// that disturb it least counts instead; afterwards, the higher one counts. On average no
    /// program is faster with co-runners than alone.
    pub(super) fn take_in_with(
        &mut self,
        position: usize,
        segment: &Segment,
        co_runners: &[ProgramId],
        alone: f64,
    ) -> f64 {
        let (Some(phase), Some(work)) = (self.phases.get_mut(position), segment.work()) else {
            return alone;
        };
        let params = &self.params;
        phase.co_runners.take_in(co_runners, work, segment.on_cpu, params);
        if segment.in_lumps {
            return phase.speed_alone();
        }
        match phase.co_runners.best(0.0, params) {
            Some(best) if phase.is_known() => alone.max(best),
            Some(best) => best.max(work / segment.on_cpu),
            None => alone,
        }
    }

    /// The share of all segments so far with a phase that is known from a valid one: valid data
    /// coverage.
    pub(super) fn coverage(&self) -> f64 {
        let known = self.phases.iter().filter(|phase| phase.is_known());
        let known: u32 = known.map(|phase| phase.executions).sum();
        f64::from(known) / f64::from(self.segments().max(1))
    }

    /// Where the speeds alone of all segments are from.
    pub(super) fn sources(&self) -> EstimateSources {
        let unknown = EstimateSources { none: self.unknown, ..EstimateSources::default() };
        self.phases.iter().map(ProgramPhase::sources).fold(unknown, EstimateSources::and)
    }

    /// How much the speeds of valid segments of one phase differ. Lumps say nothing about that.
    pub(super) fn deviation(&self) -> Option<f64> {
        let counted = self.phases.iter().filter(|phase| !phase.in_lumps);
        weighted_deviation(counted.map(|phase| phase.evidence.speeds()))
    }

    /// Whether phases repeat. If most segments are of a phase that never did, nothing can be
    /// learned.
    pub(super) fn repeats(&self) -> bool {
        let once = self.phases.iter().filter(|phase| phase.executions == 1).count() as u32;
        self.segments() < self.params.enough_segments
            || 2 * (once + self.unknown) <= self.segments()
    }

    fn segments(&self) -> u32 {
        self.phases.iter().map(|phase| phase.executions).sum::<u32>() + self.unknown
    }
}

#[cfg(test)]
mod tests {
    use cosched_core::IpBin;

    use super::*;

    /// A segment of one CPU second with this much work and this many cache lines per work.
    fn work(speed: f64, lines: f64) -> Segment {
        Segment::of_work(speed, lines)
    }

    fn low(valid: bool) -> Option<EstimateSource> {
        valid.then_some(EstimateSource::OwnLow)
    }

    fn at(block: u64) -> BlockVector {
        BlockVector::new(&[IpBin { program: ProgramId::first(0), block, count: 9 }])
    }

    /// The estimates for segments of one phase, each with its speed and whether it is valid.
    fn estimates(segments: &[(f64, bool)]) -> Vec<f64> {
        let mut table = PhaseTable::default();
        let mut take_in = |(speed, valid): &(f64, bool)| {
            let phase = table.identify(&at(1)).unwrap();
            table.take_in(phase, &work(*speed, 0.0), low(*valid))
        };
        segments.iter().map(&mut take_in).collect()
    }

    #[test]
    fn the_first_segment_of_a_phase_gives_its_speed() {
        assert_eq!(estimates(&[(4.0, false)]), [4.0]);
        assert_eq!(estimates(&[(4.0, true)]), [4.0]);
    }

    /// Before the first valid segment, the mean of all segments counts.
    #[test]
    fn valid_segments_replace_the_mean_of_all_segments() {
        let segments = [(4.0, false), (2.0, false), (8.0, true), (1.0, false), (6.0, true)];
        // Means: 4; (4 + 2) / 2; replaced by 8; unchanged; (8 + 6) / 2.
        assert_eq!(estimates(&segments), [4.0, 3.0, 8.0, 8.0, 7.0]);
    }

    #[test]
    fn the_estimate_is_never_below_what_was_just_measured() {
        assert_eq!(estimates(&[(4.0, true), (9.0, false)]), [4.0, 9.0]);
        assert_eq!(estimates(&[(2.0, false), (4.0, false)]), [2.0, 4.0]);
    }

    /// Two quanta suffered and one did not; another phase only suffered, and a third one with the
    /// same co-runners often enough to tell their speed.
    #[test]
    fn quanta_have_the_source_of_their_phase() {
        let mut table = PhaseTable::default();
        for (block, source) in [(1, None), (1, Some(EstimateSource::OnlyOne)), (1, None), (2, None)]
        {
            let phase = table.identify(&at(block)).unwrap();
            table.take_in(phase, &work(1.0, 0.0), source);
        }
        let phase = table.identify(&at(3)).unwrap();
        for _ in 0..4 {
            table.take_in(phase, &work(1.0, 0.0), None);
            table.take_in_with(phase, &work(1.0, 0.0), &[ProgramId::first(1)], 1.0);
        }
        let expected =
            EstimateSources { only_one: 3, none: 1, co_runners: 4, ..EstimateSources::default() };
        assert_eq!(table.sources(), expected);
        assert_eq!(table.deviation(), None, "one segment that did not suffer");
    }

    /// Where work comes in lumps, one segment says little.
    #[test]
    fn phases_of_lumpy_work_need_many_segments() {
        let mut table = PhaseTable::default();
        let phase = table.identify(&at(1)).unwrap();
        let ticks = |count| {
            let mut segment = work(count, 0.0);
            segment.in_lumps = true;
            segment
        };
        let mut alone = |count, valid| table.take_in(phase, &ticks(count), low(valid));
        assert_eq!([alone(9.0, true), alone(10.0, true)], [9.0, 9.5]);
        assert_eq!(alone(12.0, false), 31.0 / 3.0, "not 12: it may be the lumps");
        assert!(!table.phase(phase).unwrap().is_known(), "19 ticks");
        table.take_in(phase, &ticks(0.0), low(true));
        table.take_in(phase, &ticks(9.0), low(true));
        assert!(table.phase(phase).unwrap().is_known(), "28 ticks in 4 s");
        assert_eq!(table.take_in(phase, &ticks(3.0), low(false)), 7.0);
    }

    /// Training of lumpy work is in vain where there are no lumps.
    #[test]
    fn training_of_lumpy_work_needs_many_lumps() {
        let mut table = PhaseTable::default();
        let phase = table.identify(&at(1)).unwrap();
        for (count, trainable, lacks) in [(0.0, false, 0.0), (0.0, false, 0.0), (15.0, true, 4.0)] {
            let mut segment = work(count, 0.0);
            segment.in_lumps = true;
            table.take_in(phase, &segment, low(false));
            let known = table.phase(phase).unwrap();
            assert_eq!((known.is_trainable(), known.lacks()), (trainable, lacks));
        }
        table.take_in(phase, &work(1.0, 0.0), low(false));
        assert_eq!(table.phase(phase).unwrap().lacks(), 0.0, "counted, one segment tells all");
    }

    #[test]
    fn a_segment_belongs_to_the_nearest_phase_or_begins_one() {
        let mut table = PhaseTable::default();
        assert_eq!([1, 2, 1].map(|block| table.identify(&at(block))), [Some(0), Some(1), Some(0)]);
        let bin = |block, count| IpBin { program: ProgramId::first(0), block, count };
        let between = BlockVector::new(&[bin(1, 20), bin(2, 80)]);
        assert_eq!(table.identify(&between), Some(1));
    }

    /// Training of a phase is given up after six attempts in vain.
    #[test]
    fn a_phase_is_trained_at_its_second_visit() {
        let mut table = PhaseTable::default();
        let phase = table.identify(&at(1)).unwrap();
        let trainable = [false, false].map(|valid| {
            table.take_in(phase, &work(1.0, 0.0), low(valid));
            table.phase(phase).unwrap().is_trainable()
        });
        assert_eq!(trainable, [false, true]);
        for _ in 0..6 {
            assert!(table.phase(phase).unwrap().is_trainable());
            table.phase_mut(phase).unwrap().fails();
        }
        assert!(!table.phase(phase).unwrap().is_trainable());
    }

    #[test]
    fn coverage_counts_segments_of_phases_with_a_valid_one() {
        let mut table = PhaseTable::default();
        for (block, valid) in [(1, false), (2, false), (1, true), (3, false)] {
            let phase = table.identify(&at(block)).unwrap();
            table.take_in(phase, &work(1.0, 0.0), low(valid));
        }
        assert_eq!(table.coverage(), 0.5);
    }

    #[test]
    fn a_phase_needs_the_traffic_that_it_would_have_alone() {
        let mut table = PhaseTable::default();
        let phase = table.identify(&at(1)).unwrap();
        // 20 lines per 1000 units of work, at 1e9 units per second alone and half of that with
        // co-runners.
        table.take_in(phase, &work(1e9, 0.02), low(true));
        table.take_in(phase, &work(0.5e9, 0.02), low(false));
        let known = table.phase(phase).unwrap();
        assert_eq!(known.required(), Some(20.0));
        assert_eq!(known.relative_speed(), 0.75);
    }

    #[test]
    fn phases_that_never_repeat_are_noticed() {
        let mut table = PhaseTable::default();
        for block in 0..19 {
            let phase = table.identify(&at(block)).unwrap();
            table.take_in(phase, &work(1.0, 0.0), low(false));
        }
        assert!(table.repeats());
        let phase = table.identify(&at(19)).unwrap();
        table.take_in(phase, &work(1.0, 0.0), low(false));
        assert!(!table.repeats());
        for block in 0..12 {
            let phase = table.identify(&at(block)).unwrap();
            table.take_in(phase, &work(1.0, 0.0), low(false));
        }
        assert!(table.repeats(), "12 of 20 phases came again");
    }
}
