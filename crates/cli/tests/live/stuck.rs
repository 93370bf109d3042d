//! A cosched that is held up: stopped, traced, frozen, or without a reader of its output. No
//! program is left frozen meanwhile.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cosched_core::Refusal;
use cosched_linux::cgroup::{Dir, FreezeSwitch, Hierarchies};
use cosched_linux::kernel::procfs::Proc;
use rustix::fs::{CWD, FileType, mknodat};
use rustix::process::Signal;

use super::kills::{all_started, firsts, restored, start};
use super::support::{Backend, Cosched, Place, eventually, program, skip};

#[test]
fn a_cosched_that_is_stopped_and_continued_goes_on() {
    for backend in Backend::here() {
        let place = Place::new();
        let work = "i=0; while [ ! -e go ] || [ $i -lt 20 ]; do sleep 0.01; i=$((i+1)); done";
        let tables = ["a", "b"]
            .map(|name| program(name, "threads = 1", &format!("echo $$ > {name}; {work}")));
        let options = format!("--policy gang --quantum 5ms --freezer {}", backend.0);
        let cosched = place.run(&tables, &options);
        eventually("the programs", || !place.read("a").is_empty() && !place.read("b").is_empty());
        for _ in 0..5 {
            cosched.signal(Signal::STOP);
            eventually("cosched's stop", || place.marked().is_stopped(cosched.process()));
            cosched.signal(Signal::CONT);
        }
        place.write("go", "");
        let ended = cosched.ended().with(0);
        place.nothing_is_left_of(&ended);
    }
}

/// Two programs that take turns until there is a file `go`. One of them has been frozen already.
fn two_in_turns(place: &Place, freezer: &str) -> Cosched {
    let work = "while [ ! -e go ]; do sleep 0.01; done";
    let tables =
        ["a", "b"].map(|name| program(name, "threads = 1", &format!("echo > {name}; {work}")));
    let options = format!("--policy gang --quantum 50ms --max-frozen 30s --freezer {freezer}");
    let cosched = place.run(&tables, &options);
    eventually("the programs", || ["a", "b"].iter().all(|name| !place.read(name).is_empty()));
    let marked = place.marked();
    eventually("a freeze", || marked.programs().into_iter().any(|one| marked.is_held(one)));
    cosched
}

#[test]
fn programs_that_run_while_cosched_is_stopped_are_accounted() {
    while_held_up_programs_run(|coscheds, stopped| {
        coscheds.iter().for_each(|cosched| cosched.signal(Signal::STOP));
        std::thread::sleep(stopped);
        coscheds.iter().for_each(|cosched| cosched.signal(Signal::CONT));
    });
}

#[test]
fn programs_that_run_while_cosched_is_frozen_are_accounted() {
    let Some((own, dir)) = freezable_group() else { return };
    let switch = FreezeSwitch::open(&dir).unwrap();
    while_held_up_programs_run(|coscheds, stopped| {
        coscheds.iter().for_each(|cosched| dir.add(cosched.pid()).unwrap());
        switch.freeze().unwrap();
        std::thread::sleep(stopped);
        switch.thaw().unwrap();
        coscheds.iter().for_each(|cosched| own.add(cosched.pid()).unwrap());
    });
    eventually("an empty cgroup", || dir.remove().is_ok());
}

/// The cgroup of this test, and a new one that can be frozen; `None`, with a message, where there
/// is none.
fn freezable_group() -> Option<(Dir, Dir)> {
    let trees = Hierarchies::find(&Proc::default()).unwrap();
    let Some(tree) = trees.v1("freezer").or(trees.v2()) else {
        skip("no cgroup can be frozen here");
        return None;
    };
    match tree.own.create_child(&format!("test-freezes-{}", std::process::id())) {
        Ok(dir) => Some((tree.own.clone(), dir)),
        Err(_) => {
            skip("this user may make no cgroup");
            None
        }
    }
}

/// A run of two programs that take turns, for every freezer.
fn two_in_turns_with_each() -> (Vec<(Backend, Place)>, Vec<Cosched>) {
    let places: Vec<_> = Backend::here().into_iter().map(|one| (one, Place::new())).collect();
    let runs = places.iter().map(|(backend, place)| two_in_turns(place, backend.0)).collect();
    (places, runs)
}

