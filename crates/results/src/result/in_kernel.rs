//! Counts of cosched's scheduler in the kernel.

use serde::{Deserialize, Serialize};

/// What the threads of a program did under cosched's scheduler in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct InKernel {
    /// CPU time that they had.
    pub cpu_seconds: f64,
    /// How often a thread of it came to a CPU.
    pub starts: u64,
    /// How often a thread asked for another one to have its CPU.
    pub donations: u64,
    /// How often that one was queued, and was put next.
    pub handed_over: u64,
    /// How often it came next indeed, with what was left of the slice.
    pub followed: u64,
}
