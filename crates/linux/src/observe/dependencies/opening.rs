//! Programs that wait for each other while they open a named pipe.
//!
//! Opening one end waits for the other. Until both ends are open, no process holds a descriptor
//! that would show the dependency. A freeze interrupts the wait, which begins again afterwards: two
//! programs that take turns would never open it. The system call itself is therefore inspected: a
//! thread that is in `open`, and the path in its memory. It is visible while the program is frozen,
//! too.
//!
//! The path is looked up only among what the kernel has in memory (`RESOLVE_CACHED`), so that a
//! file server that does not answer never makes cosched wait. Where the path is unavailable (a
//! program of another architecture, an old kernel), the name of the kernel function in which the
//! thread waits is used.

use std::ffi::CStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, StatxFlags, open, openat2, statx};

use super::{FileId, SharedKey, file_id};
use crate::kernel::files;

/// The kernel function in which a thread waits for the other end.
const WAITS: &str = "wait_for_partner";
/// The line of `/proc/PID/syscall` begins like this for a thread that is in no system call.
const OUTSIDE: [&str; 2] = ["running", "-1 "];
/// The longest path that a system call takes, with the zero byte behind it.
const LONGEST: usize = 4096;

/// The named pipes that threads of the process with this folder of `/proc` are opening.
pub(super) fn pipes_opened_by(process: &Path) -> impl Iterator<Item = SharedKey> {
    let tasks = process.join("task");
    // A process that has ended opens nothing.
    let threads = files::numbered(&tasks, "").unwrap_or_default();
    threads.into_iter().filter_map(move |tid| pipe_opened_by(&tasks.join(tid.to_string())))
}

