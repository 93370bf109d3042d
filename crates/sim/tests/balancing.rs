//! Where a thread goes by load balancing, on a machine of two packages.

#![allow(clippy::unwrap_used)]

mod stage;

use cosched_core::{CpuSet, Nanos, ProgramId, Settings, Step};
use cosched_sim::Kernel;
use stage::{Stage, computes, ideal};

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
