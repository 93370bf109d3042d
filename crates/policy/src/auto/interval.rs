//! What programs did between two looks.
//!
//! CPU time, the part of it outside the kernel, and the time without a CPU are the evidence that may be had without any right.
//! A program that spins is as busy by it as one that computes; one that yields, or sleeps and is woken, is not. Threads that
//! wait for CPUs tell that these are short, also where somebody else uses them.
//!
//! *Other people's programs* take CPUs from ours, more of them while few of our threads run. So where the time without a CPU is known,
//! a program counts for all threads that it had at work, on a CPU or not: for what it would have done on CPUs of its own.
//!
//! The policy in force may have programs read, too, and then an interval comes in several samples.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Add as _;

use cosched_core::{Cause, Nanos, ProgramId, Sample};

/// Time outside the kernel of which it is seen whether threads wait in it for each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Waits {
    waiting: f64,
    of: f64,
}

/// What one program did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Did {
    /// From the first to the last moment of the interval.
    pub(super) seconds: f64,
    /// Of these, in how many it might run.
    pub(super) running: f64,
    /// CPU time.
    pub(super) on_cpu: f64,
    /// Of that, outside the kernel.
    pub(super) outside: f64,
    /// How much of it was spent waiting in a runtime, where that is seen.
    pub(super) waits: Option<Waits>,
    /// For how long its threads were ready to run and had no CPU, all together; where that is known.
    pub(super) queued: Option<f64>,
    /// How far it came by its own account, where it had told anything by the end of each part of the interval.
    pub(super) ticks: Option<f64>,
}

impl Did {
    fn of(sample: &Sample) -> Did {
        let length = sample.to.since(sample.from);
        let outside = sample.user_time.unwrap_or(sample.on_cpu).as_secs_f64();
        let waiting = sample.in_runtime.map(Nanos::as_secs_f64);
        // Nobody was there yet, or all were frozen: that nothing is known of such a part does not hide the others.
        let nothing = (sample.on_cpu == Nanos::ZERO).then_some(Nanos::ZERO);
        Did {
            seconds: length.as_secs_f64(),
            running: length.since(sample.frozen).as_secs_f64(),
            on_cpu: sample.on_cpu.as_secs_f64(),
            queued: sample.run_delay.or(nothing).map(Nanos::as_secs_f64),
            outside,
            waits: waiting.map(|waiting| Waits { waiting, of: outside }),
            ticks: sample.progress.map(|ticks| ticks as f64),
        }
    }

    /// With what it did afterwards.
    fn plus(self, then: Did) -> Did {
        let both = |one: Option<f64>, other: Option<f64>| Some(one? + other?);
        let sum = |(one, other): (Waits, Waits)| Waits {
            waiting: one.waiting + other.waiting,
            of: one.of + other.of,
        };
        Did {
            seconds: self.seconds + then.seconds,
            running: self.running + then.running,
            on_cpu: self.on_cpu + then.on_cpu,
            outside: self.outside + then.outside,
            waits: self.waits.zip(then.waits).map(sum).or(self.waits).or(then.waits),
            queued: both(self.queued, then.queued),
            ticks: both(self.ticks, then.ticks),
        }
    }

    /// Of the time outside the kernel, the part in which it waited, where that is seen.
    pub(super) fn part_waiting(&self) -> Option<f64> {
        self.waits.map(|waits| part(waits.waiting, waits.of))
    }

    /// The time outside the kernel, as far as it is not seen to wait in it.
    fn at_work_outside(&self) -> f64 {
        self.outside * (1.0 - self.part_waiting().unwrap_or_default())
    }

    /// How many CPUs it used.
    pub(super) fn used(&self) -> f64 {
        self.on_cpu / self.seconds
    }

    /// How many threads it had at work while it might run; where that is not known, how many had a CPU.
    pub(super) fn width(&self) -> f64 {
        self.at_work().unwrap_or(self.on_cpu / self.running)
    }

    /// How many CPUs it would have kept at work outside the kernel, of so many.
    pub(super) fn rate(&self, cpus: usize) -> f64 {
        self.width().min(cpus as f64) * part(self.at_work_outside(), self.on_cpu)
    }

    /// How many threads it had at work, with a CPU or without.
    pub(super) fn at_work(&self) -> Option<f64> {
        Some((self.on_cpu + self.queued?) / self.running)
    }
}

/// What all did.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Interval(pub(super) BTreeMap<ProgramId, Did>);

/// An interval that is not over.
#[derive(Debug, Default)]
pub(super) struct Going {
    so_far: Interval,
    /// When the latest sample of it ended.
    until: Nanos,
}

