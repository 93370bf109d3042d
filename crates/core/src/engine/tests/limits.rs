//! Programs with their own limit on frozen time.

use super::*;

/// Each gets its own limit, and the shortest of those present is in the world.
#[test]
fn a_programs_own_limit_on_frozen_time_holds() {
    let fake = Fake::new([MS(2500), MS(100), MS(200)]);
    let mut entries = vec![ProgramSetup::new(1), ProgramSetup::new(1), ProgramSetup::new(1)];
    entries[1].max_frozen = Some(MS(30));
    entries[2].max_frozen = Some(Nanos::from_secs(5));
    let policy = Scripted(|_: &[Cause], world: &World<'_>, plan: &mut Plan| {
        let (short, long) = (MS(30), Nanos::from_secs(1));
        let is_there = world.program(p(1)).is_some();
        assert_eq!(world.max_frozen, if is_there { short } else { long });
        for program in world.programs {
            assert_eq!(program.max_frozen, if program.id == p(1) { short } else { long });
            match program.id == p(0) || world.now < MS(10) {
                true => plan.run(program.id, Settings::default()),
                false => plan.freeze(program.id),
            }
        }
        plan.wake_at(world.now + MS(10), Token(0));
    });
    let (_, outcome) = run(fake, policy, setup(entries));
    let longest = |slot: usize| outcome.programs[slot].frozen.longest;
    assert_eq!([longest(1), longest(2)], [MS(30), Nanos::from_secs(1)]);
}

/// A limit of a program that is never frozen shortens nothing for the others.
#[test]
fn a_limit_of_an_unfreezable_program_is_none() {
    let fake = Fake::new([MS(100), MS(100)]);
    let mut entries = vec![ProgramSetup::new(1), ProgramSetup::new(1)];
    (entries[0].freezable, entries[0].max_frozen) = (false, Some(MS(30)));
    let policy = Scripted(|_: &[Cause], world: &World<'_>, plan: &mut Plan| {
        assert_eq!(world.max_frozen, Nanos::from_secs(1));
        world.programs.iter().for_each(|program| plan.run(program.id, Settings::default()));
    });
    run(fake, policy, setup(entries));
}
