//! Models from solo runs: thread counts, speed-ups, misses.
//!
//! A table of solo runs says little about a program, so only one number of its model is fitted, and
//! the rest is given. The figures decide which one: the program may stop scaling because
//!
//! * one thread does a share of the work alone ([`Free::Serial`]),
//! * one thread has more to do than the others ([`Free::Imbalance`]),
//! * its threads have so many misses in flight at once that the memory's bandwidth is used up
//!   ([`Free::InFlight`]).
//!
//! Each is tried with the value that has the least squared logarithmic error of all speed-ups, and
//! the explanation with the least error wins. Where several fit the speed-ups within 5 %, figures
//! of the whole curve ("80 % of the best speedup is reached with 12 threads") decide between them.
//! For a program with a known share of another one's memory traffic, the cycles per instruction are
//! fitted to this share ([`Free::Cycles`]).
//!
//! All remaining errors are reported. Measurements with co-runners are not used. Memory traffic is
//! counted in the runs: how often a program misses depends on how much of the cache its threads
//! have where they run.

mod table;

use cosched_core::Nanos;
use cosched_core::format::count;
use serde::Serialize;

use super::Model;
use crate::prices::LINE;
pub use table::{FitPoint, Known, SoloTable, TableError, Traffic};

/// The result of one run of a model alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelRun {
    /// Its duration.
    pub time: Nanos,
    /// Its misses of the last-level cache.
    pub misses: u64,
}

/// The steps of the search for a value: its interval shrinks to 0.618 of itself each time.
const STEPS: usize = 18;
/// Explanations with an error up to this are equally good.
const GOOD: f64 = 0.05;
/// The instructions of a program's first run, of all threads together.
const INSTRUCTIONS: f64 = 1e9;

/// The number that is fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Free {
    /// `serial`.
    Serial,
    /// `imbalance`.
    Imbalance,
    /// `misses_in_flight`.
    InFlight,
    /// `cycles_per_instruction`.
    Cycles,
}

impl Free {
    /// The key of the model.
    pub fn key(self) -> &'static str {
        match self {
            Free::Serial => "serial",
            Free::Imbalance => "imbalance",
            Free::InFlight => "misses_in_flight",
            Free::Cycles => "cycles_per_instruction",
        }
    }

    /// The value at a place from 0 to 1 of its range; factors in equal steps of their logarithms.
    fn at(self, place: f64) -> f64 {
        let factor = |low: f64, high: f64| low * (high / low).powf(place);
        match self {
            Free::Serial => 0.95 * place,
            Free::Imbalance => place,
            Free::InFlight => factor(1.0, 16.0),
            Free::Cycles => factor(0.25, 250.0),
        }
    }
}

/// A figure, as measured and as the model gives it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Residual {
    /// What it measures.
    pub what: String,
    /// The measured value.
    pub target: f64,
    /// The model's value.
    pub found: f64,
}

impl Residual {
    fn error(&self) -> f64 {
        (self.found / self.target).ln().powi(2)
    }
}

/// A program's model, and how well it fits.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// The figures that it was fitted to.
    pub known: Known,
    /// The fitted parameter and its value; `None` where no figure is given.
    pub free: Option<(Free, f64)>,
    /// The error of every figure.
    pub residuals: Vec<Residual>,
    /// Memory traffic alone with its threads, GB/s.
    pub gigabytes_per_second: f64,
    /// The text of its `[program.model]`.
    pub model: String,
    draft: ModelDraft,
}

/// Why a table could not be fitted.
#[derive(Debug)]
pub enum FitError<E> {
    /// It makes no sense.
    Table(TableError),
    /// A run failed.
    Run(E),
}

impl<E> From<TableError> for FitError<E> {
    fn from(error: TableError) -> FitError<E> {
        FitError::Table(error)
    }
}

