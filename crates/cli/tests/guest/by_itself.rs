//! An ordinary user logs in and types `cosched run`, and cosched gets a scope of systemd's user
//! manager for itself.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use rustix::process::Signal;

use super::guest_is_one_of;
use super::support::{Cosched, Place, eventually, program};
use super::user::{log_in, main_process, nothing_is_left, number, place};

/// Computes for a while, and writes down its cgroup and, again and again, `cpu.idle` and
/// `cpu.weight`.
const SAMPLES: &str = "cat /proc/self/cgroup
g=/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)
i=0
while [ $i -lt 40000 ]; do
    i=$((i+1))
    [ $((i%200)) = 0 ] || continue
    read -r idle < $g/cpu.idle; read -r weight < $g/cpu.weight; echo $idle $weight
done
";

/// Every cgroup below the user's own slice with such a name.
fn cgroups(pattern: &str) -> Vec<PathBuf> {
    let slice = format!("/sys/fs/cgroup/user.slice/user-{}.slice", number("-u"));
    let find =
        std::process::Command::new("find").args([&slice, "-name", pattern]).output().unwrap();
    String::from_utf8(find.stdout).unwrap().lines().map(PathBuf::from).collect()
}

fn run_samples(place: &Place, before: &str) -> Cosched {
    place.write("a", SAMPLES);
    place.write("b", SAMPLES);
    log_in(place, &format!("{before} ./cosched run --out out -- sh a ::: sh b"))
}

#[test]
fn plain_cosched_run_takes_turns_by_weight() {
    if guest_is_one_of(&["systemd"]).is_none() {
        return;
    }
    let place = place();
    let ended = run_samples(&place, "exec").ended().with(0);
    let result = ended.result();
    assert_eq!(result.policy, "turns");
    assert!(result.backends.pinning.ends_with("turns by weight"), "{}", ended.stderr);
    let manager = format!("/user@{}.service/", number("-u"));
    for program in &result.programs {
        let said = place.read(&format!("out/{}.stdout", program.name));
        let (cgroup, samples) = said.split_once('\n').unwrap();
        assert!(cgroup.contains(&manager) && cgroup.contains(".scope/cosched-"), "{cgroup}");
        for expected in ["0 10000", "1 "] {
            assert!(
                samples.lines().any(|line| line.starts_with(expected)),
                "no '{expected}': {samples}"
            );
        }
    }
    assert!(!ended.stderr.contains("Remedy"), "{}", ended.stderr);
    nothing_is_left(&place);
}

#[test]
fn standard_input_and_exit_status_stay_as_they_are() {
    if guest_is_one_of(&["systemd"]).is_none() {
        return;
    }
    let place = place();
    place.write("jobs.toml", program("a", "", "exit 3"));
    let ended = log_in(&place, "exec ./cosched run - --out out < jobs.toml").ended().with(1);
    assert!(ended.result().backends.pinning.ends_with("turns by weight"), "{}", ended.stderr);
    nothing_is_left(&place);
}

#[test]
fn weights_are_undone_after_sigkill_in_an_own_scope() {
    if guest_is_one_of(&["systemd"]).is_none() {
        return;
    }
    let place = place();
    let spin = |name: &str| format!("echo $$ > {name}; while :; do :; done");
    let tables = ["a", "b"].map(|name| program(name, "threads = 2", &spin(name)));
    place.write("jobs.toml", tables.concat());
    let cosched = log_in(&place, "exec ./cosched run jobs.toml --out out");
    eventually("the programs", || !place.read("a").is_empty() && !place.read("b").is_empty());
    let idle = || cgroups("p[0-9]*-*").iter().filter(|group| reads(group, "cpu.idle", "1")).count();
    eventually("a filler", || idle() == 1);
    let marked = place.marked();
    marked.signal(main_process(&place), Signal::KILL);
    eventually("the sentinel's end", || marked.named("csentinel").is_empty());
    assert_eq!(idle(), 0);
    for name in ["a", "b"] {
        let pid: i32 = place.read(name).trim().parse().unwrap();
        let process = marked.programs().into_iter().find(|process| process.pid == pid).unwrap();
        assert!(!marked.is_held(process), "systemd or the freezer holds {name}");
    }
    assert_eq!(cgroups("cosched-*.scope").len(), 1, "the scope lives as long as its programs");
    assert!(marked.end());
    cosched.kill();
    nothing_is_left(&place);
}

fn reads(group: &std::path::Path, file: &str, expected: &str) -> bool {
    fs::read_to_string(group.join(file)).is_ok_and(|text| text.trim() == expected)
}

#[test]
fn a_refusal_by_the_manager_is_reported_once_and_programs_run() {
    if guest_is_one_of(&["systemd"]).is_none() {
        return;
    }
    let place = place();
    let busctl = place.write("busctl", "#!/bin/sh\necho not today >&2\nexit 1\n");
    fs::set_permissions(busctl, fs::Permissions::from_mode(0o755)).unwrap();
    let ended = run_samples(&place, "PATH=$PWD:$PATH exec").ended().with(0);
    assert_eq!(ended.stderr.matches("not today").count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("systemd-run --user"), "{}", ended.stderr);
    assert_eq!(ended.result().backends.freezing, "signals");
    nothing_is_left(&place);
}

#[test]
fn doctor_says_that_a_scope_is_available_and_requests_none() {
    if guest_is_one_of(&["systemd"]).is_none() {
        return;
    }
    let place = place();
    let ended = log_in(&place, "exec ./cosched doctor --all").ended().with(0);
    let line = ended.stdout.lines().find(|line| line.starts_with("Turns by weight: ")).unwrap();
    assert!(line.contains("available") && line.contains("scope"), "{line}");
    nothing_is_left(&place);
}
