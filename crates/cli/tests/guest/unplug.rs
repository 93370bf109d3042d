//! A CPU is taken offline while programs are bound to it, and comes back.
//!
//! The kernel then moves a bound thread elsewhere, and refuses to bind it to that CPU again. The
//! run continues without that CPU, uses it again when it is back, and restores all settings at its
//! end.

use cosched_core::CpuSet;

use super::guest_is_one_of;
use super::offline::Unplugged;
use super::support::{Place, eventually, program};

fn run_loses_a_cpu(options: &str) {
    let place = Place::new();
    let work = "while [ ! -e go ]; do sleep 0.01; done; grep Cpus_allowed_list /proc/self/status";
    // The second is left with the last CPU alone; the third makes them take turns.
    let tables = [
        program("a", "threads = 7", &format!("echo $$ > a; {work}")),
        program("b", "threads = 1", &format!("echo $$ > b; {work}")),
        program("c", "threads = 8", &format!("echo $$ > c; {work}")),
    ];
    let cosched = place.run(&tables, &format!("--policy greedy --quantum 50ms {options}"));
    let all_started = || ["a", "b", "c"].iter().all(|name| !place.read(name).is_empty());
    eventually("the programs", all_started);
    let a_few_rounds = || std::thread::sleep(std::time::Duration::from_secs(2));
    let unplugged = Unplugged::now(&[7]);
    a_few_rounds();
    drop(unplugged);
    a_few_rounds();
    place.write("go", "");
    let ended = cosched.ended().with(0);
    let result = ended.result();
    // `b` is on it, is not, and is again.
    let spans = &result.programs[1].timeline;
    let last: CpuSet = [7].into_iter().collect();
    let mut on_it: Vec<bool> = spans.iter().map(|span| span.2 == Some(last)).collect();
    on_it.dedup();
    assert_eq!(on_it, [true, false, true], "{spans:?}");
    for program in &result.programs {
        assert_eq!(program.exit_status, Some(0), "{}", program.name);
        let said = place.read(&format!("out/{}.stdout", program.name));
        let cpus: CpuSet =
            said.trim().trim_start_matches("Cpus_allowed_list:").trim().parse().unwrap();
        assert!(!cpus.is_empty());
    }
    place.nothing_is_left_of(&ended);
}

#[test]
fn a_run_with_masks_survives_the_loss_of_a_cpu() {
    if guest_is_one_of(&["packages"]).is_some() {
        run_loses_a_cpu("--freezer cgroup-v2 --pinning affinity");
    }
}

#[test]
fn a_run_with_cpusets_survives_the_loss_of_a_cpu() {
    if guest_is_one_of(&["packages"]).is_some() {
        run_loses_a_cpu("--freezer cgroup-v2 --pinning cpuset");
    }
}

#[test]
fn programs_of_a_killed_cosched_get_the_cpu_back() {
    if guest_is_one_of(&["packages"]).is_none() {
        return;
    }
    let place = Place::new();
    let script = |name: &str| format!("echo $$ > {name}; while :; do sleep 0.01; done");
    let tables = ["a", "b"].map(|name| program(name, "threads = 5", &script(name)));
    let cosched = place.run(&tables, "--policy gang --quantum 20ms --freezer cgroup-v2");
    eventually("the programs", || !place.read("a").is_empty() && !place.read("b").is_empty());
    let unplugged = Unplugged::now(&[7]);
    let pid = cosched.pid();
    cosched.kill();
    eventually("the undo log's end", || place.undo_logs().is_empty());
    drop(unplugged);
    let marked = place.marked();
    let programs = marked.programs();
    for name in ["a", "b"] {
        let first: i32 = place.read(name).trim().parse().unwrap();
        let process = *programs.iter().find(|process| process.pid == first).unwrap();
        assert!(!marked.is_held(process));
        assert_eq!(marked.cpus(process), Some(CpuSet::first(8)), "{name}");
    }
    place.no_trace_is_left_of(pid);
}
