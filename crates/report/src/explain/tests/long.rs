//! Long runs, of which the first decisions, spans and turns are not kept.

use super::*;

/// The run made by hand, as if it were kept only from 150 ms on.
fn long() -> RunResult {
    let mut run = run();
    run.kept_from_seconds = Some(0.15);
    run
}

#[test]
fn quanta_of_a_long_run_are_those_that_are_kept() {
    let story = Story::of(&long(), None);
    let expected = "Since 0 s, the run had 2 quanta (turns), planned for 100 ms. In all it had 2 \
                    switches of 2 ms (median; longest 3 ms).";
    assert!(story.sentences.iter().any(|line| line == expected), "{:?}", story.sentences);
    assert_eq!(story.quanta, 2);
}

#[test]
fn waits_of_a_long_run_are_those_that_are_kept() {
    let story = Story::of(&long(), Some(B)).programs.swap_remove(0);
    assert_eq!(
        story.sentences[1..7],
        [
            "Since 0 s, it had 3 turns of 20 ms (median).",
            "Since 0 s, it waited once, for 5 ms (from 0.260 s):",
            "  3 ms: cosched was starting or resuming it.",
            "  2 ms: it is another program's turn.",
            "Since 0 s, while it waited, c (5 ms) ran.",
            "Since 0 s, while it ran, c (133 ms) and a (47 ms) also ran: interference is slowdown \
             by such programs.",
        ]
    );
    assert_eq!((story.waits, story.turns), (1, 3));
}

#[test]
fn a_quantum_of_a_long_run_has_no_number() {
    let first = Moment::of(&long(), ms(210), None).lines().swap_remove(0);
    let expected = "At 0.210 s, under greedy, in a quantum (from 0.200 s to 0.262 s, planned for ";
    assert!(first.starts_with(expected), "{first}");
}
