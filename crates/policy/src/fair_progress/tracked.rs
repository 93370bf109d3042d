//! What is known of one program: its progress and its phases.
//!
//! *Source.* The FPS paper: progress, eq. 3 of section 3.2, in seconds alone; concurrent regions
//! and weights, section 5; candidates for training, section 4.3. The progress of a program with
//! phases that never repeat is its time. It gets the quanta that it would get without cosched, and
//! is never trained (section 6).

use super::account::{Amount, ProgressAccount};
use super::params::Params;
use super::phases::{PhaseTable, ProgramPhase};
use super::predictor::Predictor;
use super::segment::Segment;
use super::sequence::Sequence;
use cosched_core::ProgramId;
use cosched_core::estimates::{EstimateSource, EstimateSources, Estimates};

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TrackedProgram {
    account: ProgressAccount,
    pub(super) sequence: Sequence,
    phases: PhaseTable,
    predictor: Predictor,
    /// Its traffic in its last segment.
    pub(super) traffic: Option<f64>,
    pub(super) trained: u32,
    /// CPU seconds that were left idle for its training.
    idle: f64,
    /// CPU seconds in which its work was measured, and what they would have been alone.
    cpu: (f64, f64),
    /// The difference, by where the speeds alone were from.
    slowed: EstimateSources<f64>,
    /// Seconds that it is assumed to have waited since it was last seen on a CPU.
    rested: f64,
    params: Params,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SegmentConditions<'a> {
    /// Why there was little interference, if there was.
    pub(super) source: Option<EstimateSource>,
    /// In training, so that there was to be little interference.
    pub(super) trained: bool,
    /// The co-runners, where speeds are compared by them.
    pub(super) co_runners: Option<&'a [ProgramId]>,
    pub(super) weight: f64,
}

