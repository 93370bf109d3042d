//! IPC dependencies: programs that share a pipe run together, and programs that serve others are
//! left running.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use cosched_core::{Aspect, Refusal};
use cosched_results::result::TimelineEntry;

use super::support::{Backend, Place, STAMPS, User, blocks, eventually, program, skip};

/// The distribution's; another one in `PATH` may need a home to start from.
const PYTHON: &str = "/usr/bin/python3";

const SHARE: &str = "writer and reader share pipes, sockets or memory: they run together";
const LOCK: &str = "one and two use the same file lock: they run together";

fn everything() -> String {
    format!("threads = {}", cosched_linux::kernel::affinity::get(0).unwrap().len())
}

#[test]
fn programs_that_share_a_named_pipe_run_together() {
    for backend in Backend::here() {
        let place = Place::new();
        let made = Command::new("mkfifo").arg(place.path("pipe")).status().unwrap();
        assert!(made.success());
        let writer = "exec 3<>pipe; while [ ! -e opened ]; do sleep 0.002; done; \
            while [ ! -e stop ]; do echo line >&3; sleep 0.002; done; echo end >&3";
        let reader =
            "exec 3<>pipe; touch opened; while [ \"$line\" != end ]; do read line <&3; done";
        let other = "while [ ! -e tied ]; do sleep 0.005; done; \
            i=0; while [ $i -lt 100 ]; do sleep 0.005; i=$((i+1)); done; touch stop";
        let tables = [
            program("writer", &everything(), writer),
            program("reader", &everything(), reader),
            program("other", &everything(), other),
        ];
        let options = format!("--policy gang --quantum 10ms --freezer {}", backend.0);
        let cosched = place.run(&tables, &options);
        eventually("a group of the two", || place.read("cosched.stderr").contains(SHARE));
        place.write("tied", "");
        let ended = cosched.ended().with(0);
        assert_eq!(ended.stderr.matches("they run together").count(), 1, "{}", ended.stderr);
        // Before that they took turns like all others, and never ran at the same time.
        let result = ended.result();
        let [writer, reader, _] = &result.programs[..] else { panic!() };
        assert!(shared_seconds(&writer.timeline, &reader.timeline) > 0.01, "{backend:?}");
        place.nothing_is_left_of(&ended);
    }
}

#[test]
fn programs_that_wait_in_open_for_each_other_get_together() {
    for user in [User::Caller, User::ordinary()] {
        for backend in Backend::here() {
            if matches!(user, User::Ordinary(_)) && backend != Backend("signals") {
                continue;
            }
            let place = Place::of(user.clone());
            let made = Command::new("mkfifo").args(["-m", "666"]).arg(place.path("pipe")).status();
            assert!(made.unwrap().success());
            // Neither holds a descriptor of the pipe before the other one is there, too.
            let tables = [
                program("writer", &everything(), "head -c 2000000 /dev/zero > pipe"),
                program("reader", &everything(), "cat pipe | wc -c"),
                program("other", &everything(), STAMPS),
            ];
            let options = format!("--policy gang --quantum 10ms --freezer {}", backend.0);
            let ended = place.run(&tables, &options).ended().with(0);
            assert_eq!(place.read("out/reader.stdout").trim(), "2000000", "{backend:?}");
            place.nothing_is_left_of(&ended);
        }
    }
}

/// A program with a thread that computes for so many seconds with the lock of a file, again and
/// again, until there is a file that stops it.
fn locker(name: &str, kind: &str, held: f64) -> String {
    let text = format!(
        "import fcntl, os, struct, time\n\
        def ofd(lock, how):\n \
         how = fcntl.F_WRLCK if how == fcntl.LOCK_EX else fcntl.F_UNLCK\n \
         fcntl.fcntl(lock, 38, struct.pack(\"hhqqi\", how, 0, 0, 0, 0))\n\
        fcntl.ofd = ofd\n\
        lock = open(\"lock\", \"w\")\n\
        while not os.path.exists(\"stop\"):\n \
         fcntl.{kind}(lock, fcntl.LOCK_EX); end = time.process_time() + {held}\n \
         while time.process_time() < end: pass\n \
         fcntl.{kind}(lock, fcntl.LOCK_UN)\n"
    );
    let command = format!("command = ['{PYTHON}', '-S', '-c', '''{text}''']");
    format!("[[program]]\nname = '{name}'\n{command}\n{}\n", everything())
}

