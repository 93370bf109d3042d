//! The environment of a program, and how many threads it takes.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use super::build_tool::is_build;
use super::spec::ProgramSpec;
use super::thread_variables::{OPENMP, THREAD_VARIABLES};

impl ProgramSpec {
    /// The program's whole environment, sorted by name: the inherited one, over it the
    /// [`THREAD_VARIABLES`] where `threads` is given, over both what `env` says.
    pub fn environment(
        &self,
        inherited: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Vec<(OsString, OsString)> {
        let mut all: BTreeMap<OsString, OsString> = inherited.into_iter().collect();
        if let Some(threads) = self.threads {
            let builds = self.is_build();
            for variable in THREAD_VARIABLES {
                let inherited = all.get(OsStr::new(variable.name)).map(OsString::as_os_str);
                let value = variable.value(threads, builds, inherited.unwrap_or_default());
                all.extend(value.map(|value| (variable.name.into(), value)));
            }
        }
        all.extend(self.env.iter().map(|(name, value)| (name.into(), value.into())));
        all.into_iter().collect()
    }

    /// Whether it builds software, as far as its command tells.
    pub fn is_build(&self) -> bool {
        is_build(&self.command, Some(&self.cwd))
    }

    /// Whether the program gets the inherited value of a variable: neither `threads` nor `env` says
    /// another.
    pub fn inherits(&self, variable: &str) -> bool {
        let known = THREAD_VARIABLES.iter().find(|known| known.name == variable);
        let replaced = known.filter(|_| self.threads.is_some());
        let replaced = replaced.is_some_and(|known| known.replaces(self.is_build()));
        !replaced && !self.env.contains_key(variable)
    }

    /// A variable of its own `env` that `threads` would set, if there is one.
    pub fn own_thread_variable(&self) -> Option<&'static str> {
        let mut all = THREAD_VARIABLES.iter().map(|known| known.name);
        all.find(|name| self.env.contains_key(*name))
    }

    /// Whether its own `env` has the variable of OpenMP, so that it is [taken](Self::asked_threads)
    /// to have as many threads as that says, whatever it is told.
    pub fn has_own_count(&self) -> bool {
        self.env.contains_key(OPENMP)
    }

    /// How many threads the program will request on CPUs at once; never zero. Where it is not told:
    /// one per CPU of the machine, which is what OpenMP and OpenBLAS take.
    pub fn asked_threads(
        &self,
        inherited: impl IntoIterator<Item = (OsString, OsString)>,
        cpus: usize,
    ) -> u16 {
        let all = || u16::try_from(cpus).unwrap_or(u16::MAX).max(1);
        self.threads.or_else(|| self.told_threads(inherited)).unwrap_or_else(all)
    }

    /// How many threads the program will start because it is told: by the first number of
    /// `OMP_NUM_THREADS` in its `env`, or else by `threads`, or else by that number in the
    /// inherited environment; `None`: it is not told.
    pub fn told_threads(
        &self,
        inherited: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Option<u16> {
        let own = self.env.get(OPENMP).and_then(|value| first_number(value.as_ref()));
        own.or(self.threads).or_else(|| {
            let mut all = self.environment(inherited).into_iter();
            let (_, value) = all.find(|(name, _)| name == OPENMP)?;
            first_number(&value)
        })
    }

    /// Whether a variable of its environment says how many threads some pool has.
    pub fn has_thread_variable(
        &self,
        inherited: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> bool {
        let all = self.environment(inherited);
        all.iter().any(|(name, _)| THREAD_VARIABLES.iter().any(|known| name == known.name))
    }
}

/// The first of the numbers, one per nesting level, that OpenMP allows in its variable.
fn first_number(list: &OsStr) -> Option<u16> {
    let first = list.to_str()?.split(',').next()?.trim();
    first.parse().ok().filter(|threads| *threads > 0)
}

#[cfg(test)]
mod tests {
    use crate::Workload;

    use super::*;

    fn program(keys: &str) -> ProgramSpec {
        let text = format!("[[program]]\ncommand = 'true'\n{keys}");
        let workload = Workload::parse(&text, "/tmp/jobs.toml".as_ref());
        workload.unwrap().programs.remove(0)
    }

    fn inherited(variables: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        variables.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn value(environment: &[(OsString, OsString)], name: &str) -> Option<String> {
        let (_, value) = environment.iter().find(|(n, _)| n == name)?;
        Some(value.to_string_lossy().into_owned())
    }

    #[test]
    fn threads_sets_every_variable_that_the_users_env_does_not_name() {
        let program = program("threads = 3\nenv = { MKL_NUM_THREADS = '1' }");
        let environment =
            program.environment(inherited(&[("OMP_NUM_THREADS", "8"), ("HOME", "/h")]));
        assert_eq!(value(&environment, "OMP_NUM_THREADS").unwrap(), "3");
        assert_eq!(value(&environment, "OPENBLAS_NUM_THREADS").unwrap(), "3");
        assert_eq!(value(&environment, "MKL_NUM_THREADS").unwrap(), "1");
        assert_eq!(value(&environment, "HOME").unwrap(), "/h");
    }

    #[test]
    fn the_threads_of_a_build_do_not_bound_nproc() {
        for command in [&["make"][..], &["sh", "-c", "cd x && make -j$(nproc)"]] {
            let mut program = program("threads = 1");
            program.command = command.iter().map(|word| (*word).to_owned()).collect();
            let environment = program.environment(inherited(&[("OMP_NUM_THREADS", "8")]));
            assert_eq!(value(&environment, "OMP_NUM_THREADS").unwrap(), "8");
            assert_eq!(value(&environment, "MAKEFLAGS").unwrap(), " -j1");
            assert!(program.has_thread_variable(inherited(&[])));
            assert!(program.inherits("OMP_NUM_THREADS"));
        }
    }

    #[test]
    fn the_documentation_names_every_variable() {
        let documentation = include_str!("../../../docs/jobs-file.md");
        for variable in THREAD_VARIABLES {
            assert!(documentation.contains(&format!("`{}`", variable.name)), "{}", variable.name);
        }
    }

    #[test]
    fn variables_are_inherited_unless_set_by_threads_or_env() {
        let program = program("threads = 3\nenv = { LD_PRELOAD = 'x' }");
        let inherited =
            ["OMP_NUM_THREADS", "LD_PRELOAD", "OMP_PROC_BIND"].map(|v| program.inherits(v));
        assert_eq!(inherited, [false, false, true]);
    }

    #[test]
    fn without_threads_the_environment_is_the_inherited_one() {
        let given = inherited(&[("HOME", "/h"), ("OMP_NUM_THREADS", "8")]);
        assert_eq!(program("").environment(given.clone()), given);
    }

    #[test]
    fn thread_demand_follows_openmp_when_the_user_gives_none() {
        let asked = |keys: &str, variable: &str| {
            program(keys).asked_threads(inherited(&[("OMP_NUM_THREADS", variable)]), 6)
        };
        assert_eq!(asked("threads = 3", "8"), 3);
        assert_eq!(asked("", "4"), 4);
        assert_eq!(asked("", " 4 , 2"), 4);
        assert_eq!(asked("env = { OMP_NUM_THREADS = '2' }", "4"), 2);
        for invalid in ["0", "", "many", "-1"] {
            assert_eq!(asked("", invalid), 6, "{invalid:?} is not a thread count");
        }
        assert_eq!(program("").asked_threads(inherited(&[]), 6), 6);
    }
}
