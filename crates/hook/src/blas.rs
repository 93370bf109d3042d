//! OpenBLAS with its own threads: the calls that it executes in parallel.
//!
//! It has no regions that could be intercepted, only a thread count for the whole process. This
//! library therefore intercepts the calls in which programs spend their time: products and updates
//! of matrices, and the solvers above them. The first call that finds no other in progress requests
//! as many threads as the program has set, and sets its limit. The last call to end restores the
//! program's count. Between calls the count is the program's own, so a program that reads or sets
//! it (`threadpoolctl`, say) sees no change. A call that finds another in progress takes the count
//! as it is.
//!
//! An OpenBLAS that was built with OpenMP is left alone here: its count is OpenMP's.
//!
//! Which OpenBLAS a caller means cannot be known, as no argument lies in its library. The linker's
//! next one is taken or, where there is none (extension modules of Python bring their own), the
//! first that was loaded. The builds that can be in one process at the same time have different
//! names for their functions, each of which is here.

mod entries;

use core::ffi::c_int;
use core::mem::transmute;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32};

use crate::link;
use crate::runtime::OneFunction;
use crate::sys;

/// The part of a library's path that shows that it is an OpenBLAS.
const PART: &[u8] = b"blas";

/// A function of OpenBLAS that returns a number of the library: its thread count, or how it was
/// built.
///
/// # Safety
/// Calls are sound for an address that OpenBLAS has under such a name, while it is loaded.
// SAFETY: only a type; it is what OpenBLAS declares for `openblas_get_num_threads` and
// `openblas_get_parallel`.
type Get = unsafe extern "C" fn() -> c_int;
/// The function of OpenBLAS that sets how many threads it has.
///
/// # Safety
/// Calls are sound for an address that OpenBLAS has under that name, while it is loaded.
// SAFETY: only a type; it is what OpenBLAS declares for `openblas_set_num_threads`.
type SetThreads = unsafe extern "C" fn(c_int);

/// One build of OpenBLAS.
struct BlasBuild {
    get: OneFunction,
    set: OneFunction,
    kind: OneFunction,
    /// Held while the thread count is read or changed.
    changing: AtomicBool,
    /// How many counted calls are in progress.
    at_work: AtomicU32,
    /// The program's own thread count, while another is set; and that other one.
    own: AtomicI32,
    given: AtomicI32,
}

impl BlasBuild {
    const fn named(get: &'static str, set: &'static str, kind: &'static str) -> BlasBuild {
        BlasBuild {
            get: OneFunction::named(get),
            set: OneFunction::named(set),
            kind: OneFunction::named(kind),
            changing: AtomicBool::new(false),
            at_work: AtomicU32::new(0),
            own: AtomicI32::new(0),
            given: AtomicI32::new(0),
        }
    }

    fn try_change(&self) -> bool {
        self.changing.compare_exchange(false, true, Acquire, Relaxed).is_ok()
    }

    /// The functions that read and set the thread count, where this OpenBLAS has its own threads.
    fn functions(&'static self) -> Option<(Get, SetThreads)> {
        const THREADS: c_int = 1;
        let [get, set, kind] = [&self.get, &self.set, &self.kind].map(|f| f.of_anybody(PART));
        if get == 0 || set == 0 || kind == 0 {
            return None;
        }
        // SAFETY: none of the addresses is 0, so each is that of the function of OpenBLAS with this
        // name. The types are those that OpenBLAS declares for the names.
        unsafe {
            let kind = transmute::<usize, Get>(kind)();
            (kind == THREADS)
                .then_some((transmute::<usize, Get>(get), transmute::<usize, SetThreads>(set)))
        }
    }

    /// In the child of a fork: the calls in progress are the parent's.
    fn forget_calls(&self) {
        self.at_work.store(0, Relaxed);
        self.changing.store(false, Release);
    }

    /// Begins a call.
    fn begin(&'static self) -> Option<Call> {
        if !link::may_bind() {
            return None;
        }
        let (get, set) = self.functions()?;
        if !self.try_change() {
            return None;
        }
        if self.at_work.load(Relaxed) == 0 {
            link::passes();
            // SAFETY: both come from `functions`: functions of OpenBLAS with these types.
            unsafe {
                let (found, own) = (get(), self.own.load(Relaxed));
                // If our count is still set, a fork has cut off the call that was to restore the
                // program's.
                let is_ours = found == self.given.load(Relaxed) && found != own;
                let own = if is_ours { own } else { found };
                // One thread may be all that it wants inside the regions of another runtime.
                let allowed = if own > 1 { link::region(own) } else { own };
                self.own.store(own, Relaxed);
                self.given.store(allowed, Relaxed);
                if allowed != found {
                    set(allowed);
                }
            }
        }
        self.at_work.fetch_add(1, Relaxed);
        self.changing.store(false, Release);
        Some(Call { build: self, get, set })
    }
}

/// In the child of a fork.
pub(crate) fn in_child() {
    entries::BUILDS.iter().for_each(|build| build.forget_calls());
}

/// A call that is in progress.
struct Call {
    build: &'static BlasBuild,
    get: Get,
    set: SetThreads,
}

impl Drop for Call {
    fn drop(&mut self) {
        while !self.build.try_change() {
            sys::yield_cpu();
        }
        if self.build.at_work.fetch_sub(1, Relaxed) == 1 {
            let (own, given) = (self.build.own.load(Relaxed), self.build.given.load(Relaxed));
            // SAFETY: both come from `functions`: functions of OpenBLAS with these types.
            // A number that the program has set meanwhile stays.
            unsafe {
                if own != given && (self.get)() == given {
                    (self.set)(own);
                }
            }
            self.build.given.store(own, Relaxed);
        }
        self.build.changing.store(false, Release);
    }
}
