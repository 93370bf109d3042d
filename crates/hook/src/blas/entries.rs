//! The functions themselves, by their names in each build.
//!
//! Whole numbers have 32 or 64 bits, in registers or places as wide as an address either way; the
//! upper half of narrower ones is passed on unchanged. In C, real scalars come by value. In Fortran
//! everything comes by address, and the lengths of texts at the end.

use core::mem::transmute;

use super::{BlasBuild, PART};
use crate::runtime::OneFunction;

static PLAIN: BlasBuild = BlasBuild::named(
    "openblas_get_num_threads\0",
    "openblas_set_num_threads\0",
    "openblas_get_parallel\0",
);
static WIDE: BlasBuild = BlasBuild::named(
    "openblas_get_num_threads64_\0",
    "openblas_set_num_threads64_\0",
    "openblas_get_parallel64_\0",
);
static SCIPY: BlasBuild = BlasBuild::named(
    "scipy_openblas_get_num_threads\0",
    "scipy_openblas_set_num_threads\0",
    "scipy_openblas_get_parallel\0",
);
static SCIPY_WIDE: BlasBuild = BlasBuild::named(
    "scipy_openblas_get_num_threads64_\0",
    "scipy_openblas_set_num_threads64_\0",
    "scipy_openblas_get_parallel64_\0",
);

/// All builds.
pub(super) static BUILDS: [&BlasBuild; 4] = [&PLAIN, &WIDE, &SCIPY, &SCIPY_WIDE];

/// One function of one build.
macro_rules! call {
    ($name:ident $build:ident ($($argument:ident: $kind:ty),*) $(-> $answer:ty)?) => {
        /// Calls the library's function of this name, with the thread limit in effect meanwhile.
        ///
        /// # Safety
        /// As BLAS or LAPACK requires for this name: addresses among the arguments have to be
        /// valid.
        #[allow(clippy::too_many_arguments)]
        // SAFETY: the name and the types are those of BLAS, for which this is a whole replacement.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $kind),*) $(-> $answer)? {
            static REAL: OneFunction = OneFunction::named(concat!(stringify!($name), "\0"));
            // SAFETY: only a type; it is that of the function around it.
            type Entry = unsafe extern "C" fn($($kind),*) $(-> $answer)?;
            let real = REAL.called(PART);
            let _call = $build.begin();
            // SAFETY: `called` returns the library's own function of this name or ends the program.
            // It gets the arguments that were meant for it.
            unsafe { transmute::<usize, Entry>(real)($($argument),*) }
        }
    };
}

/// A function by its names in all builds: plain, with 64-bit numbers, and SciPy's of both.
macro_rules! calls {
    ($(
        $plain:ident $wide:ident $scipy:ident $scipy_wide:ident $arguments:tt $(-> $answer:ty)?;
    )*) => {$(
        call!($plain PLAIN $arguments $(-> $answer)?);
        call!($wide WIDE $arguments $(-> $answer)?);
        call!($scipy SCIPY $arguments $(-> $answer)?);
        call!($scipy_wide SCIPY_WIDE $arguments $(-> $answer)?);
    )*};
}

