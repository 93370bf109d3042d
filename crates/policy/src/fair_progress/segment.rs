//! A segment: what a program did in a quantum.
//!
//! *Source.* The FPS paper, sections 4.1 and 4.2. Ours: speed is work per CPU second, so that
//! waiting for a disk or a lock is no slowdown by others. Work is instructions where they are
//! counted, else the progress reported by the program: its ticks. These come in *lumps*: a segment
//! with four ticks is not a third faster than one with three. Where traffic is not given in bytes,
//! every last-level miss is a cache line. Where nothing is counted, traffic is what the user says
//! that the program has alone.
//!
//! By the accounts, a program may have used more CPU time than all CPUs had in the time in which it
//! was allowed to run. Another process has then thawed it, and this was not reported. Such a
//! program counts as running for as long as it used or requested its own CPUs.

use cosched_core::{Nanos, Program, World};

use super::params::Params;
use super::vector::BlockVector;

/// Bytes of a cache line.
const LINE: f64 = 64.0;
/// Cache lines per second of one GB/s.
const LINES_PER_GIGABYTE: f64 = 1e9 / LINE;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Segment {
    /// Seconds that it was allowed to run.
    running: f64,
    /// CPU seconds, of all its threads.
    pub(super) on_cpu: f64,
    /// Seconds in which threads were ready and had no CPU, of all threads.
    delayed: f64,
    /// Instructions or ticks.
    work: Option<f64>,
    /// The work comes in lumps: it is ticks.
    pub(super) in_lumps: bool,
    /// Seconds that the work would have taken alone, where the machine tells.
    reported_alone: Option<f64>,
    /// Cache lines over the memory bus.
    lines: Option<f64>,
    /// Its positions in its code.
    pub(super) vector: BlockVector,
}

impl Segment {
    /// The segment from a program's samples; `None` if it was not allowed to run. Traffic is of no
    /// use where the peak is not known.
    pub(super) fn of(program: &Program, world: &World<'_>, has_peak: bool) -> Option<Segment> {
        let own = |sample: &&cosched_core::Sample| {
            sample.program == program.id && sample.thread.is_none()
        };
        let sample = world.samples.iter().find(own)?;
        let on_cpu = sample.on_cpu.as_secs_f64();
        let delayed = sample.run_delay.map_or(0.0, Nanos::as_secs_f64);
        let let_run = (sample.to - sample.from).since(sample.frozen).as_secs_f64();
        let running = match on_cpu > let_run * world.cpus.len() as f64 {
            // A wait for a CPU may be reported in the next quantum only, and then be longer than
            // that.
            true => requested_seconds(on_cpu, delayed, program.thread_count.into()),
            false => let_run,
        };
        let bins = world.ips.iter().filter(|bin| bin.program == program.id);
        let bytes = sample.memory_bytes.map(|bytes| bytes as f64 / LINE);
        let counted = bytes.or(sample.llc_misses.map(|misses| misses as f64));
        let said = program.profile.memory_gigabytes_per_second;
        let said = said.map(|traffic| traffic * LINES_PER_GIGABYTE * running);
        let instructions = sample.instructions.filter(|count| *count > 0);
        (running > 0.0).then(|| Segment {
            running,
            on_cpu,
            delayed,
            work: instructions.or(sample.progress).map(|work| work as f64),
            in_lumps: instructions.is_none() && sample.progress.is_some(),
            reported_alone: sample.alone.map(Nanos::as_secs_f64),
            lines: counted.or(said).filter(|_| has_peak),
            vector: BlockVector::new(bins),
        })
    }

    /// The segment of a program that was stopped for an unknown part of the time: only the time
    /// counts in which it used or requested this many CPUs. `None` if it did neither.
    pub(super) fn without_rest(self, cpus: usize) -> Option<Segment> {
        let running = self.running.min(requested_seconds(self.on_cpu, self.delayed, cpus));
        (running > 0.0).then_some(Segment { running, ..self })
    }

    /// A segment of one CPU second with this much work and this many cache lines per work.
    #[cfg(test)]
    pub(super) fn of_work(work: f64, lines: f64) -> Segment {
        let lines = Some(lines * work).filter(|lines| *lines > 0.0);
        Segment { running: 1.0, on_cpu: 1.0, work: Some(work), lines, ..Segment::default() }
    }

    /// Instructions or ticks; `None` if nothing was counted.
    pub(super) fn work(&self) -> Option<f64> {
        self.work.filter(|work| *work > 0.0 || self.in_lumps)
    }

