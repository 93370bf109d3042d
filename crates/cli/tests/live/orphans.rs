//! Shims are killed: cosched takes their place, and no program escapes.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use cosched_linux::process::tree::Process;
use rustix::process::Signal;

use super::support::{Backend, Marked, Place, eventually, program};

const SPIN: &str = "while :; do :; done";

fn options(backend: Backend) -> String {
    format!("--policy gang --quantum 5ms --grace 300ms --freezer {}", backend.0)
}

/// The first process of a program that has written its number and its parent's to the file `name`,
/// and its shim.
fn couple(place: &Place, name: &str) -> (Process, Process) {
    eventually("a program", || place.read(name).ends_with('\n'));
    let pids: Vec<i32> = place.read(name).split_whitespace().map(|p| p.parse().unwrap()).collect();
    let find = |all: Vec<Process>, pid| all.into_iter().find(|process| process.pid == pid).unwrap();
    (find(place.marked().programs(), pids[0]), find(place.marked().named("shim"), pids[1]))
}

/// Kills the shim of a program. Returns the process that it leaves.
fn bereave(place: &Place, name: &str) -> Process {
    let (main, shim) = couple(place, name);
    place.marked().signal(shim, Signal::KILL);
    eventually("the shim's end", || !place.marked().lives(shim));
    main
}

/// Waits until a process has been frozen, and has run afterwards.
fn takes_a_turn(marked: &Marked, process: Process) {
    eventually("a freeze", || marked.is_held(process));
    let before = marked.ticks(process);
    eventually("a turn", || marked.ticks(process) > before);
}

#[test]
fn a_program_with_a_killed_shim_still_takes_turns() {
    for backend in Backend::here() {
        let place = Place::new();
        let wait = "while [ ! -e finish ]; do :; done";
        let late = "(while [ ! -e killed ]; do sleep 0.01; done; echo late; touch said) &";
        let script = format!("{late} echo $$ $PPID > a; {wait}; exit 7");
        let tables = [
            program("a", "threads = 1", &script),
            program("b", "threads = 1", &format!("echo $$ $PPID > b; {wait}")),
        ];
        let cosched = place.run(&tables, &options(backend));
        couple(&place, "b");
        let a = bereave(&place, "a");
        place.write("killed", "");
        (0..3).for_each(|_| takes_a_turn(&place.marked(), a));
        eventually("a late word", || place.path("said").exists());
        place.write("finish", "");
        let ended =
            cosched.ended().with(1).saying(&["a lost its parent process", "takes its place"]);
        let result = ended.result();
        let [a, b] = &result.programs[..] else { panic!() };
        assert_eq!((a.exit_status, b.exit_status), (Some(7), Some(0)), "{backend:?}");
        assert!(!a.left_running && !b.left_running);
        assert_eq!(place.read("out/a.stdout"), "late\n");
        place.nothing_is_left_of(&ended);
    }
}

#[test]
fn ctrl_c_ends_all_processes_of_programs_with_killed_shims() {
    for backend in Backend::here() {
        let place = Place::new();
        // A job without its parent is an orphan of its own.
        let tables = ["a", "b"].map(|name| {
            let script = format!("(sleep 1000 &); echo $$ $PPID > {name}; {SPIN}");
            program(name, "threads = 1", &script)
        });
        // On a busy machine, they need time to end by themselves.
        let options = options(backend).replace("300ms", "1s");
        let cosched = place.run(&tables, &options);
        let (marked, couples) = (place.marked(), ["a", "b"].map(|name| couple(&place, name)));
        couples.iter().for_each(|(_, shim)| marked.signal(*shim, Signal::KILL));
        couples.iter().for_each(|(main, _)| takes_a_turn(&marked, *main));
        cosched.signal(Signal::INT);
        let ended = cosched.ended().with(130);
        let result = ended.result();
        for program in &result.programs {
            assert_eq!(
                (program.exit_status, program.left_running),
                (Some(130), false),
                "{backend:?}"
            );
        }
        place.nothing_is_left_of(&ended);
    }
}

