//! Deviations in sentences: one for each kind, with the programs that it happened to.

use std::collections::BTreeMap;

use cosched_report::words::{cause, count, effect};
use cosched_results::result::RunResult;

/// Names of more programs than this are not spelt out.
const NAMES: usize = 6;

/// How often what happened to which program.
#[derive(Debug, Default)]
struct DeviationCount {
    times: usize,
    by_program: BTreeMap<String, usize>,
}

/// A sentence for each kind of deviation in these runs of the same programs, the most frequent
/// first.
pub fn sentences<'a>(results: impl IntoIterator<Item = &'a RunResult>) -> Vec<String> {
    let mut kinds: BTreeMap<String, DeviationCount> = BTreeMap::new();
    for result in results {
        for deviation in &result.deviations {
            let what = format!("{} {}", effect(deviation.what), cause(deviation.why));
            let kind = kinds.entry(what).or_default();
            kind.times += 1;
            let name = &result.programs[usize::from(deviation.program.slot)].name;
            *kind.by_program.entry(name.clone()).or_default() += 1;
        }
    }
    let mut kinds: Vec<(String, DeviationCount)> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, kind)| usize::MAX - kind.times);
    kinds.iter().map(|(what, kind)| sentence(what, kind)).collect()
}

fn sentence(what: &str, kind: &DeviationCount) -> String {
    let often = |n: usize| count(n, "time", "times");
    let times = match kind.times {
        1 => "Once".to_owned(),
        n => often(n),
    };
    let mut programs: Vec<(&String, &usize)> = kind.by_program.iter().collect();
    programs.sort_by_key(|(_, times)| usize::MAX - **times);
    let name = |(name, times): &(&String, &usize)| match programs.len() {
        1 => (*name).clone(),
        _ => format!("{name} {}", often(**times)),
    };
    let mut named: Vec<String> = programs.iter().take(NAMES).map(name).collect();
    if programs.len() > NAMES {
        named.push(format!(
            "and {}",
            count(programs.len() - NAMES, "more program", "more programs")
        ));
    }
    format!("{times} a program {what} ({}).", named.join(", "))
}
