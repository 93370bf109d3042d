//! Measures how many events the simulator handles per second as CPUs, threads and programs grow:
//! JSON on standard output.
//!
//! The programs are a mix of the expensive events: spinning barriers, streaming threads that change
//! the price of their bus, and locks. All are under plain Linux.

use std::time::Instant;

use cosched_core::engine::{Engine, Limits, ProgramSetup, Setup};
use cosched_core::{CpuSet, Nanos};
use cosched_policy::{Kind, Options};
use cosched_sim::hardware::topology;
use cosched_sim::model::{Mix, Model};
use cosched_sim::{Costs, Hardware, Kernel, Sim, SimulatedJob};

const EVENTS: f64 = 3e6;

/// How large a simulation is.
#[derive(Clone, Copy)]
struct Size {
    cpus: u16,
    threads_per_cpu: u16,
    /// A multiple of four: as many of each kind.
    programs: u16,
}

/// What the others are compared with.
const USUAL: Size = Size { cpus: 64, threads_per_cpu: 2, programs: 4 };

fn main() {
    let cpus = [24, 64, 256, 1024].map(|cpus| (cpus, Size { cpus, ..USUAL }));
    let threads = [1, 2, 8, 32, 128]
        .map(|threads_per_cpu| (threads_per_cpu, Size { threads_per_cpu, ..USUAL }));
    let programs = [4, 8, 16, 32, 64].map(|programs| (programs, Size { programs, ..USUAL }));
    let all =
        [series("cpus", &cpus), series("threads_per_cpu", &threads), series("programs", &programs)];
    println!(
        "{{\"schema\": \"cosched-bench-sim/2\", \"events_per_second\": {{{}}}}}",
        all.join(", ")
    );
}

fn series(name: &str, sizes: &[(u16, Size)]) -> String {
    let row = |(number, size): &(u16, Size)| {
        let (events, seconds) = measure(*size);
        format!("\"{number}\": {:.0}", events as f64 / seconds)
    };
    format!("\"{name}\": {{{}}}", sizes.iter().map(row).collect::<Vec<_>>().join(", "))
}

fn measure(size: Size) -> (u64, f64) {
    let base = Hardware::named("opteron-64").unwrap_or_else(|error| panic!("{error}"));
    let shape = format!("package:{} core:8 pu:1", size.cpus / 8);
    let topology = topology(&shape).unwrap_or_else(|error| panic!("{error}"));
    let hardware = Hardware { topology, ..base };
    let each = size.cpus * size.threads_per_cpu / size.programs;
    let plain = Mix::computing(1.0);
    let streaming = Mix { misses: 0.02, misses_without_cache: 0.02, parallelism: 4.0, ..plain };
    // Each program gives about the same number of events.
    let of_each = EVENTS / f64::from(size.programs) / f64::from(each);
    let rounds = |per_round: f64| (of_each / per_round).max(1.0) as u32;
    let models = [
        Model::barriers(each, rounds(3.0), 2e5, plain, Nanos::from_millis(1)),
        Model::barriers(each, rounds(6.0), 2e5, streaming, Nanos::ZERO),
        Model::lock(each, rounds(4.0), 1e6, 1e3, plain, Nanos::from_micros(50)),
        Model::barriers(each, rounds(4.0), 2e5, plain, Nanos::ZERO),
    ];
    let models = models.iter().cycle().take(usize::from(size.programs));
    let entries = models.clone().map(|model| ProgramSetup::new(model.threads)).collect();
    let jobs = models.map(|model| SimulatedJob { model: model.clone(), weight: 1.0 }).collect();
    let setup = Setup {
        cpus: CpuSet::first(usize::from(size.cpus)),
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
