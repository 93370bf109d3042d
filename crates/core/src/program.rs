//! Programs and threads as policies see them.
//!
//! A *program* is one command with all its descendants.

use std::ops::{Add, Range};

use serde::{Deserialize, Serialize};

use crate::cpuset::CpuSet;
use crate::id::{ProgramId, ThreadId};
use crate::learned::Learned;
use crate::sample::Quality;
use crate::speedup::Speedup;
use crate::time::Nanos;
use crate::turn::Turn;
use crate::waits::Waits;

/// Programs of one group freeze and run together. They share pipes, sockets or memory, so that a
/// frozen one would stall the other; or the user says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupId(pub u16);

/// The state of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramState {
    /// Arrived, and not yet started: no process of it exists.
    New,
    /// Its start was requested and is not confirmed yet.
    Starting,
    /// Runs; the kernel schedules it.
    Running,
    /// Its freeze was requested and is not confirmed yet.
    Freezing,
    /// Confirmed to be frozen by cosched.
    Frozen,
    /// Another process (a shell's job control, a debugger) stopped it: it is left alone.
    StoppedByOther,
}

impl ProgramState {
    /// Whether threads of the program may be on a CPU now.
    pub fn may_run(self) -> bool {
        matches!(self, ProgramState::Starting | ProgramState::Running | ProgramState::Freezing)
    }
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// It returned this status.
    Code(u8),
    /// This signal ended it.
    Signal(u8),
    /// It could not be started; the operating system's error number.
    Failed(i32),
    /// Its end was not seen (its parent process was killed).
    Unknown,
}

impl Exit {
    /// The status as a shell reports it: the status, 128 + signal, or 127.
    pub fn shell_status(self) -> i32 {
        match self {
            Exit::Code(code) => i32::from(code),
            Exit::Signal(signal) => 128 + i32::from(signal),
            Exit::Failed(_) | Exit::Unknown => 127,
        }
    }
}

/// What a program used over its life, from the kernel's own accounts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time in user mode, seconds.
    pub user_seconds: f64,
    /// CPU time in the kernel, seconds.
    pub system_seconds: f64,
    /// Context switches because the thread waited.
    pub voluntary_switches: u64,
    /// Context switches because the kernel took the CPU away.
    pub involuntary_switches: u64,
    /// Largest resident set of one process, KiB.
    pub max_rss_kib: u64,
    /// What hardware counters counted, where this was requested. Neither shims nor run.json have
    /// it: the counters are cosched's own, and only solo runs are counted.
    #[serde(skip)]
    pub counts: Counts,
    /// The cost of its threads' waiting for each other, where that is simulated and its model
    /// requests it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waits>,
}

impl Usage {
    /// The sum of two runs.
    pub fn and(&self, other: &Usage) -> Usage {
        Usage {
            user_seconds: self.user_seconds + other.user_seconds,
            system_seconds: self.system_seconds + other.system_seconds,
            voluntary_switches: self.voluntary_switches + other.voluntary_switches,
            involuntary_switches: self.involuntary_switches + other.involuntary_switches,
            max_rss_kib: self.max_rss_kib.max(other.max_rss_kib),
            counts: self.counts + other.counts,
            waits: self
                .waits
                .map_or(other.waits, |waits| Some(waits + other.waits.unwrap_or_default())),
        }
    }

    /// All CPU time.
    pub fn cpu(&self) -> Nanos {
        Nanos(((self.user_seconds + self.system_seconds) * 1e9).round() as u64)
    }
}

/// What hardware counters counted of a program in user mode, over all its threads and processes.
/// `None`: not requested, not available, or its counter never got to count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Instructions retired.
    pub instructions: Option<u64>,
    /// CPU cycles.
    pub cycles: Option<u64>,
    /// References to the last-level cache.
    pub llc_references: Option<u64>,
    /// References to the last-level cache that missed.
    pub llc_misses: Option<u64>,
    /// The worst quality of the counts that there are.
    pub quality: Quality,
}

