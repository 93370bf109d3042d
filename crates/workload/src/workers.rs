//! Commands that start several processes to work at the same time, and how many.
//!
//! Each of these processes takes as many threads as there are CPUs, if it computes with a thread
//! pool: `pytest -n 8` on 8 CPUs has 64 threads. joblib, Dask and torchrun therefore give each of
//! their processes its share of the CPUs. For the commands here cosched does the same.
//!
//! Others are left alone: `mpirun` binds its processes to CPUs, which pools look at; the processes
//! of a build ask `nproc`, which obeys `OMP_NUM_THREADS`; what Python's `multiprocessing` starts is
//! not known before.

use std::ffi::OsString;
use std::path::Path;

use crate::build_tool::{base_name, ends_as_build, is_build};
use crate::spec::ProgramSpec;
use crate::thread_variables::THREAD_VARIABLES;

/// How many processes work at the same time.
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

/// Package managers with a subcommand `run` that starts the command behind it.
const MANAGERS: [&str; 5] = ["hatch", "pdm", "pipenv", "poetry", "uv"];

/// The command that a package manager with these arguments starts.
pub(crate) fn started_by_manager<'a>(name: &str, arguments: &'a [String]) -> Option<&'a [String]> {
    let (subcommand, rest) = arguments.split_first()?;
    let starts = MANAGERS.contains(&name) && subcommand == "run";
    // Which of its options have a value is not known here.
    (starts && !rest.first()?.starts_with('-')).then_some(rest)
}

/// A command that starts workers, and its options.
struct Starter {
    name: &'static str,
    /// How many workers: the value is the next word, or behind the letter.
    short: &'static [&'static str],
    /// The same in words: the value is the next word, or behind `=`.
    long: &'static [&'static str],
    /// Options that take the next word as their value.
    valued: &'static [&'static str],
    /// It starts several processes only with an option that begins like one of these, if there are
    /// any.
    needs: &'static [&'static str],
    /// Words with which it starts no workers.
    without: &'static [&'static str],
    /// How many there are where the option has no value.
    bare: Option<Workers>,
    /// Whether the first word that is no option begins the command that each worker executes.
    executes: bool,
}

const NO_STARTER: Starter = Starter {
    name: "",
    short: &[],
    long: &[],
    valued: &[],
    needs: &[],
    without: &[],
    bare: None,
    executes: false,
};
/// pytest-xdist, "Running tests across multiple CPUs".
const PYTEST: Starter = Starter {
    name: "pytest",
    short: &["-n"],
    long: &["--numprocesses"],
    valued: &["-c", "-k", "-m", "-o", "-p", "-r", "-W"],
    without: &["no:xdist", "--co", "--collect-only", "--pdb", "--help", "--version"],
    ..NO_STARTER
};
const STARTERS: [Starter; 5] = [
    PYTEST,
    Starter { name: "py.test", ..PYTEST },
    // GNU findutils, "xargs options".
    Starter {
        name: "xargs",
        short: &["-P"],
        long: &["--max-procs"],
        valued: &[
            "-a",
            "-d",
            "-E",
            "-I",
            "-L",
            "-n",
            "-s",
            "--arg-file",
            "--delimiter",
            "--max-args",
            "--max-chars",
        ],
        needs: &["-n", "-L", "-I", "-i", "-l", "--max-args", "--max-lines", "--replace"],
        executes: true,
        ..NO_STARTER
    },
    // GNU parallel, --jobs.
    Starter {
        name: "parallel",
        short: &["-j", "-P"],
        long: &["--jobs", "--max-procs"],
        valued: &["-a", "-C", "-d", "-I", "-L", "-n", "-N", "-S", "--arg-file", "--joblog"],
        executes: true,
        ..NO_STARTER
    },
    // CMake, ctest(1), --parallel: without a number, one per CPU.
    Starter {
        name: "ctest",
        short: &["-j"],
        long: &["--parallel"],
        valued: &["-C", "-E", "-I", "-L", "-LE", "-M", "-R", "-T"],
        without: &["-N", "--show-only", "--version", "--help"],
        bare: Some(Workers::OnePerCpu),
        ..NO_STARTER
    },
];

