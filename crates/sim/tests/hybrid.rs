//! A processor with fast and slow cores: what its CPUs achieve, and where gangs are placed.

#![allow(clippy::unwrap_used)]

mod stage;

use cosched_core::engine::{Engine, Limits, ProgramSetup, Setup};
use cosched_core::{Cpu, CpuSet, Nanos, Settings, Topology};
use cosched_policy::{Kind, Options};
use cosched_sim::model::Mix;
use cosched_sim::{Costs, Hardware, Kernel, Model, Sim, SimulatedJob};
use stage::{Stage, computes, ideal};

/// Four fast cores with siblings (CPUs 0 to 7), and eight slow cores (8 to 15) of this capacity.
fn hybrid(capacity: u16) -> Hardware {
    let cpu = |id: u16| {
        let (l2, core, capacity) = match id {
            0..8 => (id / 2, id / 2, 1024),
            _ => (4 + (id - 8) / 4, id - 4, capacity),
        };
        Cpu { id: usize::from(id), groups: [0, 0, l2, core], node: 0, capacity }
    };
    let topology = Topology::new((0..16).map(cpu).collect());
    Hardware { topology, smt_share: 0.62, ..ideal("core:16") }
}

/// A program with barriers, which its threads reach after a millisecond on a fast core.
fn barriers(threads: u16) -> Model {
    Model::barriers(threads, 1000, 1e6, Mix::computing(1.0), Nanos::NEVER)
}

/// When each of these programs ends, in seconds, where CPUs of this relative speed are one kind.
fn ends(capacity: u16, threads: &[u16], kind: &str) -> Vec<f64> {
    let hardware = hybrid(capacity);
    let setup = Setup {
        cpus: hardware.topology.all(),
        topology: hardware.topology.clone(),
        programs: threads.iter().map(|threads| ProgramSetup::new(*threads)).collect(),
        limits: Limits::default(),
    };
    let jobs = threads.iter().map(|n| SimulatedJob { model: barriers(*n), weight: 1.0 }).collect();
    let sim = Sim::new(hardware, Kernel::EEVDF, jobs, Costs::MEASURED, 1);
    let mut options = Options::default();
    options.params.set(&format!("gangs.kind={kind}")).unwrap();
    let policy = Kind::Greedy.build(&options).unwrap();
    let (_, outcome) = Engine::new(sim, policy, setup).run(&mut ());
    let ended = |done: Option<Nanos>| (done.unwrap().as_secs_f64() * 100.0).round() / 100.0;
    outcome.unwrap().programs.iter().map(|program| ended(program.done)).collect()
}

#[test]
fn a_slow_cpu_takes_longer() {
    let on = |cpu| (0, computes(6), Settings::on(CpuSet::from_iter([cpu])));
    let mut stage = Stage::with(hybrid(512), Kernel::EEVDF, [on(0), on(8)], 1);
    stage.until(Nanos::from_millis(20));
    assert_eq!(stage.ends(), [(0, 6000), (1, 12_000)]);
}

/// Without the rule, all CPUs count as one kind.
#[test]
fn gangs_on_one_kind_of_core_end_no_later() {
    for capacity in [500, 600, 700, 800] {
        for threads in [&[6][..], &[8], &[6, 4], &[8, 4], &[8, 8], &[4, 4], &[6, 6], &[13]] {
            let (rule, none) = (ends(capacity, threads, "0.85"), ends(capacity, threads, "0.01"));
            let later = rule.iter().zip(&none).any(|(rule, none)| *rule > *none + 0.01);
            assert!(!later, "{capacity}, {threads:?}: {rule:?} instead of {none:?}");
        }
    }
    // Six threads share fast cores where slow cores are slower than that.
    assert_eq!((ends(500, &[6], "0.85"), ends(500, &[6], "0.01")), (vec![1.61], vec![2.05]));
    // Elsewhere they use slow cores, and leave the fast ones to the other program.
    let (rule, none) = (ends(700, &[6, 4], "0.85"), ends(700, &[6, 4], "0.01"));
    assert_eq!((rule, none), (vec![1.46, 1.0], vec![1.46, 1.46]));
}