impl Default for SegmentConditions<'_> {
    fn default() -> Self {
        SegmentConditions { source: None, trained: false, co_runners: None, weight: 1.0 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Learnt {
    /// Seconds that it would have taken alone, without work of unknown worth.
    pub(super) alone: f64,
    /// Whether a phase got its first valid segment by it.
    pub(super) useful: bool,
}

impl TrackedProgram {
    pub(super) fn new(params: Params) -> TrackedProgram {
        TrackedProgram {
            sequence: Sequence::new(params),
            phases: PhaseTable::new(params),
            predictor: Predictor::new(params),
            params,
            ..TrackedProgram::default()
        }
    }

    /// Learns from a segment on this number of CPUs.
    pub(super) fn learn(
        &mut self,
        segment: &Segment,
        how: SegmentConditions<'_>,
        cpus: usize,
    ) -> Learnt {
        let SegmentConditions { source, trained, co_runners, weight } = how;
        let valid = source.is_some();
        self.trained += u32::from(trained);
        self.traffic = segment.traffic();
        let Some(speed) = segment.speed(&self.params) else {
            return Learnt { alone: segment.alone(1.0, cpus), useful: false };
        };
        let phase = self.phases.identify(&segment.vector);
        self.predictor.passed(phase);
        let lacked =
            phase.and_then(|phase| self.phases.phase(phase)).is_some_and(|p| !p.is_known());
        let alone = phase.map_or(speed, |phase| self.phases.take_in(phase, segment, source));
        let alone = phase.zip(co_runners).map_or(alone, |(phase, co_runners)| {
            self.phases.take_in_with(phase, segment, co_runners, alone)
        });
        // A program that has not ticked in its latest trainings hardly ticks.
        let in_vain = !valid || speed == 0.0;
        if let Some(phase) = phase.filter(|_| trained).and_then(|at| self.phases.phase_mut(at)) {
            if in_vain { phase.fails() } else { phase.succeeds() }
        }
        let useful = lacked && valid;
        let alone = if self.phases.repeats() { alone } else { speed };
        // As long as there is no tick, nothing is known.
        let relative = if alone > 0.0 { speed / alone } else { 1.0 };
        self.cpu.0 += segment.on_cpu;
        self.cpu.1 += segment.on_cpu * relative;
        let found = phase.and_then(|phase| self.phases.phase(phase));
        let from = found.map_or(EstimateSource::Unknown, |phase| phase.source(source));
        self.slowed.add(from, segment.on_cpu * (1.0 - relative));
        let stays_open = segment.in_lumps && alone > 0.0 && self.phases.repeats();
        if let Some(phase) = phase.filter(|_| stays_open) {
            self.account.leave_open(phase, speed * segment.used(cpus), weight);
            return Learnt { alone: segment.alone(0.0, cpus), useful };
        }
        Learnt { alone: segment.alone(relative, cpus), useful }
    }

    /// Adds a training quantum for which this many CPU seconds were left idle.
    pub(super) fn leaves_idle(&mut self, seconds: f64) {
        self.idle += seconds;
    }

    /// What is estimated of its speed alone; `None` as long as nothing was measured.
    pub(super) fn estimates(&self) -> Option<Estimates> {
        let (cpu_seconds, solo_cpu_seconds) = self.cpu;
        (cpu_seconds > 0.0).then(|| Estimates {
            cpu_seconds,
            solo_cpu_seconds,
            sources: self.phases.sources(),
            slowed: self.slowed,
            phase_deviation: self.phases.deviation(),
            training_idle_seconds: self.idle,
        })
    }

    /// Adds seconds alone of a program of this weight.
    pub(super) fn add_progress(&mut self, seconds: f64, weight: f64) {
        self.account.add(seconds, weight);
    }

    /// Records the waiting in a segment on this number of CPUs, which was counted as progress.
    pub(super) fn counts_waits(&mut self, segment: &Segment, cpus: usize) {
        let before = if segment.is_idle(&self.params) { self.rested } else { 0.0 };
        self.rested = before + segment.waited(cpus);
    }

    /// It was found stopped: it has not waited for anything, as was assumed.
    pub(super) fn is_stopped(&mut self, weight: f64) {
        let rested = std::mem::take(&mut self.rested);
        self.add_progress(-rested, weight);
    }

    /// It is present again, and has no less progress than this.
    pub(super) fn comes_back(&mut self, least: f64) {
        self.account.advance((least - self.progress()).max(0.0));
    }

    /// It runs once more, after `seconds` before its end in which nothing was measured.
    pub(super) fn begins_again(&mut self, seconds: f64, weight: f64) {
        self.add_progress(self.gain(seconds), weight);
        self.account.begin_run();
        self.rested = 0.0;
    }

    /// Seconds alone of all its work.
    fn total(&self) -> Amount {
        self.account.total(|phase| self.phases.phase(phase).map_or(0.0, ProgramPhase::speed_alone))
    }

    /// Weighted progress since the concurrent region began: seconds alone, each divided by the
    /// weight that it had then.
    pub(super) fn progress(&self) -> f64 {
        self.total().weighted
    }

    /// Seconds alone since it arrived.
    pub(super) fn alone(&self) -> f64 {
        self.total().whole
    }

    /// Whether a phase that may come next could be trained.
    pub(super) fn is_candidate(&self) -> bool {
        self.expected().any(ProgramPhase::is_trainable)
    }

    /// CPU seconds of training until one of the phases that may come next is known; zero where a
    /// single segment is enough.
    pub(super) fn lacks(&self) -> f64 {
        let trainable = self.expected().filter(|phase| phase.is_trainable());
        trainable.map(ProgramPhase::lacks).reduce(f64::min).unwrap_or(0.0)
    }

    /// The phases that may come next, where phases repeat.
    fn expected(&self) -> impl Iterator<Item = &ProgramPhase> {
        let predicted = self.predictor.predicted().into_iter();
        let repeats = self.phases.repeats();
        predicted.filter(move |_| repeats).filter_map(|phase| self.phases.phase(phase))
    }

    /// The share of its segments with a known phase: valid data coverage.
    pub(super) fn coverage(&self) -> f64 {
        self.phases.coverage()
    }

    /// The traffic that it would have alone in its next segment, on this number of CPUs; `None` if
    /// that is not known.
    pub(super) fn required(&self, cpus: usize) -> Option<f64> {
        Some(self.next()?.required()? * cpus as f64)
    }

    /// Seconds alone that it would gain in these seconds.
    pub(super) fn gain(&self, seconds: f64) -> f64 {
        seconds * self.next().map_or(1.0, ProgramPhase::relative_speed)
    }

    /// Its speed with this program, relative to alone; `None` if that is not known.
    pub(super) fn relative_speed_with(&self, other: ProgramId) -> Option<f64> {
        self.next()?.relative_speed_with(other)
    }

    fn next(&self) -> Option<&ProgramPhase> {
        self.phases.phase(self.predictor.likeliest()?)
    }
}

/// A newcomer begins a concurrent region and starts at 0. The old programs keep only their lead
/// over the least progress.
pub(super) fn begin_region<'a>(old: impl Iterator<Item = &'a mut TrackedProgram>, least: f64) {
    for tracked in old {
        let ahead = tracked.progress() - least;
        tracked.account.begin_region(ahead.max(0.0));
    }
}

#[cfg(test)]
mod tests {
    use cosched_core::{IpBin, Nanos, Quality, Sample};

    use super::*;
    use crate::common::testkit::{Scene, program};

    /// 100 ms in this block at a speed of this many instructions per nanosecond, 10 lines per 1000
    /// of them.
    fn segment(block: u64, speed: u64) -> Segment {
        let mut scene = Scene::new(1, vec![program(0, 1)]);
        let time = Nanos::from_millis(100);
        let id = program(0, 1).id;
        let sample = Sample {
            on_cpu: time,
            instructions: Some(time.0 * speed),
            memory_bytes: Some(64 * time.0 * speed / 100),
            quality: Quality::Exact,
            ..Sample::empty(id, Nanos::ZERO, time)
        };
        scene.samples = vec![sample];
        scene.ips = vec![IpBin { program: id, block, count: 400 }];
        Segment::of(&scene.programs[0], &scene.world(), true).unwrap()
    }

    fn how(valid: bool) -> SegmentConditions<'static> {
        SegmentConditions {
            source: valid.then_some(EstimateSource::OnlyOne),
            ..SegmentConditions::default()
        }
    }

    fn learnt(segments: &[(u64, u64, bool)]) -> TrackedProgram {
        let mut tracked = TrackedProgram::default();
        for (block, speed, valid) in segments {
            tracked.learn(&segment(*block, *speed), how(*valid), 1);
        }
        tracked
    }

    #[test]
    fn four_times_slower_for_two_units_is_half_a_unit_of_progress() {
        // The paper's example: C_unit is 100 ms here.
        let mut tracked = learnt(&[(1, 4, true)]);
        let slowed =
            (0..2).map(|_| tracked.learn(&segment(1, 1), how(false), 1).alone).sum::<f64>();
        assert!((slowed - 0.05).abs() < 1e-12, "{slowed}");
        let alone = tracked.learn(&segment(1, 4), how(false), 1).alone;
        assert!((alone - 0.1).abs() < 1e-12, "not slowed: one unit, {alone}");
    }

    /// A phase suffers once at half of its speed, then runs alone in training, and suffers again;
    /// another one suffers, and nothing else is known of it. By the mean of both, the last of its
    /// quanta lost a third.
    #[test]
    fn lost_time_has_the_source_of_the_speed_alone() {
        let mut tracked = learnt(&[(1, 2, false)]);
        let source = Some(EstimateSource::Predicted);
        let trained = SegmentConditions { source, trained: true, ..SegmentConditions::default() };
        tracked.learn(&segment(1, 4), trained, 1);
        for (block, speed) in [(1, 2), (2, 4), (2, 2)] {
            tracked.learn(&segment(block, speed), how(false), 1);
        }
        let Estimates { cpu_seconds, solo_cpu_seconds, slowed, .. } = tracked.estimates().unwrap();
        let nanos = |seconds: f64| (seconds * 1e9).round() as i64;
        let expected =
            EstimateSources { predicted: 50_000_000, none: 33_333_333, ..Default::default() };
        assert_eq!(slowed.map(nanos), expected);
        assert_eq!(nanos(cpu_seconds - solo_cpu_seconds), 83_333_333);
    }

    /// A candidate's phase was seen twice and has no valid segment yet.
    #[test]
    fn a_phase_seen_twice_untrained_makes_a_candidate() {
        let (no, yes) = (false, true);
        assert!(!learnt(&[(1, 1, no), (2, 1, no), (1, 1, no)]).is_candidate(), "2 was there once");
        let twice = [(1, 1, no), (2, 1, no), (1, 1, no), (2, 1, no), (1, 1, no)];
        assert!(learnt(&twice).is_candidate());
        let known = [(1, 1, no), (2, 1, no), (1, 1, no), (2, 1, yes), (1, 1, no)];
        assert!(!learnt(&known).is_candidate(), "2 is known");
    }

    /// A phase that was trained several times in vain makes no candidate.
    #[test]
    fn a_phase_trained_in_vain_makes_no_candidate() {
        let mut tracked = learnt(&[(1, 1, false), (1, 1, false)]);
        for _ in 0..6 {
            assert!(tracked.is_candidate());
            tracked.learn(
                &segment(1, 1),
                SegmentConditions { trained: true, ..SegmentConditions::default() },
                1,
            );
        }
        assert!(!tracked.is_candidate());
    }

    #[test]
    fn a_phase_that_becomes_known_is_reported() {
        let mut tracked = TrackedProgram::default();
        let learns =
            [false, true, true].map(|valid| tracked.learn(&segment(1, 1), how(valid), 1).useful);
        assert_eq!(learns, [false, true, false]);
    }

    #[test]
    fn traffic_and_gain_are_those_of_the_likeliest_phase() {
        let tracked = learnt(&[(1, 2, true), (2, 1, true), (1, 1, false)]);
        // Phase 2 follows 1: 10 lines per 1000 of 1e9 instructions per second.
        assert_eq!(tracked.required(1), Some(10.0));
        assert_eq!(tracked.gain(0.1), 0.1);
        let back = learnt(&[(1, 2, true), (2, 1, true), (1, 1, false), (2, 1, true)]);
        assert_eq!((back.required(2), back.gain(0.1)), (Some(40.0), 0.1 * 0.75));
    }

    /// The progress of a program without repeating phases is its time.
    #[test]
    fn a_program_without_repeating_phases_is_not_trained() {
        let mut tracked = TrackedProgram::default();
        let segments = (0..30).map(|block| segment(block, 1 + block % 3));
        let alone: f64 = segments.map(|segment| tracked.learn(&segment, how(false), 1).alone).sum();
        assert!((alone - 3.0).abs() < 1e-9, "{alone}");
        assert!(!tracked.is_candidate());
    }

    /// A segment of one CPU second with so many ticks.
    fn lumps(ticks: f64) -> Segment {
        let mut segment = Segment::of_work(ticks, 0.0);
        segment.in_lumps = true;
        segment
    }

    /// A program with a single parallel region ticks once, however long it is trained. Its CPU time
    /// is its progress.
    #[test]
    fn a_program_that_hardly_ticks_is_not_trained_for_ever() {
        let mut tracked = TrackedProgram::default();
        let trained = SegmentConditions { trained: true, ..how(true) };
        tracked.learn(&lumps(1.0), how(false), 1);
        tracked.learn(&lumps(0.0), how(false), 1);
        for _ in 0..tracked.params.given_up {
            assert!(tracked.is_candidate());
            tracked.learn(&lumps(0.0), trained, 1);
        }
        assert!(!tracked.is_candidate());
        let seconds = 2.0 + f64::from(tracked.params.given_up);
        assert!((tracked.progress() - seconds).abs() < 1e-9, "{}", tracked.progress());
    }

    /// Two ticks in three quanta: slow, and known after twenty ticks.
    #[test]
    fn a_program_that_ticks_slowly_is_trained_until_it_is_known() {
        let mut tracked = TrackedProgram::default();
        let trained = SegmentConditions { trained: true, ..how(true) };
        let ticks = [1.0, 1.0, 0.0].into_iter().cycle();
        tracked.learn(&lumps(1.0), how(false), 1);
        tracked.learn(&lumps(0.0), how(false), 1);
        let needed = ticks.take_while(|ticks| {
            tracked.is_candidate() && {
                tracked.learn(&lumps(*ticks), trained, 1);
                true
            }
        });
        assert_eq!((needed.count(), tracked.coverage()), (29, 1.0));
    }

    #[test]
    fn lumpy_work_is_valued_again_once_its_solo_speed_is_known() {
        let mut tracked = TrackedProgram::default();
        for _ in 0..3 {
            let learnt = tracked.learn(&lumps(30.0), how(false), 1);
            assert_eq!(learnt, Learnt { alone: 0.0, useful: false });
        }
        assert_eq!(tracked.progress(), 3.0, "as long as nothing is known, the time counts");
        assert!(tracked.learn(&lumps(40.0), how(true), 1).useful);
        assert_eq!((tracked.progress(), tracked.alone()), (3.25, 3.25), "130 at 40 a second");
    }

    /// A newcomer starts at 0. The least progress of the old programs is subtracted from each of
    /// them.
    #[test]
    fn a_newcomer_lowers_all_by_the_least_progress() {
        let mut old = [5.0, 3.0, 4.5].map(|progress| {
            let mut tracked = TrackedProgram::default();
            tracked.add_progress(progress, 1.0);
            tracked
        });
        begin_region(old.iter_mut(), 3.0);
        assert_eq!(old.map(|tracked| tracked.progress()), [2.0, 0.0, 1.5]);
    }

    /// The program is assumed to have waited since it last ran, until it is found stopped.
    #[test]
    fn waiting_assumed_for_a_stopped_program_is_taken_back() {
        let rest = |on_cpu| {
            let sample = Sample {
                on_cpu: Nanos::from_millis(on_cpu),
                quality: Quality::Exact,
                ..Sample::empty(program(0, 1).id, Nanos::ZERO, Nanos::from_millis(100))
            };
            let mut scene = Scene::new(1, vec![program(0, 1)]);
            scene.samples = vec![sample];
            Segment::of(&scene.programs[0], &scene.world(), true).unwrap()
        };
        let mut tracked = TrackedProgram::default();
        for on_cpu in [50, 30, 0, 0] {
            tracked.add_progress(0.1, 2.0);
            tracked.counts_waits(&rest(on_cpu), 1);
        }
        tracked.is_stopped(2.0);
        assert!((tracked.alone() - 0.13).abs() < 1e-12, "{}", tracked.alone());
        assert!((tracked.progress() - 0.065).abs() < 1e-12, "{}", tracked.progress());
        tracked.is_stopped(2.0);
        tracked.comes_back(0.05);
        assert!((tracked.progress() - 0.065).abs() < 1e-12, "it is ahead");
        tracked.comes_back(0.5);
        assert!((tracked.progress() - 0.5).abs() < 1e-12);
        assert!((tracked.alone() - 0.13).abs() < 1e-12, "it did not do more");
    }
}
