//! The report for people. Scripts read `--json`.

use cosched_core::format::list;
use cosched_lab::gaps::Latency;
use cosched_linux::rights::{Ability, Right, Rights};
use serde::Serialize;

use super::DoctorReport;
use crate::ui::table;

/// One screen: whether what is needed is there, and what is missing.
pub(super) fn text(report: &DoctorReport) -> String {
    let mut parts =
        vec![report.turns_by_weight.verdict(), format!("Machine: {}", report.machine.text())];
    let gains: Vec<&Right> = gains(&report.rights).collect();
    if !gains.is_empty() {
        parts.push(more(&gains));
    }
    parts.extend(report.gaps.as_deref().map(latencies));
    parts.push("`cosched doctor --all` shows every ability and every policy.".to_owned());
    parts.join("\n\n")
}

/// What is missing, and how to get it. The latter may be a command, so it is on one line.
fn more(gains: &[&Right]) -> String {
    let mut table = table::sentences(&["missing ability", "what it would add"]);
    let mut remedies: Vec<(&str, Vec<String>)> = Vec::new();
    for right in gains {
        let (name, by) = (name(right.name), right.remedy.as_deref().unwrap_or_default());
        table.add_row([name.as_str(), right.gives]);
        match remedies.iter_mut().find(|(known, _)| *known == by) {
            Some((_, names)) => names.push(name),
            None => remedies.push((by, vec![name])),
        }
    }
    let line = |(by, names): &(&str, Vec<String>)| format!("\nTo get {}: {by}", list(names));
    format!("{table}{}", remedies.iter().map(line).collect::<String>())
}

/// What is missing, can be had, and brings something new.
fn gains(rights: &Rights) -> impl Iterator<Item = &Right> {
    let is_offered = |right: &&Right| !right.available && right.remedy.is_some();
    let twins = [[Ability::FreezeV2, Ability::FreezerV1], [Ability::CpusetV2, Ability::CpusetV1]];
    let brings_nothing = move |name: Ability| match name {
        // The first line is about these.
        Ability::IdleGroups | Ability::CpuV2 | Ability::CpuV1 => true,
        // No policy needs it.
        Ability::SchedExt => true,
        // One of two is enough, and the first that can be had is shown.
        _ => twins.iter().filter(|twins| twins.contains(&name)).any(|twins| {
            let first =
                rights.rights.iter().filter(is_offered).find(|one| twins.contains(&one.name));
            twins.iter().any(|twin| rights.has(*twin)) || first.is_some_and(|one| one.name != name)
        }),
    };
    rights.rights.iter().filter(is_offered).filter(move |right| !brings_nothing(right.name))
}

pub(super) fn everything(report: &DoctorReport) -> String {
    let rights = &report.rights;
    let mut parts = vec![
        format!(
            "Linux {}, capability level: {} ({})",
            rights.kernel,
            name(rights.level),
            rights.level.means()
        ),
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
        let what = [gap.backend.to_owned(), gap.threads.to_string(), gap.repetitions.to_string()];
        table.add_row(what.into_iter().chain(times));
    }
    format!(
        "{table}\nfreeze: until every thread is known to have stopped; thaw: until one of them \
         runs again;\n\
         gap: from the last thread of one program running to the first one of the other."
    )
}

/// The name that the JSON report has for something, so that people and scripts speak of the same.
fn name(named: impl Serialize) -> String {
    match serde_json::to_value(named) {
        Ok(serde_json::Value::String(name)) => name,
        other => {
            unreachable!("capability levels and abilities are written as names, not as {other:?}")
        }
    }
}

#[cfg(test)]
mod tests {
    use cosched_linux::rights::CapabilityLevel;

    use super::*;

    fn right(name: Ability, available: bool, remedy: Option<&str>) -> Right {
        let (detail, gives) = (String::new(), name.gives());
        Right { name, available, detail, gives, remedy: remedy.map(str::to_owned) }
    }

    #[test]
    fn a_remedy_for_several_abilities_is_told_once() {
        let rights = [
            right(Ability::Bpf, false, Some("do")),
            right(Ability::Pmu, false, Some("other")),
            right(Ability::RealTime, false, Some("do")),
        ];
        let text = more(&rights.iter().collect::<Vec<_>>());
        assert!(text.ends_with("\nTo get bpf and real-time: do\nTo get pmu: other"), "{text}");
    }

    /// Two remedies may give the same ability.
    #[test]
    fn only_the_first_possible_remedy_is_offered() {
        let offered = |rights: &[Right]| {
            let (kernel, level) = (String::new(), CapabilityLevel::Unprivileged);
            let rights = Rights { kernel, level, rights: rights.to_vec() };
            gains(&rights).map(|right| right.name).collect::<Vec<_>>()
        };
        let by = Some("do");
        let both = [right(Ability::FreezeV2, false, by), right(Ability::FreezerV1, false, by)];
        assert_eq!(offered(&both), [Ability::FreezeV2]);
        let no_v2 = [right(Ability::FreezeV2, false, None), right(Ability::FreezerV1, false, by)];
        assert_eq!(offered(&no_v2), [Ability::FreezerV1]);
        let one = [right(Ability::FreezeV2, false, by), right(Ability::FreezerV1, true, None)];
        assert_eq!(offered(&one), []);
        let others = [right(Ability::Bpf, false, by), right(Ability::Pmu, false, None)];
        assert_eq!(offered(&others), [Ability::Bpf]);
    }
}
