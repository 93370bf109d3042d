//! Models as they are written down: the `[program.model]` table of a workload file.
//!
//! It describes a program by its phases, one after another; each is a loop of the same steps:
//! thread 0 does the serial part alone, then all threads compute their shares in so many parts with a barrier after
//! each, entering critical sections now and then; then they sleep. Or a phase is a [pipeline](super::pipeline). Before
//! the first phase, thread 0 may be alone for a while, and then make the others.
//!
//! In a malleable program the parallel part of each phase is a [region](crate::region): it asks for threads, and those that it
//! gets share its instructions. With fewer threads there are fewer critical sections, and longer ones: as many instructions
//! under the lock as with all.

use cosched_core::Nanos;
use serde::Deserialize;

use super::pipeline::Pipeline;
use super::{AtBarrier, Mix, Model, Op};

/// Why a model cannot be used: the key and what is wrong with it.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// A key is missing, unknown, or of the wrong type.
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    /// A value makes no sense.
    #[error("{key} is {found}, but must be {wanted}")]
    Value {
        /// The key.
        key: &'static str,
        /// Its value.
        found: String,
        /// What would be right.
        wanted: &'static str,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    /// How long a waiting thread spins: a time, or "forever".
    #[serde(default = "no_time")]
    spin: String,
    /// How it waits at a barrier: "spin" or "donate".
    barrier: Option<String>,
    /// How long a thread spins for a lock, only while its holder is on a CPU.
    adaptive: Option<String>,
    #[serde(default)]
    imbalance: f64,
    /// Whether it asks for threads at the beginning of each parallel part.
    #[serde(default)]
    malleable: bool,
    /// How often all phases are gone through.
    #[serde(default = "once")]
    repeat: u32,
    /// What thread 0 does before it makes the others, a cycle each; if not said, all are there from the beginning.
    startup_instructions: Option<f64>,
    phase: Vec<Phase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Phase {
    #[serde(default = "once")]
    repeat: u32,
    /// How many threads a malleable program asks for; all of its own, if not said.
    threads: Option<u16>,
    /// Of all threads together, each time.
    #[serde(default)]
    instructions: f64,
    /// The share of them that one thread does alone.
    #[serde(default)]
    serial: f64,
    /// How many barriers the parallel part has.
    #[serde(default)]
    barriers: u32,
    #[serde(default = "one")]
    cycles_per_instruction: f64,
    #[serde(default)]
    misses_per_kilo_instruction: f64,
    /// Without any cache; the same as with all of it, if not said.
    misses_without_cache: Option<f64>,
    #[serde(default)]
    footprint_mib: f64,
    #[serde(default = "one")]
    misses_in_flight: f64,
    critical: Option<Critical>,
    /// Instead of instructions.
    pipeline: Option<Pipeline>,
    #[serde(default = "no_time")]
    sleep: String,
}

/// Critical sections, all under one lock; another may be nested in it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Critical {
    /// How many each thread enters, each time.
    sections: u32,
    /// Inside each.
    instructions: f64,
    /// Of these, under a second lock, taken while the first is held.
    #[serde(default)]
    nested: f64,
    /// Cache lines of the data that the first lock guards: they come along with it.
    #[serde(default)]
    lines: u32,
}

/// With a sleep that never ends, neither does a run: policies that take turns always have another one to give.
const LONGEST_SLEEP: Nanos = Nanos::from_secs(24 * 3600);

fn once() -> u32 {
    1
}

fn one() -> f64 {
    1.0
}

fn no_time() -> String {
    "0s".to_owned()
}

