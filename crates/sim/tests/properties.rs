//! Properties that hold for any programs and plans, under every kernel.

#![allow(clippy::unwrap_used)]

mod stage;

use std::collections::BTreeMap;

use cosched_core::{CpuSet, Event, Happening, Nanos, ProgramId, Settings, Step, Turn};
use cosched_sim::model::{AtBarrier, Mix, Op};
use cosched_sim::{Hardware, Kernel, Model, Switch};
use proptest::prelude::*;
use stage::Stage;

const CPUS: usize = 6;

/// The work of a thread in each round.
#[derive(Clone, Debug)]
struct Work {
    at: u64,
    threads: u16,
    rounds: u32,
    spin: Nanos,
    donates: bool,
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
enum Part {
    Computes(u32, u16),
    Waits,
    Locks(u32),
    Sleeps(u32),
}

/// A request to a program, microseconds after the last.
#[derive(Clone, Debug)]
enum Request {
    Freezes(u16),
    Thaws(u16),
    Binds(u16, u8),
    Sets(u16, i8, u64),
    Turns(u16, Option<Turn>),
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        3 => (1u32..3000, 0u16..2).prop_map(|(time, mix)| Part::Computes(time, mix)),
        1 => Just(Part::Waits),
        1 => (1u32..500).prop_map(Part::Locks),
        1 => (1u32..4000).prop_map(Part::Sleeps),
    ]
}

fn work() -> impl Strategy<Value = Work> {
    let spin = prop_oneof![Just(Nanos::ZERO), Just(Nanos::from_micros(50)), Just(Nanos::NEVER)];
    let parts = proptest::collection::vec(part(), 1..5);
    (0u64..5000, 1u16..7, 1u32..6, spin, any::<bool>(), parts).prop_map(
        |(at, threads, rounds, spin, donates, parts)| Work {
            at,
            threads,
            rounds,
            spin,
            donates,
            parts,
        },
    )
}

fn request() -> impl Strategy<Value = (u64, Request)> {
    let turn = prop_oneof![Just(None), Just(Some(Turn::InTurn)), Just(Some(Turn::Filler))];
    let what = prop_oneof![
        (0u16..4, turn).prop_map(|(program, turn)| Request::Turns(program, turn)),
        (0u16..4).prop_map(Request::Freezes),
        (0u16..4).prop_map(Request::Thaws),
        (0u16..4, 1u8..64).prop_map(|(program, mask)| Request::Binds(program, mask)),
        (0u16..4, -20i8..20, 0u64..120)
            .prop_map(|(program, nice, slice)| Request::Sets(program, nice, slice)),
    ];
    (0u64..4000, what)
}

impl Work {
    fn model(&self) -> Model {
        let mut script = Vec::new();
        for part in &self.parts {
            match *part {
                Part::Computes(time, mix) => {
                    script.push(Op::Compute { instructions: f64::from(time) * 1e3, mix });
                }
                Part::Waits => script.push(Op::Barrier(0)),
                Part::Locks(time) => script.extend([
                    Op::Acquire(0),
                    Op::Compute { instructions: f64::from(time) * 1e3, mix: 0 },
                    Op::Release(0),
                ]),
                Part::Sleeps(time) => script.push(Op::Sleep(Nanos::from_micros(u64::from(time)))),
            }
        }
        script.push(Op::Repeat { from: 0, times: self.rounds, counter: 0 });
        let plain = Mix::computing(1.0);
        let cached = Mix {
            misses: 0.001,
            misses_without_cache: 0.01,
            footprint: 1e7,
            parallelism: 2.0,
            ..plain
        };
        Model {
            script,
            mixes: vec![plain, cached],
            spin: self.spin,
            barrier: self.donates.then_some(AtBarrier::Donate),
            barriers: 1,
            locks: 1,
            ..Model::parallel(self.threads, 0.0, plain)
        }
    }

    /// The instructions of all threads together.
    fn instructions(&self) -> f64 {
        let of = |part: &Part| match *part {
            Part::Computes(time, _) | Part::Locks(time) => f64::from(time) * 1e3,
            Part::Waits | Part::Sleeps(_) => 0.0,
        };
        let round: f64 = self.parts.iter().map(of).sum();
        round * f64::from(self.rounds) * f64::from(self.threads)
    }
}

fn set(mask: u8) -> CpuSet {
    (0..CPUS).filter(|cpu| mask >> cpu & 1 == 1).collect()
}

