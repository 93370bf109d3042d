//! What policies rely on that measure, limit threads or bind single threads.

use std::cell::RefCell;

use super::*;
use crate::estimates::Estimates;
use crate::id::ThreadId;
use crate::output::Output;
use crate::program::{MaskOwner, Thread};
use crate::{IpBin, ThreadRule};

fn run_all(world: &World<'_>, plan: &mut Plan) {
    world.programs.iter().for_each(|program| plan.run(program.id, Settings::default()));
}

fn pause_at(at: Nanos) -> Wake {
    Wake { token: Token(3), at, first: AtExpiry::FreezeAndRead }
}

#[test]
fn wake_ups_in_a_measurement_pause_wait_for_its_end() {
    let mut fake = Fake::new([MS(250), MS(250)]);
    fake.freeze_latency = MS(2);
    let policy = Scripted(|causes: &[Cause], world: &World<'_>, plan: &mut Plan| {
        if causes.contains(&Cause::Arrived(p(0))) {
            run_all(world, plan);
            for program in world.programs {
                let measure = Measure::CpuTime;
                plan.observe.push(Observe { program: Some(program.id), measure, period: MS(100) });
            }
            plan.wake.push(pause_at(MS(100)));
        }
    });
    let (fake, _) = run(fake, policy, setup(vec![ProgramSetup::new(1), ProgramSetup::new(1)]));
    assert_eq!(fake.reads[0].0, MS(102));
}

#[test]
fn nothing_is_decided_or_started_in_a_measurement_pause() {
    let mut fake = Fake::new([MS(500), MS(500)]);
    fake.freeze_latency = MS(2);
    let mut programs = setup(vec![ProgramSetup::new(1), ProgramSetup::new(1)]);
    programs.programs[1].arrives = MS(101);
    let asked = RefCell::new(Vec::new());
    let policy = Scripted(|causes: &[Cause], world: &World<'_>, plan: &mut Plan| {
        asked.borrow_mut().push(world.now);
        run_all(world, plan);
        if causes.contains(&Cause::Arrived(p(0))) {
            plan.wake.push(pause_at(MS(100)));
        }
    });
    let (fake, _) = run(fake, policy, programs);
    let start = |(_, step): &&(Nanos, Step)| matches!(step, Step::Start(id, _) if *id == p(1));
    assert_eq!(fake.submitted.iter().find(start).map(|(at, _)| *at), Some(MS(102)));
    assert!(!asked.borrow().contains(&MS(101)));
}

#[test]
fn the_policy_learns_when_a_stopped_program_goes_on() {
    let mut fake = Fake::new([MS(500), MS(200)]);
    fake.script(MS(30), Happening::StoppedByOther(p(1)));
    fake.script(MS(330), Happening::ContinuedByOther(p(1)));
    let continued_at = RefCell::new(None);
    let policy = Scripted(|causes: &[Cause], world: &World<'_>, plan: &mut Plan| {
        if causes.contains(&Cause::Continued(p(1))) {
            *continued_at.borrow_mut() = Some(world.now);
        }
        run_all(world, plan);
    });
    run(fake, policy, setup(vec![ProgramSetup::new(1), ProgramSetup::new(1)]));
    assert_eq!(*continued_at.borrow(), Some(MS(330)));
}

/// What the policy said last of each program stays, after its end too.
#[test]
fn the_latest_estimates_stay_in_the_outcome() {
    let of = |cpu_seconds| Estimates { cpu_seconds, ..Estimates::default() };
    let policy = Scripted(move |causes: &[Cause], world: &World<'_>, plan: &mut Plan| {
        run_all(world, plan);
        let seconds = if causes.contains(&Cause::Arrived(p(0))) { 1.0 } else { 2.0 };
        world.programs.iter().for_each(|program| {
            plan.output(program.id, Output::Estimated(of(seconds)));
        });
    });
    let fake = Fake::new([MS(100), MS(300)]);
    let (_, outcome) = run(fake, policy, setup(vec![ProgramSetup::new(1), ProgramSetup::new(1)]));
    assert_eq!(outcome.programs[1].estimates, Some(of(2.0)));
    assert!(outcome.programs[0].estimates.is_some());
}

