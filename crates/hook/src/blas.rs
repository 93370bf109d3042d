//! OpenBLAS with threads of its own: the calls that it works on in parallel.
//!
//! It has no regions that could be stood in front of, but a number of threads that holds for the whole process. So ours stands
//! in front of the calls where programs spend their time: products and updates of matrices, and the solvers above them. The
//! first call that finds no other at work asks for as many threads as the program has set, sets the grant, and puts
//! the program's number back when the last call has ended. Between calls the number is the program's own: who reads or sets
//! it (`threadpoolctl`, say) finds nothing of us. A call that finds another at work takes the number as it is.
//!
//! An OpenBLAS that was built with OpenMP is left alone here: its number is OpenMP's.
//!
//! Which OpenBLAS a caller means cannot be told, as nothing that is passed lies in its library. The linker's next one is taken,
//! or where there is none (extension modules of Python bring their own) the first that was loaded. The builds that can
//! stand side by side in one process have other names for their functions, each of which is here.

use core::ffi::c_int;
use core::mem::transmute;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32};

use crate::link;
use crate::runtime::OneFunction;
use crate::sys;

/// Where its name stands in the paths of its libraries.
const PART: &[u8] = b"blas";

type Get = unsafe extern "C" fn() -> c_int;
type Set = unsafe extern "C" fn(c_int);

/// One build of OpenBLAS.
struct Build {
    get: OneFunction,
    set: OneFunction,
    kind: OneFunction,
    /// Held for as long as the number is looked at or changed.
    changing: AtomicBool,
    /// How many calls are at work that were counted.
    at_work: AtomicU32,
    /// The program's own number, while another is set; and that.
    own: AtomicI32,
    given: AtomicI32,
}

