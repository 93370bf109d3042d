//! Kernels: how a CPU's queue is ordered and how long a thread keeps its CPU.
//!
//! All of them share one implementation (queues per CPU, placement on wake-up, balancing) with
//! different parameters and another [order](crate::fair). The figures are those of Linux' sources.

use cosched_core::Nanos;

/// A kernel's scheduler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kernel {
    /// The rule for the next thread, and how long it runs.
    pub order: Order,
    /// The period of the clock: preemption at the end of a slice happens only at ticks.
    pub tick: Nanos,
    /// Whether the clocks of the CPUs are shifted against each other, or all tick at multiples of
    /// the tick (Linux' `skew_tick`). Linux does not shift them, but interrupts and its own threads
    /// add jitter. Here there are none, so the kernels that have a name shift them.
    pub skew_tick: bool,
    /// Whether every program has a share of its own (a cgroup or an autogroup each).
    pub groups: bool,
    /// Whether threads of one program are kept in different queues ("balance scheduling", Sukwong
    /// and Kim).
    pub apart: bool,
}

/// The rule for the next thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// The eligible thread with the earliest virtual deadline (Linux 6.6 and later).
    Eevdf {
        /// The slice on a machine with one CPU; it grows with the logarithm of the number of CPUs.
        slice: Nanos,
    },
    /// The thread that has run least (Linux 2.6.23 to 6.5).
    Cfs {
        /// The period in which every thread runs once, on a machine with one CPU.
        latency: Nanos,
        /// The shortest slice.
        granularity: Nanos,
        /// A thread that wakes preempts a running one that is ahead by more than this.
        wakeup: Nanos,
    },
    /// The thread of the highest priority (OpenSolaris 2009.06); `fixed` is the class of new
    /// programs.
    Solaris {
        /// Fixed priority (FX), rather than time sharing (TS).
        fixed: bool,
    },
    /// One after another.
    RoundRobin {
        /// The length of a turn.
        quantum: Nanos,
    },
}

/// The length of a turn of Linux' real-time round robin (`RR_TIMESLICE`).
pub(crate) const REAL_TIME_SLICE: Nanos = Nanos::from_millis(100);

impl Kernel {
    /// Linux 6.18.
    pub const EEVDF: Kernel = Kernel {
        order: Order::Eevdf { slice: Nanos::from_micros(700) },
        tick: Nanos::from_millis(4),
        skew_tick: true,
        groups: false,
        apart: false,
    };

    /// Linux 2.6.38 and its neighbours.
    pub const CFS: Kernel = Kernel {
        order: Order::Cfs {
            latency: Nanos::from_millis(6),
            granularity: Nanos::from_micros(750),
            wakeup: Nanos::from_millis(1),
        },
        ..Kernel::EEVDF
    };

    /// A plain round robin of 100 ms.
    pub const ROUND_ROBIN: Kernel =
        Kernel { order: Order::RoundRobin { quantum: Nanos::from_millis(100) }, ..Kernel::EEVDF };

    /// CFS with siblings kept apart.
    pub const BALANCE: Kernel = Kernel { apart: true, ..Kernel::CFS };

    /// OpenSolaris 2009.06 with its default class, time sharing. Its one clock interrupt charges
    /// all CPUs at once.
    pub const SOLARIS_TS: Kernel = Kernel {
        order: Order::Solaris { fixed: false },
        tick: Nanos::from_millis(10),
        skew_tick: false,
        groups: false,
        apart: false,
    };

    /// OpenSolaris 2009.06 with every program in the class of fixed priorities.
    pub const SOLARIS_FX: Kernel =
        Kernel { order: Order::Solaris { fixed: true }, ..Kernel::SOLARIS_TS };

    /// The kernels by name.
    pub const NAMES: [&str; 6] = ["eevdf", "cfs", "rr", "balance", "solaris-ts", "solaris-fx"];

    /// A kernel by its name.
    pub fn named(name: &str) -> Option<Kernel> {
        let linux = [Kernel::EEVDF, Kernel::CFS, Kernel::ROUND_ROBIN, Kernel::BALANCE];
        let mut all = linux.into_iter().chain([Kernel::SOLARIS_TS, Kernel::SOLARIS_FX]);
        all.find(|kernel| kernel.name() == name)
    }

    /// The name of one of them, with any later changes.
    pub fn name(&self) -> &'static str {
        match self.order {
            Order::Eevdf { .. } => "eevdf",
            Order::Cfs { .. } if self.apart => "balance",
            Order::Cfs { .. } => "cfs",
            Order::Solaris { fixed: false } => "solaris-ts",
            Order::Solaris { fixed: true } => "solaris-fx",
            Order::RoundRobin { .. } => "rr",
        }
    }

    /// Whether virtual time decides, so that it has to be kept.
    pub(crate) fn is_fair(&self) -> bool {
        matches!(self.order, Order::Eevdf { .. } | Order::Cfs { .. })
    }

    /// Whether programs can take turns by weight: `cpu.idle` came with Linux 5.15, later than the
    /// CFS of these kernels.
    pub fn takes_turns_by_weight(&self) -> bool {
        matches!(self.order, Order::Eevdf { .. })
    }

    /// Whether every thread has a priority, and the highest runs.
    pub fn is_solaris(&self) -> bool {
        matches!(self.order, Order::Solaris { .. })
    }

    /// The default length of a turn, nanoseconds. CFS computes it each time, Solaris by priority.
    pub(crate) fn slice(&self, cpus: usize) -> f64 {
        match self.order {
            Order::Eevdf { slice } => slice.0 as f64 * Kernel::stretch(cpus),
            Order::RoundRobin { quantum } => quantum.0 as f64,
            Order::Cfs { .. } | Order::Solaris { .. } => 0.0,
        }
    }

    /// The factor by which Linux stretches its times on a machine with this many CPUs: 1 + log2, of
    /// at most 8.
    pub(crate) fn stretch(cpus: usize) -> f64 {
        f64::from(1 + cpus.clamp(1, 8).ilog2())
    }
}
