//! Programs that come after others have ended.

use super::super::outcome::{Missing, NotStarted};
use super::*;
use crate::UserCommand;

/// An entry that waits for these, each of which must return 0.
fn after(slots: &[u16]) -> ProgramSetup {
    let wait = |slot: &u16| Predecessor { slot: *slot, any_exit: false };
    ProgramSetup { after: slots.iter().map(wait).collect(), ..ProgramSetup::new(1) }
}

/// An entry that waits for this one, which may end in any way.
fn after_any(slot: u16) -> ProgramSetup {
    ProgramSetup { after: vec![Predecessor { slot, any_exit: true }], ..ProgramSetup::new(1) }
}

/// Runs whatever has come.
fn all_at_once() -> impl Policy {
    Scripted(|_: &[Cause], world: &World<'_>, plan: &mut Plan| {
        world.programs.iter().for_each(|program| plan.run(program.id, Settings::default()));
    })
}

/// Ends a program with a status of 1.
fn fails(fake: &mut Fake, slot: u16, at: Nanos) {
    fake.script(at, Happening::Exited(p(slot), Exit::Code(1), Usage::default()));
}

#[test]
fn a_program_arrives_when_all_that_it_waits_for_have_ended() {
    let fake = Fake::new([MS(100), MS(300), MS(50), MS(10)]);
    let late = ProgramSetup { arrives: MS(1000), ..after(&[2]) };
    let entries = vec![ProgramSetup::new(1), ProgramSetup::new(1), after(&[0, 1]), late];
    let (_, outcome) = run(fake, all_at_once(), setup(entries));
    let arrived: Vec<Nanos> = outcome.programs.iter().map(|program| program.arrived).collect();
    assert_eq!(arrived, [MS(0), MS(0), MS(300), MS(1000)]);
    assert_eq!(outcome.programs[2].started, Some(MS(300)));
    assert_eq!(outcome.programs[2].waited, Nanos::ZERO, "it has not come before");
    assert_eq!(outcome.total, MS(1010));
}

/// The machine of the test panics where the engine wakes up too often.
#[test]
fn a_program_that_waits_for_another_one_costs_no_wakeups() {
    let entries = vec![ProgramSetup::new(1), ProgramSetup { arrives: MS(1), ..after(&[0]) }];
    let (_, outcome) = run(Fake::new([MS(40_000), MS(1)]), all_at_once(), setup(entries));
    assert_eq!(outcome.total, MS(40_001));
}

#[test]
fn a_repeated_program_ends_with_its_last_repetition() {
    let again = ProgramSetup { repeat: Repeat::Times(3), ..ProgramSetup::new(1) };
    let (_, outcome) =
        run(Fake::new([MS(100), MS(10)]), all_at_once(), setup(vec![again, after(&[0])]));
    assert_eq!(outcome.programs[1].arrived, MS(300));
}

#[test]
fn after_a_failure_only_programs_that_wait_for_any_exit_start() {
    let mut fake = Fake::new([MS(500), MS(10), MS(10), MS(10), MS(10)]);
    fails(&mut fake, 0, MS(100));
    let entries = vec![ProgramSetup::new(1), after(&[0]), after(&[1]), after_any(0), after_any(2)];
    let (fake, outcome) = run(fake, all_at_once(), setup(entries));
    let not_started: Vec<Option<NotStarted>> =
        outcome.programs.iter().map(|program| program.not_started).collect();
    let never = |program, why| Some(NotStarted { at: MS(100), program, why });
    assert_eq!(
        not_started,
        [None, never(0, Missing::Failed), never(1, Missing::NotStarted), None, None]
    );
    let started = |step: &Step| matches!(step, Step::Start(..));
    assert_eq!(fake.steps().into_iter().filter(started).count(), 3);
    assert_eq!(outcome.programs[4].arrived, MS(100));
    assert_eq!((outcome.ended, outcome.total), (Ended::Complete, MS(110)));
}

/// The failure is known before the other one has ended.
#[test]
fn a_program_is_given_up_at_the_first_failure() {
    let mut fake = Fake::new([MS(500), MS(300), MS(10)]);
    fails(&mut fake, 0, MS(100));
    let entries = vec![ProgramSetup::new(1), ProgramSetup::new(1), after(&[1, 0])];
    let (_, outcome) = run(fake, all_at_once(), setup(entries));
    assert_eq!(
        outcome.programs[2].not_started.map(|why| (why.at, why.program)),
        Some((MS(100), 0))
    );
    assert_eq!(outcome.programs[2].done, None);
}

/// What is repeated as a co-runner goes on until programs that wait have ended, too.
#[test]
fn co_runners_are_repeated_until_waiting_programs_have_ended() {
    let again = ProgramSetup { repeat: Repeat::UntilAllFinish, ..ProgramSetup::new(1) };
    let fake = Fake::new([MS(100), MS(40), MS(200)]);
    let (_, outcome) =
        run(fake, all_at_once(), setup(vec![ProgramSetup::new(1), again, after(&[0])]));
    assert_eq!(outcome.total, MS(300));
    assert_eq!(outcome.programs[1].completions.len(), 7);
}

#[test]
fn co_runners_are_ended_where_the_last_program_is_not_started() {
    let again = ProgramSetup { repeat: Repeat::UntilAllFinish, ..ProgramSetup::new(1) };
    let mut fake = Fake::new([MS(500), MS(40), MS(200)]);
    fails(&mut fake, 0, MS(100));
    let (_, outcome) =
        run(fake, all_at_once(), setup(vec![ProgramSetup::new(1), again, after(&[0])]));
    assert_eq!((outcome.ended, outcome.total), (Ended::Complete, MS(100)));
}

#[test]
fn an_interruption_starts_nothing_that_waits() {
    let mut fake = Fake::new([MS(500), MS(10)]);
    fake.script(MS(100), Happening::Interrupted(Interruption::Interrupt));
    let (fake, outcome) = run(fake, all_at_once(), setup(vec![ProgramSetup::new(1), after_any(0)]));
    let why = NotStarted { at: MS(100), program: 0, why: Missing::Interrupted };
    assert_eq!(outcome.programs[1].not_started, Some(why));
    assert!(fake.steps().iter().all(|step| !matches!(step, Step::Start(id, _) if *id == p(1))));
}

#[test]
fn a_program_that_was_detached_lets_no_other_start() {
    let mut fake = Fake::new([MS(500), MS(10), MS(150)]);
    fake.script(MS(100), Happening::Commanded(UserCommand::Detach(p(0))));
    let entries = vec![ProgramSetup::new(1), after_any(0), ProgramSetup::new(1)];
    let (_, outcome) = run(fake, all_at_once(), setup(entries));
    let why = NotStarted { at: MS(100), program: 0, why: Missing::Detached };
    assert_eq!(outcome.programs[1].not_started, Some(why));
    assert_eq!(outcome.total, MS(150));
}
