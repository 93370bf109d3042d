//! The file, to look something up: what a database writes to it stays in memory.
//!
//! Opening the file itself writes to it, and waits for the disk several times, which takes seconds
//! where other programs keep the disk busy.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redb::StorageBackend;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// The file, open and locked against changes by others, and what would be written to it.
#[derive(Debug)]
pub(super) struct FileCopy {
    /// `None`: it is not there.
    file: Option<File>,
    changes: Mutex<Unwritten>,
}

#[derive(Debug, Default)]
struct Unwritten {
    len: u64,
    /// Places and contents, in order.
    writes: Vec<(u64, Vec<u8>)>,
}

impl FileCopy {
    /// The file, empty if it is not there; `None`: another process has it open.
    pub(super) fn of(file: &Path) -> io::Result<Option<FileCopy>> {
        let file = match File::open(file) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let mut changes = Unwritten::default();
        if let Some(file) = &file {
            if !may_read(flock(file, FlockOperation::NonBlockingLockShared))? {
                return Ok(None);
            }
            changes.len = file.metadata()?.len();
        }
        Ok(Some(FileCopy { file, changes: Mutex::new(changes) }))
    }

    fn changes(&self) -> MutexGuard<'_, Unwritten> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether no process writes the file, as far as an attempt to lock it tells.
fn may_read(locked: Result<(), Errno>) -> io::Result<bool> {
    match locked.map_err(io::Error::from) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        // The library writes nothing that it cannot lock.
        Err(error) if has_no_locks(&error) => Ok(true),
        locked => locked.map(|()| true),
    }
}

/// Whether an error is of a file system without locks, as some over a network are.
pub(super) fn has_no_locks(error: &io::Error) -> bool {
    let error = Errno::from_io_error(error);
    [Errno::NOLCK, Errno::OPNOTSUPP, Errno::NOSYS].iter().any(|none| error == Some(*none))
}

impl StorageBackend for FileCopy {
    fn len(&self) -> io::Result<u64> {
        Ok(self.changes().len)
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let changes = self.changes();
        let end = offset.checked_add(len as u64).filter(|end| *end <= changes.len);
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        // What was added to the file has zeros until it is written.
        let mut content = vec![0; len];
        let mut filled = 0;
        while let Some(file) = self.file.as_ref().filter(|_| filled < len) {
            match file.read_at(&mut content[filled..], offset + filled as u64)? {
                0 => break,
                read => filled += read,
            }
        }
        for (at, written) in &changes.writes {
            let (from, to) = (offset.max(*at), end.min(at + written.len() as u64));
            if from < to {
                let of = |start: u64| (from - start) as usize..(to - start) as usize;
                content[of(offset)].copy_from_slice(&written[of(*at)]);
            }
        }
        Ok(content)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.changes().len = len;
        Ok(())
    }

    fn sync_data(&self, _eventual: bool) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.changes().writes.push((offset, data.to_vec()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_without_locks_is_read() {
        for (locked, expected) in [
            (Ok(()), true),
            (Err(Errno::WOULDBLOCK), false),
            (Err(Errno::NOLCK), true),
            (Err(Errno::OPNOTSUPP), true),
        ] {
            assert_eq!(may_read(locked).unwrap(), expected);
        }
        assert!(may_read(Err(Errno::IO)).is_err());
    }

    #[test]
    fn what_is_written_is_read_and_stays_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "abcdef").unwrap();
        let copy = FileCopy::of(&path).unwrap().unwrap();
        copy.write(1, b"BC").unwrap();
        copy.write(2, b"c").unwrap();
        copy.set_len(8).unwrap();
        copy.write(5, b"Fg").unwrap();
        assert_eq!(copy.read(0, 8).unwrap(), b"aBcdeFg\0");
        assert_eq!(copy.read(2, 2).unwrap(), b"cd");
        assert_eq!(copy.read(4, 5).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(std::fs::read(&path).unwrap(), b"abcdef");
    }
}
