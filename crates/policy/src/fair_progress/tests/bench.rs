//! A machine for the tests of fair progress: programs slow each other down by their memory traffic.

use cosched_core::{Exit, IpBin, Output, Program, ProgramState, Quality, Sample};

use super::*;

pub(super) const PEAK: f64 = 120.0;
pub(super) const MS: fn(u64) -> Nanos = Nanos::from_millis;

/// A lab with programs that have these traffics alone, in lines per microsecond and CPU. A program
/// with much traffic is slowed down in proportion to the others' traffic; a program with little is
/// not.
pub(super) struct Bench {
    pub(super) measured: Measured,
    pub(super) lab: Lab<FairProgress>,
    pub(super) traffic: Vec<f64>,
    /// Seconds alone of what each program has done.
    pub(super) done: Vec<f64>,
    /// The slots of the programs that ran, for each quantum.
    pub(super) ran: Vec<Vec<u16>>,
    /// How long each has run in the present quantum up to now.
    pub(super) early: Vec<Nanos>,
}

/// What is measured of programs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Measured {
    Counters,
    /// This many ticks in a second alone.
    Ticks(f64),
    Nothing,
}

impl Bench {
    pub(super) fn new(
        fair: FairOptions,
        cpus: u16,
        programs: Vec<Program>,
        traffic: &[f64],
    ) -> Bench {
        let options = Options { fair, slowdowns: None, ..options() };
        let lab = Lab::new(FairProgress::new(&options), cpus, programs);
        let measured = Measured::Counters;
        Bench {
            measured,
            lab,
            traffic: traffic.to_vec(),
            done: vec![0.0; traffic.len()],
            ran: Vec::new(),
            early: vec![Nanos::ZERO; traffic.len()],
        }
    }

    /// Lets a quantum go by, and reads at its end.
    pub(super) fn quantum(&mut self) {
        let Some(end) = self.lab.next_wake() else { return };
        let (now, running) = (self.lab.scene.now, self.lab.running());
        let length = end - now;
        let cpus = |slot: u16| self.lab.scene.programs[usize::from(slot)].thread_count;
        let of = |slot: u16| self.traffic[usize::from(slot)] * f64::from(cpus(slot));
        let all: f64 = running.iter().map(|slot| of(*slot)).sum();
        let (mut samples, mut ips) = (Vec::new(), Vec::new());
        for id in self.lab.scene.programs.iter().map(|program| program.id) {
            let slot = id.slot;
            let empty = Sample { quality: Quality::Exact, ..Sample::empty(id, now, end) };
            if self.lab.scene.programs[usize::from(slot)].state == ProgramState::StoppedByOther {
                samples.push(empty);
                continue;
            }
            if !running.contains(&slot) {
                samples.push(Sample { frozen: length, ..empty });
                continue;
            }
            let length = length + std::mem::take(&mut self.early[usize::from(slot)]);
            let empty = Sample { from: end - length, ..empty };
            let others = if of(slot) < 0.04 * PEAK { 0.0 } else { all - of(slot) };
            let speed = 1.0 / (1.0 + others / PEAK);
            let done = &mut self.done[usize::from(slot)];
            let before = *done;
            *done += length.as_secs_f64() * speed;
            let ticks = |rate: f64| (*done * rate) as u64 - (before * rate) as u64;
            let work = length.0 as f64 * speed;
            let bytes = work * of(slot) / 1e3 * 64.0;
            let empty = Sample { on_cpu: length * u64::from(cpus(slot)), ..empty };
            samples.push(match self.measured {
                Measured::Counters => Sample {
                    instructions: Some((work * f64::from(cpus(slot))) as u64),
                    memory_bytes: Some(bytes as u64),
                    ..empty
                },
                Measured::Ticks(rate) => Sample { progress: Some(ticks(rate)), ..empty },
                Measured::Nothing => empty,
            });
            ips.push(IpBin { program: id, block: u64::from(slot), count: 100 });
        }
        (self.lab.scene.samples, self.lab.scene.ips) = (samples, ips);
        self.lab.wake_reading();
        self.ran.push(running);
    }

    /// Lets time pass within the quantum.
    pub(super) fn pass(&mut self, span: Nanos) {
        for slot in self.lab.running() {
            self.early[usize::from(slot)] += span;
        }
        self.lab.pass(span);
    }

    /// A program ends now, and runs once more.
    pub(super) fn repeat(&mut self, slot: u16) {
        let ran = std::mem::take(&mut self.early[usize::from(slot)]);
        self.done[usize::from(slot)] += ran.as_secs_f64();
        let program = &mut self.lab.scene.programs[usize::from(slot)];
        let before = program.id;
        let id = before.next();
        let now = Some(self.lab.scene.now);
        *program = Program {
            id,
            waiting_since: now,
            arrived: self.lab.scene.now,
            ..self::program(slot, 1)
        };
        self.lab.tell(&[Cause::Exited(before, Exit::Code(0)), Cause::Arrived(id)]);
    }

    pub(super) fn quanta(&mut self, count: usize) {
        (0..count).for_each(|_| self.quantum());
    }

    /// The most that any program has done over the least.
    pub(super) fn unfairness(&self) -> f64 {
        let most = self.done.iter().copied().fold(0.0, f64::max);
        most / self.done.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// How many of the quanta in `ran` this program had.
    pub(super) fn turns(&self, slot: u16) -> usize {
        self.ran.iter().filter(|ran| ran.contains(&slot)).count()
    }

    /// What the policy knows of the progress of a program that is in no group.
    pub(super) fn progress(&self, slot: u16) -> f64 {
        let mut one = unit(slot, 1, None);
        one.members[0].id = self.lab.scene.programs[usize::from(slot)].id;
        self.lab.policy.known.progress(&one)
    }

    pub(super) fn is_training(&self) -> bool {
        let trains = |(_, output): &(_, Output)| matches!(output, Output::Trained { .. });
        self.lab.plan.outputs.iter().any(trains)
    }
}

pub(super) fn singles(count: u16) -> Vec<Program> {
    (0..count).map(|slot| program(slot, 1)).collect()
}

pub(super) fn fair(training_limit: Option<f64>) -> FairOptions {
    FairOptions { training_limit, peak: Some(PEAK), ..FairOptions::default() }
}

pub(super) const MIXED: [f64; 8] = [60.0, 50.0, 40.0, 30.0, 2.0, 1.0, 0.0, 0.0];
