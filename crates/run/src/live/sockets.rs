//! Where a run can be looked at: its own socket in the user's private folder, and an address for
//! metrics.
//!
//! A socket gets its name only when it listens and only the user may connect. A name under which no
//! process answers is therefore that of a run which was killed, and can be removed.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use cosched_linux::clients::onlookers;
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::safety::undo;
use cosched_workload::shown_path;

use super::server::{Endpoint, Serves};

/// Runs that can be looked at, in ascending order of their processes. What killed ones have left is
/// removed.
pub fn running(folder: &Path, proc: &Proc) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let (mut heard, mut others) = (Vec::new(), Vec::new());
    for name in entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
        let pid = |end| name.strip_suffix(end).and_then(|pid| pid.parse::<u32>().ok());
        // A cosched that was killed while it made its socket has left the first name of it.
        let unfinished = name.split_once(".sock.").and_then(|(_, pid)| pid.parse().ok());
        if unfinished.is_some_and(|pid: i32| proc.stat(pid).is_err()) {
            onlookers::is_heard(&folder.join(&name));
        }
        match (pid(".sock"), pid(".metrics")) {
            (Some(pid), _) if onlookers::is_heard(&folder.join(&name)) => heard.push(pid),
            (_, Some(pid)) => others.push(pid),
            _ => {}
        }
    }
    // A run may have a socket for metrics and none of its own, or not yet: what is in use stays.
    others.retain(|pid| !onlookers::is_run_heard(folder, *pid));
    others.into_iter().for_each(|pid| onlookers::remove_left(folder, pid));
    heard.sort_unstable();
    heard
}

/// Removes what killed runs have left; how many sockets of theirs were removed.
pub fn remove_left(folder: &Path, proc: &Proc) -> usize {
    let sockets = || {
        let names = fs::read_dir(folder).into_iter().flatten().flatten();
        names.filter(|entry| entry.path().extension().is_some_and(|end| end == "sock")).count()
    };
    let before = sockets();
    running(folder, proc);
    before.saturating_sub(sockets())
}

/// A name of a socket, which is removed with this.
#[derive(Debug)]
pub(crate) struct OwnSocket(PathBuf);

impl OwnSocket {
    /// Listens on a new socket for the user alone; in place of whatever has that name, but for one
    /// on which a process listens.
    pub(super) fn bind(path: &Path) -> Result<(UnixListener, OwnSocket), String> {
        let refused = |error: io::Error| {
            format!(
                "{}: {error}; its folder must exist, and you must be allowed to write to it",
                shown_path(path)
            )
        };
        // Containers that share the folder may have runs with the same number.
        if onlookers::is_heard(path) {
            return Err(format!("{}: another run listens there", shown_path(path)));
        }
        let unfinished = onlookers::unfinished(path);
        let listener = UnixListener::bind(&unfinished).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => format!(
                "{}: the path of a socket can have about 100 bytes; choose a shorter one",
                shown_path(path)
            ),
            _ => refused(error),
        })?;
        let unfinished = OwnSocket(unfinished);
        fs::set_permissions(&unfinished.0, fs::Permissions::from_mode(0o600))
            .and_then(|()| fs::rename(&unfinished.0, path))
            .map_err(refused)?;
        Ok((listener, OwnSocket(path.to_owned())))
    }

    /// Links to this socket from the user's private folder. If this process cannot remove the
    /// socket, another one finds it there. The link goes with the run.
    fn is_known_in(&self, folder: &Path) -> io::Result<OwnSocket> {
        let link = onlookers::metrics_link(folder, std::process::id());
        // One that is there is that of an earlier process with this number.
        onlookers::remove_left(folder, std::process::id());
        symlink(std::path::absolute(&self.0)?, &link)?;
        Ok(OwnSocket(link))
    }
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        // Where it has got another name, or has been removed, nothing is left to do.
        let _ = fs::remove_file(&self.0);
    }
}

/// Where metrics are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetricsAt {
    /// A UNIX socket.
    Socket(PathBuf),
    /// An address of this machine.
    Port(SocketAddr),
}

impl FromStr for MetricsAt {
    type Err = String;

    fn from_str(text: &str) -> Result<MetricsAt, String> {
        let help = "write 127.0.0.1:PORT or unix:PATH";
        if let Some(path) = text.strip_prefix("unix:") {
            return match path.is_empty() {
                true => Err(format!("the path is missing; {help}")),
                false => Ok(MetricsAt::Socket(path.into())),
            };
        }
        let address: SocketAddr =
            text.parse().map_err(|_| format!("this is neither an address nor a socket; {help}"))?;
        match address.ip().is_loopback() {
            true => Ok(MetricsAt::Port(address)),
            false => Err(format!(
                "other machines could read the metrics, and nothing protects them; {help}"
            )),
        }
    }
}

