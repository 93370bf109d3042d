//! Commands that start several processes to work side by side, and how many.
//!
//! Each of these processes takes as many threads as there are CPUs, if it computes with a thread
//! pool: `pytest -n 8` on 8 CPUs has 64 threads. joblib, Dask and torchrun therefore give each of
//! their processes its share of the CPUs. For the commands here cosched does the same.
//!
//! Others are left alone: `mpirun` binds its processes to CPUs, which pools look at; the processes
//! of a build ask `nproc`, which obeys `OMP_NUM_THREADS`; what Python's `multiprocessing` starts is
//! not known before.

use std::ffi::OsString;

use crate::build_tool::is_build_tool;
use crate::runners::STARTERS;
use crate::spec::ProgramSpec;
use crate::thread_variables::THREAD_VARIABLES;

/// How many processes work side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Workers {
    /// This many; more than one.
    Count(u16),
    /// As many as there are CPUs.
    OnePerCpu,
}

impl Workers {
    /// How many there are on so many CPUs.
    pub fn on(self, cpus: usize) -> usize {
        match self {
            Workers::Count(count) => count.into(),
            Workers::OnePerCpu => cpus.max(1),
        }
    }

    /// How many threads each of them has, if all of them share so many CPUs.
    pub fn threads_each(self, cpus: usize) -> u16 {
        u16::try_from(cpus / self.on(cpus)).unwrap_or(u16::MAX).max(1)
    }
}

/// A command that starts workers, and the option that says how many.
struct Starter {
    name: &'static str,
    /// The option; its value is the next word, or behind the letter.
    short: &'static [&'static str],
    /// The same in words; the value is the next word, or behind `=`.
    long: &'static [&'static str],
    /// How many there are without the option.
    otherwise: Option<Workers>,
    /// How many there are where the option has no value.
    bare: Option<Workers>,
}

/// Sources: the manual of each, by the option.
const WORKER_STARTERS: [Starter; 5] = [
    // pytest-xdist, "Running tests across multiple CPUs".
    Starter { name: "pytest", short: &["-n"], long: &["--numprocesses"], ..NONE },
    Starter { name: "py.test", short: &["-n"], long: &["--numprocesses"], ..NONE },
    // GNU findutils, "xargs options".
    Starter { name: "xargs", short: &["-P"], long: &["--max-procs"], ..NONE },
    // GNU parallel, --jobs: without it, one per CPU.
    Starter {
        name: "parallel",
        short: &["-j", "-P"],
        long: &["--jobs", "--max-procs"],
        otherwise: Some(Workers::OnePerCpu),
        bare: None,
    },
    // CMake, ctest(1), --parallel: without a number, one per CPU.
    Starter {
        name: "ctest",
        short: &["-j"],
        long: &["--parallel"],
        otherwise: None,
        bare: Some(Workers::OnePerCpu),
    },
];
const NONE: Starter = Starter { name: "", short: &[], long: &[], otherwise: None, bare: None };

/// How many workers a command with these arguments starts; `None`: it starts none, or it is not
/// known, or they build software.
pub(crate) fn started_workers(name: &str, arguments: &[String]) -> Option<Workers> {
    if STARTERS.contains(&name) {
        let place = arguments.iter().position(|word| starter(word).is_some())?;
        return started_workers(&arguments[place], &arguments[place + 1..]);
    }
    let starter = starter(name)?;
    if arguments.iter().any(|word| is_build_tool(word)) {
        return None;
    }
    let mut words = arguments.iter().map(String::as_str).peekable();
    let mut found = starter.otherwise;
    while let Some(word) = words.next() {
        let attached = |option: &&str| word.strip_prefix(*option).filter(|rest| !rest.is_empty());
        let short = starter.short.iter().find_map(attached);
        let long = starter.long.iter().find_map(attached).and_then(|rest| rest.strip_prefix('='));
        if let Some(value) = long.or(short) {
            found = count(value);
        } else if starter.short.contains(&word) || starter.long.contains(&word) {
            let is_value = |word: &&str| !word.starts_with('-');
            found = words.next_if(is_value).map_or(starter.bare, count);
        }
    }
    found.filter(|workers| *workers > Workers::Count(1))
}

fn starter(name: &str) -> Option<&'static Starter> {
    // Distributions have versions in names: pytest-3.
    let base = name.trim_end_matches(|c: char| c.is_ascii_digit() || "-.".contains(c));
    WORKER_STARTERS.iter().find(|starter| starter.name == base)
}

fn count(value: &str) -> Option<Workers> {
    match value {
        "auto" | "logical" | "100%" => Some(Workers::OnePerCpu),
        // Of xargs, GNU parallel and pytest, 0 is no count.
        value => value.parse().ok().filter(|count| *count > 0).map(Workers::Count),
    }
}

