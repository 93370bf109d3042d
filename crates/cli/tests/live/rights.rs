//! An ordinary user: every policy works by signals, and a delegated cgroup makes freezing better.

use std::fs;
use std::os::unix::fs::chown;
use std::path::PathBuf;
use std::process::Command;

use cosched_linux::cgroup::{Dir, Hierarchies};
use cosched_linux::kernel::affinity;
use cosched_linux::kernel::procfs::Proc;
use rustix::process::Signal;

use super::support::{Cosched, Place, STAMPS, User, blocks, eventually, program, skip};

fn everything() -> String {
    format!("threads = {}\nmisses_per_kilo_instruction = 1", affinity::get(0).unwrap().len())
}

#[test]
fn without_privileges_every_policy_works_by_signals() {
    for policy in ["linux", "fcfs", "gang", "greedy", "cgreedy", "minwait"] {
        let place = Place::of(User::ordinary());
        let tables = ["a", "b"].map(|name| program(name, &everything(), STAMPS));
        let freezes = !["linux", "fcfs"].contains(&policy);
        let how = if freezes { " --quantum 20ms --freezer signals" } else { "" };
        let options = format!("--policy {policy}{how}");
        let ended = place.run(&tables, &options).ended().with(0);
        let result = ended.result();
        let backends = if freezes { ("signals", "affinity") } else { ("none", "none") };
        assert_eq!((result.backends.freezing.as_str(), result.backends.pinning.as_str()), backends);
        let outputs = ["a", "b"].map(|name| place.read(&format!("out/{name}.stdout")));
        let turns: Vec<usize> = result.programs.iter().map(|p| p.timeline.len()).collect();
        if policy != "linux" && result.deviations.is_empty() {
            assert!(
                blocks(&outputs).iter().zip(&turns).all(|(blocks, turns)| blocks <= turns),
                "{policy}"
            );
        }
        place.nothing_is_left_of(&ended);
    }
}

#[test]
fn actuators_without_a_right_are_told_before_the_start() {
    let (place, unlimited) = (Place::of(User::ordinary()), rustix::process::Resource::Rtprio);
    if rustix::process::getrlimit(unlimited).current != Some(0) {
        return skip("this user may have real-time threads");
    }
    for command in ["run", "exec"] {
        let start = |actuators: &str| {
            let how = ["--policy", "faithful", "--actuators", actuators, "--", "true"];
            place.cosched(&[&[command][..], &how].concat()).ended()
        };
        let why = ["--actuators: round-robin is not possible here", "`cosched doctor`"];
        start("round-robin").with(2).saying(&why);
        start("round-robin,batch").with(0).saying(&why);
        assert!(!start("batch").with(0).stderr.contains("round-robin"));
    }
}

#[test]
fn without_privileges_the_freezer_is_signals() {
    if matches!(User::ordinary(), User::Caller) {
        return skip("the caller may have been given a cgroup");
    }
    let place = Place::of(User::ordinary());
    let ended = place.run(&[program("a", "", "id -u")], "--policy gang").ended().with(0);
    assert_eq!(ended.result().backends.freezing, "signals");
    let User::Ordinary(uid) = place.user else { panic!() };
    assert_eq!(place.read("out/a.stdout"), format!("{uid}\n"));
}

#[test]
fn without_privileges_programs_are_restored_after_sigkill() {
    let place = Place::of(User::ordinary());
    let script = |name: &str| format!("echo $$ > {name}; while :; do :; done");
    let tables = ["a", "b"].map(|name| program(name, "threads = 1", &script(name)));
    let cosched = place.run(&tables, "--policy gang --quantum 5ms --freezer signals");
    eventually("the programs", || !place.read("a").is_empty() && !place.read("b").is_empty());
    let pid = cosched.pid();
    cosched.kill();
    let (marked, found) = (place.marked(), affinity::get(0).unwrap());
    eventually("the undo log's end", || place.undo_logs().is_empty());
    let programs = marked.programs();
    assert_eq!(programs.len(), 2);
    for process in programs {
        let before = marked.ticks(process);
        eventually("a program's going on", || marked.ticks(process) > before);
        assert_eq!(marked.cpus(process), Some(found));
        marked.signal(process, Signal::KILL);
    }
    eventually("the helpers' end", || marked.all().is_empty());
    place.no_trace_is_left_of(pid);
}

/// cosched as a container would start it: in a PID namespace, with the session leader outside.
fn contained(place: &Place, with: &[&str]) -> Cosched {
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--pid", "--fork", "--kill-child"]).args(with).arg(&place.executable);
    command.args(["run", "jobs.toml", "--out", "out", "--policy", "gang", "--quantum", "10ms"]);
    Cosched::start(command, place)
}

fn can_be_contained() -> bool {
    let tried = Command::new("unshare").args(["--user", "--pid", "--fork", "true"]).status();
    tried.is_ok_and(|status| status.success())
}

#[test]
fn in_a_container_programs_take_turns_too() {
    if !can_be_contained() {
        return skip("this user may not make PID namespaces");
    }
    let place = Place::new();
    let tables = ["a", "b"].map(|name| program(name, &everything(), STAMPS));
    place.write("jobs.toml", tables.concat());
    let result = contained(&place, &["--mount-proc"]).ended().with(0).result();
    assert!(result.programs.iter().all(|program| program.exit_status == Some(0)));
    if result.deviations.is_empty() {
        let outputs = ["a", "b"].map(|name| place.read(&format!("out/{name}.stdout")));
        let turns = result.programs.iter().map(|program| program.timeline.len());
        assert!(blocks(&outputs).into_iter().zip(turns).all(|(blocks, turns)| blocks <= turns));
    }
}

