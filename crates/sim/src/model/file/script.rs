//! Scripts from model files: operations that threads execute, and the mixes of what they compute.

use cosched_core::Nanos;

use super::mistakes::ModelMistakes;
use super::{Critical, LONGEST_SLEEP, ModelPhase};
use crate::model::{Mix, Op};

#[derive(Default)]
pub(in crate::model) struct ScriptWriter {
    pub(in crate::model) threads: u16,
    pub(super) malleable: bool,
    pub(in crate::model) script: Vec<Op>,
    pub(super) mixes: Vec<Mix>,
    pub(super) barriers: bool,
    pub(in crate::model) queues: Vec<u32>,
    pub(in crate::model) mistakes: ModelMistakes,
}

impl ScriptWriter {
    /// Thread 0 alone, until it makes the others.
    pub(super) fn startup(&mut self, instructions: f64) {
        self.mistakes.check("startup_instructions", instructions, "from 0 to 1e18", |x| {
            (0.0..=1e18).contains(&x)
        });
        let mix = self.mixes.len() as u16;
        self.mixes.push(Mix::computing(1.0));
        self.script.extend([Op::Compute { instructions, mix }, Op::Create]);
    }

    pub(super) fn phase(&mut self, phase: &ModelPhase) {
        let misses = phase.misses_per_kilo_instruction;
        let without = phase.misses_without_cache.unwrap_or(misses);
        let cycles = phase.cycles_per_instruction;
        let least = "at least misses_per_kilo_instruction, and at most 10000";
        let values = [
            ("phase.repeat", f64::from(phase.repeat), "1 or more", 1.0..=f64::INFINITY),
            ("phase.instructions", phase.instructions, "from 0 to 1e18", 0.0..=1e18),
            ("phase.serial", phase.serial, "from 0 to 1", 0.0..=1.0),
            ("phase.cycles_per_instruction", cycles, "from 1e-6 to 10000", 1e-6..=1e4),
            ("phase.misses_in_flight", phase.misses_in_flight, "from 0.01 to 1e6", 1e-2..=1e6),
            ("phase.footprint_mib", phase.footprint_mib, "from 0 to 1e9", 0.0..=1e9),
            ("phase.misses_per_kilo_instruction", misses, "from 0 to 10000", 0.0..=1e4),
            ("phase.misses_without_cache", without, least, misses..=1e4),
        ];
        for (key, value, allowed, range) in values {
            self.mistakes.check(key, value, allowed, |x| range.contains(&x));
        }
        let mix = self.mixes.len() as u16;
        self.mixes.push(Mix {
            base_cpi: phase.cycles_per_instruction,
            misses: misses / 1000.0,
            misses_without_cache: without / 1000.0,
            footprint: phase.footprint_mib * 1024.0 * 1024.0,
            parallelism: phase.misses_in_flight,
        });

        let start = self.script.len() as u32;
        let serial = phase.serial * phase.instructions;
        if serial > 0.0 {
            self.script.push(Op::Only { threads: (0, 1), next: 1 });
            self.script.push(Op::Compute { instructions: serial, mix });
            self.barrier();
        }
        let requested = self.requested(phase);
        let share = (phase.instructions - serial) / f64::from(self.threads);
        let parts = phase.barriers.max(1);
        if let Some(pipeline) = &phase.pipeline {
            let allowed = "left out beside a pipeline";
            self.mistakes.check("phase.instructions", phase.instructions, allowed, |x| x == 0.0);
            pipeline.write(self, mix);
            self.barrier();
        }
        let region = (self.malleable && share > 0.0).then_some(self.script.len());
        self.script.extend(region.map(|_| Op::Region { threads: requested, next: 0 }));
        let part = self.script.len() as u32;
        self.compute(share / f64::from(parts), mix, phase.critical.as_ref(), parts);
        match (phase.barriers, region) {
            (0, _) => {}
            (_, None) => self.barrier(),
            (_, Some(_)) => self.script.push(Op::TeamBarrier),
        }
        self.repeat(part, parts, 2);
        if let Some(at) = region {
            let next = (self.script.len() - at - 1) as u16;
            self.script[at] = Op::Region { threads: requested, next };
        }
        let sleep = self.mistakes.time("phase.sleep", &phase.sleep);
        if sleep > LONGEST_SLEEP {
            self.mistakes.add("phase.sleep", &format!("\"{}\"", phase.sleep), "at most 1 day");
        }
        if sleep > Nanos::ZERO {
            self.script.push(Op::Sleep(sleep));
        }
        self.repeat(start, phase.repeat, 1);
    }

