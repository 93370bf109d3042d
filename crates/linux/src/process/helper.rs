//! The helper processes: cosched's own executable, started again with a hidden first argument.
//!
//! Two things must outlive cosched in every case: the [shim](crate::process::shim), with a program
//! in its subtree, and the [sentinel](crate::safety::sentinel), which undoes everything. Only a
//! process of its own can do that. The executable that runs is the only one that is surely there
//! and of the same version.
//!
//! A helper talks to cosched over a socket that it gets as its standard input, so no descriptor
//! number has to be agreed upon. Either side sees the end of the other as the end of that stream:
//! the kernel closes it, even when the other side was killed.
//!
//! Helpers have other names than cosched, in `comm` and on their command lines, so that `pkill
//! cosched` does not end them with it. They ignore every signal that a terminal or a plain `kill`
//! sends.

use std::ffi::{CStr, OsStr};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use crate::kernel::procfs::Proc;
use crate::kernel::signals;

/// The running executable, by a name that stays right when its file is replaced meanwhile.
pub const OWN_EXECUTABLE: &str = "/proc/self/exe";

/// What a helper is called after that file, until it has given itself its name.
const UNNAMED: &str = "exe";

/// The bits of a file that gives other permissions.
const SET_ID: u32 = 0o6000;

/// Why a helper could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start a helper process from {}: {source}", executable.display())]
pub struct HelperError {
    /// The file that was to be executed.
    pub executable: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

/// A kind of helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Helper {
    /// The parent of one program.
    Shim,
    /// The process that undoes changes by the undo log.
    Sentinel,
}

impl Helper {
    /// The hidden first argument.
    pub(crate) fn argument(self) -> &'static str {
        match self {
            Helper::Shim => "__shim",
            Helper::Sentinel => "__sentinel",
        }
    }

    /// The name that `ps` and `pkill` show.
    pub fn name(self) -> &'static CStr {
        match self {
            Helper::Shim => c"shim",
            Helper::Sentinel => c"csentinel",
        }
    }

    /// Whether a process is such a helper of this user, by its name. A process of a set-uid file is
    /// none: any user can start it with any name and any descriptors.
    pub(crate) fn may_be_of(self, user: u32, pid: i32, proc: &Proc) -> bool {
        let executable = || fs::metadata(proc.folder(pid).join("exe"));
        self.may_be(pid, proc)
            && proc.is_only_of(pid, user)
            && executable().is_ok_and(|found| found.mode() & SET_ID == 0)
    }

    /// The helpers of this kind that a user has.
    pub(crate) fn all_of(self, user: u32, proc: &Proc) -> impl Iterator<Item = i32> {
        let all = proc.processes().unwrap_or_default().into_iter();
        all.filter(move |pid| self.may_be_of(user, *pid, proc))
    }

    /// Whether a process has the name of such a helper, or is about to give itself that name.
    pub(crate) fn may_be(self, pid: i32, proc: &Proc) -> bool {
        let Ok(name) = proc.name(pid) else { return false };
        // A process that has ended has no command line.
        let argument = || proc.command_line(pid).ok().and_then(|line| line.get(1).cloned());
        name.as_bytes() == self.name().to_bytes()
            || name == UNNAMED && argument().is_none_or(|found| found == self.argument())
    }
}

/// Whether a user has helpers of any kind: one look at all processes instead of one for each kind.
pub(crate) fn are_there(user: u32, proc: &Proc) -> bool {
    let is_one = |pid: i32| {
        [Helper::Shim, Helper::Sentinel].iter().any(|helper| helper.may_be_of(user, pid, proc))
    };
    proc.processes().unwrap_or_default().into_iter().any(is_one)
}

