//! gcc's OpenMP: where the threads of a region wait, and what keeps them from a barrier
//! of this library.
//!
//! By the standard, a loop or a section that ends with a barrier is one that ends without, followed
//! by a barrier. Where barriers are replaced, the entry that does not wait is called, and the
//! barrier is that of `region`.
//!
//! None of these entries names its caller, and only those of tasks have an address in it. Each
//! thread knows its region. Outside known regions, the runtime is the one that the linker would
//! have found or, where there is none, the first that was loaded.

use core::ffi::c_void;
use core::mem::transmute;

use crate::region::{self, aside, leave};
use crate::runtime::{Function, OneFunction};

/// A function of the runtime that names no caller.
struct Unkeyed {
    of_region: Function,
    of_anybody: OneFunction,
}

impl Unkeyed {
    const fn named(name: &'static str) -> Unkeyed {
        Unkeyed { of_region: Function::named(name), of_anybody: OneFunction::named(name) }
    }

    /// Its address.
    fn real(&self) -> usize {
        let code = region::code();
        let found = if code.is_null() { 0 } else { self.of_region.of(code) };
        if found == 0 { self.of_anybody.called(b"gomp") } else { found }
    }

    /// Calls it. It has to be a function without arguments and result.
    fn call(&self) {
        // SAFETY: `real` is the address of a function of the runtime with this name. All that are
        // called this way take and answer nothing.
        unsafe { transmute::<usize, unsafe extern "C" fn()>(self.real())() };
    }
}

static BARRIER: Unkeyed = Unkeyed::named("GOMP_barrier\0");

/// Has the threads of a region wait for each other, at a barrier of this library or at the
/// runtime's.
///
/// # Safety
/// As gcc's runtime has it: every thread of the team has to call it.
// SAFETY: the name and the type are those of gcc's runtime, which is passed every call that is not
// ours.
#[unsafe(no_mangle)]
unsafe extern "C" fn GOMP_barrier() {
    if region::team_barrier().is_none_or(|barrier| !barrier.pass()) {
        BARRIER.call();
        region::passed_runtime_barrier();
    }
}

/// An entry at the end of shared work, by its names with and without a barrier.
macro_rules! end {
    ($waits:ident $goes_on:ident) => {
        /// Ends shared work, and has the threads wait, at a barrier of this library or at the
        /// runtime's.
        ///
        /// # Safety
        /// As gcc's runtime has it: every thread of the team has to call it.
        // SAFETY: the name and the type are those of gcc's runtime, which is passed every call that
        // is not ours.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $waits() {
            static REAL: Unkeyed = Unkeyed::named(concat!(stringify!($waits), "\0"));
            static GOES_ON: Unkeyed = Unkeyed::named(concat!(stringify!($goes_on), "\0"));
            match region::team_barrier() {
                None => {
                    REAL.call();
                    region::passed_runtime_barrier();
                }
                Some(barrier) => {
                    GOES_ON.call();
                    if !barrier.pass() {
                        BARRIER.call();
                        region::passed_runtime_barrier();
                    }
                }
            }
        }
    };
}

end!(GOMP_loop_end GOMP_loop_end_nowait);
end!(GOMP_sections_end GOMP_sections_end_nowait);

/// Cancels, or finds out whether that was done, by the runtime. The rest of the region's barriers
/// are the runtime's.
///
/// # Safety
/// As gcc's runtime has it: the compiler makes the calls.
// SAFETY: the name and the types are those of gcc's runtime, which is passed every call.
#[unsafe(no_mangle)]
unsafe extern "C" fn GOMP_cancel(which: usize, cancels: usize) -> usize {
    static REAL: Unkeyed = Unkeyed::named("GOMP_cancel\0");
    // SAFETY: only a type; a number and a truth value each take a register as wide as these.
    type Entry = unsafe extern "C" fn(usize, usize) -> usize;
    leave();
    // SAFETY: the runtime's own entry, with the arguments that were meant for it.
    unsafe { transmute::<usize, Entry>(REAL.real())(which, cancels) }
}

aside!(stand_aside, GOMP_task(a b c d e f g h i));
aside!(stand_aside, GOMP_taskloop(a b c d e f g h i j));
aside!(stand_aside, GOMP_taskloop_ull(a b c d e f g h i j));
