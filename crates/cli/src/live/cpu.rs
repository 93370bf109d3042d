//! Adds to a snapshot what programs have used in their present runs.
//!
//! The engine knows the CPU time of complete runs only. That of a program's present run is read from `/proc`
//! ([`cosched_linux::cpu_time`]), by the thread that serves visitors, every two seconds at most. What is told never falls,
//! though single readings may miss a process that ends meanwhile.

use std::time::Instant;

use cosched_core::live::{Snapshot, Standing, State};
use cosched_linux::cpu_time::{LOOK, Meter};

/// The last readings.
pub(super) struct CpuTimes {
    meter: Meter,
    looked: Option<Instant>,
    programs: Vec<Known>,
}

/// What is known of one program.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// Which run was read.
    generation: u32,
    /// What that one had used.
    run: Option<f64>,
    /// What was told of all its runs.
    told: f64,
}

impl CpuTimes {
    pub(super) fn new(meter: Meter) -> CpuTimes {
        CpuTimes { meter, looked: None, programs: Vec::new() }
    }

    /// Adds to the time of complete runs that of present ones.
    pub(super) fn add_to(&mut self, snapshot: &mut Snapshot, now: Instant) {
        let due = self.looked.is_none_or(|looked| now.duration_since(looked) >= LOOK);
        if due {
            self.looked = Some(now);
        }
        self.programs.resize(snapshot.programs.len(), Known::default());
        for (slot, (program, known)) in
            snapshot.programs.iter_mut().zip(&mut self.programs).enumerate()
        {
            if due || known.generation != program.generation {
                let run = if is_there(program) { self.meter.seconds(slot, now) } else { None };
                (known.generation, known.run) = (program.generation, run);
            }
            program.cpu_seconds = known.with(program);
        }
    }
}

impl Known {
    /// What all runs have used; `None` where that of the present one cannot be known.
    fn with(&mut self, program: &Standing) -> Option<f64> {
        let run = if is_there(program) { self.run? } else { 0.0 };
        self.told = self.told.max(program.cpu_seconds? + run);
        Some((self.told * 1e6).round() / 1e6)
    }
}

/// Whether it has processes.
fn is_there(program: &Standing) -> bool {
    !matches!(program.state, State::Expected | State::New | State::Starting | State::Ended)
}
