//! LLVM's OpenMP (and Intel's, which is the same): the entry that begins a parallel region.
//!
//! `__kmpc_fork_call` has no argument for the thread count: where there is a clause, the compiler
//! calls `__kmpc_push_num_threads` before it. The replacement makes that call with the thread
//! limit, and leaves alone the region that follows such a call of the program. The runtime is found
//! by the description of the place in the source (`location`), which lies in the calling library.
//! Everything else is as with `gomp`.
//!
//! The entry takes any number of arguments, one for each variable that the region uses, and all are
//! addresses. They are passed on as they are on the stack, up to [`MOST`] of them. Those beyond the
//! last argument are the caller's own stack, and are not used.
//!
//! Where the region's threads wait at a barrier of this library (`region`), the body that is passed
//! on is this library's, with one more argument, and `__kmpc_barrier` is that barrier. All entries
//! here name their caller.

use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::mem::transmute;
use std::thread_local;

use crate::gomp::team;
use crate::region::{Team, aside, team_barrier};
use crate::runtime::Function;

/// The largest number of variables of a region.
const MOST: c_int = 64;

thread_local! {
    /// Whether the next region of this thread has a clause.
    static HAS_CLAUSE: Cell<bool> = const { Cell::new(false) };
}

static PUSH: Function = Function::named("__kmpc_push_num_threads\0");
static THREAD_NUMBER: Function = Function::named("__kmpc_global_thread_num\0");

/// The entry of the runtime that sets the number of threads of the next region.
///
/// # Safety
/// Calls are sound for an address that the runtime has under that name, while it is loaded, and
/// with the location of a call.
// SAFETY: only a type; it is that of LLVM's runtime for `__kmpc_push_num_threads`.
type Push = unsafe extern "C" fn(*const c_void, c_int, c_int);

/// Notes that the next region of this thread has a clause, and passes the number on.
///
/// # Safety
/// As LLVM's runtime has it: `location` describes the place of the call.
// SAFETY: the name and the types are those of LLVM's runtime, which is passed every call.
#[unsafe(no_mangle)]
unsafe extern "C" fn __kmpc_push_num_threads(
    location: *const c_void,
    thread: c_int,
    threads: c_int,
) {
    // A thread on its way out begins no region.
    let _ = HAS_CLAUSE.try_with(|clause| clause.set(true));
    match PUSH.of(location) {
        0 => PUSH.is_lost(),
        // SAFETY: the runtime's own entry, with the arguments that were meant for it.
        push => unsafe { transmute::<usize, Push>(push)(location, thread, threads) },
    }
}

/// Begins a region with a false condition, which begins here instead of at the entry below. Its
/// clause, if it has one, is not that of the region that follows.
///
/// # Safety
/// As LLVM's runtime has it: `location` describes the place of the call.
// SAFETY: the name and the types are those of LLVM's runtime, which is passed every call.
#[unsafe(no_mangle)]
unsafe extern "C" fn __kmpc_serialized_parallel(location: *const c_void, thread: c_int) {
    static REAL: Function = Function::named("__kmpc_serialized_parallel\0");
    // SAFETY: only a type; it is that of the function around it.
    type Entry = unsafe extern "C" fn(*const c_void, c_int);
    let _ = HAS_CLAUSE.try_with(|clause| clause.set(false));
    match REAL.of(location) {
        0 => REAL.is_lost(),
        // SAFETY: the runtime's own entry, with the arguments that were meant for it.
        real => unsafe { transmute::<usize, Entry>(real)(location, thread) },
    }
}

/// Passes the thread limit of the next region to the runtime, if this library decides it.
fn set_thread_limit(location: *const c_void, body: *const c_void) {
    if HAS_CLAUSE.try_with(|clause| clause.replace(false)).unwrap_or(true) {
        return;
    }
    let Some(allowed) = team(body) else { return };
    let (push, number) = (PUSH.of(location), THREAD_NUMBER.of(location));
    if push == 0 || number == 0 {
        return;
    }
    // SAFETY: only a type; it is that of LLVM's runtime for `__kmpc_global_thread_num`.
    type Number = unsafe extern "C" fn(*const c_void) -> c_int;
    // SAFETY: entries of the runtime, with the types of its interface; the location is the caller's
    // own.
    unsafe {
        let thread = transmute::<usize, Number>(number)(location);
        transmute::<usize, Push>(push)(location, thread, allowed);
    }
}

/// The argument of the bodies of this library.
struct Region {
    body: *const c_void,
    team: Team,
}