impl Counts {
    /// Last-level cache misses per 1000 instructions. `None` also where a counter exists and stands
    /// still, as on some virtual machines. This is certain, because no program has zero
    /// instructions or zero references to the last-level cache.
    pub fn misses_per_kilo_instruction(&self) -> Option<f64> {
        let instructions = self.instructions.filter(|count| *count > 0)?;
        self.llc_references.filter(|count| *count > 0)?;
        Some(1000.0 * self.llc_misses? as f64 / instructions as f64)
    }

    /// The share of references to the last-level cache that missed, 0 to 1. `None` also where a
    /// counter stands still.
    pub fn miss_ratio(&self) -> Option<f64> {
        let references = self.llc_references.filter(|count| *count > 0)?;
        // Multiplexed counters are scaled separately, so one may come out above the other.
        Some((self.llc_misses? as f64 / references as f64).min(1.0))
    }
}

/// The sum of two runs. A count that one of them lacks is missing in the sum.
impl Add for Counts {
    type Output = Counts;

    fn add(self, other: Counts) -> Counts {
        let sum = |one: Option<u64>, other| one.zip(other).map(|(one, other)| one + other);
        Counts {
            instructions: sum(self.instructions, other.instructions),
            cycles: sum(self.cycles, other.cycles),
            llc_references: sum(self.llc_references, other.llc_references),
            llc_misses: sum(self.llc_misses, other.llc_misses),
            quality: self.quality.max(other.quality),
        }
    }
}

/// A program is started with fewer threads than it requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Molding {
    /// How many threads it requests.
    pub requested: u16,
    /// Time of one run alone with the fewer threads.
    pub solo: Nanos,
}

/// What is known of a program from solo runs on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Profile {
    /// Time of one run alone, with the same thread count and placement.
    pub solo: Option<Nanos>,
    /// CPU time of that run, over all threads. It is less than their number times the run's length
    /// where threads sleep or have ended.
    pub solo_cpu: Option<Nanos>,
    /// Last-level cache misses per 1000 instructions.
    pub misses_per_kilo_instruction: Option<f64>,
    /// Share of the references to the last-level cache that miss, 0 to 1.
    pub miss_ratio: Option<f64>,
    /// Traffic between caches and memory, GB/s (10^9 bytes).
    pub memory_gigabytes_per_second: Option<f64>,
    /// Time of one run alone with several thread counts.
    pub speedup: Option<Speedup>,
    /// Set if it is started with fewer threads than it requests.
    pub molded: Option<Molding>,
    /// Its learned setting, from earlier runs with the same co-runners.
    pub learned: Learned,
}

/// One program of the [`World`](crate::World).
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// Its name for plans.
    pub id: ProgramId,
    /// Its state, as confirmed by the machine.
    pub state: ProgramState,
    /// How many threads it is to have on CPUs at once, by its workload.
    pub thread_count: u16,
    /// How many threads it requests for its present or last parallel region. It equals
    /// `thread_count` before its first request, and for programs that make none.
    pub requested: u16,
    /// Its thread limit: at most `requested`.
    pub allowed: u16,
    /// The CPUs that cosched has bound it to; `None`: the original ones.
    pub cpus: Option<CpuSet>,
    /// Its part in taking turns by weight, as it was last sent to the machine.
    pub turn: Option<Turn>,
    /// Its weight relative to the other programs, as the user gave it. Turns by weight are about
    /// another one: that of its CPU group ([`Turn`]).
    pub weight: f64,
    /// The programs that it must run together with.
    pub group: Option<GroupId>,
    /// Whether it may be frozen at all.
    pub freezable: bool,
    /// The longest time that it may be frozen at a stretch: that of the run, or less.
    pub max_frozen: Nanos,
    /// The time after which it is ended, counted from its start, as by `timeout`; `None`: none is
    /// known.
    pub time_limit: Option<Nanos>,
    /// Whether its thread count may be changed from outside.
    pub malleable: bool,
    /// The number of the last directive that changed anything for it.
    pub epoch: u64,
    /// When it arrived.
    pub arrived: Nanos,
    /// How long it has run, from confirmed effects.
    pub ran: Nanos,
    /// How long it has waited: before its first start, and frozen by cosched.
    pub waited: Nanos,
    /// Since when it waits; `None` while it runs.
    pub waiting_since: Option<Nanos>,
    /// When its present settings came into full effect.
    pub settled_at: Nanos,
    /// What is known of it from solo runs.
    pub profile: Profile,
    /// Its threads, as a range of [`World::threads`](crate::World); empty unless a policy observes
    /// them.
    pub threads: Range<u32>,
}