#[test]
fn programs_that_wait_for_each_others_file_lock_run_together() {
    if !Path::new(PYTHON).exists() {
        return skip(format!("there is no {PYTHON}"));
    }
    let other = "while [ ! -e stop ]; do i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done; done";
    let gang = ["--policy gang --quantum 20ms", "--policy gang --quantum 200ms"];
    for (kind, held, options, others) in [
        ("flock", 0.005, "", 1),
        ("lockf", 0.005, gang[0], 1),
        ("ofd", 0.005, gang[0], 1),
        ("flock", 0.3, gang[1], 0),
        ("lockf", 0.3, gang[1], 0),
    ] {
        let place = Place::new();
        let [one, two] = ["one", "two"].map(|name| locker(name, kind, held));
        let tables = [one, two, program("other", &everything(), other)];
        let cosched = place.run(&tables[..2 + others], options);
        eventually("a group of the two", || place.read("cosched.stderr").contains(LOCK));
        // They continue for some turns.
        std::thread::sleep(std::time::Duration::from_millis(800));
        place.write("stop", "");
        let ended = cosched.ended().with(0);
        assert_eq!(ended.stderr.matches("they run together").count(), 1, "{}", ended.stderr);
        let [one, two, ..] = &ended.result().programs[..] else { panic!() };
        // Before that, each had its turns alone.
        let shared = match options {
            "" => overlap(&one.turns, &two.turns),
            _ => shared_seconds(&one.timeline, &two.timeline),
        };
        assert!(shared > 0.1, "{shared} s");
        place.nothing_is_left_of(&ended);
    }
}

#[test]
fn programs_of_one_group_by_name_run_together() {
    let place = Place::new();
    let keys = format!("{}\ngroup = 'pair'", everything());
    let tables = ["a", "b"].map(|name| {
        program(name, &keys, "i=0; while [ $i -lt 100 ]; do sleep 0.003; i=$((i+1)); done")
    });
    let third = program("c", &everything(), STAMPS);
    let tables = [&tables[..], &[third]].concat();
    let result = place.run(&tables, "--policy gang --quantum 10ms").ended().with(0).result();
    // Turns of one group begin and end at the same times, but for the moments in between.
    let spans = |i: usize| result.programs[i].timeline.len();
    assert!(spans(0) > 1 && spans(1) > 1);
    let shared: f64 = shared_seconds(&result.programs[0].timeline, &result.programs[1].timeline);
    let least = result.programs[0].running_seconds.min(result.programs[1].running_seconds);
    assert!(shared > 0.5 * least, "{shared} of {least} s");
}

/// How long both had permission to run at the same time.
fn shared_seconds(a: &[TimelineEntry], b: &[TimelineEntry]) -> f64 {
    let spans = |all: &[TimelineEntry]| all.iter().map(|one| (one.0, one.1)).collect::<Vec<_>>();
    overlap(&spans(a), &spans(b))
}

/// How many seconds are in spans of both.
fn overlap(a: &[(f64, f64)], b: &[(f64, f64)]) -> f64 {
    let pairs = a.iter().flat_map(|a| b.iter().map(move |b| (a, b)));
    pairs.map(|(a, b)| (a.1.min(b.1) - a.0.max(b.0)).max(0.0)).sum()
}

/// A program that serves until there is a file that stops it, on a port that its clients know. One
/// that `connects` is connected with itself, at first by a port that the kernel has chosen. At no
/// moment does it therefore listen on the known port without a connection of its own.
fn server(keys: &str, connects: bool) -> String {
    let text = "import random, socket, time, os\n\
        own = []\n\
        def connect(to): own.append(socket.create_connection(to.getsockname()))\n\
        if CONNECTS: first = socket.create_server((\"127.0.0.1\", 0)); connect(first)\n\
        s = socket.socket()\n\
        while True:\n \
          try: s.bind((\"127.0.0.1\", random.randrange(2000, 9000))); break\n \
          except OSError: pass\n\
        s.listen()\n\
        if CONNECTS: connect(s)\n\
        print(s.getsockname()[1], file=open(\"port\", \"w\"), flush=True); \
        os.rename(\"port\", \"listens\")\n\
        while not os.path.exists(\"stop\"): print(time.time_ns(), flush=True); time.sleep(0.001)\n\
        s.close()\n";
    let text = text.replace("CONNECTS", if connects { "True" } else { "False" });
    let command = format!("command = ['{PYTHON}', '-S', '-c', '''{text}''']");
    format!("[[program]]\nname = 'server'\n{command}\n{}\n{keys}\n", everything())
}

/// What cosched says of a program that serves others.
const LEFT_RUNNING: &str =
    "server is left running while others have their turn: it listens on a socket";

