//! The report for people. Scripts read `--json`.

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use serde::Serialize;

use super::Report;
use super::gaps::Latency;

/// Columns of a table where nobody says how many there are.
const WIDTH: u16 = 100;

/// The whole report.
pub(super) fn text(report: &Report) -> String {
    let rights = &report.rights;
    let mut parts = vec![
        format!("Linux {}, rung: {} ({})", rights.kernel, name(rights.rung), rights.rung.means()),
        format!("Machine: {}", report.machine.text()),
    ];

    let mut abilities = table(&["ability", "here", "what was found"]);
    for right in &rights.rights {
        let here = if right.available { "yes" } else { "no" };
        abilities.add_row([name(right.name).as_str(), here, &right.detail]);
    }
    parts.push(abilities.to_string());

    let mut policies = table(&["policy", "works here with", "would gain from"]);
    for outlook in &report.policies {
        let gains =
            if outlook.gains.is_empty() { "–".to_owned() } else { outlook.gains.join("\n") };
        policies.add_row([outlook.policy, &outlook.uses, &gains]);
    }
    parts.push(policies.to_string());

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
    let mut table = table(&header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
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

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(header);
    // A terminal tells how wide it is; a file or a pager does not.
    if !table.is_tty() {
        table.set_width(WIDTH);
    }
    table
}

/// The name that the JSON report has for something, so that people and scripts speak of the same.
fn name(named: impl Serialize) -> String {
    match serde_json::to_value(named) {
        Ok(serde_json::Value::String(name)) => name,
        other => unreachable!("rungs and abilities are written as names, not as {other:?}"),
    }
}