/// How many workers a command with this first word and these arguments starts; `None`: it starts
/// none, or it is not known, or they build software: scripts in `folder` are read, if it is given.
pub(crate) fn started_workers(
    first: &str,
    arguments: &[String],
    folder: Option<&Path>,
) -> Option<Workers> {
    let starter = starter(first)?;
    let end = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
    let mut words = arguments[..end].iter().map(String::as_str).peekable();
    let (mut found, mut read) = (None, 0);
    while let Some(word) = words.next_if(|word| !starter.executes || word.starts_with('-')) {
        let attached = |option: &&str| word.strip_prefix(*option).filter(|rest| !rest.is_empty());
        let short = starter.short.iter().find_map(attached);
        let long = starter.long.iter().find_map(attached).and_then(|rest| rest.strip_prefix('='));
        read += 1;
        if starter.without.contains(&word) {
            return None;
        } else if let Some(value) = long.or(short) {
            found = count(value);
        } else if starter.short.contains(&word) || starter.long.contains(&word) {
            let value = words.next_if(|word| !word.starts_with('-'));
            read += usize::from(value.is_some());
            found = value.map_or(starter.bare, count);
        } else if starter.valued.contains(&word) {
            let value = words.next()?;
            if starter.without.contains(&value) {
                return None;
            }
            read += 1;
        }
    }
    let found = found.filter(|workers| *workers > Workers::Count(1))?;
    let own = &arguments[..read.min(end)];
    let has = |needed: &&str| own.iter().any(|word| word.starts_with(*needed));
    let is_limited = own.iter().any(|word| word.starts_with("--maxprocesses"));
    if !starter.needs.is_empty() && !starter.needs.iter().any(has) || is_limited {
        return None;
    }
    if !starter.executes {
        return Some(found);
    }
    let command = &arguments[read..];
    let (inner, rest) = command.split_first()?;
    let builds = is_build(command, folder) || inner.contains(' ') && ends_as_build(inner);
    // Workers of workers: more than are counted here.
    (!builds && started_workers(inner, rest, folder).is_none()).then_some(found)
}

/// The starter with this path or name.
fn starter(first: &str) -> Option<&'static Starter> {
    let name = base_name(first);
    // Distributions have versions in names: pytest-3. A program in a folder of the user's may have
    // any name.
    let base = name.trim_end_matches(|c: char| c.is_ascii_digit() || "-.".contains(c));
    let folder = first.strip_suffix(name)?;
    let is_of_system =
        |folder: &str| ["/bin/", "/opt/", "/usr/"].iter().any(|of| folder.starts_with(of));
    let found = STARTERS.iter().find(|starter| starter.name == base)?;
    let of_python = base.starts_with("py");
    (folder.is_empty() || of_python || is_of_system(folder)).then_some(found)
}

fn count(value: &str) -> Option<Workers> {
    match value {
        "auto" | "logical" | "100%" => Some(Workers::OnePerCpu),
        value if !value.bytes().all(|byte| byte.is_ascii_digit()) => None,
        // Of xargs, GNU parallel and pytest, 0 is no count.
        value => value.parse().ok().filter(|count| *count > 0).map(Workers::Count),
    }
}

