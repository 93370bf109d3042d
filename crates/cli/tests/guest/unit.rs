//! The unit `cosched@.service` in a systemd user manager: a jobs file as a service.

use std::path::Path;

use super::guest_is_one_of;
use super::support::{Place, eventually, program};
use super::user::{log_in, nothing_is_left, number, place};

const UNIT: &str = include_str!("../../../../packaging/cosched@.service");
/// What an installed unit and a user's own files amount to. The tested cosched is not in /usr/bin.
const INSTALL: &str = "mkdir -p ~/.config/cosched ~/.config/systemd/user \
    && cp jobs.toml jobs.conf ~/.config/cosched/ && cp cosched@.service ~/.config/systemd/user/ \
    && systemctl --user daemon-reload";

/// Installs the unit for a jobs file of these programs.
fn install(place: &Place, tables: &[String], options: &str) {
    let executable = place.executable.display().to_string();
    place.write("cosched@.service", UNIT.replace("/usr/bin/cosched", &executable));
    place.write("jobs.toml", tables.concat());
    place.write("jobs.conf", format!("OPTIONS={options}\n"));
    log_in(place, INSTALL).ended().with(0);
}

fn keys(place: &Place) -> String {
    format!("threads = 2\ncwd = '{}'", place.folder().display())
}

#[test]
fn a_service_runs_a_jobs_file_in_its_own_cgroup_and_ends() {
    if guest_is_one_of(&["systemd"]).is_none() {
        return;
    }
    let place = place();
    let work = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; cat /proc/self/cgroup";
    let tables = ["a", "b"].map(|name| program(name, &keys(&place), work));
    // A value with a space, as docs/install.md describes it.
    let (out, socket) = (place.path("out"), place.path("a socket"));
    let (out, socket) = (out.display(), socket.display());
    let options = format!("--policy gang --quantum 50ms --out {out} --metrics \"unix:{socket}\"");
    install(&place, &tables, &format!("'{options}'"));
    let ended = log_in(&place, "exec systemctl --user start --wait cosched@jobs").ended().with(0);
    let result = ended.result();
    assert_eq!((result.policy.as_str(), result.backends.freezing.as_str()), ("gang", "cgroup-v2"));
    assert_eq!(result.quantum_seconds, Some(0.05));
    for name in ["a", "b"] {
        let cgroup = place.read(&format!("out/{name}.stdout"));
        assert!(cgroup.contains(&format!("/user@{}.service/", number("-u"))), "{cgroup}");
        assert!(cgroup.contains("/cosched@jobs.service/"), "{cgroup}");
    }
    nothing_is_left(&place);
}

#[test]
fn a_stopped_service_has_not_failed_and_leaves_no_program() {
    if guest_is_one_of(&["systemd"]).is_none() {
        return;
    }
    let place = place();
    let spin = |name: &str| format!("echo $$ > {name}; while :; do :; done");
    let tables = ["a", "b"].map(|name| program(name, &keys(&place), &spin(name)));
    install(&place, &tables, "--policy gang --quantum 20ms");
    log_in(&place, "exec systemctl --user start cosched@jobs").ended().with(0);
    eventually("the programs", || !place.read("a").is_empty() && !place.read("b").is_empty());
    let stop =
        "systemctl --user stop cosched@jobs && exec systemctl --user show -P Result cosched@jobs";
    assert_eq!(log_in(&place, stop).ended().with(0).stdout, "success\n");
    for name in ["a", "b"] {
        assert!(!Path::new("/proc").join(place.read(name).trim()).exists(), "{name} runs on");
    }
    nothing_is_left(&place);
}

#[test]
fn a_service_fails_if_its_program_fails() {
    if guest_is_one_of(&["systemd"]).is_none() {
        return;
    }
    let place = place();
    install(&place, &[program("a", &keys(&place), "exit 3")], "");
    let wait = "systemctl --user start --wait cosched@jobs; \
        exec systemctl --user show -P ExecMainStatus cosched@jobs";
    assert_eq!(log_in(&place, wait).ended().with(0).stdout, "1\n");
    nothing_is_left(&place);
}
