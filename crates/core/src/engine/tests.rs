use super::outcome::Outcome;
use super::*;
use crate::engine::Repeat;
use crate::fake::Fake;
use crate::plan::{AtExpiry, Observe, Settings, Wake};
use crate::program::{Exit, GroupId, Usage};
use crate::sample::Measure;
use crate::turn::Turn;
use crate::{
    Aspect, CpuSet, Event, Happening, Interruption, ProgramId, ProgramState, Refusal, Signal, Step,
    Topology,
};

mod after;
mod contract;
mod late;
mod limits;
mod shares;
mod switches;

const MS: fn(u64) -> Nanos = Nanos::from_millis;

fn p(slot: u16) -> ProgramId {
    ProgramId::first(slot)
}

/// A policy made of a closure.
struct Scripted<F>(F);

impl<F: FnMut(&[Cause], &World<'_>, &mut Plan)> Policy for Scripted<F> {
    fn decide(&mut self, causes: &[Cause], world: &World<'_>, plan: &mut Plan) {
        (self.0)(causes, world, plan);
    }
}

fn nothing_new(causes: &[Cause]) -> bool {
    causes.iter().all(|cause| matches!(cause, Cause::Settled { .. }))
}

/// All CPUs to one program after another, 100 ms each.
fn in_turn() -> impl Policy {
    let mut turn = 0;
    Scripted(move |causes: &[Cause], world: &World<'_>, plan: &mut Plan| {
        if world.programs.is_empty() || nothing_new(causes) {
            return;
        }
        turn += 1;
        for (i, program) in world.programs.iter().enumerate() {
            match i == turn % world.programs.len() {
                true => plan.run(program.id, Settings::default()),
                false => plan.freeze(program.id),
            }
        }
        plan.wake_at(world.now + MS(100), Token(0));
    })
}

fn setup(programs: Vec<ProgramSetup>) -> Setup {
    let topology = Topology::regular(1, 1, 1, 2, 1);
    Setup { cpus: topology.all(), topology, programs, limits: Limits::default() }
}

fn run(fake: Fake, policy: impl Policy, setup: Setup) -> (Fake, Outcome) {
    let (fake, outcome) = Engine::new(fake, policy, setup).run(&mut ());
    (fake, outcome.unwrap())
}

#[test]
fn programs_take_turns_and_the_accounts_add_up() {
    let fake = Fake::new([MS(250), MS(250)]);
    let (_, outcome) =
        run(fake, in_turn(), setup(vec![ProgramSetup::new(2), ProgramSetup::new(2)]));
    assert_eq!(outcome.ended, Ended::Complete);
    assert_eq!(outcome.total, MS(500));
    for program in &outcome.programs {
        assert_eq!(program.ran, MS(250));
        assert_eq!(program.ran + program.waited, program.done.unwrap());
        let drawn: Nanos = program.timeline.iter().map(|s| s.to - s.from).sum();
        assert_eq!(drawn, program.ran);
    }
}

#[test]
fn a_program_is_thawed_only_once_the_others_are_frozen() {
    let mut fake = Fake::new([MS(250), MS(250)]);
    fake.freeze_latency = MS(3);
    fake.thaw_latency = MS(1);
    let (_, outcome) =
        run(fake, in_turn(), setup(vec![ProgramSetup::new(2), ProgramSetup::new(2)]));
    let [first, second] = &outcome.programs[..] else { panic!("two programs") };
    for a in &first.timeline {
        assert!(second.timeline.iter().all(|b| a.to <= b.from || b.to <= a.from), "{a:?} overlaps");
    }
    assert_eq!(outcome.switch_gaps.latest.first(), Some(&MS(4)));
}