impl ProgramSpec {
    /// How many processes of the program work at the same time, as far as its command tells.
    /// Scripts are read only if they may be.
    pub fn workers(
        &self,
        inherited: &[(OsString, OsString)],
        may_read_scripts: bool,
    ) -> Option<Workers> {
        // With it, `pytest -n auto` starts another number.
        let auto = self.variable("PYTEST_XDIST_AUTO_NUM_WORKERS", inherited);
        let workers = self.command_traits(inherited, may_read_scripts).workers;
        workers.filter(|workers| *workers != Workers::OnePerCpu || auto.is_none())
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
    use crate::Workload;

    use super::*;

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
            (&["xargs", "--max-procs", "2", "--max-args", "1", "./solver"], some(2)),
            (&[".venv/bin/pytest", "-n", "4"], some(4)),
            (&["parallel", "-j", "100%", "./solver", ":::", "1", "2"], per_cpu),
            (&["/usr/bin/parallel", "-j", "2", "./solver", ":::", "1"], some(2)),
            (&["poetry", "run", "pytest", "-k", "not slow", "-n", "3"], some(3)),
            (&["xargs", "-I", "{}", "-P", "4", "./solver", "{}"], some(4)),
            (&["ctest", "-j"], per_cpu),
            (&["ctest", "--parallel", "6"], some(6)),
            (&["sh", "-c", "cd x && ls | xargs -n 1 -P 3 ./solver 2>&1"], some(3)),
            (&["sh", "-c", ". venv/bin/activate; A=1; pytest -n 4"], some(4)),
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
            &["xargs", "-P", "4", "./solver"],
            &["xargs", "-P4", "-n1", "sh", "-c", "make"],
            &["pytest", "-n", "auto", "--maxprocesses", "1"],
            &["./bin/parallel", "-j", "2", "data"],
            &["sh", "-c", "pytest -n 4 $(./pick)"],
            &["sh", "-c", "pytest -n 4 `./pick`"],
            &["bash", "-c", "cat <(./solver) | xargs -P 2 -n1 echo"],
            &["bash", "-c", "xargs -P 2 -n1 echo < <(./solver)"],
            &["sh", "-c", "cd \"$(./pick)\"; pytest -n 2"],
            &["sh", "-c", "A=\"x echo y\" ./solver; pytest -n 2"],
            &["sh", "-c", "git bisect run ./solver; pytest -n 2"],
            &["xargs", "./solver", "-P", "4"],
            &["xargs", "-P", "1", "./solver", "-P", "4"],
            &["xargs", "-P", "2", "pytest", "-n", "4"],
            &["xargs", "-P", "2", "sh", "-c", "make -j$(nproc) -C $0"],
            &["parallel", "-j", "50%", "./solver", ":::", "1"],
            &["parallel", "-j", "+2", "./solver", ":::", "1"],
            &["parallel", "./solver", ":::", "1"],
            &["parallel", "-j2", "cd {} && make", ":::", "a", "b"],
            &["./parallel", "-j", "4", "x"],
            &["uv", "run", "python", "train.py", "parallel", "-n", "4"],
            &["uv", "run", "--with", "pytest", "python", "train.py", "-n", "4"],
            &["uv", "pip", "install", "pytest", "-n", "4"],
            &["pytest", "--", "-n", "4"],
            &["pytest", "-k", "-n", "4"],
            &["pytest", "-n", "4", "-p", "no:xdist"],
            &["pytest", "-n", "4", "--collect-only"],
            &["env", "OMP_NUM_THREADS=4", "pytest", "-n", "4"],
            &["sh", "-c", "export OMP_NUM_THREADS=4; pytest -n 4"],
            &["sh", "-c", "pytest -q  # -n 4 is slower"],
            &["sh", "-c", "WORKERS=1; pytest -n ${WORKERS:-4}"],
            &["sh", "-c", "R=$(./solver); echo a | xargs -n1 -P 2 echo"],
            &["sh", "-c", "echo \"$(./solver)\" | xargs -n1 -P 2 echo"],
            &["sh", "-c", ". ./solver; echo a | xargs -n1 -P 2 echo"],
            &["sh", "-c", "find . -exec ./solver {} + ; echo a | xargs -n1 -P 2 echo"],
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
        std::fs::write(folder.path().join("train.py"), "# Tests: see ./run.sh\n").unwrap();
        assert_eq!(workers_in(folder.path(), &["python3", "train.py"]), None);
        std::fs::write(folder.path().join("job.sh"), "# See ./run.sh.\n./solver\n").unwrap();
        assert_eq!(workers_in(folder.path(), &["sh", "job.sh"]), None);
        // `nproc` obeys the variable that workers are given.
        std::fs::write(folder.path().join("each.sh"), "#!/bin/sh\nmake -j$(nproc)\n").unwrap();
        let each = |script| workers_in(folder.path(), &["xargs", "-P", "4", "-n", "1", script]);
        assert_eq!([each("./each.sh"), each("./job.sh")], [None, Some(Workers::Count(4))]);
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
