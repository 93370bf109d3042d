//! Barriers of cosched for programs of which nobody has said how they wait: who gets them under `auto`, and who is spared.

use std::process::Command;

use cosched_core::result::BarrierResult;
use cosched_core::workload::Barrier;
use cosched_linux::affinity;
use cosched_linux::procfs::Proc;
use cosched_linux::runstate::RunStates;

use super::support::{Cosched, Ended, Place, User, copy_file, program, skip};

/// Two threads that meet 500 times, by OpenMP.
const TEAM: &str = r#"
#include <stdio.h>
int main(void) {
    int met = 0;
    #pragma omp parallel num_threads(2)
    for (int round = 0; round < 500; round++) {
        #pragma omp barrier
        #pragma omp master
        met++;
    }
    printf("%d\n", met);
    return 0;
}
"#;

/// Two threads that meet for six seconds, one of which is always late.
const LATE: &str = r#"
#include <time.h>
#include <unistd.h>
int main(void) {
    time_t end = time(0) + 6;
    int over = 0;
    #pragma omp parallel num_threads(2)
    while (!over) {
        #pragma omp master
        usleep(1000);
        #pragma omp barrier
        #pragma omp master
        over = time(0) > end;
        #pragma omp barrier
    }
    return 0;
}
"#;

const TELLS: &str = r#"echo "$LD_PRELOAD""#;

/// Compiles the team under a name, with these options; `None`, and says so, where that cannot be done.
fn team(place: &Place, name: &str, options: &[&str]) -> Option<()> {
    compiled(place, TEAM, name, options)
}

fn compiled(place: &Place, text: &str, name: &str, options: &[&str]) -> Option<()> {
    let source = place.write("team.c", text);
    let mut compiler = Command::new("gcc");
    compiler.args(["-fopenmp", "-o"]).arg(place.path(name)).arg(source).args(options);
    match compiler.output() {
        Ok(output) if output.status.success() => Some(()),
        _ => {
            skip(format!("gcc does not make it with {options:?}"));
            None
        }
    }
}

/// A table of a program that no shell starts.
fn direct(name: &str, keys: &str) -> String {
    format!("[[program]]\ncommand = './{name}'\n{keys}\n")
}

/// So many threads that two such programs are too many.
fn threads() -> String {
    format!("threads = {}", affinity::get(0).unwrap().len().max(2))
}

/// The same, and it shares CPUs with the others whatever a policy does.
fn wide() -> String {
    format!("{}\nfreezable = false", threads())
}

/// How a program of a run waited.
fn barrier(ended: &Ended, slot: usize) -> Option<BarrierResult> {
    ended.result().programs[slot].barrier.clone()
}

fn barriers(ended: &Ended, slot: usize) -> Option<u64> {
    Some(barrier(ended, slot)?.meetings?.barriers)
}

#[test]
fn an_openmp_program_that_shares_cpus_meets_at_barriers_of_cosched_and_that_is_told() {
    for user in [User::Caller, User::ordinary()] {
        let place = Place::of(user);
        place.bring_hook();
        let Some(()) = team(&place, "team", &[]) else { return };
        let sleeper =
            |name: &str, keys: &str| program(name, &format!("{}\n{keys}", wide()), "exec sleep 1");
        // Who comes later counts, and so does who has said something else.
        let beside =
            [sleeper("later", "start = '50ms'"), sleeper("own", "barrier = 'own'")].concat();
        for first in [direct("team", &wide()), program("script", &wide(), "exec ./team")] {
            let ended = place.run(&[first, beside.clone()], "--policy auto").ended().with(0);
            for slot in 0..2 {
                let chosen = barrier(&ended, slot).unwrap();
                assert_eq!((chosen.way, chosen.chosen), (Barrier::Donate, true));
            }
            assert!(barriers(&ended, 0).is_some_and(|met| met >= 500), "{ended:?}");
            // So short a run has not loaded what would tell.
            assert_eq!(barrier(&ended, 0).unwrap().meetings.unwrap().knew, 0);
            assert_eq!((barriers(&ended, 1), barrier(&ended, 2)), (None, None));
            let name = ended.result().programs[0].name.clone();
            assert_eq!(place.read(&format!("out/{name}.stdout")), "500\n");
            place.nothing_is_left_of(&ended);
            let ended =
                ended.saying(&[&format!("OpenMP threads of {name} and later wait for each")]);
            // One line is enough, also where it is not known which threads run.
            assert!(!ended.stderr.contains("does not know at barriers"), "{}", ended.stderr);
            let told =
                place.cosched(&["explain", "out", "--program", &name]).ended().with(0).stdout;
            assert!(told.contains("while they shared CPUs (the policy chose so"), "{told}");
            std::fs::remove_dir_all(place.path("out")).unwrap();
        }
    }
}

#[test]
fn in_a_run_of_some_seconds_it_becomes_known_which_threads_run_where_that_can_be_had() {
    for user in [User::Caller, User::ordinary()] {
        let is_ordinary = matches!(user, User::Ordinary(_));
        let place = Place::of(user);
        place.bring_hook();
        let Some(()) = compiled(&place, LATE, "late", &[]) else { return };
        let tables = [direct("late", &wide()), program("beside", &wide(), "exec sleep 7")];
        let ended = place.run(&tables, "--policy auto").ended().with(0);
        let late = barrier(&ended, 0).unwrap();
        let met = late.meetings.unwrap();
        let known = RunStates::load(&Proc::default()).is_ok() && !is_ordinary;
        assert_eq!(
            (met.knew > 0, late.lacks.is_none()),
            (known, known),
            "{met:?} {:?}",
            late.lacks
        );
        // In most of these seconds it was not known.
        assert!(met.knew < met.barriers / 2, "{met:?}");
        place.nothing_is_left_of(&ended);
    }
}