/// A program that runs again as a co-runner is not charged what is left idle for it then.
#[test]
fn idle_cpus_are_charged_only_until_a_program_is_done() {
    let policy = Scripted(move |_: &[Cause], world: &World<'_>, plan: &mut Plan| {
        run_all(world, plan);
        let now = world.now.as_secs_f64();
        let estimates =
            Estimates { cpu_seconds: now, training_idle_seconds: now, ..Estimates::default() };
        plan.output(p(0), Output::Estimated(estimates));
    });
    let mut programs = setup(vec![ProgramSetup::new(1), ProgramSetup::new(1)]);
    programs.programs[0].repeat = Repeat::UntilAllFinish;
    let (_, outcome) = run(Fake::new([MS(100), MS(350)]), policy, programs);
    let [of, _] = &outcome.programs[..] else { panic!("two programs") };
    let estimates = of.estimates.unwrap();
    let done = of.done.unwrap().as_secs_f64();
    assert!(estimates.cpu_seconds > done && estimates.training_idle_seconds <= done);
    assert!(estimates.training_idle_seconds > 0.0);
}

/// Two reads of the first program, with three samples of its code each. The other one was not
/// read, and what it had is of an earlier read.
#[test]
fn samples_of_code_are_counted_when_they_are_read() {
    let mut fake = Fake::new([MS(250), MS(250)]);
    fake.ips = [0, 1].map(|slot| IpBin { program: p(slot), block: 7, count: 3 }).into();
    let policy = Scripted(|causes: &[Cause], world: &World<'_>, plan: &mut Plan| {
        run_all(world, plan);
        if causes.contains(&Cause::Arrived(p(0))) {
            let measure = Measure::InstructionPointers;
            plan.observe.push(Observe { program: Some(p(0)), measure, period: MS(100) });
        }
    });
    let (_, outcome) = run(fake, policy, setup(vec![ProgramSetup::new(1), ProgramSetup::new(1)]));
    assert_eq!(outcome.cost.code_samples, 6);
}

#[test]
fn a_released_program_can_be_managed_again() {
    let narrow = Settings::on(CpuSet::first(1));
    let policy = Scripted(move |_: &[Cause], world: &World<'_>, plan: &mut Plan| {
        let Some(program) = world.programs.first() else { return };
        let turn = world.now.0 / MS(100).0;
        match turn {
            0 | 2 => plan.run(program.id, narrow),
            1 | 3 => plan.programs.push((program.id, Directive::Release)),
            _ => return,
        }
        plan.wake_at(MS(100 * (turn + 1)), Token(0));
    });
    let (fake, _) = run(Fake::new([MS(500)]), policy, setup(vec![ProgramSetup::new(1)]));
    let steps = fake.steps();
    assert_eq!(steps.iter().filter(|step| matches!(step, Step::Release(_))).count(), 2);
    assert!(
        steps.iter().any(|step| matches!(step, Step::Apply(_, settings, _) if *settings == narrow))
    );
}

/// A program that waits for threads gets an answer, even if the number is the one that it has.
#[test]
fn every_request_for_threads_is_answered() {
    let mut fake = Fake::new([MS(500)]);
    let request = Happening::Requested { program: p(0), threads: 2, blocked: true };
    fake.script(MS(10), request);
    fake.script(MS(20), request);
    let policy = Scripted(|_: &[Cause], world: &World<'_>, plan: &mut Plan| {
        for program in world.programs {
            plan.run(program.id, Settings { thread_limit: Some(1), ..Settings::default() });
        }
    });
    let (fake, _) = run(fake, policy, setup(vec![ProgramSetup::new(2)]));
    let answers = fake.submitted.iter().filter(|(_, step)| matches!(step, Step::Apply(..)));
    assert_eq!(answers.map(|(at, _)| *at).collect::<Vec<_>>(), [MS(10), MS(20)]);
}

