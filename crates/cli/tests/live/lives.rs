//! How programs live and end: whatever they do, it is handled and reported.

use cosched_core::{Aspect, Exit, Refusal};
use rustix::process::Signal;

use super::support::{Backend, Place, eventually, program};

/// Work that takes several quanta of its own.
const WORK: &str = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";
/// Work without end.
const SPIN: &str = "while :; do :; done";

/// A gang policy with short quanta and this freezer: every program is frozen again and again.
fn gang(backend: Backend) -> String {
    format!("--policy gang --quantum 10ms --freezer {}", backend.0)
}

#[test]
fn exit_statuses_and_signals_are_reported_and_fail_the_run() {
    for backend in Backend::here() {
        let place = Place::new();
        let tables = [
            program("status", "threads = 1", &format!("{WORK}; exit 3")),
            program("signal", "threads = 1", &format!("{WORK}; kill -USR1 $$")),
            program("fine", "threads = 1", WORK),
        ];
        let ended = place.run(&tables, &gang(backend)).ended().with(1);
        let result = ended.result();
        let ends: Vec<_> = result.programs.iter().map(|p| (p.exit_status, p.exit)).collect();
        let expected = [
            (Some(3), Some(Exit::Code(3))),
            (Some(138), Some(Exit::Signal(10))),
            (Some(0), Some(Exit::Code(0))),
        ];
        assert_eq!(ends, expected, "{backend:?}");
        place.nothing_is_left_of(&ended);
    }
}

#[test]
fn a_program_stays_the_same_after_exec() {
    let place = Place::new();
    let script = format!("{WORK}; exec sh -c 'echo $$ $PPID > second; {WORK}; exit 7'");
    let tables = [
        program("becomes", "threads = 1", &format!("echo $$ $PPID > first; {script}")),
        program("other", "threads = 1", WORK),
    ];
    let ended = place.run(&tables, "--policy gang --quantum 10ms").ended().with(1);
    assert_eq!(ended.result().programs[0].exit_status, Some(7));
    assert_eq!(place.read("first"), place.read("second"));
}

#[test]
fn a_daemon_does_not_delay_the_end_and_is_left_running() {
    for backend in Backend::here() {
        let place = Place::new();
        // Two forks and a session of its own.
        let daemon = format!(
            "(setsid sh -c 'echo $$ > daemon; {SPIN}' &); while [ ! -s daemon ]; do sleep 0.01; \
             done"
        );
        let tables = [
            program("daemonises", "threads = 1", &format!("{daemon}; {WORK}")),
            program("other", "threads = 1", WORK),
        ];
        let ended = place.run(&tables, &gang(backend)).ended().with(0);
        ended.result();
        let result = ended.result();
        assert!(result.programs[0].left_running && !result.programs[1].left_running, "{backend:?}");
        assert!(ended.stderr.contains("daemonises ended and left 1 process running"));
        let marked = place.marked();
        let [daemon] = marked.programs()[..] else { panic!("{:?}", marked.all()) };
        assert_eq!(place.read("daemon").trim(), daemon.pid.to_string());
        assert!(!marked.is_held(daemon));
        let before = marked.ticks(daemon);
        eventually("the daemon's going on", || marked.ticks(daemon) > before);
        assert_eq!(marked.cpus(daemon), Some(cosched_linux::kernel::affinity::get(0).unwrap()));
        eventually("the helpers' end", || marked.all().len() == 1);
        place.no_trace_is_left_of(ended.pid);
    }
}

#[test]
fn a_background_job_of_a_script_is_part_of_the_program() {
    for backend in Backend::here() {
        let place = Place::new();
        let late = "while [ ! -e soon ]; do sleep 0.01; done; sleep 0.5; echo late";
        let tables = [
            program("script", "threads = 1", &format!("({late}) & echo soon; touch soon")),
            program("other", "threads = 1", WORK),
        ];
        let ended = place.run(&tables, &gang(backend)).ended().with(0);
        let script = &ended.result().programs[0];
        assert!(script.turnaround_seconds.unwrap() >= 0.5, "{backend:?}");
        assert!(!script.left_running);
        assert_eq!(place.read("out/script.stdout"), "soon\nlate\n");
        place.nothing_is_left_of(&ended);
    }
}

#[test]
fn a_self_stopped_program_is_unchanged_until_continued() {
    for backend in Backend::here() {
        let place = Place::new();
        let stops = "echo $$ > pid; kill -STOP $$; echo went on";
        let tables = [
            program("stops", "threads = 1", stops),
            // It comes later, so that no SIGSTOP of cosched's coincides with the program's own: the
            // two would be indistinguishable.
            program(
                "other",
                &format!("{}\nstart = '1s'", everything()),
                &format!("{WORK}; touch ran"),
            ),
        ];
        let mut cosched = place.run(&tables, &gang(backend));
        eventually("the stop", || {
            let marked = place.marked();
            let pid = place.read("pid").trim().parse().unwrap_or(0);
            marked.programs().iter().any(|p| p.pid == pid && marked.is_stopped(*p))
        });
        let marked = place.marked();
        let pid: i32 = place.read("pid").trim().parse().unwrap();
        let stopped = marked.programs().into_iter().find(|p| p.pid == pid).unwrap();
        let noticed = || {
            assert_eq!(place.read("out/stops.stdout"), "", "continued on {backend:?}");
            assert!(!cosched.has_ended());
            place.has_noted("stopped-by-other") && place.path("ran").exists()
        };
        eventually("that cosched has noticed", noticed);
        // Its parent waits for it, and has to know now.
        let said = || place.read("cosched.stderr").contains("stops was stopped by another process");
        eventually("that cosched has said so", said);
        marked.signal(stopped, Signal::CONT);
        let ended = cosched.ended().with(0);
        assert_eq!(place.read("out/stops.stdout"), "went on\n");
        let result = ended.result();
        let mut deviations = result.deviations.iter().map(|d| (d.program.slot, d.what, d.why));
        let stopped = (0, Aspect::Running, Refusal::StoppedByOther);
        assert!(deviations.any(|d| d == stopped), "{:?}", result.deviations);
        place.nothing_is_left_of(&ended);
    }
}