impl Going {
    /// Takes in what was read just now.
    pub(super) fn add(&mut self, causes: &[Cause], samples: &[Sample]) {
        let read = causes.iter().filter_map(|cause| match cause {
            Cause::Sampled(id) => Some(*id),
            _ => None,
        });
        let read: BTreeSet<ProgramId> = read.collect();
        let is_new = |sample: &&Sample| sample.to > self.until && sample.to > sample.from;
        let whole = samples.iter().filter(|sample| sample.thread.is_none()).filter(is_new);
        let new: Vec<&Sample> = whole.filter(|sample| read.contains(&sample.program)).collect();
        for sample in new {
            let did = Did::of(sample);
            let all = self.so_far.0.entry(sample.program);
            all.and_modify(|before| *before = before.plus(did)).or_insert(did);
            self.until = self.until.max(sample.to);
        }
    }

    /// What was done up to now.
    pub(super) fn so_far(&self) -> &Interval {
        &self.so_far
    }

    /// Ends it, and begins another one.
    pub(super) fn end(&mut self) -> Interval {
        let mut did = std::mem::take(&mut self.so_far);
        // A kernel that keeps no such account tells that nobody ever waits.
        if did.0.values().all(|did| did.queued.is_none_or(|queued| queued == 0.0)) {
            did.0.values_mut().for_each(|did| did.queued = None);
        }
        did
    }
}

impl Interval {
    /// Of these programs only.
    pub(super) fn of_those(&self, is_one: impl Fn(ProgramId) -> bool) -> Interval {
        Interval(
            self.0.iter().filter(|(id, _)| is_one(**id)).map(|(id, did)| (*id, *did)).collect(),
        )
    }

    /// As if these had no threads that waited: who was lent fewer CPUs than it has threads for has them wait for each other.
    pub(super) fn without_queues_of(mut self, ids: &BTreeSet<ProgramId>) -> Interval {
        let those = self.0.iter_mut().filter(|(id, _)| ids.contains(id));
        those.for_each(|(_, did)| did.queued = None);
        self
    }

    /// With this part of what each did outside the kernel spent waiting, where nobody looked and that is known.
    pub(super) fn waiting_as(mut self, part: impl Fn(ProgramId) -> Option<f64>) -> Interval {
        for (id, did) in &mut self.0 {
            let known = || Some(Waits { waiting: part(*id)?, of: 1.0 });
            did.waits = did.waits.or_else(known);
        }
        self
    }

    /// Of all CPU time, the part in which threads are seen to have waited.
    pub(super) fn part_waiting(&self) -> f64 {
        let waiting = self.0.values().map(|did| did.outside - did.at_work_outside());
        part(waiting.sum(), self.0.values().map(|did| did.on_cpu).sum())
    }

    /// How long it was.
    pub(super) fn seconds(&self) -> f64 {
        self.0.values().map(|did| did.seconds).fold(0.0, f64::max)
    }

    /// How many CPUs they used together.
    pub(super) fn used(&self) -> f64 {
        self.0.values().map(Did::used).sum()
    }

    /// How many threads waited for a CPU, where that is known of all programs.
    pub(super) fn waiting(&self) -> Option<f64> {
        self.0.values().map(|did| Some(did.queued? / did.seconds)).sum()
    }

    /// How many CPUs others had while their threads waited for one, of so many.
    pub(super) fn taken(&self, cpus: usize) -> f64 {
        (self.at_work(cpus) - self.used()).max(0.0)
    }

    /// How many CPUs they would have kept at work outside the kernel together, of so many.
    pub(super) fn useful(&self, cpus: usize) -> f64 {
        self.busy_by(cpus, Did::at_work_outside)
    }

    /// The same, where waiting for each other counts as work.
    pub(super) fn busy(&self, cpus: usize) -> f64 {
        self.busy_by(cpus, |did| did.outside)
    }

    fn busy_by(&self, cpus: usize, counts: fn(&Did) -> f64) -> f64 {
        // Of nobody, `sum` would be -0.
        let sum = |of: fn(&Did) -> f64| self.0.values().map(of).fold(0.0, f64::add);
        self.at_work(cpus) * part(sum(counts), sum(|did| did.on_cpu))
    }

    /// How many CPUs they would have kept at work together, of so many.
    fn at_work(&self, cpus: usize) -> f64 {
        let cpus = cpus as f64;
        let width = |did: &Did| did.width().min(cpus) * did.running / did.seconds;
        let at_work: f64 = self.0.values().map(width).sum();
        at_work.min(cpus)
    }
}