/// Starts a helper with these outputs and returns it with cosched's end of the socket.
///
/// `message` waits in the socket before the helper is there: the helper gets it even if cosched
/// dies now.
pub(crate) fn spawn(
    executable: &Path,
    helper: Helper,
    [stdout, stderr]: [Stdio; 2],
    message: &[u8],
) -> Result<(Child, UnixStream), HelperError> {
    let failed = |source| HelperError { executable: executable.to_owned(), source };
    let (mut ours, theirs) = UnixStream::pair().map_err(failed)?;
    ours.write_all(message).map_err(failed)?;
    let mut command = Command::new(executable);
    if helper == Helper::Shim {
        // A process group of its own, so that what hits cosched's whole group (Ctrl-C, `kill -9
        // -PGID`) misses it. The sentinel opens a session, which a group leader may not.
        command.process_group(0);
    }
    let child = command
        .arg0(OsStr::from_bytes(helper.name().to_bytes()))
        .arg(helper.argument())
        .stdin(OwnedFd::from(theirs))
        .stdout(stdout)
        .stderr(stderr)
        .spawn()
        .map_err(failed)?;
    Ok((child, ours))
}

/// The first steps of every helper: its name, its signals, and nothing open but the socket, which
/// is returned, and the two outputs.
pub(crate) fn begin(helper: Helper) -> io::Result<UnixStream> {
    close_inherited()?;
    rustix::thread::set_name(helper.name())?;
    for signal in [Signal::HUP, Signal::INT, Signal::TERM, Signal::QUIT, Signal::PIPE, Signal::TSTP]
    {
        signals::ignore(signal)?;
    }
    signals::hear_of_children()?;
    // A thread of the background, which blocks all, may have started it.
    signals::unblock()?;
    let channel = std::io::stdin().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdin(null()?)?;
    Ok(UnixStream::from(channel))
}

/// Closes the outputs, so that their reader sees their end when the others have closed them.
pub(crate) fn drop_outputs() -> io::Result<()> {
    rustix::stdio::dup2_stdout(null()?)?;
    rustix::stdio::dup2_stderr(null()?)?;
    Ok(())
}

fn null() -> io::Result<File> {
    File::options().read(true).write(true).open("/dev/null")
}

/// Closes what cosched's own caller left open: a helper may live long, and must not keep pipes
/// and locks of others.
fn close_inherited() -> io::Result<()> {
    // SAFETY: this runs before anything else in the process (see `become_one_if_asked`), so no
    // value in it owns a descriptor beyond the standard three.
    match unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_helper_is_known_before_it_has_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let unnamed = folder.path().join(UNNAMED);
        std::os::unix::fs::symlink("/bin/sh", &unnamed).unwrap();
        std::fs::write(folder.path().join("__sentinel"), "read line").unwrap();
        let mut command = Command::new(&unnamed);
        command.arg("__sentinel").current_dir(folder.path()).stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (pid, proc) = (child.id() as i32, Proc::default());
        // It has its name and its arguments a moment after the file is executed.
        while proc.command_line(pid).unwrap().len() < 2 {}
        assert!(Helper::Sentinel.may_be(pid, &proc) && !Helper::Shim.may_be(pid, &proc));
        assert!(!Helper::Sentinel.may_be(std::process::id() as i32, &proc));
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    /// Any user can start such a program by a link with any name, and choose what it holds.
    #[test]
    fn a_set_uid_program_is_no_helper_whatever_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let (path, proc) = (folder.path().join("shim"), Proc::default());
        // Another process copies it: a file that is open for writing cannot be executed.
        assert!(Command::new("cp").arg("/bin/sh").arg(&path).status().unwrap().success());
        let user = rustix::process::geteuid().as_raw();
        for (mode, is_helper) in [(0o755, true), (0o4755, false), (0o2755, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let mut command = Command::new(&path);
            let mut child = command.args(["-c", "read x"]).stdin(Stdio::piped()).spawn().unwrap();
            let pid = child.id() as i32;
            while proc.name(pid).unwrap() != "shim" {}
            let found = Helper::Shim.may_be_of(user, pid, &proc);
            let of_another = Helper::Shim.may_be_of(user + 1, pid, &proc);
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!((found, of_another), (is_helper, false), "{mode:o}");
        }
    }
}
