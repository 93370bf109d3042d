//! Fair shares, worked out by hand: two CPUs.

use super::*;
use crate::UserCommand;

fn all_run() -> impl Policy {
    Scripted(|_: &[Cause], world: &World<'_>, plan: &mut Plan| {
        world.programs.iter().for_each(|program| plan.run(program.id, Settings::default()));
    })
}

fn shares(outcome: &Outcome) -> Vec<Option<Nanos>> {
    outcome.programs.iter().map(|program| program.share).collect()
}

/// A has both CPUs for 100 ms, then one of two until B ends at 300 ms, then both until 500 ms.
#[test]
fn a_share_changes_when_another_program_comes_or_ends() {
    let mut programs = vec![ProgramSetup::new(2), ProgramSetup::new(2)];
    programs[1].arrives = MS(100);
    let (_, outcome) = run(Fake::new([MS(500), MS(200)]), all_run(), setup(programs));
    let of_a = 2 * 100 + 200 + 2 * 200;
    assert_eq!(shares(&outcome), [Some(MS(of_a)), Some(MS(200))]);
}

/// They take turns of 100 ms, each with both CPUs. The last turn is 50 ms long.
#[test]
fn a_frozen_program_has_its_share() {
    let programs = vec![ProgramSetup::new(2), ProgramSetup::new(2)];
    let (_, outcome) = run(Fake::new([MS(250), MS(250)]), in_turn(), setup(programs));
    let ends: Vec<_> = outcome.programs.iter().map(|program| program.done.unwrap()).collect();
    let [first, last] = [ends.iter().min(), ends.iter().max()].map(|end| *end.unwrap());
    let expected = ends
        .iter()
        .map(|end| first + (*end - first) + (*end - first))
        .map(Some)
        .collect::<Vec<_>>();
    assert_eq!((shares(&outcome), last), (expected, MS(500)));
}

/// A has three times the weight: 1.5 CPUs for 100 ms, then one. B is stopped for the last 100 ms,
/// in which A can use both CPUs.
#[test]
fn weights_and_stops_by_others_change_shares() {
    let mut programs = vec![ProgramSetup::new(2), ProgramSetup::new(2)];
    programs[0].weight = 3.0;
    let mut fake = Fake::new([MS(300), MS(4000)]);
    fake.script(MS(100), Happening::Commanded(UserCommand::Weight(p(0), 1.0)));
    fake.script(MS(200), Happening::StoppedByOther(p(1)));
    fake.script(MS(300), Happening::Commanded(UserCommand::Detach(p(1))));
    let (_, outcome) = run(fake, all_run(), setup(programs));
    assert_eq!(shares(&outcome), [Some(MS(150 + 100 + 200)), Some(MS(50 + 100))]);
}

/// One thread uses one CPU at most, and leaves the other to the program that runs twice.
#[test]
fn a_repeated_program_has_one_share_until_it_is_done() {
    let mut programs = vec![ProgramSetup::new(1), ProgramSetup::new(4)];
    programs[0].weight = 9.0;
    programs[1].repeat = Repeat::Times(2);
    let (_, outcome) = run(Fake::new([MS(400), MS(100)]), all_run(), setup(programs));
    assert_eq!(shares(&outcome), [Some(MS(400)), Some(MS(200))]);
}

/// It is not known what it has used since then.
#[test]
fn a_program_that_ran_before_has_no_share() {
    let mut entry = ProgramSetup::new(1);
    entry.runs_already = true;
    let mut fake = Fake::new([MS(50)]);
    fake.script(MS(35), Happening::Exited(p(0), Exit::Code(0), Usage::default()));
    let (_, outcome) = run(fake, all_run(), setup(vec![entry]));
    assert_eq!(shares(&outcome), [None]);
}
