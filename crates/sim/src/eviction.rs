//! Which lines threads keep in a last-level cache while others run.
//!
//! How programs that run at the same time share a cache is a matter of [prices](crate::prices).
//! This module is about the time between turns. A thread that brings in lines where none are free
//! evicts others, at random. A program that was away therefore has lost the same part of its lines
//! as was evicted of the whole cache. A program is away while none of its threads runs at the
//! cache: its losses while it runs are in the prices already. Threads of one program evict none of
//! each other's lines. A program without a footprint keeps no line, and evicts nothing.
//!
//! Until a thread has brought back its lost lines, it misses as without a cache. It works, but more
//! slowly, and the misses that the cache would otherwise save bring its lines in again. A refill
//! therefore costs one miss for each lost line, with its traffic on the buses. A thread is never
//! slower than without a cache, and never owes more than its lines. A thread that gains nothing
//! from a cache (it streams) pays nothing, but evicts others. Lines that a thread brings in for the
//! first time are among the misses of its model and cost nothing more.

use cosched_core::Level;

use crate::prices::LINE;
use crate::tid::Tid;
use crate::world::SimulatedWorld;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cache {
    /// Bytes in use.
    taken: f64,
    /// Bytes that were evicted since the beginning.
    evicted: f64,
}

/// A thread's lines in a cache; all in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CacheLines {
    /// All lines that it can use.
    whole: f64,
    /// The part that is not there: it has never been, or others have evicted it.
    absent: f64,
    /// The part that others have evicted and that it has not brought back by misses.
    pub(crate) lost: f64,
    /// It is bringing back its lost lines.
    pub(crate) refills: bool,
    /// The cache of the lines.
    home: u16,
    /// How much others had evicted there in its program's absence at the last check.
    seen: f64,
}

/// Whether a program is at a cache.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Presence {
    /// Its threads that run there.
    running: u32,
    /// How much others had evicted when the last of them left.
    left: f64,
    /// How much others have evicted in all its earlier absences.
    missed: f64,
}

impl CacheLines {
    /// The lines of a new thread that can use this much.
    pub(crate) fn new(whole: f64) -> CacheLines {
        CacheLines { whole, absent: whole, ..CacheLines::default() }
    }

    /// Adds `used` bytes of use and `back` lost bytes that are back. Returns how many bytes come
    /// in.
    pub(crate) fn fill(&mut self, used: f64, back: f64) -> f64 {
        let comes = used.min(self.absent);
        self.absent -= comes;
        self.lost -= back.min(self.lost);
        comes
    }

    /// Others evict a part. Returns how many bytes that is.
    fn lose(&mut self, part: f64) -> f64 {
        let goes = part * (self.whole - self.absent);
        self.absent += goes;
        self.lost = (self.lost + goes).min(self.whole);
        goes
    }
}

impl SimulatedWorld {
    /// A thread has brought in lines that were not there.
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

    /// How much all programs but one have evicted from a cache.
    fn evicted_by_others(&self, program: usize, cache: usize) -> f64 {
        self.caches[cache].evicted - self.programs[program].evicted[cache]
    }

    /// How much all programs but one have evicted while none of its threads ran there.
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

    /// A thread comes to a CPU: computes how many of its lines are there.
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

    /// Frees a thread's lines: it has ended, or has moved to another cache.
    pub(crate) fn frees_lines(&mut self, tid: Tid) {
        self.loses_lines(tid);
        let lines = &mut self.threads[tid as usize].lines;
        let there = lines.lose(1.0);
        let cache = &mut self.caches[usize::from(lines.home)];
        cache.taken = (cache.taken - there).max(0.0);
    }
}
