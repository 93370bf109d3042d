//! The end of cosched by a signal: programs are ended, what happened is written, nothing is left.

use std::time::Duration;

use cosched_linux::kernel::procfs::Proc;
use cosched_linux::process::tree::Process;
use rustix::process::Signal;

use super::support::{Backend, Place, at_once, eventually, program};

const SPIN: &str = "while :; do :; done";

/// Three programs without end; the third has not started when the others run.
fn endless() -> [String; 3] {
    [
        program("a", "threads = 1", &format!("echo $$ > a; echo up >&2; sleep 1000 & {SPIN}")),
        program("b", "threads = 1", &format!("echo $$ > b; {SPIN}")),
        program("later", "threads = 1\nstart = '1h'", "touch later"),
    ]
}

fn ended_by(signal: Signal, code: i32, name: &str) {
    for backend in Backend::here() {
        let place = Place::new();
        // A job in the background of a shell ignores Ctrl-C, so its grace period passes.
        let options = format!("--policy gang --quantum 10ms --grace 1s --freezer {}", backend.0);
        let cosched = place.run(&endless(), &options);
        eventually("two programs", || !place.read("a").is_empty() && !place.read("b").is_empty());
        assert_eq!(place.undo_logs().len(), 1);
        cosched.signal(signal);
        let ended = cosched.ended().with(code);
        let result = ended.result();
        assert_eq!(result.interrupted_by.as_deref(), Some(name));
        assert!(!ended.stderr.contains("error outputs"), "no program failed: {}", ended.stderr);
        let [a, b, later] = &result.programs[..] else { panic!() };
        for program in [a, b] {
            assert!(program.exit_status.unwrap() > 128, "{backend:?} {:?}", program.exit);
            assert!(!program.timeline.is_empty() && program.running_seconds > 0.0);
            assert!(!program.left_running);
        }
        assert_eq!(
            (later.exit_status, later.started_seconds, later.turnaround_seconds),
            (None, None, None)
        );
        assert!(!place.path("later").exists());
        place.nothing_is_left_of(&ended);
    }
}

/// A signal that comes before cosched waits for signals ends it at once, as any command.
#[test]
fn signals_in_the_first_moments_leave_nothing() {
    let words = ["--", "sleep", "1000", ":::", "sleep", "1000"];
    at_once([("run", 1, 40), ("compare", 20, 20)], |(command, step, moments)| {
        let place = Place::new();
        for moment in 0..moments {
            let cosched = place.cosched(&[&[command][..], &words[..]].concat());
            std::thread::sleep(Duration::from_millis(step * moment));
            cosched.signal(Signal::TERM);
            let ended = cosched.ended();
            assert!([None, Some(143)].contains(&ended.code()), "{ended:?}");
            place.nothing_is_left_of(&ended);
            assert_eq!(std::fs::read_dir(place.path("tmp")).unwrap().count(), 0, "{ended:?}");
        }
    });
}

/// What the last process has used is known only once the shim has waited for it.
#[test]
fn cpu_time_of_a_job_in_the_background_counts() {
    let place = Place::new();
    let job = "trap '' TERM; while [ ! -e stop ]; do :; done";
    let tells = "echo $PPID > shim; sh -c \"$JOB\" & echo $! > job; exit 0";
    let keys = format!("env = {{ JOB = \"{job}\" }}");
    let cosched = place.run(&[program("a", &keys, tells)], "--policy linux");
    let number = |name: &str| place.read(name).trim().parse::<i32>().ok();
    eventually("the job", || number("job").is_some());
    let (shim, job) = (number("shim").unwrap(), number("job").unwrap());
    let proc = Proc::default();
    let used = || proc.stat(job).unwrap().utime;
    eventually("some CPU time, and the end of its parent", || {
        used() > 30 && proc.stat(job).unwrap().ppid == shim
    });
    let shim = Process::find(&proc, shim).unwrap();
    shim.signal(&proc, Signal::STOP).unwrap();
    place.write("stop", "");
    eventually("its end", || proc.stat(job).unwrap().has_ended());
    let least = used() as f64 / 100.0;
    // Several looks of cosched at the program.
    std::thread::sleep(Duration::from_millis(200));
    shim.signal(&proc, Signal::CONT).unwrap();
    let result = cosched.ended().with(0).result();
    let usage = result.programs[0].usage;
    assert!(usage.user_seconds >= least, "{usage:?} {least}");
}