/// Checks the CPU of each thread at every instant, after all events of it.
fn check_places(switches: &[Switch], limits: &[(Nanos, Limit)]) -> Result<(), TestCaseError> {
    let mut on: BTreeMap<u16, (ProgramId, u16)> = BTreeMap::new();
    let mut frozen: Vec<ProgramId> = Vec::new();
    let mut masks: BTreeMap<ProgramId, CpuSet> = BTreeMap::new();
    let mut instants: Vec<Nanos> =
        switches.iter().map(|switch| switch.at).chain(limits.iter().map(|limit| limit.0)).collect();
    prop_assert!(switches.is_sorted_by_key(|switch| switch.at), "time goes back");
    instants.sort_unstable();
    instants.dedup();
    for at in instants {
        for (_, limit) in limits.iter().filter(|limit| limit.0 == at) {
            match *limit {
                Limit::Frozen(id) => frozen.push(id),
                Limit::Thawed(id) => frozen.retain(|other| *other != id),
                Limit::On(id, cpus) => drop(masks.insert(id, cpus)),
            }
        }
        for switch in switches.iter().filter(|switch| switch.at == at) {
            match switch.to {
                Some(to) => on.insert(switch.cpu, to),
                None => on.remove(&switch.cpu),
            };
        }
        let mut seen: Vec<(ProgramId, u16)> = on.values().copied().collect();
        seen.sort_unstable();
        seen.dedup();
        prop_assert_eq!(seen.len(), on.len(), "a thread on two CPUs at {}", at);
        for (cpu, (id, _)) in &on {
            prop_assert!(!frozen.contains(id), "{} is frozen and runs at {}", id, at);
            let may = masks.get(id).is_none_or(|cpus| cpus.contains(usize::from(*cpu)));
            prop_assert!(may, "{} runs on CPU {} at {}", id, cpu, at);
        }
    }
    Ok(())
}

/// A limit for a program from a time on.
#[derive(Clone, Copy, Debug)]
enum Limit {
    Frozen(ProgramId),
    Thawed(ProgramId),
    On(ProgramId, CpuSet),
}

fn hardware() -> Hardware {
    Hardware::words("package:2 l3:1 core:3 gigahertz=1 cache_mib=8 bus=package:4 bus=machine:6")
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// Time advances, work is done once, and each thread runs on CPUs that it may use.
    #[test]
    fn time_advances_work_is_done_once_and_masks_hold(
        works in proptest::collection::vec(work(), 1..5),
        steps in proptest::collection::vec(request(), 0..12),
        kernel in 0usize..6,
        groups in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let kernel = Kernel::named(Kernel::NAMES[kernel]).unwrap();
        let kernel = Kernel { groups, ..kernel };
        let programs = works.iter().map(|work| (work.at, work.model(), Settings::default()));
        let mut stage = Stage::with(hardware(), kernel, programs, seed);
        let mut limits = Vec::new();
        let mut settings = [Settings::default(); 4];
        let mut now = Nanos::ZERO;
        for (after, request) in steps {
            now += Nanos::from_micros(after);
            stage.until(now);
            let (slot, step) = match request {
                Request::Freezes(slot) => (slot, Step::Freeze(ProgramId::first(slot))),
                Request::Thaws(slot) => (slot, Step::Thaw(ProgramId::first(slot))),
                Request::Binds(slot, mask) => {
                    let of = &mut settings[usize::from(slot)];
                    of.cpus = Some(set(mask));
                    (slot, Step::Apply(ProgramId::first(slot), *of, 1))
                }
                Request::Turns(slot, turn) => {
                    let of = &mut settings[usize::from(slot)];
                    of.turn = turn;
                    (slot, Step::Apply(ProgramId::first(slot), *of, 1))
                }
                Request::Sets(slot, nice, slice) => {
                    let of = &mut settings[usize::from(slot)];
                    of.nice = Some(nice);
                    of.slice = Some(Nanos::from_millis(slice));
                    (slot, Step::Apply(ProgramId::first(slot), *of, 1))
                }
            };
            // Only a program that has started can be changed.
            let id = ProgramId::first(slot);
            if stage.events.iter().any(|event| event.what == Happening::Started(id)) {
                stage.submit(&[step]);
                let cpus = settings[usize::from(slot)].cpus;
                if let Some(cpus) = cpus.filter(|_| matches!(step, Step::Apply(..))) {
                    limits.push((now, Limit::On(id, cpus)));
                }
            } else {
                settings[usize::from(slot)] = Settings::default();
            }
        }
        stage.until(now + Nanos::from_millis(6));
        for slot in 0..works.len() as u16 {
            stage.submit(&[Step::Thaw(ProgramId::first(slot))]);
        }
        let last = Nanos::from_secs(200);
        stage.until(last);
        for event in &stage.events {
            match event.what {
                Happening::Froze(id) => limits.push((event.at, Limit::Frozen(id))),
                Happening::Thawed(id) => limits.push((event.at, Limit::Thawed(id))),
                _ => {}
            }
        }
        prop_assert!(stage.events.is_sorted_by_key(|event: &Event| event.at));
        check_places(stage.sim.switches(), &limits)?;
        for (slot, work) in works.iter().enumerate() {
            let id = ProgramId::first(slot as u16);
            let exit = stage.events.iter().find_map(|event| match event.what {
                Happening::Exited(of, _, usage) if of == id => Some(usage),
                _ => None,
            });
            let usage = exit.expect("every program ends");
            let done = usage.counts.instructions.unwrap() as f64;
            let whole = work.instructions();
            prop_assert!((done - whole).abs() <= 1.0, "{} of {}", done, whole);
        }
    }
}
