//! Fits to programs with a known cause, on the ideal machine of the model's own tests.

use std::convert::Infallible;

use cosched_core::engine::{Engine, Limits, ProgramSetup, Setup};
use cosched_policy::{Kind, Options};

use super::super::Mix;
use super::*;
use crate::tests::ideal;
use crate::{Costs, Kernel, Sim, SimulatedJob};

const FREE: Costs =
    Costs { start: Nanos::ZERO, join: Nanos::ZERO, freeze: Nanos::ZERO, thaw: Nanos::ZERO };

/// A model alone on eight CPUs and a bus of 6.4 GB/s.
fn run(model: &Model) -> Result<ModelRun, Infallible> {
    let hardware = ideal("core:8");
    let topology = hardware.topology.clone();
    let programs = vec![ProgramSetup::new(model.threads)];
    let setup = Setup { cpus: topology.all(), topology, programs, limits: Limits::default() };
    let jobs = vec![SimulatedJob { model: model.clone(), weight: 1.0 }];
    let sim = Sim::new(hardware, Kernel::EEVDF, jobs, FREE, 1);
    let policy = Kind::Gang.build(&Options::default()).unwrap();
    let (_, outcome) = Engine::new(sim, policy, setup).run(&mut ());
    let end = outcome.unwrap().programs[0].completions[0];
    Ok(ModelRun { time: end.at, misses: end.usage.counts.llc_misses.unwrap() })
}

fn fitted(table: &str) -> Vec<Fitted> {
    fit(&toml::from_str(table).unwrap(), 8, run).unwrap()
}

fn near(found: f64, expected: f64, share: f64) {
    assert!((found - expected).abs() <= share * expected, "{found} instead of {expected}");
}

/// A program of 10 ms with eight threads, and its speed-ups with two, four and eight.
fn program(keys: &str, speedup: impl Fn(f64) -> f64) -> String {
    let points =
        [2.0, 4.0, 8.0].map(|n| format!("{{ threads = {n:.0}, speedup = {:?} }}", speedup(n)));
    let points = points.join(", ");
    format!("[[program]]\nname = 'a'\nthreads = 8\nseconds = 0.01\n{keys}\npoint = [{points}]\n")
}

#[test]
fn scaling_by_amdahl_gives_a_serial_share() {
    let fitted = fitted(&program("", |n| 1.0 / (0.1 + 0.9 / n)));
    let (free, value) = fitted[0].free.unwrap();
    assert_eq!(free, Free::Serial);
    near(value, 0.1, 0.01);
    assert!(fitted[0].residuals.iter().all(|residual| residual.error() < 1e-6));
}

/// The program uses the same share of its threads at every count.
#[test]
fn a_constant_share_of_threads_gives_an_imbalance() {
    let fitted = fitted(&program("", |n| n / 1.25));
    let (free, value) = fitted[0].free.unwrap();
    assert_eq!(free, Free::Imbalance);
    near(value, 0.25, 0.01);
}

#[test]
fn scaling_up_to_the_bandwidth_gives_misses_in_flight() {
    let streaming =
        Mix { misses: 0.02, misses_without_cache: 0.02, parallelism: 6.0, ..Mix::computing(1.0) };
    let seconds = |threads: u16| {
        let model = Model::parallel(threads, 1e8 / f64::from(threads), streaming);
        run(&model).unwrap().time.as_secs_f64()
    };
    let keys = "misses_per_kilo_instruction = 20";
    let fitted = fitted(&program(keys, |n| seconds(1) / seconds(n as u16)));
    let (free, value) = fitted[0].free.unwrap();
    assert_eq!(free, Free::InFlight);
    near(value, 6.0, 0.02);
}

/// Several models explain one speed-up, and the whole curve decides between them.
#[test]
fn the_curve_decides_between_explanations_of_a_speedup() {
    let with = |threads: u16| {
        let point = format!("{{ threads = {threads}, speedup = 2.0, share_of_best = 0.8 }}");
        let table =
            format!("[[program]]\nname = 'a'\nthreads = 4\nseconds = 0.01\npoint = [{point}]");
        fitted(&table)[0].free.unwrap().0
    };
    // Half of four: by Amdahl the best is 2.4 of eight threads; with an imbalance it would be 4.
    assert_eq!(with(4), Free::Serial);
}

#[test]
fn a_share_of_traffic_gives_the_cycles_between_misses() {
    let table = "[[program]]\nname = 'all'\nthreads = 8\nseconds = 0.01\n\
        misses_per_kilo_instruction = 100\nmisses_in_flight = 10\n\
        [[program]]\nname = 'half'\nthreads = 8\nseconds = 0.01\n\
        misses_per_kilo_instruction = 100\nmisses_in_flight = 10\n\
        point = [{ threads = 8, traffic = { of = 'all', share = 0.5 } }]";
    let fitted = fitted(table);
    near(fitted[1].gigabytes_per_second, fitted[0].gigabytes_per_second / 2.0, 0.001);
    assert_eq!(fitted[1].free.unwrap().0, Free::Cycles);
    assert!(fitted[0].free.is_none() && fitted[0].residuals.is_empty());
}

