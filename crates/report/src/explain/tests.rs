//! The words, on a run made by hand.

use cosched_core::engine::outcome::Decision;
use cosched_core::{Actuator, BarrierStats, Exit, ProgramId, Quantum, Reason};
use cosched_policy::reasons::{
    AutoReason, BalanceReason, FaithfulReason, Mode, ReasonCode, SharedReason, ShufflingReason,
};
use cosched_results::result::{BarrierResult, DecisionResult, RunResult, TimelineEntry};
use cosched_workload::BarrierMode;

use super::*;
use crate::by_hand::{A, B, C, context, ms, outcome, run};
use crate::testkit;

fn sentence(at: u64, slot: usize) -> String {
    Moment::of(&run(), ms(at), Some(slot)).programs[0].sentence.clone()
}

#[test]
fn a_moment_has_the_quantum_then_running_then_waiting_programs() {
    let lines = Moment::of(&run(), ms(150), None).lines();
    assert_eq!(
        lines,
        [
            "At 0.150 s, under greedy, in quantum 2 of the run (from 0.100 s to 0.200 s, planned \
             for 100 ms), round 1, \
             gang 2 of 2:",
            "b runs on any CPU (from 0.102 s to 0.260 s): it has its turn.",
            "a is paused (from 0.101 s to 0.203 s): it is another program's turn (when decided at \
             0.100 s: it is in gang 1).",
            "c waits for its start (from 0.150 s to 0.152 s): it is about to start, as decided at \
             0.150 s; it must never be paused.",
        ]
    );
}

#[test]
fn a_moment_is_in_no_quantum_while_all_programs_fit() {
    let mut outcome = outcome();
    outcome.deviations.clear();
    outcome.programs[B].timeline.truncate(1);
    outcome.programs[B].timeline[0].to = ms(300);
    outcome.decisions.pop();
    let last = outcome.decisions.last_mut().unwrap();
    last.reasons[0].why = Quantum { round: 1, gang: 0, gangs: 2, length: ms(20) }.into();
    let moment = Moment::of(&RunResult::new(&outcome, &context()), ms(250), None);
    assert_eq!((&moment.quantum, moment.room_since_seconds), (&None, Some(0.203)));
    assert_eq!(
        moment.lines()[0],
        "At 0.250 s, under greedy; no quanta since 0.203 s, because all programs fit at once:"
    );
}

/// That programs fit at once is not why `auto` stops taking turns.
#[test]
fn a_moment_has_the_recorded_reason_to_run_together() {
    let mut run = run();
    let chosen = |mode, reason_code| Reason {
        program: None,
        why: AutoReason::Chosen { mode, reason_code, corun: None, gangs: None, explored: ms(1) }
            .into(),
    };
    run.decisions[1].reasons.push(chosen(Mode::Gangs, ReasonCode::GangsFill));
    let reasons = vec![chosen(Mode::Corun, ReasonCode::GangsIdle)];
    run.decisions.truncate(2);
    run.decisions.push(DecisionResult { at_seconds: 0.2, reasons });
    let first = |at| Moment::of(&run, ms(at), None).lines().swap_remove(0);
    assert_eq!(
        first(250),
        "At 0.250 s, under greedy, running together, because taking turns keeps too few CPUs busy \
         (chosen at 0.200 s):"
    );
    assert!(first(150).starts_with("At 0.150 s, under greedy, in quantum 2"), "{}", first(150));
    let mut late = run.clone();
    late.programs[1].arrived_seconds = 0.21;
    let lines = Moment::of(&late, ms(250), None).lines();
    assert!(lines[0].ends_with("(chosen at 0.200 s, before b arrived):"), "{}", lines[0]);
    let moment = Moment::of(&run, ms(250), None);
    assert_eq!((moment.quantum, moment.room_since_seconds), (None, None));
}

#[test]
fn reasons_of_the_plan_stand_with_the_quantum() {
    let moment = Moment::of(&run(), ms(50), None);
    let quantum = moment.quantum.expect("there is one");
    assert!(quantum.sentence.ends_with("(100 ms instead of 200 ms)"), "{}", quantum.sentence);
    assert_eq!((quantum.number, quantum.planned_seconds), (1, Some(0.1)));
}