impl Build {
    const fn named(get: &'static str, set: &'static str, kind: &'static str) -> Build {
        Build {
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

    /// What reads the number and what sets it, where this OpenBLAS has threads of its own.
    fn functions(&'static self) -> Option<(Get, Set)> {
        const THREADS: c_int = 1;
        let [get, set, kind] = [&self.get, &self.set, &self.kind].map(|f| f.of_anybody(PART));
        if get == 0 || set == 0 || kind == 0 {
            return None;
        }
        // SAFETY: functions of OpenBLAS, with these types.
        unsafe {
            let kind = transmute::<usize, Get>(kind)();
            (kind == THREADS)
                .then_some((transmute::<usize, Get>(get), transmute::<usize, Set>(set)))
        }
    }

    /// A call begins.
    fn begin(&'static self) -> Option<Call> {
        if !link::may_bind() {
            return None;
        }
        let (get, set) = self.functions()?;
        if !self.try_change() {
            return None;
        }
        if self.at_work.load(Relaxed) == 0 {
            // SAFETY: as above.
            unsafe {
                let own = get();
                let granted = link::region(own);
                self.own.store(own, Relaxed);
                self.given.store(granted, Relaxed);
                if granted != own {
                    set(granted);
                }
            }
        }
        self.at_work.fetch_add(1, Relaxed);
        self.changing.store(false, Release);
        Some(Call { build: self, get, set })
    }
}

/// A call that is at work.
struct Call {
    build: &'static Build,
    get: Get,
    set: Set,
}

impl Drop for Call {
    fn drop(&mut self) {
        while !self.build.try_change() {
            sys::give_way();
        }
        if self.build.at_work.fetch_sub(1, Relaxed) == 1 {
            let (own, given) = (self.build.own.load(Relaxed), self.build.given.load(Relaxed));
            // SAFETY: as in `functions`. A number that the program has set meanwhile stays.
            unsafe {
                if own != given && (self.get)() == given {
                    (self.set)(own);
                }
            }
        }
        self.build.changing.store(false, Release);
    }
}

static PLAIN: Build = Build::named(
    "openblas_get_num_threads\0",
    "openblas_set_num_threads\0",
    "openblas_get_parallel\0",
);
static WIDE: Build = Build::named(
    "openblas_get_num_threads64_\0",
    "openblas_set_num_threads64_\0",
    "openblas_get_parallel64_\0",
);
static SCIPY: Build = Build::named(
    "scipy_openblas_get_num_threads\0",
    "scipy_openblas_set_num_threads\0",
    "scipy_openblas_get_parallel\0",
);
static SCIPY_WIDE: Build = Build::named(
    "scipy_openblas_get_num_threads64_\0",
    "scipy_openblas_set_num_threads64_\0",
    "scipy_openblas_get_parallel64_\0",
);

/// One function of one build. Whole numbers have 32 or 64 bits, in registers or places as wide as an address either way;
/// what lies in the upper half of narrower ones is passed on as it is.
macro_rules! call {
    ($name:ident $build:ident ($($argument:ident: $kind:ty),*)) => {
        #[allow(clippy::too_many_arguments)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $kind),*) {
            static REAL: OneFunction = OneFunction::named(concat!(stringify!($name), "\0"));
            type Entry = unsafe extern "C" fn($($kind),*);
            let real = REAL.called(PART);
            let _call = $build.begin();
            // SAFETY: the library's own function, with the arguments that were meant for it.
            unsafe { transmute::<usize, Entry>(real)($($argument),*) }
        }
    };
}

/// A function by its names in all builds.
macro_rules! calls {
    ($($plain:ident $wide:ident $scipy:ident $scipy_wide:ident $arguments:tt;)*) => {$(
        call!($plain PLAIN $arguments);
        call!($wide WIDE $arguments);
        call!($scipy SCIPY $arguments);
        call!($scipy_wide SCIPY_WIDE $arguments);
    )*};
}

// C: scalars by value where they are real, else by address.
calls! {
    cblas_sgemm cblas_sgemm64_ scipy_cblas_sgemm scipy_cblas_sgemm64_
        (order: usize, ta: usize, tb: usize, m: usize, n: usize, k: usize, alpha: f32, a: usize, lda: usize,
         b: usize, ldb: usize, beta: f32, c: usize, ldc: usize);
    cblas_dgemm cblas_dgemm64_ scipy_cblas_dgemm scipy_cblas_dgemm64_
        (order: usize, ta: usize, tb: usize, m: usize, n: usize, k: usize, alpha: f64, a: usize, lda: usize,
         b: usize, ldb: usize, beta: f64, c: usize, ldc: usize);
    cblas_cgemm cblas_cgemm64_ scipy_cblas_cgemm scipy_cblas_cgemm64_
        (order: usize, ta: usize, tb: usize, m: usize, n: usize, k: usize, alpha: usize, a: usize, lda: usize,
         b: usize, ldb: usize, beta: usize, c: usize, ldc: usize);
    cblas_zgemm cblas_zgemm64_ scipy_cblas_zgemm scipy_cblas_zgemm64_
        (order: usize, ta: usize, tb: usize, m: usize, n: usize, k: usize, alpha: usize, a: usize, lda: usize,
         b: usize, ldb: usize, beta: usize, c: usize, ldc: usize);
    cblas_ssyrk cblas_ssyrk64_ scipy_cblas_ssyrk scipy_cblas_ssyrk64_
        (order: usize, uplo: usize, t: usize, n: usize, k: usize, alpha: f32, a: usize, lda: usize, beta: f32,
         c: usize, ldc: usize);
    cblas_dsyrk cblas_dsyrk64_ scipy_cblas_dsyrk scipy_cblas_dsyrk64_
        (order: usize, uplo: usize, t: usize, n: usize, k: usize, alpha: f64, a: usize, lda: usize, beta: f64,
         c: usize, ldc: usize);
    cblas_sgemv cblas_sgemv64_ scipy_cblas_sgemv scipy_cblas_sgemv64_
        (order: usize, t: usize, m: usize, n: usize, alpha: f32, a: usize, lda: usize, x: usize, incx: usize,
         beta: f32, y: usize, incy: usize);
    cblas_dgemv cblas_dgemv64_ scipy_cblas_dgemv scipy_cblas_dgemv64_
        (order: usize, t: usize, m: usize, n: usize, alpha: f64, a: usize, lda: usize, x: usize, incx: usize,
         beta: f64, y: usize, incy: usize);
}

// Fortran: everything by address, and the lengths of texts at the end.
calls! {
    sgemm_ sgemm_64_ scipy_sgemm_ scipy_sgemm_64_
        (ta: usize, tb: usize, m: usize, n: usize, k: usize, alpha: usize, a: usize, lda: usize, b: usize,
         ldb: usize, beta: usize, c: usize, ldc: usize, la: usize, lb: usize);
    dgemm_ dgemm_64_ scipy_dgemm_ scipy_dgemm_64_
        (ta: usize, tb: usize, m: usize, n: usize, k: usize, alpha: usize, a: usize, lda: usize, b: usize,
         ldb: usize, beta: usize, c: usize, ldc: usize, la: usize, lb: usize);
    cgemm_ cgemm_64_ scipy_cgemm_ scipy_cgemm_64_
        (ta: usize, tb: usize, m: usize, n: usize, k: usize, alpha: usize, a: usize, lda: usize, b: usize,
         ldb: usize, beta: usize, c: usize, ldc: usize, la: usize, lb: usize);
    zgemm_ zgemm_64_ scipy_zgemm_ scipy_zgemm_64_
        (ta: usize, tb: usize, m: usize, n: usize, k: usize, alpha: usize, a: usize, lda: usize, b: usize,
         ldb: usize, beta: usize, c: usize, ldc: usize, la: usize, lb: usize);
    sgetrf_ sgetrf_64_ scipy_sgetrf_ scipy_sgetrf_64_
        (m: usize, n: usize, a: usize, lda: usize, pivots: usize, info: usize);
    dgetrf_ dgetrf_64_ scipy_dgetrf_ scipy_dgetrf_64_
        (m: usize, n: usize, a: usize, lda: usize, pivots: usize, info: usize);
    spotrf_ spotrf_64_ scipy_spotrf_ scipy_spotrf_64_
        (uplo: usize, n: usize, a: usize, lda: usize, info: usize, length: usize);
    dpotrf_ dpotrf_64_ scipy_dpotrf_ scipy_dpotrf_64_
        (uplo: usize, n: usize, a: usize, lda: usize, info: usize, length: usize);
    sgesv_ sgesv_64_ scipy_sgesv_ scipy_sgesv_64_
        (n: usize, nrhs: usize, a: usize, lda: usize, pivots: usize, b: usize, ldb: usize, info: usize);
    dgesv_ dgesv_64_ scipy_dgesv_ scipy_dgesv_64_
        (n: usize, nrhs: usize, a: usize, lda: usize, pivots: usize, b: usize, ldb: usize, info: usize);
}
