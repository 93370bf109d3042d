//! Telling a program how many threads to use, and guessing how many it takes.
//!
//! There is no common way to give a program a thread count; every numeric
//! library reads a variable of its own. `threads` sets those of the thread
//! pools that compute. Variables of other meaning are left alone: `GOMAXPROCS`,
//! say, also bounds the helpers of a language's runtime.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use super::spec::ProgramSpec;

/// The variables that a program's `threads` sets, unless its `env` names them:
/// of OpenMP, OpenBLAS, Intel MKL, BLIS, numexpr, Numba, Rayon and Julia.
pub const THREAD_VARIABLES: [&str; 8] = [
    OPENMP,
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "JULIA_NUM_THREADS",
];

/// The variable of OpenMP, which other libraries look at, too.
pub const OPENMP: &str = "OMP_NUM_THREADS";

impl ProgramSpec {
    /// The program's whole environment, sorted by name: the inherited one, over it the
    /// [`THREAD_VARIABLES`] where `threads` is given, over both what `env` says.
    pub fn environment(
        &self,
        inherited: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Vec<(OsString, OsString)> {
        let mut all: BTreeMap<OsString, OsString> = inherited.into_iter().collect();
        if let Some(threads) = self.threads {
            let value = OsString::from(threads.to_string());
            all.extend(THREAD_VARIABLES.map(|name| (name.into(), value.clone())));
        }
        all.extend(self.env.iter().map(|(name, value)| (name.into(), value.into())));
        all.into_iter().collect()
    }

    /// Whether the program gets the inherited value of a variable: neither `threads` nor `env` says
    /// another.
    pub fn inherits(&self, variable: &str) -> bool {
        let set = self.threads.is_some() && THREAD_VARIABLES.contains(&variable);
        !set && !self.env.contains_key(variable)
    }

    /// Whether its own `env` has the variable of OpenMP, so that it is [taken](Self::asked_threads)
    /// to have as many threads as that says, whatever it is told.
    pub fn has_own_count(&self) -> bool {
        self.env.contains_key(OPENMP)
    }

    /// How many threads the program will request on CPUs at once; never zero. Where `threads` is
    /// not given: the first number of `OMP_NUM_THREADS` in its environment, else one per CPU of the
    /// machine, which is what OpenMP and OpenBLAS take.
    pub fn asked_threads(
        &self,
        inherited: impl IntoIterator<Item = (OsString, OsString)>,
        cpus: usize,
    ) -> u16 {
        self.threads.unwrap_or_else(|| {
            let from_variable = self
                .environment(inherited)
                .into_iter()
                .find(|(name, _)| name == OPENMP)
                .and_then(|(_, value)| first_number(&value));
            from_variable.unwrap_or(u16::try_from(cpus).unwrap_or(u16::MAX).max(1))
        })
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
