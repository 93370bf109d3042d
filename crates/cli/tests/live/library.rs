//! The library that cosched carries and unpacks for programs that work with it. Which folders are
//! fit for it is tested in `crates/linux/src/hook/unpack.rs`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::support::{Cosched, Place, User, copy_file, is_library, program, skip};

const TELLS: &str = r#"echo "$LD_PRELOAD""#;

/// Prints 1 if it gets a thread limit, and how many libraries of cosched it has loaded.
const REQUESTS: &str = r#"
#include <stdio.h>
#include <string.h>
extern int cosched_register(void) __attribute__((weak));
extern int cosched_region(int) __attribute__((weak));
int main(void) {
    char line[4096];
    int loaded = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        loaded += strstr(line, " r-xp ") && strstr(line, "libcosched_hook");
    printf("%d %d\n", cosched_register && cosched_register() && cosched_region(4) == 4, loaded);
    return 0;
}
"#;

/// Compiles the program, with further words for the compiler. `None`: there is no compiler.
fn compiled(place: &Place, more: &[&Path]) -> Option<PathBuf> {
    let (source, made) = (place.write("requests.c", REQUESTS), place.path("requests"));
    let status = Command::new("gcc").arg(source).arg("-o").arg(&made).args(more).status().ok()?;
    assert!(status.success());
    Some(made)
}

/// The library as it lies in this place's cache.
fn unpacked(place: &Place) -> PathBuf {
    let mut entries = fs::read_dir(place.path("cache/cosched")).unwrap();
    let path = entries.next().unwrap().unwrap().path();
    assert!(entries.next().is_none() && is_library(path.to_str().unwrap()), "{path:?}");
    path
}

/// Starts `cosched run` with further variables.
fn run_with(place: &Place, variables: &[String], tables: &[String]) -> Cosched {
    place.write("jobs.toml", tables.concat());
    let mut command = place.user.command(Path::new("env"));
    command.args(variables).arg(&place.executable);
    command.args(["run", "jobs.toml", "--policy", "linux", "--out", "out"]);
    Cosched::start(command, place)
}

#[test]
fn a_copy_of_the_command_alone_has_its_library() {
    for user in [User::Caller, User::ordinary()] {
        let mut place = Place::of(user);
        let Some(_) = compiled(&place, &[]) else { return skip("there is no gcc") };
        let alone = place.path("alone");
        fs::create_dir(&alone).unwrap();
        copy_file(&place.executable, &alone.join("cosched"));
        place.executable = alone.join("cosched");
        let tables = [
            program("a", "malleable = true", "exec ./requests"),
            program("b", "barrier = 'donate'", "exec ./requests"),
        ];
        for _ in 0..2 {
            let ended = place.run(&tables, "--policy linux").ended().with(0);
            for name in ["a", "b"] {
                assert_eq!(place.read(&format!("out/{name}.stdout")), "1 1\n", "{name}");
            }
            place.nothing_is_left_of(&ended);
            fs::remove_dir_all(place.path("out")).unwrap();
            // The next run repairs it.
            fs::write(unpacked(&place), "damaged").unwrap();
        }
        assert_eq!(fs::read_dir(alone).unwrap().count(), 1);
    }
}

/// The program finds no library of that name but the one that is preloaded.
#[test]
fn a_program_linked_with_the_library_loads_it_once() {
    let place = Place::new();
    place.run(&[program("a", "malleable = true", "true")], "--policy linux").ended().with(0);
    let linked = [Path::new("-Wl,--no-as-needed"), &unpacked(&place)];
    let Some(made) = compiled(&place, &linked) else { return skip("there is no gcc") };
    // cargo's variable leads to the one that it builds.
    let alone = Command::new(made).env_remove("LD_LIBRARY_PATH").status().unwrap();
    assert!(!alone.success(), "it is not linked with the library");
    fs::remove_dir_all(place.path("out")).unwrap();
    let tables = [program("a", "malleable = true", "exec ./requests")];
    place.run(&tables, "--policy linux").ended().with(0);
    assert_eq!(place.read("out/a.stdout"), "1 1\n");
}

#[test]
fn programs_that_root_starts_as_another_user_can_load_it() {
    let User::Ordinary(uid) = User::ordinary() else { return skip("it needs root") };
    let place = Place::new();
    let Some(_) = compiled(&place, &[]) else { return skip("there is no gcc") };
    let script = format!("exec setpriv --reuid={uid} ./requests");
    place.run(&[program("a", "malleable = true", &script)], "--policy linux").ended().with(0);
    assert_eq!(place.read("out/a.stdout"), "1 1\n");
    assert_eq!(place.read("out/a.stderr"), "");
}

#[test]
fn without_a_cache_it_is_unpacked_beside_the_undo_logs() {
    let place = Place::new();
    let variables = ["XDG_CACHE_HOME=/dev/null".to_owned()];
    let tables = [program("a", "malleable = true", TELLS)];
    run_with(&place, &variables, &tables).ended().with(0);
    let printed = place.read("out/a.stdout");
    assert!(printed.contains("/run/cosched/libcosched_hook-"), "{printed}");
}

#[test]
fn without_a_fit_folder_nothing_starts_and_the_remedy_is_shown() {
    for (key, what) in [("malleable = true", "malleable"), ("barrier = 'donate'", "barrier")] {
        let place = Place::new();
        let [cache, runtime] = ["a b", "a:b"].map(|name| place.path(name));
        for folder in [&cache, &runtime] {
            fs::create_dir(folder).unwrap();
        }
        let variables = [("XDG_CACHE_HOME", cache), ("XDG_RUNTIME_DIR", runtime)]
            .map(|(name, folder)| format!("{name}={}", folder.display()));
        let tables = [program("a", key, "touch started")];
        let said = ["jobs.toml:", what, "libcosched_hook.so", "space", "XDG_CACHE_HOME", "leave"];
        run_with(&place, &variables, &tables).ended().with(2).saying(&said);
        assert!(!place.path("started").exists());
    }
}
