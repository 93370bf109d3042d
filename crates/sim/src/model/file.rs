//! The file format of models: the `[program.model]` table of a workload file.
//!
//! It describes a program by its phases, one after another. Each phase is a loop: thread 0 does the
//! serial part alone, then all threads compute their shares in several parts with a barrier after
//! each, entering critical sections now and then; then they sleep. Or a phase is a
//! [pipeline](super::pipeline). Before the first phase, thread 0 may be alone for a while, and then
//! make the others.
//!
//! In a malleable program the parallel part of each phase is a [region](crate::region): it requests
//! threads, and the threads that it gets share its instructions. With fewer threads there are fewer
//! critical sections, and longer ones: the number of instructions under the lock stays the same.

mod mistakes;
mod script;

use std::ops::RangeInclusive;

use cosched_core::{Nanos, parse_duration};
use cosched_workload::shown;
use serde::Deserialize;

use super::pipeline::Pipeline;
use super::{AtBarrier, Model};

pub use mistakes::ModelError;
use mistakes::ModelMistakes;
pub(super) use script::ScriptWriter;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelFile {
    /// How long a waiting thread spins: a time, or "forever".
    #[serde(default = "super::no_time")]
    spin: String,
    /// How it waits at a barrier: "spin" or "donate".
    barrier: Option<String>,
    /// How long a thread spins for a lock, only while its holder is on a CPU.
    adaptive: Option<String>,
    /// How often load control looks at the load, which then says whether a waiting thread spins.
    load_control: Option<String>,
    #[serde(default)]
    imbalance: f64,
    /// Whether it requests threads at the beginning of each parallel part.
    #[serde(default)]
    malleable: bool,
    /// Whether it reports its progress.
    #[serde(default)]
    progress: bool,
    /// How often all phases are repeated.
    #[serde(default = "super::once")]
    repeat: u32,
    /// Instructions of thread 0 before it makes the others, of a cycle each; by default, all
    /// threads are there from the beginning.
    startup_instructions: Option<f64>,
    #[serde(default)]
    phase: Option<Vec<ModelPhase>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelPhase {
    #[serde(default = "super::once")]
    repeat: u32,
    /// How many threads a malleable program requests; by default, all of its own.
    threads: Option<u16>,
    /// The number of all threads together, each time.
    #[serde(default)]
    instructions: f64,
    /// The part that one thread executes alone.
    #[serde(default)]
    serial: f64,
    /// How many barriers the parallel part has.
    #[serde(default)]
    barriers: u32,
    #[serde(default = "super::one")]
    cycles_per_instruction: f64,
    #[serde(default)]
    misses_per_kilo_instruction: f64,
    /// Misses without any cache; by default, as many as with all of it.
    misses_without_cache: Option<f64>,
    #[serde(default)]
    footprint_mib: f64,
    #[serde(default = "super::one")]
    misses_in_flight: f64,
    critical: Option<Critical>,
    /// Instead of instructions.
    pipeline: Option<Pipeline>,
    #[serde(default = "super::no_time")]
    sleep: String,
}

impl ModelPhase {
    /// Whether it takes no time: repetitions of it would take for ever.
    fn is_empty(&self) -> bool {
        let sections = self.critical.as_ref().map_or(Some(0), |critical| critical.sections);
        let sleeps = time(&self.sleep).is_some_and(|sleep| sleep > Nanos::ZERO);
        self.instructions == 0.0
            && self.barriers == 0
            && sections == Some(0)
            && self.pipeline.is_none()
            && !sleeps
    }
}

/// Critical sections under one lock; another may be nested in it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Critical {
    /// How many each thread enters, each time.
    sections: Option<u32>,
    /// The number inside each.
    instructions: Option<f64>,
    /// The part of these under a second lock, taken while the first is held.
    #[serde(default)]
    nested: f64,
    /// Cache lines of the data that the first lock guards: they are transferred with it.
    #[serde(default)]
    lines: u32,
}