/// A region gets no more threads than it requests, even if the limit is higher.
#[test]
fn a_thread_limit_stands_until_the_next_one() {
    let mut fake = Fake::new([MS(500)]);
    for (at, threads) in [(10, 1), (20, 4), (30, 9)] {
        let request = Happening::Requested { program: p(0), threads, blocked: true };
        fake.script(MS(at), request);
    }
    let seen = RefCell::new(Vec::new());
    let policy = Scripted(|causes: &[Cause], world: &World<'_>, plan: &mut Plan| {
        let Some(program) = world.programs.first() else { return };
        if causes.contains(&Cause::Arrived(p(0))) {
            plan.run(program.id, Settings { thread_limit: Some(3), ..Settings::default() });
            plan.wake_at(MS(40), Token(0));
        }
        seen.borrow_mut().push((program.requested, program.allowed));
    });
    let (fake, _) =
        run(fake, policy, setup(vec![ProgramSetup { malleable: true, ..ProgramSetup::new(4) }]));
    let allowed = fake.submitted.iter().filter_map(|(at, step)| match step {
        Step::Start(_, settings) | Step::Apply(_, settings, _) => {
            Some((*at, settings.thread_limit))
        }
        _ => None,
    });
    let expected = [(0, 3), (10, 1), (20, 3), (30, 3)].map(|(at, n)| (MS(at), Some(n)));
    assert_eq!(allowed.collect::<Vec<_>>(), expected);
    assert_eq!(seen.borrow().last(), Some(&(9, 3)));
}

#[test]
fn a_limit_of_no_threads_is_a_mistake() {
    let policy = Scripted(|_: &[Cause], world: &World<'_>, plan: &mut Plan| {
        for program in world.programs {
            plan.run(program.id, Settings { thread_limit: Some(0), ..Settings::default() });
        }
    });
    let engine = Engine::new(Fake::new([MS(50)]), policy, setup(vec![ProgramSetup::new(2)]));
    let (_, outcome) = engine.run(&mut ());
    assert!(matches!(outcome, Err(Error::Plan(BadPlan::NoThread(_)))));
}

#[test]
fn rules_for_unknown_threads_are_a_mistake() {
    let policy = Scripted(|_: &[Cause], world: &World<'_>, plan: &mut Plan| {
        run_all(world, plan);
        let thread = crate::ThreadId { slot: 0, generation: 0 };
        plan.threads.push((thread, ThreadRule { cpus: Some(CpuSet::first(1)), slice: None }));
    });
    let engine = Engine::new(Fake::new([MS(50)]), policy, setup(vec![ProgramSetup::new(2)]));
    let (_, outcome) = engine.run(&mut ());
    assert!(matches!(outcome, Err(Error::Plan(BadPlan::UnknownThread(_)))));
}

#[test]
fn a_program_that_runs_already_is_not_started() {
    let mut entry = ProgramSetup::new(1);
    entry.runs_already = true;
    let policy = Scripted(|_: &[Cause], world: &World<'_>, plan: &mut Plan| {
        assert!(world.programs.iter().all(|program| program.state == ProgramState::Running));
        plan.wake_at(world.now + MS(10), Token(0));
    });
    let mut fake = Fake::new([MS(50)]);
    fake.script(MS(35), Happening::Exited(p(0), Exit::Code(0), crate::Usage::default()));
    let (fake, outcome) = run(fake, policy, setup(vec![entry]));
    assert!(fake.submitted.is_empty());
    assert_eq!(outcome.programs[0].ran, MS(35));
}

