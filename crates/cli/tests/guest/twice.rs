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
    // In a ring, which whoever ends leaves.
    let counts = ["a", "b", "c"].map(|name| (name, turns.matches(name).count()));
    let rounds = counts.map(|(_, count)| count).into_iter().max().unwrap();
    let ring: String = (0..rounds)
        .flat_map(|round| counts.into_iter().filter(move |(_, count)| *count > round))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(turns, ring);
    assert!(counts.iter().all(|(_, count)| *count > 3), "{turns}");
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
