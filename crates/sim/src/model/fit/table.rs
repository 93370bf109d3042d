//! The table of solo runs that models are fitted to, and its file format.

use cosched_workload::{figure, shown};
use serde::Deserialize;

use crate::model::{self, ModelError};

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
    /// How many threads it is to have.
    pub threads: u16,
    /// How long it is to take alone with them.
    pub seconds: f64,
    /// Misses of the last-level cache per 1000 instructions.
    #[serde(default)]
    pub misses_per_kilo_instruction: f64,
    /// Misses without any cache; by default, as many as with all of it.
    pub misses_without_cache: Option<f64>,
    /// The cache that it can use, MiB.
    #[serde(default)]
    pub footprint_mib: f64,
    /// Without last-level misses.
    #[serde(default = "model::one")]
    pub cycles_per_instruction: f64,
    /// How many misses a thread has in flight at once, unless this is fitted.
    #[serde(default = "model::one")]
    pub misses_in_flight: f64,
    /// How long a waiting thread spins.
    #[serde(default = "model::no_time")]
    pub spin: String,
    /// How often its serial and parallel parts alternate.
    #[serde(default = "model::once")]
    pub repeat: u32,
    /// Barriers of each parallel part.
    #[serde(default = "model::once")]
    pub barriers: u32,
    /// The measurements alone.
    #[serde(default)]
    pub point: Vec<FitPoint>,
}

/// One figure of a program alone.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitPoint {
    /// The thread count.
    pub threads: u16,
    /// The speed relative to one thread.
    pub speedup: Option<f64>,
    /// This thread count is the lowest with at least this share of the best speed-up.
    pub share_of_best: Option<f64>,
    /// Memory traffic, as a share of that of another program of the table with as many threads.
    pub traffic: Option<Traffic>,
}

/// Memory traffic relative to another program's.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// The other program, which comes earlier in the table.
    pub of: String,
    /// The share.
    pub share: f64,
}

impl SoloTable {
    /// Checks the table for a machine of this many CPUs, before anything is run.
    pub(super) fn check(&self, cpus: u16) -> Result<(), TableError> {
        for (position, known) in self.programs.iter().enumerate() {
            let above = &self.programs[..position];
            if known.name.is_empty() || above.iter().any(|other| other.name == known.name) {
                return Err(known.wrong("name", &known.name, "one of its own for every program"));
            }
            known.check(cpus)?;
            for (number, point) in known.point.iter().enumerate() {
                point.check(known, number + 1, cpus, above)?;
            }
        }
        Ok(())
    }
}

impl Known {
    fn wrong(&self, key: &str, found: impl ToString, allowed: impl ToString) -> TableError {
        TableError::Value {
            program: shown(&self.name),
            key: key.to_owned(),
            found: found.to_string(),
            allowed: allowed.to_string(),
        }
    }

    /// Its traffic is relative to that of a program that has none.
    pub(super) fn without_traffic(&self, of: &str) -> TableError {
        let allowed = "a program that stands above this one and has misses of its own";
        self.wrong("point.traffic.of", format!("'{}'", shown(of)), allowed)
    }

    fn check(&self, cpus: u16) -> Result<(), TableError> {
        if !(1..=cpus).contains(&self.threads) {
            return Err(self.wrong("threads", self.threads, on(cpus)));
        }
        let without = self.misses_without_cache.unwrap_or(self.misses_per_kilo_instruction);
        let positive = [
            ("seconds", self.seconds),
            ("cycles_per_instruction", self.cycles_per_instruction),
            ("misses_in_flight", self.misses_in_flight),
        ];
        let others = [
            ("misses_per_kilo_instruction", self.misses_per_kilo_instruction),
            ("misses_without_cache", without),
            ("footprint_mib", self.footprint_mib),
        ];
        if let Some((key, found)) = positive.into_iter().find(|(_, value)| !is_positive(*value)) {
            return Err(self.wrong(key, figure(found), ABOVE_0));
        }
        if self.seconds > LONGEST_SECONDS {
            let allowed = format!("{ABOVE_0} and at most {LONGEST_SECONDS:e}");
            return Err(self.wrong("seconds", format!("{:e}", self.seconds), allowed));
        }
        let wrong = |(_, value): &(&str, f64)| *value != 0.0 && !is_positive(*value);
        if let Some((key, found)) = others.into_iter().find(wrong) {
            return Err(self.wrong(key, figure(found), "0 or more"));
        }
        match without < self.misses_per_kilo_instruction {
            true => Err(self.wrong("misses_without_cache", without, "as many as with it at least")),
            false => Ok(()),
        }
    }

    fn has_misses(&self) -> bool {
        self.misses_per_kilo_instruction > 0.0 || self.misses_without_cache > Some(0.0)
    }
}

impl FitPoint {
    /// Checks a point. `number` is its position among the program's points, from 1; `above` are the
    /// programs before.
    fn check(
        &self,
        known: &Known,
        number: usize,
        cpus: u16,
        above: &[Known],
    ) -> Result<(), TableError> {
        let key = |name: &str| format!("point {number}: {name}");
        if !(1..=cpus).contains(&self.threads) {
            return Err(known.wrong(&key("threads"), self.threads, on(cpus)));
        }
        if let Some(speedup) = self.speedup.filter(|speedup| !is_positive(*speedup)) {
            return Err(known.wrong(&key("speedup"), figure(speedup), ABOVE_0));
        }
        if let Some(share) = self.share_of_best.filter(|share| !(*share > 0.0 && *share <= 1.0)) {
            return Err(known.wrong(&key("share_of_best"), share, "above 0 and at most 1"));
        }
        let Some(Traffic { of, share }) = &self.traffic else { return Ok(()) };
        if !is_positive(*share) {
            return Err(known.wrong(&key("traffic.share"), figure(*share), ABOVE_0));
        }
        if !known.has_misses() {
            let allowed = "left out, or the program given misses_per_kilo_instruction";
            return Err(known.wrong(&key("traffic"), "there without misses", allowed));
        }
        match above.iter().any(|other| other.name == *of && other.has_misses()) {
            true => Ok(()),
            false => Err(known.without_traffic(of)),
        }
    }
}

const ABOVE_0: &str = "a number above 0";

/// The longest time that is accepted: a year.
const LONGEST_SECONDS: f64 = 3e7;

fn is_positive(value: f64) -> bool {
    value > 0.0 && value.is_finite()
}

fn on(cpus: u16) -> String {
    format!("from 1 to {cpus}, the CPUs of the machine")
}

/// What is wrong with a table.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// A value makes no sense.
    #[error("program '{program}': {key} is {found}, but must be {allowed}")]
    Value {
        /// The program.
        program: String,
        /// The key.
        key: String,
        /// Its value.
        found: String,
        /// The allowed values.
        allowed: String,
    },
    /// A value that no model can have.
    #[error("program '{program}': {source}")]
    Model {
        /// The program.
        program: String,
        /// The key.
        source: ModelError,
    },
}
