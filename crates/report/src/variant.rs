//! One variant of an experiment, with its run in each round.

use cosched_results::result::RunResult;

/// A variant: a policy, or a rival such as `passive`.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantRuns {
    /// Its name, unique in a report.
    pub name: String,
    /// Its run in each round.
    pub runs: Vec<RunResult>,
}

impl VariantRuns {
    /// The run to show: the one with the median total time (of two in the middle, the shorter one).
    pub fn typical(&self) -> Option<&RunResult> {
        let mut sorted: Vec<&RunResult> = self.runs.iter().collect();
        sorted.sort_by(|a, b| a.total_seconds.total_cmp(&b.total_seconds));
        sorted.get(sorted.len().saturating_sub(1) / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit;

    #[test]
    fn the_typical_run_has_the_median_total_time() {
        let runs = [5.0, 1.0, 3.0, 9.0]
            .map(|total_seconds| RunResult { total_seconds, ..testkit::gang() });
        let variant = VariantRuns { name: "gang".into(), runs: runs.to_vec() };
        assert_eq!(variant.typical().unwrap().total_seconds, 3.0);
        assert_eq!(VariantRuns { runs: Vec::new(), ..variant }.typical(), None);
    }
}
