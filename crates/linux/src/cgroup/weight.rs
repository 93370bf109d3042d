//! Weighing a cgroup: whether its program has its turn, or runs as backfill.
//!
//! Among the groups below one parent, the kernel shares a CPU by weight. A group that is *idle*
//! (Linux 5.15 and later) counts for almost nothing, and is preempted at once when a thread of
//! another group wakes. The program in turn therefore loses nothing to the others, and the CPU time
//! that it leaves is used.
//!
//! | | v2 | v1 |
//! |---|---|---|
//! | backfill | `cpu.idle`: `1` | `cpu.idle`: `1` |
//! | in turn | `cpu.idle`: `0`, `cpu.weight`: `10000` | `cpu.idle`: `0`, `cpu.shares`: `262144` |
//! | neither | `cpu.idle`: `0`, `cpu.weight`: `100` | `cpu.idle`: `0`, `cpu.shares`: `1024` |
//!
//! The weight in turn is the kernel's greatest. Seven idle groups take 2.7 % of each CPU from a
//! group of the default weight, since each counts for at least 2 of 1024 on each CPU; a program
//! that waits at barriers loses 7 % by it. Writing `cpu.idle` resets the weight, so the weight is
//! written last.

use std::fs::File;
use std::os::fd::AsFd;

use cosched_core::Turn;
use rustix::io::Errno;

use super::dir::{Dir, Version};
use crate::kernel::files::FileError;

const IDLE: &str = "cpu.idle";

/// The opened weight files of one cgroup. Dropping it changes nothing.
#[derive(Debug)]
pub(crate) struct WeightSwitch {
    version: Version,
    idle: File,
    weight: File,
    /// What was written last; `None`: not known.
    written: Option<Option<Turn>>,
}

impl WeightSwitch {
    /// Opens the files of a cgroup.
    pub(crate) fn open(dir: &Dir) -> Result<WeightSwitch, FileError> {
        let version = dir.version();
        let (idle, weight) = (dir.open(IDLE, true)?, dir.open(weight_file(version), true)?);
        Ok(WeightSwitch { version, idle, weight, written: None })
    }

    /// Sets the weight by the program's turn; `None`: the default weight, with which every cgroup
    /// begins.
    pub(crate) fn set(&mut self, turn: Option<Turn>) -> Result<(), Errno> {
        let before = self.written.replace(turn);
        if before == Some(turn) {
            return Ok(());
        }
        // If a write fails, the weight is not known.
        self.written = None;
        if turn == Some(Turn::Filler) {
            write(&self.idle, "1")?;
        } else {
            if matches!(before, None | Some(Some(Turn::Filler))) {
                write(&self.idle, "0")?;
            }
            write(&self.weight, weight(self.version, turn))?;
        }
        self.written = Some(turn);
        Ok(())
    }

    /// Forgets the last written weight: another process may have changed it.
    pub(crate) fn forget(&mut self) {
        self.written = None;
    }
}

/// Gives a cgroup the default weight, if its weight can be changed.
pub(crate) fn even_out(dir: &Dir) -> Result<(), FileError> {
    if !dir.has(IDLE) {
        return Ok(());
    }
    dir.write(IDLE, "0")?;
    dir.write(weight_file(dir.version()), weight(dir.version(), None))
}

/// Gives the cgroup of a run, which contains its programs, the weight of one ordinary thread on
/// each of so many CPUs. Only version 1 compares a cgroup with threads in its parent; in version 2
/// there are none.
pub(crate) fn weigh_as_threads(dir: &Dir, cpus: usize) -> Result<(), FileError> {
    match dir.version() {
        Version::V1 => dir.write(weight_file(Version::V1), &(1024 * cpus.max(1)).to_string()),
        Version::V2 => Ok(()),
    }
}

/// Whether programs can take turns by weight below this cgroup.
pub(crate) fn can_be_idle(dir: &Dir) -> bool {
    dir.has(IDLE)
}

fn weight_file(version: Version) -> &'static str {
    match version {
        Version::V2 => "cpu.weight",
        Version::V1 => "cpu.shares",
    }
}

fn weight(version: Version, turn: Option<Turn>) -> &'static str {
    match (version, turn) {
        (Version::V2, Some(_)) => "10000",
        (Version::V2, None) => "100",
        (Version::V1, Some(_)) => "262144",
        (Version::V1, None) => "1024",
    }
}

fn write(file: &File, text: &str) -> Result<(), Errno> {
    rustix::io::pwrite(file.as_fd(), text.as_bytes(), 0).map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn group(version: Version) -> (tempfile::TempDir, Dir) {
        let root = tempfile::tempdir().unwrap();
        for file in [IDLE, weight_file(version)] {
            fs::write(root.path().join(file), "").unwrap();
        }
        let dir = Dir::new(root.path(), version);
        (root, dir)
    }

    fn read(dir: &Dir) -> (String, String) {
        (dir.read(IDLE).unwrap(), dir.read(weight_file(dir.version())).unwrap())
    }

    #[test]
    fn each_part_has_its_weight() {
        let cases = [
            (Version::V1, Some(Turn::InTurn), ("0", "262144")),
            (Version::V1, None, ("0", "1024")),
            (Version::V2, Some(Turn::InTurn), ("0", "10000")),
            (Version::V2, None, ("0", "100")),
            (Version::V2, Some(Turn::Filler), ("1", "")),
        ];
        for (version, turn, (idle, weight)) in cases {
            let (_root, dir) = group(version);
            WeightSwitch::open(&dir).unwrap().set(turn).unwrap();
            assert_eq!(read(&dir), (idle.to_owned(), weight.to_owned()), "{version:?} {turn:?}");
        }
    }

    #[test]
    fn a_weight_is_not_written_twice_until_it_is_forgotten() {
        let (root, dir) = group(Version::V1);
        let mut switch = WeightSwitch::open(&dir).unwrap();
        switch.set(Some(Turn::Filler)).unwrap();
        fs::write(root.path().join(IDLE), "x").unwrap();
        switch.set(Some(Turn::Filler)).unwrap();
        assert_eq!(dir.read(IDLE).unwrap(), "x");
        switch.forget();
        switch.set(Some(Turn::Filler)).unwrap();
        assert_eq!(dir.read(IDLE).unwrap(), "1");
    }

    #[test]
    fn even_out_sets_the_default_weight_where_there_is_one() {
        let (_root, dir) = group(Version::V2);
        even_out(&dir).unwrap();
        assert_eq!(read(&dir), ("0".to_owned(), "100".to_owned()));
        let bare = tempfile::tempdir().unwrap();
        even_out(&Dir::new(bare.path(), Version::V2)).unwrap();
        assert_eq!(fs::read_dir(bare.path()).unwrap().count(), 0);
    }

    #[test]
    fn without_cpu_idle_there_are_no_turns_by_weight() {
        let root = tempfile::tempdir().unwrap();
        let dir = Dir::new(root.path(), Version::V2);
        assert!(!can_be_idle(&dir));
        let error = WeightSwitch::open(&dir).unwrap_err();
        assert!(error.to_string().contains("cpu.idle"), "{error}");
    }
}
