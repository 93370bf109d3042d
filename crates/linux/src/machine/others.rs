//! Whether processes of others compute beside the programs.

use std::collections::BTreeMap;

use cosched_core::{CpuSet, Nanos, ProgramId};

use super::program::Live;
use crate::kernel::procfs::Proc;

/// From one reading to the next: 25 of the clock ticks in which the kernel counts CPU time.
const INTERVAL: Nanos = Nanos::from_millis(250);
/// Others compute if they use more than this part of one CPU.
const COMPUTE: f64 = 0.25;
/// Clock ticks in a second.
const TICKS: f64 = 100.0;

/// Compares now and then how busy the CPUs were with what the programs have used.
#[derive(Debug, Default)]
pub(super) struct Others {
    last: Option<Reading>,
    compute: bool,
}

/// CPU times so far, seconds.
#[derive(Debug)]
struct Reading {
    at: Nanos,
    of_all: f64,
    of_programs: BTreeMap<ProgramId, f64>,
}

impl Others {
    /// Whether others compute on these CPUs, as far as is known by now.
    pub(super) fn compute(
        &mut self,
        now: Nanos,
        cpus: &CpuSet,
        programs: &BTreeMap<ProgramId, Live>,
        proc: &Proc,
    ) -> bool {
        if self.last.as_ref().is_some_and(|last| now < last.at + INTERVAL) {
            return self.compute;
        }
        if let Ok(load) = proc.cpu_load(cpus) {
            let of_programs = programs.iter().map(|(id, live)| (*id, used(live, proc))).collect();
            self.judge(Reading { at: now, of_all: load.busy_seconds, of_programs });
        }
        self.compute
    }

    fn judge(&mut self, now: Reading) {
        if let Some(part) = self.last.as_ref().and_then(|last| now.of_others_since(last)) {
            self.compute = part > COMPUTE;
        }
        self.last = Some(now);
    }
}

impl Reading {
    /// The part of one CPU that others used since an earlier reading; `None` if a program has
    /// started or ended meanwhile, whose time is not known.
    fn of_others_since(&self, earlier: &Reading) -> Option<f64> {
        if !self.of_programs.keys().eq(earlier.of_programs.keys()) {
            return None;
        }
        let sum = |reading: &Reading| reading.of_programs.values().sum::<f64>();
        let of_others = self.of_all - earlier.of_all - (sum(self) - sum(earlier));
        Some(of_others / (self.at - earlier.at).as_secs_f64())
    }
}

/// What a program has used: its processes, and those that they or its shim have waited for.
fn used(live: &Live, proc: &Proc) -> f64 {
    let reaped = live.tree.shim.and_then(|shim| shim.look(proc)).map_or(0, |shim| shim.reaped);
    let members = live.tree.members(proc).into_iter().filter_map(|process| process.look(proc));
    let of_members: u64 = members.map(|stat| stat.utime + stat.stime + stat.reaped).sum();
    (reaped + of_members) as f64 / TICKS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(millis: u64, of_all: f64, of_programs: &[f64]) -> Reading {
        let of_programs = (0..).map(ProgramId::first).zip(of_programs.iter().copied()).collect();
        Reading { at: Nanos::from_millis(millis), of_all, of_programs }
    }

    #[test]
    fn others_compute_if_cpus_were_busier_than_programs_can_tell() {
        let mut others = Others::default();
        others.judge(reading(0, 10.0, &[1.0, 2.0]));
        assert!(!others.compute);
        others.judge(reading(500, 11.0, &[1.5, 2.45]));
        assert!(!others.compute, "a tenth of a CPU is no computation");
        others.judge(reading(1000, 12.0, &[1.8, 2.8]));
        assert!(others.compute, "0.35 s of 0.5 s are not the programs'");
    }

    #[test]
    fn a_program_that_ends_meanwhile_leaves_it_open() {
        let mut others = Others::default();
        others.judge(reading(0, 10.0, &[1.0, 2.0]));
        others.judge(reading(1000, 12.0, &[1.5]));
        assert!(!others.compute);
        others.judge(reading(2000, 14.0, &[2.5]));
        assert!(others.compute);
    }
}
