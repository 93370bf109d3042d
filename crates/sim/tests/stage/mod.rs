//! A simulated machine without an engine: programs arrive at given times, and a table says which
//! thread ran when.

#![allow(dead_code, reason = "each test uses its part")]

use cosched_core::{
    Arena, Event, Happening, Machine, Measure, Nanos, Observe, ProgramId, Sample, Settings, Step,
};
use cosched_sim::hardware::topology;
use cosched_sim::model::{Mix, Op};
use cosched_sim::{Costs, Hardware, Kernel, Model, Sim, SimulatedJob};

/// Steps that take no time.
pub(crate) const FREE: Costs =
    Costs { start: Nanos::ZERO, join: Nanos::ZERO, freeze: Nanos::ZERO, thaw: Nanos::ZERO };

/// A machine of 1 GHz on which nothing costs time but computing.
pub(crate) fn ideal(shape: &str) -> Hardware {
    let plain = "gigahertz=1 smt_share=1 switch_nanos=0 wake_nanos=0 signal_nanos=0,0,0";
    let hardware = Hardware::words(&format!("{shape} {plain}")).unwrap();
    assert_eq!(hardware.topology, topology(shape).unwrap());
    hardware
}

/// Instructions that take this many microseconds at 1 GHz.
pub(crate) fn micros(time: u64) -> Op {
    Op::Compute { instructions: 1e3 * time as f64, mix: 0 }
}

/// A program of threads that all do the same.
pub(crate) fn program(threads: u16, script: Vec<Op>) -> Model {
    Model { script, ..Model::parallel(threads, 0.0, Mix::computing(1.0)) }
}

/// One thread that only computes.
pub(crate) fn computes(millis: u64) -> Model {
    program(1, vec![micros(1000 * millis)])
}

/// A machine and the events on it.
pub(crate) struct Stage {
    pub(crate) sim: Sim,
    /// When each program arrives, and with which settings; in ascending order.
    arrivals: std::collections::VecDeque<(Nanos, ProgramId, Settings)>,
    pub(crate) events: Vec<Event>,
}

impl Stage {
    /// A stage on which program `i` arrives at its time.
    pub(crate) fn new(hardware: Hardware, kernel: Kernel, programs: Vec<(u64, Model)>) -> Stage {
        Stage::with(
            hardware,
            kernel,
            programs.into_iter().map(|(at, m)| (at, m, Settings::default())),
            1,
        )
    }

    /// A stage with programs that have settings. Times are microseconds.
    pub(crate) fn with(
        hardware: Hardware,
        kernel: Kernel,
        programs: impl IntoIterator<Item = (u64, Model, Settings)>,
        seed: u64,
    ) -> Stage {
        let mut jobs = Vec::new();
        let mut arrivals = Vec::new();
        for (slot, (at, model, settings)) in programs.into_iter().enumerate() {
            arrivals.push((Nanos::from_micros(at), ProgramId::first(slot as u16), settings));
            jobs.push(SimulatedJob { model, weight: 1.0 });
        }
        arrivals.sort_by_key(|(at, id, _)| (*at, *id));
        let mut sim = Sim::new(hardware, kernel, jobs, FREE, seed);
        sim.record();
        Stage { sim, arrivals: arrivals.into(), events: Vec::new() }
    }

    /// Advances to a time, and returns the events.
    pub(crate) fn until(&mut self, at: Nanos) {
        while self.sim.now() < at {
            while let Some((_, id, settings)) =
                self.arrivals.front().filter(|(when, ..)| *when <= self.sim.now()).copied()
            {
                self.sim.submit(&[Step::Start(id, settings)]).unwrap();
                self.arrivals.pop_front();
            }
            let next = self.arrivals.front().map_or(at, |(when, ..)| (*when).min(at));
            self.sim.wait(next, &mut self.events).unwrap();
        }
    }

    /// Takes steps now.
    pub(crate) fn submit(&mut self, steps: &[Step]) {
        self.sim.submit(steps).unwrap();
    }

    /// When each program ended, microseconds.
    pub(crate) fn ends(&self) -> Vec<(u16, u64)> {
        let end = |event: &Event| match event.what {
            Happening::Exited(id, ..) => Some((id.slot, event.at.0 / 1000)),
            _ => None,
        };
        self.events.iter().filter_map(end).collect()
    }

    /// Which thread ran on a CPU from when to when (microseconds): programs are letters, threads
    /// numbers where there are several.
    pub(crate) fn table(&self, cpu: u16) -> String {
        let mut rows: Vec<String> = Vec::new();
        let mut last: Option<(Nanos, (ProgramId, u16))> = None;
        let micros = |at: Nanos| format!("{}", at.0 as f64 / 1000.0);
        for switch in self.sim.switches().iter().filter(|switch| switch.cpu == cpu) {
            if let Some((from, (id, thread))) = last {
                let name = char::from(b'A' + id.slot as u8);
                let thread = if thread > 0 { thread.to_string() } else { String::new() };
                rows.push(format!("{name}{thread} {}-{}", micros(from), micros(switch.at)));
            }
            last = switch.to.map(|to| (switch.at, to));
        }
        rows.join(", ")
    }

    /// What each program did since the last reading.
    pub(crate) fn read(&mut self, programs: u16, measures: &[Measure]) -> Vec<Sample> {
        let what: Vec<Observe> = (0..programs)
            .flat_map(|slot| {
                let program = Some(ProgramId::first(slot));
                measures.iter().map(move |measure| Observe {
                    program,
                    measure: *measure,
                    period: Nanos::NEVER,
                })
            })
            .collect();
        let mut arena = Arena::default();
        self.sim.read(&what, &mut arena).unwrap();
        arena.samples
    }

    /// The CPU time of each program in a span of time (milliseconds), as a share of one CPU.
    pub(crate) fn shares(&mut self, programs: u16, from: u64, to: u64) -> Vec<f64> {
        self.until(Nanos::from_millis(from));
        self.read(programs, &[Measure::CpuTime]);
        self.until(Nanos::from_millis(to));
        let samples = self.read(programs, &[Measure::CpuTime]);
        let passed = (to - from) as f64 * 1e6;
        let all = samples.iter().filter(|sample| sample.thread.is_none());
        all.map(|sample| sample.on_cpu.0 as f64 / passed).collect()
    }
}
