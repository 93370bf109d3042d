//! Adds to a snapshot what programs have used in their present runs.
//!
//! The engine knows the CPU time of complete runs only. That of a program's present run is read
//! from `/proc` ([`cosched_linux::clients::cpu_time`]), by the thread that serves visitors, now and
//! then. What is told never falls, though single readings may miss a process that ends meanwhile.

use std::time::Instant;

use cosched_linux::clients::cpu_time::{Meter, ProcessLoad, SamplePace, Used};
use cosched_results::live::{BusyProcess, LiveState, Snapshot, Standing};

pub(super) struct CpuTimes {
    meter: Meter,
    pace: SamplePace,
    programs: Vec<ReportedUse>,
}

#[derive(Clone, Copy, Debug, Default)]
struct ReportedUse {
    /// Which run was read.
    generation: u32,
    /// What that one had used.
    run: Option<Used>,
    /// What was told of all its runs.
    reported: Used,
}

impl CpuTimes {
    pub(super) fn new(meter: Meter) -> CpuTimes {
        CpuTimes { meter, pace: SamplePace::default(), programs: Vec::new() }
    }

    /// Adds to what complete runs have used what present ones have.
    pub(super) fn add_to(&mut self, snapshot: &mut Snapshot, now: Instant) {
        let due = self.pace.is_due(now);
        self.programs.resize(snapshot.programs.len(), ReportedUse::default());
        for (slot, (program, known)) in
            snapshot.programs.iter_mut().zip(&mut self.programs).enumerate()
        {
            if due || known.generation != program.generation {
                let run = if is_there(program) { self.meter.used(slot, now) } else { None };
                (known.generation, known.run) = (program.generation, run);
            }
            known.complete(program);
            if is_there(program) {
                program.processes = self.meter.busy(slot).iter().map(process).collect();
            }
        }
        if due {
            self.pace.has_looked(now, now.elapsed());
        }
    }
}

impl ReportedUse {
    /// Adds to what complete runs have used; nothing is told where that of the present one cannot
    /// be known.
    fn complete(&mut self, program: &mut Standing) {
        let run = if is_there(program) { self.run } else { Some(Used::default()) };
        let totals = run.zip(program.cpu_seconds).zip(program.context_switches);
        self.reported = totals.map_or(self.reported, |((run, seconds), switches)| Used {
            seconds: self.reported.seconds.max(seconds + run.seconds),
            switches: self.reported.switches.max(switches + run.switches),
        });
        program.cpu_seconds = totals.map(|_| (self.reported.seconds * 1e6).round() / 1e6);
        program.context_switches = totals.map(|_| self.reported.switches);
    }
}

fn process(load: &ProcessLoad) -> BusyProcess {
    let ProcessLoad { pid, threads, cpus, .. } = *load;
    BusyProcess { pid, name: load.name.clone(), threads, cpus }
}

fn is_there(program: &Standing) -> bool {
    !matches!(
        program.state,
        LiveState::Expected | LiveState::New | LiveState::Starting | LiveState::Ended
    )
}

#[cfg(test)]
mod tests {
    use cosched_linux::clients::cpu_time::Roots;
    use cosched_linux::kernel::procfs::Proc;

    use super::*;

    fn snapshot(state: &str, complete: f64) -> Snapshot {
        let program = format!(
            r#"{{"name":"a","state":"{state}","generation":0,"threads":1,"thread_limit":1,
            "cpus":null,"weight":1,"group":null,"arrived_seconds":0,"started_seconds":0,
            "running_seconds":1,"waiting_seconds":0,"waiting_now_seconds":0,
            "cpu_seconds":{complete},"context_switches":7,"turns":1,"completions":0,
            "exit":null,"why":null}}"#
        );
        let text = format!(
            r#"{{"schema":"cosched-live/2","pid":1,"policy":"gang","placement":null,
            "quantum_seconds":null,"started_at":"","at_seconds":1,"cpus":"0","quantum":null,
            "switches":0,"deviations":0,"own_cpu_seconds":0,"programs":[{program}]}}"#
        );
        Snapshot::from_json(&text).unwrap()
    }

    #[test]
    fn cpu_times_never_fall_and_unreadable_ones_are_unknown() {
        let mut times = CpuTimes::new(Meter::new(Proc::default(), Roots::new(1)));
        let mut reported = |state, complete| {
            let mut snapshot = snapshot(state, complete);
            times.add_to(&mut snapshot, Instant::now());
            snapshot.programs[0].cpu_seconds
        };
        assert_eq!(reported("new", 0.0), Some(0.0));
        assert_eq!(reported("running", 0.0), None);
        assert_eq!(reported("ended", 1.5), Some(1.5));
        assert_eq!(reported("ended", 1.25), Some(1.5));
    }
}
