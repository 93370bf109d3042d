//! Programs that wait at barriers of cosched: what they are started with, and what they know. How
//! they wait is tested in `crates/hook`.

use std::process::Command;
use std::time::Duration;

use cosched_linux::kernel::affinity;
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::observe::runstate::RunStates;
use cosched_workload::BarrierMode;
use rustix::process::Signal;

use super::support::{Ended, Place, User, eventually, is_library, program, skip};

const TELLS: &str = r#"echo "$LD_PRELOAD"; echo "$COSCHED_BARRIER_MODE"; echo "$OMP_NUM_THREADS""#;

/// How each program of a run waited, by its `run.json`.
fn modes(ended: &Ended) -> Vec<Option<BarrierMode>> {
    let programs = ended.result().programs;
    programs.iter().map(|program| program.barrier.as_ref().map(|barrier| barrier.mode)).collect()
}

#[test]
fn barriers_that_cannot_work_here_are_refused_in_time() {
    let place = Place::new();
    place.run(&[program("a", "barrier = 'tidon'", TELLS)], "").ended().with(2).saying(&[
        "jobs.toml",
        "the barrier tidon needs cosched's scheduler in the kernel",
        "remedy: add --scheduler ext",
    ]);
    if affinity::get(0).unwrap().len() < 2 {
        return skip("this machine has one CPU");
    }
    let mut on_one_cpu = Command::new("taskset");
    on_one_cpu.args(["-c", "0"]).arg(place.executable());
    on_one_cpu.args(["run", "--barrier", "load-control", "--", "touch", "made"]);
    let output = on_one_cpu.current_dir(place.folder()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    for part in ["of the whole machine want to run", "may use 1 of its", "remedy"] {
        assert!(said.contains(part), "{said}");
    }
    assert!(!place.path("made").exists(), "nothing was started");
}

/// `barrier` makes no program malleable: its thread count stays its own.
#[test]
fn a_programs_barrier_key_overrides_the_option() {
    let place = Place::new();
    let tables = [
        program("a", "barrier = 'own'", TELLS),
        program("b", "barrier = 'donate'", TELLS),
        program("c", "", TELLS),
    ];
    let printed = |name: &str| place.read(&format!("out/{name}.stdout"));
    let ended = place.run(&tables, "--policy linux --barrier spin").ended().with(0);
    assert_eq!(modes(&ended), [None, Some(BarrierMode::Donate), Some(BarrierMode::Spin)]);
    assert_eq!(printed("a"), "\n\n\n");
    let donate: Vec<String> = printed("b").lines().map(str::to_owned).collect();
    assert!(is_library(&donate[0]), "{donate:?}");
    assert_eq!(donate[1..], ["", ""], "its threads are its own affair");
    assert_eq!(printed("c").lines().nth(1), Some("spin"));
    place.nothing_is_left_of(&ended);
}

/// `GOMP_SPINCOUNT` is set for a program that donates, unless its environment or its jobs file sets
/// how it waits.
#[test]
fn donating_programs_spin_less_unless_the_user_sets_how_to_wait() {
    const SPINS: &str = r#"echo "$GOMP_SPINCOUNT""#;
    let place = Place::new();
    let tables = [
        program("a", "barrier = 'donate'", SPINS),
        program("b", "barrier = 'donate'\nenv = { GOMP_SPINCOUNT = '7' }", SPINS),
        program("c", "barrier = 'donate'\nenv = { OMP_WAIT_POLICY = 'active' }", SPINS),
        program("d", "barrier = 'spin'", SPINS),
    ];
    let ended = place.run(&tables, "--policy linux").ended().with(0);
    let given = |slot: usize| {
        let barrier = ended.result().programs[slot].barrier.clone().unwrap();
        barrier.between_regions.into_values().collect::<Vec<_>>()
    };
    let printed = |name: &str| place.read(&format!("out/{name}.stdout"));
    let [spins] = &given(0)[..] else { panic!("{:?}", given(0)) };
    assert_eq!(printed("a"), format!("{spins}\n"));
    assert_eq!([printed("b"), printed("c"), printed("d")], ["7\n", "\n", "\n"]);
    assert!((1..4).all(|slot| given(slot).is_empty()));
}

/// Two threads that pass 5000 barriers, or as many as the argument says.
const BARRIERS: &str = r#"
#include <pthread.h>
#include <stdlib.h>
static pthread_barrier_t all;
static int rounds = 5000;
static void *pass(void *nothing) {
    for (int round = 0; round < rounds; round++) pthread_barrier_wait(&all);
    return nothing;
}
int main(int argc, char **argv) {
    pthread_t other;
    if (argc > 1) rounds = atoi(argv[1]);
    pthread_barrier_init(&all, 0, 2);
    pthread_create(&other, 0, pass, 0);
    pass(0);
    pthread_join(other, 0);
    return 0;
}
"#;

/// Compiles it; `None`, with a message, where there is no gcc.
fn barriers(place: &Place) -> Option<()> {
    let source = place.write("barriers.c", BARRIERS);
    let mut compiler = Command::new("gcc");
    let made = compiler.arg("-pthread").arg(source).arg("-o").arg(place.path("barriers")).status();
    if !made.is_ok_and(|status| status.success()) {
        skip("there is no gcc");
        return None;
    }
    Some(())
}

#[test]
fn a_program_at_barriers_finishes_after_cosched_is_killed() {
    let place = Place::new();
    let Some(()) = barriers(&place) else { return };
    // The first process has connected before cosched is killed. The others find no cosched.
    let script = "./barriers 200000 & touch started; wait; ./barriers 100 && touch done";
    let tables = [program("a", "barrier = 'donate'", script)];
    let cosched = place.run(&tables, "--policy linux");
    eventually("its start", || place.path("started").exists());
    std::thread::sleep(Duration::from_millis(50));
    cosched.kill();
    eventually("its end", || place.path("done").exists());
    eventually("the end of every process", || place.marked().all().is_empty());
}

/// How often a process' first thread has slept.
fn slept(pid: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.trim())).ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")?.trim().parse().ok())
}

