//! A made-up ring: memory that a test writes into as the kernel does.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use super::{HEAD, HEADER, LOST, Ring, SAMPLE, TAIL};

/// A record as the kernel writes it.
pub(in crate::observe) fn record(kind: u32, words: &[u64]) -> Vec<u8> {
    let size = (HEADER + 8 * words.len()) as u16;
    let mut bytes = kind.to_ne_bytes().to_vec();
    bytes.extend(2u16.to_ne_bytes());
    bytes.extend(size.to_ne_bytes());
    bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
    bytes
}

/// The kernel's side of a ring.
#[derive(Debug)]
pub(in crate::observe) struct MadeUpWriter {
    memory: File,
    page: u64,
    size: u64,
    head: u64,
    /// The samples that have found no room since the last record of them.
    lost: u64,
    /// Where the head wakes the reader.
    wakes_at: u64,
}

impl MadeUpWriter {
    /// A ring with room for about so many bytes, and what writes into it.
    pub(in crate::observe) fn ring(bytes: usize) -> (MadeUpWriter, Ring) {
        let memory = File::from(memfd_create("ring", MemfdFlags::CLOEXEC).unwrap());
        ftruncate(&memory, 1 << 20).unwrap();
        let ring = Ring::new(memory.try_clone().unwrap(), bytes).unwrap();
        let (page, size) = (ring.page as u64, ring.size as u64);
        (MadeUpWriter { memory, page, size, head: 0, lost: 0, wakes_at: size / 2 }, ring)
    }

    /// Writes a sample of an event, if there is room. Returns whether the reader is woken.
    pub(in crate::observe) fn sample(&mut self, pointer: u64, event: u64) -> bool {
        let mut bytes = match self.lost {
            0 => Vec::new(),
            lost => record(LOST, &[event, lost]),
        };
        bytes.extend(record(SAMPLE, &[pointer, event]));
        let mut tail = [0; 8];
        self.memory.read_exact_at(&mut tail, TAIL as u64).unwrap();
        // As in the kernel, a ring is never filled to the last byte.
        if self.head - u64::from_ne_bytes(tail) + bytes.len() as u64 >= self.size {
            self.lost += 1;
            return false;
        }
        let start = self.head % self.size;
        let (first, rest) = bytes.split_at(bytes.len().min((self.size - start) as usize));
        self.memory.write_all_at(first, self.page + start).unwrap();
        self.memory.write_all_at(rest, self.page).unwrap();
        self.head += bytes.len() as u64;
        self.lost = 0;
        self.memory.write_all_at(&self.head.to_ne_bytes(), HEAD as u64).unwrap();
        let wakes = self.head > self.wakes_at;
        self.wakes_at += if wakes { self.size / 2 } else { 0 };
        wakes
    }
}
