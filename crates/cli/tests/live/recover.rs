//! `cosched recover`: what is left if cosched and its sentinel are killed, and how it is undone.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

use cosched_linux::kernel::procfs::Proc;
use cosched_linux::process::tree::Process;
use rustix::process::Signal;
use serde_json::Value;

use super::kills::{all_started, firsts, start, start_with, wrongs};
use super::support::{
    Backend, Cosched, Ice, Place, User, cgroups_named, eventually, program, skip,
};
use super::turns;

#[test]
fn recover_restores_after_cosched_and_sentinel_are_killed() {
    for backend in Backend::here() {
        recovered(backend, false);
    }
}

#[test]
fn programs_are_recovered_when_the_log_was_removed() {
    for backend in Backend::here() {
        recovered(backend, true);
    }
}

#[test]
fn groups_are_recovered_without_log_and_shims() {
    for backend in Backend::here().into_iter().filter(|backend| *backend != Backend("signals")) {
        let place = Place::new();
        let pid = killed_with_shims(&place, backend);
        fs::remove_dir_all(place.path("run/cosched")).unwrap();
        assert!(!wrongs(&place, pid).is_empty());
        let other = place.cosched(&["top", "--once"]).ended().with(2);
        other.saying(&["`cosched recover` restores them"]);

        let ended = place.cosched(&["recover", "--json"]).ended().with(0);
        let report: Value = serde_json::from_str(&ended.stdout).unwrap();
        let undone = &report["undone"][0];
        assert!(undone["log"].as_str().unwrap().contains(&format!("/{pid}-")), "{report}");
        assert!(undone["processes_moved"].as_u64().unwrap() > 0, "{report}");
        assert!(undone["cgroups_removed"].as_u64().unwrap() > 0, "{report}");
        // A process that was born just while its parent was moved keeps the mask of the group.
        eventually("the end of such processes", || wrongs(&place, pid).is_empty());
        firsts(&place);
        place.no_trace_is_left_of(pid);
        let again = place.cosched(&["recover"]).ended().with(0);
        assert_eq!(again.stdout, "Nothing was left behind.\n");
    }
}

/// The mark of a cgroup leads to the log, in whatever folder that is or was, and so do shims.
#[test]
fn runs_with_another_runtime_folder_are_recovered() {
    for backend in Backend::here() {
        for left in ["everything", "no log", "no log and no shims", "a folder of others"] {
            if left == "no log and no shims" && backend == Backend("signals") {
                continue;
            }
            let place = Place::new();
            let pid = match left {
                "no log and no shims" => killed_with_shims(&place, backend),
                _ => left_behind(&place, backend),
            };
            match left {
                "everything" => {}
                "a folder of others" => open_to_others(&place),
                _ => fs::remove_dir_all(place.path("run")).unwrap(),
            }
            assert!(!wrongs(&place, pid).is_empty());
            let mut other = place.user.command(&place.executable);
            let other = other.args(["top", "--once"]).env("XDG_RUNTIME_DIR", place.path("data"));
            let said = String::from_utf8(other.output().unwrap().stderr).unwrap();
            assert!(said.contains("`cosched recover` restores them"), "{left}: {said}");
            let ended = recover_in(&place, "data");
            let (out, said) = (String::from_utf8_lossy(&ended.stdout), &ended.stderr);
            let said = String::from_utf8_lossy(said);
            assert!(out.starts_with("After 1 killed cosched: "), "{left}: {out}{said}");
            assert_eq!(said.contains("was removed"), left == "no log and no shims", "{said}");
            assert_eq!(ended.status.code(), Some(0), "{left}: {said}");
            eventually("the end of what was born meanwhile", || wrongs(&place, pid).is_empty());
            firsts(&place);
            if left == "a folder of others" {
                // Another file may have the name by then: it is not removed.
                let [log] = &place.undo_logs()[..] else { panic!("{:?}", place.undo_logs()) };
                assert_eq!(fs::metadata(log).unwrap().len(), 1);
                fs::remove_file(log).unwrap();
            }
            place.no_trace_is_left_of(pid);
            let again = recover_in(&place, "data");
            assert_eq!(String::from_utf8_lossy(&again.stdout), "Nothing was left behind.\n");
        }
    }
}

