//! What is known of programs alone: the table that models are fitted to, as it is written down.

use serde::Deserialize;

use crate::model::ModelError;

/// What is known of programs alone on a machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoloTable {
    /// Its programs, in their order.
    #[serde(rename = "program")]
    pub programs: Vec<Known>,
}

/// What is known and what is assumed of one program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// Its name.
    pub name: String,
    /// With how many threads it is to be run.
    pub threads: u16,
    /// How long it is to take alone with them.
    pub seconds: f64,
    /// Misses of the last-level cache per 1000 instructions.
    #[serde(default)]
    pub misses_per_kilo_instruction: f64,
    /// Without any cache; the same as with all of it, if not said.
    pub misses_without_cache: Option<f64>,
    /// The cache that it can use, MiB.
    #[serde(default)]
    pub footprint_mib: f64,
    /// Without last-level misses.
    #[serde(default = "one")]
    pub cycles_per_instruction: f64,
    /// How many misses a thread has on their way at once, unless that is what is fitted.
    #[serde(default = "one")]
    pub misses_in_flight: f64,
    /// How long a waiting thread spins.
    #[serde(default = "no_time")]
    pub spin: String,
    /// How often its serial and parallel parts follow each other.
    #[serde(default = "once")]
    pub repeat: u32,
    /// Barriers of each parallel part.
    #[serde(default = "once")]
    pub barriers: u32,
    /// What was measured alone.
    #[serde(default)]
    pub point: Vec<Point>,
}

/// One figure of a program alone.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// With so many threads.
    pub threads: u16,
    /// Times as fast as with one.
    pub speedup: Option<f64>,
    /// The fewest threads with at least this share of the best speedup are those.
    pub share_of_best: Option<f64>,
    /// Memory traffic, as a share of another program's of the table with as many threads.
    pub traffic: Option<Traffic>,
}

/// Memory traffic relative to another program's.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// Whose: a program that stands earlier in the table.
    pub of: String,
    /// The share.
    pub share: f64,
}

fn one() -> f64 {
    1.0
}

fn once() -> u32 {
    1
}

fn no_time() -> String {
    "0s".to_owned()
}

/// What is wrong with a table.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// A program's traffic is told relative to one that is not known yet.
    #[error("{program}: point.traffic.of is '{of}', which is no program that stands above it")]
    Unknown {
        /// Which program.
        program: String,
        /// Which other.
        of: String,
    },
    /// A value that no model can have.
    #[error("{program}: {source}")]
    Model {
        /// Which program.
        program: String,
        /// The key.
        source: ModelError,
    },
}
