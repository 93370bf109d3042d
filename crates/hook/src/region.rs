//! Regions of OpenMP with a barrier of this library.
//!
//! The outermost region of a program gets one, if barriers are replaced when it begins. The thread
//! that begins it hands the runtime a body of this library, which every thread of the team runs.
//! That body notes in the thread which region it is, runs the program's body, and has all threads
//! wait at its end. The runtime's own barrier there cannot be replaced. When the first thread comes
//! to it, all have arrived.
//!
//! Barriers inside a region replace those of the runtime: all threads of a team pass the same ones,
//! so the runtime misses nothing. But its barriers also finish *tasks*, and threads that were
//! *cancelled* do not arrive. As soon as a thread makes a task, the region's barrier is shut for
//! that round: every thread of the team goes on to the runtime's barrier, one that waits already,
//! too. There all meet, the tasks are finished, and the next round is at this library's barrier
//! again. As soon as a thread cancels, the barrier is closed for the rest of the region. All
//! threads of a round are told the same (`barrier::protocol`). No thread therefore waits at one
//! barrier for a thread at the other.
//!
//! Regions inside regions are the runtime's. The level, which the runtime counts, tells whether a
//! thread is in one of them.

use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::num::NonZeroU64;
use core::ptr::null;
use std::thread_local;

use crate::barrier::{Passed, are_ours, pool};
use crate::link;
use crate::runtime::Function;

static TEAM_SIZE: Function = Function::named("omp_get_num_threads\0");
static LEVEL: Function = Function::named("omp_get_level\0");
static THREAD: Function = Function::named("omp_get_thread_num\0");

/// A function of OpenMP that answers a question about the calling thread.
///
/// # Safety
/// Calls are sound for an address that a runtime has under such a name, while it is loaded.
// SAFETY: only a type; it is what OpenMP declares for the names above.
type Query = unsafe extern "C" fn() -> c_int;

/// What the threads of a region share. It lives as long as the region, on the stack of its first
/// thread.
pub(crate) struct Team {
    /// An address in the library that the region belongs to.
    code: *const c_void,
    barrier: Option<OwnBarrier>,
}

/// A barrier of this library, and what has to be read in front of it.
#[derive(Clone, Copy)]
struct OwnBarrier {
    number: usize,
    team_size: Query,
    level: Query,
}

/// The region that a thread is in.
#[derive(Clone, Copy)]
struct CurrentRegion {
    /// The region; null: none that this library knows.
    team: *const Team,
    barrier: Option<TeamBarrier>,
}

/// A barrier at which a thread may wait for the others.
#[derive(Clone, Copy)]
pub(crate) struct TeamBarrier {
    number: usize,
    count: NonZeroU64,
    level: Query,
}

const NOWHERE: CurrentRegion = CurrentRegion { team: null(), barrier: None };

thread_local! {
    static STANDING: Cell<CurrentRegion> = const { Cell::new(NOWHERE) };
}

fn standing() -> CurrentRegion {
    // A thread that is ending is in no region.
    STANDING.try_with(Cell::get).unwrap_or(NOWHERE)
}

impl Team {
    /// For a region that begins now, with `code` (not null) as body or caller.
    pub(crate) fn begin(code: *const c_void) -> Team {
        link::passes();
        Team { code, barrier: OwnBarrier::begin(code) }
    }

    /// Whether its threads wait at a barrier of this library.
    pub(crate) fn is_ours(&self) -> bool {
        self.barrier.is_some()
    }

    /// What each thread of the region does.
    pub(crate) fn work(&self, body: impl FnOnce()) {
        let barrier = self.barrier.and_then(OwnBarrier::team_barrier);
        let before = standing();
        let _ = STANDING.try_with(|standing| standing.set(CurrentRegion { team: self, barrier }));
        body();
        if let Some(barrier) = barrier {
            barrier.pass();
        }
        let _ = STANDING.try_with(|standing| standing.set(before));
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        if let Some(own) = self.barrier {
            pool::give_back(own.number);
        }
    }
}

