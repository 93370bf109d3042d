//! The present states of a program's threads, as its barrier reads them.
//!
//! A thread that waits for others needs to know whether they are on a CPU: then it is best to keep
//! spinning, otherwise it is in the way. The kernel knows, and finding out costs a system call for
//! each of them. cosched therefore has a program in the kernel write it down, at every switch and
//! every wake-up. The memory that it writes to is mapped into the user's program, which can only
//! read it.
//!
//! ```text
//! entry tid % ENTRIES, one word:
//!   bits  0..32  the thread, by its number in the PID namespace of cosched; 0: none was ever noted
//!   bits 32..48  the CPU that it is or was on
//!   bits 48..51  0 nothing known, 1 running, 2 preempted, 3 blocked, 4 woken
//!   bits 51..64  0
//! ```
//!
//! Threads do not register: membership decides which threads are noted. Two threads with numbers
//! that differ by a multiple of [`ENTRIES`] overwrite each other. A reader that looks for one and
//! finds the other has no information, which is always right. The words can be trusted only as long
//! as the page's rule says so and its heartbeat is fresh
//! ([`Page::believes_threads`](crate::Page::believes_threads)): a table that is no longer written
//! looks like any other.

use core::sync::atomic::{AtomicU64, Ordering};

/// How many threads have an entry of their own.
pub const ENTRIES: usize = 65_536;

/// All entries.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct ThreadTable {
    entries: [AtomicU64; ENTRIES],
}

impl ThreadTable {
    /// How long it is, bytes.
    pub const SIZE: usize = ENTRIES * size_of::<u64>();

    /// The index of the thread's entry.
    #[inline]
    pub const fn index(tid: u32) -> usize {
        tid as usize % ENTRIES
    }

    /// The entry of the thread, if there is one. Read relaxed, as memory that cannot be written has
    /// to be.
    #[inline]
    pub fn entry(&self, tid: u32) -> Option<ThreadEntry> {
        let word = self.entries.get(ThreadTable::index(tid))?.load(Ordering::Relaxed);
        Some(ThreadEntry::unpacked(word)).filter(|entry| entry.tid == tid && tid != 0)
    }

    /// The thread's state, as far as that is known.
    #[inline]
    pub fn state(&self, tid: u32) -> RunState {
        self.entry(tid).map_or(RunState::Unknown, |entry| entry.state)
    }

    /// Notes a thread's state: for a writer that works without the kernel's help, and for tests.
    pub fn note(&self, entry: ThreadEntry) {
        if let Some(word) = self.entries.get(ThreadTable::index(entry.tid)) {
            word.store(entry.packed(), Ordering::Relaxed);
        }
    }
}

/// The state of a thread with respect to CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunState {
    /// Nothing is known.
    #[default]
    Unknown,
    /// It is on a CPU.
    Running,
    /// It was preempted, or yielded, and waits for a CPU.
    Preempted,
    /// It waits for something else.
    Blocked,
    /// It was woken, and waits for a CPU: mostly not for long.
    Woken,
}

/// One word of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadEntry {
    /// The thread's number; 0: the entry belongs to no thread.
    pub tid: u32,
    /// The CPU that it is or was on.
    pub cpu: u16,
    /// The state of the thread.
    pub state: RunState,
}

impl ThreadEntry {
    /// The entry as a word of the table.
    #[inline]
    pub const fn packed(self) -> u64 {
        let state = match self.state {
            RunState::Unknown => 0,
            RunState::Running => 1,
            RunState::Preempted => 2,
            RunState::Blocked => 3,
            RunState::Woken => 4,
        };
        state << 48 | (self.cpu as u64) << 32 | self.tid as u64
    }

    /// The entry of a word in the table, whatever its value.
    #[inline]
    pub const fn unpacked(word: u64) -> ThreadEntry {
        let state = match word >> 48 & 7 {
            1 => RunState::Running,
            2 => RunState::Preempted,
            3 => RunState::Blocked,
            4 => RunState::Woken,
            _ => RunState::Unknown,
        };
        ThreadEntry { tid: word as u32, cpu: (word >> 32) as u16, state }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table without threads; too large for the stack of a thread of a test to take twice.
    static TABLE: ThreadTable = ThreadTable { entries: [const { AtomicU64::new(0) }; ENTRIES] };

    #[test]
    fn an_entry_is_read_back_and_follows_the_layout() {
        let entry = ThreadEntry { tid: 4_194_303, cpu: 65_535, state: RunState::Blocked };
        assert_eq!(ThreadEntry::unpacked(entry.packed()), entry);
        let word = ThreadEntry { tid: 7, cpu: 3, state: RunState::Preempted }.packed();
        assert_eq!(word, 2 << 48 | 3 << 32 | 7);
        for state in [
            RunState::Unknown,
            RunState::Running,
            RunState::Preempted,
            RunState::Blocked,
            RunState::Woken,
        ] {
            assert_eq!(
                ThreadEntry::unpacked(ThreadEntry { tid: 1, cpu: 0, state }.packed()).state,
                state
            );
        }
    }

    #[test]
    fn unknown_bits_change_nothing() {
        let entry = ThreadEntry { tid: 9, cpu: 2, state: RunState::Running };
        assert_eq!(ThreadEntry::unpacked(entry.packed() | !0 << 51), entry);
    }

    #[test]
    fn a_thread_with_a_taken_entry_has_an_unknown_state() {
        let far = 70_000 + ENTRIES as u32;
        TABLE.note(ThreadEntry { tid: 70_000, cpu: 1, state: RunState::Running });
        assert_eq!(TABLE.state(70_000), RunState::Running);
        assert_eq!(ThreadTable::index(far), ThreadTable::index(70_000));
        assert_eq!(TABLE.state(far), RunState::Unknown);
        TABLE.note(ThreadEntry { tid: far, cpu: 0, state: RunState::Blocked });
        assert_eq!(TABLE.state(70_000), RunState::Unknown);
        assert_eq!(TABLE.state(far), RunState::Blocked);
    }

    #[test]
    fn threads_without_number_or_entry_are_unknown() {
        assert_eq!((TABLE.entry(0), TABLE.entry(12)), (None, None));
    }

    #[test]
    fn the_table_is_as_long_as_its_entries() {
        assert_eq!(size_of::<ThreadTable>(), ThreadTable::SIZE);
        assert_eq!(ThreadTable::SIZE, 512 * 1024);
    }
}
