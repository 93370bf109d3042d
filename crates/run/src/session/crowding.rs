//! Programs that start more threads than there are CPUs to run them.

use cosched_core::CpuSet;
use cosched_linux::rights::usable::{Limit, Usable};
use cosched_workload::ProgramSpec;

use super::here::Session;
use super::request::Request;
use crate::ui::Talk;

impl Session {
    /// Says so if programs will start more threads than they may use CPUs, with a remedy.
    pub fn tell_if_crowded(&self, request: &Request<'_>, talk: Talk) {
        let programs = &request.workload.programs;
        let told = |spec: &ProgramSpec| spec.told_threads(self.environment.iter().cloned());
        let told = programs.iter().map(|spec| (spec.name.as_str(), told(spec)));
        if let Some(message) =
            message(&told.collect::<Vec<_>>(), &self.topology.all(), &self.usable)
        {
            talk.tell(format_args!("{message}"));
        }
    }
}

/// What to say of programs with these names, which are told so many threads, or nothing.
fn message(programs: &[(&str, Option<u16>)], all: &CpuSet, usable: &Usable) -> Option<String> {
    let cpus = usable.cpus.len();
    let limits: Vec<String> = usable.limited_by.iter().map(Limit::to_string).collect();
    let limits = match limits.is_empty() {
        true => String::new(),
        false => format!(" ({})", limits.join(", ")),
    };
    let told = |(name, threads): &(&str, Option<u16>)| {
        let threads = threads.filter(|threads| usize::from(*threads) > cpus)?;
        Some(format!("{name} is told to start {threads} threads"))
    };
    if let Some(program) = programs.iter().find_map(told) {
        return Some(format!(
            "{program}, but programs may use {}{limits}: more threads than CPUs only wait. Give it \
             `threads = {cpus}` in a jobs file, or `--threads {cpus}`",
            counted(cpus)
        ));
    }
    // A mask or a cpuset is what programs count; a quota they do not see.
    let seen = without_quotas(all, usable).len();
    let untold = programs.iter().find(|(_, threads)| threads.is_none())?.0;
    (seen > cpus).then(|| {
        format!(
            "{untold} sees {seen} CPUs, but may use {}{limits}: if it starts a thread per CPU, \
             these are too many. Give it `threads = {cpus}` in a jobs file, or `--threads {cpus}`",
            counted(cpus)
        )
    })
}

/// The CPUs that programs see.
fn without_quotas(all: &CpuSet, usable: &Usable) -> CpuSet {
    usable.limited_by.iter().fold(*all, |seen, limit| match limit {
        Limit::Cpuset { cpus, .. } | Limit::Affinity { cpus } => seen.intersection(cpus),
        Limit::Quota { .. } => seen,
    })
}

fn counted(cpus: usize) -> String {
    format!("{cpus} CPU{}", if cpus == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usable(cpus: usize, limited_by: Vec<Limit>) -> Usable {
        Usable { cpus: CpuSet::first(cpus), limited_by }
    }

    fn quota() -> Limit {
        Limit::Quota { cgroup: "/cg/box".into(), cpus: 4.0 }
    }

    #[test]
    fn a_program_that_is_told_too_many_threads_is_named() {
        let four = usable(4, Vec::new());
        let said = message(&[("a", Some(4)), ("b", Some(64))], &CpuSet::first(4), &four).unwrap();
        assert!(said.starts_with("b is told to start 64 threads, but"), "{said}");
        assert!(said.contains("4 CPUs:") && said.contains("`--threads 4`"), "{said}");
        let enough = [("a", Some(4)), ("b", None)];
        assert_eq!(message(&enough, &CpuSet::first(4), &four), None);
    }

    #[test]
    fn a_quota_that_programs_do_not_see_is_named() {
        let box_of_four = usable(4, vec![quota()]);
        let said = message(&[("solver", None)], &CpuSet::first(64), &box_of_four).unwrap();
        assert!(
            said.starts_with("solver sees 64 CPUs, but may use 4 CPUs (the CPU quota"),
            "{said}"
        );
        assert_eq!(message(&[("solver", Some(4))], &CpuSet::first(64), &box_of_four), None);
    }

    #[test]
    fn a_mask_is_what_programs_count_themselves() {
        let masked = usable(4, vec![Limit::Affinity { cpus: CpuSet::first(4) }]);
        assert_eq!(message(&[("solver", None)], &CpuSet::first(64), &masked), None);
    }
}