impl Program {
    /// How long it has been waiting at `now` since it last ran (or since it arrived); zero while it
    /// runs.
    pub fn waiting(&self, now: Nanos) -> Nanos {
        self.waiting_since.map_or(Nanos::ZERO, |since| now.since(since))
    }
}

/// The owner of a thread's CPU mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MaskOwner {
    /// cosched may move it.
    Cosched,
    /// The user or another process bound it, before the run or without cosched's knowledge
    /// (taskset, `OMP_PROC_BIND`). cosched leaves it there.
    User,
    /// The library inside the program binds it.
    Hook,
}

/// One thread of the [`World`](crate::World).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its name for plans.
    pub id: ThreadId,
    /// The program that it belongs to.
    pub program: ProgramId,
    /// Its process: threads of one program with this number share a process.
    pub process: u32,
    /// The CPU that it was last seen on.
    pub cpu: u16,
    /// CPU time since it was born.
    pub on_cpu: Nanos,
    /// The owner of its CPU mask.
    pub mask_owner: MaskOwner,
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTED: Counts = Counts {
        instructions: Some(4_000_000),
        cycles: Some(8_000_000),
        llc_references: Some(90_000),
        llc_misses: Some(10_000),
        quality: Quality::Exact,
    };

    #[test]
    fn misses_are_per_thousand_instructions() {
        assert_eq!(COUNTED.misses_per_kilo_instruction(), Some(2.5));
        let none = Counts { llc_misses: Some(0), ..COUNTED };
        assert_eq!(none.misses_per_kilo_instruction(), Some(0.0));
    }

    /// Without references, there is no miss ratio.
    #[test]
    fn the_miss_ratio_is_per_reference() {
        assert_eq!(COUNTED.miss_ratio(), Some(10.0 / 90.0));
        for counts in [
            Counts { llc_references: Some(0), llc_misses: Some(0), ..COUNTED },
            Counts { llc_references: None, ..COUNTED },
            Counts { llc_misses: None, ..COUNTED },
        ] {
            assert_eq!(counts.miss_ratio(), None, "{counts:?}");
        }
        // Multiplexed counters are scaled separately.
        assert_eq!(Counts { llc_misses: Some(90_001), ..COUNTED }.miss_ratio(), Some(1.0));
    }

    #[test]
    fn counters_that_are_missing_or_stand_still_give_no_figure() {
        for counts in [
            Counts::default(),
            Counts { instructions: None, ..COUNTED },
            Counts { instructions: Some(0), ..COUNTED },
            Counts { llc_references: Some(0), llc_misses: Some(0), ..COUNTED },
            Counts { llc_misses: None, ..COUNTED },
        ] {
            assert_eq!(counts.misses_per_kilo_instruction(), None, "{counts:?}");
        }
    }

    #[test]
    fn the_miss_ratio_is_a_share_of_references_and_needs_some() {
        assert_eq!(COUNTED.miss_ratio(), Some(1.0 / 9.0));
        let ratio = |references, misses| {
            Counts { llc_references: references, llc_misses: misses, ..COUNTED }.miss_ratio()
        };
        assert_eq!(ratio(Some(0), Some(0)), None);
        assert_eq!((ratio(None, Some(1)), ratio(Some(1), None)), (None, None));
        assert_eq!(
            ratio(Some(100), Some(103)),
            Some(1.0),
            "counted at different times, and scaled up"
        );
    }

    #[test]
    fn the_sum_of_two_runs_has_the_worse_quality() {
        let scaled = Counts { llc_references: None, quality: Quality::Scaled, ..COUNTED };
        let expected = Counts {
            instructions: Some(8_000_000),
            cycles: Some(16_000_000),
            llc_references: None,
            llc_misses: Some(20_000),
            quality: Quality::Scaled,
        };
        assert_eq!(COUNTED + scaled, expected);
        assert_eq!(scaled + COUNTED, expected);
        assert_eq!(COUNTED + Counts::default(), Counts::default());
    }
}