/// Two programs are killed while they donate. They count as killed, and the third one finishes its
/// barriers.
#[test]
fn killed_donating_programs_do_not_stop_their_co_runner() {
    let place = Place::new();
    let Some(()) = barriers(&place) else { return };
    // On one CPU they wait for each other asleep at every barrier.
    let cpu = affinity::get(0).unwrap().iter().next().unwrap();
    let victim = |name: &str| {
        let script = format!("echo $$ > {name}; exec taskset -c {cpu} ./barriers 2000000000");
        program(name, "barrier = 'donate'", &script)
    };
    // One program that has started before their end, and one that starts after it.
    let beside = "./barriers 1000 && touch passed; \
                  while ! [ -e killed ]; do ./barriers 100; sleep 0.02; done; exec ./barriers";
    let tables = [victim("a"), victim("b"), program("c", "barrier = 'donate'", beside)];
    let cosched = place.run(&tables, "--policy linux");
    // Far more often than before its first barrier: it sleeps while it is loaded, too.
    for name in ["a", "b"] {
        eventually("its waiting", || slept(&place.read(name)).is_some_and(|times| times > 1000));
    }
    eventually("a barrier passed by its neighbour", || place.path("passed").exists());
    let marked = place.marked();
    let pids = ["a", "b"].map(|name| place.read(name).trim().parse::<i32>().unwrap());
    for victim in marked.programs().into_iter().filter(|process| pids.contains(&process.pid)) {
        marked.signal(victim, Signal::KILL);
    }
    place.write("killed", "");
    let ended = cosched.ended().with(1);
    let programs = ended.result().programs;
    let ends: Vec<_> = programs.iter().map(|program| program.exit_status).collect();
    assert_eq!(ends, [Some(137), Some(137), Some(0)]);
    // The counts until then are kept, and the co-runner continues to count.
    let stats =
        |slot: usize| programs[slot].barrier.as_ref().and_then(|barrier| barrier.statistics);
    let [a, b, c] = [0, 1, 2].map(|slot| stats(slot).unwrap().barriers);
    assert!(a > 100 && b > 100 && c >= 6000, "{a} {b} {c}");
    place.nothing_is_left_of(&ended);
}

#[test]
fn barrier_statistics_are_in_the_result_and_in_explain() {
    let place = Place::new();
    let Some(()) = barriers(&place) else { return };
    let tables = [
        program("twice", "barrier = 'donate'\nrepeat = 2", "exec ./barriers"),
        program("spins", "barrier = 'yield'", "exec ./barriers"),
        program("own", "", "exec ./barriers"),
    ];
    let ended = place.run(&tables, "--policy linux").ended().with(0);
    let programs = ended.result().programs;
    let stats =
        |slot: usize| programs[slot].barrier.as_ref().and_then(|barrier| barrier.statistics);
    let [twice, spins] = [0, 1].map(|slot| stats(slot).unwrap());
    assert_eq!((twice.barriers, twice.waits()), (10_000, 10_000));
    assert_eq!((spins.barriers, spins.waits(), spins.slept), (5000, 5000, 0));
    assert_eq!(stats(2), None);
    let explained = place.cosched(&["explain", "out", "--program", "twice"]).ended().with(0);
    assert!(explained.stdout.contains("They passed 10000 barriers, "), "{}", explained.stdout);
}