impl MetricsAt {
    /// Begins to listen; with the address, if the kernel has chosen it.
    pub(super) fn open(&self) -> Result<(Endpoint, Option<SocketAddr>), String> {
        match self {
            MetricsAt::Socket(path) => {
                // That of a killed run is removed.
                onlookers::is_heard(path);
                if path.symlink_metadata().is_ok() {
                    return Err(format!(
                        "--metrics {}: it exists already; choose another path, or remove it",
                        shown_path(path)
                    ));
                }
                let (listener, socket) =
                    OwnSocket::bind(path).map_err(|error| format!("--metrics {error}"))?;
                // Without a folder there is no sentinel that could look into it either, and no run.
                let word = undo::log_folder().ok().and_then(|at| socket.is_known_in(&at).ok());
                let names = [socket].into_iter().chain(word).collect();
                Ok((Endpoint::new(listener, Serves::Metrics, names), None))
            }
            MetricsAt::Port(address) => {
                let refused = |error| {
                    format!(
                        "--metrics {address}: {error}; choose another port (0: the kernel chooses)"
                    )
                };
                let listener = TcpListener::bind(address).map_err(refused)?;
                let chosen = listener.local_addr().map_err(refused)?;
                let chosen = Some(chosen).filter(|_| address.port() == 0);
                Ok((Endpoint::new(listener, Serves::Metrics, Vec::new()), chosen))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use cosched_linux::clients::onlookers::live_socket;

    use super::*;

    #[test]
    fn a_socket_is_for_the_user_alone_and_goes_with_its_owner() {
        let (folder, proc) = (tempfile::tempdir().unwrap(), Proc::default());
        let path = live_socket(folder.path(), 7);
        let (listener, socket) = OwnSocket::bind(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(running(folder.path(), &proc), [7]);
        let refused = OwnSocket::bind(&path).unwrap_err();
        assert!(refused.ends_with("another run listens there"), "{refused}");
        assert_eq!(running(folder.path(), &proc), [7]);
        drop((listener, socket));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn sockets_that_are_removed_are_counted() {
        let (folder, proc) = (tempfile::tempdir().unwrap(), Proc::default());
        let listen = |pid| UnixListener::bind(live_socket(folder.path(), pid)).unwrap();
        let _alive = listen(1);
        drop([listen(2), listen(3)]);
        assert_eq!((remove_left(folder.path(), &proc), remove_left(folder.path(), &proc)), (2, 0));
    }

    #[test]
    fn what_a_killed_run_has_left_is_removed_and_nothing_else() {
        let (folder, proc) = (tempfile::tempdir().unwrap(), Proc::default());
        let bound = |name: &str| UnixListener::bind(folder.path().join(name)).unwrap();
        drop((bound("8.sock"), fs::write(folder.path().join("8-1-1.undo"), "")));
        drop(bound(&format!("{0}.sock.{0}", i32::MAX)));
        let alive = (bound("10.sock"), bound("9.sock"));
        assert_eq!(running(folder.path(), &proc), [9, 10]);
        drop(alive);
        let mut names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["10.sock", "8-1-1.undo", "9.sock"]);
    }

    #[test]
    fn metrics_are_served_to_this_machine_only() {
        assert_eq!("unix:/a/b".parse(), Ok(MetricsAt::Socket("/a/b".into())));
        assert!(matches!("127.0.0.1:9464".parse(), Ok(MetricsAt::Port(_))));
        assert!(matches!("[::1]:0".parse(), Ok(MetricsAt::Port(_))));
        for wrong in ["0.0.0.0:9464", "192.0.2.1:1", "9464", "localhost:9464", "unix:", ""] {
            let error = wrong.parse::<MetricsAt>().unwrap_err();
            assert!(error.contains("127.0.0.1:PORT or unix:PATH"), "{wrong}: {error}");
        }
    }

    /// A folder that does not exist is named.
    #[test]
    fn sockets_replace_no_file_and_need_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.sock");
        fs::write(&path, "mine").unwrap();
        let error = MetricsAt::Socket(path.clone()).open().err().unwrap();
        assert!(error.contains("it exists already"), "{error}");
        let nowhere = MetricsAt::Socket(folder.path().join("no/where"));
        let error = nowhere.open().err().unwrap();
        assert!(error.contains("no/where: ") && error.contains("its folder must exist"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }
}
