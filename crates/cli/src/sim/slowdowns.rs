//! `cosched sim slowdowns`: what programs do to each other in pairs and triples on a modelled machine.
//!
//! The programs of the workload (variants of STREAM, usually) are put side by side, two and three at a time, each
//! on CPUs of its own, also each beside itself. What comes out is the table from which the policy `bandwidth` predicts
//! (`cosched_policy::Slowdowns` tells its format). A program's co-runners are repeated until it has ended.

use std::collections::BTreeMap;
use std::process::ExitCode;

use cosched_core::Profile;
use cosched_core::workload::{ProgramSpec, Repeat, Workload, shown_path};
use cosched_policy::Kind;
use cosched_sim::Job;

use super::{Scene, Simulator};
use crate::args::SimSlowdownsArgs;
use crate::failure::Failure;
use crate::session::print;

/// Simulates every pair and triple, and prints the table.
pub(super) fn slowdowns(args: &SimSlowdownsArgs) -> Result<ExitCode, Failure> {
    let mut workload = Workload::load(&args.workload).map_err(Failure::input)?;
    let file = shown_path(&args.workload);
    let traffic = |spec: &ProgramSpec| spec.memory_gigabytes_per_second.unwrap_or(0.0);
    workload.programs.sort_by(|a, b| traffic(a).total_cmp(&traffic(b)));
    let simulator = Simulator::new(&Scene::from(&args.on))?;
    let cpus = simulator.hardware.topology.cpus().len();
    let threads =
        workload.programs.iter().map(|spec| usize::from(simulator.session.threads(spec))).max();
    if 3 * threads.unwrap_or(0) > cpus {
        return Err(Failure::Input(format!(
            "{file}: three programs at a time do not fit into {} CPUs: give them fewer threads",
            cpus
        )));
    }
    let rises = workload.programs.windows(2).all(|two| traffic(&two[0]) < traffic(&two[1]));
    if !rises || workload.programs.iter().any(|spec| traffic(spec) <= 0.0) {
        return Err(Failure::Input(format!(
            "{file}: every program needs `memory_gigabytes_per_second`, above 0 and different from the others'"
        )));
    }
    let jobs = simulator.jobs(&workload)?;
    let table = Table::of(&simulator, &workload, &jobs)?;
    let name = &simulator.hardware.name;
    let how = format!(
        "{name}, simulated, {} threads each, {}",
        threads.unwrap_or(0),
        args.on.how.placement()
    );
    let levels: Vec<f64> = workload.programs.iter().map(traffic).collect();
    print(&table.show(&how, &levels))?;
    Ok(ExitCode::SUCCESS)
}

/// The slowdown of a variant beside one or two others, whose numbers rise.
struct Table(BTreeMap<(usize, Vec<usize>), f64>);

impl Table {
    fn of(simulator: &Simulator, workload: &Workload, jobs: &[Job]) -> Result<Table, Failure> {
        let variants = 0..jobs.len();
        let alone =
            workload.programs.iter().zip(jobs).map(|(spec, job)| simulator.alone(spec, job));
        let alone = alone.collect::<Result<Vec<_>, _>>()?;
        let mut table = BTreeMap::new();
        let pairs = variants.clone().flat_map(|a| (a..jobs.len()).map(move |b| vec![a, b]));
        let triples = variants.flat_map(|a| {
            (a..jobs.len()).flat_map(move |b| (b..jobs.len()).map(move |c| vec![a, b, c]))
        });
        for together in pairs.chain(triples) {
            let spec = |(position, variant): (usize, &usize)| ProgramSpec {
                name: position.to_string(),
                repeat: Repeat::UntilAllFinish,
                ..workload.programs[*variant].clone()
            };
            let beside = Workload { programs: together.iter().enumerate().map(spec).collect() };
            let jobs: Vec<Job> = together.iter().map(|variant| jobs[*variant].clone()).collect();
            let profiles = vec![Profile::default(); together.len()];
            let (outcome, _) = simulator.run(&beside, Kind::Greedy, &jobs, &profiles)?;
            for (position, variant) in together.iter().enumerate() {
                let done = outcome.programs[position].done.ok_or_else(|| {
                    Failure::Broken(format!("{} did not end", workload.programs[*variant].name))
                })?;
                let others = [&together[..position], &together[position + 1..]].concat();
                table
                    .insert((*variant, others), done.as_secs_f64() / alone[*variant].as_secs_f64());
            }
        }
        Ok(Table(table))
    }

    fn slowdown(&self, variant: usize, mut others: Vec<usize>) -> f64 {
        others.sort_unstable();
        self.0[&(variant, others)]
    }

    fn show(&self, machine: &str, levels: &[f64]) -> String {
        let n = levels.len();
        let list = |items: Vec<String>| format!("[{}]", items.join(", "));
        let row = |slowdown: &dyn Fn(usize) -> f64| {
            list((0..n).map(|other| format!("{:.4}", slowdown(other))).collect())
        };
        let pairs = (0..n).map(|a| format!("    {},\n", row(&|b| self.slowdown(a, vec![b]))));
        let triples = (0..n).map(|a| {
            let rows =
                (0..n).map(|b| format!("        {},\n", row(&|c| self.slowdown(a, vec![b, c]))));
            format!("    [\n{}    ],\n", rows.collect::<String>())
        });
        format!(
            "machine = {machine:?}\ngigabytes_per_second = {}\npairs = [\n{}]\ntriples = [\n{}]",
            list(levels.iter().map(|level| format!("{level:?}")).collect()),
            pairs.collect::<String>(),
            triples.collect::<String>(),
        )
    }
}