// For C.
calls! {
    cblas_sgemm cblas_sgemm64_ scipy_cblas_sgemm scipy_cblas_sgemm64_ (a0: usize, a1: usize,
        a2: usize, a3: usize, a4: usize, a5: usize, a6: f32, a7: usize, a8: usize, a9: usize,
        a10: usize, a11: f32, a12: usize, a13: usize);
    cblas_dgemm cblas_dgemm64_ scipy_cblas_dgemm scipy_cblas_dgemm64_ (a0: usize, a1: usize,
        a2: usize, a3: usize, a4: usize, a5: usize, a6: f64, a7: usize, a8: usize, a9: usize,
        a10: usize, a11: f64, a12: usize, a13: usize);
    cblas_cgemm cblas_cgemm64_ scipy_cblas_cgemm scipy_cblas_cgemm64_ (a0: usize, a1: usize,
        a2: usize, a3: usize, a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize,
        a10: usize, a11: usize, a12: usize, a13: usize);
    cblas_zgemm cblas_zgemm64_ scipy_cblas_zgemm scipy_cblas_zgemm64_ (a0: usize, a1: usize,
        a2: usize, a3: usize, a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize,
        a10: usize, a11: usize, a12: usize, a13: usize);
    cblas_ssymm cblas_ssymm64_ scipy_cblas_ssymm scipy_cblas_ssymm64_ (a0: usize, a1: usize,
        a2: usize, a3: usize, a4: usize, a5: f32, a6: usize, a7: usize, a8: usize, a9: usize,
        a10: f32, a11: usize, a12: usize);
    cblas_dsymm cblas_dsymm64_ scipy_cblas_dsymm scipy_cblas_dsymm64_ (a0: usize, a1: usize,
        a2: usize, a3: usize, a4: usize, a5: f64, a6: usize, a7: usize, a8: usize, a9: usize,
        a10: f64, a11: usize, a12: usize);
    cblas_ssyrk cblas_ssyrk64_ scipy_cblas_ssyrk scipy_cblas_ssyrk64_ (a0: usize, a1: usize,
        a2: usize, a3: usize, a4: usize, a5: f32, a6: usize, a7: usize, a8: f32, a9: usize,
        a10: usize);
    cblas_dsyrk cblas_dsyrk64_ scipy_cblas_dsyrk scipy_cblas_dsyrk64_ (a0: usize, a1: usize,
        a2: usize, a3: usize, a4: usize, a5: f64, a6: usize, a7: usize, a8: f64, a9: usize,
        a10: usize);
    cblas_strsm cblas_strsm64_ scipy_cblas_strsm scipy_cblas_strsm64_ (a0: usize, a1: usize,
        a2: usize, a3: usize, a4: usize, a5: usize, a6: usize, a7: f32, a8: usize, a9: usize,
        a10: usize, a11: usize);
    cblas_dtrsm cblas_dtrsm64_ scipy_cblas_dtrsm scipy_cblas_dtrsm64_ (a0: usize, a1: usize,
        a2: usize, a3: usize, a4: usize, a5: usize, a6: usize, a7: f64, a8: usize, a9: usize,
        a10: usize, a11: usize);
    cblas_sgemv cblas_sgemv64_ scipy_cblas_sgemv scipy_cblas_sgemv64_ (a0: usize, a1: usize,
        a2: usize, a3: usize, a4: f32, a5: usize, a6: usize, a7: usize, a8: usize, a9: f32,
        a10: usize, a11: usize);
    cblas_dgemv cblas_dgemv64_ scipy_cblas_dgemv scipy_cblas_dgemv64_ (a0: usize, a1: usize,
        a2: usize, a3: usize, a4: f64, a5: usize, a6: usize, a7: usize, a8: usize, a9: f64,
        a10: usize, a11: usize);
    cblas_sdot cblas_sdot64_ scipy_cblas_sdot scipy_cblas_sdot64_ (a0: usize, a1: usize, a2: usize,
        a3: usize, a4: usize) -> f32;
    cblas_ddot cblas_ddot64_ scipy_cblas_ddot scipy_cblas_ddot64_ (a0: usize, a1: usize, a2: usize,
        a3: usize, a4: usize) -> f64;
}