#[test]
fn a_program_that_ignores_sigterm_is_killed_after_its_grace() {
    for backend in Backend::here() {
        let place = Place::new();
        let stubborn = format!("trap '' TERM; echo $$ > stubborn; {SPIN}");
        let polite = format!("trap 'exit 9' TERM; echo $$ > polite; {SPIN}");
        let tables = [
            program("stubborn", "threads = 1", &stubborn),
            program("polite", "threads = 1", &polite),
        ];
        // Long enough for the polite one on a busy machine.
        let cosched = place.run(&tables, &format!("{} --grace 1s", gang(backend)));
        eventually("both programs", || {
            !place.read("stubborn").is_empty() && !place.read("polite").is_empty()
        });
        cosched.signal(Signal::TERM);
        let ended = cosched.ended().with(143);
        let result = ended.result();
        let statuses: Vec<_> = result.programs.iter().map(|p| p.exit_status).collect();
        assert_eq!(statuses, [Some(137), Some(9)], "{backend:?}");
        assert_eq!(result.interrupted_by.as_deref(), Some("SIGTERM"));
        place.nothing_is_left_of(&ended);
    }
}

#[test]
fn a_program_killed_while_frozen_counts_as_killed() {
    for backend in Backend::here() {
        let place = Place::new();
        let tables = [
            program("victim", "threads = 1", &format!("echo $$ > victim; {SPIN}")),
            program("other", "threads = 1", "while [ ! -e killed ]; do sleep 0.01; done"),
        ];
        let cosched = place.run(&tables, &gang(backend));
        eventually("the victim", || !place.read("victim").is_empty());
        let pid: i32 = place.read("victim").trim().parse().unwrap();
        let marked = place.marked();
        let victim = marked.programs().into_iter().find(|p| p.pid == pid).unwrap();
        eventually("a freeze", || marked.is_held(victim));
        marked.signal(victim, Signal::KILL);
        place.write("killed", "");
        let ended = cosched.ended().with(1);
        let result = ended.result();
        assert_eq!(result.programs[0].exit_status, Some(137), "{backend:?}");
        assert_eq!(result.programs[1].exit_status, Some(0));
        place.nothing_is_left_of(&ended);
    }
}

#[test]
fn programs_that_fork_without_end_are_frozen() {
    for backend in Backend::here() {
        let place = Place::new();
        // Children that are born while their parent is being frozen, waited for and not.
        let forks = "i=0; while [ $i -lt 1000 ]; do (:); (:) & i=$((i+1)); done; wait; echo $i";
        let tables = ["a", "b"].map(|name| program(name, "threads = 1", forks));
        // Each requests the whole machine for its turn.
        let tables = tables.map(|table| table.replace("threads = 1", &everything()));
        let ended = place.run(&tables, &gang(backend)).ended().with(0);
        for name in ["a", "b"] {
            assert_eq!(place.read(&format!("out/{name}.stdout")), "1000\n", "{backend:?}");
        }
        let turns = ended.result().programs.iter().map(|p| p.timeline.len()).min();
        assert!(turns.unwrap() > 2, "no program was frozen");
        place.nothing_is_left_of(&ended);
    }
}

#[test]
fn a_frozen_program_that_forks_in_every_process_does_not_escape() {
    for backend in Backend::here() {
        let place = Place::new();
        // A chain: each process starts the next in a session of its own and ends, so no parent is
        // left that knows.
        let chain = "n=$1; [ $n -gt 0 ] || { echo end; exit 0; }; setsid sh chain.sh $((n-1)) &";
        place.write("chain.sh", chain);
        let start = "sh chain.sh 150; while [ ! -s out/a.stdout ]; do sleep 0.01; done";
        let tables = [program("a", &everything(), start), program("b", &everything(), WORK)];
        let ended = place.run(&tables, &gang(backend)).ended().with(0);
        assert_eq!(place.read("out/a.stdout"), "end\n", "{backend:?}");
        place.nothing_is_left_of(&ended);
    }
}

#[test]
fn a_failed_exec_does_not_keep_other_programs_from_running() {
    let place = Place::new();
    place.write("broken", "#!/bin/sh\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.path("broken"), mode).unwrap();
    let broken = "[[program]]\nname = 'broken'\ncommand = ['./broken']\nthreads = 1\n".to_owned();
    // It is there when it is checked, and gone when its turn comes.
    let tables = [program("fine", "threads = 1", "rm broken; echo fine"), broken];
    let ended = place.run(&tables, "--policy fcfs").ended().with(1);
    let ended = ended.saying(&["broken could not be started", "cannot be executed"]);
    let result = ended.result();
    assert_eq!(result.programs[1].exit_status, Some(127));
    assert_eq!(place.read("out/fine.stdout"), "fine\n");
    place.nothing_is_left_of(&ended);
}

/// The keys of a program that requests all CPUs.
fn everything() -> String {
    format!("threads = {}", cosched_linux::kernel::affinity::get(0).unwrap().len())
}