/// A folder in which others may write is not believed; its cgroups are restored nevertheless.
#[test]
fn logs_in_folders_of_others_are_not_believed() {
    let Some(backend) = Backend::here().into_iter().find(|backend| backend.0 != "signals") else {
        return skip("no cgroups can be made here");
    };
    let place = Place::new();
    let pid = killed_with_shims(&place, backend);
    let log = place.forgotten_logs().remove(0);
    open_to_others(&place);
    let ended = recover_in(&place, "data");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("is in a folder that is not private to you"), "{said}");
    eventually("the end of the cgroups", || wrongs(&place, pid).is_empty());
    fs::remove_file(log).unwrap();
    place.no_trace_is_left_of(pid);
}

/// The inner cosched is in an idle cgroup, and may end only when the outer run is undone.
#[test]
fn a_killed_run_in_a_run_is_recovered_at_once() {
    if !turns::caller_has_groups() {
        return;
    }
    for _ in 0..6 {
        let place = Place::new();
        place.write("inner.toml", turns::three().concat());
        let run = format!("exec {} run inner.toml --out inner", place.executable.display());
        let keys = format!("threads = {}", turns::cpus().len());
        let spin = "for one in $(seq $(nproc)); do while :; do :; done & done; wait";
        let programs = [program("nested", &keys, &run), program("busy", &keys, spin)];
        let cosched = place.run(&programs, "--quantum 50ms");
        all_started(&place);
        let (marked, pid) = (place.marked(), cosched.pid());
        let inner = marked.named("cosched").into_iter().find(|one| one.pid != pid).unwrap();
        eventually("the other program's turn", || turns::is_filler(inner));
        // Stopped first, so that neither acts when the other one is killed. What is in the idle
        // cgroup would stop only after seconds.
        let guards = marked.named("csentinel");
        let guards_it =
            |guard: &Process| guard.look(&Proc::default()).is_some_and(|stat| stat.ppid == pid);
        let guard = *guards.iter().find(|guard| guards_it(guard)).unwrap();
        for process in [cosched.process(), guard] {
            marked.signal(process, Signal::STOP);
            eventually("its stop", || marked.is_stopped(process));
        }
        let own = [vec![cosched.process(), inner], guards].concat();
        own.iter().for_each(|process| marked.signal(*process, Signal::KILL));
        let ended = recover_in(&place, "run");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(0), "{said}");
        cosched.kill();
        let out = String::from_utf8_lossy(&ended.stdout);
        assert!(out.starts_with("After 2 killed coscheds: "), "{out}{said}");
        assert_eq!(wrongs(&place, pid), Vec::<String>::new());
        [pid, inner.pid].into_iter().for_each(|pid| place.no_trace_is_left_of(pid));
        firsts(&place);
    }
}

/// Lets others write to the folder of undo logs.
pub(super) fn open_to_others(place: &Place) {
    let open = fs::Permissions::from_mode(0o777);
    fs::set_permissions(place.path("run/cosched"), open).unwrap();
}

/// `cosched recover` with a folder of the place as its runtime folder.
pub(super) fn recover_in(place: &Place, folder: &str) -> Output {
    let mut recover = place.user.command(&place.executable);
    recover.arg("recover").env("XDG_RUNTIME_DIR", place.path(folder)).output().unwrap()
}

/// Starts programs, and kills cosched with all its helpers. Returns cosched's number.
fn killed_with_shims(place: &Place, backend: Backend) -> i32 {
    // A thread that is bound by its mask would be known from the log alone.
    let cosched = start_with(place, backend, "--pinning cpuset");
    all_started(place);
    let (marked, pid) = (place.marked(), cosched.pid());
    let own = [marked.named("csentinel"), marked.named("shim")].concat();
    let own: Vec<_> = [cosched.process()].into_iter().chain(own).collect();
    assert_eq!(own.len(), 2 + firsts(place).len(), "{own:?}");
    // Stopped first, so that none of them acts when another one is killed.
    for process in &own {
        marked.signal(*process, Signal::STOP);
        eventually("its stop", || marked.is_stopped(*process));
    }
    own.iter().for_each(|process| marked.signal(*process, Signal::KILL));
    cosched.kill();
    eventually("the end", || own.iter().all(|process| !marked.lives(*process)));
    pid
}