fn pipe_opened_by(thread: &Path) -> Option<SharedKey> {
    let call = files::read(&thread.join("syscall")).unwrap_or_default();
    if OUTSIDE.iter().any(|outside| call.starts_with(outside)) {
        return None;
    }
    match opening(&call).and_then(|call| call.look_up(thread)) {
        Some(PathKind::Pipe(id)) => Some(SharedKey::Fifo(id)),
        Some(PathKind::Other) => None,
        None => {
            let waits = files::read(&thread.join("wchan")).is_ok_and(|name| name.trim() == WAITS);
            waits.then_some(SharedKey::FifoBeingOpened)
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum PathKind {
    Pipe(FileId),
    Other,
}

/// A system call that opens a file: where the path begins, and its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Opening {
    folder: i32,
    path: u64,
}

/// Parses the line of `/proc/PID/syscall`, `number argument argument ...`, if it is a call that
/// opens.
fn opening(line: &str) -> Option<Opening> {
    let mut words = line.split_ascii_whitespace();
    let number: i64 = words.next()?.parse().ok()?;
    let mut argument = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    match number {
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => Some(Opening { folder: libc::AT_FDCWD, path: argument()? }),
        // The kernel takes the lower half for the descriptor.
        libc::SYS_openat | libc::SYS_openat2 => {
            Some(Opening { folder: argument()? as i32, path: argument()? })
        }
        _ => None,
    }
}

impl Opening {
    /// What the path names; `None` if that cannot be found without waiting.
    fn look_up(self, thread: &Path) -> Option<PathKind> {
        let path = self.path(thread)?;
        let (start, rest, resolve) = match path.strip_prefix("/") {
            Ok(rest) => (thread.join("root"), rest, ResolveFlags::IN_ROOT),
            Err(_) => (self.folder(thread), path.as_path(), ResolveFlags::empty()),
        };
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let start = open(&start, flags, Mode::empty()).ok()?;
        let file = openat2(start, rest, flags, Mode::empty(), resolve | ResolveFlags::CACHED);
        look_at(&file.ok()?)
    }

    fn path(self, thread: &Path) -> Option<PathBuf> {
        let memory = File::open(thread.join("mem")).ok()?;
        let mut bytes = vec![0; LONGEST];
        // Less is read where the memory ends.
        let read = memory.read_at(&mut bytes, self.path).ok()?;
        let path = CStr::from_bytes_until_nul(&bytes[..read]).ok()?;
        Some(PathBuf::from(path.to_str().ok()?)).filter(|path| !path.as_os_str().is_empty())
    }

    fn folder(self, thread: &Path) -> PathBuf {
        match self.folder {
            libc::AT_FDCWD => thread.join("cwd"),
            number => thread.join(format!("fd/{number}")),
        }
    }
}

fn look_at(file: &OwnedFd) -> Option<PathKind> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let found = statx(file, c"", flags, StatxFlags::TYPE | StatxFlags::INO).ok()?;
    let is_pipe = FileType::from_raw_mode(found.stx_mode.into()) == FileType::Fifo;
    Some(if is_pipe { PathKind::Pipe(file_id(&found)) } else { PathKind::Other })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, mkfifoat};

    use super::*;

    /// The folder of a made-up process with one thread, which is in this system call, with this
    /// path in its memory.
    fn made_up(call: &str, path: &str, wchan: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let thread = root.path().join("task/7");
        std::fs::create_dir_all(thread.join("fd")).unwrap();
        mkfifoat(CWD, root.path().join("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
        std::fs::write(root.path().join("ordinary"), "").unwrap();
        symlink(root.path(), thread.join("cwd")).unwrap();
        symlink(root.path(), thread.join("root")).unwrap();
        symlink(root.path(), thread.join("fd/5")).unwrap();
        std::fs::write(thread.join("syscall"), call).unwrap();
        std::fs::write(thread.join("mem"), format!("{:16}{path}\0", "")).unwrap();
        std::fs::write(thread.join("wchan"), wchan).unwrap();
        root
    }

    fn keys(call: &str, path: &str, wchan: &str) -> Vec<SharedKey> {
        let root = made_up(call, path, wchan);
        let pipe = open(root.path().join("pipe"), OFlags::PATH, Mode::empty()).unwrap();
        let Some(PathKind::Pipe(id)) = look_at(&pipe) else { panic!("no pipe was made") };
        let found: Vec<SharedKey> = pipes_opened_by(root.path()).collect();
        found.into_iter().map(|key| if key == SharedKey::Fifo(id) { PIPE } else { key }).collect()
    }

    /// The pipe of a made-up process.
    const PIPE: SharedKey = SharedKey::Fifo(FileId { device: 0, inode: 0 });
    const UNKNOWN: SharedKey = SharedKey::FifoBeingOpened;

    #[test]
    fn a_pipe_is_known_by_its_inode_wherever_its_path_begins() {
        let at = |folder: &str| format!("257 {folder} 0x10 0x0 0x0 0x0 0x0 0x7ffe 0x7f34\n");
        if cfg!(target_arch = "x86_64") {
            assert_eq!(keys("2 0x10 0x0 0x0 0x0 0x0 0x0 0x7ffe 0x7f34\n", "pipe", ""), [PIPE]);
            assert_eq!(keys(&at("0xffffff9c"), "pipe", ""), [PIPE]);
            assert_eq!(keys(&at("0xffffffffffffff9c"), "./pipe", ""), [PIPE]);
            assert_eq!(keys(&at("0xffffff9c"), "/pipe", ""), [PIPE]);
            assert_eq!(keys(&at("0x5"), "pipe", ""), [PIPE]);
            assert_eq!(keys(&at("0xffffff9c"), "ordinary", WAITS), []);
        }
    }

    #[test]
    fn a_pipe_without_a_path_is_known_by_where_the_thread_waits() {
        assert_eq!(keys("295 0xffffff9c 0x10\n", "pipe", WAITS), [UNKNOWN]);
        assert_eq!(keys("", "", WAITS), [UNKNOWN]);
        assert_eq!(keys("running\n", "", "0"), []);
        assert_eq!(keys("-1 0x7ffe 0x7f34\n", "pipe", "do_signal_stop"), []);
    }

    #[test]
    fn a_thread_of_this_process_is_seen_waiting_for_the_other_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        let reader = {
            let path = path.clone();
            std::thread::spawn(move || drop(File::open(path).unwrap()))
        };
        let me = PathBuf::from("/proc/self");
        while pipes_opened_by(&me).next().is_none() {
            std::thread::yield_now();
        }
        let file = open(&path, OFlags::PATH, Mode::empty()).unwrap();
        let Some(PathKind::Pipe(id)) = look_at(&file) else { panic!("no pipe was made") };
        assert_eq!(pipes_opened_by(&me).collect::<Vec<_>>(), [SharedKey::Fifo(id)]);
        drop(File::options().write(true).open(&path).unwrap());
        reader.join().unwrap();
    }
}