/// The text of the model can be read as a model.
#[test]
fn a_fitted_model_takes_the_requested_time() {
    let fitted =
        fitted(&program("barriers = 5\nrepeat = 2\nspin = '1ms'", |n| 1.0 / (0.1 + 0.9 / n)));
    let model = Model::read(&fitted[0].model.parse().unwrap(), 8).unwrap();
    near(run(&model).unwrap().time.as_secs_f64(), 0.01, 0.001);
}

#[test]
fn misses_beyond_the_cache_are_part_of_the_traffic() {
    // A cache of 1 MB: of 64 MiB next to nothing fits.
    let table = |keys: &str| {
        fitted(&format!("[[program]]\nname = 'a'\nthreads = 8\nseconds = 0.01\n{keys}"))[0].clone()
    };
    let small = table("misses_per_kilo_instruction = 3\nmisses_in_flight = 4");
    let misses = "misses_per_kilo_instruction = 3\nmisses_without_cache = 50\nmisses_in_flight = 4";
    let large = table(&format!("{misses}\nfootprint_mib = 64"));
    let model = Model::read(&large.model.parse().unwrap(), 8).unwrap();
    let ModelRun { time, misses } = run(&model).unwrap();
    near(large.gigabytes_per_second, misses as f64 * LINE / time.0 as f64, 1e-3);
    assert!(large.gigabytes_per_second > 2.0 * small.gigabytes_per_second, "{large:?}");
}

#[test]
fn a_bad_table_is_refused_with_program_and_key() {
    let refusal = |program: &str| {
        let table = format!(
            "[[program]]\nname = 'dry'\nthreads = 8\nseconds = 0.01\n\
             [[program]]\nname = 'wet'\nthreads = 8\nseconds = 0.01\n\
             misses_per_kilo_instruction = 1\n\
             [[program]]\n{program}"
        );
        let Err(FitError::Table(error)) = fit(&toml::from_str(&table).unwrap(), 8, run) else {
            panic!("it was fitted: {program}")
        };
        error.to_string()
    };
    let whole = |keys: &str| format!("name = 'a'\nthreads = 8\nseconds = 0.01\n{keys}");
    let point = |figure: &str| {
        let good = "{ threads = 2, speedup = 1.5 }";
        whole(&format!("misses_per_kilo_instruction = 1\npoint = [{good}, {{ {figure} }}]"))
    };
    for (program, expected) in [
        (whole("").replace("0.01", "0"), "seconds is 0, but must be a number above 0"),
        (whole("").replace("0.01", "nan"), "seconds is NaN"),
        (
            whole("").replace("0.01", "1e300"),
            "seconds is 1e300, but must be a number above 0 and at most 3e7",
        ),
        (whole("").replace("threads = 8", "threads = 0"), "threads is 0, but must be from 1 to 8"),
        (whole("").replace("threads = 8", "threads = 9"), "threads is 9"),
        (whole("").replace("'a'", "'wet'"), "name is wet, but must be one of its own"),
        (whole("footprint_mib = -1"), "footprint_mib is -1, but must be 0 or more"),
        (whole("misses_in_flight = inf"), "misses_in_flight is inf"),
        (whole("misses_per_kilo_instruction = 2\nmisses_without_cache = 1"), "without_cache is 1"),
        (point("threads = 4, speedup = 0"), "point 2: speedup is 0"),
        (point("threads = 4, speedup = nan"), "point 2: speedup is NaN"),
        (point("threads = 4, speedup = -5"), "point 2: speedup is -5"),
        (point("threads = 0, speedup = 2"), "point 2: threads is 0"),
        (point("threads = 16, speedup = 2"), "point 2: threads is 16, but must be from 1 to 8"),
        (point("threads = 4, share_of_best = 1.8"), "point 2: share_of_best is 1.8"),
        (point("threads = 4, traffic = { of = 'wet', share = 0 }"), "point 2: traffic.share is 0"),
        (
            point("threads = 4, traffic = { of = 'dry', share = 0.5 }"),
            "traffic.of is 'dry', but must",
        ),
        (
            point("threads = 4, traffic = { of = 'x', share = 0.5 }"),
            "traffic.of is 'x', but must be a",
        ),
        (
            whole("point = [{ threads = 4, traffic = { of = 'wet', share = 0.5 } }]"),
            "point 1: traffic is there without misses",
        ),
    ] {
        let message = refusal(&program);
        assert!(message.contains(expected), "{message}");
        assert!(message.starts_with("program '"), "{message}");
    }
}
