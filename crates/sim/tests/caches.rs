//! The cost of others' turns for a thread that comes back to the cache: never more than its lines,
//! never more than no cache.

#![allow(clippy::unwrap_used)]

mod stage;

use cosched_core::{CpuSet, Measure, Nanos, ProgramId, Settings, Step};
use cosched_sim::model::Mix;
use cosched_sim::{Hardware, Kernel, Model};
use proptest::prelude::*;
use stage::Stage;

const MIB: f64 = 1024.0 * 1024.0;
/// Bytes of a line.
const LINE: f64 = 64.0;
const SWITCH: f64 = 2e-6;

/// A machine of 1 GHz with caches of 16 MiB.
fn hardware(shape: &str) -> Hardware {
    let costs = "smt_share=1 switch_nanos=2000 wake_nanos=0 signal_nanos=0,0,0";
    Hardware::words(&format!("{shape} gigahertz=1 cache_mib=16 memory_nanos=100 {costs}")).unwrap()
}

/// One thread that has no misses while its footprint is in the cache, and takes twice as long with
/// no cache.
fn cached(mib: f64, seconds: f64) -> Model {
    let (footprint, misses_without_cache) = (mib * MIB, 0.01);
    let mix = Mix { misses_without_cache, footprint, ..Mix::computing(1.0) };
    Model::parallel(1, seconds * 1e9, mix)
}

fn stage(hardware: Hardware, kernel: Kernel, models: &[Model], seed: u64) -> Stage {
    let programs = models.iter().map(|model| (0, model.clone(), Settings::default()));
    Stage::with(hardware, kernel, programs, seed)
}

/// The end of the last program on one CPU, seconds; how often one thread followed another, and
/// misses.
fn together(mib: f64, kernel: Kernel, models: &[Model], seed: u64) -> (f64, f64, f64) {
    let hardware = Hardware { cache_bytes: mib * MIB, ..hardware("core:1") };
    let mut stage = stage(hardware, kernel, models, seed);
    stage.until(Nanos::from_secs(100));
    let ends = stage.ends();
    assert_eq!(ends.len(), models.len(), "not all have ended");
    let end = ends.iter().map(|(_, end)| *end).max().unwrap() as f64 * 1e-6;
    let misses = stage.events.iter().filter_map(|event| match event.what {
        cosched_core::Happening::Exited(_, _, usage) => usage.counts.llc_misses,
        _ => None,
    });
    let misses = misses.sum::<u64>() as f64;
    (end, stage.sim.switches().len() as f64, misses)
}

/// A program that uses no cache costs others nothing by the cache.
#[test]
fn a_program_without_cache_use_costs_others_nothing() {
    let hog = Model::parallel(1, 1e9, Mix::computing(1.0));
    for mib in [4.0, 16.0, 64.0] {
        let own = cached(mib, 1.0);
        let (alone, ..) = together(16.0, Kernel::EEVDF, std::slice::from_ref(&own), 1);
        let (both, switches, _) = together(16.0, Kernel::EEVDF, &[own, hog.clone()], 1);
        assert!(switches > 100.0);
        assert!(both <= alone + 1.0 + switches * SWITCH, "{mib}: {both}, alone {alone} and 1");
    }
}

/// Programs that fit the cache together cost each other nothing by the cache.
#[test]
fn programs_that_fit_the_cache_together_cost_nothing() {
    let (both, switches, misses) =
        together(16.0, Kernel::EEVDF, &[cached(8.0, 1.0), cached(7.9, 1.0)], 1);
    assert!(both <= 2.0 + switches * SWITCH && misses == 0.0, "{both}, {misses} misses");
}

#[test]
fn turns_shorter_than_a_refill_still_make_progress() {
    // A refill of 16 MiB is 26 ms of misses, a turn a few ticks of 4 ms.
    let (both, ..) = together(16.0, Kernel::EEVDF, &[cached(16.0, 1.0), cached(16.0, 1.0)], 1);
    assert!(both > 3.5 && both <= 4.01, "{both}");
}

