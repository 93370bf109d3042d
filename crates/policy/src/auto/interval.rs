//! What programs did between two samples.
//!
//! CPU time, the part of it outside the kernel, and the time that threads waited for a CPU can be
//! read without any permission. A thread that spins looks as busy as one that computes. A thread
//! that yields or sleeps does not.
//!
//! *Processes of other users* take CPUs away, and they take more while few of our threads run.
//! Where the time in the queue for a CPU is known, a program therefore counts with all its active
//! threads, with a CPU or without. This is what it would have done on CPUs of its own.
//!
//! The policy in force may also have programs read, so an interval can consist of several samples.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Add as _;

use cosched_core::{Cause, Nanos, ProgramId, Sample};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ProgramInterval {
    /// The length of the interval, seconds.
    pub(super) seconds: f64,
    /// The part of it in which the program might run, seconds.
    pub(super) running: f64,
    /// CPU time, seconds.
    pub(super) on_cpu: f64,
    /// The part of the CPU time outside the kernel, seconds.
    outside: f64,
    /// How long its threads waited for a CPU, seconds, summed over the threads; `None`: unknown.
    queued: Option<f64>,
}

impl ProgramInterval {
    fn of(sample: &Sample) -> ProgramInterval {
        let length = sample.to.since(sample.from);
        // A program that did nothing waited for nothing, even where this is unknown.
        let nothing = (sample.on_cpu == Nanos::ZERO).then_some(Nanos::ZERO);
        ProgramInterval {
            seconds: length.as_secs_f64(),
            running: length.since(sample.frozen).as_secs_f64(),
            on_cpu: sample.on_cpu.as_secs_f64(),
            outside: sample.user_time.unwrap_or(sample.on_cpu).as_secs_f64(),
            queued: sample.run_delay.or(nothing).map(Nanos::as_secs_f64),
        }
    }

    fn plus(self, then: ProgramInterval) -> ProgramInterval {
        ProgramInterval {
            seconds: self.seconds + then.seconds,
            running: self.running + then.running,
            on_cpu: self.on_cpu + then.on_cpu,
            outside: self.outside + then.outside,
            queued: self.queued.zip(then.queued).map(|(one, other)| one + other),
        }
    }

    /// How many threads it had active while it might run. Where the queue is unknown, how many had
    /// a CPU.
    pub(super) fn width(&self) -> f64 {
        (self.on_cpu + self.queued.unwrap_or_default()) / self.running
    }

    /// How many of this number of CPUs it would have kept busy outside the kernel.
    pub(super) fn rate(&self, cpus: usize) -> f64 {
        self.width().min(cpus as f64) * ratio(self.outside, self.on_cpu)
    }
}

/// What all programs did.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SampledInterval(pub(super) BTreeMap<ProgramId, ProgramInterval>);

/// An interval that has not ended.
#[derive(Debug, Default)]
pub(super) struct Going {
    so_far: SampledInterval,
    /// When its latest sample ended.
    until: Nanos,
}

impl Going {
    /// Adds the samples that were just read.
    pub(super) fn add(&mut self, causes: &[Cause], samples: &[Sample]) {
        let read: BTreeSet<ProgramId> = causes
            .iter()
            .filter_map(|cause| match cause {
                Cause::Sampled(id) => Some(*id),
                _ => None,
            })
            .collect();
        let is_new = |sample: &&Sample| {
            let is_whole = sample.thread.is_none() && sample.to > sample.from;
            is_whole && sample.to > self.until && read.contains(&sample.program)
        };
        let new: Vec<&Sample> = samples.iter().filter(is_new).collect();
        for sample in new {
            let did = ProgramInterval::of(sample);
            let all = self.so_far.0.entry(sample.program);
            all.and_modify(|before| *before = before.plus(did)).or_insert(did);
            self.until = self.until.max(sample.to);
        }
    }

    /// Ends this interval, and begins another one.
    pub(super) fn end(&mut self) -> SampledInterval {
        let mut did = std::mem::take(&mut self.so_far);
        // A kernel without this account says that no thread ever waits.
        if did.0.values().all(|did| did.queued.is_none_or(|queued| queued == 0.0)) {
            did.0.values_mut().for_each(|did| did.queued = None);
        }
        did
    }
}

impl SampledInterval {
    /// The interval of the programs that the condition selects.
    pub(super) fn of_those(&self, is_one: impl Fn(ProgramId) -> bool) -> SampledInterval {
        let those = self.0.iter().filter(|(id, _)| is_one(**id));
        SampledInterval(those.map(|(id, did)| (*id, *did)).collect())
    }

    /// The interval with the queues of these programs unknown: threads that share fewer CPUs than
    /// they are wait for each other.
    pub(super) fn without_queues_of(mut self, ids: &BTreeSet<ProgramId>) -> SampledInterval {
        let those = self.0.iter_mut().filter(|(id, _)| ids.contains(id));
        those.for_each(|(_, did)| did.queued = None);
        self
    }