/// Starts programs, and kills cosched with its sentinel. Returns cosched's number.
fn left_behind(place: &Place, backend: Backend) -> i32 {
    let cosched = start(place, backend);
    all_started(place);
    let pid = killed_with_sentinel(place, cosched);
    eventually("a log that is left", || place.forgotten_logs().len() == 1);
    pid
}

/// Kills a cosched with its sentinel. Returns its number.
pub(super) fn killed_with_sentinel(place: &Place, cosched: Cosched) -> i32 {
    // Stopped first, so that it starts no other sentinel.
    cosched.signal(Signal::STOP);
    let marked = place.marked();
    eventually("cosched's stop", || marked.is_stopped(cosched.process()));
    marked.named("csentinel").into_iter().for_each(|guard| marked.signal(guard, Signal::KILL));
    let pid = cosched.pid();
    cosched.kill();
    eventually("the helpers' end", || marked.named("cosched").is_empty());
    pid
}

/// What can be read is undone, and the rest is said to be unknown.
#[test]
fn a_damaged_log_is_undone_and_kept_with_a_message() {
    for damage in ["the first line", "the last line", "all lines"] {
        let place = Place::new();
        let pid = left_behind(&place, Backend("signals"));
        let log = &place.forgotten_logs()[0];
        let mut bytes = fs::read(log).unwrap();
        match damage {
            "the first line" => bytes[0] = 0xff,
            "the last line" => bytes.extend(b"{\n"),
            _ => bytes.clear(),
        }
        fs::write(log, &bytes).unwrap();
        let other = place.cosched(&["top", "--once"]).ended().with(2);
        other.saying(&["`cosched recover` restores them"]);
        let ended = place.cosched(&["recover"]).ended().with(1);
        let aside = log.with_extension("undo-damaged");
        let said = [log.to_str().unwrap(), "is damaged", aside.to_str().unwrap(), "kill -CONT PID"];
        ended.saying(&said);
        assert_eq!(fs::read(&aside).unwrap(), bytes);
        if !bytes.is_empty() {
            assert_eq!(wrongs(&place, pid), Vec::<String>::new());
        }
        firsts(&place);
        let again = place.cosched(&["recover"]).ended().with(0);
        assert_eq!(again.stdout, "Nothing was left behind.\n");
        fs::remove_file(aside).unwrap();
    }
}