impl Model {
    /// Reads a model for a program of so many threads.
    ///
    /// # Errors
    /// When a key is missing or unknown, or a value makes no sense.
    pub fn read(table: &toml::Table, threads: u16) -> Result<Model, ModelError> {
        let read: Description = table.clone().try_into()?;
        check("imbalance", read.imbalance, "from 0 to 1", |x| (0.0..=1.0).contains(&x))?;
        check("repeat", f64::from(read.repeat), "1 or more", |x| x >= 1.0)?;
        let mut writer = Writer { threads, malleable: read.malleable, ..Writer::default() };
        if let Some(instructions) = read.startup_instructions {
            writer.startup(instructions)?;
        }
        let first = writer.script.len() as u32;
        for phase in &read.phase {
            writer.phase(phase)?;
        }
        writer.repeat(first, read.repeat, 0);
        let Writer { script, mixes, barriers, queues, .. } = writer;
        Ok(Model {
            threads,
            script,
            mixes,
            imbalance: read.imbalance,
            spin: time("spin", &read.spin)?,
            barrier: read.barrier.map(|text| at_barrier(&text)).transpose()?,
            barriers: u16::from(barriers),
            adaptive: read.adaptive.map(|text| time("adaptive", &text)).transpose()?,
            locks: 2,
            queues,
        })
    }
}

/// A script in the making.
#[derive(Default)]
pub(super) struct Writer {
    pub(super) threads: u16,
    malleable: bool,
    pub(super) script: Vec<Op>,
    mixes: Vec<Mix>,
    barriers: bool,
    pub(super) queues: Vec<u32>,
}

impl Writer {
    /// Thread 0 alone, until it makes the others.
    fn startup(&mut self, instructions: f64) -> Result<(), ModelError> {
        check("startup_instructions", instructions, "from 0 to 1e18", |x| {
            (0.0..=1e18).contains(&x)
        })?;
        let mix = self.mixes.len() as u16;
        self.mixes.push(Mix::computing(1.0));
        self.script.extend([Op::Compute { instructions, mix }, Op::Create]);
        Ok(())
    }

    fn phase(&mut self, phase: &Phase) -> Result<(), ModelError> {
        check("phase.repeat", f64::from(phase.repeat), "1 or more", |x| x >= 1.0)?;
        check("phase.instructions", phase.instructions, "from 0 to 1e18", |x| {
            (0.0..=1e18).contains(&x)
        })?;
        check("phase.serial", phase.serial, "from 0 to 1", |x| (0.0..=1.0).contains(&x))?;
        check(
            "phase.cycles_per_instruction",
            phase.cycles_per_instruction,
            "from 1e-6 to 10000",
            |x| (1e-6..=1e4).contains(&x),
        )?;
        check("phase.misses_in_flight", phase.misses_in_flight, "from 0.01 to 1e6", |x| {
            (1e-2..=1e6).contains(&x)
        })?;
        check("phase.footprint_mib", phase.footprint_mib, "from 0 to 1e9", |x| {
            (0.0..=1e9).contains(&x)
        })?;
        let misses = phase.misses_per_kilo_instruction;
        let without = phase.misses_without_cache.unwrap_or(misses);
        check("phase.misses_per_kilo_instruction", misses, "from 0 to 10000", |x| {
            (0.0..=1e4).contains(&x)
        })?;
        check(
            "phase.misses_without_cache",
            without,
            "at least misses_per_kilo_instruction, and at most 10000",
            |x| x >= misses && x <= 1e4,
        )?;
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
        let asked = self.asked(phase)?;
        let share = (phase.instructions - serial) / f64::from(self.threads);
        let parts = phase.barriers.max(1);
        if let Some(pipeline) = &phase.pipeline {
            check("phase.instructions", phase.instructions, "left out beside a pipeline", |x| {
                x == 0.0
            })?;
            pipeline.write(self, mix)?;
            self.barrier();
        }
        let region = (self.malleable && share > 0.0).then_some(self.script.len());
        self.script.extend(region.map(|_| Op::Region { threads: asked, next: 0 }));
        let part = self.script.len() as u32;
        self.compute(share / f64::from(parts), mix, phase.critical.as_ref(), parts)?;
        match (phase.barriers, region) {
            (0, _) => {}
            (_, None) => self.barrier(),
            (_, Some(_)) => self.script.push(Op::Meet),
        }
        self.repeat(part, parts, 2);
        if let Some(at) = region {
            let next = (self.script.len() - at - 1) as u16;
            self.script[at] = Op::Region { threads: asked, next };
        }
        let sleep = time("phase.sleep", &phase.sleep)?;
        if sleep > LONGEST_SLEEP {
            let (key, found) = ("phase.sleep", format!("\"{}\"", phase.sleep));
            return Err(ModelError::Value { key, found, wanted: "at most 1 day" });
        }
        if sleep > Nanos::ZERO {
            self.script.push(Op::Sleep(sleep));
        }
        self.repeat(start, phase.repeat, 1);
        Ok(())
    }

