//! What is counted as a switch: every change by a decision, and nothing else.

use super::*;

fn at(outcome: &Outcome) -> Vec<u64> {
    outcome.switches.iter().map(|at| at.0 / 1_000_000).collect()
}

#[test]
fn switches_with_a_start_or_after_an_end_count_too() {
    // The second program runs first, for 100 ms of its 250. Each change of turns is a decision.
    let (_, outcome) = run(
        Fake::new([MS(250), MS(250)]),
        in_turn(),
        setup(vec![ProgramSetup::new(2), ProgramSetup::new(2)]),
    );
    assert_eq!(at(&outcome), [100, 200, 300, 400, 450]);
    // At 100 ms a program was started, and at 450 ms one had ended. There was no gap to measure.
    assert_eq!(outcome.switch_gaps.latest.len(), 3);
}

#[test]
fn a_continued_gang_an_end_or_a_first_start_is_no_switch() {
    let together = Scripted(|_: &[Cause], world: &World<'_>, plan: &mut Plan| {
        for program in world.programs {
            plan.run(program.id, Settings::default());
        }
        plan.wake_at(world.now + MS(50), Token(0));
    });
    let (_, outcome) = run(
        Fake::new([MS(100), MS(300)]),
        together,
        setup(vec![ProgramSetup::new(1), ProgramSetup::new(1)]),
    );
    assert_eq!(outcome.switches.count(), 0);
}

/// Programs run one after another, in the order of the workload. A program that has ended and
/// arrives again is last.
fn in_line() -> impl Policy {
    let mut line: Vec<ProgramId> = Vec::new();
    Scripted(move |causes: &[Cause], _: &World<'_>, plan: &mut Plan| {
        let before = line.first().copied();
        for cause in causes {
            match cause {
                Cause::Arrived(id) => line.push(*id),
                Cause::Exited(id, _) => line.retain(|waits| waits != id),
                _ => {}
            }
        }
        if let Some(next) = line.first().copied().filter(|next| Some(*next) != before) {
            plan.run(next, Settings::default());
        }
    })
}

/// A program that starts again while it runs alone is no switch. A start after another program has
/// run is one.
#[test]
fn a_restart_alone_is_no_switch_and_after_another_it_is() {
    let again = |asked| ProgramSetup { repeat: Repeat::Times(2), ..ProgramSetup::new(asked) };
    let (_, alone) = run(Fake::new([MS(100)]), in_line(), setup(vec![again(2)]));
    assert_eq!((at(&alone), alone.total), (vec![], MS(200)));
    let two = setup(vec![again(2), again(2)]);
    let (_, both) = run(Fake::new([MS(100), MS(100)]), in_line(), two);
    assert_eq!((at(&both), both.total), (vec![100, 200, 300], MS(400)));
}

/// The engine thaws a program that was frozen for the allowed time, against the policy's plan.
#[test]
fn a_thaw_forced_by_the_engine_is_no_switch() {
    // The policy freezes the first program for ever. The engine thaws it all the same.
    let unjust = Scripted(|causes: &[Cause], world: &World<'_>, plan: &mut Plan| {
        if causes.iter().any(|cause| matches!(cause, Cause::Arrived(_))) {
            world.programs.iter().for_each(|program| plan.run(program.id, Settings::default()));
            plan.wake_at(world.now + MS(100), Token(0));
        } else if causes.contains(&Cause::Woke(Token(0))) {
            plan.freeze(p(0));
        }
    });
    let (_, outcome) = run(
        Fake::new([MS(300), MS(4000)]),
        unjust,
        setup(vec![ProgramSetup::new(1), ProgramSetup::new(1)]),
    );
    assert!(outcome.programs[0].timeline.len() > 1, "{outcome:?}");
    assert_eq!(at(&outcome), [100]);
}

/// Two programs take turns by weight, 100 ms each, the first program first.
fn by_weight() -> impl Policy {
    let mut turn = 0;
    Scripted(move |causes: &[Cause], world: &World<'_>, plan: &mut Plan| {
        if nothing_new(causes) || causes.iter().any(|cause| matches!(cause, Cause::Exited(..))) {
            return;
        }
        for (i, program) in world.programs.iter().enumerate() {
            let part = if i == turn % 2 { Turn::InTurn } else { Turn::Filler };
            plan.run(program.id, Settings { turn: Some(part), ..Settings::default() });
        }
        turn += 1;
        plan.wake_at(world.now + MS(100), Token(0));
    })
}

/// The turns of two programs at every heartbeat.
#[derive(Default)]
struct Turns(Vec<[u64; 2]>, Vec<[Nanos; 2]>);

impl Watch for Turns {
    fn beat(&mut self, beat: &Beat<'_>) {
        self.0.push([0, 1].map(|slot| beat.totals(slot).turns));
        self.1.push([0, 1].map(|slot| beat.totals(slot).filled));
    }

    fn looks(&self) -> bool {
        true
    }
}

#[test]
fn turns_by_weight_are_counted_and_starts_are_not() {
    let mut setup = setup(vec![ProgramSetup::new(2), ProgramSetup::new(2)]);
    setup.limits.heartbeat = MS(50);
    let mut turns = Turns::default();
    let engine = Engine::new(Fake::new([MS(250), MS(250)]), by_weight(), setup);
    engine.run(&mut turns).1.unwrap();
    turns.0.dedup();
    assert_eq!(turns.0, [[1, 0], [1, 1], [2, 1]]);
    assert!([[0, 50], [50, 100]].iter().all(|filled| turns.1.contains(&filled.map(MS))));
}

#[test]
fn turns_by_weight_are_switches_and_stop_no_program() {
    let (fake, outcome) = run(
        Fake::new([MS(250), MS(250)]),
        by_weight(),
        setup(vec![ProgramSetup::new(2), ProgramSetup::new(2)]),
    );
    assert!(!fake.steps().iter().any(|step| matches!(step, Step::Freeze(_))), "{:?}", fake.steps());
    assert_eq!(at(&outcome), [100, 200]);
    let turns = |slot: usize| {
        let turns = outcome.programs[slot].turns.iter();
        turns.map(|turn| (turn.from.0 / 1_000_000, turn.to.0 / 1_000_000)).collect::<Vec<_>>()
    };
    assert_eq!((turns(0), turns(1)), (vec![(0, 100), (200, 250)], vec![(100, 200)]));
    assert_eq!(outcome.programs[0].ran, MS(250), "a filler is allowed to run");
    assert_eq!([0, 1].map(|slot: usize| outcome.programs[slot].filled), [MS(100), MS(150)]);
}
