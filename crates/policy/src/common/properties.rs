//! Properties that hold for any arrivals and ends, at any moment.
//!
//! [`Lab`] checks every plan for the rules of all policies: no unknown program or CPU, no program
//! twice, nothing frozen that may not be.

use std::collections::BTreeMap;

use cosched_core::{Directive, GroupId, Nanos, Policy, Program, ProgramId, ProgramState};
use proptest::prelude::*;

use crate::common::testkit::{Lab, cases, options, program, unit};
use crate::descriptor::{Learns, OptionGroup};
use crate::gangs::placement::Placement;
use crate::gangs::rounds::Gang;
use crate::gangs::{cgreedy, greedy};
use crate::kind::{Kind, Options};

const CPUS: u16 = 6;

/// The policies under which programs run in gangs from their beginning to their end.
fn gang_policies() -> Vec<Kind> {
    Kind::ALL.into_iter().filter(|kind| kind.insists_on_gangs()).collect()
}

/// Those that have rounds: two programs that each fill the machine make a round of two gangs.
fn policies_in_rounds() -> Vec<Kind> {
    let has_rounds = |kind: &Kind| {
        let programs = vec![program(0, CPUS), program(1, CPUS)];
        let lab = Lab::new(kind.build(&options()).unwrap(), CPUS, programs);
        lab.quantum().is_some_and(|(_, _, gangs, _)| gangs == 2)
    };
    gang_policies().into_iter().filter(has_rounds).collect()
}

/// Something that happens to the machine.
#[derive(Clone, Debug)]
enum Happens {
    /// The next wake-up comes.
    QuantumEnds,
    /// Milliseconds pass.
    TimePasses(u64),
    /// A program arrives.
    Arrives(Box<Program>),
    /// One of the programs, by its position, ends.
    Exits(usize),
    /// A program requests another number of threads.
    Requests(usize, u16),
    /// Another process stops a program, or continues it.
    StopsOrContinues(usize),
}

fn any_program() -> impl Strategy<Value = Program> {
    let figures = (proptest::option::of(0.0..50.0), proptest::option::of(0.0..20.0));
    let group = proptest::option::weighted(0.15, 0u16..2);
    (1..=CPUS, figures, group, prop::bool::weighted(0.9)).prop_map(
        |(threads, (misses, traffic), group, freezable)| {
            let mut program = program(0, threads);
            program.profile.misses_per_kilo_instruction = misses;
            program.profile.memory_gigabytes_per_second = traffic;
            Program { group: group.map(GroupId), freezable, ..program }
        },
    )
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        6 => Just(Happens::QuantumEnds),
        1 => (1u64..150).prop_map(Happens::TimePasses),
        2 => any_program().prop_map(|p| Happens::Arrives(Box::new(p))),
        2 => (0usize..20).prop_map(Happens::Exits),
        1 => (0usize..20, 1..=CPUS).prop_map(|(which, threads)| Happens::Requests(which, threads)),
        1 => (0usize..20).prop_map(Happens::StopsOrContinues),
    ]
}

fn kinds() -> impl Strategy<Value = (Kind, Options)> {
    let kind = prop::sample::select(gang_policies());
    (kind, any::<bool>(), any::<bool>()).prop_map(|(kind, fill, spread)| {
        let fill = fill && kind.takes(OptionGroup::Fill);
        let placement = if spread { Placement::Spread } else { Placement::Packed };
        (kind, Options { fill, placement, ..options() })
    })
}

fn make_happen<P: Policy>(lab: &mut Lab<P>, what: Happens, next_slot: &mut u16) {
    let slot = |which: usize, lab: &Lab<P>| {
        let programs = &lab.scene.programs;
        (!programs.is_empty()).then(|| programs[which % programs.len()].id.slot)
    };
    match what {
        Happens::QuantumEnds => {
            lab.wake();
        }
        Happens::TimePasses(ms) => lab.pass(Nanos::from_millis(ms)),
        Happens::Arrives(mut program) => {
            program.id.slot = *next_slot;
            *next_slot += 1;
            lab.arrive(*program);
        }
        Happens::Exits(which) => {
            if let Some(slot) = slot(which, lab) {
                lab.exit(slot);
            }
        }
        Happens::Requests(which, threads) => {
            if let Some(slot) = slot(which, lab) {
                lab.change(slot, |p| p.thread_count = threads);
            }
        }
        Happens::StopsOrContinues(which) => {
            if let Some(slot) = slot(which, lab) {
                lab.change(slot, |p| match p.state {
                    ProgramState::StoppedByOther => p.state = ProgramState::Running,
                    ProgramState::Running => p.state = ProgramState::StoppedByOther,
                    _ => {}
                });
            }
        }
    }
}