    pub(super) fn seconds(&self) -> f64 {
        self.0.values().map(|did| did.seconds).fold(0.0, f64::max)
    }

    /// How many CPUs all programs used.
    pub(super) fn used(&self) -> f64 {
        self.0.values().map(|did| did.on_cpu / did.seconds).sum()
    }

    /// How many threads waited for a CPU, if that is known for all programs.
    pub(super) fn waiting(&self) -> Option<f64> {
        self.0.values().map(|did| Some(did.queued? / did.seconds)).sum()
    }

    /// How many of this number of CPUs the programs would have kept busy outside the kernel.
    pub(super) fn busy(&self, cpus: usize) -> f64 {
        // `sum` of no program would be -0.
        let sum = |of: fn(&ProgramInterval) -> f64| self.0.values().map(of).fold(0.0, f64::add);
        let most = cpus as f64;
        let width = |did: &ProgramInterval| did.width().min(most) * did.running / did.seconds;
        let at_work: f64 = self.0.values().map(width).sum();
        at_work.min(most) * ratio(sum(|did| did.outside), sum(|did| did.on_cpu))
    }
}

/// The part divided by the whole; zero if the whole is zero.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second in which two threads were active, with this CPU time, and this part of it outside
    /// the kernel.
    fn interval(programs: u16, on_cpu: f64, outside: f64) -> SampledInterval {
        let queued = Some(2.0 - on_cpu);
        let did = ProgramInterval { seconds: 1.0, running: 1.0, on_cpu, outside, queued };
        SampledInterval((0..programs).map(|slot| (ProgramId::first(slot), did)).collect())
    }

    #[test]
    fn cpu_time_of_other_users_makes_no_difference() {
        let alone = |on_cpu| interval(1, on_cpu, 0.8 * on_cpu).busy(2);
        assert!((alone(2.0) - 1.6).abs() < 1e-9 && (alone(0.5) - 1.6).abs() < 1e-9);
        let together = interval(4, 0.5, 0.4);
        assert!((together.busy(2) - 1.6).abs() < 1e-9, "two CPUs for eight threads");
        assert_eq!(together.waiting(), Some(6.0));
    }

    #[test]
    fn threads_on_backfilled_cpus_count_as_these_cpus() {
        let (backfilled, id) = (interval(2, 0.5, 0.5), ProgramId::first(1));
        assert!((backfilled.busy(8) - 4.0).abs() < 1e-9);
        let backfilled = backfilled.without_queues_of(&[id].into());
        assert!((backfilled.busy(8) - 2.5).abs() < 1e-9, "two threads at work, and half a CPU");
    }

    /// With several samples in an interval, none counts twice.
    #[test]
    fn an_interval_may_have_several_samples() {
        let (id, second) = (ProgramId::first(0), Nanos::from_secs(1));
        let sample = |from| {
            let empty = Sample::empty(id, second * from, second * (from + 1));
            Sample { on_cpu: second / 2, frozen: second / 4, ..empty }
        };
        let (mut going, read) = (Going::default(), [Cause::Sampled(id)]);
        going.add(&read, &[sample(0)]);
        going.add(&read, &[sample(0)]);
        going.add(&read, &[sample(1)]);
        going.add(&[], &[sample(2)]);
        let did = going.end().0[&id];
        assert_eq!((did.seconds, did.running, did.on_cpu), (2.0, 1.5, 1.0));
        assert_eq!(going.end(), SampledInterval::default());
    }

    #[test]
    fn a_program_waits_for_no_cpu_before_it_arrives() {
        let second = Nanos::from_secs(1);
        let sample = |slot, from, on_cpu, run_delay| {
            let empty = Sample::empty(ProgramId::first(slot), second * from, second * (from + 1));
            Sample { on_cpu, run_delay, ..empty }
        };
        let (waited, none) = (Some(second / 2), Nanos::ZERO);
        let waiting = |samples: &[&[Sample]]| {
            let mut going = Going::default();
            let read = [0, 1].map(|slot| Cause::Sampled(ProgramId::first(slot)));
            samples.iter().for_each(|samples| going.add(&read, samples));
            going.end().waiting()
        };
        let late = [sample(0, 0, second, waited), sample(1, 0, none, None)];
        assert_eq!(waiting(&[&late]), Some(0.5));
        let came = [sample(0, 1, second, waited), sample(1, 1, second, waited)];
        assert_eq!(waiting(&[&late, &came]), Some(0.75));
        let unknown = [sample(0, 1, second, waited), sample(1, 1, second, None)];
        assert_eq!(waiting(&[&late, &unknown]), None);
    }
}
