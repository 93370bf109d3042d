//! The simulator allocates nothing while time passes: a run that is twice as long allocates no
//! more.

#![allow(clippy::unwrap_used, unsafe_code)]

mod stage;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use cosched_core::{Machine, Nanos, ProgramId, Settings, Step};
use cosched_sim::model::{AtBarrier, Mix, Op};
use cosched_sim::{Costs, Hardware, Kernel, Model, Sim, SimulatedJob};

struct Counting;

static COUNT: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract, which is that of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn no_event_allocates_after_the_first_events() {
    let streaming = Mix {
        misses: 0.02,
        misses_without_cache: 0.03,
        footprint: 1e7,
        parallelism: 4.0,
        ..Mix::computing(1.0)
    };
    let sleeper = Model {
        script: vec![
            Op::Compute { instructions: 1e5, mix: 0 },
            Op::Sleep(Nanos::from_micros(700)),
            Op::Repeat { from: 0, times: u32::MAX, counter: 0 },
        ],
        ..Model::parallel(8, 0.0, streaming)
    };
    let models = [
        Model::barriers(8, u32::MAX, 2e5, streaming, Nanos::from_micros(50)),
        Model::lock(12, u32::MAX, 1e5, 1e4, Mix::computing(1.0), Nanos::from_micros(20)),
        sleeper,
        Model {
            barrier: Some(AtBarrier::Donate),
            ..Model::barriers(8, u32::MAX, 1e5, Mix::computing(1.0), Nanos::ZERO)
        },
    ];
    let hardware = Hardware::words("package:2 core:4 pu:2 bus=package:10 bus=machine:15").unwrap();
    for kernel in Kernel::NAMES.iter().filter_map(|name| Kernel::named(name)) {
        let jobs = models.iter().map(|model| SimulatedJob { model: model.clone(), weight: 1.0 });
        let mut sim = Sim::new(hardware.clone(), kernel, jobs.collect(), Costs::MEASURED, 1);
        for slot in 0..4 {
            sim.submit(&[Step::Start(ProgramId::first(slot), Settings::default())]).unwrap();
        }
        let mut events = Vec::with_capacity(64);
        let mut until = |at: Nanos| {
            while sim.now() < at {
                sim.wait(at, &mut events).unwrap();
            }
            (sim.events(), COUNT.load(Ordering::Relaxed))
        };
        // By this time every queue has had its largest size.
        let before = until(Nanos::from_millis(300));
        let after = until(Nanos::from_millis(500));
        assert!(after.0 > before.0 + 20_000, "{} events", after.0 - before.0);
        assert_eq!(
            after.1 - before.1,
            0,
            "{kernel:?}: allocations in {} events",
            after.0 - before.0
        );
    }
}
