//! One simulated CPU: its thread, its queue, and how many threads of each program it has.

use crate::tid::Tid;

#[derive(Clone, Debug, Default)]
pub(crate) struct CpuState {
    pub(crate) current: Option<Tid>,
    pub(crate) queue: Vec<QueueKey>,
    /// The thread that ran last.
    pub(crate) last: Option<Tid>,
    pub(crate) unsettled: bool,
    pub(crate) unpriced: bool,
    pub(crate) ticking: bool,
    /// The time of the next interruption, if it is busy then; nanoseconds.
    pub(crate) interruption: u64,
    /// The tick at which a kernel thread takes it next; nanoseconds.
    pub(crate) housekeeping: u64,
    /// How many threads are on it or wait for it.
    pub(crate) load: u32,
    /// How many of them each program has, by its position in the world's list.
    pub(crate) shares: Vec<(u16, u32)>,
    /// What `keep_average` keeps.
    pub(crate) least: f64,
    pub(crate) average: f64,
}

impl CpuState {
    /// Removes a thread from the queue and keeps its order.
    pub(crate) fn remove(&mut self, tid: Tid) {
        if let Some(position) = self.queue.iter().position(|turn| turn.tid == tid) {
            self.queue.remove(position);
        }
    }

    /// How many threads of a program are on it or wait for it.
    pub(crate) fn threads_of(&self, program: u16) -> u32 {
        self.shares.iter().find(|(of, _)| *of == program).map_or(0, |(_, count)| *count)
    }

    /// A thread of a program was added, or has left.
    pub(crate) fn counts(&mut self, program: u16, comes: bool) {
        let place = self.shares.iter().position(|(of, _)| *of == program);
        match (place, comes) {
            (Some(place), true) => self.shares[place].1 += 1,
            (None, true) => self.shares.push((program, 1)),
            (Some(place), false) if self.shares[place].1 == 1 => _ = self.shares.swap_remove(place),
            (Some(place), false) => self.shares[place].1 -= 1,
            (None, false) => {}
        }
        self.load = if comes { self.load + 1 } else { self.load - 1 };
    }
}

/// The keys of the order of turns; copied into the queue while a thread is in one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct QueueKey {
    pub(crate) tid: Tid,
    /// The program, by its position in the world's list.
    pub(crate) program: u16,
    /// 0: shares the CPU with others; else a fixed priority.
    pub(crate) rank: u8,
    /// It sleeps already, and stays in the queue until it was behind (EEVDF's delayed dequeue).
    pub(crate) delayed: bool,
    /// Its program's group is idle: threads of other groups preempt it as soon as they wake.
    pub(crate) idle: bool,
    /// Its share, in units of a thread of nice value 0.
    pub(crate) weight: f64,
    /// Virtual runtime, in nanoseconds of a thread of weight 1; with a fixed priority, the number
    /// of its turn.
    pub(crate) vruntime: f64,
    /// Virtual deadline (EEVDF).
    pub(crate) deadline: f64,
    /// The length of a turn, nanoseconds.
    pub(crate) slice: f64,
}
