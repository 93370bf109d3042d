//! A table of slowdowns in pairs and triples, as `--slowdowns` reads it and as JSON. Its format is
//! described by [`Slowdowns`](cosched_policy::Slowdowns).

use std::collections::BTreeMap;

use serde::Serialize;

/// The slowdown of a variant with one or two others, in the order of their numbers.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct SlowdownTable(pub(crate) BTreeMap<(usize, Vec<usize>), f64>);

impl SlowdownTable {
    fn slowdown(&self, variant: usize, mut others: Vec<usize>) -> f64 {
        others.sort_unstable();
        self.0[&(variant, others)]
    }

    /// The table with every order of the variants.
    pub(crate) fn spread_out(
        &self,
        schema: &'static str,
        machine: String,
        levels: Vec<f64>,
    ) -> SlowdownsDocument {
        let n = levels.len();
        let row = |slowdown: &dyn Fn(usize) -> f64| (0..n).map(slowdown).collect::<Vec<f64>>();
        let pairs = (0..n).map(|a| row(&|b| self.slowdown(a, vec![b]))).collect();
        let triple = |a, b| row(&|c| self.slowdown(a, vec![b, c]));
        let all = || (0..n).map(|a| (0..n).map(|b| triple(a, b)).collect()).collect();
        let triples = self.0.keys().any(|(_, others)| others.len() == 2).then(all);
        SlowdownsDocument { schema, machine, gigabytes_per_second: levels, pairs, triples }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct SlowdownsDocument {
    schema: &'static str,
    machine: String,
    /// Of each variant alone, rising.
    gigabytes_per_second: Vec<f64>,
    /// By variant and its co-runner.
    pairs: Vec<Vec<f64>>,
    /// By variant and its two co-runners; `None` where no three programs fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    triples: Option<Vec<Vec<Vec<f64>>>>,
}

impl SlowdownsDocument {
    /// As `--slowdowns` reads it.
    pub(crate) fn toml(&self) -> String {
        let list = |items: Vec<String>| format!("[{}]", items.join(", "));
        let row = |row: &Vec<f64>| list(row.iter().map(|ratio| format!("{ratio:.4}")).collect());
        let pairs = self.pairs.iter().map(|pair| format!("    {},\n", row(pair)));
        let triples = self.triples.iter().map(|triples| {
            let triples = triples.iter().map(|rows| {
                let rows = rows.iter().map(|triple| format!("        {},\n", row(triple)));
                format!("    [\n{}    ],\n", rows.collect::<String>())
            });
            format!("\ntriples = [\n{}]", triples.collect::<String>())
        });
        let levels = self.gigabytes_per_second.iter().map(|level| format!("{level:?}"));
        format!(
            "machine = {:?}\ngigabytes_per_second = {}\npairs = [\n{}]{}",
            self.machine,
            list(levels.collect()),
            pairs.collect::<String>(),
            triples.collect::<String>(),
        )
    }
}
