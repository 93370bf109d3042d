//! Programs that start more threads than there are CPUs to run them.

use cosched_core::CpuSet;
use cosched_core::format::count;
use cosched_linux::rights::usable::{Limit, Usable};
use cosched_workload::{ProgramSpec, Workload};

use super::here::Session;
use crate::ui::Talk;

impl Session {
    /// A message, with a remedy, if programs will start more threads than they may use CPUs.
    pub fn tell_if_crowded(&self, workload: &Workload, talk: Talk) {
        let environment = || self.environment.iter().cloned();
        let counts = |spec: &ProgramSpec| match spec.told_threads(environment()) {
            Some(threads) => {
                // The processes of a build hear of jobs, and not of threads.
                let workers = self.workers(spec).filter(|_| !spec.is_build());
                let workers = workers.map_or(1, |them| them.on(self.usable.cpus.len()));
                Count::Told { threads, workers }
            }
            None if spec.has_thread_variable(environment()) => Count::OfSomePool,
            None => Count::OfCpus,
        };
        let programs = workload.programs.iter();
        let programs: Vec<_> = programs.map(|spec| (spec.name.as_str(), counts(spec))).collect();
        if let Some(message) = message(&programs, &self.topology.all(), &self.usable) {
            talk.tell(format_args!("{message}"));
        }
    }
}

/// How many threads a program will start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    /// As many as it is told, in each of so many processes.
    Told { threads: u16, workers: usize },
    /// Some pool of it is told, and it is not known whether all are.
    OfSomePool,
    /// One for each CPU that it sees, if it starts threads at all.
    OfCpus,
}

/// What to say of programs with these names, or nothing.
fn message(programs: &[(&str, Count)], all: &CpuSet, usable: &Usable) -> Option<String> {
    let cpus = usable.cpus.len();
    let limits: Vec<String> = usable.limited_by.iter().map(Limit::to_string).collect();
    let limits = match limits.is_empty() {
        true => String::new(),
        false => format!(", by {}", limits.join(" and ")),
    };
    let may_use = format!("may use {}{limits}", count(cpus, "CPU", "CPUs"));
    let told = |(name, count): &(&str, Count)| match *count {
        Count::Told { threads, .. } if usize::from(threads) > cpus => {
            Some((name.to_string(), threads))
        }
        _ => None,
    };
    let told: Vec<(String, u16)> = programs.iter().filter_map(told).collect();
    if let [(name, threads), more @ ..] = &told[..] {
        let (names, verb, them) = match more {
            [] => (name.clone(), "is", "it"),
            [_] => (format!("{name} and another program"), "are", "them"),
            _ => (format!("{name} and {} other programs", more.len()), "are", "them"),
        };
        let up_to = if more.iter().all(|(_, other)| other == threads) { "" } else { "up to " };
        let threads = told.iter().map(|(_, threads)| threads).max().unwrap_or(threads);
        return Some(format!(
            "{names} {verb} told to start {up_to}{threads} threads, but {may_use}: their threads \
             wait for a CPU in turn. Give {them} {cpus}: `threads = {cpus}` in a jobs file, \
             `--threads {cpus}`, or OMP_NUM_THREADS={cpus}"
        ));
    }
    for (name, count) in programs {
        if let Count::Told { threads: threads @ 2.., workers: workers @ 2.. } = *count {
            let each = (cpus / workers).max(1);
            if usize::from(threads) * workers > cpus {
                return Some(format!(
                    "{name} starts {workers} processes, each of which is told to start {threads} \
                     threads, but {may_use}: their threads wait for a CPU in turn. Give each \
                     {each}: `threads = {each}` in a jobs file, `--threads {each}`, or \
                     OMP_NUM_THREADS={each}"
                ));
            }
        }
    }
    // A mask or a cpuset is what programs count; a quota they do not see.
    let seen = without_quotas(all, usable).len();
    let (name, _) = programs.iter().find(|(_, count)| *count == Count::OfCpus)?;
    (seen > cpus).then(|| {
        format!(
            "{name} sees {seen} CPUs, but {may_use}: if it starts a thread per CPU, these are too \
             many. Give it `threads = {cpus}` in a jobs file, or `--threads {cpus}`"
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

#[cfg(test)]
mod tests {
    use super::*;

    fn usable(cpus: usize, limited_by: Vec<Limit>) -> Usable {
        Usable { cpus: CpuSet::first(cpus), limited_by }
    }

    fn quota() -> Limit {
        Limit::Quota { cgroup: "/cg/box".into(), cpus: 4.0 }
    }

    fn told(threads: u16) -> Count {
        Count::Told { threads, workers: 1 }
    }

    #[test]
    fn processes_times_threads_that_are_too_many_are_named() {
        let said = |threads, workers| {
            let count = Count::Told { threads, workers };
            message(&[("pytest", count)], &CpuSet::first(4), &usable(4, Vec::new()))
        };
        let expected = "pytest starts 3 processes, each of which is told to start 2 threads, but \
                        may use 4 CPUs:";
        let said_of_six = said(2, 3).unwrap();
        assert!(said_of_six.starts_with(expected), "{said_of_six}");
        assert!(said_of_six.ends_with("OMP_NUM_THREADS=1"), "{said_of_six}");
        assert_eq!([said(2, 2), said(1, 8)], [None, None]);
    }

    #[test]
    fn a_program_that_is_told_too_many_threads_is_named() {
        let four = usable(4, Vec::new());
        let said = message(&[("a", told(4)), ("b", told(64))], &CpuSet::first(4), &four).unwrap();
        assert!(said.starts_with("b is told to start 64 threads, but"), "{said}");
        assert!(said.contains("may use 4 CPUs:") && said.contains("`--threads 4`, or"), "{said}");
        let more = [("a", told(64)), ("b", told(8)), ("c", told(5))];
        let said = message(&more, &CpuSet::first(4), &four).unwrap();
        let expected = "a and 2 other programs are told to start up to 64 threads, but";
        assert!(said.starts_with(expected), "{said}");
        let enough = [("a", told(4)), ("b", Count::OfCpus)];
        assert_eq!(message(&enough, &CpuSet::first(4), &four), None);
    }

    #[test]
    fn a_quota_that_programs_do_not_see_is_named() {
        let box_of_four = usable(4, vec![quota()]);
        let said = message(&[("solver", Count::OfCpus)], &CpuSet::first(64), &box_of_four).unwrap();
        let expected =
            "solver sees 64 CPUs, but may use 4 CPUs, by the CPU quota of /cg/box (4 CPUs)";
        assert!(said.starts_with(expected), "{said}");
        for count in [told(4), Count::OfSomePool] {
            assert_eq!(message(&[("solver", count)], &CpuSet::first(64), &box_of_four), None);
        }
    }

    #[test]
    fn a_mask_is_what_programs_count_themselves() {
        let masked = usable(4, vec![Limit::Affinity { cpus: CpuSet::first(4) }]);
        assert_eq!(message(&[("solver", Count::OfCpus)], &CpuSet::first(64), &masked), None);
    }
}
