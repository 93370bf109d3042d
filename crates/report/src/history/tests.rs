//! Programs' lives, on a run made by hand.

use cosched_core::engine::outcome::Span;
use cosched_core::{Aspect, Exit};

use cosched_policy::reasons::SharedReason;

use super::*;
use crate::by_hand::{A, B, C, context, ms, outcome, run};

/// Where phases begin, in milliseconds, and what they are.
fn lives(history: &History<'_>, slot: usize) -> Vec<(u64, &'static str)> {
    let phases = history.phases(slot).iter();
    phases.map(|phase| (phase.from.0 / 1_000_000, phase.state.name())).collect()
}

#[test]
fn phases_have_no_gaps_and_name_what_is_between_turns() {
    let result = run();
    let history = History::of(&result);
    assert_eq!(
        lives(&history, A),
        [(0, "not started"), (1, "running"), (101, "frozen"), (203, "running")]
    );
    assert_eq!(
        lives(&history, B),
        [
            (0, "not started"),
            (102, "running"),
            (260, "frozen"),
            (265, "running"),
            (270, "stopped by another process"),
            (280, "running"),
        ]
    );
    assert_eq!(
        lives(&history, C),
        [(0, "not started"), (1, "running"), (150, "not started"), (152, "running")]
    );
    for slot in [A, B, C] {
        for pair in history.phases(slot).windows(2) {
            assert_eq!(pair[0].to, pair[1].from);
        }
    }
}

#[test]
fn phases_add_up_to_the_accounts() {
    let result = run();
    let history = History::of(&result);
    for (slot, program) in result.programs.iter().enumerate() {
        let sum = |of: fn(&Activity) -> bool| -> Nanos {
            let phases = history.phases(slot).iter().filter(|phase| of(&phase.state));
            phases.map(Phase::length).sum()
        };
        let running = sum(|state| matches!(state, Activity::Running(_)));
        assert_eq!(running, nanos(program.running_seconds), "{}", program.name);
        assert_eq!(sum(|state| state.waits()), nanos(program.waiting_seconds), "{}", program.name);
    }
}

#[test]
fn a_program_waits_until_the_run_ends_or_its_start_fails() {
    let mut outcome = outcome();
    outcome.programs[A].timeline.clear();
    outcome.programs[A].completions.clear();
    outcome.programs[A].waited = ms(300);
    let result = RunResult::new(&outcome, &context());
    assert_eq!(History::of(&result).phases(A).last().map(|phase| phase.to), Some(ms(300)));

    outcome.programs[A].waited = ms(20);
    outcome.programs[A].completions = outcome.programs[B].completions.clone();
    outcome.programs[A].completions[0].exit = Exit::Failed(2);
    let result = RunResult::new(&outcome, &context());
    assert_eq!(History::of(&result).phases(A).last().map(|phase| phase.to), Some(ms(20)));
}

#[test]
fn time_before_the_kept_spans_is_no_wait() {
    let mut result = run();
    for program in &mut result.programs {
        program.timeline.remove(0);
    }
    let arrived = |result: &RunResult| lives(&History::of(result), B)[0];
    assert_eq!(arrived(&result), (0, "not started"));
    result.kept_from_seconds = Some(0.265);
    assert_eq!(arrived(&result), (265, "running"));
    // All its spans are kept.
    result.programs[B].started_seconds = Some(0.265);
    assert_eq!(arrived(&result), (0, "not started"));
}

#[test]
fn an_interrupted_run_leaves_a_frozen_program_frozen() {
    let mut outcome = outcome();
    outcome.programs[A].timeline.pop();
    outcome.programs[A].completions.clear();
    outcome.programs[A].done = None;
    let result = RunResult::new(&outcome, &context());
    let history = History::of(&result);
    let frozen = Some(Phase { from: ms(101), to: ms(300), state: Activity::Frozen });
    let last = history.phases(A).last().copied();
    assert_eq!((last, history.done(A)), (frozen, ms(300)));

    outcome.programs[A].left_running = true;
    let mut result = RunResult::new(&outcome, &context());
    let detached = History::of(&result);
    assert_eq!(detached.phases(A).last().map(|phase| phase.to), Some(ms(101)));
    assert_eq!(detached.done(A), ms(101));
    result.interrupted_by = Some("SIGINT".into());
    assert_eq!(History::of(&result).phases(A).last().copied(), frozen);
}