#[test]
fn each_line_evicted_in_a_turn_costs_one_miss() {
    let misses_after_a_turn_of = |mib: f64| {
        let models = [cached(12.0, 2.0), cached(mib, 10.0)];
        let mut stage = stage(hardware("core:1"), Kernel::EEVDF, &models, 1);
        let [own, other] = [0, 1].map(ProgramId::first);
        for (from, steps) in [
            (0, [Step::Freeze(other), Step::Thaw(own)]),
            (1000, [Step::Freeze(own), Step::Thaw(other)]),
            (2000, [Step::Freeze(other), Step::Thaw(own)]),
        ] {
            stage.until(Nanos::from_millis(from));
            if from == 0 {
                stage.until(Nanos::from_micros(1));
            }
            stage.submit(&steps);
        }
        stage.until(Nanos::from_millis(2900));
        let sample = stage.read(1, &[Measure::Counters])[0];
        sample.llc_misses.unwrap() as f64
    };
    // 4 MiB are free. A program loses the same part of its lines as is evicted of the whole cache.
    for (mib, evicted) in [(3.0, 0.0), (8.0, 4.0 / 16.0), (12.0, 8.0 / 16.0), (16.0, 12.0 / 16.0)] {
        let expected = evicted * 12.0 * MIB / LINE;
        let found = misses_after_a_turn_of(mib);
        assert!((found - expected).abs() <= 0.01 * expected + 1.0, "{mib}: {found} for {expected}");
    }
}

/// A streaming program evicts others at every turn.
#[test]
fn streaming_evicts_others_and_loses_nothing() {
    let mix = Mix {
        misses: 0.05,
        misses_without_cache: 0.05,
        footprint: 64.0 * MIB,
        ..Mix::computing(1.0)
    };
    let stream = Model::parallel(1, 2e8, mix);
    let own = cached(16.0, 2.0);
    let models = [own, stream];
    let of = |models: &[Model]| together(16.0, Kernel::ROUND_ROBIN, models, 1);
    let (alone, both) = (of(&models[1..]), of(&models));
    let turns = (alone.0 / 0.1).floor();
    // After each of its turns of 100 ms, 16 MiB have to come back.
    let expected = turns * 16.0 * MIB / LINE;
    let found = both.2 - alone.2;
    assert!((found - expected).abs() <= 1.1 * 16.0 * MIB / LINE, "{found} for {expected}");
    assert!(turns > 8.0, "{turns}");
}

#[test]
fn a_thread_finds_no_lines_in_another_cache() {
    let on = |cpu: usize| Settings { cpus: Some(CpuSet::from_iter([cpu])), ..Settings::default() };
    let programs = [(0, cached(12.0, 1.0), on(0))];
    let mut stage = Stage::with(hardware("l3:2 core:1"), Kernel::EEVDF, programs, 1);
    for (at, cpu) in [(300, 1), (600, 0)] {
        stage.until(Nanos::from_millis(at));
        stage.submit(&[Step::Apply(ProgramId::first(0), on(cpu), 1)]);
    }
    stage.until(Nanos::from_millis(900));
    let misses = stage.read(1, &[Measure::Counters])[0].llc_misses.unwrap() as f64;
    let expected = 2.0 * 12.0 * MIB / LINE;
    assert!((misses - expected).abs() < 0.01 * expected, "{misses} for {expected}");
}

/// Programs of one thread: MiB, seconds, misses per kilo-instruction with and without a cache.
fn programs() -> impl Strategy<Value = Vec<Model>> {
    let one = (0.0f64..40.0, 0.02f64..0.3, 0.0f64..20.0, 0.0f64..40.0, 1.0f64..8.0);
    let model = one.prop_map(|(mib, seconds, misses, more, parallelism)| {
        let (misses, misses_without_cache) = (misses / 1e3, (misses + more) / 1e3);
        let footprint = mib * MIB;
        let mix = Mix { base_cpi: 1.0, misses, misses_without_cache, footprint, parallelism };
        Model::parallel(1, seconds * 1e9, mix)
    });
    proptest::collection::vec(model, 2..5)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// Programs together take at most their sum of solo times, and what switches cost.
    #[test]
    fn together_costs_at_most_what_switches_cost(
        models in programs(),
        kernel in 0usize..4,
        cache in 1.0f64..64.0,
        seed in any::<u64>(),
    ) {
        let kernel = Kernel::named(Kernel::NAMES[kernel]).unwrap();
        let alone = |mib: f64| {
            models.iter().map(move |model| together(mib, kernel, std::slice::from_ref(model), seed))
        };
        let (found, switches, misses) = together(cache, kernel, &models, seed);
        let least: f64 = alone(cache).map(|one| one.0).sum();
        let uncached: f64 = alone(0.001).map(|one| one.0).sum();
        prop_assert!(found >= least - 1e-5, "{found} in no more than {least}");
        prop_assert!(found <= uncached + switches * SWITCH + 1e-5, "{found}, uncached {uncached}");
        let lines = models.iter().map(|model| model.mixes[0].footprint.min(cache * MIB) / LINE);
        let misses_alone: f64 = alone(cache).map(|one| one.2).sum();
        let most = misses_alone + switches * lines.fold(0.0, f64::max);
        prop_assert!(misses <= most + 1.0, "{misses} misses of {most}");
    }
}