#[test]
fn a_program_does_not_escape_when_its_shim_is_killed() {
    for backend in Backend::here() {
        for step in 0..8 {
            let place = Place::new();
            let tables = ["a", "b"].map(|name| {
                program(name, "threads = 1", &format!("touch {name}; exec sleep 1000"))
            });
            let cosched = place.run(&tables, &options(backend));
            eventually("a helper", || place.has_noted("program"));
            let marked = place.marked();
            let helpers = [marked.named("exe"), marked.named("shim")].concat();
            std::thread::sleep(std::time::Duration::from_micros(300 * step));
            let first = helpers.into_iter().min_by_key(|helper| helper.pid);
            first.into_iter().for_each(|shim| marked.signal(shim, Signal::KILL));
            eventually("the second program", || place.path("b").exists());
            cosched.signal(Signal::TERM);
            place.nothing_is_left_of(&cosched.ended().with(143));
        }
    }
}

/// Processes in sessions of their own are neither stopped nor bound after cosched and a shim were
/// killed together.
#[test]
fn killing_cosched_with_shims_leaves_no_session_frozen_or_bound() {
    for backend in Backend::here() {
        let place = Place::new();
        let stray =
            |name: &str| format!("setsid sh -c 'trap \"\" HUP; echo $$ > {name}; {SPIN}' &");
        let script = |name: &str| {
            format!(
                "trap '' HUP; ({}); echo $$ $PPID > {name}; {SPIN}",
                stray(&format!("{name}-stray"))
            )
        };
        // Each is bound to half of the CPUs of a small machine, and they take turns there.
        let tables = ["a", "b", "c"].map(|name| program(name, "threads = 1", &script(name)));
        let options = options(backend).replace("gang", "greedy");
        let cosched = place.run(&tables, &options);
        let (_, shim) = couple(&place, "a");
        let strays = ["a-stray", "b-stray", "c-stray"];
        eventually("the strays", || strays.iter().all(|name| place.read(name).ends_with('\n')));
        let marked = place.marked();
        let numbers = strays.map(|name| place.read(name).trim().parse::<i32>().unwrap());
        let strays: Vec<Process> =
            marked.programs().into_iter().filter(|p| numbers.contains(&p.pid)).collect();
        for stray in &strays {
            takes_a_turn(&marked, *stray);
        }
        eventually("a freeze", || marked.is_held(strays[0]));
        let pid = cosched.pid();
        marked.signal(shim, Signal::KILL);
        cosched.kill();
        eventually("the sentinel's end", || marked.named("csentinel").is_empty());
        let all = cosched_linux::kernel::affinity::get(0).unwrap();
        for stray in strays {
            assert!(marked.lives(stray) && !marked.is_held(stray), "{backend:?} {stray}");
            assert_eq!(marked.cpus(stray), Some(all), "{backend:?} {stray}");
        }
        place.no_trace_is_left_of(pid);
    }
}

/// The shim is killed first. Then cosched, which has taken over the processes of the shim, is
/// killed, too.
#[test]
fn orphans_of_a_killed_shim_are_thawed_after_sigkill() {
    for backend in Backend::here() {
        let place = Place::new();
        // The kernel sends SIGHUP to a stopped program when its parent ends.
        let daemon = format!("setsid sh -c 'trap \"\" HUP; echo $$ > daemon; {SPIN}' &");
        let tables = [
            program(
                "a",
                "threads = 1",
                &format!("trap '' HUP; ({daemon}); echo $$ $PPID > a; {SPIN}"),
            ),
            program("b", "threads = 1", SPIN),
        ];
        let cosched = place.run(&tables, &options(backend));
        let main = bereave(&place, "a");
        eventually("the daemon", || {
            place.read("daemon").ends_with('\n') && place.has_noted("orphan")
        });
        let marked = place.marked();
        let daemon: i32 = place.read("daemon").trim().parse().unwrap();
        let daemon = marked.programs().into_iter().find(|process| process.pid == daemon).unwrap();
        eventually("a freeze of both", || marked.is_held(main) && marked.is_held(daemon));
        let pid = cosched.pid();
        cosched.kill();
        eventually("the sentinel's end", || marked.named("csentinel").is_empty());
        for process in [main, daemon] {
            assert!(marked.lives(process) && !marked.is_held(process), "{backend:?}");
        }
        place.no_trace_is_left_of(pid);
    }
}

