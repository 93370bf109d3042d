//! The samples of a policy with phases, and its decisions: `fair-progress` on the paper's machine.

#![allow(clippy::unwrap_used)]

mod stage;

use cosched_core::engine::{Engine, Limits, ProgramSetup, Setup};
use cosched_core::{Arena, Machine, Measure, Nanos, Observe, ProgramId};
use cosched_policy::{FairOptions, Kind, Options};
use cosched_sim::hardware::{Bus, Scope};
use cosched_sim::model::{Mix, Op};
use cosched_sim::{Hardware, Kernel, Model, Sim, SimulatedJob};
use stage::{FREE, Stage, ideal};

fn streams(misses: f64) -> Mix {
    Mix { misses, misses_without_cache: misses, parallelism: 8.0, ..Mix::computing(1.0) }
}

/// One thread with this many instructions of each mix in turn.
fn phases(phases: &[(f64, Mix)]) -> Model {
    let compute = |(mix, (instructions, _)): (usize, &(f64, Mix))| Op::Compute {
        instructions: *instructions,
        mix: mix as u16,
    };
    let script = phases.iter().enumerate().map(compute).collect();
    let mixes = phases.iter().map(|(_, mix)| *mix).collect();
    Model { script, mixes, ..Model::parallel(1, 0.0, Mix::computing(1.0)) }
}

#[test]
fn each_mix_is_a_block_with_its_time_alone() {
    let programs = vec![
        (0, phases(&[(30e6, Mix::computing(1.0)), (90e6, Mix::computing(2.0))])),
        (0, phases(&[(1e9, streams(0.05))])),
        (0, phases(&[(1e9, streams(0.05))])),
    ];
    let buses = vec![Bus { of: Scope::Machine, bytes_per_nano: 6.4 }];
    let hardware = Hardware { memory_nanos: 100.0, buses, ..ideal("core:3") };
    let mut stage = Stage::new(hardware, Kernel::EEVDF, programs);
    stage.until(Nanos::from_millis(100));
    let of = |slot| {
        move |measure| Observe {
            program: Some(ProgramId::first(slot)),
            measure,
            period: Nanos::NEVER,
        }
    };
    let measures = [Measure::Counters, Measure::InstructionPointers, Measure::Alone];
    let what: Vec<Observe> = (0..3).flat_map(|slot| measures.map(of(slot))).collect();
    let mut arena = Arena::default();
    stage.sim.read(&what, &mut arena).unwrap();
    let bins = arena.ips.iter().filter(|bin| bin.program.slot == 0);
    let bins: Vec<(u64, u32)> = bins.map(|bin| (bin.block, bin.count)).collect();
    // 30 ms of a cycle an instruction, then 70 ms of two; a sample each 500,000 instructions.
    assert_eq!(bins, [(0, 60), (1, 70)]);
    let alone = |i: usize| arena.samples[i].alone.unwrap().0 / 1000;
    assert!(alone(0).abs_diff(100_000) <= 1, "{}", alone(0));
    let slowed = alone(1);
    assert!((50_000..99_000).contains(&slowed), "with a co-runner: {slowed}");
}

/// Two streams on one bus are slower beside each other, and one that computes is not. The times
/// alone of all intervals add up to the program's time alone. Misses count in the interval in which
/// they happened, also while the program runs.
#[test]
fn watched_intervals_tell_the_time_alone_of_their_work() {
    let stream = || (0, phases(&[(4e8, streams(0.4))]));
    let programs = vec![(0, phases(&[(9e8, Mix::computing(2.0))])), stream(), stream()];
    let buses = vec![Bus { of: Scope::Machine, bytes_per_nano: 6.4 }];
    let hardware = Hardware { memory_nanos: 100.0, buses, ..ideal("core:3") };
    let mut stage = Stage::new(hardware, Kernel::EEVDF, programs);
    stage.sim.watch(Nanos::from_millis(500));
    stage.until(Nanos::from_secs(8));
    let rows = stage.sim.intervals();
    let of = |slot: u16| rows.iter().filter(move |row| row.program.slot == slot);
    for row in of(0) {
        assert!(row.alone.0.abs_diff(row.ran.0) <= 1, "{row:?}");
    }
    let first: Vec<_> = of(1).take(2).collect();
    for row in &first {
        assert!(row.ran == Nanos::from_millis(500) && row.alone < row.ran * 9 / 10, "{row:?}");
        assert!(row.misses > 0.0 && (row.misses / first[0].misses - 1.0).abs() < 1e-6, "{row:?}");
    }
    let alone: u64 = of(1).map(|row| row.alone.0).sum();
    // 1.6e8 misses of 100 ns and a short queue, eight at a time, and a cycle for each instruction.
    let whole = 4e8 + 1.6e8 * 100.0 / 8.0;
    assert!((alone as f64 / whole - 1.0).abs() < 0.1, "{alone}, and not {whole}");
}

