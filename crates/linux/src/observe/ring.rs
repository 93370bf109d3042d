//! The ring of memory into which the kernel writes samples, and its contents.
//!
//! A first page says how far the kernel has written (`head`) and how far we have read (`tail`),
//! both counted from the beginning; the data lie behind it. Each record begins with its type and
//! its size, so that unknown ones can be skipped. Only samples matter here: instruction pointers.

use std::fs::File;
use std::io;
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Pages of data: a power of two. A page holds 256 samples.
const PAGES: usize = 2;
/// Where `data_head` and `data_tail` lie in `struct perf_event_mmap_page`, bytes.
const HEAD: usize = 1024;
const TAIL: usize = 1032;
/// `PERF_RECORD_SAMPLE`.
const SAMPLE: u32 = 9;
/// `struct perf_event_header`: type, misc, size.
const HEADER: usize = 8;

/// A ring that is mapped here, as long as this lives.
#[derive(Debug)]
pub(super) struct Ring {
    base: *mut u8,
    page: usize,
    tail: u64,
    bytes: Vec<u8>,
    /// The event, which ends when this is closed.
    _event: File,
}

// SAFETY: the mapping belongs to the process, not to a thread, and only the owner of this looks at
// it.
unsafe impl Send for Ring {}

impl Ring {
    /// The ring of an event that takes samples.
    pub(super) fn new(event: File) -> io::Result<Ring> {
        // SAFETY: reads a constant of the system.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let page = usize::try_from(page).map_err(|_| io::Error::last_os_error())?;
        let (size, rights) = ((1 + PAGES) * page, ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: maps the event's own memory, of this size, wherever the kernel likes.
        let base = unsafe { mmap(ptr::null_mut(), size, rights, MapFlags::SHARED, &event, 0)? };
        Ok(Ring { base: base.cast(), page, tail: 0, bytes: Vec::new(), _event: event })
    }

    /// Calls `see` with each sample that has come since the last time.
    pub(super) fn take(&mut self, see: impl FnMut(u64)) {
        let head = self.word(HEAD).load(Acquire);
        self.copy(head);
        samples(&self.bytes, see);
        self.tail = head;
        self.word(TAIL).store(head, Release);
    }

    /// Copies the bytes between the tail and this head, which may wrap around the end of the ring.
    fn copy(&mut self, head: u64) {
        self.bytes.clear();
        let size = PAGES * self.page;
        let fresh = usize::try_from(head.wrapping_sub(self.tail)).unwrap_or(0).min(size);
        let start = (self.tail % size as u64) as usize;
        let first = fresh.min(size - start);
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

impl Drop for Ring {
    fn drop(&mut self) {
        // Nothing reads what the kernel still writes.
        self.word(TAIL).store(self.word(HEAD).load(Relaxed), Relaxed);
        // SAFETY: mapped with this size, and no reference outlives this. The call fails only for
        // addresses that are none.
        let _ = unsafe { munmap(self.base.cast(), (1 + PAGES) * self.page) };
    }
}

/// The samples in a stream of records. A record that is cut off or has no size ends it.
fn samples(mut records: &[u8], mut see: impl FnMut(u64)) {
    while let Some((kind, size)) = header(records) {
        let Some((record, rest)) = records.split_at_checked(size).filter(|_| size >= HEADER) else {
            return;
        };
        let pointer = record[HEADER..].first_chunk().filter(|_| kind == SAMPLE);
        pointer.into_iter().for_each(|pointer| see(u64::from_ne_bytes(*pointer)));
        records = rest;
    }
}

fn header(records: &[u8]) -> Option<(u32, usize)> {
    let kind = records.get(..4)?.try_into().ok().map(u32::from_ne_bytes)?;
    let size = records.get(6..HEADER)?.try_into().ok().map(u16::from_ne_bytes)?;
    Some((kind, size.into()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A record as the kernel writes it.
    fn record(kind: u32, words: &[u64]) -> Vec<u8> {
        let size = (HEADER + 8 * words.len()) as u16;
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(2u16.to_ne_bytes());
        bytes.extend(size.to_ne_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        bytes
    }

    fn seen(records: &[u8]) -> Vec<u64> {
        let mut seen = Vec::new();
        samples(records, |pointer| seen.push(pointer));
        seen
    }

    #[test]
    fn samples_are_read_in_order_and_other_records_are_skipped() {
        const LOST: u32 = 2;
        const THROTTLE: u32 = 5;
        let stream = [
            record(SAMPLE, &[0x4010]),
            record(LOST, &[7, 100]),
            record(SAMPLE, &[0x4020]),
            record(THROTTLE, &[1, 2, 3]),
            record(SAMPLE, &[0x7fff_0000]),
        ];
        assert_eq!(seen(&stream.concat()), [0x4010, 0x4020, 0x7fff_0000]);
    }

    #[test]
    fn a_record_that_is_cut_off_or_has_no_size_ends_the_stream() {
        let mut stream = [record(SAMPLE, &[1]), record(SAMPLE, &[2])].concat();
        stream.truncate(30);
        assert_eq!(seen(&stream), [1]);
        let empty = [record(SAMPLE, &[1]), vec![0; 16], record(SAMPLE, &[2])].concat();
        assert_eq!(seen(&empty), [1]);
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
