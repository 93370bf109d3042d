//! Programs that let cosched choose their threads: what they are started with. What they are granted is tested on the
//! machine alone, in `crates/linux/tests/malleable.rs`.

use super::support::{Cosched, Place, User, copy_file, program};

const TELLS: &str = r#"echo "$LD_PRELOAD"; echo "$COSCHED_HOOK""#;

#[test]
fn a_malleable_program_is_started_with_the_library_and_a_door_and_another_is_not() {
    for user in [User::Caller, User::ordinary()] {
        let place = Place::of(user);
        place.bring_hook();
        let tables = [program("a", "malleable = true", TELLS), program("b", "", TELLS)];
        let ended = place.run(&tables, "--policy gang").ended().with(0);
        let told = place.read("out/a.stdout");
        let lines: Vec<&str> = told.lines().collect();
        assert!(lines[0].ends_with("/libcosched_hook.so"), "{told}");
        assert!(lines[1].starts_with("cosched-"), "{told}");
        assert_eq!(place.read("out/b.stdout"), "\n\n");
        place.nothing_is_left_of(&ended);
    }
}

#[test]
fn libraries_that_the_user_has_preloaded_stay_and_every_run_has_a_door_of_its_own() {
    let place = Place::new();
    let keys = "malleable = true\nrepeat = 2\nenv = { LD_PRELOAD = 'libm.so.6' }";
    place.run(&[program("a", keys, TELLS)], "--policy linux").ended().with(0);
    let told = place.read("out/a.stdout");
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines[0].ends_with("/libcosched_hook.so:libm.so.6"), "{told}");
    assert_ne!(lines[1], lines[3]);
}

#[test]
fn without_the_library_nothing_is_started_and_the_remedy_is_told() {
    let place = Place::new();
    let copy = place.path("cosched");
    copy_file(&place.executable, &copy);
    place.write("jobs.toml", program("a", "malleable = true", "touch started"));
    let mut command = place.user.command(&copy);
    command.args(["run", "jobs.toml"]);
    let said = ["jobs.toml:", "malleable", "libcosched_hook.so", "leave"];
    Cosched::start(command, &place).ended().with(2).saying(&said);
    assert!(!place.path("started").exists());
}