    /// How many threads a phase asks for, where it can.
    fn asked(&self, phase: &Phase) -> Result<u16, ModelError> {
        let Some(asked) = phase.threads else { return Ok(self.threads) };
        let (key, malleable) = ("phase.threads", self.malleable && phase.pipeline.is_none());
        let wanted = "left out where the program is not malleable, and in pipelines";
        check(key, f64::from(asked), wanted, |_| malleable)?;
        let wanted = "from 1 to the number of the program's threads";
        check(key, f64::from(asked), wanted, |_| (1..=self.threads).contains(&asked))?;
        Ok(asked)
    }

    /// What each thread computes, where all of them do; in a region, what they share.
    fn computing(&self, instructions: f64, mix: u16) -> Op {
        let all = instructions * f64::from(self.threads);
        match self.malleable {
            true => Op::Share { instructions: all, mix },
            false => Op::Compute { instructions, mix },
        }
    }

    /// A thread's share of a part, with its share of the critical sections.
    fn compute(
        &mut self,
        instructions: f64,
        mix: u16,
        critical: Option<&Critical>,
        parts: u32,
    ) -> Result<(), ModelError> {
        let Some(critical) = critical.filter(|critical| critical.sections > 0) else {
            if instructions > 0.0 {
                self.script.push(self.computing(instructions, mix));
            }
            return Ok(());
        };
        let sections = critical.sections.div_ceil(parts);
        let inside = critical.instructions * f64::from(sections);
        check(
            "phase.critical.instructions",
            critical.instructions,
            "above 0, and in all sections less than a thread computes in the phase",
            |x| x > 0.0 && inside < instructions,
        )?;
        let from = self.script.len() as u32;
        let outside = (instructions - inside) / f64::from(sections);
        let compute = |instructions| self.computing(instructions, mix);
        let nested = critical.nested;
        check("phase.critical.nested", nested, "0 or more, and less than its instructions", |x| {
            (0.0..critical.instructions).contains(&x)
        })?;
        check("phase.critical.lines", f64::from(critical.lines), "at most 1000000", |x| x <= 1e6)?;
        let mut body = vec![compute(outside), Op::Acquire(0)];
        if critical.lines > 0 {
            body.push(Op::Fetch { lock: 0, lines: critical.lines });
        }
        body.push(compute(critical.instructions - nested));
        if nested > 0.0 {
            body.extend([Op::Acquire(1), compute(nested), Op::Release(1)]);
        }
        self.script.extend(body);
        self.script.push(Op::Release(0));
        self.repeat(from, sections, 3);
        Ok(())
    }

    fn barrier(&mut self) {
        self.barriers = true;
        self.script.push(Op::Barrier(0));
    }

    pub(super) fn repeat(&mut self, from: u32, times: u32, counter: u8) {
        if times > 1 {
            self.script.push(Op::Repeat { from, times, counter });
        }
    }
}

pub(super) fn check(
    key: &'static str,
    value: f64,
    wanted: &'static str,
    right: impl Fn(f64) -> bool,
) -> Result<(), ModelError> {
    match right(value) {
        true => Ok(()),
        false => {
            let found = match value.abs() {
                0.0 | 1e-4..1e16 => value.to_string(),
                _ => format!("{value:e}"),
            };
            Err(ModelError::Value { key, found, wanted })
        }
    }
}