#[test]
fn a_comparison_leaves_no_zombies_of_finished_runs() {
    let place = Place::new();
    // The parent of the program is its shim, and the shim's parent is cosched.
    let script = "cosched=$(sed -n 's/^PPid:\\t//p' /proc/$PPID/status); \
                  children=$(cat /proc/$cosched/task/$cosched/children); \
                  for child in $children; do echo $child; done > children; \
                  for child in $children; do \
                  grep -H '^State:.Z' /proc/$child/status; done > zombies; true";
    let compare = ["compare", "--policies", "linux", "--runs", "12", "--", "sh", "-c", script];
    place.cosched(&compare).ended().with(0);
    assert_eq!(place.read("zombies"), "");
    assert_ne!(place.read("children"), "");
}

#[test]
fn an_ignored_hangup_ends_neither_cosched_nor_its_programs() {
    let place = Place::new();
    let tells = "touch a; sed -n 's/^SigIgn:\t//p' /proc/self/status; \
                 while [ ! -e go ]; do sleep 0.01; done";
    place.write("jobs.toml", program("a", "", tells));
    let mut command = std::process::Command::new("nohup");
    command.arg(&place.executable).args(["run", "jobs.toml", "--out", "out"]);
    let mut cosched = super::support::Cosched::start(command, &place);
    eventually("the program", || place.path("a").exists());
    cosched.signal(Signal::HUP);
    cosched.signal(Signal::HUP);
    // An event that comes after it has been seen.
    let pid = cosched.pid().to_string();
    let shown = place.cosched(&["top", "--once", &pid]).ended().with(0).stdout;
    let is_of_the_program = |line: &str| line.split_whitespace().next() == Some("a");
    assert!(shown.lines().any(is_of_the_program) && !cosched.has_ended(), "{shown}");
    place.write("go", "");
    let ended = cosched.ended().with(0);
    let ignored = u64::from_str_radix(place.read("out/a.stdout").trim(), 16).unwrap();
    assert_eq!(ignored & 1, 1, "SIGHUP is the first signal: {ignored:x}");
    place.nothing_is_left_of(&ended);
}

/// A unit of systemd ignores SIGPIPE by default.
#[test]
fn programs_ignore_the_signals_that_coscheds_caller_ignores() {
    let place = Place::new();
    let tells = "sed -n 's/^SigIgn:\t//p' /proc/self/status > found";
    place.write("jobs.toml", program("a", "", tells));
    let executable = place.executable.to_str().unwrap();
    let found = |arguments: &[&str]| {
        let ignores = "trap '' PIPE XFSZ TSTP TTIN TTOU USR1; exec \"$@\"";
        let mut command = std::process::Command::new("sh");
        command.args(["-c", ignores, "sh"]).args(arguments);
        super::support::Cosched::start(command, &place).ended().with(0);
        place.read("found")
    };
    let directly = found(&["sh", "-c", tells]);
    let mask = u64::from_str_radix(directly.trim(), 16).unwrap();
    assert_eq!(mask & 0x1381200, 0x1381200, "{directly}");
    for arguments in [
        &["run", "jobs.toml", "--out", "out"][..],
        &["exec", "--policy", "faithful", "--", "sh", "-c", tells],
        &["stat", "--", "sh", "-c", tells],
    ] {
        place.write("found", "");
        assert_eq!(found(&[&[executable][..], arguments].concat()), directly, "{arguments:?}");
    }
}

#[test]
fn ctrl_c_ends_the_programs_and_cosched_with_130() {
    ended_by(Signal::INT, 130, "SIGINT");
}

#[test]
fn sigterm_ends_the_programs_and_cosched_with_143() {
    ended_by(Signal::TERM, 143, "SIGTERM");
}

#[test]
fn a_closed_terminal_ends_programs_and_is_reported_as_sighup() {
    ended_by(Signal::HUP, 143, "SIGHUP");
}

/// cosched cannot print its result then.
#[test]
fn the_end_of_its_own_terminal_has_the_code_of_sighup() {
    let place = Place::new();
    let in_a_terminal = "import os, pty, sys, time\n\
        pid, shown = pty.fork()\n\
        if pid == 0: os.execvp(sys.argv[1], sys.argv[1:])\n\
        while not os.path.exists('started'): time.sleep(0.01)\n\
        os.close(shown)\n\
        sys.exit(os.WEXITSTATUS(os.waitpid(pid, 0)[1]))";
    let mut command = std::process::Command::new("python3");
    command.args(["-c", in_a_terminal]).arg(&place.executable);
    command.args(["run", "--", "sh", "-c", "touch started; exec sleep 1000"]);
    super::support::Cosched::start(command, &place).ended().with(143);
    eventually("the end of all", || place.marked().all().is_empty());
}

#[test]
fn ctrl_backslash_ends_the_programs_like_sigterm() {
    ended_by(Signal::QUIT, 143, "SIGQUIT");
}

