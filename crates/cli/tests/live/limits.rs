//! What a process may have: open files, a terminal.

use std::process::Command;

use cosched_linux::control::autogroup;
use cosched_linux::kernel::procfs::Proc;

use super::kills::restored;
use super::support::{Backend, Cosched, Place, eventually, program, skip};

/// More programs than fit under a low limit.
const MANY: usize = 40;

/// Starts `cosched run` with these limits of open files, soft and hard.
fn limited(place: &Place, limits: &str, tables: &[String], options: &str) -> Cosched {
    place.write("jobs.toml", tables.concat());
    let mut command = Command::new("prlimit");
    command.arg(format!("--nofile={limits}")).arg(&place.executable).args(["run", "jobs.toml"]);
    command.args(["--out", "out"]).args(options.split_whitespace());
    Cosched::start(command, place)
}

/// Programs that are all there at the same time.
fn many() -> Vec<String> {
    let script = "touch started; while [ ! -e go ]; do sleep 0.01; done";
    let script = |i| script.replace("started", &format!("started-{i}"));
    (0..MANY).map(|i| program(&format!("p{i}"), "threads = 1", &script(i))).collect()
}

#[test]
fn too_low_limits_of_open_files_are_refused_at_the_start() {
    for backend in Backend::here() {
        let options = format!("--policy gang --quantum 5ms --freezer {}", backend.0);
        let place = Place::new();
        for limits in ["12:12", "64:64"] {
            let ended = limited(&place, limits, &many(), &options).ended().with(2);
            place.nothing_is_left_of(&ended.saying(&[
                "open files",
                "hard limit",
                "fewer programs",
            ]));
        }
        let ended = limited(&place, "64:64", &many(), &options).ended();
        let words: Vec<&str> = ended.stderr.split("ulimit -Hn ").collect();
        let enough: u64 = words[1].split('`').next().unwrap().parse().unwrap();
        let less = format!("{0}:{0}", enough - 1);
        limited(&place, &less, &many(), &options).ended().with(2);

        let cosched = limited(&place, &format!("50:{enough}"), &many(), &options);
        let started = |i| place.path(&format!("started-{i}")).exists();
        eventually("all programs", || (0..MANY).all(started));
        let held = Proc::default().fds(cosched.pid()).unwrap().len();
        // What is open for a moment only comes on top.
        assert!(held > MANY && held as u64 <= enough, "{held} of {enough} on {backend:?}");
        place.write("go", "");
        place.nothing_is_left_of(&cosched.ended().with(0));
    }
}

/// Also where no folder for the undo log is known, which is looked for then.
#[test]
fn too_few_open_files_to_begin_with_are_named_as_the_reason() {
    let place = Place::new();
    for limit in 4..12 {
        let mut command = Command::new("prlimit");
        command.arg(format!("--nofile={limit}:{limit}")).arg(&place.executable);
        command.args(["run", "--", "true"]).env_remove("XDG_RUNTIME_DIR");
        let ended = command.output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert!(!ended.status.success() && said.contains("open files"), "{limit}: {said}");
    }
}

#[test]
fn programs_get_the_limit_of_open_files_that_cosched_was_given() {
    let place = Place::new();
    let tables = [program("a", "", "ulimit -Sn; ulimit -Hn")];
    let ended = limited(&place, "200:5000", &tables, "--policy gang").ended().with(0);
    assert_eq!(place.read("out/a.stdout"), "200\n5000\n");
    place.nothing_is_left_of(&ended);
}

/// A small disk of its own, in place of a folder; undone when dropped.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn mount(folder: std::path::PathBuf) -> Option<SmallDisk> {
        std::fs::create_dir_all(&folder).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=64k,mode=700", "none"]).arg(&folder);
        mount.status().unwrap().success().then_some(SmallDisk(folder))
    }

    fn fill(&self) {
        let mut file = std::fs::File::create(self.0.join("full")).unwrap();
        while std::io::Write::write_all(&mut file, &[0; 512]).is_ok() {}
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(&self.0).status().unwrap();
    }
}

