//! The ring of memory into which the kernel writes samples, and its contents.
//!
//! A first page says how far the kernel has written (`head`) and how far we have read (`tail`),
//! both counted from the beginning; the data lie behind it. Each record begins with its type and
//! its size, so that unknown ones can be skipped. Two kinds matter here: samples, and the number of
//! those that found no room. The kernel writes that number once there is room again.
//!
//! A ring that is half full wakes whatever waits for its descriptor.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Where `data_head` and `data_tail` lie in `struct perf_event_mmap_page`, bytes.
const HEAD: usize = 1024;
const TAIL: usize = 1032;
/// `PERF_RECORD_LOST`.
const LOST: u32 = 2;
/// `PERF_RECORD_SAMPLE`.
const SAMPLE: u32 = 9;
/// `struct perf_event_header`: type, misc, size.
const HEADER: usize = 8;

/// What the kernel has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RingEntry {
    /// Where a thread was.
    Sample {
        /// Its instruction pointer.
        pointer: u64,
        /// The number of the event, where events share the ring.
        event: Option<u64>,
    },
    /// So many samples found no room.
    Lost(u64),
}

/// A ring that is mapped here, as long as this lives.
#[derive(Debug)]
pub(crate) struct Ring {
    base: *mut u8,
    page: usize,
    /// Bytes of data.
    size: usize,
    tail: u64,
    bytes: Vec<u8>,
    /// The event that the ring belongs to.
    event: File,
}

// SAFETY: the mapping belongs to the process, not to a thread, and only the owner of this looks at
// it.
unsafe impl Send for Ring {}

impl Ring {
    /// The ring of an event, with room for about so many bytes: a power of two of pages, one at
    /// least.
    pub(super) fn new(event: File, bytes: usize) -> io::Result<Ring> {
        // SAFETY: reads a constant of the system.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let page = usize::try_from(page).map_err(|_| io::Error::last_os_error())?;
        let size = (bytes / page).max(1).next_power_of_two() * page;
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: maps the event's own memory, of this size, wherever the kernel likes.
        let base =
            unsafe { mmap(ptr::null_mut(), page + size, rights, MapFlags::SHARED, &event, 0)? };
        Ok(Ring { base: base.cast(), page, size, tail: 0, bytes: Vec::new(), event })
    }

    /// Calls `see` with each entry that has come since the last time.
    pub(super) fn take(&mut self, see: impl FnMut(RingEntry)) {
        let head = self.word(HEAD).load(Acquire);
        if head == self.tail {
            return;
        }
        self.copy(head);
        entries(&self.bytes, see);
        self.tail = head;
        self.word(TAIL).store(head, Release);
    }

    /// The event that the ring belongs to.
    pub(super) fn event(&self) -> &File {
        &self.event
    }

    /// Copies the bytes between the tail and this head, which may wrap around the end of the ring.
    fn copy(&mut self, head: u64) {
        self.bytes.clear();
        let fresh = usize::try_from(head.wrapping_sub(self.tail)).unwrap_or(0).min(self.size);
        let start = (self.tail % self.size as u64) as usize;
        let first = fresh.min(self.size - start);
        for (from, length) in [(start, first), (0, fresh - first)] {
            // SAFETY: lies within the data of the mapping; the kernel writes nothing between tail
            // and head.
            let part = unsafe {
                std::slice::from_raw_parts(self.base.add(self.page + from).cast_const(), length)
            };
            self.bytes.extend_from_slice(part);
        }
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: lies within the first page of the mapping, aligned to eight bytes; kernel and we
        // use it as one word.
        unsafe { &*self.base.add(offset).cast::<AtomicU64>() }
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // Nothing reads what the kernel still writes.
        self.word(TAIL).store(self.word(HEAD).load(Relaxed), Relaxed);
        // SAFETY: mapped with this size, and no reference outlives this. The call fails only for
        // addresses that are none.
        let _ = unsafe { munmap(self.base.cast(), self.page + self.size) };
    }
}

/// The entries in a stream of records. A record that is cut off or has no size ends it.
fn entries(mut records: &[u8], mut see: impl FnMut(RingEntry)) {
    while let Some((kind, size)) = header(records) {
        let Some((record, rest)) = records.split_at_checked(size).filter(|_| size >= HEADER) else {
            return;
        };
        let entry = match (kind, word(record, 0), word(record, 1)) {
            (SAMPLE, Some(pointer), event) => Some(RingEntry::Sample { pointer, event }),
            (LOST, _, Some(samples)) => Some(RingEntry::Lost(samples)),
            _ => None,
        };
        entry.into_iter().for_each(&mut see);
        records = rest;
    }
}

/// A word of a record, behind its header.
fn word(record: &[u8], position: usize) -> Option<u64> {
    let bytes = record.get(HEADER + 8 * position..)?.first_chunk()?;
    Some(u64::from_ne_bytes(*bytes))
}

fn header(records: &[u8]) -> Option<(u32, usize)> {
    let kind = records.get(..4)?.try_into().ok().map(u32::from_ne_bytes)?;
    let size = records.get(6..HEADER)?.try_into().ok().map(u16::from_ne_bytes)?;
    Some((kind, size.into()))
}

#[cfg(test)]
pub(super) mod testkit;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::testkit::record;
    use super::*;

    fn seen(records: &[u8]) -> Vec<RingEntry> {
        let mut seen = Vec::new();
        entries(records, |entry| seen.push(entry));
        seen
    }

    fn at(pointer: u64) -> RingEntry {
        RingEntry::Sample { pointer, event: None }
    }

    #[test]
    fn samples_are_read_in_order_and_other_records_are_skipped() {
        const THROTTLE: u32 = 5;
        let stream = [
            record(SAMPLE, &[0x4010]),
            record(LOST, &[7, 100]),
            record(SAMPLE, &[0x4020, 7]),
            record(THROTTLE, &[1, 2, 3]),
            record(SAMPLE, &[0x7fff_0000]),
        ];
        let of_event = RingEntry::Sample { pointer: 0x4020, event: Some(7) };
        let expected = [at(0x4010), RingEntry::Lost(100), of_event, at(0x7fff_0000)];
        assert_eq!(seen(&stream.concat()), expected);
    }

    #[test]
    fn a_record_that_is_cut_off_or_has_no_size_ends_the_stream() {
        let mut stream = [record(SAMPLE, &[1]), record(SAMPLE, &[2])].concat();
        stream.truncate(30);
        assert_eq!(seen(&stream), [at(1)]);
        let empty = [record(SAMPLE, &[1]), vec![0; 16], record(SAMPLE, &[2])].concat();
        assert_eq!(seen(&empty), [at(1)]);
    }

    proptest! {
        #[test]
        fn no_stream_of_bytes_makes_reading_fail(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            seen(&bytes);
        }
    }
}