/// Leftover CPU time is what a filler gets, and no reason to start it.
#[test]
fn a_start_is_not_due_to_leftover_cpu_time() {
    let mut run = run();
    for reason in run.decisions.iter_mut().flat_map(|decision| &mut decision.reasons) {
        reason.why = SharedReason::Filler.into();
    }
    let moment = Moment::of(&run, ms(150), None);
    let expected = "it is about to start, as decided at 0.150 s; then it gets the CPU time that \
                    the programs in turn leave idle.";
    let found = moment.programs.iter().any(|program| program.sentence.contains(expected));
    assert!(found, "{:?}", moment.lines());
    let story = Story::of(&run, Some(B));
    let waits = "it is a filler, and waits for an idle CPU or its first turn";
    assert!(story.programs[0].sentences.iter().any(|line| line.contains(waits)), "{story:?}");
}

#[test]
fn a_wait_that_is_the_only_one_is_not_counted() {
    let mut run = run();
    run.programs[B].timeline.truncate(1);
    let story = Story::of(&run, Some(B));
    let lines = &story.programs[0].sentences;
    let waited = lines.iter().position(|line| line.starts_with("It waited once, for "));
    let reasons = &lines[waited.expect("one wait") + 1..];
    assert!(reasons[0].starts_with("  ") && !reasons[0].contains("once"), "{lines:?}");
    assert!(!reasons[0].contains("in all"), "{lines:?}");
}

#[test]
fn a_detached_program_does_not_wait_until_the_run_ends() {
    let mut outcome = outcome();
    outcome.programs[A].timeline.pop();
    outcome.programs[A].completions.clear();
    (outcome.programs[A].done, outcome.programs[A].left_running) = (None, true);
    let run = RunResult::new(&outcome, &context());
    let later = Moment::of(&run, ms(250), Some(A)).programs.swap_remove(0);
    let known = "a was detached at 0.101 s: cosched does not know when it ended.";
    assert_eq!(later.sentence, known);
    let story = Story::of(&run, None).programs.swap_remove(A);
    let told = "It was detached at 0.101 s: from then on cosched did not schedule it.";
    assert!(story.sentences.iter().any(|line| line == told), "{:?}", story.sentences);
    assert!(story.sentences[0].starts_with("a was detached before it finished: "), "{story:?}");
    assert_eq!(story.waits, 1, "for its start only");
}

#[test]
fn a_program_with_bound_threads_does_not_run_on_any_cpu() {
    let mut run = run();
    let apart = BalanceReason::KeptApart { threads: 2, most: 1 };
    let reason = Reason { program: Some(ProgramId::first(B as u16)), why: apart.into() };
    run.decisions[1].reasons.push(reason);
    let said = Moment::of(&run, ms(150), Some(B)).programs[0].sentence.clone();
    assert!(said.starts_with("b runs, its threads bound one by one (from"), "{said}");
    let last = |run: &mut RunResult, why: ShufflingReason| {
        run.decisions[1].reasons.last_mut().unwrap().why = why.into();
        let sentence = &Moment::of(run, ms(150), Some(B)).programs[0].sentence;
        sentence.starts_with("b runs, its threads bound one by one")
    };
    let pause = ms(100);
    assert!(last(&mut run, ShufflingReason::GroupsKept { progress: 1.1 }));
    for groups in [0, 2] {
        let back = ShufflingReason::GroupsPutBack { groups, progress: 0.9, pause };
        assert_eq!(last(&mut run, back), groups > 0);
    }
    assert!(!last(&mut run, ShufflingReason::Unbound { lock_time: 0.0 }));
    assert!(!last(&mut run, ShufflingReason::GroupsRecalled { helped: false }));
}

