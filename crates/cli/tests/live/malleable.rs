//! Programs that let cosched choose their threads: what they are started with. Their thread limits
//! are tested on the machine alone, in `crates/linux/tests/malleable.rs`.

use std::process::Command;

use super::support::{Place, User, eventually, is_library, program, skip};

const TELLS: &str = r#"echo "$LD_PRELOAD"; echo "$COSCHED_HOOK""#;

#[test]
fn only_malleable_programs_get_the_library_and_a_hook_server() {
    for user in [User::Caller, User::ordinary()] {
        let place = Place::of(user);
        let tables = [program("a", "malleable = true", TELLS), program("b", "", TELLS)];
        let ended = place.run(&tables, "--policy gang").ended().with(0);
        let printed = place.read("out/a.stdout");
        let lines: Vec<&str> = printed.lines().collect();
        assert!(is_library(lines[0]), "{printed}");
        assert!(lines[1].starts_with("cosched-"), "{printed}");
        assert_eq!(place.read("out/b.stdout"), "\n\n");
        place.nothing_is_left_of(&ended);
    }
}

#[test]
fn preloaded_libraries_stay_and_each_run_has_its_hook_server() {
    let place = Place::new();
    let keys = "malleable = true\nrepeat = 2\nenv = { LD_PRELOAD = 'libm.so.6' }";
    place.run(&[program("a", keys, TELLS)], "--policy linux").ended().with(0);
    let printed = place.read("out/a.stdout");
    let lines: Vec<&str> = printed.lines().collect();
    assert!(lines[0].strip_suffix(":libm.so.6").is_some_and(is_library), "{printed}");
    assert_ne!(lines[1], lines[3]);
}

/// Stays registered, and prints so before and after.
const REGISTERED: &str = r#"
#include <stdio.h>
#include <unistd.h>
extern int cosched_register(void) __attribute__((weak));
extern int cosched_region(int) __attribute__((weak));
int main(void) {
    printf("%d\n", cosched_register && cosched_register() && cosched_region(4) == 4);
    fflush(stdout);
    while (cosched_register()) usleep(1000);
    printf("alone with %d\n", cosched_region(4));
    return 0;
}
"#;

#[test]
fn programs_go_on_alone_when_cosched_is_killed() {
    for user in [User::Caller, User::ordinary()] {
        let place = Place::of(user);
        let source = place.write("registered.c", REGISTERED);
        let compiler = Command::new("gcc").arg(source).arg("-o").arg(place.path("r")).status();
        if !compiler.is_ok_and(|status| status.success()) {
            return skip("there is no gcc");
        }
        let script = "./r > told";
        let cosched = place.run(&[program("a", "malleable = true", script)], "--policy gang");
        eventually("the program's connection", || place.read("told") == "1\n");
        cosched.kill();
        eventually("its end", || place.read("told") == "1\nalone with 4\n");
        eventually("the undo log's end", || place.undo_logs().is_empty());
    }
}

/// Ends when a region of it has two threads, and fails if that takes too long.
const GROWS: &str = r#"
#include <time.h>
extern int omp_get_num_threads(void);
int main(void) {
    time_t begin = time(0);
    for (int team = 0; team != 2;) {
        if (time(0) > begin + 20) return 1;
#pragma omp parallel
#pragma omp single
        team = omp_get_num_threads();
    }
    return 0;
}
"#;

/// A place with the program `grows`; `None`: it cannot be made here.
fn with_grows() -> Option<Place> {
    if std::thread::available_parallelism().unwrap().get() != 2 {
        skip("the counts of this test are those of two CPUs");
        return None;
    }
    let place = Place::new();
    let (source, made) = (place.write("grows.c", GROWS), place.path("grows"));
    let mut compiler = Command::new("gcc");
    compiler.args(["-fopenmp"]).arg(source).arg("-o").arg(made);
    if !compiler.status().is_ok_and(|status| status.success()) {
        skip("there is no gcc");
        return None;
    }
    Some(place)
}

/// The other program ends only once that has happened.
#[test]
fn a_program_is_granted_what_it_requests_beside_others() {
    let Some(place) = with_grows() else { return };
    let grows = program("a", "malleable = true", "./grows && touch grown");
    let waits = "while [ ! -e grown ]; do sleep 0.01; done";
    let tables = [grows, program("b", "malleable = true", waits)];
    for policy in ["request-greedy", "request-minwait"] {
        place.run(&tables, &format!("--policy {policy}")).ended().with(0);
        std::fs::remove_dir_all(place.path("out")).unwrap();
        std::fs::remove_file(place.path("grown")).unwrap();
    }
}

#[test]
fn a_program_gets_more_threads_when_the_others_have_ended() {
    let Some(place) = with_grows() else { return };
    let grows = program("a", "malleable = true", "exec ./grows");
    let tables = [grows, program("b", "malleable = true", "sleep 1")];
    for policy in ["adaptive-greedy", "adaptive-minwait"] {
        place.run(&tables, &format!("--policy {policy}")).ended().with(0);
        std::fs::remove_dir_all(place.path("out")).unwrap();
    }
}

#[test]
fn malleable_programs_get_omp_num_threads_unless_user_set_it() {
    let place = Place::new();
    let tells = |name, keys| program(name, keys, "echo $OMP_NUM_THREADS");
    let own = "malleable = true\nenv = { OMP_NUM_THREADS = '7,2' }";
    let tables = [tells("a", "malleable = true"), tells("b", own), tells("c", "")];
    place.run(&tables, "--policy linux").ended().with(0);
    let printed = |name: &str| place.read(&format!("out/{name}.stdout"));
    assert!(
        printed("a").trim().parse::<u16>().is_ok_and(|threads| threads > 0),
        "{}",
        printed("a")
    );
    assert_eq!((printed("b").trim(), printed("c").trim()), ("7,2", ""));
}
