//! What programs did between two looks.
//!
//! CPU time and the part of it outside the kernel are the evidence that every machine has, without any right. A program
//! that spins is as busy by it as one that computes; one that yields, or sleeps and is woken, is not.

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
}

impl Did {
    fn of(sample: &Sample) -> Did {
        let length = sample.to.since(sample.from);
        Did {
            seconds: length.as_secs_f64(),
            running: length.since(sample.frozen).as_secs_f64(),
            on_cpu: sample.on_cpu.as_secs_f64(),
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
        Interval(whole.map(|sample| (sample.program, Did::of(sample))).collect())
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

    /// The same outside the kernel.
    pub(super) fn useful(&self) -> f64 {
        self.0.values().map(|did| did.outside / did.seconds).sum()
    }
}
