//! The processes of one program that have several threads each take turns.

use std::collections::BTreeSet;
use std::path::PathBuf;

use cosched_linux::process::tree::Process;
use rustix::process::Signal;

use super::super::kills::restored;
use super::super::support::{Cosched, Place, eventually, program};
use super::{all_is_as_before, cpus, group, is_filler, place};

/// A place, and a run of a pool of so many workers in it; `None`, with a message, where there are
/// no CPU groups.
fn pool(workers: usize, mode: &str) -> Option<(Place, Cosched)> {
    let place = place()?;
    let pool = place.example("pool").display().to_string();
    let table = program("a", "threads = 2", &format!("exec {pool} {workers} {mode}"));
    let cosched = place.run(&[table], "");
    Some((place, cosched))
}

/// As many workers as have more threads than there are CPUs.
fn many() -> usize {
    cpus().len() / 2 + 2
}

/// The workers' processes, once all have begun.
fn workers(place: &Place, count: usize) -> Vec<Process> {
    workers_in(place, ".", count)
}

/// The processes of workers that began in a folder of the place, once all have begun.
fn workers_in(place: &Place, folder: &str, count: usize) -> Vec<Process> {
    let number = |i| place.read(&format!("{folder}/w{i}")).trim().parse::<i32>().ok();
    eventually("the workers", || (0..count).all(|i| number(i).is_some()));
    let programs = place.marked().programs();
    let process = |pid| programs.iter().copied().find(|process| process.pid == pid);
    (0..count).filter_map(number).filter_map(process).collect()
}

/// The groups of these processes, if each is in one below that of its program.
fn units(workers: &[Process]) -> Option<BTreeSet<PathBuf>> {
    let is_unit = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("unit-"))
    };
    workers.iter().map(|process| group(*process).filter(is_unit)).collect()
}

/// Which one has its turn while all others fill.
fn in_turn(workers: &[Process]) -> Option<Process> {
    let turns = workers.iter().copied().filter(|process| !is_filler(*process));
    let turns: Vec<Process> = turns.collect();
    (turns.len() == 1).then(|| turns[0])
}

fn turns_go_round(workers: &[Process]) {
    for target in workers {
        eventually("a worker's turn", || in_turn(workers) == Some(*target));
    }
}

#[test]
fn workers_with_several_threads_take_turns() {
    let Some((place, cosched)) = pool(many(), "free") else { return };
    let workers = workers(&place, many());
    eventually("a group for each", || units(&workers).is_some_and(|all| all.len() == many()));
    turns_go_round(&workers);
    turns_go_round(&workers);
    // Those that are left go on taking turns.
    workers[0].signal(&Default::default(), Signal::KILL).unwrap();
    turns_go_round(&workers[1..]);
    place.write("stop", "");
    let ended = cosched.ended().saying(&["several threads each", "they take turns"]);
    place.nothing_is_left_of(&ended);
}

#[test]
fn workers_that_begin_later_take_turns_too() {
    let Some(place) = place() else { return };
    let (pool, count) = (place.example("pool").display().to_string(), many());
    std::fs::create_dir(place.path("later")).unwrap();
    let script = format!(
        "{pool} {count} free & until [ -e more ]; do sleep 0.01; done; (cd later && {pool} 2 free)"
    );
    let cosched = place.run(&[program("a", "threads = 2", &format!("{script}; wait"))], "");
    let mut workers = workers(&place, count);
    turns_go_round(&workers);
    place.write("more", "");
    workers.extend(workers_in(&place, "later", 2));
    eventually("a group for each", || units(&workers).is_some_and(|all| all.len() == count + 2));
    turns_go_round(&workers);
    place.write("stop", "");
    place.write("later/stop", "");
    place.nothing_is_left_of(&cosched.ended().with(0));
}

#[test]
fn workers_that_share_memory_have_their_turn_together() {
    let Some((place, cosched)) = pool(many() + 1, "tied") else { return };
    let workers = workers(&place, many() + 1);
    eventually("a group for each part", || {
        units(&workers).is_some_and(|all| all.len() == many())
            && group(workers[0]) == group(workers[1])
    });
    eventually("their turn", || !is_filler(workers[0]) && is_filler(workers[2]));
    place.write("stop", "");
    place.nothing_is_left_of(&cosched.ended().with(0));
}

#[test]
fn a_killed_cosched_leaves_no_worker_idle() {
    let Some((place, cosched)) = pool(many(), "free") else { return };
    let workers = workers(&place, many());
    turns_go_round(&workers);
    let pid = cosched.pid();
    cosched.kill();
    restored(&place, pid);
    all_is_as_before(&place);
    place.no_trace_is_left_of(pid);
    place.write("stop", "");
    eventually("the workers' end", || place.marked().all().is_empty());
}

#[test]
fn a_stopped_cosched_leaves_no_worker_idle() {
    let Some((place, cosched)) = pool(many(), "free") else { return };
    let workers = workers(&place, many());
    turns_go_round(&workers);
    cosched.signal(Signal::STOP);
    eventually("even weights", || !workers.iter().copied().any(is_filler));
    cosched.signal(Signal::CONT);
    turns_go_round(&workers);
    place.write("stop", "");
    place.nothing_is_left_of(&cosched.ended().with(0));
}

#[test]
fn a_user_is_told_where_workers_take_no_turns() {
    let place = Place::new();
    let pool = place.example("pool").display().to_string();
    let table = program("a", "threads = 2", &format!("exec {pool} {} free", many()));
    let cosched = place.run(&[table], "--policy gang");
    let workers = workers(&place, many());
    eventually("the hint", || cosched.said().contains("`cosched run --policy turns`"));
    assert!(units(&workers).is_none(), "they have no groups");
    place.write("stop", "");
    place.nothing_is_left_of(&cosched.ended().with(0));
}
