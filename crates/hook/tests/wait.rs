//! What a waiter notes of its own wait: the barrier latency and the spinning of the paper on Tidon,
//! section 2.3, with times worked out by hand.

#![allow(dead_code)]

#[path = "../src/barrier/wait.rs"]
mod wait;

use cosched_page::Passage;
use wait::{PREEMPTED_NS, SAMPLED, Wait, since, stamp};

/// The first arrival of a round. Its first checks are timed if the round is sampled.
fn arrival(is_sampled: bool) -> Wait {
    let mut wait = Wait::new(true, 0);
    if is_sampled {
        wait.arrives(1_000);
    }
    wait
}

/// It arrives at 1 us, checks until 2 us, spins until 6 us, sleeps until 46 us, and passes then.
fn spins_then_sleeps(mut wait: Wait) -> Wait {
    wait.spent_by(2_000);
    wait.spent_by(4_000);
    wait.spent_by(6_000);
    wait.slept = true;
    wait.leaves();
    wait.spent_by(46_000);
    wait.passes(|| 46_100);
    wait
}

#[test]
fn latency_goes_to_the_end_and_spinning_without_sleep() {
    let wait = spins_then_sleeps(arrival(false));
    // Beyond the first checks: 4 us, and the last 0.1 us after it woke up.
    assert_eq!((wait.spun(), wait.waited(), wait.length()), (4_100, 44_100, 44_100));
    assert_eq!(wait.passage(), Passage::Slept);
}

#[test]
fn timed_first_checks_stand_for_those_of_other_rounds() {
    let wait = spins_then_sleeps(arrival(true));
    let first_checks = SAMPLED * 1_000;
    let expected = (4_100 + first_checks, 44_100 + first_checks, 45_100);
    assert_eq!((wait.spun(), wait.waited(), wait.length()), expected);
    let mut brief = arrival(true);
    brief.passes(|| 1_300);
    assert!(!brief.is_long() && brief.is_timed());
    assert_eq!((brief.spun(), brief.waited(), brief.length()), (SAMPLED * 300, SAMPLED * 300, 300));
    assert_eq!((0..10 * SAMPLED).filter(|round| Wait::is_sampled(*round)).count(), 10);
}

#[test]
fn a_brief_wait_that_is_not_timed_reads_no_clock() {
    let mut wait = arrival(false);
    wait.passes(|| unreachable!("the clock was read"));
    assert!(!wait.is_timed());
}

/// Equation 2 is about CPU time: a thread that lost its CPU while it spun did not spin meanwhile.
#[test]
fn a_preempted_spinner_does_not_count_as_spinning() {
    let mut wait = arrival(false);
    wait.spent_by(0);
    wait.spent_by(3_000);
    wait.spent_by(3_000 + PREEMPTED_NS);
    wait.passes(|| 5_000 + PREEMPTED_NS);
    assert_eq!((wait.spun(), wait.waited()), (5_000, 5_000 + PREEMPTED_NS));
    let mut late = arrival(true);
    late.passes(|| 1_000 + PREEMPTED_NS);
    assert!(!late.is_timed(), "its round may have been over long before");
}

#[test]
fn yielding_is_no_spinning() {
    let mut wait = arrival(false);
    wait.spent_by(0);
    for now in [1_000, 2_000] {
        wait.yielded = true;
        wait.leaves();
        wait.spent_by(now);
    }
    wait.leaves();
    wait.passes(|| 3_000);
    assert_eq!((wait.spun(), wait.waited(), wait.passage()), (0, 3_000, Passage::Yielded));
}

#[test]
fn arrivals_are_held_against_the_first_one_of_their_round() {
    let first = stamp(17, 5_000);
    assert_eq!(since(first, 17, 8_000), 3_000);
    assert_eq!([since(first, 34, 8_000), since(0, 0, 8_000)], [0, 0], "of another round, of none");
    assert_eq!(since(first, 17, 4_900), 0, "clocks differ");
    let late = (1 << 48) - 10;
    assert_eq!(since(stamp(17, late), 17, late + 30), 30, "after some three days");
}

/// Clocks of several CPUs may differ a little.
#[test]
fn a_clock_that_goes_back_makes_no_endless_wait() {
    let mut wait = arrival(true);
    wait.spent_by(900);
    wait.spent_by(800);
    wait.passes(|| 950);
    assert_eq!((wait.spun(), wait.waited()), (50, 50));
}
