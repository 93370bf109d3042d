//! What a thread says to cosched's scheduler in the kernel (`bpf/scheduler.h` has the same).
//!
//! Each call is `sched_yield` with two arguments, which a kernel without that scheduler ignores: it
//! then merely yields. They are the two system calls of the paper on Tidon, section 4.

/// `time_donating_to`: the CPU goes to the thread that the second argument names, or to any laggard
/// of the program where that is 0.
pub const DONATE: u64 = 0xc05c_0d01;
/// `update_barr_status`: the caller has arrived at a barrier, after the time that is the second
/// argument, ns. If all threads of the process have arrived since then, it counts for nothing.
pub const ARRIVED: u64 = 0xc05c_0d02;
/// `update_barr_status`: all threads of the caller's process have arrived, before the time that is
/// the second argument.
pub const ALL_ARRIVED: u64 = 0xc05c_0d03;
