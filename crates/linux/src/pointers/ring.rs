//! The ring of memory into which the kernel writes samples, and what stands in it.
//!
//! A first page tells how far the kernel has written (`head`) and how far we have read (`tail`), both counted from the
//! beginning of time; the data lie behind it. Each record begins with its type and its size, so that what is not known can be
//! passed over. Of the kernel's records only samples matter here, with an instruction pointer and whose it is.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::Met;

/// Pages of data: a power of two. A page holds 170 samples.
const PAGES: usize = 2;
/// How many samples a ring holds.
pub(super) const ROOM: usize = PAGES * 170;
/// Where `data_head` and `data_tail` lie in `struct perf_event_mmap_page`, bytes.
const HEAD: usize = 1024;
const TAIL: usize = 1032;
/// `PERF_EVENT_IOC_PERIOD`.
const SET_PERIOD: libc::Ioctl = libc::_IOW::<u64>(b'$' as u32, 4);
/// `PERF_RECORD_SAMPLE`.
const SAMPLE: u32 = 9;
/// `struct perf_event_header`: type, misc, size.
const HEADER: usize = 8;

/// A ring that is mapped here, as long as this lives.
#[derive(Debug)]
pub(super) struct Ring {
    base: *mut u8,
    /// Size of the first page.
    page: usize,
    /// How far it was read.
    tail: u64,
    /// What was copied out of it.
    bytes: Vec<u8>,
    /// The event, which ends when this is closed.
    event: File,
}

// SAFETY: the mapping belongs to the process, not to a thread, and only the owner of this looks at it.
unsafe impl Send for Ring {}

impl Ring {
    /// Of an event that takes samples.
    pub(super) fn new(event: File) -> io::Result<Ring> {
        // SAFETY: asks for a constant of the system.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let page = usize::try_from(page).map_err(|_| io::Error::last_os_error())?;
        let (size, rights) = ((1 + PAGES) * page, ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: maps the event's own memory, of this size, wherever the kernel likes.
        let base = unsafe { mmap(ptr::null_mut(), size, rights, MapFlags::SHARED, &event, 0)? };
        Ok(Ring { base: base.cast(), page, tail: 0, bytes: Vec::new(), event })
    }

    /// Has samples taken after so much of what is counted, from the next one on.
    ///
    /// # Errors
    /// When the kernel does not do that.
    pub(super) fn take_each(&self, period: u64) -> io::Result<()> {
        // SAFETY: the kernel reads a number of 64 bits from a reference that outlives the call, and keeps no pointer to it.
        let done = unsafe { libc::ioctl(self.event.as_raw_fd(), SET_PERIOD, &raw const period) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Calls `see` with each sample that has come since the last time.
    pub(super) fn take(&mut self, see: impl FnMut(Met)) {
        let head = self.word(HEAD).load(Acquire);
        self.copy(head);
        samples(&self.bytes, see);
        self.tail = head;
        self.word(TAIL).store(head, Release);
    }

    /// Copies what lies between the tail and this head, which may go round the end of the ring.
    fn copy(&mut self, head: u64) {
        self.bytes.clear();
        let size = PAGES * self.page;
        let fresh = usize::try_from(head.wrapping_sub(self.tail)).unwrap_or(0).min(size);
        let start = (self.tail % size as u64) as usize;
        let first = fresh.min(size - start);
        for (from, length) in [(start, first), (0, fresh - first)] {
            // SAFETY: lies within the data of the mapping; the kernel writes nothing between tail and head.
            let part = unsafe {
                std::slice::from_raw_parts(self.base.add(self.page + from).cast_const(), length)
            };
            self.bytes.extend_from_slice(part);
        }
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: lies within the first page of the mapping, aligned to eight bytes; kernel and we use it as one word.
        unsafe { &*self.base.add(offset).cast::<AtomicU64>() }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // Nobody reads what the kernel still writes.
        self.word(TAIL).store(self.word(HEAD).load(Relaxed), Relaxed);
        // SAFETY: mapped with this size, and no reference outlives this. The call fails only for addresses that are none.
        let _ = unsafe { munmap(self.base.cast(), (1 + PAGES) * self.page) };
    }
}

/// The samples in a stream of records. What is cut off or has no size ends it.
fn samples(mut records: &[u8], mut see: impl FnMut(Met)) {
    while let Some((kind, size)) = header(records) {
        let Some((record, rest)) = records.split_at_checked(size).filter(|_| size >= HEADER) else {
            return;
        };
        if let Some(met) = met(&record[HEADER..]).filter(|_| kind == SAMPLE) {
            see(met);
        }
        records = rest;
    }
}

/// What stands in a sample.
fn met(body: &[u8]) -> Option<Met> {
    let (pointer, rest) = body.split_first_chunk()?;
    let process = *rest.first_chunk()?;
    Some(Met { pointer: u64::from_ne_bytes(*pointer), process: i32::from_ne_bytes(process) })
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
        samples(records, |met| seen.push(met.pointer));
        seen
    }

    #[test]
    fn samples_are_told_in_order_and_what_else_the_kernel_says_is_passed_over() {
        const LOST: u32 = 2;
        const THROTTLE: u32 = 5;
        let stream = [
            record(SAMPLE, &[0x4010, 5]),
            record(LOST, &[7, 100]),
            record(SAMPLE, &[0x4020, 5]),
            record(THROTTLE, &[1, 2, 3]),
            record(SAMPLE, &[0x7fff_0000, 5]),
        ];
        assert_eq!(seen(&stream.concat()), [0x4010, 0x4020, 0x7fff_0000]);
    }

    #[test]
    fn a_record_that_is_cut_off_or_has_no_size_ends_the_stream() {
        let mut stream = [record(SAMPLE, &[1, 5]), record(SAMPLE, &[2, 5])].concat();
        stream.truncate(46);
        assert_eq!(seen(&stream), [1]);
        let empty = [record(SAMPLE, &[1, 5]), vec![0; 16], record(SAMPLE, &[2, 5])].concat();
        assert_eq!(seen(&empty), [1]);
    }

    #[test]
    fn a_sample_tells_whose_it_is() {
        let mut whose = Vec::new();
        samples(&record(SAMPLE, &[1, 7 << 32 | 5]), |met| whose.push(met.process));
        assert_eq!(whose, [5], "of thread 7");
    }

    proptest! {
        #[test]
        fn no_stream_of_bytes_makes_it_fail(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            seen(&bytes);
        }
    }
}
