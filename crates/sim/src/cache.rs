//! What threads keep of a last-level cache while others run.
//!
//! How programs that run at the same time share a cache is a matter of [prices](crate::prices).
//! Here is what happens between turns. A thread that brings in lines where none are free evicts
//! others. Which ones is chance, so that a program that was away comes back to find as large a part
//! of its lines gone as was evicted of the whole cache. Away is a program of which no thread runs
//! at the cache: what it loses while it runs is in the prices already. Threads of one program evict
//! nothing of each other. Of a program that has no footprint, no line stays, and it evicts nothing.
//!
//! Until a thread has brought back what it has lost, it misses as without a cache. It works, but
//! more slowly, and what the cache saves it otherwise is what it brings in again. A refill
//! therefore costs one miss for each lost line, with its traffic on the buses. A thread is never
//! slower than without a cache, and never owes more than its lines. A thread that gains nothing by
//! a cache (it streams) pays nothing, but evicts others. What a thread brings in for the first time
//! is among the misses of its model and costs nothing more.

use cosched_core::Level;

use crate::prices::LINE;
use crate::thread::Tid;
use crate::world::World;

/// A last-level cache.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cache {
    /// Bytes that are taken.
    taken: f64,
    /// Bytes that were evicted since the beginning.
    evicted: f64,
}

/// A thread's lines in a cache; all in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lines {
    /// All that it can use.
    whole: f64,
    /// Of that, what is not there: it has never been, or others have evicted it.
    absent: f64,
    /// What others have evicted, and has not been paid for by misses.
    pub(crate) lost: f64,
    /// It is bringing back what it has lost.
    pub(crate) refills: bool,
    /// The cache that they are in.
    home: u16,
    /// How much others had evicted there in its program's absence when it was last looked.
    seen: f64,
}

/// Whether a program is at a cache.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Presence {
    /// Its threads that run there.
    running: u32,
    /// How much others had evicted when the last of them left.
    left: f64,
    /// How much others have evicted in all its absences before.
    missed: f64,
}

impl Lines {
    /// Of a thread that begins and can use so much.
    pub(crate) fn new(whole: f64) -> Lines {
        Lines { whole, absent: whole, ..Lines::default() }
    }

    /// So much is used, and so much of what was lost is back. Tells how much comes in.
    pub(crate) fn fill(&mut self, used: f64, back: f64) -> f64 {
        let comes = used.min(self.absent);
        self.absent -= comes;
        self.lost -= back.min(self.lost);
        comes
    }

    /// Others evict a part. Tells how much that is.
    fn lose(&mut self, part: f64) -> f64 {
        let goes = part * (self.whole - self.absent);
        self.absent += goes;
        self.lost = (self.lost + goes).min(self.whole);
        goes
    }
}

impl World {
    /// A thread has brought in what was not there.
    pub(crate) fn brings_in(&mut self, tid: Tid, bytes: f64) {
        let home = usize::from(self.threads[tid as usize].lines.home);
        let cache = &mut self.caches[home];
        let taken = cache.taken + bytes;
        cache.taken = taken.min(self.hardware.cache_bytes);
        let evicted = taken - cache.taken;
        cache.evicted += evicted;
        let program = self.program_of(tid);
        self.programs[program].evicted[home] += evicted;
    }

    /// What all but one program have evicted from a cache.
    fn evicted_by_others(&self, program: usize, cache: usize) -> f64 {
        self.caches[cache].evicted - self.programs[program].evicted[cache]
    }

    /// The same, while no thread of the program ran there.
    fn evicted_in_absence(&self, program: usize, cache: usize) -> f64 {
        let Presence { running, left, missed } = self.programs[program].presences[cache];
        match running {
            0 => missed + self.evicted_by_others(program, cache) - left,
            _ => missed,
        }
    }

    /// A thread leaves its CPU.
    pub(crate) fn leaves_lines(&mut self, tid: Tid) {
        let lines = &self.threads[tid as usize].lines;
        if lines.whole == 0.0 {
            return;
        }
        let (program, home) = (self.program_of(tid), usize::from(lines.home));
        let left = self.evicted_by_others(program, home);
        let presence = &mut self.programs[program].presences[home];
        presence.running -= 1;
        if presence.running == 0 {
            presence.left = left;
        }
        self.threads[tid as usize].lines.seen = presence.missed;
    }

    /// A thread runs at its cache.
    fn is_there(&mut self, tid: Tid) {
        let home = usize::from(self.threads[tid as usize].lines.home);
        let program = self.program_of(tid);
        let missed = self.evicted_in_absence(program, home);
        let presence = &mut self.programs[program].presences[home];
        (presence.running, presence.missed) = (presence.running + 1, missed);
    }

    fn loses_lines(&mut self, tid: Tid) {
        let home = usize::from(self.threads[tid as usize].lines.home);
        let evicted = self.evicted_in_absence(self.program_of(tid), home);
        let lines = &mut self.threads[tid as usize].lines;
        let part = ((evicted - lines.seen) / self.hardware.cache_bytes).clamp(0.0, 1.0);
        lines.lose(part);
        lines.seen = evicted;
    }

    /// A thread comes to a CPU: what of its lines is there?
    pub(crate) fn finds_lines(&mut self, tid: Tid, cpu: usize) {
        if self.threads[tid as usize].lines.whole == 0.0 {
            return;
        }
        let cache = self.shape.group(cpu, Level::Llc) as u16;
        self.loses_lines(tid);
        if self.threads[tid as usize].lines.home != cache {
            self.frees_lines(tid);
            self.threads[tid as usize].lines.home = cache;
        }
        self.is_there(tid);
        let lines = &mut self.threads[tid as usize].lines;
        lines.refills = lines.lost >= LINE;
    }

    /// The lines of a thread are not needed any more where they are: it has ended, or has gone to
    /// another cache.
    pub(crate) fn frees_lines(&mut self, tid: Tid) {
        self.loses_lines(tid);
        let lines = &mut self.threads[tid as usize].lines;
        let there = lines.lose(1.0);
        let cache = &mut self.caches[usize::from(lines.home)];
        cache.taken = (cache.taken - there).max(0.0);
    }
}
