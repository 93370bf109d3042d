//! Freezing and thawing a cgroup, as fast as the kernel can.
//!
//! A request takes microseconds. The freeze takes until every thread has left user space, typically
//! a tenth of a millisecond. The kernel announces it through `poll`, but at most once per ten
//! milliseconds, so a caller in a hurry reads again and again. The switch therefore keeps both
//! files open, the one that is written and the one that is read, and allocates nothing.
//!
//! | | v2 | v1 |
//! |---|---|---|
//! | request | `cgroup.freeze`: `1`, `0` | `freezer.state`: `FROZEN`, `THAWED` |
//! | answer | `frozen 1` in `cgroup.events` | `FROZEN` in `freezer.state`, after `FREEZING` |

use std::fs::File;
use std::os::fd::AsFd;

use rustix::io::Errno;

use super::dir::{Dir, Version};
use crate::kernel::files::FileError;

/// The opened freezing files of one cgroup. Dropping it changes nothing: a frozen cgroup stays
/// frozen.
#[derive(Debug)]
pub struct FreezeSwitch {
    version: Version,
    control: File,
    answer: File,
}

impl FreezeSwitch {
    /// Opens the files of a cgroup.
    ///
    /// # Errors
    /// When they are not there (the root has none; v1 needs the `freezer` tree) or a right is
    /// missing.
    pub fn open(dir: &Dir) -> Result<FreezeSwitch, FileError> {
        let (control, answer) = match dir.version() {
            Version::V2 => ("cgroup.freeze", "cgroup.events"),
            Version::V1 => ("freezer.state", "freezer.state"),
        };
        let (control, answer) = (dir.open(control, true)?, dir.open(answer, false)?);
        Ok(FreezeSwitch { version: dir.version(), control, answer })
    }

    /// Has the kernel stop every thread of the cgroup. It begins at once;
    /// [`FreezeSwitch::is_frozen`] says when it is done.
    ///
    /// # Errors
    /// The system's error number: `NODEV` when the cgroup is gone.
    pub fn freeze(&self) -> Result<(), Errno> {
        self.write(match self.version {
            Version::V2 => b"1",
            Version::V1 => b"FROZEN",
        })
    }

    /// Lets every thread run again.
    ///
    /// # Errors
    /// The system's error number: `NODEV` when the cgroup is gone.
    pub fn thaw(&self) -> Result<(), Errno> {
        self.write(match self.version {
            Version::V2 => b"0",
            Version::V1 => b"THAWED",
        })
    }

    /// Whether every thread of the cgroup has stopped: none is in user space. (A thread that was
    /// frozen again before it had woken from the last freeze may still show as running, in the
    /// kernel.)
    ///
    /// # Errors
    /// The system's error number: `NODEV` when the cgroup is gone.
    pub fn is_frozen(&self) -> Result<bool, Errno> {
        let mut buffer = [0; 128];
        let read = rustix::io::pread(self.answer.as_fd(), &mut buffer, 0)?;
        let expected: &[u8] = match self.version {
            Version::V2 => b"frozen 1",
            Version::V1 => b"FROZEN",
        };
        Ok(buffer[..read].split(|byte| *byte == b'\n').any(|line| line == expected))
    }

    fn write(&self, text: &[u8]) -> Result<(), Errno> {
        rustix::io::pwrite(self.control.as_fd(), text, 0).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;
    use crate::cgroup::live::{self, Scratch};
    use crate::kernel::procfs::{Proc, ProcState};

    #[test]
    fn the_answer_is_read_from_the_right_line() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("cgroup.freeze"), "0").unwrap();
        fs::write(root.path().join("cgroup.events"), "populated 1\nfrozen 0\n").unwrap();
        let switch = FreezeSwitch::open(&Dir::new(root.path(), Version::V2)).unwrap();
        assert_eq!(switch.is_frozen(), Ok(false));
        switch.freeze().unwrap();
        assert_eq!(fs::read_to_string(root.path().join("cgroup.freeze")).unwrap(), "1");
        fs::write(root.path().join("cgroup.events"), "populated 1\nfrozen 1\n").unwrap();
        assert_eq!(switch.is_frozen(), Ok(true));
    }

    #[test]
    fn freezing_does_not_count_as_frozen() {
        let root = tempfile::tempdir().unwrap();
        for (state, frozen) in [("FREEZING\n", false), ("FROZEN\n", true), ("THAWED\n", false)] {
            fs::write(root.path().join("freezer.state"), state).unwrap();
            let switch = FreezeSwitch::open(&Dir::new(root.path(), Version::V1)).unwrap();
            assert_eq!(switch.is_frozen(), Ok(frozen), "{state}");
        }
    }

    /// Freezes and thaws a program that spins; ends when the kernel has confirmed each.
    fn stops_and_goes(mut scratch: Scratch) {
        let pid = scratch.start("while :; do :; done");
        let switch = FreezeSwitch::open(scratch.dir()).unwrap();
        for _ in 0..3 {
            assert_eq!(switch.is_frozen(), Ok(false));
            switch.freeze().unwrap();
            while !switch.is_frozen().unwrap() {
                std::thread::yield_now();
            }
            // If it is frozen again before it had woken, it counts as frozen while it returns to
            // sleep.
            let stat = || Proc::default().stat(pid).unwrap();
            while stat().state == ProcState::Running {
                std::thread::yield_now();
            }
            let used = stat().utime;
            std::thread::sleep(Duration::from_millis(30));
            assert_eq!(stat().utime, used);
            switch.thaw().unwrap();
            while switch.is_frozen().unwrap() {
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn a_v2_group_freezes_and_thaws() {
        if let Some(scratch) = live::v2("freeze") {
            stops_and_goes(scratch);
        }
    }

    #[test]
    fn a_v1_group_freezes_and_thaws() {
        if let Some(scratch) = live::v1("freezer", "freeze") {
            stops_and_goes(scratch);
        }
    }
}