/// A run with an endless sleep does not end either: policies that take turns always have another
/// turn to give.
const LONGEST_SLEEP: Nanos = Nanos::from_secs(24 * 3600);

impl Model {
    /// Reads a model for a program of this many threads.
    ///
    /// # Errors
    /// When there is a mistake in it: the first.
    pub fn read(table: &toml::Table, threads: u16) -> Result<Model, ModelError> {
        Model::read_all(table, threads).map_err(|mut mistakes| mistakes.swap_remove(0))
    }

    /// Reads a model for a program of this many threads.
    ///
    /// # Errors
    /// When keys are missing or unknown, or values make no sense: all of these.
    pub fn read_all(table: &toml::Table, threads: u16) -> Result<Model, Vec<ModelError>> {
        let (read, mut mistakes) = ModelMistakes::of_types(table)?;
        mistakes.check("imbalance", read.imbalance, "from 0 to 1", |x| (0.0..=1.0).contains(&x));
        mistakes.check("repeat", f64::from(read.repeat), "1 or more", |x| x >= 1.0);
        let spin = mistakes.time("spin", &read.spin);
        let barrier = read.barrier.and_then(|text| at_barrier(&text, &mut mistakes));
        let adaptive = read.adaptive.map(|text| mistakes.time("adaptive", &text));
        let load_control = read.load_control.map(|text| mistakes.time("load_control", &text));
        if let Some(often) = load_control.filter(|often| !LOOKS.contains(often)) {
            mistakes.add("load_control", &often.to_string(), "from 1us to 1h, such as \"7ms\"");
        }
        let phases = read.phase.filter(|phases| !phases.is_empty());
        let phases = mistakes.required("phase", phases, WHAT_IT_DOES).unwrap_or_default();
        let repeats_nothing = read.repeat > 1 && phases.iter().all(ModelPhase::is_empty);
        let malleable = read.malleable;
        let mut writer = ScriptWriter { threads, malleable, mistakes, ..ScriptWriter::default() };
        if let Some(instructions) = read.startup_instructions {
            writer.startup(instructions);
        }
        let first = writer.script.len() as u32;
        for (number, phase) in phases.iter().enumerate() {
            writer.mistakes.phase = number;
            writer.phase(phase);
            let repeats = repeats_nothing || phase.repeat > 1;
            writer.mistakes.check_fit("phase.instructions", 0.0, DOES_SOMETHING, |_| {
                !(repeats && phase.is_empty())
            });
        }
        writer.repeat(first, read.repeat, 0);
        let ScriptWriter { script, mixes, barriers, queues, mistakes, .. } = writer;
        mistakes.or(Model {
            threads,
            script,
            mixes,
            imbalance: read.imbalance,
            spin,
            barrier,
            tells: read.progress,
            barriers: u16::from(barriers),
            adaptive,
            load_control,
            locks: 2,
            queues,
        })
    }
}

/// How often load control may look.
const LOOKS: RangeInclusive<Nanos> = Nanos::from_micros(1)..=Nanos::from_secs(3600);

/// What is missing in a model without phases.
const WHAT_IT_DOES: &str = "what the program does: a line [[program.model.phase]], and below it a \
                            line instructions = 1e9";

const DOES_SOMETHING: &str = "more than 0, where what is repeated does nothing else";

/// A time, which may be without end.
fn time(text: &str) -> Option<Nanos> {
    match text {
        "forever" => Some(Nanos::NEVER),
        _ => parse_duration(text).map(Nanos::from),
    }
}

fn at_barrier(text: &str, mistakes: &mut ModelMistakes) -> Option<AtBarrier> {
    match text {
        "spin" => Some(AtBarrier::Spin),
        "donate" => Some(AtBarrier::Donate),
        _ => {
            let allowed = "\"spin\" (as long as `spin` says, then sleep) or \"donate\"";
            mistakes.add("barrier", &format!("\"{}\"", shown(text)), allowed);
            None
        }
    }
}

#[cfg(test)]
mod tests;