/// The run itself goes on, too.
#[test]
fn runs_are_undone_even_if_the_logs_disk_is_full() {
    if !rustix::process::geteuid().is_root() {
        return skip("mounting a small disk needs root");
    }
    for backend in Backend::here() {
        let place = Place::new();
        let Some(disk) = SmallDisk::mount(place.path("run")) else {
            return skip("this container may mount nothing");
        };
        let spins = "while [ ! -e go ]; do :; done";
        let tables = [
            program("a", "threads = 1", spins),
            program("b", "threads = 1", spins),
            program("short", "threads = 1\nrepeat = 100000", "echo . >> short"),
        ];
        let options = format!("--policy gang --quantum 5ms --freezer {}", backend.0);
        let cosched = place.run(&tables, &options);
        let pid = cosched.pid();
        eventually("a program that was repeated", || place.read("short").len() > 2);
        disk.fill();
        let said = || place.read("cosched.stderr");
        eventually("a word of it", || said().contains("kept in memory until there is room"));
        let before = place.read("short").len();
        eventually("further programs", || place.read("short").len() > before + 4);
        cosched.kill();
        restored(&place, pid);
        place.write("go", "");
        drop(disk);
        place.marked().end();
    }
}

/// The sessions of cosched and of the program that it runs with this command line in front of it.
fn sessions(before: &[&str]) -> (i32, i32) {
    let place = Place::new();
    let table =
        program("a", "", "cut -d' ' -f6 /proc/self/stat; while [ ! -e go ]; do sleep 0.01; done");
    place.write("jobs.toml", table);
    place.write("off", "0\n");
    let mut command = Command::new(before.first().unwrap_or(&"env"));
    command.args(before.iter().skip(1)).arg(&place.executable);
    command.args(["run", "jobs.toml", "--out", "out", "--policy", "gang"]);
    let cosched = Cosched::start(command, &place);
    eventually("the program", || place.read("out/a.stdout").ends_with('\n'));
    let own = Proc::default().stat(cosched.pid()).unwrap().session;
    place.write("go", "");
    cosched.ended().with(0);
    (own, place.read("out/a.stdout").trim().parse().unwrap())
}

#[test]
fn gang_programs_get_sessions_only_for_autogroup_shares() {
    let (own, program) = sessions(&[]);
    let shares = autogroup::shares_by_session(&Proc::default()).unwrap();
    assert_eq!(own != program, shares);

    // A mount namespace in which the feature shows as off.
    let hide = "mount --bind off /proc/sys/kernel/sched_autogroup_enabled && exec \"$@\"";
    let hidden = ["unshare", "--mount", "sh", "-c", hide, "sh"];
    if !rustix::process::geteuid().is_root() {
        return skip("a mount namespace needs root");
    }
    let (own, program) = sessions(&hidden);
    assert_eq!(own, program);
}

/// As two jobs of `mpirun` with one process each have both the first CPU.
#[test]
fn programs_that_keep_to_the_same_cpu_are_told_of() {
    let cpus = cosched_linux::kernel::affinity::get(0).unwrap();
    let (Some(first), true) = (cpus.iter().next(), cpus.len() > 1) else {
        return skip("this machine has one CPU");
    };
    let place = Place::new();
    let burns = format!("taskset -c {first} sh -c 'while [ ! -e stop ]; do :; done'");
    let free = program("free", "threads = 1", "while [ ! -e stop ]; do :; done");
    let tables = [program("a", "threads = 1", &burns), program("b", "threads = 1", &burns), free];
    let run = place.run(&tables, "");
    let says = |name: &str| format!("{name} has bound itself to CPU {first}, as another program");
    eventually("both messages", || {
        run.said().contains(&says("a")) && run.said().contains(&says("b"))
    });
    place.write("stop", "");
    assert!(!run.said().contains("free has bound"), "{}", run.said());
    run.ended().with(0);
}
