//! Predicted slowdowns, from programs' traffic with memory: a table per machine.
//!
//! The table holds measured slowdowns of variants of STREAM, each with the same number of threads:
//! the traffic of each variant alone, and the slowdowns in every pair and triple. Between the
//! variants we interpolate linearly. Below the variant with the least traffic lies a program
//! without any traffic, which slows no program and is not slowed. Above the variant with the most
//! traffic nothing is known, and that variant counts.
//!
//! ```toml
//! machine = "dunnington-24"                 # for people
//! gigabytes_per_second = [2.0, 10.0]        # of each variant alone, rising
//! pairs = [[1.1, 1.5],                      # [a][b]: of variant a with variant b
//!          [1.2, 2.0]]
//! triples = [[[1.2, 1.6], [1.6, 2.0]],      # [a][b][c]: of a with b and c, equal to [a][c][b]
//!            [[1.4, 2.2], [2.2, 3.0]]]
//! ```
//!
//! A machine on which no three programs fit side by side has no triples: then all co-runners of a
//! program count as one.
//!
//! *Source.* Section 3.3 and figure 3.6 of the thesis for the measurements, chapter 6 for their
//! use.

use std::ops::Range;

use cosched_workload::toml_mistake;
use serde::Deserialize;

/// No program is faster with co-runners than alone. Measured slowdowns from here to 1 count as
/// chance, and smaller ones are refused.
const LEAST: f64 = 0.9;

/// Slowdowns in pairs and triples of programs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slowdowns {
    /// The machine of the measurements, and how they were made.
    machine: String,
    gigabytes_per_second: Vec<f64>,
    pairs: Vec<Vec<f64>>,
    triples: Option<Vec<Vec<Vec<f64>>>>,
}

/// Why a table cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SlowdownsError {
    /// It is not TOML, or a key is missing, unknown or of the wrong type.
    #[error("{0}")]
    Toml(String),
    /// A value makes no sense.
    #[error("{key} {problem}")]
    Value {
        /// The key.
        key: &'static str,
        /// What is wrong with it, and the remedy.
        problem: String,
    },
}

impl Slowdowns {
    /// Reads a table.
    ///
    /// # Errors
    /// When a key is missing or unknown, the traffics do not rise, a slowdown is less than 1 by
    /// more than chance, or there are not as many as variants.
    pub fn parse(text: &str) -> Result<Slowdowns, SlowdownsError> {
        let read: Slowdowns = toml::from_str(text)
            .map_err(|error| SlowdownsError::Toml(toml_mistake(text, &error)))?;
        let wrong = |key, problem: &str| {
            let problem = problem.to_owned();
            Err(SlowdownsError::Value { key, problem })
        };
        let levels = &read.gigabytes_per_second;
        let rising = levels.windows(2).all(|two| two[0] < two[1]);
        let positive = |value: &f64| *value > 0.0 && value.is_finite();
        if levels.is_empty() || !rising || !levels.iter().all(positive) {
            return wrong(
                "gigabytes_per_second",
                "must be rising positive numbers, one per variant",
            );
        }
        let n = levels.len();
        let slows = |slowdown: &f64| *slowdown >= LEAST && slowdown.is_finite();
        let is_row = |row: &Vec<f64>| row.len() == n && row.iter().all(slows);
        let is_square = |rows: &Vec<Vec<f64>>| rows.len() == n && rows.iter().all(is_row);
        if !is_square(&read.pairs) {
            return wrong(
                "pairs",
                "must have a row per variant with a slowdown of 1 or more for each",
            );
        }
        let is_cube = |all: &Vec<Vec<Vec<f64>>>| all.len() == n && all.iter().all(is_square);
        if !read.triples.iter().all(is_cube) {
            return wrong(
                "triples",
                "must have, per variant, a row per variant with a slowdown of 1 or more for each",
            );
        }
        Ok(read)
    }

    /// The machine of the measurements, and how they were made.
    pub fn machine(&self) -> &str {
        &self.machine
    }

    /// The name of the simulated machine that it was made for, if `cosched sim slowdowns` made it.
    pub fn simulated_machine(&self) -> Option<&str> {
        self.machine.split_once(", simulated,").map(|(name, _)| name)
    }

    /// The highest traffic that it knows, GB/s.
    pub fn most(&self) -> f64 {
        self.gigabytes_per_second.last().copied().unwrap_or(0.0)
    }

    /// The slowdown of a program with co-runners, from the traffic that each has alone, GB/s. Of
    /// more than two co-runners, the two with the least traffic count as one with the traffic of
    /// both, until two are left; or one, if there are no triples.
    pub fn of(&self, own: f64, others: &[f64]) -> f64 {
        let mut others = others.to_vec();
        others.sort_by(|a, b| b.total_cmp(a));
        let most = if self.triples.is_some() { 2 } else { 1 };
        while others.len() > most {
            let sum = others.drain(others.len() - 2..).sum();
            let position = others.partition_point(|other| *other > sum);
            others.insert(position, sum);
        }
        let other = |position: usize| others.get(position).copied().unwrap_or(0.0);
        let spans = [own, other(0), other(1)].map(|traffic| self.between(traffic));
        // Interpolation is linear in each of the three: over the corners of the cell, each by its
        // weight.
        let corner = |number: usize| -> f64 {
            let ends = [0, 1, 2].map(|axis| number >> axis & 1);
            let weight: f64 = spans
                .iter()
                .zip(ends)
                .map(|((_, at), end)| if end == 1 { *at } else { 1.0 - at })
                .product();
            let at =
                |axis: usize| if ends[axis] == 1 { spans[axis].0.end } else { spans[axis].0.start };
            if weight == 0.0 { 0.0 } else { weight * self.measured(at(0), at(1), at(2)) }
        };
        (0..8).map(corner).sum()
    }