/// Holds up cosched for some time, with every freezer; no program is frozen for long meanwhile.
fn while_held_up_programs_run(hold_up: impl Fn(&[Cosched], Duration)) {
    let stopped = Duration::from_secs(3);
    let (places, coscheds) = two_in_turns_with_each();
    hold_up(&coscheds, stopped);
    for ((backend, place), cosched) in places.into_iter().zip(coscheds) {
        place.write("go", "");
        let ended = cosched.ended().with(0);
        let result = ended.result();
        let longest = result.programs.iter().map(|p| p.longest_frozen_seconds);
        let longest = longest.fold(0.0, f64::max);
        assert!(longest < stopped.as_secs_f64() / 2.0, "{}: frozen for {longest} s", backend.0);
        let is_reported = |why| result.deviations.iter().any(|one| one.why == why);
        assert!(is_reported(Refusal::CoschedStopped), "{}", backend.0);
        place.nothing_is_left_of(&ended);
    }
}

#[test]
fn a_program_that_ends_while_cosched_is_stopped_ended_then() {
    let began = Instant::now();
    let (places, coscheds) = two_in_turns_with_each();
    for ((_, place), cosched) in places.iter().zip(&coscheds) {
        cosched.signal(Signal::STOP);
        eventually("cosched's stop", || place.marked().is_stopped(cosched.process()));
        place.write("go", "");
        // Their shims note when they end, and end then.
        eventually("the programs' end", || {
            let marked = place.marked();
            marked.programs().is_empty() && marked.named("shim").is_empty()
        });
    }
    let ended_within = began.elapsed();
    // The sentinels must have seen that cosched is stopped, however soon the programs ended.
    std::thread::sleep(Duration::from_secs(3));
    for ((backend, place), cosched) in places.into_iter().zip(coscheds) {
        cosched.signal(Signal::CONT);
        let ended = cosched.ended().with(0);
        let result = ended.result();
        let total = Duration::from_secs_f64(result.total_seconds);
        assert!(total <= ended_within, "{}: {total:?}, not {ended_within:?}", backend.0);
        let stop = result.deviations.iter().find(|one| one.why == Refusal::CoschedStopped);
        let at = stop.expect("the stop is told").at_seconds.to_string();
        let moment = place.cosched(&["explain", "out", "--at", &at]).ended().with(0).stdout;
        assert!(!moment.contains("about to be frozen"), "{}: {moment}", backend.0);
        // It may have been stopped in the middle of a switch: then the running program is in turn.
        let reasons = ["cosched itself was stopped", "it has its turn"];
        let is_explained = reasons.iter().any(|reason| moment.contains(reason));
        assert!(is_explained, "{}: {moment}", backend.0);
        place.nothing_is_left_of(&ended);
    }
}

#[test]
fn programs_that_run_while_cosched_is_traced_are_accounted() {
    let attach = "import ctypes, sys; c = ctypes.CDLL(None); \
        assert c.ptrace(16, int(sys.argv[1]), None, None) == 0; sys.stdin.read()";
    if !rustix::process::geteuid().is_root() {
        return skip("this user may not trace processes that are not its own children");
    }
    while_held_up_programs_run(|coscheds, stopped| {
        let trace = |cosched: &Cosched| {
            let mut tracer = Command::new("python3");
            tracer.args(["-c", attach, &cosched.pid().to_string()]);
            tracer.stdin(Stdio::piped()).spawn().unwrap()
        };
        let tracers: Vec<Child> = coscheds.iter().map(trace).collect();
        std::thread::sleep(stopped);
        for (mut tracer, cosched) in tracers.into_iter().zip(coscheds) {
            drop(tracer.stdin.take());
            assert!(tracer.wait().unwrap().success());
            // The stop with which tracing began is left.
            cosched.signal(Signal::CONT);
        }
    });
}

#[test]
fn a_replaced_frozen_sentinel_undoes_nothing_when_thawed() {
    let Some((_, dir)) = freezable_group() else { return };
    let switch = FreezeSwitch::open(&dir).unwrap();
    let place = Place::new();
    let cosched = start(&place, Backend("signals"));
    all_started(&place);
    let marked = place.marked();
    let [first] = marked.named("csentinel")[..] else { panic!("{:?}", marked.all()) };
    dir.add(first.pid).unwrap();
    switch.freeze().unwrap();
    eventually("another sentinel", || {
        marked.named("csentinel").iter().any(|sentinel| *sentinel != first)
    });
    switch.thaw().unwrap();
    eventually("the end of the first one", || !marked.lives(first));
    eventually("turns that go on", || firsts(&place).into_iter().any(|one| marked.is_held(one)));
    let pid = cosched.pid();
    cosched.kill();
    restored(&place, pid);
    marked.end();
    eventually("an empty cgroup", || dir.remove().is_ok());
}