// For Fortran.
calls! {
    sgemm_ sgemm_64_ scipy_sgemm_ scipy_sgemm_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize, a11: usize,
        a12: usize, a13: usize, a14: usize);
    dgemm_ dgemm_64_ scipy_dgemm_ scipy_dgemm_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize, a11: usize,
        a12: usize, a13: usize, a14: usize);
    cgemm_ cgemm_64_ scipy_cgemm_ scipy_cgemm_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize, a11: usize,
        a12: usize, a13: usize, a14: usize);
    zgemm_ zgemm_64_ scipy_zgemm_ scipy_zgemm_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize, a11: usize,
        a12: usize, a13: usize, a14: usize);
    ssymm_ ssymm_64_ scipy_ssymm_ scipy_ssymm_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize, a11: usize,
        a12: usize, a13: usize);
    dsymm_ dsymm_64_ scipy_dsymm_ scipy_dsymm_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize, a11: usize,
        a12: usize, a13: usize);
    ssyrk_ ssyrk_64_ scipy_ssyrk_ scipy_ssyrk_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize, a11: usize);
    dsyrk_ dsyrk_64_ scipy_dsyrk_ scipy_dsyrk_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize, a11: usize);
    ssyr2k_ ssyr2k_64_ scipy_ssyr2k_ scipy_ssyr2k_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize, a11: usize,
        a12: usize, a13: usize);
    dsyr2k_ dsyr2k_64_ scipy_dsyr2k_ scipy_dsyr2k_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize, a11: usize,
        a12: usize, a13: usize);
    strsm_ strsm_64_ scipy_strsm_ scipy_strsm_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize, a11: usize,
        a12: usize, a13: usize, a14: usize);
    dtrsm_ dtrsm_64_ scipy_dtrsm_ scipy_dtrsm_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize, a11: usize,
        a12: usize, a13: usize, a14: usize);
    strmm_ strmm_64_ scipy_strmm_ scipy_strmm_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize, a11: usize,
        a12: usize, a13: usize, a14: usize);
    dtrmm_ dtrmm_64_ scipy_dtrmm_ scipy_dtrmm_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize, a11: usize,
        a12: usize, a13: usize, a14: usize);
    sgemv_ sgemv_64_ scipy_sgemv_ scipy_sgemv_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize, a11: usize);
    dgemv_ dgemv_64_ scipy_dgemv_ scipy_dgemv_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize, a11: usize);
    ssymv_ ssymv_64_ scipy_ssymv_ scipy_ssymv_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize);
    dsymv_ dsymv_64_ scipy_dsymv_ scipy_dsymv_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize);
    sger_ sger_64_ scipy_sger_ scipy_sger_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize, a8: usize);
    dger_ dger_64_ scipy_dger_ scipy_dger_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize, a8: usize);
    sgetrf_ sgetrf_64_ scipy_sgetrf_ scipy_sgetrf_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize);
    dgetrf_ dgetrf_64_ scipy_dgetrf_ scipy_dgetrf_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize);
    sgetri_ sgetri_64_ scipy_sgetri_ scipy_sgetri_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize);
    dgetri_ dgetri_64_ scipy_dgetri_ scipy_dgetri_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize);
    spotrf_ spotrf_64_ scipy_spotrf_ scipy_spotrf_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize);
    dpotrf_ dpotrf_64_ scipy_dpotrf_ scipy_dpotrf_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize);
    sgesv_ sgesv_64_ scipy_sgesv_ scipy_sgesv_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize);
    dgesv_ dgesv_64_ scipy_dgesv_ scipy_dgesv_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize);
    sgesdd_ sgesdd_64_ scipy_sgesdd_ scipy_sgesdd_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize, a11: usize,
        a12: usize, a13: usize, a14: usize);
    dgesdd_ dgesdd_64_ scipy_dgesdd_ scipy_dgesdd_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize, a11: usize,
        a12: usize, a13: usize, a14: usize);
    ssyevd_ ssyevd_64_ scipy_ssyevd_ scipy_ssyevd_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize, a11: usize,
        a12: usize);
    dsyevd_ dsyevd_64_ scipy_dsyevd_ scipy_dsyevd_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize, a11: usize,
        a12: usize);
    sgeev_ sgeev_64_ scipy_sgeev_ scipy_sgeev_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize, a11: usize,
        a12: usize, a13: usize, a14: usize, a15: usize);
    dgeev_ dgeev_64_ scipy_dgeev_ scipy_dgeev_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize, a11: usize,
        a12: usize, a13: usize, a14: usize, a15: usize);
    sgelsd_ sgelsd_64_ scipy_sgelsd_ scipy_sgelsd_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize, a11: usize,
        a12: usize, a13: usize);
    dgelsd_ dgelsd_64_ scipy_dgelsd_ scipy_dgelsd_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize, a8: usize, a9: usize, a10: usize, a11: usize,
        a12: usize, a13: usize);
    sgeqrf_ sgeqrf_64_ scipy_sgeqrf_ scipy_sgeqrf_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize);
    dgeqrf_ dgeqrf_64_ scipy_dgeqrf_ scipy_dgeqrf_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize);
    sorgqr_ sorgqr_64_ scipy_sorgqr_ scipy_sorgqr_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize, a8: usize);
    dorgqr_ dorgqr_64_ scipy_dorgqr_ scipy_dorgqr_64_ (a0: usize, a1: usize, a2: usize, a3: usize,
        a4: usize, a5: usize, a6: usize, a7: usize, a8: usize);
}
