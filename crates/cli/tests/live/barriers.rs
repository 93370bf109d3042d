//! Programs that wait at barriers of cosched: what they are started with, and what they know. How they wait is tested in
//! `crates/hook`.

use std::process::Command;

use cosched_core::workload::Barrier;
use cosched_linux::procfs::Proc;
use cosched_linux::runstate::RunStates;

use super::support::{Cosched, Ended, Place, User, copy_file, program, skip};

const TELLS: &str = r#"echo "$LD_PRELOAD"; echo "$COSCHED_BARRIER_WAY"; echo "$OMP_NUM_THREADS""#;

/// How each program of a run waited, by its `run.json`.
fn ways(ended: &Ended) -> Vec<Option<Barrier>> {
    let programs = ended.result().programs;
    programs.iter().map(|program| program.barrier.as_ref().map(|barrier| barrier.way)).collect()
}

#[test]
fn the_key_of_a_program_comes_before_the_option_and_malleable_is_another_matter() {
    let place = Place::new();
    place.bring_hook();
    let tables = [
        program("a", "barrier = 'own'", TELLS),
        program("b", "barrier = 'donate'", TELLS),
        program("c", "", TELLS),
    ];
    let told = |name: &str| place.read(&format!("out/{name}.stdout"));
    let ended = place.run(&tables, "--policy linux --barrier spin").ended().with(0);
    assert_eq!(ways(&ended), [None, Some(Barrier::Donate), Some(Barrier::Spin)]);
    assert_eq!(told("a"), "\n\n\n");
    let donate: Vec<String> = told("b").lines().map(str::to_owned).collect();
    assert!(donate[0].ends_with("/libcosched_hook.so"), "{donate:?}");
    assert_eq!(donate[1..], ["", ""], "its threads are its own affair");
    assert_eq!(told("c").lines().nth(1), Some("spin"));
    place.nothing_is_left_of(&ended);
}

#[test]
fn a_program_in_the_place_of_cosched_has_the_library_and_a_door_too() {
    let place = Place::new();
    let script = r#"echo "$LD_PRELOAD $COSCHED_HOOK" > told"#;
    let words = ["exec", "--policy", "linux", "--barrier", "donate", "--", "sh", "-c", script];
    place.cosched(&words).ended().with(0);
    let told = place.read("told");
    assert!(told.contains("/libcosched_hook.so cosched-"), "{told}");
}

#[test]
fn without_the_library_nothing_is_started_and_the_key_is_named() {
    let place = Place::new();
    let copy = place.path("cosched");
    copy_file(&place.executable, &copy);
    place.write("jobs.toml", program("a", "barrier = 'donate'", "touch started"));
    let mut command = place.user.command(&copy);
    command.args(["run", "jobs.toml"]);
    let said = ["jobs.toml:", "barrier", "libcosched_hook.so", "leave"];
    Cosched::start(command, &place).ended().with(2).saying(&said);
    assert!(!place.path("started").exists());
}

/// Comes to cosched, and says whether it was given memory of an array of the kernel's, and with which rights.
const MAPPED: &str = r#"
#include <stdio.h>
#include <string.h>
extern int cosched_register(void) __attribute__((weak));
int main(void) {
    char line[4096];
    printf("%d", cosched_register ? cosched_register() : -1);
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        char rights[8] = "";
        if (strstr(line, "bpf-map") && sscanf(line, "%*s %7s", rights) == 1) printf(" %s", rights);
    }
    puts("");
    return 0;
}
"#;

#[test]
fn a_program_can_read_what_its_threads_do_where_that_can_be_had_and_is_told_the_reason_elsewhere() {
    let known = RunStates::load(&Proc::default());
    for user in [User::Caller, User::ordinary()] {
        let is_ordinary = matches!(user, User::Ordinary(_));
        let place = Place::of(user);
        place.bring_hook();
        let source = place.write("mapped.c", MAPPED);
        let compiler = Command::new("gcc").arg(source).arg("-o").arg(place.path("mapped")).status();
        if !compiler.is_ok_and(|status| status.success()) {
            return skip("there is no gcc");
        }
        let in_other_namespace = "unshare --pid --fork ./mapped || echo none";
        let tables = [
            program("a", "barrier = 'donate'", "exec ./mapped"),
            program("b", "barrier = 'donate'", in_other_namespace),
        ];
        let ended = place.run(&tables, "--policy linux").ended().with(0);
        let lacks = ended.result().programs[0].barrier.clone().unwrap().lacks;
        let told = place.read("out/a.stdout");
        let others = place.read("out/b.stdout");
        assert!(
            ["1\n", "none\n"].contains(&others.as_str()),
            "its threads have other numbers: {others}"
        );
        match &known {
            Ok(_) if !is_ordinary => assert_eq!((told.as_str(), lacks), ("1 r--s\n", None)),
            _ => {
                assert_eq!(told, "1\n");
                assert!(lacks.is_some());
                ended.saying(&["a does not know at barriers which of its threads run"]);
            }
        }
    }
    if let Err(why) = known {
        skip(why.to_string());
    }
}
