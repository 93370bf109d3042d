//! The report for people. Scripts read `--json`.

use serde::Serialize;

use super::Report;
use super::gaps::Latency;
use crate::table;

/// The whole report.
pub(super) fn text(report: &Report) -> String {
    let rights = &report.rights;
    let mut parts = vec![
        format!("Linux {}, rung: {} ({})", rights.kernel, name(rights.rung), rights.rung.means()),
        report.turns_by_weight.text(),
        format!("Machine: {}", report.machine.text()),
    ];

    let mut abilities = table::sentences(&["ability", "here", "what was found"]);
    for right in &rights.rights {
        let here = if right.available { "yes" } else { "no" };
        abilities.add_row([name(right.name).as_str(), here, &right.detail]);
    }
    parts.push(abilities.to_string());

    let mut policies = table::sentences(&["policy", "works here with", "would gain from"]);
    for outlook in &report.policies {
        let gains =
            if outlook.gains.is_empty() { "–".to_owned() } else { outlook.gains.join("\n") };
        policies.add_row([outlook.policy, &outlook.uses, &gains]);
    }
    parts.push(policies.to_string());
    parts.push(report.barriers.text());

    let missing = rights.rights.iter().filter(|right| !right.available);
    let remedies: Vec<String> = missing
        .filter_map(|right| right.remedy.as_ref().map(|remedy| (right, remedy)))
        .map(|(right, remedy)| {
            format!("  {}, for {}:\n    {remedy}", name(right.name), right.gives)
        })
        .collect();
    if !remedies.is_empty() {
        parts.push(format!("How to get more:\n{}", remedies.join("\n")));
    }
    if let Some(gaps) = &report.gaps {
        parts.push(latencies(gaps));
    }
    parts.join("\n\n")
}

fn latencies(gaps: &[Latency]) -> String {
    let header = [
        "freezing by",
        "threads",
        "switches",
        "freeze p50 ms",
        "p99 ms",
        "thaw p50 ms",
        "p99 ms",
        "gap p50 ms",
        "p99 ms",
    ];
    let mut table = table::figures(&header);
    for gap in gaps {
        let times = [
            gap.freeze_ms_p50,
            gap.freeze_ms_p99,
            gap.thaw_ms_p50,
            gap.thaw_ms_p99,
            gap.gap_ms_p50,
            gap.gap_ms_p99,
        ];
        let times = times.map(|time| format!("{time:.3}"));
        let what = [gap.rung.to_owned(), gap.threads.to_string(), gap.repetitions.to_string()];
        table.add_row(what.into_iter().chain(times));
    }
    format!(
        "{table}\nfreeze: until every thread is known to have stopped; thaw: until one of them runs again;\n\
         gap: from the last thread of one program running to the first one of the other."
    )
}

/// The name that the JSON report has for something, so that people and scripts speak of the same.
fn name(named: impl Serialize) -> String {
    match serde_json::to_value(named) {
        Ok(serde_json::Value::String(name)) => name,
        other => unreachable!("rungs and abilities are written as names, not as {other:?}"),
    }
}
