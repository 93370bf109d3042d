//! A large machine with a thousand programs, through the engine. The cost of decisions and switches
//! must depend on what changes, or these tests take minutes, unoptimised.

#![allow(clippy::unwrap_used)]

use cosched_core::Nanos;
use cosched_core::engine::{Engine, Limits, ProgramSetup, Setup};
use cosched_policy::{Kind, Options};
use cosched_sim::model::Mix;
use cosched_sim::{Costs, Hardware, Kernel, Model, Sim, SimulatedJob};

/// Runs a thousand programs with this many instructions for each thread.
fn a_thousand_programs_share_1024_cpus(policy: Kind, instructions: f64) {
    let hardware =
        Hardware::words("package:16 l3:8 core:8 cache_mib=32 bus=llc:40 bus=package:200").unwrap();
    let cached = Mix {
        misses: 0.001,
        misses_without_cache: 0.004,
        footprint: 8e6,
        parallelism: 4.0,
        ..Mix::computing(1.0)
    };
    let models: Vec<Model> = (0..1000u16)
        .map(|i| Model::barriers(1 + i % 4, 2, instructions / 2.0, cached, Nanos::from_micros(20)))
        .collect();
    let threads: u64 = models.iter().map(|model| u64::from(model.threads)).sum();
    let entry = |model: &Model| ProgramSetup::new(model.threads);
    let setup = Setup {
        cpus: hardware.topology.all(),
        topology: hardware.topology.clone(),
        programs: models.iter().map(entry).collect(),
        // In a round of a thousand turns every program waits for more than a second.
        limits: Limits { max_frozen: Nanos::from_secs(10), ..Limits::default() },
    };
    let jobs = models.into_iter().map(|model| SimulatedJob { model, weight: 1.0 }).collect();
    let sim = Sim::new(hardware.clone(), Kernel::EEVDF, jobs, Costs::MEASURED, 1);
    let policy = policy.build(&Options::default()).unwrap();
    let (sim, outcome) = Engine::new(sim, policy, setup).run(&mut ());
    let outcome = outcome.unwrap();
    assert!(outcome.programs.iter().all(|program| program.done.is_some()));
    let used: f64 = outcome.programs.iter().map(|p| p.completions[0].usage.user_seconds).sum();
    // At 2.5 GHz and at least a cycle each.
    let least = threads as f64 * instructions / 2.5e9;
    assert!(used >= least, "{used} {least}");
    let total = outcome.total.as_secs_f64();
    assert!(total >= least / 1024.0, "{total} {least}");
    assert!(sim.events() > 2 * threads);
}

#[test]
fn a_thousand_programs_share_1024_cpus_together() {
    a_thousand_programs_share_1024_cpus(Kind::Linux, 20e6);
}

#[test]
fn a_thousand_programs_take_turns_on_1024_cpus() {
    a_thousand_programs_share_1024_cpus(Kind::Gang, 4e6);
}

#[test]
fn a_thousand_programs_share_1024_cpus_by_their_waits() {
    a_thousand_programs_share_1024_cpus(Kind::Minwait, 20e6);
}
