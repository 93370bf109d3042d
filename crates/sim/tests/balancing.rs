//! Where a thread goes by load balancing, on a machine of two packages.

#![allow(clippy::unwrap_used)]

mod stage;

use std::collections::BTreeSet;

use cosched_core::{CpuSet, Nanos, ProgramId, Settings, Step};
use cosched_sim::Kernel;
use stage::{Stage, computes, ideal, micros, program};

fn on(cpus: &[usize]) -> Settings {
    Settings { cpus: Some(cpus.iter().copied().collect::<CpuSet>()), ..Settings::default() }
}

#[test]
fn an_idle_cpu_takes_work_of_its_own_package_first() {
    for seed in 1..9 {
        // Three threads keep CPU 0 busy for 3 ms. It could then take one of the two of CPU 2,
        // behind the other cache of its package, or one of the three of CPU 4.
        let keeps_busy = (0, computes(1), on(&[0]));
        let (near, far) = ((100, computes(100), on(&[0, 2])), (100, computes(100), on(&[0, 4])));
        let programs = vec![
            keeps_busy.clone(),
            keeps_busy.clone(),
            keeps_busy,
            near.clone(),
            near,
            far.clone(),
            far,
            (0, computes(100), on(&[4])),
        ];
        let mut stage = Stage::with(ideal("package:2 l3:2 core:2"), Kernel::EEVDF, programs, seed);
        stage.until(Nanos::from_micros(3500));
        let mut switches = stage.sim.switches().iter().filter(|switch| switch.cpu == 0);
        let last = switches.next_back().and_then(|switch| switch.to).unwrap().0;
        let near = [3, 4].map(ProgramId::first);
        assert!(near.contains(&last), "seed {seed}: {last}");
    }
}

#[test]
fn packages_are_balanced_even_if_each_is_always_busy() {
    for seed in 1..5 {
        let programs =
            (0..8).map(|i| (0, computes(60_000), on(if i < 5 { &[0, 1] } else { &[2, 3] })));
        let mut stage = Stage::with(ideal("package:2 core:2"), Kernel::EEVDF, programs, seed);
        stage.until(Nanos::from_millis(1));
        for slot in 0..8 {
            stage.submit(&[Step::Apply(ProgramId::first(slot), on(&[0, 1, 2, 3]), 1)]);
        }
        let shares = stage.shares(8, 2000, 10_000);
        assert!(shares.iter().all(|share| (0.45..0.55).contains(share)), "{seed}: {shares:?}");
    }
}

/// Four threads lose the CPUs of two of them. CFS sends these two to the first CPU that is left,
/// where they wait until balancing moves them.
#[test]
fn threads_that_lose_their_cpus_go_to_the_first_one_under_cfs() {
    let on_the_last = |kernel| {
        let four = program(4, vec![micros(50_000)]);
        let programs = [(0, four, Settings::default())];
        let mut stage = Stage::with(ideal("core:4"), kernel, programs, 1);
        stage.until(Nanos::from_millis(1));
        stage.submit(&[Step::Apply(ProgramId::first(0), on(&[2, 3]), 1)]);
        stage.until(Nanos::from_millis(30));
        let switches = stage.sim.switches().iter().filter(|switch| switch.cpu == 3);
        switches.filter_map(|switch| switch.to).collect::<BTreeSet<_>>().len()
    };
    assert_eq!(on_the_last(Kernel::CFS), 1);
    assert_eq!(on_the_last(Kernel::EEVDF), 2);
    assert_eq!(on_the_last(Kernel::BALANCE), 2);
}
