//! A run in a guest without chance: its clock counts instructions, and nothing of the host
//! influences it.
//!
//! `guest/run.sh` boots that guest twice and compares its whole output, to the byte. The tests
//! therefore print their results: when each quantum began and ended (nanoseconds), and how often
//! each program was switched. What must hold for every order of events is asserted.

use std::iter::once;
use std::ops::Range;

use cosched_core::{Aspect, Refusal};
use cosched_results::result::DeviationResult;

use super::guest_is_one_of;
use super::support::{Place, program};

/// Four processes that compute: on 8 CPUs, all of three programs' do not fit at once.
const WORK: &str =
    "for t in 1 2 3 4; do (i=0; while [ $i -lt 12000 ]; do i=$((i+1)); done) & done; wait";
/// In this guest a freeze takes up to some 70 ms now and then. A program that is still not frozen
/// when the next quantum ends costs another program a turn.
const QUANTUM: &str = "100ms";

/// After how many turns each of the three had one. A late program joins the ring at its present
/// position, so that no order can be expected before.
fn everybody_had_one(turns: &str) -> Option<usize> {
    ["a", "b", "c"]
        .map(|name| turns.find(name))
        .into_iter()
        .try_fold(0, |last, first| Some(last.max(first? + 1)))
}

/// The first program that is out of turn with another: between two of its turns, the other had none
/// or several. The other had a turn before, and has one later.
fn out_of_turn(turns: &str) -> Option<(&str, &str)> {
    for name in ["a", "b", "c"] {
        let places: Vec<usize> = turns.match_indices(name).map(|(place, _)| place).collect();
        for pair in places.windows(2) {
            let (before, between) = (&turns[..pair[0]], &turns[pair[0] + 1..pair[1]]);
            for other in ["a", "b", "c"].into_iter().filter(|other| *other != name) {
                let is_there = before.contains(other) && turns[pair[1]..].contains(other);
                if is_there && between.matches(other).count() != 1 {
                    return Some((name, other));
                }
            }
        }
    }
    None
}

/// The longest time without a deviation.
fn longest_calm(deviations: &[DeviationResult], end: f64) -> Range<f64> {
    let late = || deviations.iter().map(|deviation| deviation.at_seconds);
    let calms = once(0.0).chain(late()).zip(late().chain(once(end)));
    let longest = calms.max_by(|one, other| (one.1 - one.0).total_cmp(&(other.1 - other.0)));
    longest.map_or(0.0..end, |(begin, end)| begin..end)
}

#[test]
fn what_is_out_of_turn() {
    for (turns, expected) in [
        ("abcabcabcac", None),
        ("abcacbabc", Some(("b", "c"))),
        ("abcabbcabc", Some(("a", "b"))),
        ("abcababcabc", Some(("a", "c"))),
    ] {
        assert_eq!(out_of_turn(turns), expected, "{turns}");
    }
    assert_eq!(everybody_had_one("acbabc"), Some(3));
    assert_eq!(everybody_had_one("aabab"), None);
}

#[test]
fn three_gangs_take_turns_in_a_reproducible_order() {
    if guest_is_one_of(&["twice"]).is_none() {
        return;
    }
    let place = Place::new();
    let tables = ["a", "b", "c"].map(|name| program(name, "threads = 8", WORK));
    let ended = place.run(&tables, &format!("--policy gang --quantum {QUANTUM}")).ended().with(0);
    let result = ended.result();
    // On such a slow machine, a program may not stop in time now and then, nor another one get its
    // turn in time.
    let is_late = |deviation: &DeviationResult| {
        deviation.what == Aspect::Frozen
            && matches!(deviation.why, Refusal::TimedOut | Refusal::FrozenTooLong)
    };
    assert!(result.deviations.iter().all(is_late), "{:?}", result.deviations);
    let calm = longest_calm(&result.deviations, result.total_seconds);
    let mut turns: Vec<(f64, &str)> = Vec::new();
    for program in &result.programs {
        assert_eq!(program.exit_status, Some(0));
        turns.extend(program.timeline.iter().map(|span| (span.0, program.name.as_str())));
    }
    turns.sort_by(|one, other| one.0.total_cmp(&other.0));
    let turns: String =
        turns.iter().filter(|(at, _)| calm.contains(at)).map(|(_, name)| *name).collect();
    let begins = everybody_had_one(&turns).unwrap_or_else(|| panic!("{turns}"));
    assert!(turns.len() >= begins + 6, "{turns}");
    assert_eq!(out_of_turn(&turns[begins..]), None, "{turns}");
    println!("turns: {turns}");
    println!("{}", place.read("out/run.json"));
    place.nothing_is_left_of(&ended);
}

#[test]
fn twelve_processes_have_reproducible_switch_counts() {
    if guest_is_one_of(&["twice"]).is_none() {
        return;
    }
    let place = Place::new();
    let tables = ["a", "b", "c"].map(|name| program(name, "threads = 4", WORK));
    let ended = place.run(&tables, "--policy linux").ended().with(0);
    let result = ended.result();
    for program in &result.programs {
        assert_eq!((program.exit_status, program.timeline.len()), (Some(0), 1));
    }
    println!("{}", place.read("out/run.json"));
    place.nothing_is_left_of(&ended);
}
