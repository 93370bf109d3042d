//! What cosched sees of each machine, and where it places threads there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::guest_is_one_of;
use super::support::{Place, program};

/// A machine: packages, last-level caches, cores, memory nodes; and the CPUs of two programs of
/// two threads each that share a quantum, packed and spread.
struct Expected {
    shape: [u64; 4],
    packed: [&'static str; 2],
    spread: [&'static str; 2],
}

fn machines() -> BTreeMap<&'static str, Expected> {
    BTreeMap::from([
        (
            "packages",
            Expected { shape: [4, 4, 8, 1], packed: ["0-1", "2-3"], spread: ["0,2", "4,6"] },
        ),
        // Neighbours are at different memory.
        ("numa", Expected { shape: [4, 4, 8, 2], packed: ["0-1", "4-5"], spread: ["0,2", "4,6"] }),
        // Siblings are neighbours: no program gets two of one core while another core is idle.
        ("smt", Expected { shape: [2, 2, 4, 1], packed: ["0,2", "4,6"], spread: ["0,4", "2,6"] }),
        (
            "caches",
            Expected { shape: [2, 4, 8, 1], packed: ["0-1", "2-3"], spread: ["0,4", "2,6"] },
        ),
    ])
}

#[test]
fn the_machine_is_seen_as_it_was_defined() {
    let machines = machines();
    let names: Vec<&str> = machines.keys().copied().collect();
    let Some(name) = guest_is_one_of(&names) else { return };
    let place = Place::new();
    let ended = place.cosched(&["doctor", "--json"]).ended().with(0);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let machine = &report["machine"];
    let keys = ["packages", "last_level_caches", "cores", "numa_nodes"];
    assert_eq!(keys.map(|key| machine[key].as_u64().unwrap()), machines[&name.as_str()].shape);
    assert_eq!(machine["usable"], 8);
}

#[test]
fn programs_of_one_quantum_are_placed_by_the_topology() {
    let machines = machines();
    let names: Vec<&str> = machines.keys().copied().collect();
    let Some(name) = guest_is_one_of(&names) else { return };
    let expected = &machines[name.as_str()];
    for (placement, cpus) in [("packed", expected.packed), ("spread", expected.spread)] {
        let place = Place::new();
        let script = "sleep 0.2; grep Cpus_allowed_list /proc/self/status";
        let tables = ["a", "b"].map(|name| program(name, "threads = 2", script));
        let options = format!("--policy greedy --placement {placement}");
        let ended = place.run(&tables, &options).ended().with(0);
        for (program, cpus) in ended.result().programs.iter().zip(cpus) {
            let given = program.timeline.first().unwrap().2.unwrap().to_string();
            assert_eq!(given, cpus, "{placement}");
            let line = place.read(&format!("out/{}.stdout", program.name));
            let last = program.timeline.last().unwrap().2.unwrap();
            assert_eq!(line, format!("Cpus_allowed_list:\t{last}\n"), "{placement}");
        }
        place.nothing_is_left_of(&ended);
    }
}

/// With a cpuset of version 2, a program has the memory nodes of its CPUs.
#[test]
fn programs_have_the_memory_of_their_cpus() {
    if guest_is_one_of(&["numa"]).is_none() {
        return;
    }
    // Only in the root may processes be beside cgroups that have controllers.
    let root = Path::new("/sys/fs/cgroup");
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let back = Cgroup(root.join(own.trim().strip_prefix("0::/").unwrap()));
    Cgroup::enter(root);
    for (placement, nodes) in [("packed", "0"), ("spread", "0-1")] {
        let place = Place::new();
        let script = "sleep 0.2; grep Mems_allowed_list /proc/self/status";
        let tables = ["a", "b"].map(|name| program(name, "threads = 2", script));
        let options = format!("--policy greedy --placement {placement} --pinning cpuset");
        let ended = place.run(&tables, &options).ended().with(0);
        assert_eq!(ended.result().backends.pinning, "cpuset");
        for name in ["a", "b"] {
            let line = place.read(&format!("out/{name}.stdout"));
            assert_eq!(line, format!("Mems_allowed_list:\t{nodes}\n"), "{placement}");
        }
        place.nothing_is_left_of(&ended);
    }
    drop(back);
}

/// The cgroup to which this process goes back in any case.
struct Cgroup(PathBuf);

impl Cgroup {
    fn enter(cgroup: &Path) {
        std::fs::write(cgroup.join("cgroup.procs"), "0").unwrap();
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        Cgroup::enter(&self.0);
    }
}

#[test]
fn co_runners_are_bound_apart_and_backfill_runs_everywhere() {
    let machines = machines();
    // Where the tests are in a cgroup with others, no program can have a CPU group.
    let names: Vec<&str> = machines.keys().copied().filter(|name| *name != "numa").collect();
    let Some(name) = guest_is_one_of(&names) else { return };
    let place = Place::new();
    // Until the third program has ended, the first two run as backfill every second time.
    let script = "until [ -e ended ]; do sleep 0.05; done";
    let mut tables: Vec<String> =
        ["a", "b"].map(|name| program(name, "threads = 2", script)).to_vec();
    tables.push(program("c", "threads = 8", "sleep 2; : > ended"));
    let ended = place.run(&tables, "--turns weight").ended().with(0);
    let result = ended.result();
    let cpus = |program: usize| -> Vec<Option<String>> {
        let timeline = result.programs[program].timeline.iter();
        timeline.map(|span| span.2.map(|cpus| cpus.to_string())).collect()
    };
    for (program, packed) in machines[name.as_str()].packed.into_iter().enumerate() {
        let given = cpus(program);
        assert!(given.contains(&Some(packed.to_owned())) && given.contains(&None), "{given:?}");
        let is_one = |cpus: &Option<String>| cpus.as_ref().is_none_or(|cpus| cpus == packed);
        assert!(given.iter().all(is_one), "{given:?}");
    }
    assert!(cpus(2).iter().all(Option::is_none), "{:?}", cpus(2));
    place.nothing_is_left_of(&ended);
}
