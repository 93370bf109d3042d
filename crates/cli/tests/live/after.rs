//! The key `after` of a workload file: programs that start when others have ended.

use cosched_core::engine::outcome::Missing;
use cosched_results::result::{AfterResult, NotStartedResult, ProgramResult, RunResult};
use rustix::process::Signal;

use super::support::{Place, eventually, program};

/// What each program reads, the one before it has written.
fn pipeline() -> [String; 3] {
    [
        program("last", "after = ['middle']\nstdin = 'two'\nstdout = 'three'", "cat; echo last"),
        program("first", "stdout = 'one'", "echo first"),
        program("middle", "after = ['first']\nstdin = 'one'\nstdout = 'two'", "cat; echo middle"),
    ]
}

fn ended_at(program: &ProgramResult) -> f64 {
    program.arrived_seconds + program.turnaround_seconds.unwrap()
}

#[test]
fn each_program_starts_when_the_one_before_it_has_ended() {
    for policy in ["turns", "linux", "fcfs", "gang", "auto", "faithful"] {
        let place = Place::new();
        let ended = place.run(&pipeline(), &format!("--policy {policy}")).ended().with(0);
        assert_eq!(place.read("three"), "first\nmiddle\nlast\n", "{policy}");
        let result = ended.result();
        let [last, first, middle] = &result.programs[..] else { panic!("three programs") };
        for (one, next) in [(first, middle), (middle, last)] {
            let (ended, came) = (ended_at(one), next.arrived_seconds);
            assert!((came - ended).abs() < 5e-6, "{policy}: ended at {ended}, came at {came}");
        }
        let after = AfterResult { program: "first".into(), any_exit: false };
        assert_eq!(middle.after, [after]);
        place.nothing_is_left_of(&ended);
    }
}

#[test]
fn after_a_failure_only_programs_that_allow_any_exit_start() {
    let place = Place::new();
    let tables = [
        program("a", "repeat = 2", "echo a >> ran; [ $(wc -l < ran) = 2 ] || exit 3"),
        program("b", "after = ['a']", "echo b >> ran"),
        program("c", "after = ['b']", "echo c >> ran"),
        program("clean", "after = [{ program = 'c', exit = 'any' }]", "echo clean >> ran"),
    ];
    let ended = place.run(&tables, "").ended().with(1);
    assert_eq!(place.read("ran"), "a\na\nclean\n");
    for expected in ["not started: a failed", "not started: b was not started"] {
        assert!(ended.stdout.contains(expected), "{}", ended.stdout);
    }
    let result = ended.result();
    let [a, b, c, clean] = &result.programs[..] else { panic!("four programs") };
    let why = |name: &str, why| Some(NotStartedResult { program: name.into(), why });
    assert_eq!((&b.not_started, &a.not_started), (&why("a", Missing::Failed), &None));
    assert_eq!(c.not_started, why("b", Missing::NotStarted));
    assert_eq!((b.exit, b.started_seconds, b.turnaround_seconds), (None, None, None));
    assert!(b.arrived_seconds <= clean.arrived_seconds);
    let explained = place.cosched(&["explain", "out"]).ended().with(0).stdout;
    assert!(explained.contains("b was not started: a failed."), "{explained}");
    let explained = place.cosched(&["explain", "out", "--program", "clean"]).ended().with(0).stdout;
    assert!(explained.contains(", after c had ended."), "{explained}");
    let replay = ["sim", "--from", "out", "--policy", "linux", "--out", "answer"];
    place.cosched(&replay).ended().with(0);
    let answer = RunResult::load(&place.path("answer/run.json")).unwrap();
    let after = AfterResult { program: "a".into(), any_exit: true };
    assert_eq!((answer.programs.len(), &answer.programs[1].after), (2, &vec![after]));
    place.nothing_is_left_of(&ended);
}

#[test]
fn an_interruption_starts_nothing_that_waits() {
    let place = Place::new();
    let tables = [
        program("a", "", "echo > a; exec sleep 1000"),
        program("b", "after = [{ program = 'a', exit = 'any' }]", "touch b"),
    ];
    let started = place.run(&tables, "--grace 1s");
    eventually("the first program", || !place.read("a").is_empty());
    started.signal(Signal::INT);
    let ended = started.ended().with(130);
    assert!(!place.path("b").exists());
    let why = NotStartedResult { program: "a".into(), why: Missing::Interrupted };
    assert_eq!(ended.result().programs[1].not_started, Some(why));
    let expected = "not started: the run was interrupted before a had ended";
    assert!(ended.stdout.contains(expected), "{}", ended.stdout);
    place.nothing_is_left_of(&ended);
}

#[test]
fn a_cycle_is_refused_before_anything_starts() {
    let place = Place::new();
    let tables = [
        program("a", "", "touch started"),
        program("b", "after = ['c']", ":"),
        program("c", "after = ['b']", ":"),
    ];
    let ended = place.run(&tables, "").ended().with(2);
    let expected = "jobs.toml:8:10: program 2 (b): after makes a cycle";
    ended.saying(&[expected, "(b after c after b); take one of these names out"]);
    assert!(!place.path("started").exists());
}

#[test]
fn an_input_that_another_program_makes_must_come_after_it() {
    let place = Place::new();
    let tables =
        [program("a", "stdout = 'one'", "touch started"), program("b", "stdin = 'one'", "cat")];
    let ended = place.run(&tables, "").ended().with(2);
    let expected = ["which is the stdout of program 1 (a); start this one later: after = [\"a\"]"];
    ended.saying(&expected);
    assert!(!place.path("started").exists());
}

#[test]
fn other_commands_work_with_the_keys_or_refuse_them_by_name() {
    let place = Place::new();
    place.write("jobs.toml", pipeline().concat());
    let compare = ["compare", "jobs.toml", "--policies", "linux,fcfs", "--runs", "1"];
    place.cosched(&[&compare[..], &["--out", "all"]].concat()).ended().with(0);
    for policy in ["linux", "fcfs"] {
        let written = place.read(&format!("all/{policy}/last.stdout"));
        assert_eq!(written, "first\nmiddle\nlast\n");
    }
    assert!(!place.path("one").exists());
    let expected =
        ["stdin is", "two, which is the stdout of program 3 (middle); programs are run alone here"];
    let profile = place.cosched(&["profile", "jobs.toml"]).ended().with(2);
    profile.saying(&expected);
    let solo = place.cosched(&[&compare[..], &["--solo"]].concat()).ended().with(2);
    solo.saying(&expected);
    let advise = place.cosched(&["advise", "jobs.toml"]).ended().with(2);
    let refused = ["program 1 (last): after: `cosched advise` predicts", "leave the key out"];
    advise.saying(&refused).saying(&expected);
    for name in ["one", "two"] {
        place.write(name, "made before\n");
    }
    place.cosched(&["profile", "jobs.toml"]).ended().with(0);
}
