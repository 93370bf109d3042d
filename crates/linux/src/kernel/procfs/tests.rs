use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio, id};
use std::time::Duration;

use tempfile::TempDir;

use super::*;

fn put(root: &TempDir, file: &str, text: &str) {
    let path = root.path().join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn line(pid: i32, ppid: i32) -> String {
    format!(
        "{pid} (x) S {ppid} {pid} {pid} 0 0 0 0 0 0 0 1 2 0 0 20 0 1 0 77 0 0 {}",
        ["0"; 16].join(" ")
    )
}

/// 1 has the children 2 and 5, 2 has the child 3.
fn family(with_children_files: bool) -> (TempDir, Proc) {
    let root = tempfile::tempdir().unwrap();
    for (pid, ppid, children) in [(1, 0, "2 5 "), (2, 1, "3 "), (3, 2, ""), (5, 1, "")] {
        put(&root, &format!("{pid}/stat"), &line(pid, ppid));
        put(&root, &format!("{pid}/task/{pid}/stat"), &line(pid, ppid));
        if with_children_files {
            put(&root, &format!("{pid}/task/{pid}/children"), children);
        }
    }
    put(&root, "uptime", "1 2");
    let proc = Proc::new(root.path());
    (root, proc)
}

#[test]
fn descendants_do_not_depend_on_the_kernels_list_of_children() {
    for with_children_files in [true, false] {
        let (_root, proc) = family(with_children_files);
        assert_eq!(proc.children(1).unwrap(), [2, 5]);
        assert_eq!(proc.descendants(1).unwrap(), [2, 3, 5]);
        assert_eq!(proc.descendants(2).unwrap(), [3]);
        assert_eq!(proc.descendants(99).unwrap(), [0; 0]);
    }
}

#[test]
fn children_of_every_thread_count() {
    let (root, proc) = family(true);
    put(&root, "1/task/8/stat", &line(8, 0));
    put(&root, "1/task/8/children", "4 5");
    assert_eq!(proc.children(1).unwrap(), [2, 4, 5]);
}

/// Every thread has a list of children, but here all lists are empty: only a read of the children's
/// own data finds them.
#[test]
fn many_threads_are_not_asked_one_by_one_for_children() {
    let (root, proc) = family(true);
    put(&root, "1/task/1/children", "");
    for other in 1..MANY_THREADS {
        assert_eq!(proc.children(1).unwrap(), [0; 0], "{other}");
        put(&root, &format!("1/task/{}/children", 100 + other), "");
    }
    assert_eq!(proc.children(1).unwrap(), [2, 5]);
    assert_eq!(proc.descendants(1).unwrap(), [2, 3, 5]);
}

#[test]
fn a_process_is_the_same_only_with_the_same_start_time() {
    let (_root, proc) = family(true);
    assert!(proc.is_same(3, 77).unwrap());
    assert!(!proc.is_same(3, 78).unwrap());
    assert!(!proc.is_same(99, 77).unwrap());
}

#[test]
fn the_tracer_is_read() {
    let (root, proc) = family(true);
    put(&root, "2/status", "Name:\tTracerPid: 9\nTracerPid:\t0\n");
    put(&root, "3/status", "Name:\tx\nTracerPid:\t17\n");
    assert_eq!(proc.tracer_and_threads(2).unwrap().0, None);
    assert_eq!(proc.tracer_and_threads(3).unwrap().0, Some(17));
    assert!(proc.tracer_and_threads(99).unwrap_err().is_gone());
}

#[test]
fn descriptors_have_the_kernels_names_of_their_targets() {
    let (root, proc) = family(true);
    fs::create_dir(root.path().join("2/fd")).unwrap();
    symlink("pipe:[123]", root.path().join("2/fd/10")).unwrap();
    symlink("/dev/null", root.path().join("2/fd/0")).unwrap();
    let fds = proc.fds(2).unwrap();
    let fds: Vec<_> = fds.iter().map(|fd| (fd.number, fd.target.as_str())).collect();
    assert_eq!(fds, [(0, "/dev/null"), (10, "pipe:[123]")]);
}

#[test]
fn cgroup_paths_may_hold_colons() {
    let (root, proc) = family(true);
    put(&root, "2/cgroup", "4:cpu,cpuacct:/a:b\n1:name=systemd:/\n0::/user.slice\n");
    let cgroups = proc.cgroups(2).unwrap();
    assert_eq!(cgroups[0].controllers, ["cpu", "cpuacct"]);
    assert_eq!(cgroups[0].path, "/a:b");
    assert_eq!((cgroups[2].controllers.len(), cgroups[2].path.as_str()), (0, "/user.slice"));
}

#[test]
fn this_process_is_read_as_it_is() {
    let (proc, me) = (Proc::default(), id() as i32);
    let stat = proc.stat(me).unwrap();
    assert_eq!((stat.pid, stat.ppid), (me, std::os::unix::process::parent_id() as i32));
    let tid = rustix::thread::gettid().as_raw_nonzero().get();
    assert!(proc.threads(me).unwrap().contains(&tid));
    assert_eq!(proc.thread_stat(me, tid).unwrap().state, ProcState::Running);
    assert!(proc.is_same(me, stat.start_time).unwrap());
    let (tracer, threads) = proc.tracer_and_threads(me).unwrap();
    assert_eq!(tracer, None);
    assert!(threads > 0);
}

#[test]
fn a_child_is_seen_with_its_pipe() {
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let (proc, pid) = (Proc::default(), child.id() as i32);
    assert!(proc.children(id() as i32).unwrap().contains(&pid));
    let stdin = proc.fds(pid).unwrap().remove(0);
    assert!(stdin.number == 0 && stdin.target.starts_with("pipe:["), "{stdin:?}");
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(proc.stat(pid).unwrap_err().is_gone());
}

#[test]
fn a_thread_that_has_run_has_run_time() {
    let (proc, me) = (Proc::default(), rustix::thread::gettid().as_raw_nonzero().get());
    let before = proc.runs(me);
    std::thread::sleep(Duration::from_millis(1));
    assert!(before.is_some() && proc.runs(me) != before);
    let mut child = Command::new("sleep").arg("100").spawn().unwrap();
    let it = child.id() as i32;
    let sleeps = || proc.stat(it).unwrap().state == ProcState::Sleeping;
    while !sleeps() || proc.name(it).unwrap() != "sleep" {
        std::thread::sleep(Duration::from_millis(1));
    }
    let before = proc.runs(it);
    std::thread::sleep(Duration::from_millis(1));
    assert!(before.is_some() && proc.runs(it) == before);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn only_a_live_process_has_the_same_numbers() {
    assert!(Proc::default().numbers_alike(std::process::id() as i32));
    assert!(!Proc::default().numbers_alike(i32::MAX));
}

#[test]
fn a_process_with_our_executable_is_known() {
    let mut other = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    assert!(Proc::default().runs_own_executable(std::process::id() as i32));
    assert!(!Proc::default().runs_own_executable(other.id() as i32));
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn a_killed_process_is_ending_before_it_has_ended() {
    let (root, proc) = family(true);
    let status = |own: &str, shared: &str| {
        put(&root, "3/status", &format!("Name:\tx\nSigPnd:\t{own}\nShdPnd:\t{shared}\n"));
        proc.is_ending(3).unwrap()
    };
    let (none, kill, others) = ("0000000000000000", "0000000000000100", "00000000000000ff");
    assert_eq!([status(none, none), status(others, others)], [false, false]);
    assert_eq!([status(kill, none), status(none, kill)], [true, true]);
    put(&root, "3/stat", &line(3, 2).replace(" 0 0 0 0 0 0 0 1 2", " 0 0 4 0 0 0 0 1 2"));
    assert!(status(none, none), "it has taken the signal");
    assert!(proc.is_ending(9).is_err());
}

#[test]
fn a_set_uid_program_has_more_rights_than_its_user() {
    let status = |users: &str, rights: &str| format!("Uid:\t{users}\nCapPrm:\t{rights}\n");
    let (none, raw, setuid) = ("0000000000000000", "0000000000002000", "0000000000000080");
    let own = "1000\t1000\t1000\t1000";
    assert!(!has_more_rights(&status(own, none), 1000));
    assert!(!has_more_rights(&status(own, raw), 1000), "it cannot become another user");
    assert!(has_more_rights(&status(own, setuid), 1000));
    assert!(has_more_rights(&status("1000\t0\t0\t0", none), 1000));
    assert!(has_more_rights(&status("1000\t1000\t0\t1000", none), 1000));
}

#[test]
fn a_pending_stop_is_seen_before_it_is_taken() {
    let (root, proc) = family(true);
    let status = |own: &str, shared: &str| {
        put(&root, "3/status", &format!("Name:\tx\nSigPnd:\t{own}\nShdPnd:\t{shared}\n"));
        proc.is_about_to_stop(3).unwrap()
    };
    let (none, stop, kill) = ("0000000000000000", "0000000000040000", "0000000000000100");
    assert_eq!([status(none, none), status(kill, kill)], [false, false]);
    assert_eq!([status(stop, none), status(none, stop)], [true, true]);
}
