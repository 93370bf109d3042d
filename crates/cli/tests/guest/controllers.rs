//! The controllers of version 2 that a run uses: `cpuset` to bind, `cpu` to weigh.
//!
//! Both have to be enabled from cgroup to cgroup before a program's own has them, and disabled
//! afterwards: below the root, a cgroup that enables them may hold no process.

use std::collections::HashSet;
use std::fs;
use std::process::Command;
use std::time::Duration;

use cosched_core::CpuSet;
use cosched_linux::cgroup::{Dir, Hierarchies, Version};
use cosched_linux::kernel::procfs::Proc;

use super::guest;
use super::support::{Cosched, Place, eventually, program};

/// Prints a file of the program's own cgroup.
const OWN_FILE: &str = "cat /sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)/";
const MASK: &str = "grep Cpus_allowed_list /proc/self/status";
const CPUSET: &str = "--policy greedy --quantum 50ms --freezer cgroup-v2 --pinning cpuset";

/// The cgroup that cosched starts in. The root of the tree may hold processes and enable
/// controllers; below it cosched has to be alone, as in a scope of systemd's.
struct Home {
    dir: Dir,
    made: bool,
}

impl Home {
    fn new() -> Home {
        let own = Hierarchies::find(&Proc::default()).unwrap().v2().unwrap().own.clone();
        if !own.has("cgroup.type") {
            return Home { dir: own, made: false };
        }
        let above = Dir::new(own.path().parent().unwrap(), Version::V2);
        let thread = format!("{:?}", std::thread::current().id()).replace(['(', ')'], "");
        Home { dir: above.create_child(&format!("scope-{thread}")).unwrap(), made: true }
    }

    /// Starts cosched in here, on these programs.
    fn run(&self, place: &Place, tables: &[String], options: &str) -> Cosched {
        place.write("jobs.toml", tables.concat());
        let mut command = Command::new("sh");
        command.args(["-c", "echo 0 > \"$0/cgroup.procs\" && exec \"$@\""]).arg(self.dir.path());
        command.arg(&place.executable).args(["run", "jobs.toml", "--out", "out"]);
        command.args(options.split_whitespace());
        Cosched::start(command, place)
    }

    /// What must not change during a run: our children, our siblings, and the enabled controllers.
    fn surroundings(&self) -> (Vec<Dir>, Vec<Dir>, String) {
        let above = match self.made {
            true => Dir::new(self.dir.path().parent().unwrap(), Version::V2),
            false => self.dir.clone(),
        };
        let passed_on = self.dir.read("cgroup.subtree_control").unwrap();
        (self.dir.children().unwrap(), above.children().unwrap(), passed_on)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if self.made && !std::thread::panicking() {
            eventually("the end of cosched's cgroup", || self.dir.remove().is_ok());
        }
    }
}

fn list(text: &str) -> CpuSet {
    text.trim().trim_start_matches("Cpus_allowed_list:").trim().parse().unwrap()
}

#[test]
fn a_v2_cpuset_binds_programs_and_is_removed() {
    if guest().is_none() {
        return;
    }
    let home = Home::new();
    let before = home.surroundings();
    let place = Place::new();
    let script = format!("sleep 0.2; {OWN_FILE}cpuset.cpus; {MASK}");
    let tables = ["a", "b"].map(|name| program(name, "threads = 2", &script));
    let ended = home.run(&place, &tables, CPUSET).ended().with(0);
    let result = ended.result();
    assert_eq!(
        (result.backends.freezing.as_str(), result.backends.pinning.as_str()),
        ("cgroup-v2", "cpuset")
    );
    assert_eq!(result.deviations, []);
    let mut bound = CpuSet::EMPTY;
    for program in &result.programs {
        let cpus = program.timeline.last().unwrap().2.unwrap();
        let said = place.read(&format!("out/{}.stdout", program.name));
        let lists: Vec<CpuSet> = said.lines().map(list).collect();
        assert_eq!(lists, [cpus, cpus], "{}", program.name);
        assert!(bound.intersection(&cpus).is_empty());
        bound = bound.union(&cpus);
    }
    assert_eq!(bound.len(), 4);
    place.nothing_is_left_of(&ended);
    assert_eq!(home.surroundings(), before);
}

#[test]
fn processes_started_in_a_cpuset_are_bound_too() {
    if guest().is_none() {
        return;
    }
    let home = Home::new();
    let place = Place::new();
    // Two programs that fill the machine take turns, so children are born right before and after
    // freezes.
    let script = format!("i=0; while [ $i -lt 12 ]; do {MASK} & {MASK}; wait; i=$((i+1)); done");
    let tables = ["a", "b"].map(|name| program(name, "threads = 5", &script));
    let ended = home.run(&place, &tables, CPUSET).ended().with(0);
    for program in &ended.result().programs {
        let given: HashSet<CpuSet> = program.timeline.iter().filter_map(|span| span.2).collect();
        let said = place.read(&format!("out/{}.stdout", program.name));
        assert_eq!(said.lines().count(), 24);
        assert!(said.lines().all(|line| given.contains(&list(line))), "{given:?}: {said}");
        assert!(program.timeline.len() > 1, "{} was never frozen", program.name);
    }
    place.nothing_is_left_of(&ended);
}

#[test]
fn each_program_has_its_own_weight_and_nothing_is_left() {
    if guest().is_none() {
        return;
    }
    let home = Home::new();
    let before = home.surroundings();
    let place = Place::new();
    let tables = ["a", "b"].map(|name| program(name, "", &format!("{OWN_FILE}cpu.weight")));
    let ended = home.run(&place, &tables, "--policy linux-groups").ended().with(0);
    for name in ["a", "b"] {
        assert_eq!(place.read(&format!("out/{name}.stdout")), "100\n", "{}", ended.stderr);
    }
    place.nothing_is_left_of(&ended);
    assert_eq!(home.surroundings(), before);
}

#[test]
fn cgroups_and_cpusets_are_removed_after_sigkill() {
    if guest().is_none() {
        return;
    }
    let home = Home::new();
    // First while it prepares, which takes half a second here; then while programs take turns.
    for (wait_for_programs, milliseconds) in (0..12)
        .map(|moment| (false, moment * 40))
        .chain([0, 150, 400, 900].map(|moment| (true, moment)))
    {
        let before = home.surroundings();
        let place = Place::new();
        let script = |name: &str| format!("echo $$ > {name}; while :; do :; done");
        let tables = ["a", "b"].map(|name| program(name, "threads = 5", &script(name)));
        let cosched = home.run(&place, &tables, CPUSET);
        let all_run = || ["a", "b"].iter().all(|name| !place.read(name).is_empty());
        if wait_for_programs {
            eventually("the programs", all_run);
        }
        std::thread::sleep(Duration::from_millis(milliseconds));
        cosched.kill();
        let marked = place.marked();
        eventually("the sentinel's end", || {
            ["csentinel", "exe", "cosched"].iter().all(|name| marked.named(name).is_empty())
        });
        let everywhere = list(&fs::read_to_string("/sys/devices/system/cpu/online").unwrap());
        for process in marked.programs() {
            assert!(!marked.is_held(process), "{process} is frozen");
            assert_eq!(marked.cpus(process).unwrap_or(everywhere), everywhere);
        }
        assert!(marked.programs().len() == 2 || !wait_for_programs);
        assert!(marked.end());
        assert_eq!(home.surroundings(), before, "killed after {milliseconds} ms");
    }
}
