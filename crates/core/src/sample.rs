//! Measurements, and what a policy may request.
//!
//! Measuring costs CPU time, so nothing is measured that no policy requested
//! ([`Observe`](crate::Observe)). What a machine cannot measure comes back with
//! [`Quality::Missing`], never as a zero.

use crate::id::{ProgramId, ThreadId};
use crate::time::Nanos;

/// A kind of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Measure {
    /// CPU time and context switches of a program.
    CpuTime,
    /// CPU time outside the kernel.
    UserTime,
    /// The list of a program's threads with their CPUs and CPU times.
    Threads,
    /// Time waiting for user locks, per thread.
    LockWait,
    /// The locks that threads waited for.
    LockShares,
    /// Hardware counters: instructions, cycles, last-level cache references and misses.
    Counters,
    /// Misses of the last-level cache, per thread.
    ThreadMisses,
    /// Samples of the instruction pointer.
    InstructionPointers,
    /// The program's own progress ticks.
    Progress,
    /// How long its work would have taken alone, which only a simulator knows.
    Alone,
    /// Memory bandwidth of the machine.
    Bandwidth,
}

/// How far a sample can be trusted; the worse the greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quality {
    /// Measured over the whole interval.
    Exact,
    /// Scaled up from a part of it (multiplexed counters, sampling).
    Scaled,
    /// This machine cannot measure it.
    #[default]
    Missing,
}

/// What one program, or one thread of it, did in an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The program.
    pub program: ProgramId,
    /// The thread; `None` for the sum over the program.
    pub thread: Option<ThreadId>,
    /// Start of the interval.
    pub from: Nanos,
    /// End of the interval.
    pub to: Nanos,
    /// CPU time in the interval.
    pub on_cpu: Nanos,
    /// The part of the CPU time that was spent outside the kernel.
    pub user_time: Option<Nanos>,
    /// Time frozen by cosched in the interval.
    pub frozen: Nanos,
    /// Time spent runnable without a CPU.
    pub run_delay: Option<Nanos>,
    /// Time spent waiting for user locks.
    pub lock_wait: Option<Nanos>,
    /// Instructions retired.
    pub instructions: Option<u64>,
    /// CPU cycles.
    pub cycles: Option<u64>,
    /// Last-level cache references.
    pub llc_references: Option<u64>,
    /// Last-level cache misses.
    pub llc_misses: Option<u64>,
    /// Memory traffic, bytes.
    pub memory_bytes: Option<u64>,
    /// Progress ticks that the program reported.
    pub progress: Option<u64>,
    /// How long the work would have taken alone, divided evenly among all threads.
    pub alone: Option<Nanos>,
    /// Context switches because the thread waited.
    pub voluntary_switches: Option<u64>,
    /// Context switches because the CPU was taken away.
    pub involuntary_switches: Option<u64>,
    /// Number of other programs that ran during the interval.
    pub co_runners: u16,
    /// The worst quality of the values that there are.
    pub quality: Quality,
}

impl Sample {
    /// A sample of a program in which nothing was measured.
    pub fn empty(program: ProgramId, from: Nanos, to: Nanos) -> Sample {
        Sample {
            program,
            thread: None,
            from,
            to,
            on_cpu: Nanos::ZERO,
            user_time: None,
            frozen: Nanos::ZERO,
            run_delay: None,
            lock_wait: None,
            instructions: None,
            cycles: None,
            llc_references: None,
            llc_misses: None,
            memory_bytes: None,
            progress: None,
            alone: None,
            voluntary_switches: None,
            involuntary_switches: None,
            co_runners: 0,
            quality: Quality::Missing,
        }
    }
}

/// How often the instruction pointer was seen in one basic block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpBin {
    /// The program.
    pub program: ProgramId,
    /// The block, in the machine's numbering.
    pub block: u64,
    /// Number of samples.
    pub count: u32,
}

/// How much of a thread's lock waiting was for one lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockShare {
    /// The thread.
    pub thread: ThreadId,
    /// The lock, in the machine's numbering.
    pub lock: u64,
    /// Time waited for it.
    pub wait: Nanos,
}

/// What the whole machine did in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MachineSample {
    /// Start of the interval.
    pub from: Nanos,
    /// End of the interval.
    pub to: Nanos,
    /// Memory traffic, bytes per second.
    pub bytes_per_second: Option<f64>,
    /// Cache lines over the memory bus per microsecond.
    pub bus_transactions_per_microsecond: Option<f64>,
}

/// The buffers that a machine writes samples to; owned by the engine and used again.
#[derive(Clone, Debug, Default)]
pub struct Arena {
    /// Samples in ascending order of program and thread.
    pub samples: Vec<Sample>,
    /// Instruction-pointer bins in ascending order of program.
    pub ips: Vec<IpBin>,
    /// Lock shares in ascending order of thread.
    pub locks: Vec<LockShare>,
    /// Threads in ascending order of program, and then of id.
    pub threads: Vec<crate::program::Thread>,
    /// The machine as a whole.
    pub machine: MachineSample,
}
