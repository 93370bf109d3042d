//! What of the shell's environment decides how programs run.
//!
//! Programs inherit all of it. Most of it is another one in every terminal and changes nothing
//! (sessions, windows, prompts), and some of it is secret; so it is neither compared nor written
//! down as a whole. What counts is what loaders, allocators, runtimes and numeric libraries read,
//! and where commands are looked for.

use std::collections::BTreeMap;
use std::ffi::OsString;

use cosched_workload::ProgramSpec;

/// How names begin that count: of OpenMP and its runtimes, numeric libraries and thread pools, the
/// loader, the C library and other allocators, Python, and languages (`sort` alone is several times
/// as quick in some as in others).
const BEGINNINGS: [&str; 25] = [
    "OMP_",
    "GOMP_",
    "KMP_",
    "LIBOMP",
    "OPENBLAS_",
    "MKL_",
    "BLIS_",
    "VECLIB_",
    "NUMEXPR_",
    "NUMBA_",
    "RAYON_",
    "POLARS_",
    "LOKY_",
    "JULIA_",
    "R_DATATABLE_",
    "DOTNET_",
    "TBB_",
    "LD_",
    "GLIBC_",
    "MALLOC_",
    "MIMALLOC_",
    "TCMALLOC_",
    "PYTHON",
    "LANG",
    "LC_",
];
/// Names that count beside.
const NAMES: [&str; 12] = [
    "PATH",
    "GOTO_NUM_THREADS",
    "GOMAXPROCS",
    "GOGC",
    "GOMEMLIMIT",
    "GODEBUG",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "UV_THREADPOOL_SIZE",
    "CARGO_BUILD_JOBS",
    "CMAKE_BUILD_PARALLEL_LEVEL",
];

/// The variables that count and that at least one of these programs inherits, with their values.
pub fn deciding<'a>(
    environment: &'a [(OsString, OsString)],
    programs: &'a [ProgramSpec],
) -> impl Iterator<Item = (&'a str, String)> {
    let named = environment.iter().filter_map(|(name, value)| Some((name.to_str()?, value)));
    named
        .filter(move |(name, _)| counts(name) && programs.iter().any(|spec| spec.inherits(name)))
        .map(|(name, value)| (name, value.to_string_lossy().into_owned()))
}

/// Of the variables that count, those that a program is given beside what it inherits: the workload
/// sets them, or the variant of a comparison.
pub fn given(spec: &ProgramSpec) -> BTreeMap<String, String> {
    let own = spec.env.iter().filter(|(name, _)| counts(name));
    own.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn counts(name: &str) -> bool {
    NAMES.contains(&name) || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use cosched_workload::{THREAD_VARIABLES, Workload};

    use super::*;

    fn recorded(programs: &str, variables: &[(&str, &str)]) -> Vec<(String, String)> {
        let workload = Workload::parse(programs, "/tmp/jobs.toml".as_ref()).unwrap();
        let environment: Vec<(OsString, OsString)> =
            variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let found = deciding(&environment, &workload.programs);
        found.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    #[test]
    fn only_deciding_variables_of_the_shell_are_recorded() {
        let shell =
            [("OMP_PROC_BIND", "close"), ("PATH", "/bin"), ("TOKEN", "secret"), ("TERM", "xterm")];
        let found = recorded("[[program]]\ncommand = 'a'", &shell);
        let expected = [("OMP_PROC_BIND", "close"), ("PATH", "/bin")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    /// A make sets its own for each call.
    #[test]
    fn variables_with_thread_counts_decide_but_for_that_of_make() {
        let names = THREAD_VARIABLES.map(|variable| variable.name);
        let (decide, not): (Vec<&str>, Vec<&str>) =
            names.into_iter().partition(|name| counts(name));
        assert_eq!(not, ["MAKEFLAGS"], "{decide:?}");
    }

    #[test]
    fn variables_set_by_the_workload_hide_the_shells() {
        let shell = [("OMP_NUM_THREADS", "8")];
        let both =
            "[[program]]\ncommand = 'a'\nthreads = 2\n[[program]]\ncommand = 'b'\nthreads = 2\n";
        assert!(recorded(both, &shell).is_empty());
        assert_eq!(recorded(&both.replacen("threads = 2", "", 1), &shell).len(), 1);
    }
}