/// Runs the server together with a program that leaves stamps, once the server listens and cosched
/// has inspected it.
fn served(backend: Backend, keys: &str, is_noted: bool) -> (Place, super::support::Ended) {
    let place = Place::new();
    let inspected = if is_noted { "while [ ! -e noted ]; do sleep 0.01; done" } else { "sleep 1" };
    let other =
        format!("while [ ! -e listens ]; do sleep 0.01; done; {inspected}; {STAMPS}; touch stop");
    let tables = [server(keys, false), program("other", &everything(), &other)];
    let options = format!("--policy gang --quantum 20ms --freezer {}", backend.0);
    let run = place.run(&tables, &options);
    if is_noted {
        eventually("the note", || place.read("cosched.stderr").contains(LEFT_RUNNING));
        place.write("noted", "");
    }
    let ended = run.ended().with(0);
    (place, ended)
}

#[test]
fn a_listening_program_is_left_running() {
    if !Path::new(PYTHON).exists() {
        return skip(format!("there is no {PYTHON}"));
    }
    for backend in Backend::here() {
        let (place, ended) = served(backend, "", true);
        let result = ended.result();
        let refused =
            result.deviations.iter().filter(|d| d.program.slot == 0 && d.why == Refusal::Listens);
        assert_eq!(refused.map(|d| d.what).collect::<Vec<_>>(), [Aspect::Frozen]);
        // Its last turn is all of the time that the other left stamps.
        let outputs = ["server", "other"].map(|name| place.read(&format!("out/{name}.stdout")));
        let last = result.programs[0].timeline.last().unwrap();
        assert!(last.1 - last.0 > 0.1, "{last:?}");
        assert!(
            blocks(&outputs)[1] > result.programs[1].timeline.len()
                || result.programs[1].timeline.len() > 5
        );
        place.nothing_is_left_of(&ended);
    }
}

#[test]
fn a_listening_program_is_frozen_until_another_one_connects() {
    if !Path::new(PYTHON).exists() {
        return skip(format!("there is no {PYTHON}"));
    }
    let other = format!("while [ ! -e listens ]; do sleep 0.01; done; {STAMPS}; touch stop");
    let place = Place::new();
    let tables = [server("", true), program("other", &everything(), &other)];
    let ended = place.run(&tables, "--policy gang --quantum 20ms").ended().with(0);
    let result = ended.result();
    // A machine that is busy with other things can hold up cosched itself, and the program.
    let is_busy = |why| matches!(why, Refusal::CoschedStopped | Refusal::TimedOut);
    let mut others = result.deviations.iter().filter(|one| !is_busy(one.why));
    assert_eq!((others.next(), ended.stderr.as_str()), (None, ""));
    assert!(result.programs[0].timeline.len() > 1, "it takes turns");

    let place = Place::new();
    let until_seen = "while [ ! -e seen ]; do sleep 0.01; done; touch stop";
    let tables = [server("", true), program("other", &everything(), until_seen)];
    let run = place.run(&tables, "--policy gang --quantum 20ms");
    eventually("the port", || place.path("listens").exists());
    let client = TcpStream::connect(("127.0.0.1", place.read("listens").trim().parse().unwrap()));
    eventually("the note", || place.read("cosched.stderr").contains(LEFT_RUNNING));
    fs::write(place.path("seen"), "").unwrap();
    let ended = run.ended().with(0);
    drop(client);
    place.nothing_is_left_of(&ended);
}

#[test]
fn a_listening_program_is_frozen_if_the_user_says_so() {
    if !Path::new(PYTHON).exists() {
        return skip(format!("there is no {PYTHON}"));
    }
    for backend in Backend::here() {
        let (place, ended) = served(backend, "freezable = true", false);
        assert_eq!(ended.stderr, "");
        let result = ended.result();
        if result.deviations.is_empty() {
            let outputs = ["server", "other"].map(|name| place.read(&format!("out/{name}.stdout")));
            let turns = result.programs.iter().map(|program| program.timeline.len());
            assert!(blocks(&outputs).into_iter().zip(turns).all(|(blocks, turns)| blocks <= turns));
        }
        place.nothing_is_left_of(&ended);
    }
}

#[test]
fn a_program_marked_as_unfreezable_is_not_frozen() {
    let place = Place::new();
    let keys = format!("{}\nfreezable = false", everything());
    let tables = [program("free", &keys, STAMPS), program("other", &everything(), STAMPS)];
    let ended = place.run(&tables, "--policy gang --quantum 10ms").ended().with(0);
    let free = &ended.result().programs[0];
    assert_eq!((free.longest_frozen_seconds, free.timeline.len()), (0.0, 1));
    eventually("the end", || place.marked().all().is_empty());
}