#[test]
fn programs_on_disjoint_cpus_do_not_wait_for_each_other() {
    let mut fake = Fake::new([MS(300), MS(100), MS(100)]);
    fake.freeze_latency = MS(5);
    let left = CpuSet::first(1);
    let right: CpuSet = [1].into_iter().collect();
    let policy = Scripted(move |causes: &[Cause], world: &World<'_>, plan: &mut Plan| {
        if causes.contains(&Cause::Arrived(p(0))) {
            plan.run(p(0), Settings::on(left));
            plan.run(p(1), Settings::on(right));
            plan.wake_at(world.now + MS(50), Token(1));
        } else if causes.contains(&Cause::Woke(Token(1))) {
            plan.freeze(p(0));
            plan.freeze(p(1));
            plan.run(p(2), Settings::on(right));
            plan.wake_at(world.now + MS(2), Token(2));
        } else if causes.contains(&Cause::Woke(Token(2))) {
            plan.run(p(0), Settings::on(left));
        } else if causes.contains(&Cause::Exited(p(2), Exit::Code(0))) {
            plan.run(p(1), Settings::on(right));
        }
    });
    let (fake, _) = run(
        fake,
        policy,
        setup(vec![ProgramSetup::new(1), ProgramSetup::new(1), ProgramSetup::new(1)]),
    );
    let started = |slot| {
        fake.submitted.iter().find(|(_, s)| matches!(s, Step::Start(id, _) if *id == p(slot)))
    };
    assert_eq!(started(2).map(|(at, _)| *at), Some(MS(55)), "waits for the one on its CPU");
    let thawed = fake.submitted.iter().find(|(_, s)| *s == Step::Thaw(p(0)));
    assert_eq!(thawed.map(|(at, _)| *at), Some(MS(52)), "its own freeze is called off");
}

#[test]
fn no_program_starts_before_the_policy_lets_it() {
    let fake = Fake::new([MS(100), MS(100)]);
    let policy = Scripted(|causes: &[Cause], _: &World<'_>, plan: &mut Plan| {
        if causes.contains(&Cause::Arrived(p(0))) {
            plan.run(p(0), Settings::default());
        }
        if causes.contains(&Cause::Exited(p(0), Exit::Code(0))) {
            plan.run(p(1), Settings::default());
        }
    });
    let (fake, outcome) =
        run(fake, policy, setup(vec![ProgramSetup::new(2), ProgramSetup::new(2)]));
    assert_eq!(fake.submitted.len(), 2, "two starts, no freeze");
    assert_eq!(outcome.programs[1].started, Some(MS(100)));
    assert_eq!(outcome.programs[1].waited, MS(100));
    assert!(outcome.programs[1].frozen.count == 0, "waiting for a start is no frozen gap");
}

#[test]
fn a_freeze_that_is_never_confirmed_is_given_up_and_reported() {
    let mut fake = Fake::new([MS(400), MS(300)]);
    fake.unfreezable.insert(p(0));
    let (_, outcome) =
        run(fake, in_turn(), setup(vec![ProgramSetup::new(2), ProgramSetup::new(2)]));
    let first = outcome.deviations[0];
    assert_eq!((first.program, first.what, first.why), (p(0), Aspect::Frozen, Refusal::TimedOut));
    assert_eq!(first.at, MS(200) + Limits::default().freeze_patience);
    assert_eq!(outcome.programs[0].done, Some(MS(500)), "once started it is never off its CPUs");
}

/// A program that does not get as far as its start keeps no other program from running.
#[test]
fn a_program_that_never_starts_blocks_no_other() {
    let mut fake = Fake::new([MS(100), MS(300)]);
    fake.start_latency = MS(2000);
    let mut asked = 0;
    let policy = Scripted(move |_: &[Cause], world: &World<'_>, plan: &mut Plan| {
        asked += 1;
        match asked {
            1 => {
                plan.run(p(1), Settings::default());
                plan.wake_at(world.now + MS(10), Token(0));
            }
            2 => {
                plan.freeze(p(1));
                plan.run(p(0), Settings::default());
            }
            _ => world.programs.iter().for_each(|q| plan.run(q.id, Settings::default())),
        }
    });
    let (fake, outcome) =
        run(fake, policy, setup(vec![ProgramSetup::new(2), ProgramSetup::new(2)]));
    let given_up = MS(10) + Limits::default().freeze_patience;
    assert!(fake.submitted.contains(&(given_up, Step::Start(p(0), Settings::default()))));
    let first = outcome.deviations[0];
    assert_eq!((first.at, first.program, first.why), (given_up, p(1), Refusal::TimedOut));
    assert_eq!(outcome.deviations.len(), 1);
}

