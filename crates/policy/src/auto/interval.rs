//! What programs did between two looks.
//!
//! CPU time, the part of it outside the kernel, and the time without a CPU are the evidence that may be had without any right.
//! A program that spins is as busy by it as one that computes; one that yields, or sleeps and is woken, is not. Threads that
//! wait for CPUs tell that these are short, also where somebody else uses them.

use std::collections::BTreeMap;

use cosched_core::{Nanos, ProgramId, Sample};

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
    /// For how long its threads were ready to run and had no CPU, all together; where that is known.
    pub(super) queued: Option<f64>,
}

impl Did {
    fn of(sample: &Sample) -> Did {
        let length = sample.to.since(sample.from);
        Did {
            seconds: length.as_secs_f64(),
            running: length.since(sample.frozen).as_secs_f64(),
            on_cpu: sample.on_cpu.as_secs_f64(),
            queued: sample.run_delay.map(Nanos::as_secs_f64),
            outside: sample.user_time.unwrap_or(sample.on_cpu).as_secs_f64(),
        }
    }

    /// How many CPUs it used.
    pub(super) fn used(&self) -> f64 {
        self.on_cpu / self.seconds
    }

    /// How many CPUs it used while it might run.
    pub(super) fn width(&self) -> f64 {
        self.on_cpu / self.running
    }

    /// The same outside the kernel.
    pub(super) fn rate(&self) -> f64 {
        self.outside / self.running
    }

    /// How many threads it had at work, with a CPU or without.
    pub(super) fn at_work(&self) -> Option<f64> {
        Some((self.on_cpu + self.queued?) / self.running)
    }
}

/// What all did.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Interval(pub(super) BTreeMap<ProgramId, Did>);

impl Interval {
    /// By samples that were taken after `since`.
    pub(super) fn of(samples: &[Sample], since: Nanos) -> Interval {
        let whole = samples.iter().filter(|sample| {
            sample.thread.is_none() && sample.to > since && sample.to > sample.from
        });
        let mut all: BTreeMap<_, _> =
            whole.map(|sample| (sample.program, Did::of(sample))).collect();
        // A kernel that keeps no such account tells that nobody ever waits.
        if all.values().all(|did| did.queued.is_none_or(|queued| queued == 0.0)) {
            all.values_mut().for_each(|did| did.queued = None);
        }
        Interval(all)
    }

    /// Of these programs only.
    pub(super) fn of_those(&self, is_one: impl Fn(ProgramId) -> bool) -> Interval {
        Interval(
            self.0.iter().filter(|(id, _)| is_one(**id)).map(|(id, did)| (*id, *did)).collect(),
        )
    }

    /// How many CPUs they used together.
    pub(super) fn used(&self) -> f64 {
        self.0.values().map(Did::used).sum()
    }

    /// How many threads waited for a CPU, where that is known of all programs.
    pub(super) fn waiting(&self) -> Option<f64> {
        self.0.values().map(|did| Some(did.queued? / did.seconds)).sum()
    }

    /// How many CPUs they used together outside the kernel.
    pub(super) fn useful(&self) -> f64 {
        self.0.values().map(|did| did.outside / did.seconds).sum()
    }
}
