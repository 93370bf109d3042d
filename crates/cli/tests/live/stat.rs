//! `cosched stat` of a program that it starts: the program runs as without it, and cosched ends
//! with its status.

use std::os::unix::process::CommandExt;

use rustix::process::{Pid, Signal, kill_process_group};

use super::support::{Cosched, Place, eventually, program};

/// The process that started the tests may ignore Ctrl-C.
const ENDLESS: &str = "grep SigBlk /proc/self/status > blocked; echo > ready; \
    exec env --default-signal=INT sleep 1000";

#[test]
fn stat_exits_as_its_program_or_with_128_plus_the_signal() {
    let place = Place::new();
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 128 + 9)] {
        place.cosched(&["stat", "--sampled", "--", "sh", "-c", script]).ended().with(code);
    }
}

#[test]
fn a_program_under_stat_blocks_no_signal_and_ends_by_ctrl_c() {
    let place = Place::new();
    let mut command = place.user.command(&place.executable);
    // The terminal sends signals to the whole group.
    command.args(["stat", "--", "sh", "-c", ENDLESS]).process_group(0);
    let cosched = Cosched::start(command, &place);
    eventually("the program", || place.path("ready").exists());
    assert_eq!(place.read("blocked"), "SigBlk:\t0000000000000000\n");
    // Not the shell any more, which may ignore the signal.
    eventually("the sleep", || !place.marked().named("sleep").is_empty());
    kill_process_group(Pid::from_raw(cosched.pid()).unwrap(), Signal::INT).unwrap();
    cosched.ended().with(130);
    assert!(place.marked().programs().is_empty());
}

#[test]
fn it_says_how_to_end_it_while_it_watches() {
    let place = Place::new();
    let mut sleep = place.start("sleep".as_ref(), &["1000"]);
    let pid = sleep.id().to_string();
    let cosched = place.cosched(&["stat", "--sampled", "--pid", &pid]);
    let watching = format!("watching sleep ({pid}) until its end; Ctrl-C ends this command");
    eventually("a word of it", || cosched.said().contains(&watching));
    sleep.kill().unwrap();
    sleep.wait().unwrap();
    cosched.ended().with(0);
}

#[test]
fn stat_names_the_cosched_that_schedules_a_program() {
    let place = Place::new();
    let tables = ["a", "b", "c"].map(|name| program(name, "", "while :; do :; done"));
    let run = place.run(&tables, "--policy linux");
    eventually("the programs", || place.marked().named("sh").len() == 3);
    eventually("the notes of them", || place.has_noted("main"));
    let pid = place.marked().named("sh")[0].pid.to_string();
    let stat = ["stat", "--sampled", "--interval", "200ms", "--count", "2", "--pid", &pid];
    // Its outputs go elsewhere: the files of the place are those of the run.
    let mut stat_command = place.user.command(&place.executable);
    stat_command.args(stat).env("XDG_RUNTIME_DIR", place.path("run"));
    let said = String::from_utf8(stat_command.output().unwrap().stdout).unwrap();
    let scheduled = format!("cosched (process {}) schedules it", run.pid());
    // With many CPUs, nothing stands in its way.
    let lacks = said.contains("lacked a CPU");
    assert!(!lacks || said.contains(&scheduled), "{said}");
    assert!(!said.contains("`cosched run`"), "{said}");
    run.signal(Signal::TERM);
    run.ended();
}

/// The kernel has the name of a process from its file.
#[test]
fn names_of_processes_do_not_control_the_terminal() {
    let place = Place::new();
    for (name, shown) in [
        ("\u{1b}]0;x\u{7}", "\\u{1b}]0;x\\u{7}"),
        ("a\nb", "a\\nb"),
        ("\u{9b}31m", "\\u{9b}31m"),
        ("\u{202e}a", "\\u{202e}a"),
    ] {
        std::fs::copy("/bin/sleep", place.path(name)).unwrap();
        let mut sleep = place.start(&place.path(name), &["1000"]);
        let pid = sleep.id().to_string();
        let comm = format!("/proc/{pid}/comm");
        eventually("its name", || std::fs::read_to_string(&comm).unwrap() == format!("{name}\n"));
        let stat = |more: &[&str]| {
            let fixed = ["stat", "--sampled", "--count", "1", "--interval", "100ms", "--pid", &pid];
            place.cosched(&[&fixed, more].concat()).ended().with(0).stdout
        };
        let (table, json) = (stat(&[]), stat(&["--json"]));
        let is_odd = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
        assert!(!table.contains(is_odd) && !json.contains(is_odd), "{table:?} {json:?}");
        assert!(table.lines().last().unwrap().starts_with(shown), "{table}");
        let document: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert!(document["programs"][0]["name"].as_str().unwrap().starts_with(name), "{json}");
        sleep.kill().unwrap();
        sleep.wait().unwrap();
    }
}

#[test]
fn stat_passes_sigterm_on_to_its_program() {
    let place = Place::new();
    let cosched = place.cosched(&["stat", "--", "sh", "-c", ENDLESS]);
    eventually("the program", || place.path("ready").exists());
    cosched.signal(Signal::TERM);
    cosched.ended().with(143);
    assert!(place.marked().programs().is_empty());
}

#[test]
fn figures_come_with_a_legend_and_end_with_a_conclusion() {
    let place = Place::new();
    let command = ["stat", "--interval", "100ms", "--", "sh", "-c", "sleep 0.3"];
    let ended = place.cosched(&command).ended().with(0);
    assert!(ended.stdout.starts_with("CPUs: CPUs in use"), "{}", ended.stdout);
    let last = ended.stdout.lines().last().unwrap();
    assert!(last.starts_with("sh used") || last == "sh slept.", "{}", ended.stdout);
    let json = place.cosched(&["stat", "--json", "--", "true"]).ended().with(0).stdout;
    assert!(json.lines().all(|line| line.starts_with('{')), "{json}");
}

#[test]
fn a_wrong_request_prints_one_error_only() {
    let place = Place::new();
    let own = std::process::id().to_string();
    let wrong: [(&[&str], &str); 5] = [
        (&["stat", "--", "true", ":::", "true"], "`cosched run -- true ::: true`"),
        (&["exec", "--", "true", ":::", "true"], "`cosched run -- true ::: true`"),
        (&["stat", "--pid", "99999999"], "no such process"),
        (&["stat", "--pid", &own, "--pid", &own], "is there twice"),
        (&["stat", "--", "/nonexistent"], "/nonexistent"),
    ];
    let of_kernel = std::fs::read_to_string("/proc/2/comm").is_ok_and(|name| name == "kthreadd\n");
    let kernel: (&[&str], &str) = (&["stat", "--pid", "2"], "it is a thread of the kernel");
    for (arguments, why) in wrong.into_iter().chain(of_kernel.then_some(kernel)) {
        let ended = place.cosched(arguments).ended().with(2).saying(&[why]);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
}
