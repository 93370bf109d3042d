//! gcc's OpenMP: the entries that begin a parallel region.
//!
//! The compiler turns `#pragma omp parallel` into a call of one of these, with the number of the
//! `num_threads` clause, or 0 where there is none. The replacement requests as many threads as the
//! runtime would take, and passes the limit on in place of that number. The program's settings
//! stay: `omp_get_max_threads` and `omp_set_num_threads` work as before, and determine the request.
//!
//! These are left alone: regions with a clause, which by the standard get exactly that many
//! threads; regions inside parallel regions; everything after a call of `omp_set_dynamic(0)`, by
//! which a program says that it relies on the numbers; and regions of a program if its executable
//! has thread-local variables (`may_be_thread_private`).
//!
//! The runtime gets a body of this library for every region, so each thread knows its region. From
//! the region follows which runtime is meant by the entries that name no caller (`barriers`), and
//! whether the thread waits at a barrier of this library (`region`).

mod barriers;

use core::ffi::{c_int, c_long, c_uint, c_void};
use core::mem::transmute;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use crate::link;
use crate::region::Team;
use crate::runtime::{Function, OneFunction, may_be_thread_private};

/// The outlined body of a region.
///
/// # Safety
/// Calls are sound with the data that the compiler has passed along with the body.
// SAFETY: only a type; it is that of gcc's runtime for the body of a region.
type Body = unsafe extern "C" fn(*mut c_void);

static MAX_THREADS: Function = Function::named("omp_get_max_threads\0");
static IN_PARALLEL: Function = Function::named("omp_in_parallel\0");

/// Whether the program has said that its thread counts must not be changed.
static IS_FIXED: AtomicBool = AtomicBool::new(false);

/// How many threads a region without a clause gets in the library that contains `code`; `None`: it
/// is left alone.
pub(crate) fn team(code: *const c_void) -> Option<c_int> {
    if !link::may_bind() || IS_FIXED.load(Relaxed) || may_be_thread_private(code) {
        return None;
    }
    let (max_threads, in_parallel) = (MAX_THREADS.of(code), IN_PARALLEL.of(code));
    if max_threads == 0 || in_parallel == 0 {
        return None;
    }
    // SAFETY: only a type; it is what OpenMP declares for both names.
    type Query = unsafe extern "C" fn() -> c_int;
    // SAFETY: neither address is 0, so both are functions of the OpenMP standard, with these types.
    let requested = unsafe {
        if transmute::<usize, Query>(in_parallel)() != 0 {
            return None;
        }
        transmute::<usize, Query>(max_threads)()
    };
    let allowed = link::region(requested);
    (allowed < requested).then_some(allowed)
}

/// The number that is passed on in place of the one that the compiler gave.
fn number(body: Body, given: c_uint) -> c_uint {
    match given {
        0 => team(body as *const c_void).map_or(0, |allowed| allowed as c_uint),
        given => given,
    }
}

/// The argument of the body of this library.
#[repr(C)]
struct Region {
    /// The runtime may read the first word of its argument: the reductions of tasks.
    first: usize,
    body: Body,
    data: *mut c_void,
    team: Team,
}

/// The first word of most regions: the runtime does not read it.
fn none(_: *const c_void) -> usize {
    0
}

/// The first word of a region with reductions of tasks: their address.
///
/// # Safety
/// The pointer has to be what the compiler has made for such a region.
unsafe fn reductions(data: *const c_void) -> usize {
    // SAFETY: the compiler puts the address there.
    unsafe { *data.cast::<usize>() }
}

/// The body that every thread of a region runs.
///
/// # Safety
/// `region` has to be the address of a [`Region`] that lives until the body is over.
unsafe extern "C" fn inside(region: *mut c_void) {
    // SAFETY: `entry` has passed it along; it lives until the runtime says that the region is over.
    // The program's body gets what was meant for it.
    unsafe {
        let region = &*region.cast::<Region>();
        region.team.work(|| (region.body)(region.data));
    }
}