/// The limit holds whatever the policy plans.
#[test]
fn no_program_is_frozen_longer_than_the_limit() {
    let fake = Fake::new([MS(4000), MS(100)]);
    let mut asked = 0;
    let policy = Scripted(move |causes: &[Cause], world: &World<'_>, plan: &mut Plan| {
        if nothing_new(causes) {
            return;
        }
        asked += 1;
        match asked {
            1 => {
                plan.run(p(0), Settings::default());
                plan.run(p(1), Settings::default());
                plan.wake_at(world.now + MS(10), Token(0));
            }
            2 => plan.freeze(p(1)),
            _ => assert!(!causes.is_empty()),
        }
    });
    let (_, outcome) = run(fake, policy, setup(vec![ProgramSetup::new(1), ProgramSetup::new(1)]));
    assert_eq!(outcome.programs[1].frozen, [Nanos::from_secs(1)].into_iter().collect());
    assert_eq!(outcome.deviations[0].why, Refusal::FrozenTooLong);
}

/// A program that was frozen for too long runs for a while, even if the policy keeps planning to
/// freeze it.
#[test]
fn a_program_frozen_too_long_runs_despite_the_policy() {
    let fake = Fake::new([MS(2500), MS(150)]);
    let policy = Scripted(|_: &[Cause], world: &World<'_>, plan: &mut Plan| {
        for program in world.programs {
            match program.id == p(0) || world.now < MS(10) {
                true => plan.run(program.id, Settings::default()),
                false => plan.freeze(program.id),
            }
        }
        plan.wake_at(world.now + MS(10), Token(0));
    });
    let (_, outcome) = run(fake, policy, setup(vec![ProgramSetup::new(1), ProgramSetup::new(1)]));
    let lengths: Vec<Nanos> = outcome.programs[1].timeline.iter().map(|s| s.to - s.from).collect();
    assert_eq!(lengths[..2], [MS(10), MS(100)]);
}

#[test]
fn a_program_that_must_not_be_frozen_runs_on() {
    let fake = Fake::new([MS(400), MS(400)]);
    let mut entries = vec![ProgramSetup::new(1), ProgramSetup::new(1)];
    entries[0].freezable = false;
    let (fake, outcome) = run(fake, in_turn(), setup(entries));
    assert!(!fake.steps().contains(&Step::Freeze(p(0))));
    assert!(outcome.programs[0].frozen.count == 0);
}

#[test]
fn programs_of_one_group_run_together() {
    let fake = Fake::new([MS(300), MS(300), MS(300)]);
    let mut entries = vec![ProgramSetup::new(1), ProgramSetup::new(1), ProgramSetup::new(1)];
    entries[0].group = Some(GroupId(7));
    entries[1].group = Some(GroupId(7));
    let mut started = false;
    let policy = Scripted(move |causes: &[Cause], world: &World<'_>, plan: &mut Plan| {
        if nothing_new(causes) {
            return;
        }
        let alone = Some(p(1)).filter(|id| started && world.program(*id).is_some());
        started = true;
        for program in world.programs {
            match alone.is_none_or(|id| id == program.id) {
                true => plan.run(program.id, Settings::default()),
                false => plan.freeze(program.id),
            }
        }
        if alone.is_none() {
            plan.wake_at(world.now + MS(100), Token(0));
        }
    });
    let (fake, _) = run(fake, policy, setup(entries));
    assert!(!fake.steps().contains(&Step::Freeze(p(0))), "its group runs");
    assert!(fake.steps().contains(&Step::Freeze(p(2))));
}