fn time(key: &'static str, text: &str) -> Result<Nanos, ModelError> {
    if text == "forever" {
        return Ok(Nanos::NEVER);
    }
    humantime::parse_duration(text).map(Nanos::from).map_err(|_| ModelError::Value {
        key,
        found: format!("\"{text}\""),
        wanted: "a time with its unit, such as \"300us\"",
    })
}

fn at_barrier(text: &str) -> Result<AtBarrier, ModelError> {
    match text {
        "spin" => Ok(AtBarrier::Spin),
        "donate" => Ok(AtBarrier::Donate),
        _ => Err(ModelError::Value {
            key: "barrier",
            found: format!("\"{text}\""),
            wanted: "\"spin\" (as long as `spin` says, then sleep) or \"donate\"",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Model, ModelError> {
        Model::read(&text.parse().unwrap(), 4)
    }

    #[test]
    fn phases_become_loops_of_operations() {
        let text = "spin = '300us'\nimbalance = 0.1\nrepeat = 2\n\
            [[phase]]\ninstructions = 1e9\nserial = 0.2\nbarriers = 10\nmisses_per_kilo_instruction = 3\n\
            [[phase]]\nrepeat = 5\nsleep = '1ms'";
        let model = read(text).unwrap();
        assert_eq!(model.spin, Nanos::from_micros(300));
        let expected = [
            Op::Only { threads: (0, 1), next: 1 },
            Op::Compute { instructions: 2e8, mix: 0 },
            Op::Barrier(0),
            Op::Compute { instructions: 2e7, mix: 0 },
            Op::Barrier(0),
            Op::Repeat { from: 3, times: 10, counter: 2 },
            Op::Sleep(Nanos::from_millis(1)),
            Op::Repeat { from: 6, times: 5, counter: 1 },
            Op::Repeat { from: 0, times: 2, counter: 0 },
        ];
        assert_eq!(model.script, expected);
        assert_eq!(model.mixes[0].misses_without_cache, 0.003);
    }

    #[test]
    fn how_threads_wait_at_barriers_can_be_said() {
        let barrier =
            |text: &str| read(&format!("{text}\n[[phase]]\ninstructions = 9")).unwrap().barrier;
        assert_eq!(barrier(""), None);
        assert_eq!(barrier("barrier = 'spin'"), Some(AtBarrier::Spin));
        assert_eq!(barrier("barrier = 'donate'"), Some(AtBarrier::Donate));
    }

    #[test]
    fn critical_sections_take_their_part_of_a_thread_s_instructions() {
        let text =
            "[[phase]]\ninstructions = 4000\ncritical = { sections = 2, instructions = 100 }";
        let model = read(text).unwrap();
        assert_eq!(model.script[0], Op::Compute { instructions: 400.0, mix: 0 });
        assert_eq!(model.script[2], Op::Compute { instructions: 100.0, mix: 0 });
        assert_eq!(model.script[4], Op::Repeat { from: 0, times: 2, counter: 3 });
    }

    #[test]
    fn the_data_that_a_lock_guards_comes_after_the_lock() {
        let text = "[[phase]]\ninstructions = 4000\ncritical = { sections = 2, instructions = 100, lines = 6 }";
        let model = read(text).unwrap();
        assert_eq!(model.script[1..3], [Op::Acquire(0), Op::Fetch { lock: 0, lines: 6 }]);
        assert_eq!(model.script[5], Op::Repeat { from: 0, times: 2, counter: 3 });
        let many = read(&text.replace("= 6", "= 1000001")).unwrap_err().to_string();
        assert!(many.contains("phase.critical.lines is 1000001"), "{many}");
    }

    #[test]
    fn threads_can_be_made_after_a_start_that_is_not_repeated() {
        let text = "repeat = 3\nstartup_instructions = 5e5\n[[phase]]\ninstructions = 4000";
        let model = read(text).unwrap();
        let expected = [
            Op::Compute { instructions: 5e5, mix: 0 },
            Op::Create,
            Op::Compute { instructions: 1000.0, mix: 1 },
            Op::Repeat { from: 2, times: 3, counter: 0 },
        ];
        assert_eq!(model.script, expected);
        assert_eq!(model.mixes[0], Mix::computing(1.0));
    }

    #[test]
    fn the_parallel_part_of_a_malleable_phase_is_a_region_that_asks_for_threads() {
        let text = "malleable = true\n[[phase]]\ninstructions = 1e9\nserial = 0.2\nbarriers = 10\n\
            [[phase]]\nthreads = 2\nrepeat = 3\ninstructions = 4000";
        let model = read(text).unwrap();
        let expected = [
            Op::Only { threads: (0, 1), next: 1 },
            Op::Compute { instructions: 2e8, mix: 0 },
            Op::Barrier(0),
            Op::Region { threads: 4, next: 3 },
            Op::Share { instructions: 8e7, mix: 0 },
            Op::Meet,
            Op::Repeat { from: 4, times: 10, counter: 2 },
            Op::Region { threads: 2, next: 1 },
            Op::Share { instructions: 4000.0, mix: 1 },
            Op::Repeat { from: 7, times: 3, counter: 1 },
        ];
        assert_eq!(model.script, expected);
        assert!(model.is_malleable());
        let told = |text: &str| read(text).unwrap_err().to_string();
        assert!(told("[[phase]]\nthreads = 2\ninstructions = 9").contains("not malleable"));
        let many = "malleable = true\n[[phase]]\nthreads = 5\ninstructions = 9";
        assert!(told(many).contains("phase.threads is 5"), "{}", told(many));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_key_and_what_would_be_right() {
        let told = |text: &str| read(text).unwrap_err().to_string();
        assert!(told("").contains("phase"));
        assert!(told("[[phase]]\ninstruction = 5").contains("instruction"));
        assert_eq!(
            told("[[phase]]\ninstructions = 5\nserial = 2.0"),
            "phase.serial is 2, but must be from 0 to 1"
        );
        assert_eq!(
            told("startup_instructions = -1\n[[phase]]"),
            "startup_instructions is -1, but must be from 0 to 1e18"
        );
        assert_eq!(
            told("barrier = 'give'\n[[phase]]"),
            "barrier is \"give\", but must be \"spin\" (as long as `spin` says, then sleep) or \"donate\""
        );
        assert!(told("spin = 'long'\n[[phase]]").contains("such as \"300us\""));
        assert!(
            told("[[phase]]\nmisses_per_kilo_instruction = 3\nmisses_without_cache = 1")
                .contains("at least misses_per_kilo_instruction")
        );
        assert_eq!(
            told("[[phase]]\nsleep = 'forever'"),
            "phase.sleep is \"forever\", but must be at most 1 day"
        );
        assert!(told("[[phase]]\nsleep = '400years'").contains("at most 1 day"));
        let endless = "misses_per_kilo_instruction = 1e300\nmisses_in_flight = 1e-300";
        assert!(told(&format!("[[phase]]\n{endless}")).contains("misses_in_flight is 1e-300"));
        assert!(told("[[phase]]\nmisses_per_kilo_instruction = 1e300").contains("from 0 to 10000"));
        assert!(told("[[phase]]\nmisses_per_kilo_instruction = inf").contains("is inf"));
        assert!(told("[[phase]]\nmisses_without_cache = 1e300").contains("at most 10000"));
        assert!(told("[[phase]]\ncycles_per_instruction = nan").contains("is NaN"));
        assert!(told("[[phase]]\nfootprint_mib = 1e300").contains("footprint_mib is 1e300"));
        let critical = "critical = { sections = 2, instructions = 900 }";
        assert!(told(&format!("[[phase]]\ninstructions = 4000\n{critical}")).contains("critical"));
    }
}
