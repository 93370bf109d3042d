//! The policy `balance` on modelled machines: by masks, it comes near the kernel that keeps
//! siblings apart itself.

#![allow(clippy::unwrap_used)]

use cosched_core::engine::{Engine, Limits, ProgramSetup, Setup};
use cosched_policy::{Kind, Options};
use cosched_sim::{Costs, Hardware, Kernel, Model, Sim, SimulatedJob};

/// How long the first of programs with these models and thread counts takes, seconds.
fn seconds(cpus: usize, programs: &[(&str, u16)], kernel: Kernel, kind: Kind, seed: u64) -> f64 {
    let hardware = Hardware::words(&format!("core:{cpus} gigahertz=1")).unwrap();
    let setup = Setup {
        cpus: hardware.topology.all(),
        topology: hardware.topology.clone(),
        programs: programs.iter().map(|(_, threads)| ProgramSetup::new(*threads)).collect(),
        limits: Limits::default(),
    };
    let model = |(text, threads): &(&str, u16)| SimulatedJob {
        model: Model::read(&text.parse().unwrap(), *threads).unwrap(),
        weight: 1.0,
    };
    let jobs = programs.iter().map(model).collect();
    let sim = Sim::new(hardware, kernel, jobs, Costs::MEASURED, seed);
    let policy = kind.build(&Options::default()).unwrap();
    let outcome = Engine::new(sim, policy, setup).run(&mut ()).1.unwrap();
    outcome.programs[0].done.unwrap().as_secs_f64()
}

/// A program with a hundred barriers beside one that computes for longer, both with a thread per
/// CPU: queues are balanced, so balance scheduling is at its best (section 5.5 of the paper on the
/// time donating barrier). The kernel that keeps siblings apart gains 9 %, of ten runs together.
#[test]
fn masks_come_near_the_kernel_that_keeps_siblings_apart() {
    let waits = "spin = '0s'\n[[phase]]\ninstructions = 2e9\nbarriers = 100";
    let computes = "[[phase]]\ninstructions = 2e10";
    let programs = [(waits, 4), (computes, 4)];
    let time = |kernel, kind| -> f64 {
        (0..10).map(|seed| seconds(4, &programs, kernel, kind, seed)).sum()
    };
    let plain = time(Kernel::CFS, Kind::Linux);
    let kept = time(Kernel::BALANCE, Kind::Linux);
    assert!(kept < 0.95 * plain, "nothing to gain: {kept} against {plain}");
    let masks = time(Kernel::CFS, Kind::Balance);
    assert!(masks < 1.05 * kept, "{masks} against {kept}; plain {plain}");
    assert!(masks < 0.95 * plain, "{masks} against {plain}");
}