#[test]
fn a_proc_with_other_process_numbers_is_refused() {
    if !can_be_contained() {
        return skip("this user may not make PID namespaces");
    }
    let place = Place::new();
    place.write("jobs.toml", program("a", "", "touch started"));
    contained(&place, &[]).ended().with(2).saying(&["/proc/self", "mount -t proc"]);
    assert!(!place.path("started").exists());
}

/// A cgroup that is delegated to a user, as systemd does with `Delegate=yes`; removed when dropped.
struct Delegated(Dir);

impl Delegated {
    fn to(user: &User) -> Option<Delegated> {
        let User::Ordinary(uid) = user else {
            skip("only root can give a cgroup away");
            return None;
        };
        let trees = Hierarchies::find(&Proc::default()).unwrap();
        let name = format!("delegated-{}-{:?}", std::process::id(), std::thread::current().id());
        let name = name.replace(['(', ')'], "");
        let Some(Ok(dir)) = trees.v2().map(|tree| tree.own.create_child(&name)) else {
            skip("no v2 cgroup can be made here");
            return None;
        };
        for file in ["", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"] {
            chown(dir.path().join(file), Some(*uid), Some(*uid)).unwrap();
        }
        Some(Delegated(dir))
    }

    /// Starts cosched in it, by a shell that joins it before it gives up its permissions.
    fn cosched(&self, place: &Place, arguments: &[&str]) -> Cosched {
        let inside = place.user.command(&place.executable);
        let mut command = Command::new("sh");
        command.args(["-c", "echo 0 > \"$0/cgroup.procs\" && exec \"$@\""]).arg(self.0.path());
        command.arg(inside.get_program()).args(inside.get_args()).args(arguments);
        Cosched::start(command, place)
    }

    fn cgroups_inside(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_dir()).collect()
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        for inner in self.cgroups_inside() {
            let _ = fs::remove_dir(inner);
        }
        // Ended processes leave a moment later.
        eventually("the end of the delegated cgroup", || self.0.remove().is_ok());
    }
}

#[test]
fn a_delegated_cgroup_is_used_for_freezing_and_left_empty() {
    let user = User::ordinary();
    let Some(delegated) = Delegated::to(&user) else { return };
    let place = Place::of(user);
    let tables = ["a", "b"].map(|name| program(name, &everything(), STAMPS));
    place.write("jobs.toml", tables.concat());
    let run = ["run", "jobs.toml", "--policy", "gang", "--quantum", "20ms", "--out", "out"];
    let ended = delegated.cosched(&place, &run).ended().with(0);
    let result = ended.result();
    assert_eq!(result.backends.freezing, "cgroup-v2");
    if result.deviations.is_empty() {
        let outputs = ["a", "b"].map(|name| place.read(&format!("out/{name}.stdout")));
        let turns = result.programs.iter().map(|program| program.timeline.len());
        assert!(blocks(&outputs).into_iter().zip(turns).all(|(blocks, turns)| blocks <= turns));
    }
    place.nothing_is_left_of(&ended);
    assert_eq!(delegated.cgroups_inside(), Vec::<PathBuf>::new());
}

#[test]
fn a_delegated_cgroup_is_cleaned_up_after_sigkill() {
    let user = User::ordinary();
    let Some(delegated) = Delegated::to(&user) else { return };
    let place = Place::of(user);
    let script = |name: &str| format!("echo $$ > {name}; while :; do :; done");
    let tables = ["a", "b"].map(|name| program(name, "threads = 1", &script(name)));
    place.write("jobs.toml", tables.concat());
    let run = ["run", "jobs.toml", "--policy", "gang", "--quantum", "20ms"];
    let cosched = delegated.cosched(&place, &run);
    eventually("the programs", || !place.read("a").is_empty() && !place.read("b").is_empty());
    let marked = place.marked();
    eventually("a freeze", || marked.programs().into_iter().any(|process| marked.is_held(process)));
    let pid = cosched.pid();
    cosched.kill();
    eventually("the undo log's end", || place.undo_logs().is_empty());
    assert_eq!(delegated.cgroups_inside(), Vec::<PathBuf>::new());
    let programs = marked.programs();
    assert_eq!(programs.len(), 2);
    for process in programs {
        let before = marked.ticks(process);
        eventually("a program's going on", || marked.ticks(process) > before);
    }
    place.no_trace_is_left_of(pid);
    marked.end();
}

/// The shell enters the folder before it is closed.
#[test]
fn a_current_folder_that_the_user_may_not_enter_is_refused() {
    let place = Place::of(User::ordinary());
    let script = "mkdir closed; cd closed; chmod 0 .; \"$0\" run -p linux -- touch \"$1\"; \
                  code=$?; chmod 700 .; exit $code";
    let started = place.path("started");
    let mut command = place.user.command("sh".as_ref());
    command.args(["-c", script]).arg(&place.executable).arg(&started);
    let ended = Cosched::start(command, &place).ended().with(2);
    let said = ["/closed: permission denied for this user; go to another folder (`cd`)"];
    assert!(!started.exists(), "{}", ended.saying(&said).stderr);
}
