//! One slice for all threads of a program from its start to its end, and the results of each
//! interval. Training programs run like this, and a [table](super::training) is derived from their
//! times.
//!
//! The results are only reported, and nothing is decided by them. All runs of a program, with any
//! slice and with the kernel's own, are therefore observed alike.

use std::collections::BTreeSet;
use std::sync::mpsc::Sender;

use cosched_core::{Cause, Measure, Nanos, Observe, Plan, Policy, ProgramId, Settings, World};

use super::IntervalShares;
use crate::common::reasons::SharedReason;

/// The policy that runs everything at once, with one slice.
#[derive(Debug)]
pub struct Fixed {
    slice: Option<Nanos>,
    interval: Nanos,
    sender: Sender<IntervalShares>,
    /// Programs after their first interval, in which they prepare themselves.
    prepared: BTreeSet<ProgramId>,
}

impl Fixed {
    /// A policy with this slice (`None`: the kernel's own) and interval. `sender` gets each
    /// interval of a program except its first.
    pub fn new(slice: Option<Nanos>, interval: Nanos, sender: Sender<IntervalShares>) -> Fixed {
        Fixed { slice, interval, sender, prepared: BTreeSet::new() }
    }
}

impl Policy for Fixed {
    fn decide(&mut self, causes: &[Cause], world: &World<'_>, plan: &mut Plan) {
        for cause in causes {
            match *cause {
                Cause::Arrived(id) => {
                    plan.run(id, Settings { slice: self.slice, ..Settings::default() });
                    plan.because(Some(id), SharedReason::LeftToKernel);
                    let measures = [Measure::LockWait, Measure::CpuTime, Measure::Counters];
                    plan.observe.extend(measures.map(|measure| Observe {
                        program: Some(id),
                        measure,
                        period: self.interval,
                    }));
                }
                Cause::Sampled(id) if !self.prepared.insert(id) => {
                    // A receiver that has stopped listening has received enough.
                    let _ = IntervalShares::of(world, id).map(|found| self.sender.send(found));
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use cosched_core::{Directive, Sample, ThreadId};

    use super::*;
    use crate::common::testkit::{Lab, program};

    /// Each interval except the first is reported.
    #[test]
    fn the_slice_is_set_at_the_start() {
        let (sender, receiver) = channel();
        let slice = Some(Nanos::from_millis(7));
        let mut lab =
            Lab::new(Fixed::new(slice, Nanos::from_millis(250), sender), 2, vec![program(0, 2)]);
        let id = ProgramId::first(0);
        let Some(Directive::Run(settings)) = lab.plan.directive(id) else { panic!() };
        assert_eq!(settings.slice, slice);
        assert!(lab.plan.observe.iter().any(|observe| observe.measure == Measure::LockWait));
        for wait in [0.9, 0.25, 0.5] {
            let until = Nanos::from_secs(1);
            lab.scene.samples = vec![Sample {
                thread: Some(ThreadId { slot: 0, generation: 0 }),
                on_cpu: Nanos::from_millis(100),
                lock_wait: Some(Nanos((wait * 1e9) as u64)),
                ..Sample::empty(id, Nanos::ZERO, until)
            }];
            lab.tell(&[Cause::Sampled(id)]);
            assert_eq!(lab.plan.directive(id), None, "nothing follows from what is seen");
        }
        let found: Vec<f64> = receiver.try_iter().map(|found| found.lock_contention).collect();
        assert_eq!(found, [0.25, 0.5]);
    }
}