/// More threads compute than there are CPUs, so that load control has waiters sleep.
#[test]
fn under_load_control_waiters_sleep_on_a_full_machine() {
    let place = Place::new();
    let Some(()) = barriers(&place) else { return };
    let busy = "while ! [ -e done ]; do :; done";
    let all = affinity::get(0).unwrap().len();
    let mut tables = vec![program("a", "barrier = 'load-control'", "./barriers 20000; touch done")];
    tables.extend((0..=all).map(|number| program(&format!("busy-{number}"), "", busy)));
    let ended = place.run(&tables, "--policy linux").ended().with(0);
    let barrier = ended.result().programs[0].barrier.clone().unwrap();
    let stats = barrier.statistics.unwrap();
    assert_eq!((barrier.mode, stats.barriers), (BarrierMode::LoadControl, 20_000));
    assert!(stats.slept > 0, "{stats:?}");
}

/// Threads that share a CPU yield to each other where their program has a CPU group of its own, and
/// sleep elsewhere.
#[test]
fn threads_on_one_cpu_yield_in_their_own_cpu_group_only() {
    if let Err(why) = RunStates::load(&Proc::default()) {
        return skip(why);
    }
    let cpu = affinity::get(0).unwrap().iter().next().unwrap();
    let tables = [program("a", "barrier = 'donate'", &format!("exec taskset -c {cpu} ./barriers"))];
    for policy in ["linux", "linux-groups"] {
        let place = Place::new();
        let Some(()) = barriers(&place) else { return };
        let ended = place.run(&tables, &format!("--policy {policy}")).ended();
        if policy == "linux-groups" && ended.stderr.contains("not available here") {
            return skip("programs get no CPU groups here");
        }
        let programs = ended.with(0).result().programs;
        let stats = programs[0].barrier.as_ref().and_then(|barrier| barrier.statistics).unwrap();
        assert_eq!((stats.barriers, stats.waits()), (5000, 5000), "{stats:?}");
        assert_eq!(stats.yielded > 1000, policy == "linux-groups", "{stats:?}");
    }
}

#[test]
fn a_program_under_exec_gets_the_library_and_a_hook_server() {
    let place = Place::new();
    let script = r#"echo "$LD_PRELOAD $COSCHED_HOOK" > printed"#;
    let words = ["exec", "--policy", "linux", "--barrier", "donate", "--", "sh", "-c", script];
    place.cosched(&words).ended().with(0);
    let printed = place.read("printed");
    assert!(printed.split_once(" cosched-").is_some_and(|(path, _)| is_library(path)), "{printed}");
}

/// Connects to cosched, and prints whether it got the memory of a kernel array, and with which
/// permissions.
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

/// A program can read what its threads do where the kernel allows it. Elsewhere, cosched reports
/// the reason.
#[test]
fn thread_states_are_readable_or_the_reason_is_reported() {
    let known = RunStates::load(&Proc::default());
    for user in [User::Caller, User::ordinary()] {
        let is_ordinary = matches!(user, User::Ordinary(_));
        let place = Place::of(user);
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
        let printed = place.read("out/a.stdout");
        let others = place.read("out/b.stdout");
        assert!(
            ["1\n", "none\n"].contains(&others.as_str()),
            "its threads have other numbers: {others}"
        );
        match &known {
            Ok(_) if !is_ordinary => assert_eq!((printed.as_str(), lacks), ("1 r--s\n", None)),
            _ => {
                assert_eq!(printed, "1\n");
                assert!(lacks.is_some());
                ended.saying(&["a does not know at barriers which of its threads run"]);
            }
        }
    }
    if let Err(why) = known {
        skip(why.to_string());
    }
}

/// No library can be preloaded into a statically linked program: the user is told before it starts.
#[test]
fn a_statically_linked_program_keeps_its_own_barriers_and_is_named() {
    let place = Place::new();
    let source = place.write("static.c", "int main(void) { return 0; }\n");
    let mut compiler = Command::new("gcc");
    compiler.arg("-static").arg(source).arg("-o").arg(place.path("static"));
    if !compiler.status().is_ok_and(|status| status.success()) {
        return skip("there is no gcc");
    }
    let own = "[[program]]\nname = 'static'\ncommand = ['./static']\n".to_owned();
    let tables = [own, program("dynamic", "", "true")];
    let ended = place.run(&tables, "--policy linux --barrier donate").ended().with(0);
    let told = "static is statically linked, so cosched's library cannot be in it";
    assert_eq!(ended.stderr.matches(told).count(), 1, "{}", ended.stderr);
    assert!(!ended.stderr.contains("dynamic is statically"), "{}", ended.stderr);
    let explained = place.cosched(&["explain", "out", "static"]).ended().with(0);
    assert!(explained.stdout.contains("No waits were seen there"), "{}", explained.stdout);
    assert!(!explained.stdout.contains("knew which"), "{}", explained.stdout);
}