/// A program that the user detaches is no longer a part of the run.
#[test]
fn a_detached_program_runs_on_and_is_not_waited_for() {
    let mut fake = Fake::new([MS(100), MS(4000)]);
    fake.script(MS(50), Happening::Commanded(crate::UserCommand::Detach(p(1))));
    let (fake, outcome) =
        run(fake, in_turn(), setup(vec![ProgramSetup::new(2), ProgramSetup::new(2)]));
    assert!(fake.steps().contains(&Step::Release(p(1))));
    assert_eq!(outcome.programs[0].done, Some(outcome.total));
    assert_eq!((outcome.programs[1].done, outcome.programs[1].detached), (None, Some(MS(50))));
    assert_eq!(outcome.programs[0].detached, None);
}

/// After Ctrl-C, programs that ran before cosched are detached, and programs that cosched started
/// are ended.
#[test]
fn ctrl_c_detaches_attached_and_ends_started_programs() {
    let mut attached = ProgramSetup::new(1);
    attached.runs_already = true;
    let mut fake = Fake::new([MS(4000), MS(4000)]);
    fake.script(MS(50), Happening::Interrupted(crate::machine::Interruption::Interrupt));
    let (fake, outcome) = run(fake, in_turn(), setup(vec![attached, ProgramSetup::new(1)]));
    let steps = fake.steps();
    assert!(steps.contains(&Step::Release(p(0))));
    let signalled = |id| steps.iter().any(|step| matches!(step, Step::Signal(to, _) if *to == id));
    assert!(!signalled(p(0)), "{steps:?}");
    assert!(signalled(p(1)), "{steps:?}");
    assert!(outcome.programs[0].completions.is_empty());
    assert_eq!(outcome.programs[0].detached, None, "the run ended");
}

/// Twenty thousand threads have a rule each, and one rule changes per quantum. An algorithm with a
/// cost of the number of rules times the number of threads would not end before the test runner's
/// time limit.
#[test]
fn only_threads_with_changed_rules_are_set() {
    const PROGRAMS: u16 = 4;
    const THREADS: u32 = 20_000;
    const QUANTA: usize = 20;
    let thread = |slot: u32| Thread {
        id: ThreadId { slot, generation: 0 },
        program: p((slot * u32::from(PROGRAMS) / THREADS) as u16),
        process: 0,
        cpu: 0,
        on_cpu: Nanos::ZERO,
        mask_owner: MaskOwner::Cosched,
    };
    let mut fake = Fake::new([MS(100 * QUANTA as u64); PROGRAMS as usize]);
    fake.threads = (0..THREADS).map(thread).collect();
    let mut quantum = 0;
    let policy = Scripted(move |causes: &[Cause], world: &World<'_>, plan: &mut Plan| {
        if causes.contains(&Cause::Arrived(p(0))) {
            run_all(world, plan);
            let observe = |program: &crate::Program| Observe {
                program: Some(program.id),
                measure: Measure::Threads,
                period: MS(100),
            };
            plan.observe.extend(world.programs.iter().map(observe));
        }
        if !causes.iter().any(|cause| matches!(cause, Cause::Sampled(_))) {
            return;
        }
        quantum += 1;
        let cpus = |thread: &Thread| {
            let changes = thread.id.slot as usize + 1 == quantum;
            CpuSet::first(if changes { 1 } else { 2 })
        };
        let rule = |thread| ThreadRule { cpus: Some(cpus(thread)), slice: None };
        plan.threads.extend(world.threads.iter().map(|thread| (thread.id, rule(thread))));
    });
    let (fake, _) = run(fake, policy, setup(vec![ProgramSetup::new(1); PROGRAMS as usize]));
    let rules_sent = |at: Nanos| {
        let now = fake.submitted.iter().filter(|(when, _)| *when == at);
        now.filter(|(_, step)| matches!(step, Step::ApplyThread(..))).count()
    };
    assert_eq!(rules_sent(MS(100)), THREADS as usize);
    // One thread's rule changes, and another thread's rule changes back.
    assert!((2..QUANTA as u64).all(|quantum| rules_sent(MS(100 * quantum)) == 2));
}
