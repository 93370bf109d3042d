//! Measures how many events the simulator handles per second, on machines of four sizes: JSON on
//! standard output.
//!
//! The programs are a mix of the expensive events: spinning barriers, streaming threads that change
//! the price of their bus, and locks. There are twice as many threads as CPUs, under plain Linux.

use std::time::Instant;

use cosched_core::engine::{Engine, Limits, ProgramSetup, Setup};
use cosched_core::{CpuSet, Nanos};
use cosched_policy::{Kind, Options};
use cosched_sim::hardware::topology;
use cosched_sim::model::{Mix, Model};
use cosched_sim::{Costs, Hardware, Kernel, Sim, SimulatedJob};

const EVENTS: f64 = 3e6;

fn main() {
    let rows: Vec<String> = [24, 64, 256, 1024].map(row).into();
    println!(
        "{{\"schema\": \"cosched-bench-sim/1\", \"events_per_second\": {{{}}}}}",
        rows.join(", ")
    );
}

fn row(cpus: u16) -> String {
    let (events, seconds) = measure(cpus);
    format!("\"{cpus}\": {:.0}", events as f64 / seconds)
}

fn measure(cpus: u16) -> (u64, f64) {
    let base = Hardware::named("opteron-64").unwrap_or_else(|error| panic!("{error}"));
    let shape = format!("package:{} core:8 pu:1", cpus / 8);
    let topology = topology(&shape).unwrap_or_else(|error| panic!("{error}"));
    let hardware = Hardware { topology, ..base };
    let half = cpus / 2;
    let plain = Mix::computing(1.0);
    let streaming = Mix { misses: 0.02, misses_without_cache: 0.02, parallelism: 4.0, ..plain };
    // Each kind gives about a quarter of the events.
    let rounds = |per_round: f64| (EVENTS / 4.0 / per_round / f64::from(half)) as u32;
    let models = [
        Model::barriers(half, rounds(3.0), 2e5, plain, Nanos::from_millis(1)),
        Model::barriers(half, rounds(6.0), 2e5, streaming, Nanos::ZERO),
        Model::lock(half, rounds(4.0), 1e6, 1e3, plain, Nanos::from_micros(50)),
        Model::barriers(half, rounds(4.0), 2e5, plain, Nanos::ZERO),
    ];
    let entries = models.iter().map(|model| ProgramSetup::new(model.threads)).collect();
    let jobs = models.into_iter().map(|model| SimulatedJob { model, weight: 1.0 }).collect();
    let setup = Setup {
        cpus: CpuSet::first(usize::from(cpus)),
        topology: hardware.topology.clone(),
        programs: entries,
        limits: Limits::default(),
    };
    let sim = Sim::new(hardware, Kernel::EEVDF, jobs, Costs::MEASURED, 1);
    let policy = Kind::Linux.build(&Options::default()).unwrap_or_else(|error| panic!("{error}"));
    let began = Instant::now();
    let (sim, outcome) = Engine::new(sim, policy, setup).run(&mut ());
    let seconds = began.elapsed().as_secs_f64();
    outcome.unwrap_or_else(|error| panic!("{error}"));
    (sim.events(), seconds)
}
