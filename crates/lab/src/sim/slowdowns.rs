//! `cosched sim slowdowns`: what programs do to each other in pairs and triples on a modelled
//! machine.
//!
//! The programs of the workload (variants of STREAM, usually) run together, two and three at a
//! time, each on CPUs of its own, and each also with a copy of itself. The output is the table from
//! which the policy `bandwidth` predicts (`cosched_policy::Slowdowns` describes its format). A
//! program's co-runners are repeated until it has ended.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use cosched_core::Profile;
use cosched_core::format::count;
use cosched_policy::Kind;
use cosched_sim::SimulatedJob;
use cosched_workload::{ProgramSpec, Repeat, Workload, shown, shown_path};

use super::options::MachineOptions;
use super::simulator::{Scene, Simulator, on_its_own};
use crate::slowdown_document::SlowdownTable;
use crate::source;
use crate::ui::failure::{Failure, together};
use crate::ui::{print, print_json};

const SCHEMA: &str = "cosched-sim-slowdowns/1";

/// Simulates every pair and triple of the programs in a jobs file, and prints the table.
///
/// # Errors
/// When the programs do not fit, or something breaks on the way.
pub fn slowdowns(jobs: &Path, on: &MachineOptions, json: bool) -> Result<ExitCode, Failure> {
    let simulator = Simulator::new(&Scene::from(on))?;
    let mut workload = source::simulated(Some(jobs), &simulator.session)?;
    let file = shown_path(jobs);
    check_traffic(&workload)?;
    workload.programs.sort_by(|a, b| traffic(a).total_cmp(&traffic(b)));
    let cpus = simulator.hardware.topology.cpus().len();
    let threads =
        workload.programs.iter().map(|spec| usize::from(simulator.session.threads(spec))).max();
    if 3 * threads.unwrap_or(0) > cpus {
        let remedy = match cpus {
            0..3 => "take a machine with at least 3",
            _ => "give them fewer threads",
        };
        return Err(Failure::Input(format!(
            "{file}: three programs at a time do not fit into {}: {remedy}",
            count(cpus, "CPU", "CPUs")
        )));
    }
    let jobs = simulator.jobs(&workload)?;
    let table = measured(&simulator, &workload, &jobs)?;
    let name = &simulator.hardware.name;
    let how = {
        let threads = count(threads.unwrap_or(0), "thread", "threads");
        format!("{name}, simulated, {threads} each, {}", on.placement)
    };
    let levels: Vec<f64> = workload.programs.iter().map(traffic).collect();
    let table = table.spread_out(SCHEMA, how, levels);
    match json {
        true => print_json(&serde_json::to_string_pretty(&table).map_err(Failure::broken)?)?,
        false => print(&table.toml())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn traffic(spec: &ProgramSpec) -> f64 {
    spec.memory_gigabytes_per_second.unwrap_or(0.0)
}

/// Every program is a level of the table, so its traffic has to be known and its own.
fn check_traffic(workload: &Workload) -> Result<(), Failure> {
    let programs = &workload.programs;
    let wrong = programs.iter().enumerate().filter_map(|(slot, spec)| {
        let same = programs[..slot].iter().find(|other| traffic(other) == traffic(spec));
        let found = match (spec.memory_gigabytes_per_second, same) {
            (None, _) => "is missing".to_owned(),
            (Some(traffic), _) if traffic <= 0.0 => format!("is {traffic}"),
            (Some(traffic), Some(other)) => format!("is {traffic}, as of '{}'", shown(&other.name)),
            (Some(_), None) => return None,
        };
        let place = &spec.places.command;
        Some(format!(
            "{place}: memory_gigabytes_per_second {found}; give the program its traffic alone, \
             above 0 and different from the others'"
        ))
    });
    let wrong: Vec<String> = wrong.collect();
    if wrong.is_empty() { Ok(()) } else { Err(together(wrong)) }
}

/// What each variant suffers with each other, and with each two.
fn measured(
    simulator: &Simulator,
    workload: &Workload,
    jobs: &[SimulatedJob],
) -> Result<SlowdownTable, Failure> {
    let variants = 0..jobs.len();
    let alone = |(spec, job)| Ok(simulator.alone(spec, job)?.time);
    let alone = workload.programs.iter().zip(jobs).map(alone);
    let alone = alone.collect::<Result<Vec<_>, Failure>>()?;
    let mut table = BTreeMap::new();
    let pairs = variants.clone().flat_map(|a| (a..jobs.len()).map(move |b| vec![a, b]));
    let triples = variants.flat_map(|a| {
        (a..jobs.len()).flat_map(move |b| (b..jobs.len()).map(move |c| vec![a, b, c]))
    });
    for together in pairs.chain(triples) {
        let spec = |(position, variant): (usize, &usize)| ProgramSpec {
            name: position.to_string(),
            repeat: Repeat::UntilAllFinish,
            ..on_its_own(&workload.programs[*variant])
        };
        let beside = Workload { programs: together.iter().enumerate().map(spec).collect() };
        let jobs: Vec<SimulatedJob> =
            together.iter().map(|variant| jobs[*variant].clone()).collect();
        let profiles = vec![Profile::default(); together.len()];
        let (_, outcome, _) = simulator.run(&beside, Kind::Greedy, &jobs, &profiles)?;
        for (position, variant) in together.iter().enumerate() {
            let done = outcome.programs[position].done.ok_or_else(|| {
                Failure::Broken(format!("{} did not end", workload.programs[*variant].name))
            })?;
            let others = [&together[..position], &together[position + 1..]].concat();
            table.insert((*variant, others), done.as_secs_f64() / alone[*variant].as_secs_f64());
        }
    }
    Ok(SlowdownTable(table))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_program_without_traffic_of_its_own_is_named() {
        let program = |keys: &str| format!("[[program]]\ncommand = 'a'\n{keys}\n");
        let of = |traffic: &str| program(&format!("memory_gigabytes_per_second = {traffic}"));
        let text = [of("1.5"), program(""), of("0"), of("1.5"), of("2")].concat();
        let workload = Workload::parse(&text, Path::new("jobs.toml")).unwrap();
        let refused = check_traffic(&workload).unwrap_err();
        let lines: Vec<&str> = refused.text().lines().collect();
        assert_eq!(lines.len(), 4, "{lines:?}");
        let expected = [
            "5:11: program 2 (a-2): memory_gigabytes_per_second is missing;",
            "8:11: program 3 (a-3): memory_gigabytes_per_second is 0;",
            "11:11: program 4 (a-4): memory_gigabytes_per_second is 1.5, as of 'a';",
        ];
        for (line, expected) in lines.iter().zip(expected) {
            assert!(line.starts_with(&format!("jobs.toml:{expected}")), "{line}");
        }
    }
}