#[test]
fn the_reason_in_force_is_the_last_of_the_current_run() {
    let result = run();
    let history = History::of(&result);
    let at = |slot, at| history.sent_at(slot, at).map(|sent| (sent.at, sent.why.read()));
    assert_eq!(at(A, ms(50)), Some((ms(0), Some(SharedReason::InGang))));
    assert_eq!(at(A, ms(100)), Some((ms(100), Some(SharedReason::OtherGang { gang: 0 }))));
    assert_eq!(at(C, ms(149)), Some((ms(0), Some(SharedReason::NeverFrozen))));
    assert_eq!(at(C, ms(151)), Some((ms(150), Some(SharedReason::NeverFrozen))));
    let frozen = history.phase_at(A, ms(150)).expect("it has come and not ended");
    let why = history.waits_because(A, &frozen).expect("it was told");
    assert_eq!((why.at, why.why.read()), (ms(100), Some(SharedReason::OtherGang { gang: 0 })));
}

#[test]
fn a_quantum_lasts_until_the_next_one_is_decided() {
    let result = run();
    let history = History::of(&result);
    let spans: Vec<(Nanos, Nanos, u16)> =
        history.quanta().iter().map(|quantum| (quantum.from, quantum.to, quantum.gang)).collect();
    assert_eq!(
        spans,
        [(ms(0), ms(100), 0), (ms(100), ms(200), 1), (ms(200), ms(262), 0), (ms(262), ms(300), 1)]
    );
    assert_eq!(history.quantum_at(ms(199)).map(|quantum| quantum.number), Some(2));
}

#[test]
fn a_quantum_ends_when_all_programs_fit_at_once() {
    let spans = |length: u64, frozen_again: bool| {
        let mut outcome = outcome();
        outcome.deviations.clear();
        let whole = Span { from: ms(102), to: ms(300), cpus: None };
        let until = Span { to: ms(280), ..whole };
        outcome.programs[B].timeline = vec![if frozen_again { until } else { whole }].into();
        outcome.decisions.pop();
        let last = outcome.decisions.last_mut().expect("there are some");
        last.reasons[0].why =
            cosched_core::Quantum { round: 1, gang: 0, gangs: 2, length: ms(length) }.into();
        let result = RunResult::new(&outcome, &context());
        let history = History::of(&result);
        let at = |at: u64| (history.quantum_at(ms(at)).is_some(), history.room_since(ms(at)));
        (history.quanta()[2].to, at(150), at(202), at(250))
    };
    let (quantum, since) = ((true, None), (false, Some(ms(203))));
    // It was planned for 20 ms and would last for 100; from 203 ms on, all run.
    assert_eq!(spans(20, false), (ms(203), quantum, quantum, since));
    assert_eq!(spans(60, false), (ms(300), quantum, quantum, quantum), "it may be late");
    assert_eq!(spans(20, true), (ms(300), quantum, quantum, quantum), "a program waits again");
}

#[test]
fn deviations_of_a_program_are_found_latest_first() {
    let result = run();
    let history = History::of(&result);
    let found = |slot, from, to| -> Vec<Aspect> {
        history.deviations(slot, ms(from), ms(to)).map(|deviation| deviation.what).collect()
    };
    assert_eq!(found(B, 0, 300), [Aspect::Running, Aspect::Frozen]);
    assert_eq!(found(B, 210, 269), [Aspect::Frozen]);
    assert_eq!(found(A, 0, 300), []);
}

#[test]
fn a_return_at_the_same_time_is_no_change() {
    let spans = [(1, 5, 7), (3, 4, 2), (5, 6, 7)];
    let found = changes(spans.map(|(from, to, member)| (ms(from), ms(to), member)).into_iter());
    assert_eq!(found, [(ms(1), vec![7]), (ms(3), vec![2, 7]), (ms(4), vec![7]), (ms(6), vec![])]);
}