    /// Work per CPU second; `None` if it hardly ran, or nothing was counted.
    pub(super) fn speed(&self, params: &Params) -> Option<f64> {
        let work = self.work()?;
        (!self.is_idle(params)).then(|| work / self.on_cpu)
    }

    /// Cache lines per microsecond while it was allowed to run; `None` if nothing was counted.
    pub(super) fn traffic(&self) -> Option<f64> {
        self.lines.map(|lines| lines / self.running / 1e6)
    }

    pub(super) fn lines_per_work(&self) -> Option<f64> {
        let work = self.work.filter(|work| *work > 0.0)?;
        self.lines.map(|lines| lines / work)
    }

    /// Seconds that this work would have taken alone on this number of CPUs, if `relative_speed` is
    /// its present speed over that alone.
    ///
    /// Equation 3: with one CPU that it uses all the time, work over speed alone. Time that it
    /// waited for anything but a CPU it would have waited alone, too.
    pub(super) fn alone(&self, relative_speed: f64, cpus: usize) -> f64 {
        self.used(cpus) * relative_speed + self.waited(cpus)
    }

    /// Seconds that it waited for anything but its CPUs.
    pub(super) fn waited(&self, cpus: usize) -> f64 {
        (self.running - self.used(cpus) - self.delayed / cpus.max(1) as f64).max(0.0)
    }

    /// Whether it hardly used a CPU.
    pub(super) fn is_idle(&self, params: &Params) -> bool {
        self.on_cpu < params.least_cpu_time
    }

    /// Seconds that it used its CPUs.
    pub(super) fn used(&self, cpus: usize) -> f64 {
        (self.on_cpu / cpus.max(1) as f64).min(self.running)
    }

    /// Seconds alone, as the machine tells.
    pub(super) fn alone_as_reported(&self, cpus: usize) -> f64 {
        self.reported_alone.map_or_else(
            || self.alone(1.0, cpus),
            |reported_alone| self.waited(cpus) + reported_alone,
        )
    }
}

/// Seconds in which a program used or requested this number of CPUs, from the CPU seconds and the
/// delays of all its threads.
fn requested_seconds(on_cpu: f64, delayed: f64, cpus: usize) -> f64 {
    (on_cpu + delayed) / cpus.max(1) as f64
}

#[cfg(test)]
mod tests {
    use cosched_core::{Quality, Sample};

    use super::*;
    use crate::common::testkit::{Scene, program};

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    /// A quantum of 100 ms in which two million cache lines were moved.
    fn sample() -> Sample {
        Sample {
            on_cpu: MS(100),
            instructions: Some(200_000_000),
            memory_bytes: Some(128_000_000),
            quality: Quality::Exact,
            ..Sample::empty(program(0, 1).id, Nanos::ZERO, MS(100))
        }
    }

    fn segment(sample: Sample) -> Option<Segment> {
        let mut scene = Scene::new(4, vec![program(0, 1)]);
        scene.samples = vec![sample];
        Segment::of(&scene.programs[0], &scene.world(), true)
    }

    /// Speed is in instructions per CPU second, and traffic in cache lines per microsecond.
    #[test]
    fn speed_and_traffic_have_their_units() {
        let segment = segment(sample()).unwrap();
        assert_eq!(segment.speed(&Params::DEFAULT), Some(2e9));
        assert_eq!(segment.traffic(), Some(20.0));
        assert_eq!(segment.lines_per_work(), Some(0.01));
    }

    #[test]
    fn misses_replace_bytes_and_ticks_replace_instructions() {
        let coarse = Sample {
            instructions: None,
            progress: Some(50),
            memory_bytes: None,
            llc_misses: Some(1_000_000),
            ..sample()
        };
        let segment = segment(coarse).unwrap();
        assert_eq!((segment.speed(&Params::DEFAULT), segment.traffic()), (Some(500.0), Some(10.0)));
        assert!(segment.in_lumps);
    }

    /// A segment without ticks was slow. A segment without instructions was not counted.
    #[test]
    fn a_segment_without_ticks_was_slow() {
        let reported = Sample { instructions: None, progress: Some(0), ..sample() };
        assert_eq!(segment(reported).unwrap().speed(&Params::DEFAULT), Some(0.0));
        let counted = Sample { instructions: Some(0), progress: None, ..sample() };
        assert_eq!(segment(counted).unwrap().speed(&Params::DEFAULT), None);
    }

