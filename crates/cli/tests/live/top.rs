//! `cosched top`: as text, as JSON, and in a terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Output, Stdio};

use cosched_report::screen::{RowOrder, legend};
use cosched_results::live::Snapshot;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize};

use super::onlookers::{endless, socket};
use super::support::{Cosched, Place, User, eventually, program, skip};

fn top(place: &Place, arguments: &[&str]) -> Command {
    let mut command = Command::new(&place.executable);
    command.arg("top").args(arguments).env("XDG_RUNTIME_DIR", place.path("run"));
    command.env_remove("NO_COLOR").env_remove("COLUMNS").stdin(Stdio::null());
    command
}

/// It is named: another test may have a run of its own.
fn top_of(run: &Cosched, place: &Place) -> Command {
    top(place, &[&run.pid().to_string()])
}

fn output(place: &Place, arguments: &[&str]) -> Output {
    top(place, arguments).output().unwrap()
}

#[test]
fn one_snapshot_is_text_or_json() {
    let place = Place::new();
    let cosched = endless(&place, "");
    socket(&place, &cosched);
    let pid = cosched.pid().to_string();
    let text = output(&place, &[&pid, "--once"]);
    let said = String::from_utf8(text.stdout).unwrap();
    assert_eq!(text.status.code(), Some(0), "{said}");
    assert!(said.starts_with(&format!("cosched {pid}: gang, packed, quantum 100 ms")), "{said}");
    let narrow = top(&place, &[&pid, "--once"]).env("COLUMNS", "60").output().unwrap();
    let narrow = String::from_utf8(narrow.stdout).unwrap();
    let widest = |frame: &str| frame.lines().map(|line| line.chars().count()).max();
    assert!(widest(&said) > Some(60) && widest(&narrow) == Some(60), "{said}{narrow}");
    let rows: Vec<&str> = said.lines().skip(5).map(|line| &line[..1]).collect();
    assert_eq!(rows, ["a", "b"], "{said}");
    assert!(said.lines().all(|line| line.len() <= 80 && !line.contains('\x1b')), "{said}");

    let json = output(&place, &[&pid, "--json"]);
    let snapshot = Snapshot::from_json(&String::from_utf8(json.stdout).unwrap()).unwrap();
    assert_eq!((snapshot.pid.to_string(), snapshot.decided_by), (pid.clone(), None));
    let once = output(&place, &[&pid, "--once", "--json"]);
    assert!(Snapshot::from_json(&String::from_utf8(once.stdout).unwrap()).is_ok());
    cosched.signal(Signal::INT);
    place.nothing_is_left_of(&cosched.ended().with(130));
}

/// Below `run`, and in cosched's own place, where the program has no shim.
#[test]
fn processes_of_a_program_that_compute_are_shown() {
    let place = Place::new();
    let script = "while :; do :; done & a=$!; while :; do :; done & b=$!
        trap 'kill $a $b' TERM; wait";
    for command in [&["run", "--policy", "gang"][..], &["exec"]] {
        let cosched = place.cosched(&[command, &["--", "sh", "-c", script]].concat());
        socket(&place, &cosched);
        let pid = cosched.pid().to_string();
        eventually("both to be shown", || {
            let json = output(&place, &[&pid, "--json"]).stdout;
            let snapshot = Snapshot::from_json(&String::from_utf8(json).unwrap()).unwrap();
            let program = &snapshot.programs[0];
            program.processes.len() == 2 && program.cpu_seconds.is_some()
        });
        cosched.signal(Signal::TERM);
        place.nothing_is_left_of(&cosched.ended());
    }
}

#[test]
fn without_cpu_groups_the_policy_that_decides_is_named() {
    let place = Place::of(User::ordinary());
    let spin = ["a", "b"].map(|name| program(name, "", "while :; do :; done"));
    let cosched = place.run(&spin, "");
    socket(&place, &cosched);
    let auto = cosched.said().contains("the policy auto decides");
    let shown = place.cosched(&["top", &cosched.pid().to_string(), "--once"]).ended().with(0);
    assert_eq!(shown.stdout.contains(": turns (auto decides)"), auto, "{}", shown.stdout);
    cosched.signal(Signal::INT);
    place.nothing_is_left_of(&cosched.ended().with(130));
}