/// Fits every program of a table; `run` runs a model alone on the machine, which has this many
/// `cpus`.
///
/// # Errors
/// When a value makes no sense, or a run fails.
pub fn fit<E>(
    table: &SoloTable,
    cpus: u16,
    mut run: impl FnMut(&Model) -> Result<ModelRun, E>,
) -> Result<Vec<Fitted>, FitError<E>> {
    table.check(cpus)?;
    let mut done: Vec<Fitted> = Vec::new();
    for known in &table.programs {
        let mut bench = ProgramFit { known, others: &done, cpus, run: &mut run };
        let fitted = bench.fit()?;
        done.push(fitted);
    }
    Ok(done)
}

struct ProgramFit<'a, R> {
    known: &'a Known,
    others: &'a [Fitted],
    cpus: u16,
    run: &'a mut R,
}

#[derive(Clone, Copy, Debug)]
struct ModelDraft {
    instructions: f64,
    free: Option<(Free, f64)>,
}

impl<E, R: FnMut(&Model) -> Result<ModelRun, E>> ProgramFit<'_, R> {
    fn fit(&mut self) -> Result<Fitted, FitError<E>> {
        let known = self.known;
        let by_traffic = known.point.iter().any(|point| point.traffic.is_some());
        let choices: &[Free] = match by_traffic {
            _ if known.point.is_empty() => &[],
            true => &[Free::Cycles],
            false => &[Free::Serial, Free::Imbalance, Free::InFlight],
        };
        let mut best = None;
        for free in choices {
            let (error, draft) = self.search(*free)?;
            let is_good = error <= GOOD * GOOD * known.point.len() as f64;
            let curve = if is_good { self.error(draft, true)? } else { f64::INFINITY };
            if best.is_none_or(|(least, _)| (curve, error) < least) {
                best = Some(((curve, error), draft));
            }
        }
        let draft = match best {
            Some((_, draft)) => draft,
            None => self.sized(ModelDraft { instructions: INSTRUCTIONS, free: None })?,
        };
        Ok(Fitted {
            known: known.clone(),
            free: draft.free,
            residuals: self.residuals(draft, true)?,
            gigabytes_per_second: self.traffic(known, draft, known.threads)?,
            model: text(known, draft),
            draft,
        })
    }

    /// The value with the least error: golden section.
    fn search(&mut self, free: Free) -> Result<(f64, ModelDraft), FitError<E>> {
        const GOLDEN: f64 = 0.618_033_988_749_895;
        let mut at = |place: f64| -> Result<(f64, ModelDraft), FitError<E>> {
            let draft =
                ModelDraft { instructions: INSTRUCTIONS, free: Some((free, free.at(place))) };
            let draft = self.sized(draft)?;
            Ok((self.error(draft, false)?, draft))
        };
        let (mut low, mut high) = (0.0, 1.0);
        let (mut left, mut right) = (1.0 - GOLDEN, GOLDEN);
        let (mut of_left, mut of_right) = (at(left)?, at(right)?);
        for _ in 0..STEPS {
            if of_left.0 <= of_right.0 {
                (high, right, of_right) = (right, left, of_left);
                left = high - GOLDEN * (high - low);
                of_left = at(left)?;
            } else {
                (low, left, of_left) = (left, right, of_right);
                right = low + GOLDEN * (high - low);
                of_right = at(right)?;
            }
        }
        Ok(if of_left.0 <= of_right.0 { of_left } else { of_right })
    }

    /// Adjusts the instructions so that the model takes the requested time.
    fn sized(&mut self, draft: ModelDraft) -> Result<ModelDraft, FitError<E>> {
        let mut draft = draft;
        // The number of barriers does not grow with the instructions, so once is not quite enough.
        for _ in 0..2 {
            let seconds = self.seconds(self.known, draft, self.known.threads)?;
            draft.instructions *= self.known.seconds / seconds;
        }
        Ok(draft)
    }

    fn error(&mut self, draft: ModelDraft, all: bool) -> Result<f64, FitError<E>> {
        Ok(self.residuals(draft, all)?.iter().map(Residual::error).sum())
    }

    /// The errors of all figures; those of the whole curve only where requested, because they take
    /// a run per thread count.
    fn residuals(&mut self, draft: ModelDraft, all: bool) -> Result<Vec<Residual>, FitError<E>> {
        let mut residuals = Vec::new();
        let alone = self.seconds(self.known, draft, 1)?;
        for point in &self.known.point {
            let with = |what: &str| {
                format!("{what} with {}", count(point.threads.into(), "thread", "threads"))
            };
            if let Some(target) = point.speedup {
                let found = alone / self.seconds(self.known, draft, point.threads)?;
                residuals.push(Residual { what: with("speedup"), target, found });
            }
            if let Some(Traffic { of, share }) = &point.traffic {
                let theirs = self.others.iter().find(|other| other.known.name == *of);
                let theirs = match theirs {
                    Some(other) => self.traffic(&other.known, other.draft, point.threads)?,
                    None => 0.0,
                };
                if theirs == 0.0 {
                    return Err(self.known.without_traffic(of).into());
                }
                let found = self.traffic(self.known, draft, point.threads)? / theirs;
                let what = with(&format!("share of the traffic of {of}"));
                residuals.push(Residual { what, target: *share, found });
            }
            if let Some(share) = point.share_of_best.filter(|_| all) {
                let what = format!("threads for {:.0} % of the best speedup", 100.0 * share);
                let found = f64::from(self.threads_for(draft, share)?);
                residuals.push(Residual { what, target: f64::from(point.threads), found });
            }
        }
        Ok(residuals)
    }

    /// The fewest threads that reach a share of the best speedup.
    fn threads_for(&mut self, draft: ModelDraft, share: f64) -> Result<u16, FitError<E>> {
        let seconds = (1..=self.cpus)
            .map(|threads| self.seconds(self.known, draft, threads))
            .collect::<Result<Vec<f64>, _>>()?;
        let best = seconds.iter().copied().fold(f64::INFINITY, f64::min);
        let enough = seconds.iter().position(|seconds| best / seconds >= share);
        Ok(enough.map_or(self.cpus, |position| position as u16 + 1))
    }

    /// Memory traffic, GB/s.
    fn traffic(
        &mut self,
        known: &Known,
        draft: ModelDraft,
        threads: u16,
    ) -> Result<f64, FitError<E>> {
        let ModelRun { time, misses } = self.alone(known, draft, threads)?;
        Ok(misses as f64 * LINE / (1e9 * time.as_secs_f64()))
    }

    fn seconds(
        &mut self,
        known: &Known,
        draft: ModelDraft,
        threads: u16,
    ) -> Result<f64, FitError<E>> {
        Ok(self.alone(known, draft, threads)?.time.as_secs_f64())
    }

    fn alone(
        &mut self,
        known: &Known,
        draft: ModelDraft,
        threads: u16,
    ) -> Result<ModelRun, FitError<E>> {
        let table: Result<toml::Table, _> = text(known, draft).parse();
        let model =
            table.map_err(super::ModelError::from).and_then(|table| Model::read(&table, threads));
        let model =
            model.map_err(|source| TableError::Model { program: known.name.clone(), source })?;
        (self.run)(&model).map_err(FitError::Run)
    }
}

fn text(known: &Known, draft: ModelDraft) -> String {
    let value = |key: Free, given: f64| match draft.free {
        Some((free, value)) if free == key => value,
        _ => given,
    };
    let Known { spin, repeat, barriers, footprint_mib, .. } = known;
    let misses = known.misses_per_kilo_instruction;
    format!(
        "spin = \"{spin}\"\nimbalance = {:.4}\n\n\
         [[phase]]\nrepeat = {repeat}\ninstructions = {:.6e}\nserial = {:.4}\n\
         barriers = {barriers}\ncycles_per_instruction = {:.4}\n\
         misses_per_kilo_instruction = {misses:?}\nmisses_without_cache = {:?}\n\
         footprint_mib = {footprint_mib:?}\nmisses_in_flight = {:.4}\n",
        value(Free::Imbalance, 0.0),
        draft.instructions / f64::from(*repeat),
        value(Free::Serial, 0.0),
        value(Free::Cycles, known.cycles_per_instruction),
        known.misses_without_cache.unwrap_or(misses),
        value(Free::InFlight, known.misses_in_flight),
    )
}

#[cfg(test)]
mod tests;