/// Each repetition has the next generation number. Repetitions end when every program has finished
/// at least once.
#[test]
fn a_repeated_program_runs_until_all_have_finished() {
    let fake = Fake::new([MS(100), MS(350)]);
    let mut entries = vec![ProgramSetup::new(1), ProgramSetup::new(1)];
    entries[0].repeat = Repeat::UntilAllFinish;
    let policy = Scripted(|_: &[Cause], world: &World<'_>, plan: &mut Plan| {
        world.programs.iter().for_each(|program| plan.run(program.id, Settings::default()));
    });
    let (fake, outcome) = run(fake, policy, setup(entries));
    assert_eq!(outcome.total, MS(350));
    assert_eq!(outcome.programs[0].done, Some(MS(100)), "its time is the first completion");
    assert_eq!(
        outcome.programs[0].completions.len(),
        3,
        "the fourth run was ended, and does not count"
    );
    let fourth = ProgramId { slot: 0, generation: 3 };
    assert!(fake.steps().contains(&Step::Signal(fourth, Signal::Terminate)));
}

#[test]
fn nothing_in_the_accounts_is_after_the_end() {
    let mut fake = Fake::new([MS(100), MS(350)]);
    fake.stubborn.insert(ProgramId { slot: 0, generation: 3 });
    let mut entries = vec![ProgramSetup::new(1), ProgramSetup::new(1)];
    entries[0].repeat = Repeat::UntilAllFinish;
    let policy = Scripted(|_: &[Cause], world: &World<'_>, plan: &mut Plan| {
        world.programs.iter().for_each(|program| plan.run(program.id, Settings::default()));
    });
    let (_, outcome) = run(fake, policy, setup(entries));
    assert_eq!(outcome.total, MS(350), "the last run of 0 is killed much later");
    let last = outcome.programs[0].timeline.last().unwrap();
    assert_eq!((last.from, last.to), (MS(300), MS(350)));
    assert!(outcome.decisions.iter().all(|decision| decision.at <= outcome.total));
    assert_eq!(outcome.programs[0].completions.len(), 3);
}

#[test]
fn events_are_handled_between_two_starts() {
    let mut fake = Fake::new([MS(100), MS(100), MS(100)]);
    fake.script(MS(0), Happening::Interrupted(Interruption::Interrupt));
    let policy = Scripted(|_: &[Cause], world: &World<'_>, plan: &mut Plan| {
        world.programs.iter().for_each(|program| plan.run(program.id, Settings::default()));
    });
    let entries = vec![ProgramSetup::new(1), ProgramSetup::new(1), ProgramSetup::new(1)];
    let (fake, outcome) = run(fake, policy, setup(entries));
    let started = |(_, step): &&(Nanos, Step)| matches!(step, Step::Start(..));
    assert_eq!(fake.submitted.iter().filter(started).count(), 1);
    assert_eq!(outcome.total, MS(0));
}

/// Where nothing else happens, all programs start at once, except those with CPUs that are not free
/// yet.
#[test]
fn programs_with_free_cpus_start_at_once() {
    let mut fake = Fake::new([MS(100), MS(100), MS(100), MS(100)]);
    fake.freeze_latency = MS(5);
    let policy = Scripted(|causes: &[Cause], world: &World<'_>, plan: &mut Plan| {
        match causes.iter().any(|cause| matches!(cause, Cause::Woke(_))) {
            true => {
                plan.freeze(p(0));
                [2, 3].iter().for_each(|slot| plan.run(p(*slot), Settings::default()));
            }
            false if world.now == Nanos::ZERO => {
                [0, 1].iter().for_each(|slot| plan.run(p(*slot), Settings::default()));
                plan.wake_at(MS(10), Token(0));
            }
            false => world.programs.iter().for_each(|one| plan.run(one.id, Settings::default())),
        }
    });
    let entries = (0..4).map(|_| ProgramSetup::new(1)).collect();
    let (fake, _) = run(fake, policy, setup(entries));
    let starts = fake.submitted.iter().filter_map(|(at, step)| match step {
        Step::Start(id, _) => Some((id.slot, *at)),
        _ => None,
    });
    let starts: Vec<(u16, Nanos)> = starts.collect();
    assert_eq!(starts, [(0, MS(0)), (1, MS(0)), (2, MS(15)), (3, MS(15))]);
}