#[test]
fn without_a_run_or_a_terminal_the_remedy_is_shown() {
    let place = Place::new();
    let said = |arguments: &[&str]| {
        let output = output(&place, arguments);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(said(&[]).contains("start one with `cosched run`"));
    let cosched = endless(&place, "");
    socket(&place, &cosched);
    assert!(said(&[]).contains("use --once"));
    assert!(said(&["1"]).contains(&format!("one of these: {}", cosched.pid())));
    cosched.signal(Signal::INT);
    place.nothing_is_left_of(&cosched.ended().with(130));
}

#[test]
fn root_can_watch_runs_of_other_users_by_name() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root may watch the runs of others");
    }
    let (theirs, own) = (Place::of(User::ordinary()), Place::new());
    let cosched = endless(&theirs, "");
    socket(&theirs, &cosched);
    let pid = cosched.pid().to_string();
    let json = output(&own, &[&pid, "--json"]);
    let said = String::from_utf8(json.stdout).unwrap();
    assert_eq!(json.status.code(), Some(0), "{:?}", String::from_utf8(json.stderr));
    assert_eq!(Snapshot::from_json(&said).unwrap().pid.to_string(), pid);
    let unnamed = output(&own, &["--once"]);
    let said = String::from_utf8(unnamed.stderr).unwrap();
    assert_eq!(unnamed.status.code(), Some(2));
    assert!(said.contains(&format!("{pid} (user ")), "{said}");
    cosched.signal(Signal::INT);
    theirs.nothing_is_left_of(&cosched.ended().with(130));
}

/// A terminal with `cosched top` in it.
struct Terminal {
    master: OwnedFd,
    child: Child,
    shown: String,
}