    /// A user's figure for traffic is of no use without the machine's peak.
    #[test]
    fn uncounted_traffic_is_what_the_user_says() {
        let mut scene = Scene::new(2, vec![program(0, 1)]);
        scene.programs[0].profile.memory_gigabytes_per_second = Some(0.64);
        scene.samples = vec![Sample { memory_bytes: None, ..sample() }];
        let traffic =
            |has_peak| Segment::of(&scene.programs[0], &scene.world(), has_peak).unwrap().traffic();
        assert!((traffic(true).unwrap() - 10.0).abs() < 1e-9);
        assert_eq!(traffic(false), None);
    }

    #[test]
    fn progress_is_the_time_alone_of_the_work() {
        let segment = segment(sample()).unwrap();
        // Slowed down to a half: 50 ms alone.
        assert!((segment.alone(0.5, 1) - 0.05).abs() < 1e-12);
    }

    #[test]
    fn waiting_for_a_disk_is_no_slowdown_and_waiting_for_a_cpu_is() {
        let half = Sample { on_cpu: MS(50), ..sample() };
        assert!((segment(half).unwrap().alone(0.5, 1) - 0.075).abs() < 1e-12);
        let queued = Sample { run_delay: Some(MS(50)), ..half };
        assert!((segment(queued).unwrap().alone(0.5, 1) - 0.025).abs() < 1e-12);
    }

    #[test]
    fn progress_on_several_cpus_is_per_time_not_per_cpu() {
        let wide = Sample { on_cpu: MS(400), ..sample() };
        assert!((segment(wide).unwrap().alone(0.5, 4) - 0.05).abs() < 1e-12);
    }

    /// A program that was frozen for the whole quantum has no segment.
    #[test]
    fn frozen_time_does_not_count() {
        let late = Sample { frozen: MS(60), on_cpu: MS(40), ..sample() };
        assert!((segment(late).unwrap().alone(1.0, 1) - 0.04).abs() < 1e-12);
        assert_eq!(segment(Sample { frozen: MS(100), on_cpu: Nanos::ZERO, ..sample() }), None);
    }

    /// Of a program that was stopped for a part of the segment, only the time counts in which it
    /// used or requested a CPU.
    #[test]
    fn only_time_with_work_counts_if_stopped_meanwhile() {
        let stopped = Sample { on_cpu: MS(30), run_delay: Some(MS(20)), ..sample() };
        let segment_then = segment(stopped).unwrap().without_rest(1).unwrap();
        assert!((segment_then.alone(0.5, 1) - 0.015).abs() < 1e-12);
        assert_eq!(segment_then.traffic(), Some(40.0), "within 50 ms");
        let idle = Sample { on_cpu: Nanos::ZERO, ..sample() };
        assert_eq!(segment(idle).unwrap().without_rest(1), None);
    }

    /// A program that used more CPU time than there was, although it counted as frozen, was thawed
    /// from outside.
    #[test]
    fn using_more_than_there_is_shows_an_unseen_thaw() {
        // On four CPUs no program uses 40 ms in 5 ms.
        let freed = Sample { frozen: MS(95), on_cpu: MS(40), run_delay: Some(MS(20)), ..sample() };
        assert!((segment(freed).unwrap().alone(1.0, 1) - 0.04).abs() < 1e-12);
        let traffic = segment(freed).unwrap().traffic().unwrap();
        assert!((traffic - 2.0 / 0.06).abs() < 1e-9, "within 60 ms");
        let reported_late = Sample { frozen: MS(95), on_cpu: MS(400), ..sample() };
        assert!((segment(reported_late).unwrap().alone(1.0, 1) - 0.4).abs() < 1e-12);
        // On four CPUs, the program may have used 15 ms of the 20.
        let may_be = Sample { frozen: MS(95), on_cpu: MS(15), ..sample() };
        assert!((segment(may_be).unwrap().alone(1.0, 1) - 0.005).abs() < 1e-12);
    }

    #[test]
    fn hardly_any_cpu_time_gives_no_speed() {
        let idle = Sample { on_cpu: Nanos::from_micros(10), ..sample() };
        assert_eq!(segment(idle).unwrap().speed(&Params::DEFAULT), None);
        assert_eq!(
            segment(Sample { instructions: Some(0), ..sample() }).unwrap().speed(&Params::DEFAULT),
            None
        );
    }

    /// Where the machine tells how long the work takes alone, this is the progress.
    #[test]
    fn times_alone_from_the_machine_count_as_progress() {
        let known = Sample { alone: Some(MS(30)), ..sample() };
        assert!((segment(known).unwrap().alone_as_reported(1) - 0.03).abs() < 1e-12);
    }
}
