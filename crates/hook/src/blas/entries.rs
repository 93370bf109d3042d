//! The functions themselves, by their names in each build.
//!
//! Whole numbers have 32 or 64 bits, in registers or places as wide as an address either way; the
//! upper half of narrower ones is passed on unchanged. In C, real scalars come by value. In Fortran
//! everything comes by address, and the lengths of texts at the end.

use core::mem::transmute;

use super::{BlasBuild, PART};
use crate::runtime::OneFunction;

/// A build of which all names begin and end like this.
macro_rules! build {
    ($begin:literal $end:literal) => {
        BlasBuild::named(
            concat!($begin, "openblas_get_num_threads", $end, "\0"),
            concat!($begin, "openblas_set_num_threads", $end, "\0"),
            concat!($begin, "openblas_get_parallel", $end, "\0"),
        )
    };
}

static PLAIN: BlasBuild = build!("" "");
/// With numbers of 64 bits.
static WIDE: BlasBuild = build!("" "64_");
static SCIPY: BlasBuild = build!("scipy_" "");
static SCIPY_WIDE: BlasBuild = build!("scipy_" "64_");

/// All builds.
pub(super) static BUILDS: [&BlasBuild; 4] = [&PLAIN, &WIDE, &SCIPY, &SCIPY_WIDE];

/// The type of an argument: that of an address or a whole number, unless another is named.
macro_rules! kind {
    ($argument:ident) => {
        usize
    };
    ($argument:ident $kind:ident) => {
        $kind
    };
}

/// One function of one build.
macro_rules! call {
    ($build:ident $name:expr, ($($argument:ident $(: $kind:ident)?)* $(-> $answer:ident)?)) => {
        const _: () = {
            /// Calls the library's function of this name, with the thread limit in effect
            /// meanwhile.
            ///
            /// # Safety
            /// As BLAS or LAPACK requires for this name: addresses among the arguments have to be
            /// valid.
            #[allow(clippy::too_many_arguments)]
            // SAFETY: the name and the types are those of BLAS, for which this is a whole
            // replacement.
            #[unsafe(export_name = $name)]
            unsafe extern "C" fn entry($($argument: kind!($argument $($kind)?)),*) $(-> $answer)? {
                static REAL: OneFunction = OneFunction::named(concat!($name, "\0"));
                // SAFETY: only a type; it is that of the function around it.
                type Entry =
                    unsafe extern "C" fn($(kind!($argument $($kind)?)),*) $(-> $answer)?;
                let real = REAL.called(PART);
                let _call = $build.begin();
                // SAFETY: `called` returns the library's own function of this name or ends the
                // program. It gets the arguments that were meant for it.
                unsafe { transmute::<usize, Entry>(real)($($argument),*) }
            }
        };
    };
}

/// Functions with the same arguments, in all builds.
macro_rules! calls {
    ($([$($name:literal)*] $signature:tt;)*) => {$($(
        call!(PLAIN $name, $signature);
        call!(WIDE concat!($name, "64_"), $signature);
        call!(SCIPY concat!("scipy_", $name), $signature);
        call!(SCIPY_WIDE concat!("scipy_", $name, "64_"), $signature);
    )*)*};
}

// For C.
calls! {
    ["cblas_sgemm"] (a b c d e f g: f32 h i j k l: f32 m n);
    ["cblas_dgemm"] (a b c d e f g: f64 h i j k l: f64 m n);
    ["cblas_cgemm" "cblas_zgemm"] (a b c d e f g h i j k l m n);
    ["cblas_ssymm"] (a b c d e f: f32 g h i j k: f32 l m);
    ["cblas_dsymm"] (a b c d e f: f64 g h i j k: f64 l m);
    ["cblas_ssyrk"] (a b c d e f: f32 g h i: f32 j k);
    ["cblas_dsyrk"] (a b c d e f: f64 g h i: f64 j k);
    ["cblas_strsm"] (a b c d e f g h: f32 i j k l);
    ["cblas_dtrsm"] (a b c d e f g h: f64 i j k l);
    ["cblas_sgemv"] (a b c d e: f32 f g h i j: f32 k l);
    ["cblas_dgemv"] (a b c d e: f64 f g h i j: f64 k l);
    ["cblas_sdot"] (a b c d e -> f32);
    ["cblas_ddot"] (a b c d e -> f64);
}

// For Fortran.
calls! {
    ["sgemm_" "dgemm_" "cgemm_" "zgemm_" "strsm_" "dtrsm_" "strmm_" "dtrmm_" "sgesdd_" "dgesdd_"]
        (a b c d e f g h i j k l m n o);
    ["ssymm_" "dsymm_" "ssyr2k_" "dsyr2k_" "sgelsd_" "dgelsd_"] (a b c d e f g h i j k l m n);
    ["ssyrk_" "dsyrk_" "sgemv_" "dgemv_"] (a b c d e f g h i j k l);
    ["ssymv_" "dsymv_"] (a b c d e f g h i j k);
    ["sger_" "dger_" "sorgqr_" "dorgqr_"] (a b c d e f g h i);
    ["sgetrf_" "dgetrf_" "spotrf_" "dpotrf_"] (a b c d e f);
    ["sgetri_" "dgetri_"] (a b c d e f g);
    ["sgesv_" "dgesv_" "sgeqrf_" "dgeqrf_"] (a b c d e f g h);
    ["ssyevd_" "dsyevd_"] (a b c d e f g h i j k l m);
    ["sgeev_" "dgeev_"] (a b c d e f g h i j k l m n o p);
}
