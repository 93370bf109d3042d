//! A copy of the file in memory, to look something up.
//!
//! Opening the file itself writes to it, and waits for the disk several times: milliseconds, and
//! seconds where other programs keep the disk busy.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::{PoisonError, RwLock};

use redb::StorageBackend;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// What a database does to it is not kept.
#[derive(Debug)]
pub(super) struct FileCopy(RwLock<Vec<u8>>);

impl FileCopy {
    /// The content of the file, nothing if it is not there; `None`: another process has it open.
    pub(super) fn of(file: &Path) -> io::Result<Option<FileCopy>> {
        let mut content = Vec::new();
        match File::open(file) {
            Ok(mut open) => {
                match flock(&open, FlockOperation::NonBlockingLockShared) {
                    Err(Errno::WOULDBLOCK) => return Ok(None),
                    locked => locked?,
                }
                open.read_to_end(&mut content)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(Some(FileCopy(RwLock::new(content))))
    }

    fn content<T>(&self, read: impl FnOnce(&[u8]) -> T) -> T {
        read(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn change<T>(&self, change: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What lies outside is damage, as in a file that is too short.
fn outside() -> io::Error {
    io::Error::from(io::ErrorKind::UnexpectedEof)
}

fn place(offset: u64, len: usize) -> io::Result<Range<usize>> {
    let start = usize::try_from(offset).map_err(|_| outside())?;
    Ok(start..start.checked_add(len).ok_or_else(outside)?)
}

impl StorageBackend for FileCopy {
    fn len(&self) -> io::Result<u64> {
        Ok(self.content(<[u8]>::len) as u64)
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let place = place(offset, len)?;
        self.content(|content| content.get(place).map(<[u8]>::to_vec)).ok_or_else(outside)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).map_err(|_| outside())?;
        self.change(|content| content.resize(len, 0));
        Ok(())
    }

    fn sync_data(&self, _eventual: bool) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let place = place(offset, data.len())?;
        self.change(|content| {
            content.get_mut(place).map(|there| there.copy_from_slice(data)).ok_or_else(outside)
        })
    }
}
