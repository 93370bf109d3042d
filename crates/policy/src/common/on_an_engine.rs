//! Policies on the real engine and a scripted machine, with many programs and with very unequal
//! ones.

use cosched_core::engine::outcome::Outcome;
use cosched_core::engine::{Limits, ProgramSetup, Setup};
use cosched_core::fake::Fake;
use cosched_core::{Engine, Happening, Interruption, Nanos, Step, Topology};
use proptest::prelude::*;

use crate::common::testkit::{cases, options};
use crate::kind::{Kind, Options};

const MS: fn(u64) -> Nanos = Nanos::from_millis;

/// Runs programs of these weights until `until`, with a thread each, on one CPU. None ends before.
fn run(kind: Kind, weights: &[f64], max_frozen: Nanos, until: Nanos) -> (Fake, Outcome) {
    let topology = Topology::regular(1, 1, 1, 1, 1);
    let entry = |weight: &f64| ProgramSetup { weight: *weight, ..ProgramSetup::new(1) };
    let setup = Setup {
        cpus: topology.all(),
        topology,
        programs: weights.iter().map(entry).collect(),
        limits: Limits { max_frozen, ..Limits::default() },
    };
    let mut fake = Fake::new(vec![until * 2; weights.len()]);
    fake.freeze_latency = Nanos::from_micros(200);
    fake.script(until, Happening::Interrupted(Interruption::Interrupt));
    let policy = kind.build(&Options::default()).unwrap();
    let (fake, outcome) = Engine::new(fake, policy, setup).run(&mut ());
    (fake, outcome.unwrap())
}

/// A switch takes two steps and two reasons for any number of programs.
#[test]
fn a_switch_takes_two_steps_for_any_number_of_programs() {
    for (kind, programs) in [(Kind::Gang, 20), (Kind::Gang, 500), (Kind::Minwait, 500)] {
        // This many programs need a long time for their first turns, and the limit allows it here.
        let began = MS(110) * programs as u64;
        let until = began + Nanos::from_secs(10);
        let (fake, outcome) = run(kind, &vec![1.0; programs], until, until);
        let steps = fake.submitted.iter().filter(|(at, _)| (began..until).contains(at));
        let steps: Vec<Step> = steps.map(|(_, step)| *step).collect();
        let switches = steps.iter().filter(|step| matches!(step, Step::Thaw(_))).count();
        assert!(switches >= 90, "{kind}: {switches}");
        assert!(steps.len() <= 2 * switches + 1, "{kind}: {} for {switches}", steps.len());
        for decision in outcome.decisions.iter().filter(|decision| decision.at >= began) {
            assert!(decision.reasons.len() <= 4, "{kind}: {decision:?}");
        }
    }
}

/// Each program that waits longer than allowed is told so.
#[test]
fn programs_waiting_too_long_are_reported_once_a_round() {
    for kind in [Kind::Gang, Kind::Minwait] {
        // A round takes 300 ms, and after 100 ms every program is thawed for 10.
        let (fake, outcome) = run(kind, &[1.0; 300], MS(100), MS(3000));
        let reasons: usize = outcome.decisions.iter().map(|decision| decision.reasons.len()).sum();
        let forced = outcome.deviations.len();
        let thaws = fake.submitted.iter().filter(|(_, step)| matches!(step, Step::Thaw(_))).count();
        assert!(forced > 2000, "{kind}: {forced}");
        assert!(reasons <= 3 * thaws, "{kind}: {reasons} reasons for {thaws} thaws");
        // A freeze for each thaw. Each program is started, and at the end released and ended.
        let steps = fake.submitted.len();
        assert!(steps <= 2 * thaws + 4 * 300, "{kind}: {steps} steps for {thaws} thaws");
    }
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn every_policy_brings_every_program_to_its_end(
        kind in prop::sample::select(Kind::ALL.as_slice()),
        programs in prop::collection::vec((1..400u64, 1..=2u16, 0..500u64), 1..8),
    ) {
        let topology = Topology::regular(1, 1, 1, 2, 1);
        let entry = |&(_, threads, arrives): &(u64, u16, u64)| {
            let mut entry = ProgramSetup { arrives: MS(arrives), ..ProgramSetup::new(threads) };
            entry.profile.misses_per_kilo_instruction = Some(1.0);
            entry.profile.memory_gigabytes_per_second = Some(1.0);
            entry
        };
        let setup = Setup {
            cpus: topology.all(),
            topology,
            programs: programs.iter().map(entry).collect(),
            limits: Limits::default(),
        };
        let fake = Fake::new(programs.iter().map(|(work, ..)| MS(*work)));
        let policy = kind.build(&options()).unwrap();
        let (_, outcome) = Engine::new(fake, policy, setup).run(&mut ());
        let outcome = outcome.unwrap();
        let ended = outcome.programs.iter().filter(|program| program.completions.len() == 1);
        prop_assert_eq!(ended.count(), programs.len(), "{}", kind);
    }

    #[test]
    fn no_program_is_frozen_too_long_whatever_the_weights(
        kind in prop_oneof![Just(Kind::Gang), Just(Kind::Greedy), Just(Kind::Minwait)],
        powers in prop::collection::vec(-2.0..2.0f64, 2..40),
    ) {
        let weights: Vec<f64> = powers.into_iter().map(|power| 10f64.powf(power)).collect();
        let limit = Nanos::from_secs(1);
        let (_, outcome) = run(kind, &weights, limit, Nanos::from_secs(10));
        prop_assert_eq!(outcome.deviations.count(), 0);
        for program in &outcome.programs {
            prop_assert!(program.timeline.len() > 3, "{:?}", program.timeline);
            let longest = program.frozen.longest;
            prop_assert!(Nanos::ZERO < longest && longest < limit, "{longest:?}");
        }
    }
}
