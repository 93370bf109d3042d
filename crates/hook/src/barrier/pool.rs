//! A fixed number of barriers for the whole process, in memory that costs nothing until it is used.
//!
//! The memory of a program's barrier belongs to the program, which may free it as soon as one
//! thread has passed. Other threads may still read then, so what they read is here. Where all
//! places are taken, a barrier is left to its runtime.

use core::cell::Cell;
use core::num::NonZeroU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicUsize};
use std::thread_local;

use super::kernel::HostKernel;
use super::protocol::{ArrivingThread, Barrier, Passed};
use crate::{link, sys};

/// How many barriers there are.
pub(super) const PLACES: usize = 64;

struct PoolBarrier {
    /// The address of the barrier that this one stands for; 0: it is free.
    owner: AtomicUsize,
    /// How many threads wait for each other here, where the owner cannot say it.
    count: AtomicU32,
    barrier: Barrier,
}

static POOL: [PoolBarrier; PLACES] = [const {
    PoolBarrier { owner: AtomicUsize::new(0), count: AtomicU32::new(0), barrier: Barrier::new() }
}; PLACES];

/// A thread remembers its slots at this many barriers, by their numbers.
const SLOTS: usize = 8;

/// What a thread knows of itself.
struct Me {
    /// Its thread number; 0: not read yet.
    tid: Cell<u32>,
    /// How many threads had read theirs before.
    order: Cell<usize>,
    slots: [Cell<usize>; SLOTS],
}

thread_local! {
    static ME: Me = const {
        Me { tid: Cell::new(0), order: Cell::new(0), slots: [const { Cell::new(0) }; SLOTS] }
    };
}

/// How many threads have come to a barrier.
static THREADS: AtomicUsize = AtomicUsize::new(0);

impl Me {
    fn tid(&self) -> u32 {
        if self.tid.get() == 0 {
            self.tid.set(sys::tid());
            self.order.set(THREADS.fetch_add(1, Relaxed));
        }
        self.tid.get()
    }

    fn slot(&self, number: usize) -> usize {
        self.slots.get(number % SLOTS).map_or(0, Cell::get)
    }

    fn enter(&self, number: usize, slot: usize) {
        if let Some(known) = self.slots.get(number % SLOTS) {
            known.set(slot);
        }
    }
}

/// Gives an owner (not 0) a barrier at which no thread has arrived, and returns its number. `None`:
/// all are taken.
pub(crate) fn take(owner: usize) -> Option<usize> {
    let (number, place) = POOL.iter().enumerate().find(|(_, place)| {
        place.owner.load(Relaxed) == 0
            && place.owner.compare_exchange(0, owner, Acquire, Relaxed).is_ok()
    })?;
    place.barrier.renew();
    Some(number)
}

/// Says how many threads wait at a barrier that no thread has used yet.
pub(super) fn expect(number: usize, count: u32) {
    if let Some(place) = POOL.get(number) {
        place.barrier.forget();
        place.count.store(count, Relaxed);
    }
}

/// How many threads wait for each other at a barrier, if it belongs to this owner.
pub(super) fn expected(number: usize, owner: usize) -> Option<NonZeroU64> {
    let place = POOL.get(number).filter(|place| place.owner.load(Relaxed) == owner)?;
    NonZeroU64::new(place.count.load(Relaxed).into())
}

/// The number of this owner's barrier.
pub(super) fn owned_by(owner: usize) -> Option<usize> {
    POOL.iter().position(|place| place.owner.load(Relaxed) == owner)
}

/// Frees a barrier. Threads that have passed may still be on their way out.
pub(crate) fn give_back(number: usize) {
    if let Some(place) = POOL.get(number) {
        place.owner.store(0, Release);
    }
}

/// Lets every thread of the present round pass.
pub(crate) fn shut(number: usize) {
    if let Some(place) = POOL.get(number) {
        place.barrier.shut(&HostKernel(None));
    }
}

/// Lets every thread pass from now on.
pub(crate) fn close(number: usize) {
    if let Some(place) = POOL.get(number) {
        place.barrier.close(&HostKernel(None));
    }
}

/// Arrives, and waits until `count` threads have arrived.
pub(crate) fn pass(number: usize, count: NonZeroU64) -> Passed {
    let Some(place) = POOL.get(number) else { return Passed::Shut };
    let known = ME.try_with(|me| (me.tid(), me.slot(number), me.order.get()));
    // A thread that is ending has no thread-local memory any more.
    let (tid, slot, order) = known.unwrap_or_else(|_| (sys::tid(), 0, 0));
    let (found, kernel) = (Cell::new(slot), HostKernel(link::tally(order)));
    let passed = place.barrier.pass(
        count,
        ArrivingThread { tid, slot: &found },
        super::wait_mode(),
        &kernel,
    );
    if passed == Passed::Last {
        link::passes();
    }
    if found.get() != slot {
        let _ = ME.try_with(|me| me.enter(number, found.get()));
    }
    passed
}

/// This thread has seen all threads of its program arrive at a barrier of the runtime.
pub(crate) fn saw_barrier() {
    let order = ME.try_with(|me| {
        me.tid();
        me.order.get()
    });
    if let Some(tally) = link::tally(order.unwrap_or_default()) {
        tally.saw();
    }
}

/// In the child of a fork: its thread has another number.
pub(crate) fn in_child() {
    let _ = ME.try_with(|me| me.tid.set(0));
}