#[test]
fn other_deadly_signals_end_the_programs_like_sigterm() {
    for (signal, name) in
        [(Signal::USR1, "SIGUSR1"), (Signal::USR2, "SIGUSR2"), (Signal::ALARM, "SIGALRM")]
    {
        ended_by(signal, 143, name);
    }
}

#[test]
fn a_second_ctrl_c_ends_the_grace_period() {
    let place = Place::new();
    let stubborn = format!("trap '' INT TERM; echo $$ > a; {SPIN}");
    let tables = [program("a", "threads = 1", &stubborn)];
    let cosched = place.run(&tables, "--policy gang --grace 1h");
    eventually("the program", || !place.read("a").is_empty());
    cosched.signal(Signal::INT);
    // Otherwise both could arrive as one, or count as one.
    eventually("the first", || is_not_pending(cosched.pid(), Signal::INT));
    std::thread::sleep(Duration::from_millis(150));
    cosched.signal(Signal::INT);
    let ended = cosched.ended().with(130);
    assert_eq!(ended.result().programs[0].exit_status, Some(137));
    place.nothing_is_left_of(&ended);
}

/// A program that ends at once is not named, and `--quiet` says nothing.
#[test]
fn a_wait_for_programs_that_do_not_end_is_reported() {
    let script = |name: &str| format!("trap '' INT TERM; touch {name}; {SPIN}");
    for (options, wait) in [
        ("--grace 2s", "cosched: waiting up to 2 s for a, b to end; Ctrl-C again ends them now\n"),
        ("--grace 2s --quiet", ""),
        ("--grace 900ms", ""),
    ] {
        let place = Place::new();
        let stubborn = ["a", "b"].map(|name| program(name, "threads = 1", &script(name)));
        let ends = program("c", "threads = 1", "touch c; exec sleep 1000");
        let cosched = place.run(&[&stubborn[..], &[ends]].concat(), options);
        eventually("the programs", || ["a", "b", "c"].iter().all(|name| place.path(name).exists()));
        cosched.signal(Signal::INT);
        let ended = cosched.ended().with(130);
        let shown = ended.stderr.lines().filter(|line| line.contains("waiting up to"));
        let shown: String = shown.map(|line| format!("{line}\n")).collect();
        assert_eq!(shown, wait, "{}", ended.stderr);
        place.nothing_is_left_of(&ended);
    }
}

/// Whether a process has received a signal.
pub(super) fn is_not_pending(pid: i32, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("ShdPnd:")).unwrap();
    let pending = u64::from_str_radix(line.trim(), 16).unwrap();
    pending & 1 << (signal.as_raw() - 1) == 0
}

#[test]
fn programs_stopped_by_others_are_ended_too() {
    let place = Place::new();
    let tables = [program("a", "threads = 1", "kill -STOP $$; sleep 1000")];
    let cosched = place.run(&tables, "--policy gang --grace 300ms");
    let is_stopped = || {
        let marked = place.marked();
        marked.programs().iter().any(|process| marked.is_stopped(*process))
    };
    eventually("the stop", is_stopped);
    cosched.signal(Signal::TERM);
    let ended = cosched.ended().with(143);
    assert_eq!(ended.result().programs[0].exit_status, Some(137));
    place.nothing_is_left_of(&ended);
}

/// `pthread_exit` in `main`: to the kernel the process then looks like one that has ended.
#[test]
fn a_program_without_its_main_thread_is_ended_too() {
    const LEAVES: &str = "
import ctypes, platform, sys, threading, time
def work():
    while ' Z ' not in open('/proc/self/stat').read(): time.sleep(0.01)
    open(sys.argv[1], 'w').write('yes\\n')
    while True: pass
threading.Thread(target=work).start()
ctypes.CDLL(None).syscall(60 if platform.machine() == 'x86_64' else 93, 0)
";
    let place = Place::new();
    place.write("leaves.py", LEAVES);
    let keys = "threads = 2";
    let tables = [
        program("leaves", keys, "exec python3 leaves.py first"),
        program("leaves-one", keys, "python3 leaves.py second & sleep 0.1"),
    ];
    let cosched = place.run(&tables, "");
    let is_there = |name: &str| place.read(name).ends_with('\n');
    eventually("their other threads", || is_there("first") && is_there("second"));
    cosched.signal(Signal::TERM);
    let ended = cosched.ended().with(143);
    let result = ended.result();
    assert_eq!(result.programs[0].exit_status, Some(143));
    assert!(!result.programs[1].left_running);
    place.nothing_is_left_of(&ended);
}
