//! PID namespaces: containers that share the folder of undo logs.
//!
//! A log names processes by their numbers in the PID namespace of its cosched. In another namespace
//! these numbers mean other processes, or none. So a log is undone only in its own namespace, or
//! where it is sure that no process of that namespace is left: then only cgroups are to be restored.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{Record, log};
use crate::kernel::procfs::Proc;

/// The namespace in which all processes can be seen (`PROC_PID_INIT_INO` of the kernel).
const INITIAL: u64 = 0xEFFF_FFFC;
/// The first two lines of a log are shorter, in bytes.
const BEGINNING: u64 = 1024;

/// The PID namespace of this process. `None` where the kernel does not tell.
pub(super) fn own(proc: &Proc) -> Option<u64> {
    inode(&proc.root().join("self"))
}

fn inode(process: &Path) -> Option<u64> {
    Some(process.join("ns/pid").metadata().ok()?.ino())
}

/// Whether processes of this log may live in another namespace than ours.
pub(super) fn is_elsewhere(log: &Path, proc: &Proc) -> bool {
    let (Ok(file), Some(own)) = (log::open(log), own(proc)) else { return false };
    let Some(theirs) = named(&file).filter(|theirs| *theirs != own) else { return false };
    // The kernel kills all others with the first one. They may be frozen, and so not end.
    let lives = |pid: &i32| {
        inode(&proc.folder(*pid)) == Some(theirs)
            && proc.is_first(*pid)
            && proc.stat(*pid).is_ok_and(|stat| !stat.state.has_ended())
    };
    own != INITIAL || proc.processes().unwrap_or_default().iter().any(lives)
}

/// The namespace that the beginning of a log names. Logs of earlier versions name none.
fn named(file: &File) -> Option<u64> {
    let mut beginning = String::new();
    file.take(BEGINNING).read_to_string(&mut beginning).ok()?;
    beginning.lines().find_map(|line| match serde_json::from_str(line) {
        Ok(Record::PidNamespace { inode }) => Some(inode),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_logs_of_other_namespaces_are_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let (log, proc) = (folder.path().join("1-2-3.undo"), Proc::own().unwrap());
        let own = own(&proc).unwrap();
        let write = |inode: u64| {
            let record = serde_json::to_string(&Record::PidNamespace { inode }).unwrap();
            fs::write(&log, format!("{{}}\n{record}\n")).unwrap();
        };
        write(own);
        assert!(!is_elsewhere(&log, &proc));
        write(own ^ 1);
        assert_eq!(is_elsewhere(&log, &proc), own != INITIAL, "no process has this one");
        fs::write(&log, "").unwrap();
        assert!(!is_elsewhere(&log, &proc), "a log of an earlier version");
        assert!(!is_elsewhere(Path::new("/nowhere"), &proc));
    }
}
