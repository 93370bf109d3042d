//! Pipelines of any shape end, with every item through every stage.

#![allow(clippy::unwrap_used)]

mod stage;

use cosched_core::{Happening, Nanos, Settings};
use cosched_sim::{Hardware, Kernel, Model};
use proptest::prelude::*;
use stage::Stage;

/// A program with this many threads in each stage, instructions for each item there, and items.
fn pipeline(stages: &[(u16, u32)], items: u32, capacity: u32, spin: &str) -> Model {
    let stage =
        |(threads, work): &(u16, u32)| format!("{{ threads = {threads}, instructions = {work} }}");
    let stages_text = stages.iter().map(stage).collect::<Vec<_>>().join(", ");
    let text = format!(
        "spin = '{spin}'\nrepeat = 2\n[[phase]]\n\
         pipeline = {{ items = {items}, capacity = {capacity}, stages = [{stages_text}] }}"
    );
    let threads = stages.iter().map(|(threads, _)| threads).sum();
    Model::read(&text.parse().unwrap(), threads).unwrap()
}

/// The instructions that each program has done when it has ended; a deadlock is a panic.
fn done(cpus: usize, kernel: Kernel, models: Vec<Model>, seed: u64) -> Vec<f64> {
    let count = models.len();
    let programs = models.into_iter().map(|model| (0, model, Settings::default()));
    let hardware = Hardware::words(&format!("core:{cpus}")).unwrap();
    let mut stage = Stage::with(hardware, kernel, programs, seed);
    // Threads that spin for ever on one CPU make progress by an item in a turn.
    let mut end = Nanos::ZERO;
    while stage.ends().len() < count && end < Nanos::from_secs(10_000) {
        end += Nanos::from_secs(1);
        stage.until(end);
    }
    let mut done = vec![0.0; count];
    for event in &stage.events {
        if let Happening::Exited(id, _, usage) = event.what {
            done[usize::from(id.slot)] = usage.counts.instructions.unwrap() as f64;
        }
    }
    done
}

/// A producer that waits for room is not woken for an item in place of a consumer.
#[test]
fn a_producer_does_not_take_a_consumers_wake_up() {
    // Two producers and a consumer, and room for one: both kinds wait at once.
    for seed in 0..50 {
        let model = pipeline(&[(2, 100), (1, 100)], 100, 1, "0s");
        let found = done(3, Kernel::EEVDF, vec![model.clone(), model], seed);
        assert_eq!(found, [40_000.0; 2], "seed {seed}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_item_goes_through_every_stage(
        stages in proptest::collection::vec((1u16..5, 1u32..200_000), 1..5),
        items in 1u32..60,
        capacity in 1u32..4,
        spin in prop_oneof![Just("0s"), Just("20us"), Just("forever")],
        programs in 1usize..4,
        cpus in 1usize..7,
        kernel in 0usize..4,
        seed in any::<u64>(),
    ) {
        let kernel = Kernel::named(Kernel::NAMES[kernel]).unwrap();
        let models = vec![pipeline(&stages, items, capacity, spin); programs];
        let each: f64 = stages.iter().map(|(_, work)| f64::from(*work)).sum();
        let expected = 2.0 * f64::from(items) * each;
        for found in done(cpus, kernel, models, seed) {
            prop_assert!((found - expected).abs() <= 1.0, "{found} of {expected}");
        }
    }
}