#[test]
fn an_interruption_thaws_and_ends_every_program() {
    let mut fake = Fake::new([MS(40_000), MS(40_000), MS(40_000)]);
    fake.stubborn.insert(p(1));
    fake.script(MS(150), Happening::Interrupted(Interruption::Interrupt));
    let mut entries = vec![ProgramSetup::new(2), ProgramSetup::new(2), ProgramSetup::new(2)];
    entries[2].arrives = MS(1000);
    let (fake, outcome) = run(fake, in_turn(), setup(entries));
    assert_eq!(outcome.ended, Ended::Interrupted(Interruption::Interrupt));
    let steps = fake.steps();
    for slot in [0, 1] {
        let left = steps.iter().position(|s| *s == Step::Release(p(slot)));
        let signalled = steps.iter().position(|s| *s == Step::Signal(p(slot), Signal::Interrupt));
        assert!(left.is_some() && left < signalled, "released before it is requested to end");
    }
    assert!(
        steps.contains(&Step::Signal(p(1), Signal::Kill)),
        "stubborn programs are ended after the grace"
    );
    assert_eq!(outcome.total, MS(150) + Limits::default().grace);
    assert_eq!(outcome.programs[2].started, None);
}

/// `timeout` signals its child, and then its group.
#[test]
fn two_signals_right_after_one_another_are_one_request() {
    for (second, ends) in [(151, MS(150) + Limits::default().grace), (260, MS(260))] {
        let mut fake = Fake::new([MS(40_000)]);
        fake.stubborn.insert(p(0));
        fake.script(MS(150), Happening::Interrupted(Interruption::Terminate));
        fake.script(MS(second), Happening::Interrupted(Interruption::Terminate));
        let (_, outcome) = run(fake, in_turn(), setup(vec![ProgramSetup::new(2)]));
        assert_eq!(outcome.total, ends);
    }
}

/// What ended the run is reported as it came, and the programs are asked to end.
#[test]
fn the_cause_of_an_end_is_reported_unchanged() {
    let mut fake = Fake::new([MS(40_000)]);
    fake.script(MS(150), Happening::Interrupted(Interruption::Hangup));
    let (fake, outcome) = run(fake, in_turn(), setup(vec![ProgramSetup::new(2)]));
    assert_eq!(outcome.ended, Ended::Interrupted(Interruption::Hangup));
    assert!(fake.steps().contains(&Step::Signal(p(0), Signal::Terminate)));
}

#[test]
fn a_program_that_is_still_starting_is_ended_too() {
    let mut fake = Fake::new([MS(40_000)]);
    fake.start_latency = MS(200);
    fake.stubborn.insert(p(0));
    fake.script(MS(2), Happening::Interrupted(Interruption::Interrupt));
    fake.script(MS(150), Happening::Interrupted(Interruption::Interrupt));
    let (_, outcome) = run(fake, in_turn(), setup(vec![ProgramSetup::new(2)]));
    assert_eq!(outcome.programs[0].completions[0].at, MS(200));
    assert_eq!(outcome.programs[0].completions[0].exit, Exit::Signal(9));
}