#[test]
fn a_program_alone_those_of_one_thread_and_those_that_can_take_turns_are_left_alone() {
    let place = Place::new();
    place.bring_hook();
    let alone = place.run(&[program("a", &wide(), TELLS)], "--policy auto").ended().with(0);
    assert_eq!((place.read("out/a.stdout").as_str(), barrier(&alone, 0)), ("\n", None));
    assert!(!alone.stderr.contains("barriers of cosched"), "{}", alone.stderr);
    std::fs::remove_dir_all(place.path("out")).unwrap();
    let single = ["a", "b"].map(|name| program(name, "threads = 1", TELLS));
    place.run(&single, "--policy auto").ended().with(0);
    assert_eq!([place.read("out/a.stdout"), place.read("out/b.stdout")], ["\n", "\n"]);
    std::fs::remove_dir_all(place.path("out")).unwrap();
    let in_turns = ["a", "b"].map(|name| program(name, &threads(), TELLS));
    place.run(&in_turns, "--policy auto").ended().with(0);
    assert_eq!([place.read("out/a.stdout"), place.read("out/b.stdout")], ["\n", "\n"]);
}

#[test]
fn who_has_said_how_programs_wait_or_names_another_policy_has_it_so() {
    let said = |options: &str, env: &str| {
        let place = Place::new();
        place.bring_hook();
        let keys = format!("{}\nenv = {{ {env} }}", wide());
        let tables = ["a", "b"].map(|name| program(name, &keys, TELLS));
        place.run(&tables, options).ended().with(0);
        place.read("out/a.stdout")
    };
    assert_eq!(said("--policy auto --barrier own", ""), "\n");
    assert_eq!(said("--policy auto --goal throughput", ""), "\n");
    assert_eq!(said("--policy auto", "OMP_WAIT_POLICY = 'active'"), "\n");
    assert_eq!(said("--policy linux", ""), "\n");
    let kept = said("--policy auto", "LD_PRELOAD = 'libm.so.6'");
    assert!(kept.ends_with("/libcosched_hook.so:libm.so.6\n"), "{kept}");
}

#[test]
fn programs_into_which_the_library_cannot_go_run_as_without_it() {
    let place = Place::new();
    place.bring_hook();
    let made = |name: &str, options: &[&str]| team(&place, name, options).is_some();
    // Leaks are looked for with ptrace, which not every machine allows.
    let keys = format!("{}\nenv = {{ ASAN_OPTIONS = 'detect_leaks=0' }}", wide());
    let mut tables = Vec::new();
    let mut expected = Vec::new();
    if made("static", &["-static"]) {
        tables.push(direct("static", &wide()));
        expected.push("it is linked statically");
    }
    let has_sanitizer = made("sanitized", &["-fsanitize=address"]);
    if has_sanitizer {
        tables.push(direct("sanitized", &keys));
        expected.push("it was built with a sanitizer, which has to be loaded first");
    }
    tables.push(program("tells", &wide(), TELLS));
    if has_sanitizer {
        // The shell has the library, and so what it starts.
        tables.push(program("shell", &keys, "./sanitized"));
    }
    let ended = place.run(&tables, "--policy auto").ended().with(0);
    for (slot, why) in expected.iter().enumerate() {
        let own = barrier(&ended, slot).unwrap();
        assert_eq!((own.way, own.lacks.as_deref()), (Barrier::Own, Some(*why)));
        assert!(own.chosen && own.meetings.is_none());
        let name = &ended.result().programs[slot].name;
        assert_eq!(place.read(&format!("out/{name}.stdout")), "500\n");
        assert_eq!(place.read(&format!("out/{name}.stderr")), "");
        let told = place.cosched(&["explain", "out", "--program", name]).ended().with(0).stdout;
        assert!(told.contains(&format!("cosched's could not go in: {why}.")), "{told}");
    }
    assert!(place.read("out/tells.stdout").ends_with("/libcosched_hook.so\n"));
    if has_sanitizer {
        assert_eq!(place.read("out/shell.stdout"), "500\n");
        assert_eq!(place.read("out/shell.stderr"), "");
    }
}

#[test]
fn a_cosched_without_the_library_runs_programs_as_they_are() {
    let place = Place::new();
    let copy = place.path("cosched");
    copy_file(&place.executable, &copy);
    place.write("jobs.toml", ["a", "b"].map(|name| program(name, &wide(), TELLS)).concat());
    let mut command = place.user.command(&copy);
    command.args(["run", "jobs.toml", "--out", "out", "--policy", "auto"]);
    let ended = Cosched::start(command, &place).ended().with(0);
    assert_eq!(place.read("out/a.stdout"), "\n");
    let lacks = barrier(&ended, 0).unwrap().lacks.unwrap();
    assert!(lacks.contains("libcosched_hook.so"), "{lacks}");
}
