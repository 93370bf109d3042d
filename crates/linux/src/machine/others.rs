//! Whether processes of others compute beside the programs.

use std::collections::BTreeMap;

use cosched_core::{CpuSet, Nanos, ProgramId};

use super::program::Live;
use crate::kernel::clock::Clock;
use crate::kernel::procfs::Proc;
use crate::process::tree::Process;

/// The shortest time from one reading to the next: 25 of the clock ticks in which the kernel counts
/// CPU time.
const SHORTEST: Nanos = Nanos::from_millis(250);
/// The longest, and that while others compute, when all processes are listed each time.
const LONGEST: Nanos = Nanos::from_secs(1);
/// Within these limits, readings take one part in so many of the time at most. With twelve programs
/// a reading takes about 0.3 ms.
const PARTS: u64 = 4000;
/// Others compute if they use more than this part of one CPU.
const COMPUTE: f64 = 0.25;
/// Clock ticks in a second.
const TICKS: f64 = 100.0;

/// Compares now and then how busy the CPUs were with what the programs have used.
#[derive(Debug, Default)]
pub(super) struct Others {
    last: Option<CpuReading>,
    /// The time from then to the next reading.
    pause: Nanos,
    /// The processes of each program when they were last listed, its shim first.
    processes: BTreeMap<ProgramId, Vec<Process>>,
    compute: bool,
}

/// CPU times so far, seconds.
#[derive(Debug)]
struct CpuReading {
    at: Nanos,
    of_all: f64,
    of_programs: BTreeMap<ProgramId, f64>,
}

impl Others {
    /// Whether others compute on these CPUs, as far as is known by now.
    pub(super) fn compute(
        &mut self,
        clock: &Clock,
        cpus: &CpuSet,
        programs: &BTreeMap<ProgramId, Live>,
        proc: &Proc,
    ) -> bool {
        let now = clock.now();
        if self.last.as_ref().is_some_and(|last| now < last.at + self.pause) {
            return self.compute;
        }
        let Ok(load) = proc.cpu_load(cpus) else { return self.compute };
        let read = |processes: &BTreeMap<ProgramId, Vec<Process>>| CpuReading {
            at: now,
            of_all: load.busy_seconds,
            of_programs: processes.iter().map(|(id, them)| (*id, used(them, proc))).collect(),
        };
        self.processes.retain(|id, _| programs.contains_key(id));
        let mut reading = read(&self.processes);
        // What seems to be others' may be of processes that came since. To list processes costs
        // more than to read their times.
        let last = self.last.as_ref();
        if self.processes.len() < programs.len()
            || last.is_none_or(|last| reading.of_others_since(last) > Some(COMPUTE))
        {
            let listed = programs.iter().map(|(id, live)| {
                let shim = live.tree.shim.into_iter();
                (*id, shim.chain(live.tree.members(proc)).collect())
            });
            self.processes = listed.collect();
            reading = read(&self.processes);
        }
        self.judge(reading);
        let shortest = if self.compute { LONGEST } else { SHORTEST };
        self.pause = (clock.now().since(now) * PARTS).clamp(shortest, LONGEST);
        self.compute
    }

    fn judge(&mut self, now: CpuReading) {
        if let Some(part) = self.last.as_ref().and_then(|last| now.of_others_since(last)) {
            self.compute = part > COMPUTE;
        }
        self.last = Some(now);
    }
}

impl CpuReading {
    /// The part of one CPU that others used since an earlier reading. `None`: a program has started
    /// or ended meanwhile, and its time is not known.
    fn of_others_since(&self, earlier: &CpuReading) -> Option<f64> {
        if !self.of_programs.keys().eq(earlier.of_programs.keys()) {
            return None;
        }
        let sum = |reading: &CpuReading| reading.of_programs.values().sum::<f64>();
        let of_others = self.of_all - earlier.of_all - (sum(self) - sum(earlier));
        Some(of_others / (self.at - earlier.at).as_secs_f64())
    }
}

/// What a program with these processes has used, with all processes that they have waited for.
pub(super) fn used(processes: &[Process], proc: &Proc) -> f64 {
    let stats = processes.iter().filter_map(|process| process.look(proc));
    stats.map(|stat| stat.utime + stat.stime + stat.reaped).sum::<u64>() as f64 / TICKS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(millis: u64, of_all: f64, of_programs: &[f64]) -> CpuReading {
        let of_programs = (0..).map(ProgramId::first).zip(of_programs.iter().copied()).collect();
        CpuReading { at: Nanos::from_millis(millis), of_all, of_programs }
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