/// A run in which cosched prints a message: a program leaves a process behind. `before` is a
/// command line in front of cosched's own, which determines its standard error.
fn says_something(place: &Place, before: &[&str]) -> Cosched {
    let last = "setsid sleep 1000 & sleep 0.1";
    let turns = "i=0; while [ $i -lt 20 ]; do sleep 0.01; i=$((i+1)); done";
    let tables =
        [("a", last), ("b", turns), ("c", turns)].map(|(name, script)| program(name, "", script));
    place.write("jobs.toml", tables.concat());
    let mut command = Command::new(before[0]);
    command.args(&before[1..]).arg(&place.executable).args(["run", "jobs.toml", "--out", "out"]);
    command.args(["--policy", "gang", "--quantum", "20ms", "--max-frozen", "30s"]);
    Cosched::start(command, place)
}

/// Has cosched's standard error be the pipe.
const INTO_THE_PIPE: [&str; 4] = ["sh", "-c", "exec \"$@\" 2>pipe", "sh"];

/// A pipe that takes no more until it is read.
fn full_pipe(place: &Place) -> File {
    let path = place.path("pipe");
    mknodat(CWD, &path, FileType::Fifo, 0o600.into(), 0).unwrap();
    let mut pipe = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc_nonblock())
        .open(&path)
        .unwrap();
    let full = loop {
        if let Err(error) = pipe.write_all(&[b'x'; 512]) {
            break error;
        }
    };
    assert_eq!(full.kind(), ErrorKind::WouldBlock);
    pipe
}

#[test]
fn programs_take_turns_while_coscheds_output_is_not_read() {
    let place = Place::new();
    let mut pipe = full_pipe(&place);
    let mut cosched = says_something(&place, &INTO_THE_PIPE);
    eventually("the result", || place.path("out/run.json").exists());
    // It may wait with its last message.
    eventually("its end", || {
        let _ = std::io::Read::read(&mut pipe, &mut [0; 4096]);
        cosched.has_ended()
    });
    cosched.ended().with(0);
    place.marked().end();
}

#[test]
fn programs_take_turns_while_the_terminal_is_paused() {
    let place = Place::new();
    let paused = "import os, pty, subprocess, sys, termios, threading\n\
        shown, terminal = pty.openpty()\n\
        termios.tcflow(terminal, termios.TCOOFF)\n\
        run = subprocess.Popen(sys.argv[1:], stderr=terminal)\n\
        while not os.path.exists('out/run.json'): pass\n\
        termios.tcflow(terminal, termios.TCOON)\n\
        def read():\n\
        \x20 while os.read(shown, 1 << 16): pass\n\
        threading.Thread(target=read, daemon=True).start()\n\
        sys.exit(run.wait())";
    says_something(&place, &["python3", "-c", paused]).ended().with(0);
    place.marked().end();
}

/// Starts a run that has a message before the start, and ends it by SIGINT.
#[track_caller]
fn starts_and_ends(place: &Place, before: &[&str]) {
    place.write("jobs.toml", program("a", "", "touch started; exec sleep 1000"));
    let mut command = Command::new(before[0]);
    command.args(&before[1..]).arg(&place.executable).args(["run", "jobs.toml"]);
    command.args(["--metrics", "127.0.0.1:0"]);
    let cosched = Cosched::start(command, place);
    eventually("the program", || place.path("started").exists());
    cosched.signal(Signal::INT);
    place.nothing_is_left_of(&cosched.ended().with(130));
}

#[test]
fn programs_start_while_coscheds_output_is_not_read() {
    let place = Place::new();
    let _pipe = full_pipe(&place);
    starts_and_ends(&place, &INTO_THE_PIPE);
}

#[test]
fn programs_start_while_the_terminal_is_paused() {
    let paused = "import os, pty, sys, termios\n\
        shown, terminal = pty.openpty()\n\
        termios.tcflow(terminal, termios.TCOOFF)\n\
        os.set_inheritable(shown, True)\n\
        os.dup2(terminal, 2)\n\
        os.execvp(sys.argv[1], sys.argv[1:])";
    starts_and_ends(&Place::new(), &["python3", "-c", paused]);
}

/// A comparison has blocked signals when it prints its result.
#[test]
fn a_signal_ends_the_wait_for_a_reader_of_the_result() {
    let place = Place::new();
    let _pipe = full_pipe(&place);
    let script = "exec \"$@\" >pipe";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).arg(&place.executable);
    command.args(["compare", "--policies", "linux", "--runs", "1", "--", "touch", "ended"]);
    let mut cosched = Cosched::start(command, &place);
    eventually("the program", || place.path("ended").exists());
    eventually("the end by a signal", || {
        cosched.signal(Signal::TERM);
        cosched.has_ended()
    });
}

fn libc_nonblock() -> i32 {
    rustix::fs::OFlags::NONBLOCK.bits() as i32
}