/// Counts, for each program that waits, the turns of others, and compares them with the units ahead
/// of it. A quantum that is made again before any time has passed is the same turn.
#[derive(Default)]
struct Patience {
    waiting: BTreeMap<u16, (usize, usize)>,
    counted: Option<Nanos>,
}

impl Patience {
    fn watch<P: Policy>(&mut self, lab: &Lab<P>, new_quantum: bool) -> Result<(), TestCaseError> {
        let waits = |p: &&Program| matches!(p.state, ProgramState::New | ProgramState::Frozen);
        let all = lab.scene.programs.len();
        let waiting: Vec<u16> =
            lab.scene.programs.iter().filter(waits).map(|p| p.id.slot).collect();
        self.waiting.retain(|slot, _| waiting.contains(slot));
        let new_turn = new_quantum && self.counted != Some(lab.scene.now);
        if new_turn {
            self.counted = Some(lab.scene.now);
        }
        for slot in waiting {
            let (turns, ahead) = self.waiting.entry(slot).or_insert((0, all));
            *turns += usize::from(new_turn);
            prop_assert!(turns <= ahead, "{slot} waited {turns} quanta behind {ahead} programs");
        }
        Ok(())
    }
}

/// A program of some weight, alone, that may be frozen.
fn plain_program() -> impl Strategy<Value = Program> {
    (any_program(), 0.25..4.0).prop_map(|(program, weight)| Program {
        group: None,
        freezable: true,
        weight,
        ..program
    })
}

fn plain_programs() -> impl Strategy<Value = Vec<Program>> {
    prop::collection::vec(plain_program(), 1..10).prop_map(|mut programs| {
        for (slot, program) in programs.iter_mut().enumerate() {
            program.id.slot = slot as u16;
        }
        programs
    })
}