    /// How many threads a phase requests, where it can.
    fn requested(&mut self, phase: &ModelPhase) -> u16 {
        let Some(requested) = phase.threads else { return self.threads };
        let (key, malleable) = ("phase.threads", self.malleable && phase.pipeline.is_none());
        let allowed = "left out where the program is not malleable, and in pipelines";
        self.mistakes.check_fit(key, f64::from(requested), allowed, |_| malleable);
        let (allowed, all) = ("from 1 to the number of the program's threads", self.threads);
        self.mistakes
            .check_fit(key, f64::from(requested), allowed, |_| (1..=all).contains(&requested));
        requested
    }

    /// The instructions of each thread, where all of them compute; in a region, those that they
    /// share.
    fn computing(&self, instructions: f64, mix: u16) -> Op {
        let all = instructions * f64::from(self.threads);
        match self.malleable {
            true => Op::Share { instructions: all, mix },
            false => Op::Compute { instructions, mix },
        }
    }

    /// A thread's share of a part, with its share of the critical sections.
    fn compute(&mut self, instructions: f64, mix: u16, critical: Option<&Critical>, parts: u32) {
        let Some(critical) = critical.filter(|critical| critical.sections != Some(0)) else {
            if instructions > 0.0 {
                self.script.push(self.computing(instructions, mix));
            }
            return;
        };
        let sections = self.mistakes.required(
            "phase.critical.sections",
            critical.sections,
            "how many critical sections each thread enters",
        );
        let held = self.mistakes.required(
            "phase.critical.instructions",
            critical.instructions,
            "how many instructions are in each critical section",
        );
        let (nested, lines) = (critical.nested, f64::from(critical.lines));
        self.mistakes.check("phase.critical.lines", lines, "at most 1000000", |x| x <= 1e6);
        let (Some(sections), Some(held)) = (sections, held) else { return };
        let sections = sections.div_ceil(parts);
        let inside = held * f64::from(sections);
        let allowed = "above 0, and in all sections less than a thread computes in the phase";
        self.mistakes.check_fit("phase.critical.instructions", held, allowed, |x| {
            x > 0.0 && inside < instructions
        });
        let allowed = "0 or more, and less than its instructions";
        self.mistakes
            .check_fit("phase.critical.nested", nested, allowed, |x| (0.0..held).contains(&x));
        let from = self.script.len() as u32;
        let outside = (instructions - inside) / f64::from(sections);
        let compute = |instructions| self.computing(instructions, mix);
        let mut body = vec![compute(outside), Op::Acquire(0)];
        if critical.lines > 0 {
            body.push(Op::Fetch { lock: 0, lines: critical.lines });
        }
        body.push(compute(held - nested));
        if nested > 0.0 {
            body.extend([Op::Acquire(1), compute(nested), Op::Release(1)]);
        }
        self.script.extend(body);
        self.script.push(Op::Release(0));
        self.repeat(from, sections, 3);
    }

    fn barrier(&mut self) {
        self.barriers = true;
        self.script.push(Op::Barrier(0));
    }

    pub(in crate::model) fn repeat(&mut self, from: u32, times: u32, counter: u8) {
        if times > 1 {
            self.script.push(Op::Repeat { from, times, counter });
        }
    }
}
