//! Which terminals a user, or a process of another program, waits at.
//!
//! A pseudo-terminal has two ends. What is written to the one is read at its master, `/dev/ptmx`. A
//! program that also holds the master has made the terminal for its own processes, as mpirun and
//! test runners do. No user waits at such a terminal.

use std::collections::BTreeSet;
use std::path::Path;

use crate::kernel::files;
use crate::kernel::procfs::Fd;

use super::is_any;

/// The terminals that the processes of one program hold.
#[derive(Default)]
pub(super) struct Terminals {
    held: BTreeSet<String>,
    /// The terminals of which it holds the master.
    own: BTreeSet<String>,
}

impl Terminals {
    /// Whether this descriptor is one of a terminal. The process with this folder of `/proc` holds
    /// it.
    pub(super) fn note(&mut self, process: &Path, fd: &Fd) -> bool {
        let target = fd.target.as_str();
        if matches!(target, "/dev/ptmx" | "/dev/pts/ptmx") {
            self.own.extend(other_end(process, fd.number));
        } else if is_any(target, &["/dev/pts/", "/dev/tty", "/dev/console"]) {
            self.held.insert(target.to_owned());
        } else {
            return false;
        }
        true
    }

    /// Whether one of them was not made by the program itself.
    pub(super) fn are_of_others(&self) -> bool {
        self.held.iter().any(|terminal| !self.own.contains(terminal))
    }
}

/// The terminal of this master: `tty-index: 3` is `/dev/pts/3`.
fn other_end(process: &Path, master: i32) -> Option<String> {
    let text = files::read_if_there(&process.join(format!("fdinfo/{master}"))).ok()??;
    let number = text.lines().find_map(|line| line.strip_prefix("tty-index:"))?;
    Some(format!("/dev/pts/{}", number.trim()))
}
