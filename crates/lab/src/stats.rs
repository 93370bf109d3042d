//! Medians, ratios and verdicts of times that another program measured.
//!
//! Benchmarks measure what [`experiment`](crate::experiment) cannot run. Their rounds are judged
//! here, so that they have no statistics of their own.

use std::collections::BTreeMap;

use cosched_core::format::count;
use cosched_results::json;
use cosched_results::statistics::{Estimate, Verdict, comparison, median_estimate};
use cosched_workload::shown;
use serde::{Deserialize, Serialize};

use crate::ui::failure::Failure;

const SCHEMA: &str = "cosched-stats/1";
/// The version of the input.
const VERSION: u64 = 1;
/// What the input looks like.
const FORM: &str = r#"write {"version": 1, "rounds": {"NAME": [TIMES]}, "over": "NAME"}"#;
/// With more rounds, an interval takes seconds.
const MOST_ROUNDS: usize = 1000;

/// The measurements of each variant.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    version: u64,
    /// By variant, a measurement for each round.
    rounds: BTreeMap<String, Vec<f64>>,
    /// The variant that the others are compared with.
    over: Option<String>,
}

/// What measurements show.
#[derive(Debug, Serialize)]
pub struct Stats {
    schema: &'static str,
    over: Option<String>,
    variants: BTreeMap<String, VariantStats>,
}

/// What the measurements of a variant show.
#[derive(Debug, Serialize)]
struct VariantStats {
    /// In the unit of the measurements, with an interval of 95 %.
    median: Option<Estimate>,
    /// Over the other variant, pair by pair, with an interval of 98 %.
    ratio: Option<Estimate>,
    /// Less is better.
    verdict: Option<Verdict>,
}

impl Stats {
    /// Judges the measurements in a JSON document: `version` (1), `rounds` (by variant, a list of
    /// measurements in any unit), and `over` (the variant that the others are compared with; may be
    /// left out).
    ///
    /// # Errors
    /// When the document has a mistake: the key, and how to write it.
    pub fn of_json(text: &str) -> Result<Stats, Failure> {
        let input: Input = json::read(text.as_bytes())
            .map_err(|error| Failure::Input(format!("{error}; {FORM}")))?;
        check(&input)?;
        let Input { rounds, over, .. } = input;
        let base = over.as_ref().and_then(|over| rounds.get(over));
        let judged = |(name, times): (&String, &Vec<f64>)| {
            let base = base.filter(|_| over.as_ref() != Some(name));
            let ratio = base.and_then(|base| comparison(times, base));
            let verdict = ratio.map(|ratio| ratio.verdict());
            (name.clone(), VariantStats { median: median_estimate(times), ratio, verdict })
        };
        let variants = rounds.iter().map(judged).collect();
        Ok(Stats { schema: SCHEMA, over, variants })
    }

    /// A line for each variant.
    pub fn lines(&self) -> Vec<String> {
        let over = self.over.as_deref().unwrap_or_default();
        let line = |(name, variant): (&String, &VariantStats)| {
            let median = variant.median.map(|median| format!("median {median}"));
            let ratio = variant.ratio.map(|ratio| format!("{ratio} of {}", shown(over)));
            let said: Vec<String> = median.into_iter().chain(ratio).collect();
            format!("{}: {}", shown(name), said.join("; "))
        };
        self.variants.iter().map(line).collect()
    }
}

