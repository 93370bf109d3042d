//! Namespaces: containers that share the folder of undo logs.
//!
//! A log names processes by their numbers in the PID namespace of its cosched, and by their start
//! times in its time namespace. In others these mean other processes, or none. So a log is undone
//! only in its own namespaces, or where it is sure that no process of them is left: then only
//! cgroups are to be restored.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::lines::first_records;
use super::record::Record;
use crate::kernel::procfs::Proc;

/// The namespace in which all processes can be seen (`PROC_PID_INIT_INO` of the kernel).
const INITIAL: u64 = 0xEFFF_FFFC;

/// The namespaces of this process, for the beginning of a log. `None` where the kernel does not
/// tell.
pub(super) fn own(proc: &Proc) -> Option<Record> {
    let own = proc.root().join("self");
    Some(Record::PidNamespace { inode: inode(&own, "pid")?, time: inode(&own, "time") })
}

fn inode(process: &Path, kind: &str) -> Option<u64> {
    Some(process.join("ns").join(kind).metadata().ok()?.ino())
}

/// Whether processes of this log may live in other namespaces than ours.
pub(super) fn is_elsewhere(log: &File, proc: &Proc) -> bool {
    let (Some(theirs), Some(ours)) = (named(log), own(proc).and_then(numbers)) else {
        return false;
    };
    let lives = |pid: &i32, kind, number| {
        inode(&proc.folder(*pid), kind) == Some(number) && !is_ending(*pid, proc)
    };
    let any = |kind, number| {
        proc.processes().unwrap_or_default().iter().any(|pid| lives(pid, kind, number))
    };
    if theirs.0 != ours.0 {
        return ours.0 != INITIAL || any("pid", theirs.0);
    }
    match (theirs.1, ours.1) {
        (Some(theirs), Some(ours)) if theirs != ours => any("time", theirs),
        _ => false,
    }
}

/// Whether a process has begun to end. When the first one of a PID namespace does, the kernel kills
/// all others. They may be frozen, and so not end, and it waits for them without memory.
fn is_ending(pid: i32, proc: &Proc) -> bool {
    let executable = proc.folder(pid).join("exe").read_link();
    executable.is_err_and(|error| error.kind() == ErrorKind::NotFound)
        || proc.is_ending(pid).unwrap_or(true)
}

fn numbers(record: Record) -> Option<(u64, Option<u64>)> {
    match record {
        Record::PidNamespace { inode, time } => Some((inode, time)),
        _ => None,
    }
}

/// The namespaces that the beginning of a log names. Logs of earlier versions name none.
fn named(log: &File) -> Option<(u64, Option<u64>)> {
    first_records(log).into_iter().find_map(numbers)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;

    use super::*;

    #[test]
    fn only_logs_of_other_namespaces_are_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let (log, proc) = (folder.path().join("1-2-3.undo"), Proc::own().unwrap());
        let (own, time) = own(&proc).and_then(numbers).unwrap();
        let write = |inode: u64| {
            let record = serde_json::to_string(&Record::PidNamespace { inode, time }).unwrap();
            fs::write(&log, format!("{{}}\n{record}\n")).unwrap();
        };
        write(own);
        let is_elsewhere = || is_elsewhere(&File::open(&log).unwrap(), &proc);
        assert!(!is_elsewhere());
        write(own ^ 1);
        assert_eq!(is_elsewhere(), own != INITIAL, "no process has this one");
        fs::write(&log, "").unwrap();
        assert!(!is_elsewhere(), "a log of an earlier version");
    }

    #[test]
    fn a_log_of_another_time_namespace_is_elsewhere_while_it_lives() {
        let mut child = std::process::Command::new("unshare");
        child.args(["--time", "sh", "-c", "sleep 1000 & echo; wait"]);
        let mut child = child.stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut line = [0];
        if child.stdout.take().unwrap().read_exact(&mut line).is_err() {
            eprintln!("skipped: this user may not make time namespaces");
            child.wait().unwrap();
            return;
        }
        let proc = Proc::own().unwrap();
        let inside = proc.children(child.id() as i32).unwrap()[0];
        let theirs = inode(&proc.folder(inside), "time").unwrap();
        let (own, time) = own(&proc).and_then(numbers).unwrap();
        assert_ne!(time, Some(theirs));
        assert!(!proc.times_alike(inside) && proc.times_alike(std::process::id() as i32));
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("1-2-3.undo");
        let record = Record::PidNamespace { inode: own, time: Some(theirs) };
        fs::write(&log, serde_json::to_string(&record).unwrap()).unwrap();
        let is_elsewhere = || is_elsewhere(&File::open(&log).unwrap(), &proc);
        assert!(is_elsewhere());
        let inside = rustix::process::Pid::from_raw(inside).unwrap();
        rustix::process::kill_process(inside, rustix::process::Signal::KILL).unwrap();
        child.wait().unwrap();
        assert!(!is_elsewhere());
    }
}
