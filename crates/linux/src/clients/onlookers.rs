//! Where clients of a run connect: the names of its sockets, which process listens there, and what
//! a killed run has left.
//!
//! The run's own socket lies in the user's private folder, named after its process. A socket for
//! metrics lies where the user says. A link beside the first one points to it, so that the
//! process that cleans up finds it. A socket without its listener refuses connections, so a
//! leftover is distinguishable from a socket in use. Nothing here ever waits. A listener
//! with a full queue, because it is stopped, say, still counts as listening.
//!
//! Root may observe every run, and folders can be anywhere. But the kernel lists the sockets on
//! which a process listens (`/proc/net/unix`), by the names that they were bound to, with the
//! listening process.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::kernel::procfs::Proc;

/// The mark of a listening socket in the kernel's list (`SO_ACCEPTCON`).
const LISTENS: &str = "00010000";

/// The run's own socket, in the folder of its log. It is removed with the process, by the sentinel
/// at the latest.
pub fn live_socket(folder: &Path, pid: u32) -> PathBuf {
    folder.join(format!("{pid}.sock"))
}

/// The name that a socket is bound to, and has until it listens.
pub fn unfinished(socket: &Path) -> PathBuf {
    let mut name = socket.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    name.into()
}

/// A link to the run's socket for metrics, if it has one.
pub fn metrics_link(folder: &Path, pid: u32) -> PathBuf {
    folder.join(format!("{pid}.metrics"))
}

/// Whether a process listens there. If none does any more, the socket is removed; other files never
/// are.
pub fn is_heard(path: &Path) -> bool {
    // Connecting to a file that is no socket is refused as well.
    if !path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket()) {
        return false;
    }
    match knock(path) {
        Ok(_) | Err(Errno::AGAIN) => true,
        Err(Errno::CONNREFUSED) => {
            // Another process may have been quicker.
            let _ = fs::remove_file(path);
            false
        }
        Err(_) => false,
    }
}

/// Connects to a run, without waiting where its queue is full.
///
/// # Errors
/// When nothing listens there, or too many wait already.
pub fn connect_to(path: &Path) -> io::Result<UnixStream> {
    let stream = match knock(path) {
        Ok(socket) => UnixStream::from(socket),
        Err(Errno::AGAIN) => {
            return Err(io::Error::other("too many others wait to be heard there"));
        }
        Err(errno) => return Err(errno.into()),
    };
    stream.set_nonblocking(false)?;
    Ok(stream)
}

fn knock(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// Whether a process listens at a socket of that run. Sockets without a listener are removed.
pub fn is_run_heard(folder: &Path, pid: u32) -> bool {
    let metrics = fs::read_link(metrics_link(folder, pid));
    let live = is_heard(&live_socket(folder, pid));
    metrics.is_ok_and(|metrics| is_heard(&metrics)) || live
}

/// Removes what a killed run has left. Files that others have put in its place meanwhile stay.
pub fn remove_left(folder: &Path, pid: u32) {
    is_run_heard(folder, pid);
    // Most have none.
    let _ = fs::remove_file(metrics_link(folder, pid));
}

/// A run that clients can connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The process of cosched.
    pub pid: u32,
    /// The user that it belongs to.
    pub uid: u32,
    /// Its socket.
    pub socket: PathBuf,
}

/// The runs of all users, as far as the caller may connect to them, in ascending order of their
/// processes.
///
/// # Errors
/// When the kernel's list cannot be read.
pub fn everybodys(proc: &Proc) -> io::Result<Vec<Run>> {
    let list = fs::read(proc.root().join("net/unix"))?;
    let named = bound(&String::from_utf8_lossy(&list));
    let mut runs: Vec<Run> =
        named.into_iter().filter_map(|(pid, socket)| listening(pid, socket)).collect();
    runs.sort_by_key(|run| run.pid);
    Ok(runs)
}

/// The run with the process that listens there, if it is the process in the name.
fn listening(pid: u32, socket: PathBuf) -> Option<Run> {
    let peer = socket_peercred(knock(&socket).ok()?).ok()?;
    let is_it = peer.pid.as_raw_nonzero().get() as u32 == pid;
    is_it.then(|| Run { pid, uid: peer.uid.as_raw(), socket })
}

/// The sockets of runs in the kernel's list, which has the names that they were bound to.
fn bound(list: &str) -> Vec<(u32, PathBuf)> {
    let run = |line: &str| {
        let fields: Vec<&str> = line.splitn(8, ' ').collect();
        let listens = fields.get(3) == Some(&LISTENS);
        let (socket, binder) = fields.get(7).filter(|_| listens)?.rsplit_once('.')?;
        let socket = Path::new(socket);
        let pid = socket.file_name()?.to_str()?.strip_suffix(".sock")?.parse().ok()?;
        (binder.parse() == Ok(pid) && socket.is_absolute()).then(|| (pid, socket.to_owned()))
    };
    list.lines().filter_map(run).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn sockets_of_runs_are_found_by_name_in_the_kernels_list() {
        let list = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 17 \
              /run/user/7/cosched/12.sock.12\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 18 \
              /run/user/7/cosched/12.sock.12\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 19 /tmp/a b/cosched/13.sock.13\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 20 /tmp/14.sock.15\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 21 /tmp/metrics.14\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 22\n";
        let expected = [(12, "/run/user/7/cosched/12.sock"), (13, "/tmp/a b/cosched/13.sock")];
        assert_eq!(bound(list), expected.map(|(pid, path)| (pid, PathBuf::from(path))));
    }

    #[test]
    fn a_run_is_found_in_any_folder_and_only_by_its_own_number() {
        let folder = tempfile::tempdir().unwrap();
        let listen = |pid: u32| {
            let socket = live_socket(folder.path(), pid);
            let mut bound = socket.clone().into_os_string();
            bound.push(format!(".{pid}"));
            let listener = UnixListener::bind(Path::new(&bound)).unwrap();
            fs::rename(bound, &socket).unwrap();
            (listener, socket)
        };
        let own = std::process::id();
        let ((_right, socket), _pretends) = (listen(own), listen(own + 1));
        let mut found = everybodys(&Proc::default()).unwrap();
        found.retain(|run| run.socket.starts_with(folder.path()));
        let uid = rustix::process::geteuid().as_raw();
        assert_eq!(found, [Run { pid: own, uid, socket }]);
    }

    #[test]
    fn leftovers_of_a_killed_run_go_and_later_files_stay() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let link = |pid, to: &Path| symlink(to, metrics_link(folder.path(), pid)).unwrap();
        let [dead, alive, file] = ["dead", "alive", "file"].map(|name| elsewhere.path().join(name));
        drop(UnixListener::bind(&dead).unwrap());
        drop(UnixListener::bind(live_socket(folder.path(), 1)).unwrap());
        let _alive = UnixListener::bind(&alive).unwrap();
        fs::write(&file, "mine").unwrap();
        for (pid, to) in [(1, &dead), (2, &alive), (3, &file)] {
            link(pid, to);
            remove_left(folder.path(), pid);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(!dead.exists() && alive.exists() && file.exists());
    }

    #[test]
    fn a_listener_that_accepts_no_connection_still_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = live_socket(folder.path(), 1);
        let _listener = UnixListener::bind(&path).unwrap();
        let mut waiting = Vec::new();
        while let Ok(socket) = knock(&path) {
            waiting.push(socket);
        }
        assert!(is_heard(&path) && path.exists());
    }
}