#[test]
fn a_filler_is_named_with_the_program_in_turn() {
    let mut run = run();
    run.programs[B].turns = vec![(0.102, 0.2)];
    run.programs[A].filler_seconds = 0.1;
    let sentence = |slot| Moment::of(&run, ms(150), Some(slot)).programs[0].sentence.clone();
    let in_turn = sentence(B);
    assert!(in_turn.starts_with("b is in turn on any CPU (from 0.102 s to 0.200 s)"), "{in_turn}");
    let mut filler = run.clone();
    filler.programs[A].timeline = vec![TimelineEntry(0.0, 0.3, None)];
    for reason in filler.decisions.iter_mut().flat_map(|decision| &mut decision.reasons) {
        if reason.program.is_some_and(|id| usize::from(id.slot) == A) {
            reason.why = SharedReason::Filler.into();
        }
    }
    filler.programs[A].turns = vec![(0.0, 0.1), (0.25, 0.3)];
    let sentence = &Moment::of(&filler, ms(150), Some(A)).programs[0].sentence;
    assert!(
        sentence.starts_with("a is a filler on any CPU (from 0.100 s to 0.250 s)"),
        "{sentence}"
    );
    assert!(sentence.ends_with("In turn: b."), "{sentence}");
    (filler.programs[A].solo_seconds, filler.programs[A].interference_seconds) = (None, None);
    let story = Story::of(&filler, None);
    let sums = story.programs[A].sentences[0].clone();
    assert!(sums.contains("as a filler"), "{sums}");
    (filler.programs[B].solo_seconds, filler.programs[B].interference_seconds) = (None, None);
    let other = Story::of(&filler, Some(B)).programs[0].sentences[0].clone();
    assert!(other.contains(" in turn, ") && !other.contains(" running"), "{other}");
    assert!(
        story.sentences.iter().any(|line| line.contains(
            "For 12 % of that time, programs were fillers: they used what the program in turn left."
        )),
        "{:?}",
        story.sentences
    );
}

#[test]
fn a_decision_without_effect_yet_is_named() {
    assert_eq!(
        sentence(205, B),
        "b runs on any CPU (from 0.102 s to 0.260 s): it is about to be paused, as decided at \
         0.200 s; it is another program's turn (it is in gang 2)."
    );
    assert_eq!(
        sentence(202, A),
        "a is paused (from 0.101 s to 0.203 s): it is about to continue, as decided at \
         0.200 s; it has its turn."
    );
}

#[test]
fn a_program_outside_its_turn_has_the_cause() {
    assert_eq!(
        sentence(220, B),
        "b runs on any CPU (from 0.102 s to 0.260 s): it should wait, as decided at 0.200 s; it \
         is another program's turn (it is in gang 2). But it ran outside its turn because \
         pausing it took too long."
    );
    assert!(sentence(275, B).starts_with("b is stopped by another process (from 0.270 s"));
    let in_json = Moment::of(&run(), ms(275), Some(B)).programs[0].state;
    assert_eq!(in_json, "stopped by another process");
}

#[test]
fn a_program_is_absent_before_its_arrival_and_after_its_end() {
    assert_eq!(sentence(250, A), "a has ended: at 0.250 s (ok).");
    let mut outcome = outcome();
    outcome.programs[C].arrived = ms(1);
    let late = Moment::of(&RunResult::new(&outcome, &context()), ms(0), Some(C));
    assert_eq!(late.programs[0].sentence, "c has not arrived yet: it arrives at 0.001 s.");
    assert_eq!(late.programs[0].state, "not arrived");
}

#[test]
fn the_data_hold_what_the_sentences_say() {
    let moment = Moment::of(&run(), ms(150), Some(A));
    let program = &moment.programs[0];
    assert_eq!(program.reason, Some(SharedReason::OtherGang { gang: 0 }.into()));
    assert_eq!(
        (program.state, program.since_seconds, program.until_seconds, program.decided_seconds),
        ("frozen", Some(0.101), Some(0.203), Some(0.1))
    );
}