/// Wherever the other one keeps its logs, and whenever they are born.
#[test]
fn what_a_killed_shim_leaves_is_not_taken_by_another_cosched() {
    let place = Place::new();
    let until = |file: &str| format!("while [ ! -e {file} ]; do sleep 0.01; done");
    let (go, finish) = (until("go"), until("finish"));
    let daemon = |name: &str| format!("(setsid sh -c 'echo $$ > {name}; {finish}' &)");
    let (early, late) = (daemon("early"), daemon("late"));
    let script = format!("{early}; echo $$ $PPID > a; {go}; {late}; {finish}");
    let cosched = place.run(&[program("a", "threads = 1", &script)], "--policy linux");
    let is_there = |name: &str| place.read(name).ends_with('\n');
    eventually("the daemon", || is_there("early"));
    let main = bereave(&place, "a");
    eventually("a word on it", || place.read("cosched.stderr").contains("takes its place"));
    place.write("go", "");
    eventually("the other daemon", || is_there("late"));
    std::fs::create_dir_all(place.path("elsewhere")).unwrap();
    for pid in [&main.pid.to_string(), place.read("early").trim(), place.read("late").trim()] {
        for runtime in ["run", "elsewhere"] {
            let mut attach = Command::new(&place.executable);
            attach.args(["attach", "--policy", "linux", pid]).current_dir(place.folder());
            let refused = attach.env("XDG_RUNTIME_DIR", place.path(runtime)).output().unwrap();
            let said = String::from_utf8_lossy(&refused.stderr);
            assert!(said.contains("another cosched"), "{runtime}: {said}");
            assert_eq!(refused.status.code(), Some(2));
        }
    }
    place.write("finish", "");
    place.nothing_is_left_of(&cosched.ended().with(0));
}

/// Its shim is killed, too. One of its shims lives on, below the outer run.
#[test]
fn a_killed_run_inside_a_run_is_not_taken_by_another_cosched() {
    let place = Place::new();
    let wait = "while [ ! -e finish ]; do sleep 0.01; done";
    place.write("work", format!("echo $$ > inner; {wait}"));
    let script = format!(
        "\"{}\" run --quiet --policy linux -- sh work 2>&1 & echo $! > cosched; wait; {wait}",
        place.executable.display()
    );
    let cosched = place.run(&[program("outer", "threads = 1", &script)], "--policy linux");
    eventually("the program and its cosched", || {
        ["inner", "cosched"].iter().all(|name| place.read(name).ends_with('\n'))
    });
    let number = |name: &str| place.read(name).trim().parse::<i32>().unwrap();
    let inner = place.marked().all().into_iter().find(|one| one.pid == number("cosched")).unwrap();
    // What the sentinel undoes does not matter here.
    place.marked().signal(inner, Signal::KILL);
    eventually("its end", || !place.marked().lives(inner));
    std::fs::create_dir_all(place.path("elsewhere")).unwrap();
    let mut attach = Command::new(&place.executable);
    attach.args(["attach", "--policy", "linux", &number("inner").to_string()]);
    attach.env("XDG_RUNTIME_DIR", place.path("elsewhere")).current_dir(place.folder());
    let refused = attach.output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("another cosched"), "{said}");
    place.write("finish", "");
    place.nothing_is_left_of(&cosched.ended().with(0));
}

/// Also after the shim of another program was killed.
#[test]
fn a_detached_program_of_a_run_can_be_attached() {
    for killed in [false, true] {
        let place = Place::new();
        let wait = "while [ ! -e finish ]; do sleep 0.01; done";
        let tables = ["a", "b"]
            .map(|name| program(name, "threads = 1", &format!("echo $$ $PPID > {name}; {wait}")));
        let cosched = place.run(&tables, "--policy linux");
        let (main, _) = couple(&place, "b");
        couple(&place, "a");
        if killed {
            bereave(&place, "a");
            eventually("a word", || place.read("cosched.stderr").contains("takes its place"));
        }
        place.cosched(&["detach", &main.pid.to_string()]).ended().with(0);
        // Its outputs go elsewhere: the files of the place are the run's.
        let mut attach = Command::new(&place.executable);
        attach.args(["attach", "--policy", "linux", &main.pid.to_string()]);
        attach.env("XDG_RUNTIME_DIR", place.path("run")).current_dir(place.folder());
        let mut attach = attach.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let has_program = |log: &PathBuf| {
            std::fs::read_to_string(log).is_ok_and(|text| text.contains("{\"main\":"))
        };
        // It ends where it is refused.
        eventually("the attachment", || {
            let with_program = place.undo_logs().into_iter().filter(has_program).count();
            with_program == 2 || attach.try_wait().unwrap().is_some()
        });
        place.write("finish", "");
        let attached = attach.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&attached.stderr);
        assert_eq!(attached.status.code(), Some(0), "{said}");
        place.nothing_is_left_of(&cosched.ended());
    }
}
