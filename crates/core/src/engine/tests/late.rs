//! Events that are found late, because cosched was stopped or did not hear of them before.

use super::*;

#[test]
fn a_time_in_which_cosched_was_stopped_is_reported() {
    let mut fake = Fake::new([MS(2500), MS(2500)]);
    fake.deaf = Some((MS(150), MS(1950)));
    let (_, outcome) =
        run(fake, in_turn(), setup(vec![ProgramSetup::new(1), ProgramSetup::new(1)]));
    let reported: Vec<_> = outcome.deviations.iter().map(|d| (d.at, d.program, d.why)).collect();
    let frozen = outcome.programs.iter().position(|p| p.frozen.longest == MS(1850));
    let frozen = p(frozen.unwrap() as u16);
    assert_eq!(reported, [(MS(1950), frozen, Refusal::CoschedStopped)]);
}

/// A program that was to be thawed while cosched was stopped counts as frozen until cosched went
/// on. The next plan may freeze it again.
#[test]
fn thaws_planned_while_cosched_was_stopped_count_late() {
    let mut fake = Fake::new([MS(400), MS(400)]);
    fake.script(MS(130), Happening::Thawed(p(1)));
    let why = Refusal::CoschedStopped;
    fake.script(MS(130), Happening::Refused(p(1), Aspect::Frozen, why));
    let (fake, outcome) =
        run(fake, in_turn(), setup(vec![ProgramSetup::new(1), ProgramSetup::new(1)]));
    let reported: Vec<_> = outcome.deviations.iter().map(|d| (d.at, d.program, d.why)).collect();
    assert_eq!(reported, [(MS(130), p(1), why)]);
    let froze = fake.submitted.iter().filter(|(_, step)| *step == Step::Freeze(p(1)));
    assert!(froze.count() > 1);
}

#[test]
fn what_is_found_after_the_end_has_its_own_time() {
    let mut fake = Fake::new([MS(400), MS(400)]);
    fake.deaf = Some((MS(130), MS(1950)));
    let frozen = p(0);
    let why = Refusal::CoschedStopped;
    fake.script(MS(600), Happening::Thawed(frozen));
    fake.script(MS(600), Happening::Refused(frozen, Aspect::Frozen, why));
    fake.script(MS(700), Happening::Exited(p(1), Exit::Code(0), Usage::default()));
    fake.script(MS(900), Happening::Exited(frozen, Exit::Code(0), Usage::default()));
    let (_, outcome) =
        run(fake, in_turn(), setup(vec![ProgramSetup::new(1), ProgramSetup::new(1)]));
    assert_eq!(outcome.total, MS(900));
    assert_eq!(outcome.programs[1].done, Some(MS(700)));
    let reported: Vec<_> = outcome.deviations.iter().map(|d| (d.at, d.program, d.why)).collect();
    assert_eq!(reported, [(MS(600), frozen, why)]);
}

/// A decision that was made in ignorance of an event stands before this event, even if the event's
/// time is earlier.
#[test]
fn late_news_does_not_precede_earlier_decisions() {
    let mut fake = Fake::new([MS(400), MS(400)]);
    let what = Happening::Exited(p(1), Exit::Code(0), Usage::default());
    // At 100 ms it was the other program's turn.
    fake.script_late(MS(130), Event { at: MS(90), what });
    let (_, outcome) =
        run(fake, in_turn(), setup(vec![ProgramSetup::new(1), ProgramSetup::new(1)]));
    let program = &outcome.programs[1];
    assert_eq!(program.done, Some(MS(100)));
    assert_eq!(program.ran + program.waited, MS(100));
}