/// Checks what the types do not.
fn check(input: &Input) -> Result<(), Failure> {
    let Input { version, rounds, over } = input;
    let refused = |text: String| Err(Failure::Input(text));
    if *version != VERSION {
        return refused(format!("version: {version} is unknown; write {VERSION}"));
    }
    if rounds.is_empty() {
        return refused(format!("rounds: there is no variant; {FORM}"));
    }
    for (name, times) in rounds {
        if !(1..=MOST_ROUNDS).contains(&times.len()) {
            let (name, many) = (shown(name), times.len());
            return refused(format!(
                "rounds.{name}: has {}; write 1 to {MOST_ROUNDS} of them",
                count(many, "round", "rounds")
            ));
        }
    }
    let Some(over) = over else { return Ok(()) };
    let Some(base) = rounds.get(over) else {
        let names: Vec<String> = rounds.keys().map(|name| shown(name)).collect();
        return refused(format!(
            "over: rounds has no '{}'; choose from {}",
            shown(over),
            names.join(", ")
        ));
    };
    for (name, times) in rounds {
        let (name, many) = (shown(name), times.len());
        if many != base.len() {
            return refused(format!(
                "rounds.{name}: has {}, and {} has {}; write as many for each, or leave \
                 out `over`",
                count(many, "round", "rounds"),
                shown(over),
                base.len()
            ));
        }
        if let Some(round) = times.iter().position(|time| *time <= 0.0) {
            return refused(format!(
                "rounds.{name}[{round}]: {} has no ratio; leave this round out of each variant, or \
                 leave out `over`",
                times[round]
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn judged(input: &Value) -> Value {
        serde_json::to_value(Stats::of_json(&input.to_string()).unwrap()).unwrap()
    }

    #[test]
    fn variants_have_medians_ratios_and_verdicts() {
        let twice = [2.0, 20.0, 6.0, 14.0, 4.0, 10.0, 8.0];
        let once = twice.map(|time| time / 2.0);
        let rounds = json!({"a": twice, "b": once, "c": once});
        let found = judged(&json!({"version": 1, "rounds": rounds, "over": "b"}));
        assert_eq!(found["schema"], SCHEMA);
        assert_eq!(found["over"], "b");
        let of = |name: &str| &found["variants"][name];
        assert_eq!(of("a")["median"]["value"], 8.0);
        assert_eq!(of("b")["median"]["value"], 4.0);
        assert!((of("a")["ratio"]["value"].as_f64().unwrap() - 2.0).abs() < 1e-12);
        assert_eq!(of("a")["verdict"], "worse");
        assert_eq!(of("c")["verdict"], "no-difference");
        assert!(of("b")["ratio"].is_null() && of("b")["verdict"].is_null());
    }

    #[test]
    fn too_few_rounds_have_a_ratio_and_no_verdict() {
        let rounds = json!({"a": [3, 3], "b": [2, 2]});
        let found = judged(&json!({"version": 1, "rounds": rounds, "over": "b"}));
        let a = &found["variants"]["a"];
        assert!(a["ratio"]["interval"].is_null());
        assert_eq!(a["verdict"], "too-few-rounds");
    }

    #[test]
    fn without_a_base_there_are_medians_alone() {
        let found = judged(&json!({"version": 1, "rounds": {"a": [0, 4], "b": [1]}}));
        assert_eq!(found["variants"]["a"]["median"]["value"], 2.0);
        assert_eq!(found["variants"]["b"]["ratio"], Value::Null);
    }

    #[test]
    fn mistakes_name_the_key_and_the_remedy() {
        let many = vec![1.0; MOST_ROUNDS + 1];
        let cases = [
            (json!({"version": 2, "rounds": {}}), "version: 2 is unknown; write 1"),
            (json!({"version": 1}), "missing field `rounds`"),
            (json!({"version": 1, "round": {}}), "unknown field `round`"),
            (json!({"version": 1, "rounds": {}}), "rounds: there is no variant; write {"),
            (json!({"version": 1, "rounds": {"a": []}}), "rounds.a: has 0 rounds; write 1 to"),
            (json!({"version": 1, "rounds": {"a": many}}), "rounds.a: has 1001 rounds"),
            (json!({"version": 1, "rounds": {"a": [1]}, "over": "b"}), "over: rounds has no 'b'"),
            (
                json!({"version": 1, "rounds": {"a": [1], "b": [1, 2]}, "over": "a"}),
                "rounds.b: has 2 rounds, and a has 1; write as many",
            ),
            (
                json!({"version": 1, "rounds": {"a": [1, 2], "b": [1, 0]}, "over": "a"}),
                "rounds.b[1]: 0 has no ratio; leave this round out",
            ),
        ];
        for (input, expected) in cases {
            let failure = Stats::of_json(&input.to_string()).unwrap_err();
            assert!(failure.text().contains(expected), "{}: {expected}", failure.text());
        }
    }
}