/// Nothing of nothing is nothing.
fn part(one: f64, all: f64) -> f64 {
    if all > 0.0 { one / all } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second in which so many threads of two at work have had a CPU, this part of it outside the kernel.
    fn interval(programs: u16, on_cpu: f64, outside: f64) -> Interval {
        let one = |slot| {
            let queued = Some(2.0 - on_cpu);
            let (seconds, running, waits, ticks) = (1.0, 1.0, None, None);
            let did = Did { seconds, running, on_cpu, outside, waits, queued, ticks };
            (ProgramId::first(slot), did)
        };
        Interval((0..programs).map(one).collect())
    }

    #[test]
    fn what_others_use_makes_no_difference() {
        let alone = |on_cpu| interval(1, on_cpu, 0.8 * on_cpu).useful(2);
        assert!((alone(2.0) - 1.6).abs() < 1e-9 && (alone(0.5) - 1.6).abs() < 1e-9);
        let beside = interval(4, 0.5, 0.4);
        assert!((beside.useful(2) - 1.6).abs() < 1e-9, "two CPUs for eight threads");
        assert_eq!(beside.waiting(), Some(6.0));
    }

    #[test]
    fn others_have_what_threads_at_work_do_without() {
        let taken = |programs, on_cpu| interval(programs, on_cpu, on_cpu).taken(2);
        assert_eq!(taken(1, 2.0), 0.0);
        assert!((taken(1, 0.5) - 1.5).abs() < 1e-9);
        assert_eq!(taken(4, 0.5), 0.0, "they only wait for each other");
        assert!((taken(4, 0.3) - 0.8).abs() < 1e-9);
        let unknown = interval(1, 0.5, 0.5).without_queues_of(&[ProgramId::first(0)].into());
        assert_eq!(unknown.taken(2), 0.0);
    }

    #[test]
    fn who_waits_in_a_runtime_does_nothing_but_keeps_its_cpus_from_others() {
        let (id, unseen) = (ProgramId::first(0), interval(1, 2.0, 1.8));
        assert_eq!(unseen.0[&id].part_waiting(), None, "nobody looked");
        let spins = unseen.clone().waiting_as(|_| Some(0.75));
        assert!((spins.useful(2) - 0.45).abs() < 1e-9 && (spins.busy(2) - 1.8).abs() < 1e-9);
        assert_eq!(spins.clone().waiting_as(|_| Some(0.9)), spins, "what was seen counts");
        assert_eq!(unseen.clone().waiting_as(|_| None), unseen);
        // Half of the time was seen; the rest is taken to be like that.
        let both = spins.0[&id].plus(unseen.0[&id]);
        assert_eq!(both.part_waiting(), Some(0.75));
        assert!((both.at_work_outside() - 0.9).abs() < 1e-9);
    }

    #[test]
    fn threads_that_share_lent_cpus_are_no_more_than_these() {
        let (lent, id) = (interval(2, 0.5, 0.5), ProgramId::first(1));
        assert!((lent.useful(8) - 4.0).abs() < 1e-9);
        let lent = lent.without_queues_of(&[id].into());
        assert!((lent.useful(8) - 2.5).abs() < 1e-9, "two threads at work, and half a CPU");
    }

    #[test]
    fn an_interval_may_come_in_several_samples_and_no_sample_counts_twice() {
        let (id, second) = (ProgramId::first(0), Nanos::from_secs(1));
        let sample = |from, progress| {
            let empty = Sample::empty(id, second * from, second * (from + 1));
            Sample { on_cpu: second / 2, frozen: second / 4, progress, ..empty }
        };
        let (mut going, read) = (Going::default(), [Cause::Sampled(id)]);
        going.add(&read, &[sample(0, Some(3))]);
        going.add(&read, &[sample(0, Some(3))]);
        going.add(&read, &[sample(1, Some(4))]);
        going.add(&[], &[sample(2, Some(5))]);
        let did = going.end().0[&id];
        assert_eq!((did.seconds, did.running, did.on_cpu, did.ticks), (2.0, 1.5, 1.0, Some(7.0)));
        going.add(&read, &[sample(2, None)]);
        going.add(&read, &[sample(3, Some(4))]);
        assert_eq!(going.end().0[&id].ticks, None, "it had not told anything at first");
        assert_eq!(going.end(), Interval::default());
    }

    #[test]
    fn who_was_not_there_in_a_part_of_the_interval_waited_for_no_cpu_then() {
        let second = Nanos::from_secs(1);
        let sample = |slot, from, on_cpu, run_delay| {
            let empty = Sample::empty(ProgramId::first(slot), second * from, second * (from + 1));
            Sample { on_cpu, run_delay, ..empty }
        };
        let (waited, none) = (Some(second / 2), Nanos::ZERO);
        let waiting = |samples: &[&[Sample]]| {
            let mut going = Going::default();
            let read = [Cause::Sampled(ProgramId::first(0)), Cause::Sampled(ProgramId::first(1))];
            samples.iter().for_each(|samples| going.add(&read, samples));
            going.end().waiting()
        };
        let late = [sample(0, 0, second, waited), sample(1, 0, none, None)];
        assert_eq!(waiting(&[&late]), Some(0.5));
        let came = [sample(0, 1, second, waited), sample(1, 1, second, waited)];
        assert_eq!(waiting(&[&late, &came]), Some(0.75));
        let untold = [sample(0, 1, second, waited), sample(1, 1, second, None)];
        assert_eq!(waiting(&[&late, &untold]), None);
    }
}