proptest! {
    #![proptest_config(cases(300))]

    /// Waits are at most as many quanta as programs, for any arrivals and ends.
    #[test]
    fn waits_are_at_most_as_many_quanta_as_programs(
        (kind, options) in kinds(),
        at_start in prop::collection::vec(any_program(), 0..8),
        story in prop::collection::vec(happens(), 1..60),
    ) {
        let mut next_slot = 0;
        let mut lab = Lab::new(kind.build(&options).unwrap(), CPUS, vec![]);
        let mut patience = Patience::default();
        let arrivals = at_start.into_iter().map(|p| Happens::Arrives(Box::new(p)));
        for what in arrivals.chain(story) {
            lab.plan.clear();
            make_happen(&mut lab, what, &mut next_slot);
            // A policy that learns solo speeds decides by them which programs wait, and nothing is
            // measured here.
            if !kind.learns(Learns::SoloSpeeds) {
                patience.watch(&lab, lab.quantum().is_some())?;
            }

            let stopped = |p: &&Program| p.state == ProgramState::StoppedByOther;
            let scheduled = lab.scene.programs.iter().filter(|p| !stopped(p));
            let (run, wait): (Vec<_>, Vec<_>) = scheduled.partition(|p| p.state.may_run());
            prop_assert!(wait.is_empty() || !run.is_empty(), "a program waits, and none runs");
            prop_assert!(wait.is_empty() || lab.next_wake().is_some(), "a program waits for ever");
        }
    }

    /// No CPU is given twice, and each program in a gang has as many as it requested.
    #[test]
    fn every_program_in_a_gang_has_its_own_cpus(
        (kind, options) in kinds(),
        at_start in plain_programs(),
        story in prop::collection::vec(happens(), 1..40),
    ) {
        let mut next_slot = at_start.len() as u16;
        let mut lab = Lab::new(kind.build(&options).unwrap(), CPUS, at_start);
        for what in story {
            let what = match what {
                Happens::Arrives(mut program) => {
                    (program.group, program.freezable) = (None, true);
                    Happens::Arrives(program)
                }
                Happens::StopsOrContinues(_) => Happens::QuantumEnds,
                other => other,
            };
            lab.plan.clear();
            make_happen(&mut lab, what, &mut next_slot);
            let used = lab.cpus_in_use();
            prop_assert!(used.windows(2).all(|two| two[0] != two[1]), "{used:?}");
            for (id, directive) in &lab.plan.programs {
                if let Directive::Run(settings) = directive {
                    let asked = lab.scene.world().program(*id).map(|p| usize::from(p.thread_count));
                    prop_assert_eq!(Some(settings.cpus.unwrap_or(lab.scene.cpus).len()), asked);
                }
            }
        }
    }

    /// While nothing changes, each program has one turn per round.
    #[test]
    fn each_program_has_one_turn_per_round(
        kind in prop::sample::select(policies_in_rounds()),
        programs in plain_programs(),
        rounds_before in 0usize..3,
    ) {
        let all: Vec<u16> = programs.iter().map(|p| p.id.slot).collect();
        let mut lab = Lab::new(kind.build(&options()).unwrap(), CPUS, programs);
        let gangs = lab.quantum().map_or(0, |(_, _, gangs, _)| usize::from(gangs));
        lab.quanta(rounds_before * gangs);
        let mut served: Vec<u16> = lab.quanta(gangs).concat();
        served.sort_unstable();
        prop_assert_eq!(served, all);
    }

    /// A wait is at most as long as the rounds before and after the change.
    #[test]
    fn one_change_makes_no_wait_longer_than_two_rounds(
        kind in prop::sample::select(policies_in_rounds()),
        programs in plain_programs(),
        quanta_before in 0usize..12,
        arrives_or_exits in prop_oneof![plain_program().prop_map(Ok), (0u16..10).prop_map(Err)],
    ) {
        let mut lab = Lab::new(kind.build(&options()).unwrap(), CPUS, programs);
        let gangs = |lab: &Lab<_>| lab.quantum().map_or(0, |(_, _, gangs, _)| usize::from(gangs));
        let before = gangs(&lab);
        let mut served = lab.quanta(before + quanta_before);
        match arrives_or_exits {
            Ok(newcomer) => lab.arrive(Program { id: ProgramId::first(99), ..newcomer }),
            Err(which) => lab.exit(which % lab.scene.programs.len() as u16),
        }
        served.extend(lab.quanta(1));
        let after = gangs(&lab);
        served.extend(lab.quanta(before + after));
        for program in &lab.scene.programs {
            let serves = |quantum: &Vec<u16>| quantum.contains(&program.id.slot);
            let longest = served.split(serves).map(<[Vec<u16>]>::len).max();
            let longest = if program.id.slot == 99 { None } else { longest };
            prop_assert!(longest <= Some(before + after), "{} in {served:?}", program.id);
        }
    }

    #[test]
    fn no_program_of_a_later_greedy_gang_fits_into_an_earlier_one(
        threads in prop::collection::vec(1usize..=24, 0..30),
    ) {
        let units: Vec<_> =
            threads.iter().enumerate().map(|(slot, n)| unit(slot as u16, *n, None)).collect();
        let gangs = greedy::cut(&units, 24);
        let size = |gang: &Gang| gang.iter().map(|(unit, _)| threads[*unit]).sum::<usize>();
        let mut placed: Vec<usize> = gangs.iter().flatten().map(|(unit, _)| *unit).collect();
        placed.sort_unstable();
        prop_assert_eq!(placed, (0..units.len()).collect::<Vec<_>>());
        for (position, gang) in gangs.iter().enumerate() {
            prop_assert!(size(gang) <= 24);
            for (unit, _) in gangs[position + 1..].iter().flatten() {
                prop_assert!(size(gang) + threads[*unit] > 24);
            }
        }
    }

    /// Gangs hold two programs at most, or three with fill.
    #[test]
    fn cgreedy_gangs_fit_and_hold_at_most_three_programs(
        programs in prop::collection::vec((1usize..=24, prop::option::of(0.0..50.0)), 0..30),
    ) {
        let units: Vec<_> = programs
            .iter()
            .enumerate()
            .map(|(slot, (threads, misses))| unit(slot as u16, *threads, *misses))
            .collect();
        let pairs = cgreedy::cut_in_pairs(&units, 24);
        let threes = cgreedy::cut_in_threes(&units, 24);
        for (gangs, most) in [(pairs, 2), (threes, 3)] {
            let mut placed: Vec<usize> = gangs.iter().flatten().map(|(unit, _)| *unit).collect();
            placed.sort_unstable();
            prop_assert_eq!(placed, (0..units.len()).collect::<Vec<_>>());
            for gang in &gangs {
                prop_assert!((1..=most).contains(&gang.len()));
                let size: usize = gang.iter().map(|(unit, _)| units[*unit].threads).sum();
                prop_assert!(size <= 24);
            }
        }
    }

    #[test]
    fn fcfs_runs_one_program_at_a_time_and_freezes_none(
        at_start in plain_programs(),
        story in prop::collection::vec(happens(), 1..40),
    ) {
        let mut next_slot = at_start.len() as u16;
        let mut lab = Lab::new(Kind::Fcfs.build(&Options::default()).unwrap(), CPUS, at_start);
        for what in story {
            let what = match what {
                Happens::Arrives(mut program) => {
                    program.group = None;
                    Happens::Arrives(program)
                }
                other => other,
            };
            make_happen(&mut lab, what, &mut next_slot);
            let programs = &lab.scene.programs;
            let started = programs.iter().filter(|p| p.state != ProgramState::New).count();
            prop_assert_eq!(started, 1.min(programs.len()));
            prop_assert!(programs.iter().all(|p| p.state != ProgramState::Frozen));
        }
    }
}