impl OwnBarrier {
    fn begin(code: *const c_void) -> Option<OwnBarrier> {
        if !are_ours() {
            return None;
        }
        let (team_size, level) = (TEAM_SIZE.of(code), LEVEL.of(code));
        if team_size == 0 || level == 0 {
            return None;
        }
        // SAFETY: neither address is 0: both are functions of the OpenMP standard, with this type.
        let (team_size, level, outside) = unsafe {
            let level = transmute::<usize, Query>(level);
            (transmute::<usize, Query>(team_size), level, level() == 0)
        };
        let number = if outside { pool::take(code as usize)? } else { return None };
        Some(OwnBarrier { number, team_size, level })
    }

    /// For a thread inside; `None`: it is the only one.
    fn team_barrier(self) -> Option<TeamBarrier> {
        // SAFETY: `begin` has found it: a function of the OpenMP standard, with this type.
        let size = unsafe { (self.team_size)() };
        let count = NonZeroU64::new(u64::try_from(size).ok()?).filter(|count| count.get() > 1)?;
        Some(TeamBarrier { number: self.number, count, level: self.level })
    }
}

impl TeamBarrier {
    /// Waits for the others. Returns whether all have arrived; false where the barrier was shut.
    pub(crate) fn pass(self) -> bool {
        pool::pass(self.number, self.count) != Passed::Shut
    }
}

/// The barrier for a thread that is in a known region, and in no other region inside it.
#[inline]
pub(crate) fn team_barrier() -> Option<TeamBarrier> {
    let barrier = standing().barrier?;
    // SAFETY: `OwnBarrier::begin` has found it: a function of the OpenMP standard, with this type.
    (unsafe { (barrier.level)() } == 1).then_some(barrier)
}

/// The threads of a region have passed a barrier of the runtime: the first of them counts it.
pub(crate) fn passed_runtime_barrier() {
    let code = code();
    if code.is_null() || !link::counts() {
        return;
    }
    let thread = THREAD.of(code);
    // SAFETY: a function of the OpenMP standard, with this type.
    if thread != 0 && unsafe { transmute::<usize, Query>(thread)() } == 0 {
        link::passes();
    }
}

/// An address in the library of the region that this thread is in; null: in no known region.
pub(crate) fn code() -> *const c_void {
    // SAFETY: null, or the team of a region that this thread has not left yet.
    unsafe { standing().team.as_ref() }.map_or(null(), |team| team.code)
}

/// The threads of this region meet at the runtime's barrier next.
pub(crate) fn stand_aside() {
    if let Some(barrier) = standing().barrier {
        pool::shut(barrier.number);
    }
}

/// The rest of this region's barriers are the runtime's.
pub(crate) fn leave() {
    if let Some(barrier) = standing().barrier {
        pool::close(barrier.number);
    }
}

/// An entry of a runtime that makes a task, or cancels: what that means for the barriers of the
/// region stands before its name. Its first argument lies in the calling
/// library. There may be fewer arguments than are passed on: those beyond are the caller's own
/// stack, and are not used.
macro_rules! aside {
    ($means:ident, $name:ident($($argument:ident)*)) => {
        /// Leaves the next barriers to the runtime, and calls its entry of this name.
        ///
        /// # Safety
        /// As the runtime has it for this name: the compiler makes the calls.
        #[allow(clippy::too_many_arguments)]
        // SAFETY: the name is the runtime's, which is passed every call; arguments and answer are
        // numbers and addresses.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(key: usize, $($argument: usize),*) -> usize {
            static REAL: Function = Function::named(concat!(stringify!($name), "\0"));
            // SAFETY: only a type; it is that of the function around it.
            type Entry = unsafe extern "C" fn(usize, $($argument: usize),*) -> usize;
            crate::region::$means();
            match REAL.of(key as *const c_void) {
                0 => REAL.is_lost(),
                // SAFETY: the runtime's own entry, with the arguments that were meant for it.
                real => unsafe { transmute::<usize, Entry>(real)(key, $($argument),*) },
            }
        }
    };
}

pub(crate) use aside;
