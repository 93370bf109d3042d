//! gcc's OpenMP: the entries that begin a parallel region.
//!
//! What the compiler makes of `#pragma omp parallel` is a call of one of these, with the number of
//! the `num_threads` clause, or 0 where there is none. Ours asks for as many threads as the runtime
//! would take then, and passes the grant on in that place. So nothing of the program's settings
//! changes: `omp_get_max_threads` and `omp_set_num_threads` say and do what they always did, and
//! are what is wanted.
//!
//! Left alone are: regions with a clause, which by the standard get exactly that many; regions
//! inside parallel regions; everything after a call of `omp_set_dynamic(0)`, by which a program
//! says that it counts on the numbers; and regions of a program whose executable has variables for
//! every thread (`may_be_thread_private`).
//!
//! The body that is passed on is ours, for every region: each thread so knows which region it is
//! in, and with that which runtime is meant by the entries that name no caller (`barriers`), and
//! whether it meets the others at a barrier of ours (`region`).

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

/// Whether the program has said that its numbers of threads are not to be changed.
static IS_FIXED: AtomicBool = AtomicBool::new(false);

/// How many threads a region without a clause gets, whose library has `code` in it; `None`: it is
/// left alone.
pub(crate) fn team(code: *const c_void) -> Option<c_int> {
    if !link::may_bind() || IS_FIXED.load(Relaxed) || may_be_thread_private(code) {
        return None;
    }
    let (max_threads, in_parallel) = (MAX_THREADS.of(code), IN_PARALLEL.of(code));
    if max_threads == 0 || in_parallel == 0 {
        return None;
    }
    // SAFETY: only a type; it is what OpenMP declares for both names.
    type Ask = unsafe extern "C" fn() -> c_int;
    // SAFETY: neither address is 0, so both are functions of the OpenMP standard, with these types.
    let wanted = unsafe {
        if transmute::<usize, Ask>(in_parallel)() != 0 {
            return None;
        }
        transmute::<usize, Ask>(max_threads)()
    };
    let granted = link::region(wanted);
    (granted < wanted).then_some(granted)
}

/// What is passed on in place of the number that the compiler gave.
fn number(body: Body, given: c_uint) -> c_uint {
    match given {
        0 => team(body as *const c_void).map_or(0, |granted| granted as c_uint),
        given => given,
    }
}

/// What the body that is ours is called with.
#[repr(C)]
struct Region {
    /// The runtime may look into the first word of what it is given: into the reductions of tasks.
    first: usize,
    body: Body,
    data: *mut c_void,
    team: Team,
}

/// The first word of most regions: the runtime does not look at it.
fn none(_: *const c_void) -> usize {
    0
}

/// The first word of a region with reductions of tasks: their address.
///
/// # Safety
/// It has to be what the compiler has made for such a region.
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
        /// Begins a region with the runtime's entry of this name, with as many threads as granted.
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
entry!(GOMP_parallel_loop_static(start: c_long, end: c_long, step: c_long, chunk: c_long, flags: c_uint));
entry!(GOMP_parallel_loop_dynamic(start: c_long, end: c_long, step: c_long, chunk: c_long, flags: c_uint));
entry!(GOMP_parallel_loop_guided(start: c_long, end: c_long, step: c_long, chunk: c_long, flags: c_uint));
entry!(GOMP_parallel_loop_runtime(start: c_long, end: c_long, step: c_long, flags: c_uint));
entry!(GOMP_parallel_loop_nonmonotonic_dynamic(start: c_long, end: c_long, step: c_long, chunk: c_long, flags: c_uint));
entry!(GOMP_parallel_loop_nonmonotonic_guided(start: c_long, end: c_long, step: c_long, chunk: c_long, flags: c_uint));
entry!(GOMP_parallel_loop_nonmonotonic_runtime(start: c_long, end: c_long, step: c_long, flags: c_uint));
entry!(GOMP_parallel_loop_maybe_nonmonotonic_runtime(start: c_long, end: c_long, step: c_long, flags: c_uint));

/// `omp_set_dynamic`, by its names for C and Fortran.
macro_rules! set_dynamic {
    ($name:ident($value:ident: $kind:ty) $read:expr) => {
        /// Notes whether the program's numbers of threads may be changed, and tells all runtimes.
        ///
        /// # Safety
        /// Where the argument is an address, as it is for Fortran, a number has to lie there.
        // SAFETY: the name and the type are those of the OpenMP standard, whose runtimes are passed
        // every call.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($value: $kind) {
            static REAL: OneFunction = OneFunction::named(concat!(stringify!($name), "\0"));
            // SAFETY: the argument is what the OpenMP standard says, so it may be read. `for_each`
            // gives functions of this name, which take it by the same type.
            unsafe {
                IS_FIXED.store($read == 0, Relaxed);
                // Of several runtimes that do not know of each other, which is meant cannot be
                // told: all.
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