    /// The two variants that a traffic lies between, by their numbers from 1 (0: no traffic), and
    /// the distance from the first.
    fn between(&self, traffic: f64) -> (Range<usize>, f64) {
        let levels = &self.gigabytes_per_second;
        let above = levels.partition_point(|level| *level < traffic).min(levels.len() - 1);
        let low = above.checked_sub(1).map_or(0.0, |below| levels[below]);
        let at = (traffic - low) / (levels[above] - low);
        (above..above + 1, at.clamp(0.0, 1.0))
    }

    /// The measured slowdown of a variant with two others; 0 stands for none.
    fn measured(&self, own: usize, first: usize, second: usize) -> f64 {
        match (own, first, second, &self.triples) {
            (0, _, _, _) | (_, 0, 0, _) => 1.0,
            (own, first, second, Some(triples)) if first > 0 && second > 0 => {
                triples[own - 1][first - 1][second - 1]
            }
            (own, first, second, _) => self.pairs[own - 1][first.max(second) - 1],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "machine = 'm'\ngigabytes_per_second = [2.0, 10.0]\n\
        pairs = [[1.1, 1.5], [1.2, 2.0]]\n\
        triples = [[[1.2, 1.6], [1.6, 2.0]], [[1.4, 2.2], [2.2, 3.0]]]";

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "{found} instead of {expected}");
    }

    #[test]
    fn measured_points_are_returned_unchanged() {
        let table = Slowdowns::parse(TEXT).unwrap();
        near(table.of(2.0, &[10.0]), 1.5);
        near(table.of(10.0, &[2.0]), 1.2);
        near(table.of(10.0, &[2.0, 10.0]), 2.2);
        near(table.of(10.0, &[10.0, 2.0]), 2.2);
    }

    /// Beyond the last measured point, the last value holds.
    #[test]
    fn between_measured_points_the_table_is_interpolated() {
        let table = Slowdowns::parse(TEXT).unwrap();
        near(table.of(6.0, &[10.0]), 1.75);
        near(table.of(2.0, &[6.0]), 1.3);
        near(table.of(50.0, &[70.0]), 2.0);
    }

    #[test]
    fn co_runners_with_the_least_traffic_count_as_one() {
        let table = Slowdowns::parse(TEXT).unwrap();
        near(table.of(10.0, &[1.0, 10.0, 1.0]), 2.2);
        near(table.of(10.0, &[0.0, 0.0, 0.0, 2.0]), 1.2);
        near(table.of(10.0, &[5.0, 5.0, 10.0]), 3.0);
    }

    #[test]
    fn without_triples_all_co_runners_count_as_one() {
        let (pairs, _) = TEXT.split_once("\ntriples").unwrap();
        let table = Slowdowns::parse(pairs).unwrap();
        near(table.of(2.0, &[10.0]), 1.5);
        near(table.of(10.0, &[5.0, 5.0]), 2.0);
        near(table.of(10.0, &[1.0, 1.0]), 1.2);
    }

    #[test]
    fn a_program_without_traffic_is_not_slowed_and_slows_none() {
        let table = Slowdowns::parse(TEXT).unwrap();
        near(table.of(0.0, &[10.0, 10.0]), 1.0);
        near(table.of(10.0, &[]), 1.0);
        near(table.of(10.0, &[0.0, 10.0]), 2.0);
        near(table.of(2.0, &[1.0]), 1.05);
    }

    #[test]
    fn errors_name_the_key() {
        let error_with = |from: &str, to: &str| {
            Slowdowns::parse(&TEXT.replace(from, to)).unwrap_err().to_string()
        };
        assert!(
            error_with("[2.0, 10.0]", "[10.0, 2.0]")
                .starts_with("gigabytes_per_second must be rising")
        );
        assert!(
            error_with("pairs = [[1.1, 1.5], ", "pairs = [").starts_with("pairs must have a row")
        );
        assert!(
            error_with("1.1, 1.5", "0.1, 1.5")
                .starts_with("pairs must have a row per variant with")
        );
        assert!(error_with("1.2, 1.6", "0.89, 1.6").contains("a slowdown of 1 or more"));
        assert!(Slowdowns::parse(&TEXT.replace("1.1, 1.5", "0.99, 1.5")).is_ok());
        assert!(error_with("3.0]", "nan]").starts_with("triples must have"));
        assert!(error_with("machine", "machines").contains("machines"));
    }
}