#[test]
fn a_story_says_where_the_time_went() {
    let lines = Story::of(&run(), None).lines();
    assert_eq!(
        lines,
        [
            crate::spent::verdict(&run()).as_str(),
            "All turnarounds (from a program's arrival to its end) add up to 850 ms: 69 % solo \
             time, 25 % waiting, 1 % stopped by another process, 5 % interference (slowdown by \
             programs that ran at the same time).",
            "The run had 4 quanta (turns), planned for 100 ms, and 2 switches of 2 ms (median; \
             longest 3 ms).",
            "Turns were shortened from 200 ms to 100 ms, so that no program is paused for longer \
             than 1.00 s at a stretch (`--max-frozen`). Remedy: `--max-frozen 2.0s` allows turns \
             of 200 ms.",
            "c finished last.",
            "a took 250 ms: 140 ms solo time, 103 ms waiting, 7 ms interference.",
            "b took 300 ms: 150 ms solo time, 107 ms waiting, 10 ms stopped by another process, \
             33 ms interference.",
            "c took 300 ms: 297 ms running (less than its solo time of 298 ms), 3 ms waiting, no \
             interference.",
        ]
    );
}

#[test]
fn a_programs_story_has_turns_waits_reasons_and_co_runners() {
    let story = Story::of(&run(), Some(B));
    assert_eq!(
        story.programs[0].sentences,
        [
            "b took 300 ms: 150 ms solo time, 107 ms waiting, 10 ms stopped by another process, \
             33 ms interference.",
            "It had 3 turns of 20 ms (median).",
            "It waited 2 times, at most 102 ms (from 0.000 s):",
            "  2 times, 102 ms in all: it is another program's turn.",
            "  2 times, 5 ms in all: cosched was starting or resuming it.",
            "While it waited, c (106 ms) and a (100 ms) ran.",
            "While it ran, c (181 ms) and a (47 ms) also ran: interference is slowdown by such \
             programs.",
            "Once it did not run in its turn because another process stopped it.",
            "Once it ran outside its turn because pausing it took too long.",
        ]
    );
    assert_eq!(story.programs[0].longest_wait.map(|wait| wait.seconds), Some(0.102));
}

#[test]
fn each_reason_of_a_wait_counts_while_it_is_in_force() {
    let mut outcome = outcome();
    // Its own gang had the quantum from 100 ms on, and another one again from 150 ms: it started at
    // 180 ms.
    outcome.programs[B].timeline[0].from = ms(180);
    let back = |at: u64, why| Decision {
        at: ms(at),
        reasons: vec![Reason { program: Some(ProgramId::first(B as u16)), why }],
    };
    outcome.decisions.insert(2, back(150, SharedReason::OtherGang { gang: 1 }.into()));
    let story = Story::of(&RunResult::new(&outcome, &context()), Some(B));
    let reasons = story.programs[0].reasons.iter();
    let listed: Vec<_> = reasons.map(|reason| (reason.reason.as_str(), reason.times)).collect();
    assert_eq!(
        listed,
        [("it is another program's turn", 2), ("cosched was starting or resuming it", 2)],
        "{story:?}"
    );
    let sums = story.programs[0].reasons.iter().map(|reason| (reason.seconds * 1e3).round());
    // 0 to 100, 150 to 180 and 260 to 262; 100 to 150 and 262 to 265.
    assert_eq!(sums.collect::<Vec<_>>(), [132.0, 53.0]);
}

#[test]
fn an_interrupted_program_is_not_done() {
    let mut result = run();
    result.interrupted_by = Some("SIGINT".to_owned());
    result.programs[A].exit = Some(Exit::Signal(2));
    let lines = Story::of(&result, None).lines();
    assert!(lines.contains(
        &"The run was interrupted (SIGINT) before every program had finished.".to_owned()
    ));
    assert!(!lines.iter().any(|line| line.contains("finished last")), "{lines:?}");
    let ended = lines.iter().find(|line| line.starts_with("a ")).unwrap();
    assert!(ended.starts_with("a was ended by signal 2 after 250 ms: "), "{ended}");
    (result.programs[A].exit, result.programs[A].left_running) = (None, true);
    let lines = Story::of(&result, None).lines();
    assert!(
        lines.iter().any(|line| line.ends_with("had finished; it did not end a.")),
        "{lines:?}"
    );
}

