//! The time donating barrier: waiting threads that know which threads they wait for.
//!
//! A program with frequent barriers often runs badly together with another program. The first
//! thread to arrive waits for a thread that has lost its CPU, on a CPU that this thread could use.
//! Tidon (Wu, Peng, Jin: Time Donating Barrier for efficient task scheduling in competitive
//! multicore systems, 2015) lets the waiters hand over their time, which takes a modified kernel.
//! Here the kernel is a stock one. cosched has it write down what each thread does
//! ([`cosched_page::ThreadTable`]). The program's own barriers are replaced by one in which waiters
//! read that table.
//!
//! - [`protocol`]: which threads arrive, which are missing, and why no thread sleeps for ever;
//!   `tests/model.rs` checks it.
//! - [`wait_mode`](mod@wait_mode): what a waiter does. It is the one place for ideas about
//!   donating.
//! - [`wait`]: what a waiter did, and for how long.
//! - [`stack`]: whether to leave a CPU on which threads wait behind each other.
//! - [`kernel`]: what waiting needs of the machine.
//! - [`pool`]: a fixed number of barriers, so that nothing is allocated, and no program's memory is
//!   read after it may be freed.
//! - [`posix`]: `pthread_barrier_wait`. The barriers of OpenMP are in `region`, `gomp` and `kmp`.
//!
//! Without the table (no cosched, no BPF, a stale heartbeat) nothing is known of any thread. The
//! barrier then spins for about as long as a wake-up takes, and sleeps after that. The last thread
//! to arrive wakes the sleeping ones; cosched never does.

mod kernel;
pub(crate) mod pool;
mod posix;
mod protocol;
mod stack;
mod wait;
mod wait_mode;

use core::sync::atomic;
use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::Relaxed;

use self::wait_mode::WaitMode;
use crate::{link, sys};

pub(crate) use self::pool::in_child;
pub(crate) use self::protocol::Passed;

const NOT_LOOKED: u8 = 0;
const NONE: u8 = 1;
/// The value for the first wait mode; each other one has the next value.
const WAIT_MODES: u8 = 2;

/// The wait mode that the environment names: `COSCHED_BARRIER_MODE`, for comparisons only. With it,
/// barriers are replaced even without cosched.
static CHOSEN: AtomicU8 = AtomicU8::new(NOT_LOOKED);

/// Whether barriers that are made now are replaced by this library's.
pub(crate) fn are_ours() -> bool {
    chosen().is_some() || link::donates()
}

/// How a thread waits.
fn wait_mode() -> WaitMode {
    chosen().unwrap_or(WaitMode::Donate)
}

fn chosen() -> Option<WaitMode> {
    match CHOSEN.load(Relaxed) {
        NOT_LOOKED => look(),
        found => WaitMode::numbered(found.checked_sub(WAIT_MODES)?),
    }
}

#[cold]
fn look() -> Option<WaitMode> {
    let number = sys::variable(c"COSCHED_BARRIER_MODE").and_then(WaitMode::number);
    if number.is_some() {
        link::watch_forks();
        // Where cosched is there, it counts what threads do under every wait mode.
        link::page();
    }
    CHOSEN.store(number.map_or(NONE, |number| WAIT_MODES.saturating_add(number)), Relaxed);
    number.and_then(WaitMode::numbered)
}
