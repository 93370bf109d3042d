//! A large machine with many programs, through the engine. (Policies that make gangs of a thousand programs take longer
//! to decide, unoptimised, than a test may.)

#![allow(clippy::unwrap_used)]

use cosched_core::Nanos;
use cosched_core::engine::{Engine, Entry, Limits, Setup};
use cosched_policy::{Kind, Options};
use cosched_sim::model::Mix;
use cosched_sim::{Costs, Hardware, Job, Kernel, Model, Sim};

#[test]
fn a_thousand_programs_share_1024_cpus() {
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
        .map(|i| Model::barriers(1 + i % 4, 2, 10e6, cached, Nanos::from_micros(20)))
        .collect();
    let threads: u64 = models.iter().map(|model| u64::from(model.threads)).sum();
    let entry = |model: &Model| Entry::new(model.threads);
    let setup = Setup {
        cpus: hardware.topology.all(),
        topology: hardware.topology.clone(),
        programs: models.iter().map(entry).collect(),
        limits: Limits::default(),
    };
    let jobs = models.into_iter().map(|model| Job { model, weight: 1.0 }).collect();
    let sim = Sim::new(hardware.clone(), Kernel::EEVDF, jobs, Costs::MEASURED, 1);
    let policy = Kind::Linux.build(&Options::default()).unwrap();
    let (sim, outcome) = Engine::new(sim, policy, setup).run(&mut ());
    let outcome = outcome.unwrap();
    assert!(outcome.programs.iter().all(|program| program.done.is_some()));
    let used: f64 = outcome.programs.iter().map(|p| p.completions[0].usage.user_seconds).sum();
    // 20 million instructions for each thread at 2.5 GHz and at least a cycle each.
    let least = threads as f64 * 20e6 / 2.5e9;
    assert!(used >= least, "{used} {least}");
    let total = outcome.total.as_secs_f64();
    assert!(total >= least / 1024.0, "{total} {least}");
    assert!(sim.events() > 2 * threads);
}
