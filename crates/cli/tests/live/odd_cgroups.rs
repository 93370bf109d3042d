//! cosched in cgroups of version 2 in which it can make no cgroup, or too few of them.

use std::fs;
use std::process::Command;

use cosched_core::Refusal;
use cosched_linux::cgroup::{Dir, Hierarchies};
use cosched_linux::kernel::procfs::Proc;

use super::support::{Backend, Cosched, Ended, Place, eventually, program, skip};

/// A new cgroup below that of the test; removed when dropped.
struct Made(Dir);

impl Made {
    fn new(name: &str) -> Option<Made> {
        let trees = Hierarchies::find(&Proc::default()).unwrap();
        let name = format!("test-{name}-{}", std::process::id());
        let made = trees.v2().and_then(|tree| tree.own.create_child(&name).ok());
        if made.is_none() {
            skip("no v2 cgroup can be made here");
        }
        made.map(Made)
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.0.path().join(file), text).unwrap();
    }

    /// Runs four programs; cosched and they are in this cgroup.
    fn run(&self, place: &Place, options: &str) -> Ended {
        let table = |name| program(name, "threads = 1", "echo done");
        place.write("jobs.toml", ["a", "b", "c", "d"].map(table).concat());
        let mut command = Command::new("sh");
        command.args(["-c", "echo 0 > \"$0/cgroup.procs\" && exec \"$@\""]).arg(self.0.path());
        command.arg(&place.executable).args(["run", "jobs.toml", "--out", "out", "--force"]);
        command.args(options.split_whitespace());
        Cosched::start(command, place).ended()
    }

    /// Programs run without cgroups of version 2. The option that demands these is refused, with
    /// the reason.
    fn is_done_without(&self, reason: &str) {
        let place = Place::new();
        for options in ["", "--policy gang --quantum 5ms"] {
            let ended = self.run(&place, options).with(0);
            assert_ne!(ended.result().backends.freezing, "cgroup-v2");
            for name in ["a", "b", "c", "d"] {
                assert_eq!(place.read(&format!("out/{name}.stdout")), "done\n");
            }
            place.nothing_is_left_of(&ended);
        }
        let demanded = self.run(&place, "--policy gang --freezer cgroup-v2").with(2);
        place.nothing_is_left_of(&demanded.saying(&[reason]));
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // Ended processes leave a moment later.
        eventually("the end of the cgroup", || self.0.remove().is_ok());
    }
}

#[test]
fn programs_run_in_a_threaded_cgroup() {
    let Some(above) = Made::new("domain") else { return };
    let inner = Made(above.0.create_child("threaded").unwrap());
    inner.write("cgroup.type", "threaded");
    inner.is_done_without("threaded");
    drop(inner);
}

/// Freezing the rest of a program would not pause it.
#[test]
fn a_program_that_leaves_its_cgroups_is_not_taken_for_frozen() {
    let leaves = "for tree in $(awk '$3 ~ /^cgroup/ { print $2 }' /proc/self/mounts); do \
                  echo $$ > $tree/cgroup.procs; done 2> /dev/null; cat /proc/self/cgroup";
    let alone = Command::new("sh").args(["-c", leaves]).output().unwrap();
    let left = String::from_utf8(alone.stdout).unwrap().lines().all(|line| line.ends_with(":/"));
    if !left {
        return skip("only root outside of a container can leave its cgroups");
    }
    let burns = "while [ ! -e stop ]; do :; done";
    let tables = [
        program("stray", "threads = 1", &format!("{leaves} > /dev/null; {burns}")),
        program("other", "threads = 1", burns),
    ];
    let place = Place::new();
    let says = "has a process that moved to another cgroup";
    let cgroups = Backend::here().into_iter().filter(|backend| backend.0.starts_with("cgroup"));
    let frozen = cgroups.map(|backend| format!("--policy gang --freezer {}", backend.0));
    for options in frozen.chain(["--policy turns".to_owned()]) {
        let run = place.run(&tables, &format!("{options} --quantum 10ms --force"));
        eventually("the message", || run.said().contains(says));
        place.write("stop", "");
        let ended = run.ended().with(0);
        std::fs::remove_file(place.path("stop")).unwrap();
        let of_stray = |why| why == Refusal::LeftCgroup;
        let told = ended.result().deviations.iter().any(|deviation| of_stray(deviation.why));
        assert!(told || options.contains("turns"), "{options}");
        place.nothing_is_left_of(&ended);
    }
}

#[test]
fn programs_run_where_few_cgroups_may_be_made() {
    let Some(few) = Made::new("few") else { return };
    few.write("cgroup.max.descendants", "2");
    few.is_done_without("cgroup.max.descendants");
}

#[test]
fn programs_run_where_cgroups_may_not_be_deep() {
    let Some(flat) = Made::new("flat") else { return };
    flat.write("cgroup.max.depth", "1");
    flat.is_done_without("cgroup.max.depth");
}
