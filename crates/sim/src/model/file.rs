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

mod script;

use cosched_core::{Nanos, parse_duration};
use cosched_workload::{brief, figure, shown};
use serde::Deserialize;

use super::pipeline::Pipeline;
use super::{AtBarrier, Model};

pub(super) use script::ScriptWriter;

/// Why a model cannot be used: the key and what is wrong with it.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// A key is missing, unknown, or of the wrong type.
    #[error("{what}")]
    Toml {
        /// The path of the key, or of the table that lacks it.
        path: String,
        /// What is wrong with it.
        what: String,
    },
    /// There is nothing that it does.
    #[error(
        "phase is missing; say what the program does: a line [[program.model.phase]], and below \
         it a line instructions = 1e9"
    )]
    NoPhase,
    /// A value makes no sense.
    #[error("{key} is {found}, but must be {allowed}")]
    Value {
        /// The key.
        key: &'static str,
        /// Its value.
        found: String,
        /// The allowed values.
        allowed: &'static str,
    },
    /// A value of a phase makes no sense.
    #[error("{why}")]
    InPhase {
        /// The path of the key.
        path: String,
        /// What is wrong.
        why: Box<ModelError>,
    },
}

impl From<toml::de::Error> for ModelError {
    /// The error of a text that is no model at all.
    fn from(error: toml::de::Error) -> ModelError {
        ModelError::Toml { path: String::new(), what: brief(error.message()) }
    }
}

impl ModelError {
    /// The path of the key in the model; that of the table around it where it is missing.
    pub fn path(&self) -> &str {
        match self {
            ModelError::NoPhase => "",
            ModelError::Toml { path, .. } | ModelError::InPhase { path, .. } => path,
            ModelError::Value { key, .. } => key,
        }
    }

    /// The same error, of this phase.
    fn of_phase(self, number: usize) -> ModelError {
        let key = self.path().strip_prefix("phase.");
        let path = key.map(|key| format!("phase[{number}].{key}"));
        match path {
            Some(path) => ModelError::InPhase { path, why: Box::new(self) },
            None => self,
        }
    }
}

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
    phase: Vec<ModelPhase>,
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
        let sections = self.critical.as_ref().map_or(0, |critical| critical.sections);
        let sleeps = time("phase.sleep", &self.sleep).is_ok_and(|sleep| sleep > Nanos::ZERO);
        self.instructions == 0.0
            && self.barriers == 0
            && sections == 0
            && self.pipeline.is_none()
            && !sleeps
    }
}

/// Critical sections under one lock; another may be nested in it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Critical {
    /// How many each thread enters, each time.
    sections: u32,
    /// The number inside each.
    instructions: f64,
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
    /// When a key is missing or unknown, or a value makes no sense.
    pub fn read(table: &toml::Table, threads: u16) -> Result<Model, ModelError> {
        let read: Result<ModelFile, _> = serde_path_to_error::deserialize(table.clone());
        let read = read.map_err(|error| {
            let message = error.inner().message();
            match message.starts_with("missing field `phase`") {
                true => ModelError::NoPhase,
                false => {
                    let path = error.path().to_string();
                    let what = brief(message);
                    match path.as_str() {
                        // The model itself.
                        "." => ModelError::Toml { path: String::new(), what },
                        _ => ModelError::Toml { what: format!("{}: {what}", shown(&path)), path },
                    }
                }
            }
        })?;
        check("imbalance", read.imbalance, "from 0 to 1", |x| (0.0..=1.0).contains(&x))?;
        check("repeat", f64::from(read.repeat), "1 or more", |x| x >= 1.0)?;
        let is_empty = read.repeat > 1 && read.phase.iter().all(ModelPhase::is_empty);
        if is_empty || read.phase.iter().any(|phase| phase.repeat > 1 && phase.is_empty()) {
            let allowed = "more than 0, where what is repeated does nothing else";
            check("phase.instructions", 0.0, allowed, |instructions| instructions > 0.0)?;
        }
        let mut writer =
            ScriptWriter { threads, malleable: read.malleable, ..ScriptWriter::default() };
        if let Some(instructions) = read.startup_instructions {
            writer.startup(instructions)?;
        }
        let first = writer.script.len() as u32;
        for (number, phase) in read.phase.iter().enumerate() {
            writer.phase(phase).map_err(|error| error.of_phase(number))?;
        }
        writer.repeat(first, read.repeat, 0);
        let ScriptWriter { script, mixes, barriers, queues, .. } = writer;
        Ok(Model {
            threads,
            script,
            mixes,
            imbalance: read.imbalance,
            spin: time("spin", &read.spin)?,
            barrier: read.barrier.map(|text| at_barrier(&text)).transpose()?,
            tells: read.progress,
            barriers: u16::from(barriers),
            adaptive: read.adaptive.map(|text| time("adaptive", &text)).transpose()?,
            locks: 2,
            queues,
        })
    }
}

pub(super) fn check(
    key: &'static str,
    value: f64,
    allowed: &'static str,
    right: impl Fn(f64) -> bool,
) -> Result<(), ModelError> {
    match right(value) {
        true => Ok(()),
        false => Err(ModelError::Value { key, found: figure(value), allowed }),
    }
}

fn time(key: &'static str, text: &str) -> Result<Nanos, ModelError> {
    if text == "forever" {
        return Ok(Nanos::NEVER);
    }
    parse_duration(text).map(Nanos::from).ok_or_else(|| ModelError::Value {
        key,
        found: format!("\"{}\"", shown(text)),
        allowed: "a time with its unit, such as \"300us\"",
    })
}

fn at_barrier(text: &str) -> Result<AtBarrier, ModelError> {
    match text {
        "spin" => Ok(AtBarrier::Spin),
        "donate" => Ok(AtBarrier::Donate),
        _ => Err(ModelError::Value {
            key: "barrier",
            found: format!("\"{}\"", shown(text)),
            allowed: "\"spin\" (as long as `spin` says, then sleep) or \"donate\"",
        }),
    }
}

#[cfg(test)]
mod tests;
