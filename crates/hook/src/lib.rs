//! The part of cosched that lives inside a program. It requests threads for the next parallel
//! region, and shows threads at a barrier which threads they wait for.
//!
//! It comes in by `LD_PRELOAD`, where the jobs file says `malleable = true`, or by linking
//! (`include/cosched.h`). A program that says so itself calls `cosched_region`, which is the
//! `affhook_region_notify` of the thesis on gang scheduling (section 4.2). For programs that know
//! nothing of cosched, the library intercepts the entries of their runtimes: `gomp` (gcc), `kmp`
//! (LLVM; `ompt` is what that runtime reports of itself) and `blas` (OpenBLAS with its own
//! threads). `barrier` is the time donating barrier, behind POSIX' and those of OpenMP (`region`).
//! `link` is the connection to cosched.
//!
//! Rules for everything here: never more threads than requested; nothing is allocated and nothing
//! can panic; no call may be a cancellation point; `errno` is unchanged; and without cosched every
//! function does nothing. There is no constructor: a process that requests nothing is not affected
//! by the library.
//!
//! The library is `no_std` in what it uses. `std` is linked for its panic handler alone: cargo's
//! profiles for development and tests unwind, and the compiler makes no shared library that could
//! unwind without it.

#![no_std]

extern crate std;

mod barrier;
mod blas;
mod gomp;
mod kmp;
mod link;
mod ompt;
mod region;
mod runtime;
mod sys;

use core::ffi::c_int;

/// Registers this process: connects to cosched now instead of at the first region. Returns 1 where
/// cosched is there, else 0.
// SAFETY: the name begins with `cosched_`, so no other library has it.
#[unsafe(no_mangle)]
pub extern "C" fn cosched_register() -> c_int {
    c_int::from(link::page().is_some())
}

/// How many threads the next region may have, at most `requested`. Waits for the answer, for some
/// milliseconds at most.
// SAFETY: the name begins with `cosched_`, so no other library has it.
#[unsafe(no_mangle)]
pub extern "C" fn cosched_region(requested: c_int) -> c_int {
    link::region(requested)
}

/// How many CPUs this program has now.
// SAFETY: the name begins with `cosched_`, so no other library has it.
#[unsafe(no_mangle)]
pub extern "C" fn cosched_cpus() -> c_int {
    let last_sent = link::page().map_or(0, |page| page.rule().cpus);
    if last_sent > 0 { c_int::from(last_sent) } else { sys::cpus() }
}

/// Reports that the program has advanced by so many ticks.
// SAFETY: the name begins with `cosched_`, so no other library has it.
#[unsafe(no_mangle)]
pub extern "C" fn cosched_progress(ticks: u64) {
    if let Some(page) = link::page() {
        page.tick(ticks);
    }
}