/// An entry `name(body, data, number of threads, ...)`.
macro_rules! entry {
    ($name:ident($($more:ident: $kind:ty),*) $(-> $answer:ty)?) => {
        entry!(none $name($($more: $kind),*) $(-> $answer)?);
    };
    ($first:ident $name:ident($($more:ident: $kind:ty),*) $(-> $answer:ty)?) => {
        /// Begins a region with the runtime's entry of this name, within the thread limit.
        ///
        /// # Safety
        /// As gcc's runtime has it: `body` is the region's body, and `data` what it is called with.
        // SAFETY: the name and the types are those of gcc's runtime, which is passed every call.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            body: Body, data: *mut c_void, threads: c_uint, $($more: $kind),*
        ) $(-> $answer)? {
            static REAL: Function = Function::named(concat!(stringify!($name), "\0"));
            // SAFETY: only a type; it is that of the function around it.
            type Entry = unsafe extern "C" fn(Body, *mut c_void, c_uint, $($kind),*) $(-> $answer)?;
            match REAL.of(body as *const c_void) {
                0 => REAL.is_lost(),
                // SAFETY: the runtime's own entry, with arguments of the types that it takes.
                // `inside` takes the address of `region`, which lives until the entry returns: the
                // region is over then.
                real => unsafe {
                    let threads = number(body, threads);
                    let team = Team::begin(body as *const c_void);
                    let mut region = Region { first: $first(data), body, data, team };
                    let data = (&raw mut region).cast();
                    transmute::<usize, Entry>(real)(inside, data, threads, $($more),*)
                },
            }
        }
    };
}

entry!(GOMP_parallel(flags: c_uint));
entry!(reductions GOMP_parallel_reductions(flags: c_uint) -> c_uint);
entry!(GOMP_parallel_sections(count: c_uint, flags: c_uint));
entry!(GOMP_parallel_loop_static(
    start: c_long, end: c_long, step: c_long, chunk: c_long, flags: c_uint
));
entry!(GOMP_parallel_loop_dynamic(
    start: c_long, end: c_long, step: c_long, chunk: c_long, flags: c_uint
));
entry!(GOMP_parallel_loop_guided(
    start: c_long, end: c_long, step: c_long, chunk: c_long, flags: c_uint
));
entry!(GOMP_parallel_loop_runtime(start: c_long, end: c_long, step: c_long, flags: c_uint));
entry!(GOMP_parallel_loop_nonmonotonic_dynamic(
    start: c_long, end: c_long, step: c_long, chunk: c_long, flags: c_uint
));
entry!(GOMP_parallel_loop_nonmonotonic_guided(
    start: c_long, end: c_long, step: c_long, chunk: c_long, flags: c_uint
));
entry!(GOMP_parallel_loop_nonmonotonic_runtime(
    start: c_long, end: c_long, step: c_long, flags: c_uint
));
entry!(GOMP_parallel_loop_maybe_nonmonotonic_runtime(
    start: c_long, end: c_long, step: c_long, flags: c_uint
));

/// `omp_set_dynamic`, by its names for C and Fortran.
macro_rules! set_dynamic {
    ($name:ident($value:ident: $kind:ty) $read:expr) => {
        /// Notes whether the program's thread counts may be changed, and passes the call on to all
        /// runtimes.
        ///
        /// # Safety
        /// Where the argument is an address, as it is for Fortran, a number has to lie there.
        // SAFETY: the name and the type are those of the OpenMP standard. Its runtimes are passed
        // every call.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($value: $kind) {
            static REAL: OneFunction = OneFunction::named(concat!(stringify!($name), "\0"));
            // SAFETY: the argument is what the OpenMP standard says, so it may be read. `for_each`
            // gives functions of this name, which take it by the same type.
            unsafe {
                IS_FIXED.store($read == 0, Relaxed);
                // With several runtimes that do not know of each other, it is unknown which one is
                // meant: all get the call.
                REAL.for_each(b"omp", |real| {
                    // SAFETY: `real` is a runtime's function of this name, so this is its type.
                    transmute::<usize, unsafe extern "C" fn($kind)>(real)($value)
                });
            }
        }
    };
}

set_dynamic!(omp_set_dynamic(value: c_int) value);
set_dynamic!(omp_set_dynamic_(value: *const c_int) *value);
set_dynamic!(omp_set_dynamic_8_(value: *const i64) *value);