#[test]
fn a_measurement_pause_freezes_all_before_it_reads() {
    let mut fake = Fake::new([MS(150), MS(150)]);
    fake.freeze_latency = MS(2);
    let policy = Scripted(|causes: &[Cause], world: &World<'_>, plan: &mut Plan| {
        if causes.contains(&Cause::Arrived(p(0))) {
            for program in world.programs {
                plan.run(program.id, Settings::default());
                let measure = Measure::CpuTime;
                plan.observe.push(Observe {
                    program: Some(program.id),
                    measure,
                    period: Nanos::NEVER,
                });
            }
            let first = AtExpiry::FreezeAndRead;
            plan.wake.push(Wake { token: Token(3), at: world.now + MS(100), first });
        }
        if causes.contains(&Cause::Woke(Token(3))) {
            assert!(causes.contains(&Cause::Sampled(p(1))));
            assert!(world.programs.iter().all(|program| program.state == ProgramState::Frozen));
        }
    });
    let (fake, outcome) =
        run(fake, policy, setup(vec![ProgramSetup::new(1), ProgramSetup::new(1)]));
    assert_eq!(fake.reads.len(), 1);
    assert_eq!(fake.reads[0].0, MS(102));
    assert_eq!(outcome.total, MS(150), "a program runs until its freeze is confirmed");
}

#[test]
fn an_impossible_plan_ends_the_run_before_it_takes_effect() {
    let policy =
        Scripted(|_: &[Cause], _: &World<'_>, plan: &mut Plan| plan.run(p(9), Settings::default()));
    let (fake, outcome) =
        Engine::new(Fake::new([MS(1)]), policy, setup(vec![ProgramSetup::new(1)])).run(&mut ());
    assert!(matches!(outcome, Err(Error::Plan(BadPlan::UnknownProgram(id))) if id == p(9)));
    assert!(fake.submitted.is_empty());
}

/// A program that another process stopped is managed again once it goes on.
#[test]
fn a_program_stopped_from_outside_is_left_alone() {
    let mut fake = Fake::new([MS(500), MS(200)]);
    fake.script(MS(30), Happening::StoppedByOther(p(1)));
    fake.script(MS(330), Happening::ContinuedByOther(p(1)));
    let policy = Scripted(|_: &[Cause], world: &World<'_>, plan: &mut Plan| {
        world.programs.iter().for_each(|program| plan.run(program.id, Settings::default()));
    });
    let (fake, outcome) =
        run(fake, policy, setup(vec![ProgramSetup::new(1), ProgramSetup::new(1)]));
    assert!(!fake.steps().contains(&Step::Thaw(p(1))), "cosched never continues it");
    assert_eq!(outcome.programs[1].ran, MS(200));
    assert_eq!(outcome.programs[1].waited, Nanos::ZERO, "its stop is not our waiting time");
}

#[test]
fn each_directive_is_reported_once_when_it_is_in_effect() {
    let mut fake = Fake::new([MS(250), MS(250)]);
    fake.freeze_latency = MS(3);
    let mut turns = in_turn();
    let settled = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let seen = settled.clone();
    let policy = Scripted(move |causes: &[Cause], world: &World<'_>, plan: &mut Plan| {
        for cause in causes {
            if let Cause::Settled { program, epoch } = cause {
                seen.borrow_mut().push((world.now, *program, *epoch));
            }
        }
        turns.decide(causes, world, plan);
    });
    run(fake, policy, setup(vec![ProgramSetup::new(2), ProgramSetup::new(2)]));
    let settled = settled.borrow();
    let frozen = settled.iter().find(|(_, program, epoch)| *program == p(1) && *epoch > 1);
    assert_eq!(frozen.map(|(at, ..)| *at), Some(MS(103)), "only once the freeze is confirmed");
    let mut epochs: Vec<u64> = settled.iter().map(|(_, _, epoch)| *epoch).collect();
    epochs.sort_unstable();
    epochs.dedup();
    assert_eq!(epochs.len(), settled.len(), "no directive twice");
}
