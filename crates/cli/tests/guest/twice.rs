//! A run in a guest without chance: its clock counts instructions, and nothing of the host comes in.
//!
//! `guest/run.sh` boots that guest twice and compares all that it said, to the byte. So a result is printed here: when each quantum began
//! and ended (nanoseconds), and how often each program was switched. What must hold for every order of events is asserted.

use super::guest_is_one_of;
use super::support::{Place, program};

/// Four processes that compute: on 8 CPUs, all of three programs' do not fit at once.
const WORK: &str =
    "for t in 1 2 3 4; do (i=0; while [ $i -lt 2500 ]; do i=$((i+1)); done) & done; wait";

#[test]
fn three_gangs_take_turns_in_an_order_that_is_the_same_again() {
    if guest_is_one_of(&["twice"]).is_none() {
        return;
    }
    let place = Place::new();
    let tables = ["a", "b", "c"].map(|name| program(name, "threads = 8", WORK));
    let ended = place.run(&tables, "--policy gang --quantum 20ms").ended().with(0);
    let result = ended.result();
    assert_eq!(result.deviations, []);
    let mut turns: Vec<(f64, &str)> = Vec::new();
    for program in &result.programs {
        assert_eq!(program.exit_status, Some(0));
        turns.extend(program.timeline.iter().map(|span| (span.0, program.name.as_str())));
    }
    turns.sort_by(|one, other| one.0.total_cmp(&other.0));
    let turns: String = turns.iter().map(|(_, name)| *name).collect();
    // In a ring, which begins when they have started, and which whoever ends leaves: between two turns of a program
    // everybody else has one who had one before and has one later.
    for name in ["a", "b", "c"] {
        let places: Vec<usize> = turns.match_indices(name).map(|(place, _)| place).collect();
        assert!(places.len() > 3, "{turns}");
        for pair in places.windows(2) {
            let (before, between) = (&turns[..pair[0]], &turns[pair[0] + 1..pair[1]]);
            for other in ["a", "b", "c"].into_iter().filter(|other| *other != name) {
                let is_there = before.contains(other) && turns[pair[1]..].contains(other);
                let count = between.matches(other).count();
                assert!(!is_there || count == 1, "{name}, {other}: {turns}");
            }
        }
    }
    println!("turns: {turns}");
    println!("{}", place.read("out/run.json"));
    place.nothing_is_left_of(&ended);
}

#[test]
fn twelve_processes_are_switched_as_often_again() {
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