impl ProgramSpec {
    /// How many processes of the program work side by side, as far as its command tells. Scripts
    /// are read only if they may be.
    pub fn workers(
        &self,
        inherited: &[(OsString, OsString)],
        may_read_scripts: bool,
    ) -> Option<Workers> {
        self.command_traits(inherited, may_read_scripts).workers
    }

    /// Whether something says how many threads the libraries have that compute in this program.
    pub fn has_own_pools(&self, inherited: &[(OsString, OsString)]) -> bool {
        let all = self.environment(inherited.iter().cloned());
        let mut pools = pools_of_libraries();
        pools.any(|pool| all.iter().any(|(name, _)| name == pool))
    }
}

/// The variables by which the libraries that compute in each worker are told how many threads to
/// have.
pub fn pools_of_libraries() -> impl Iterator<Item = &'static str> {
    THREAD_VARIABLES.iter().filter(|known| known.is_of_library()).map(|known| known.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Workload;

    fn workers(command: &[&str]) -> Option<Workers> {
        workers_in("/".as_ref(), command)
    }

    fn workers_in(folder: &std::path::Path, command: &[&str]) -> Option<Workers> {
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        let workload = Workload::from_commands(vec![command], folder).unwrap();
        workload.programs[0].workers(&[], true)
    }

    #[test]
    fn commands_tell_how_many_workers_they_start() {
        let (some, per_cpu) = (|count| Some(Workers::Count(count)), Some(Workers::OnePerCpu));
        for (command, expected) in [
            (&["pytest", "-q", "-n", "4"][..], some(4)),
            (&["pytest-3", "-nauto"], per_cpu),
            (&["python3.12", "-m", "pytest", "--numprocesses=3", "tests"], some(3)),
            (&["uv", "run", "pytest", "-n", "logical"], per_cpu),
            (&["nice", "-n", "5", "xargs", "-P8", "-n", "1", "./solver"], some(8)),
            (&["xargs", "--max-procs", "2", "./solver"], some(2)),
            (&["parallel", "./solver", ":::", "1", "2"], per_cpu),
            (&["parallel", "-j", "2", "./solver", ":::", "1"], some(2)),
            (&["ctest", "-j"], per_cpu),
            (&["ctest", "--parallel", "6"], some(6)),
            (&["sh", "-c", "cd x && ls | xargs -P 3 ./solver 2>&1"], some(3)),
        ] {
            assert_eq!(workers(command), expected, "{command:?}");
        }
    }

    #[test]
    fn nothing_is_said_where_the_number_of_workers_is_not_known() {
        for command in [
            &["pytest", "-q"][..],
            &["pytest", "-n", "0"],
            &["pytest", "-n", "1"],
            &["pytest", "-n", "many"],
            &["xargs", "./solver"],
            &["xargs", "-P", "0", "./solver"],
            &["xargs", "-P", "4", "make", "-C"],
            &["parallel", "-j", "50%", "./solver", ":::", "1"],
            &["mpirun", "-np", "4", "./solver"],
            &["make", "-j", "4"],
            &["./solver", "-n", "4"],
            &["sh", "-c", "pytest -n 4 && ./solver"],
            &["sh", "-c", "./solver; pytest -n 4"],
        ] {
            assert_eq!(workers(command), None, "{command:?}");
        }
    }

    #[test]
    fn scripts_that_only_start_workers_are_looked_into() {
        let folder = tempfile::tempdir().unwrap();
        let text = "#!/bin/bash\n# Tests.\ncd \"$(dirname \"$0\")\" || exit 2\n\
                    exec \"${PY:-python3}\" -m pytest -q -n \"${WORKERS:-4}\" t.py\n";
        std::fs::write(folder.path().join("run.sh"), text).unwrap();
        assert_eq!(workers_in(folder.path(), &["./run.sh"]), Some(Workers::Count(4)));
    }

    #[test]
    fn workers_share_the_cpus() {
        assert_eq!(Workers::Count(4).threads_each(2), 1);
        assert_eq!(Workers::Count(3).threads_each(16), 5);
        assert_eq!(Workers::OnePerCpu.threads_each(16), 1);
    }

    #[test]
    fn what_the_user_says_of_pools_counts() {
        let command = ["pytest", "-n", "4"].map(str::to_owned).to_vec();
        let mut workload = Workload::from_commands(vec![command], "/".as_ref()).unwrap();
        let spec = &mut workload.programs[0];
        let variable = |name: &str| [(OsString::from(name), OsString::from("2"))];
        assert!(!spec.has_own_pools(&variable("GOMAXPROCS")));
        assert!(spec.has_own_pools(&variable("OPENBLAS_NUM_THREADS")));
        spec.threads = Some(2);
        assert!(spec.has_own_pools(&[]));
    }
}