/// The entry with this many addresses, and the bodies of this library.
macro_rules! fork_call {
    ($($few:ident)* ; $($many:ident)*) => {
        /// Begins a region with the runtime's entry, within the thread limit.
        ///
        /// # Safety
        /// As LLVM's runtime has it: `body` takes `count` addresses, which follow it.
        #[allow(clippy::too_many_arguments)]
        // SAFETY: the name and the types are those of LLVM's runtime, which is passed every call.
        // What the caller has not given is passed on, and not used.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn __kmpc_fork_call(
            location: *const c_void, count: c_int, body: *const c_void,
            $($few: usize,)* $($many: usize),*
        ) {
            static REAL: Function = Function::named("__kmpc_fork_call\0");
            // SAFETY: only a type; it is that of LLVM's runtime for `__kmpc_fork_call`.
            type Entry = unsafe extern "C" fn(*const c_void, c_int, *const c_void, ...);
            let real = REAL.of(location);
            if real == 0 {
                REAL.is_lost();
            }
            if count > MOST {
                REAL.cannot_be_served(b"its region uses more than 64 variables");
            }
            set_thread_limit(location, body);
            let region = Region { body, team: Team::begin(body) };
            // SAFETY: the runtime's own entry, with the arguments that were meant for it, and with
            // some that it does not look at. The region lives until the runtime says that it is
            // over.
            unsafe {
                let real = transmute::<usize, Entry>(real);
                let (ours, more) = (&raw const region, count + 1);
                match (region.team.is_ours(), count) {
                    (false, ..=12) => real(location, count, body, $($few),*),
                    (false, _) => real(location, count, body, $($few,)* $($many),*),
                    (true, ..=12) => real(
                        location, more, inside_few as *const c_void, ours, $($few),*
                    ),
                    (true, _) => real(
                        location, more, inside_many as *const c_void, ours, $($few,)* $($many),*
                    ),
                }
            }
        }

        inside!(inside_few: $($few)*);
        inside!(inside_many: $($few)* $($many)*);
    };
}

/// A body that every thread of a region runs, with at most this many addresses.
macro_rules! inside {
    ($name:ident: $($argument:ident)*) => {
        /// Runs the program's body in a thread of the region.
        ///
        /// # Safety
        /// `region` has to be a [`Region`] that lives, and the rest the arguments of its body.
        #[allow(clippy::too_many_arguments)]
        unsafe extern "C" fn $name(
            thread: *mut c_int, bound: *mut c_int, region: *const Region, $($argument: usize),*
        ) {
            // SAFETY: only a type; the body takes these addresses, or fewer.
            type Body = unsafe extern "C" fn(*mut c_int, *mut c_int, $($argument: usize),*);
            // SAFETY: the entry has passed the region along, which lives. The program's body gets
            // what was meant for it, and what it does not look at.
            unsafe {
                let region = &*region;
                let body = transmute::<*const c_void, Body>(region.body);
                region.team.work(|| body(thread, bound, $($argument),*));
            }
        }
    };
}

fork_call! {
    a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 ;
    b0 b1 b2 b3 b4 b5 b6 b7 b8 b9 b10 b11 b12 b13 b14 b15 b16 b17 b18 b19 b20 b21 b22 b23 b24 b25
    b26 b27 b28 b29 b30 b31 b32 b33 b34 b35 b36 b37 b38
    b39 b40 b41 b42 b43 b44 b45 b46 b47 b48 b49 b50 b51
}

/// Has the threads of a region wait for each other, at a barrier of this library or at the
/// runtime's.
///
/// # Safety
/// As LLVM's runtime has it: `location` describes the place, and every thread of the team calls it.
// SAFETY: the name and the types are those of LLVM's runtime, which is passed every call that is
// not ours.
#[unsafe(no_mangle)]
unsafe extern "C" fn __kmpc_barrier(location: *const c_void, thread: c_int) {
    static REAL: Function = Function::named("__kmpc_barrier\0");
    // SAFETY: only a type; it is that of the function around it.
    type Entry = unsafe extern "C" fn(*const c_void, c_int);
    if team_barrier().is_some_and(|barrier| barrier.pass()) {
        return;
    }
    match REAL.of(location) {
        0 => REAL.is_lost(),
        // SAFETY: the runtime's own entry, with the arguments that were meant for it.
        real => unsafe { transmute::<usize, Entry>(real)(location, thread) },
    }
}

aside!(stand_aside, __kmpc_omp_task_alloc(a b c d e));
aside!(stand_aside, __kmpc_omp_target_task_alloc(a b c d e f));
aside!(leave, __kmpc_cancel(a b));