/// Times from the start to the end of each program.
fn times(kind: Kind, fair: FairOptions, models: &[Model]) -> Vec<f64> {
    let hardware = Hardware::named("e5410-8").unwrap();
    let peak = hardware.peak_lines_per_microsecond();
    let jobs =
        models.iter().map(|model| SimulatedJob { model: model.clone(), weight: 1.0 }).collect();
    let setup = Setup {
        cpus: hardware.topology.all(),
        topology: hardware.topology.clone(),
        programs: models.iter().map(|_| ProgramSetup::new(1)).collect(),
        limits: Limits::default(),
    };
    let policy = kind.build(&Options { fair: FairOptions { peak, ..fair }, ..Options::default() });
    let sim = Sim::new(hardware, Kernel::CFS, jobs, FREE, 1);
    let (_, outcome) = Engine::new(sim, policy.unwrap(), setup).run(&mut ());
    let programs = outcome.unwrap().programs;
    programs.iter().map(|program| program.done.unwrap().as_secs_f64()).collect()
}

/// The paper's *OS with weights*. Weights of 4 and 1 are nice values of 0 and 6, for which the
/// kernel has weights of 1024 and 272: the heavy program has 1024 of 1296 parts of the CPU.
#[test]
fn the_kernel_shares_a_cpu_by_weights_as_nice_values() {
    let model = || phases(&[(1e9, Mix::computing(1.0))]);
    let setup = Setup {
        cpus: ideal("core:1").topology.all(),
        topology: ideal("core:1").topology,
        programs: [4.0, 1.0].map(|weight| ProgramSetup { weight, ..ProgramSetup::new(1) }).into(),
        limits: Limits::default(),
    };
    let jobs = (0..2).map(|_| SimulatedJob { model: model(), weight: 1.0 }).collect();
    let policy = Kind::LinuxWeights.build(&Options::default()).unwrap_or_else(|_| panic!());
    let sim = Sim::new(ideal("core:1"), Kernel::EEVDF, jobs, FREE, 1);
    let (_, outcome) = Engine::new(sim, policy, setup).run(&mut ());
    let ends: Vec<f64> =
        outcome.unwrap().programs.iter().map(|one| one.done.unwrap().as_secs_f64()).collect();
    assert!((ends[0] - 1296.0 / 1024.0).abs() < 0.01, "{ends:?}");
    assert!((ends[1] - 2.0).abs() < 0.001, "{ends:?}");
}

/// Streaming and computing programs suffer more alike than under the kernel.
#[test]
fn streaming_and_computing_suffer_alike() {
    // About four seconds each, alone.
    let streaming = || phases(&[(3.2e9, streams(0.06))]);
    let computing = || phases(&[(9.3e9, Mix::computing(1.0))]);
    let models: Vec<Model> =
        (0..16).map(|i| if i % 2 == 0 { streaming() } else { computing() }).collect();
    let alone =
        [&models[..1], &models[1..2]].map(|one| times(Kind::Linux, FairOptions::default(), one)[0]);
    let unfairness = |kind, fair| {
        let slowdowns: Vec<f64> = times(kind, fair, &models)
            .iter()
            .enumerate()
            .map(|(i, time)| time / alone[i % 2])
            .collect();
        let most = slowdowns.iter().copied().fold(0.0, f64::max);
        most / slowdowns.iter().copied().fold(f64::INFINITY, f64::min)
    };
    let unlimited = FairOptions { training_limit: None, ..FairOptions::default() };
    let optimal = FairOptions { optimal: true, ..FairOptions::default() };
    let linux = unfairness(Kind::Linux, FairOptions::default());
    let fair = unfairness(Kind::FairProgress, unlimited);
    let best = unfairness(Kind::FairProgress, optimal);
    assert!(linux > 1.3, "{linux}");
    assert!(fair - 1.0 < 0.5 * (linux - 1.0), "{fair} against {linux}");
    assert!(best < 1.1, "{best}");
}