fn recovered(backend: Backend, log_is_removed: bool) {
    let place = Place::new();
    let pid = left_behind(&place, backend);
    if log_is_removed {
        fs::remove_dir_all(place.path("run/cosched")).unwrap();
    }
    let other = place.cosched(&["top", "--once"]).ended().with(2);
    other.saying(&["`cosched recover` restores them", "no run of yours is in progress"]);
    assert!(!wrongs(&place, pid).is_empty());

    let ended = place.cosched(&["recover", "--json"]).ended().with(0);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let undone = &report["undone"][0];
    assert_eq!(undone["failed"], 0);
    assert!(undone["threads_unpinned"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(undone["cgroups_removed"].as_u64().unwrap() > 0, backend != Backend("signals"));
    assert_eq!(wrongs(&place, pid), Vec::<String>::new());
    firsts(&place);
    place.no_trace_is_left_of(pid);

    let again = place.cosched(&["recover"]).ended().with(0);
    assert_eq!(again.stdout, "Nothing was left behind.\n");
}

#[test]
fn a_stopped_sentinel_of_a_killed_cosched_is_continued() {
    for (backend, log_is_removed) in [(Backend("signals"), false), (Backend("signals"), true)] {
        let place = Place::new();
        let cosched = start(&place, backend);
        all_started(&place);
        // Stopped first, so that it starts no other sentinel.
        cosched.signal(Signal::STOP);
        let (marked, pid) = (place.marked(), cosched.pid());
        eventually("cosched's stop", || marked.is_stopped(cosched.process()));
        let guards = marked.named("csentinel");
        guards.iter().for_each(|guard| marked.signal(*guard, Signal::STOP));
        eventually("the sentinel's stop", || guards.iter().all(|guard| marked.is_stopped(*guard)));
        cosched.kill();
        if log_is_removed {
            fs::remove_dir_all(place.path("run/cosched")).unwrap();
        }
        assert!(!wrongs(&place, pid).is_empty());
        let other = place.cosched(&["top", "--once"]).ended().with(2);
        other.saying(&["`cosched recover` restores them"]);

        let ended = place.cosched(&["recover"]).ended().with(0);
        assert!(ended.stdout.contains("A stopped sentinel continued"), "{}", ended.stdout);
        assert_eq!(wrongs(&place, pid), Vec::<String>::new());
        firsts(&place);
        place.no_trace_is_left_of(pid);
    }
}

#[test]
fn what_a_frozen_sentinel_does_not_undo_is_recovered() {
    for (ice, is_killed) in [("cgroup-v1", false), ("cgroup-v1", true), ("cgroup-v2", false)] {
        let place = Place::new();
        let Some(ice) = Ice::of(Backend(ice)) else { continue };
        let cosched = start(&place, Backend("signals"));
        all_started(&place);
        // Stopped first, so that it starts no other sentinel.
        cosched.signal(Signal::STOP);
        let (marked, pid) = (place.marked(), cosched.pid());
        eventually("cosched's stop", || marked.is_stopped(cosched.process()));
        let guards = marked.named("csentinel");
        guards.iter().for_each(|guard| ice.freeze(guard.pid));
        if is_killed {
            guards.iter().for_each(|guard| marked.signal(*guard, Signal::KILL));
        }
        cosched.kill();
        assert!(!wrongs(&place, pid).is_empty());
        let other = place.cosched(&["top", "--once"]).ended().with(2);
        other.saying(&["`cosched recover` restores them"]);

        let ended = place.cosched(&["recover"]).ended().with(0);
        assert!(ended.stdout.contains("After 1 killed cosched"), "{}", ended.stdout);
        firsts(&place);
        drop(ice);
        eventually("the sentinel's end", || marked.named("csentinel").is_empty());
        assert_eq!(wrongs(&place, pid), Vec::<String>::new());
        place.no_trace_is_left_of(pid);
    }
}

#[test]
fn a_log_that_cannot_be_read_keeps_no_other_from_recovery() {
    let place = Place::new();
    let cosched = start(&place, Backend("signals"));
    all_started(&place);
    let (marked, pid) = (place.marked(), cosched.pid());
    cosched.signal(Signal::STOP);
    eventually("cosched's stop", || marked.is_stopped(cosched.process()));
    marked.named("csentinel").into_iter().for_each(|guard| marked.signal(guard, Signal::KILL));
    cosched.kill();
    let unreadable = place.path("run/cosched/10-5-1.undo");
    fs::write(&unreadable, "x").unwrap();
    fs::File::options().write(true).open(&unreadable).unwrap().set_len(300 << 20).unwrap();
    let ended = place.cosched(&["recover"]).ended().with(1);
    ended.saying(&["10-5-1.undo", "remove it"]);
    assert_eq!(wrongs(&place, pid), Vec::<String>::new());
    firsts(&place);
    fs::remove_file(unreadable).unwrap();
    place.no_trace_is_left_of(pid);
}

/// A container that shares the cgroup trees knows neither the process nor its number.
#[test]
fn groups_of_a_live_cosched_are_left_alone_in_a_container() {
    for backend in Backend::here().into_iter().filter(|backend| *backend != Backend("signals")) {
        let place = Place::new();
        let cosched = start(&place, backend);
        all_started(&place);
        fs::remove_dir_all(place.path("run/cosched")).unwrap();
        let before = cgroups_named(&format!("cosched-{}", cosched.pid()));
        assert!(!before.is_empty());
        let mut container = Command::new("unshare");
        container.args(["--pid", "--fork", "--mount-proc"]).arg(&place.executable).arg("recover");
        let ended = container.env("XDG_RUNTIME_DIR", place.path("run")).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        if said.contains("unshare") {
            return skip("this user may not make PID namespaces");
        }
        assert_eq!(String::from_utf8_lossy(&ended.stdout), "Nothing was left behind.\n", "{said}");
        let elsewhere = recover_in(&place, "data");
        assert_eq!(String::from_utf8_lossy(&elsewhere.stdout), "Nothing was left behind.\n");
        assert_eq!(cgroups_named(&format!("cosched-{}", cosched.pid())), before);
        cosched.signal(Signal::TERM);
        place.nothing_is_left_of(&cosched.ended().with(143));
    }
}

/// There, start times of processes are other ones.
#[test]
fn a_live_run_in_another_time_namespace_is_left_alone() {
    let place = Place::new();
    let cosched = start(&place, Backend("signals"));
    all_started(&place);
    let mut elsewhere = Command::new("unshare");
    elsewhere.args(["--time", "--boottime", "100000", "--fork"]).arg(&place.executable);
    let ended =
        elsewhere.arg("recover").env("XDG_RUNTIME_DIR", place.path("run")).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    if said.contains("unshare") {
        return skip("this user may not make time namespaces");
    }
    assert_eq!(String::from_utf8_lossy(&ended.stdout), "Nothing was left behind.\n", "{said}");
    assert_eq!(place.marked().named("csentinel").len(), 1);
    cosched.signal(Signal::TERM);
    place.nothing_is_left_of(&cosched.ended().with(143));
}

/// The numbers in its log mean other processes here. The first process of the container may belong
/// to another user, and then tells nothing.
#[test]
fn a_killed_run_in_a_container_is_recovered_there() {
    recovered_in_a_container(&Place::new(), "");
    let place = Place::of(User::ordinary());
    if let User::Ordinary(uid) = place.user {
        let user = format!("setpriv --reuid={uid} --regid={uid} --clear-groups");
        recovered_in_a_container(&place, &user);
    }
}

fn recovered_in_a_container(place: &Place, user: &str) {
    const SCRIPT: &str = r#"
        $AS "$COSCHED" run --policy gang --freezer signals --quantum 5ms --quiet \
            --prog 'sh -c "while :; do :; done"' --prog 'sh -c "while :; do :; done"' &
        cosched=$!
        until grep -qs '^State:.T' /proc/[0-9]*/status; do :; done
        own=$cosched
        for process in /proc/[0-9]*; do
            case $(cat $process/comm) in csentinel | shim) own="$own ${process#/proc/}" ;; esac
        done
        # All at once, so that none of them acts when another one is stopped, or is killed. At a
        # switch, no program may be stopped: then again.
        stopped=
        while [ -z "$stopped" ]; do
            kill -CONT $own
            kill -STOP $own
            for one in $own; do
                until grep -q '^State:.T' /proc/$one/status; do :; done
            done
            for process in $(grep -ls '^State:.T' /proc/[0-9]*/status); do
                process=${process%/status}
                case " $own " in *" ${process#/proc/} "*) ;; *) stopped=$process ;; esac
            done
        done
        kill -KILL $own
        wait $cosched
        # One that has not ended holds the log.
        for one in $own; do
            while grep -qs '^State:.[^XZ]' /proc/$one/status; do :; done
        done
        : > killed
        while [ ! -e tried ]; do sleep 0.01; done
        $AS "$COSCHED" recover
    "#;
    let mut container = Command::new("unshare");
    container.args(["--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", SCRIPT]);
    container.env("COSCHED", &place.executable).env("XDG_RUNTIME_DIR", place.path("run"));
    container
        .env("AS", user)
        .current_dir(place.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut container = container.spawn().unwrap();
    eventually("its kill, or its end", || {
        place.path("killed").exists() || container.try_wait().unwrap().is_some()
    });
    if !place.path("killed").exists() {
        let said = container.wait_with_output().unwrap().stderr;
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("unshare"), "{said}");
        return skip("this user may not make PID namespaces");
    }
    let logs = place.undo_logs();
    let here = place.cosched(&["recover"]).ended().with(0);
    here.saying(&["a run in another container left this"]);
    assert_eq!(place.undo_logs(), logs);
    fs::write(place.path("tried"), "").unwrap();
    let there = container.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&there.stdout);
    assert!(said.starts_with("After 1 killed cosched: continued "), "{said}");
}

#[test]
fn recover_does_not_touch_the_log_of_a_live_cosched() {
    let place = Place::new();
    let cosched = start(&place, Backend("signals"));
    all_started(&place);
    let before = place.undo_logs();
    let mut recover = place.user.command(&place.executable);
    recover.arg("recover").env("XDG_RUNTIME_DIR", place.path("run"));
    let said = recover.output().unwrap().stdout;
    assert_eq!(String::from_utf8_lossy(&said), "Nothing was left behind.\n");
    assert_eq!(place.undo_logs(), before);
    cosched.signal(Signal::TERM);
    place.nothing_is_left_of(&cosched.ended().with(143));
}