impl Terminal {
    fn with(mut command: Command, rows: u16, columns: u16) -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        let slave = rustix::fs::open(name, flags, Mode::empty()).unwrap();
        let terminal = |slave: &OwnedFd| Stdio::from(slave.try_clone().unwrap());
        command.stdin(terminal(&slave)).stdout(terminal(&slave)).stderr(terminal(&slave));
        let child = {
            resize(&master, rows, columns);
            command.spawn().unwrap()
        };
        rustix::io::ioctl_fionbio(&master, true).unwrap();
        Terminal { master, child, shown: String::new() }
    }

    fn press(&mut self, keys: &str) {
        File::from(self.master.try_clone().unwrap()).write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until something is shown that was not before.
    #[track_caller]
    fn shows(&mut self, what: &str) {
        self.shown.clear();
        eventually(what, || {
            self.read();
            self.shown.contains(what)
        });
    }

    fn read(&mut self) {
        let mut space = [0; 4096];
        let mut master = File::from(self.master.try_clone().unwrap());
        while let Ok(n @ 1..) = master.read(&mut space) {
            self.shown += &String::from_utf8_lossy(&space[..n]);
        }
    }

    /// The exit code, and what was shown from here on.
    fn ended(mut self) -> (Option<i32>, String) {
        let mut status = None;
        eventually("the end of top", || {
            self.read();
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        self.read();
        (status.unwrap().code(), self.shown)
    }

    /// Leaves, and checks that the terminal is restored.
    fn leave(mut self) {
        self.press("q");
        let (code, shown) = self.ended();
        assert_eq!(code, Some(0));
        assert!(RESTORED.iter().all(|command| shown.contains(command)), "{shown:?}");
    }
}

fn resize(master: &OwnedFd, rows: u16, columns: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(master, size).unwrap();
}

/// What restores a terminal: the cursor, and the screen.
const RESTORED: [&str; 2] = ["\x1b[?25h", "\x1b[?1049l"];

#[test]
fn top_follows_the_run_the_keys_and_the_terminal_size() {
    let place = Place::new();
    let cosched = endless(&place, "");
    socket(&place, &cosched);
    let mut terminal = Terminal::with(top_of(&cosched, &place), 24, 80);
    terminal.shows("PROGRAM STATE");
    terminal.shows("\x1b[38;5;10m");
    terminal.press("nn");
    terminal.shows("order by o n s r w t l c a d: name, reversed");
    // Room for one of the two.
    resize(&terminal.master, 7, 72);
    let pid = Pid::from_child(&terminal.child);
    kill_process(pid, Signal::WINCH).unwrap();
    terminal.shows("; 1 to 1 of 2");
    terminal.leave();
    cosched.signal(Signal::INT);
    place.nothing_is_left_of(&cosched.ended().with(130));
}

#[test]
fn top_works_without_colour_and_says_when_the_run_ends() {
    let place = Place::new();
    let cosched = endless(&place, "");
    socket(&place, &cosched);
    let mut command = top_of(&cosched, &place);
    command.env("NO_COLOR", "1");
    let mut terminal = Terminal::with(command, 24, 80);
    terminal.shows("a       runs");
    assert!(!terminal.shown.contains("\x1b[38;5;"), "{:?}", terminal.shown);
    cosched.signal(Signal::INT);
    place.nothing_is_left_of(&cosched.ended().with(130));
    let (code, shown) = terminal.ended();
    assert_eq!(code, Some(0));
    assert!(shown.contains("has ended"), "{shown:?}");
    assert!(RESTORED.iter().all(|command| shown.contains(command)), "{shown:?}");
}

#[test]
fn a_signal_restores_the_terminal_and_sets_the_exit_code() {
    let place = Place::new();
    let cosched = endless(&place, "");
    socket(&place, &cosched);
    for (signal, code) in [
        (Signal::INT, 130),
        (Signal::TERM, 143),
        (Signal::HUP, 143),
        (Signal::QUIT, 143),
        (Signal::USR1, 143),
    ] {
        let mut terminal = Terminal::with(top_of(&cosched, &place), 24, 80);
        terminal.shows("PROGRAM STATE");
        kill_process(Pid::from_child(&terminal.child), signal).unwrap();
        let (found, shown) = terminal.ended();
        assert_eq!(found, Some(code), "{signal:?}");
        assert!(RESTORED.iter().all(|command| shown.contains(command)), "{shown:?}");
    }
    cosched.signal(Signal::INT);
    place.nothing_is_left_of(&cosched.ended().with(130));
}

#[test]
fn a_stopped_top_restores_the_terminal_until_continued() {
    let place = Place::new();
    let cosched = endless(&place, "");
    socket(&place, &cosched);
    let mut terminal = Terminal::with(top_of(&cosched, &place), 24, 80);
    terminal.shows("PROGRAM STATE");
    let pid = Pid::from_child(&terminal.child);
    let stopped = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit(") ").next().unwrap().starts_with('T')
    };
    let lines = |terminal: &Terminal| {
        tcgetattr(&terminal.master).unwrap().local_modes.contains(LocalModes::ICANON)
    };
    // By a signal, and by the key, for which a terminal in raw mode makes no signal.
    for by_key in [false, true] {
        match by_key {
            true => terminal.press("\x1a"),
            false => kill_process(pid, Signal::TSTP).unwrap(),
        }
        terminal.shows(RESTORED[1]);
        eventually("the stop", stopped);
        assert!(lines(&terminal));
        kill_process(pid, Signal::CONT).unwrap();
        terminal.shows("\x1b[?1049h");
        terminal.shows("PROGRAM STATE");
        assert!(!lines(&terminal));
    }
    // SIGSTOP cannot be caught, and the shell gives the terminal other modes meanwhile.
    kill_process(pid, Signal::STOP).unwrap();
    eventually("the stop", stopped);
    let mut modes = tcgetattr(&terminal.master).unwrap();
    modes.local_modes.insert(LocalModes::ICANON | LocalModes::ECHO);
    tcsetattr(&terminal.master, OptionalActions::Now, &modes).unwrap();
    kill_process(pid, Signal::CONT).unwrap();
    terminal.shows("\x1b[?1049h");
    terminal.shows("PROGRAM STATE");
    assert!(!lines(&terminal));
    terminal.leave();
    cosched.signal(Signal::INT);
    place.nothing_is_left_of(&cosched.ended().with(130));
}

#[test]
fn help_lists_every_key_and_every_column() {
    let place = Place::new();
    let help = String::from_utf8(output(&place, &["--help"]).stdout).unwrap();
    for (name, meaning) in legend() {
        let line = help.lines().find(|line| line.trim_start().starts_with(name));
        assert!(line.is_some_and(|line| line.ends_with(meaning)), "{name}: {help}");
    }
    for (key, name, _) in RowOrder::KEYS {
        assert!(help.contains(&format!("{key} {name}")), "{key}: {help}");
    }
    assert!(help.contains("q, Ctrl-C") && help.contains("Ctrl-Z"), "{help}");
}
