//! Weighing a cgroup: whether what is in it has its turn, or runs as backfill.
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
//! | n times | `cpu.idle`: `0`, `cpu.weight`: n `100` | `cpu.idle`: `0`, `cpu.shares`: n `1024` |
//!
//! *n times*: like n groups of the default weight, which in version 1 is that of a thread. The
//! weight in turn is the kernel's greatest. Seven idle groups take 2.7 % of each CPU from a group
//! of the default weight, since each counts for at least 2 of 1024 on each CPU; a program that
//! waits at barriers loses 7 % by it. Writing `cpu.idle` resets the weight, so the weight is
//! written last.

use std::fs::File;
use std::os::fd::AsFd;

use cosched_core::Turn;
use rustix::io::Errno;

use super::dir::{Dir, Version};
use crate::kernel::files::FileError;

const IDLE: &str = "cpu.idle";

/// How a cgroup compares with what is beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// It has its turn.
    InTurn,
    /// It runs as backfill.
    Backfill,
    /// It counts as so many groups of the default weight.
    Times(u32),
}

impl From<Option<Turn>> for Weight {
    fn from(turn: Option<Turn>) -> Weight {
        match turn {
            Some(Turn::InTurn) => Weight::InTurn,
            Some(Turn::Filler) => Weight::Backfill,
            None => Weight::Times(1),
        }
    }
}

impl Weight {
    /// What is written for it, within what the kernel allows.
    fn text(self, version: Version) -> String {
        let (default, greatest) = match version {
            Version::V2 => (100, 10_000),
            Version::V1 => (1024, 262_144),
        };
        match self {
            Weight::Times(times) => times.saturating_mul(default).clamp(default, greatest),
            Weight::InTurn | Weight::Backfill => greatest,
        }
        .to_string()
    }
}

/// The opened weight files of one cgroup. Dropping it changes nothing.
#[derive(Debug)]
pub(crate) struct WeightSwitch {
    version: Version,
    idle: File,
    weight: File,
    /// What was written last; `None`: not known.
    written: Option<Weight>,
}

impl WeightSwitch {
    /// Opens the files of a cgroup.
    pub(crate) fn open(dir: &Dir) -> Result<WeightSwitch, FileError> {
        let version = dir.version();
        let (idle, weight) = (dir.open(IDLE, true)?, dir.open(weight_file(version), true)?);
        Ok(WeightSwitch { version, idle, weight, written: None })
    }

    /// Sets the weight: of a program, by its turn; without one, it is the default weight, with
    /// which every cgroup begins.
    pub(crate) fn set(&mut self, weight: impl Into<Weight>) -> Result<(), Errno> {
        let weight = weight.into();
        // If a write fails, the weight is not known.
        let before = self.written.take();
        if before == Some(weight) {
            self.written = before;
            return Ok(());
        }
        if weight == Weight::Backfill {
            write(&self.idle, "1")?;
        } else {
            if matches!(before, None | Some(Weight::Backfill)) {
                write(&self.idle, "0")?;
            }
            write(&self.weight, &weight.text(self.version))?;
        }
        self.written = Some(weight);
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
    dir.write(weight_file(dir.version()), &Weight::Times(1).text(dir.version()))
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
            (Version::V1, Weight::InTurn, ("0", "262144")),
            (Version::V1, None.into(), ("0", "1024")),
            (Version::V1, Weight::Times(8), ("0", "8192")),
            (Version::V2, Weight::InTurn, ("0", "10000")),
            (Version::V2, None.into(), ("0", "100")),
            (Version::V2, Weight::Times(8), ("0", "800")),
            (Version::V2, Weight::Times(1000), ("0", "10000")),
            (Version::V2, Weight::Backfill, ("1", "")),
        ];
        for (version, weight, (idle, written)) in cases {
            let (_root, dir) = group(version);
            WeightSwitch::open(&dir).unwrap().set(weight).unwrap();
            assert_eq!(read(&dir), (idle.to_owned(), written.to_owned()), "{version:?} {weight:?}");
        }
    }

    #[test]
    fn a_weight_is_not_written_twice_until_it_is_forgotten() {
        let (root, dir) = group(Version::V1);
        let mut switch = WeightSwitch::open(&dir).unwrap();
        switch.set(Weight::Backfill).unwrap();
        fs::write(root.path().join(IDLE), "x").unwrap();
        switch.set(Weight::Backfill).unwrap();
        assert_eq!(dir.read(IDLE).unwrap(), "x");
        switch.forget();
        switch.set(Weight::Backfill).unwrap();
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