#[test]
fn a_program_that_failed_has_its_status() {
    let mut result = run();
    result.programs[A].exit = Some(Exit::Code(3));
    let lines = Story::of(&result, None).lines();
    let ended = "a ended with status 3 after 250 ms: 147 ms running, 103 ms waiting.";
    assert!(lines.iter().any(|line| line == ended), "{lines:?}");
}

#[test]
fn interference_is_unknown_without_solo_times() {
    let mut context = context();
    context.programs[A].solo = None;
    let result = RunResult::new(&outcome(), &context);
    let lines = Story::of(&result, None).lines();
    assert!(lines[1].contains("25 % waiting") && lines[1].contains("cosched profile"));
    assert!(lines.contains(&"a took 250 ms: 147 ms running, 103 ms waiting.".to_owned()));
    let mut unfinished = outcome();
    unfinished.programs[A].done = None;
    unfinished.programs[A].completions.clear();
    let result = RunResult::new(&unfinished, &context);
    let story = Story::of(&result, Some(A));
    assert_eq!(story.programs[0].sentences[0], "a did not finish: 147 ms running, 103 ms waiting.");
}

/// A run in which `b` has this solo time, and the interference that follows from it.
fn with_solo(milliseconds: u64) -> RunResult {
    let mut context = context();
    context.programs[B].solo = Some(ms(milliseconds));
    RunResult::new(&outcome(), &context)
}

/// A negative interference is never printed: no co-runner makes a program faster.
#[test]
fn a_solo_time_that_cannot_be_true_is_named() {
    let remedy = "the profile is out of date or was disturbed; `cosched profile` measures it anew.";
    let lines = Story::of(&with_solo(340), None).lines();
    assert_eq!(
        lines[1],
        format!(
            "All turnarounds (from a program's arrival to its end) add up to 850 ms: 25 % \
             waiting, 1 % stopped by another process. The solo time of 'b' (340 ms) is not used, \
             because the program ran for less: {remedy}"
        )
    );
    let expected = format!("b took 300 ms, less than its solo time of 340 ms: {remedy}");
    assert!(lines.contains(&expected), "{lines:?}");
    let expected = format!(
        "b took 300 ms: 183 ms running, 107 ms waiting, 10 ms stopped by another process. \
         It ran for less than its solo time of 250 ms: {remedy}"
    );
    let lines = Story::of(&with_solo(250), None).lines();
    assert!(lines.contains(&expected), "{lines:?}");
    let solo_runs = RunResult { solo_runs: true, ..with_solo(340) };
    let lines = Story::of(&solo_runs, None).lines();
    let expected = "its solo time of 340 ms: the solo runs of this comparison were disturbed.";
    assert!(lines.iter().any(|line| line.ends_with(expected)), "{lines:?}");
    assert!(!lines.concat().contains("profile"), "{lines:?}");
}

#[test]
fn trials_have_their_results() {
    let explained = Story::of(&testkit::faithful(), Some(0)).programs.remove(0);
    let from =
        explained.sentences.iter().position(|line| line.starts_with("After 100 ms")).unwrap();
    assert_eq!(
        explained.sentences[from..],
        [
            "After 100 ms, time slices were chosen to suit its waits at locks and its cache \
             misses:",
            "  from 0.100 s: 200 ms (84 % of the time at locks, cache misses unknown).",
            "2 ways to schedule its threads were tried, and one was kept:",
            "  until 0.200 s: slice, 1.20 times the progress; kept.",
            "  until 0.300 s: batch-slice, 0.40 times the progress; the earlier way was restored; \
             no trial for 10.00 s.",
        ]
    );
    assert_eq!(explained.trials.len(), 2);
    let mut unclear = testkit::faithful();
    let last = unclear.decisions.last_mut().unwrap();
    let why = &mut last.reasons[0].why;
    let Some(FaithfulReason::PutBack { actuator, pause, .. }) = why.read() else { panic!() };
    *why = FaithfulReason::PutBack { actuator, progress: 1.04, pause }.into();
    let unclear = Story::of(&unclear, Some(0)).programs.remove(0).sentences.pop().unwrap();
    assert!(
        unclear.contains(
            "1.04 times the progress; the earlier way was restored, since that may be chance"
        ),
        "{unclear}"
    );
    assert_eq!((explained.trials[1].kept, explained.trials[1].pause_seconds), (false, Some(10.0)));
    let other = Story::of(&testkit::faithful(), Some(1)).programs.remove(0);
    let last = other.sentences.last().unwrap();
    assert!(last.ends_with("original settings: no other way to schedule threads was tried."));
    assert!(other.trials.is_empty() && other.scheduled == Some(Actuator::None));
    let run = Story::of(&testkit::faithful(), None).sentences;
    let unset = "No time slice was set for b: no other way to schedule threads was tried.";
    assert!(run.iter().any(|line| line == unset), "{run:?}");
    let mut computes = testkit::faithful();
    let fields = (ms(10), 0.02, None, false);
    let (slice, lock_contention, miss_ratio, profiled) = fields;
    computes.decisions[1].reasons[3].why =
        FaithfulReason::Slice { slice, lock_contention, miss_ratio, profiled, io_wait: None }
            .into();
    let why = super::unset(&computes).remove(0);
    assert!(
        why.ends_with("for b: threads that hardly wait for locks or memory gain nothing from it.")
    );
}

#[test]
fn barrier_statistics_say_how_waits_ended() {
    let barrier_sentence = |mode, lacks: Option<&str>| {
        let mut run = run();
        let lacks = lacks.map(str::to_owned);
        let (statistics, between_regions) = (Some(BarrierStats::default()), [].into());
        run.programs[A].barrier = Some(BarrierResult { mode, lacks, statistics, between_regions });
        let sentences = Story::of(&run, Some(A)).programs.remove(0).sentences;
        sentences.into_iter().find(|sentence| sentence.contains("barriers of cosched")).unwrap()
    };
    assert!(
        barrier_sentence(BarrierMode::Donate, None)
            .ends_with("A waiting thread knew which other threads ran.")
    );
    assert!(
        barrier_sentence(BarrierMode::Donate, Some("no right"))
            .ends_with("did not know which other threads ran: no right.")
    );
    assert!(barrier_sentence(BarrierMode::Spin, None).ends_with("(mode 'spin')."));
    let mut unseen = testkit::donating();
    unseen.programs[0].barrier.as_mut().unwrap().statistics = None;
    let sentences = Story::of(&unseen, Some(0)).programs.remove(0).sentences.concat();
    assert!(sentences.contains("barriers of cosched.No waits were seen there"), "{sentences}");
    let sentences = Story::of(&testkit::donating(), Some(0)).programs.remove(0).sentences;
    let stats = sentences
        .iter()
        .find(|sentence| sentence.starts_with("They passed 2000 barriers, "))
        .unwrap();
    for part in [
        "Of 2000 waits, 60 %",
        "15 % after longer spinning",
        "25 % asleep",
        "took 50 ms",
        "In 75 % of",
        "a barrier took 20 us on average, and 3 ms at most",
        "spun for 20 ms of CPU time, which leaves 480 ms for its other work",
    ] {
        assert!(stats.contains(part), "{stats}");
    }
    let mut fast = testkit::donating();
    let statistics = fast.programs[0].barrier.as_mut().unwrap().statistics.as_mut().unwrap();
    statistics.times.as_mut().unwrap().longest_latency_seconds = 10e-6;
    let sentences = Story::of(&fast, Some(0)).programs.remove(0).sentences;
    assert!(!sentences.iter().any(|sentence| sentence.contains("a barrier took")));
    let mut bounded = testkit::donating();
    let bound = ("GOMP_SPINCOUNT".to_owned(), "7".to_owned());
    bounded.programs[0].barrier.as_mut().unwrap().between_regions = [bound].into();
    let sentences = Story::of(&bounded, Some(0)).programs.remove(0).sentences;
    let between = "Between parallel regions they spin for a limited time: GOMP_SPINCOUNT=7.";
    assert!(sentences.iter().any(|sentence| sentence == between), "{sentences:?}");
    let own = Story::of(&run(), Some(A)).programs.remove(0);
    assert!(own.barrier.is_none() && !own.sentences.concat().contains("barriers of cosched"));
}

mod long;
mod slices;
